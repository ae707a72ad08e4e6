package netns_test

import (
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// sideBySide is how many laboratories the scenarios run in at a time: each waits for processes and timers more than it computes.
const sideBySide = 3

// sampled are files that take minutes here, and ask more of EC2 than of a kernel, and how many of their variants run nevertheless: `.ci/full` plays
// all of all.
var sampled = map[string]int{"hands-off.scn": 2, "hands-off-alone.scn": 0, "stale-metadata.scn": 0, "neighbour-held.scn": 0, "attach-refused.scn": 0,
	"imds-only.scn": 0, "subnet-full.scn": 0, "subnets-excluded.scn": 0, "prefix-excluded.scn": 0, "eniconfig-changed.scn": 0,
	"least-privilege.scn": 0}

// TestScenarios: each scenario holds on a real kernel, with the real daemon and plugin, which agree with the core and the model in every step, and each
// mutant of a plan or of the shell breaks what the file says, first and in time.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute and a half")
	}
	place := netns.Place(parts(t))
	began := time.Now()
	queue := make(chan string)
	var workers sync.WaitGroup
	for range sideBySide {
		workers.Go(func() {
			for name := range queue {
				t.Run(strings.TrimSuffix(name, ".scn"), func(t *testing.T) { run(t, place, name) })
			}
		})
	}
	for _, name := range longestFirst(t) {
		queue <- name
	}
	close(queue)
	workers.Wait()
	t.Logf("all took %v", time.Since(began).Round(time.Second))
}

// run judges a file, and says in the test's log what was not run and why.
func run(t *testing.T, place *runner.Place, name string) {
	t.Helper()
	data := must.Get(fs.ReadFile(scenarios.Files, name))(t)
	c := must.Get(runner.Load(place, name, data))(t)
	if n, ok := sampled[name]; ok {
		if n == 0 {
			t.Skip("it takes minutes: .ci/full plays it")
		}
		c.Variants = c.Variants[:n]
	}
	began := time.Now()
	r := c.Run(runner.Options{Seed: runner.DefaultSeed})
	if r.Status == runner.Skipped && len(r.Runs) == 0 {
		t.Skip(c.NotHere())
	}
	t.Logf("%v in %d runs\n%s", time.Since(began).Round(time.Millisecond), len(r.Runs)+len(r.Bites), r.Report())
	for _, u := range c.Unplayed {
		t.Logf("mutant %s: %s", u.Mutant, u.Why)
	}
	if r.Status != runner.Held {
		t.Fail()
	}
}

// longestFirst are all files, and first those that take longest, so that the others run beside them.
func longestFirst(t *testing.T) []string {
	t.Helper()
	names := must.Get(fs.Glob(scenarios.Files, "*.scn"))(t)
	out := []string{"upgrade.scn", "lost-replies.scn", "drift.scn"}
	for _, n := range out {
		if i := slices.Index(names, n); i >= 0 {
			names = slices.Delete(names, i, i+1)
		}
	}
	return append(out, names...)
}
