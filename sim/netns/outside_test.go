package netns_test

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// allVariable has every scenario and every mutant run without books.
const allVariable = "ENILAB_WITHOUT_BOOKS"

// writeUps are the incidents of the five write-ups of docs/incidents.md, without the fleet.
var writeUps = []string{"socket-mismatch.scn", "upgrade.scn", "force-delete.scn", "del-retries.scn", "statefulset-name-reuse.scn", "subnet-exhausted.scn"}

// blindPlace is world netns without books.
func blindPlace(t *testing.T) *runner.Place {
	t.Helper()
	p := parts(t)
	p.WithoutBooks = true
	return netns.Place(p)
}

// TestWithoutBooks: the daemon as it is holds in every incident when it is judged from outside alone, and what was not judged is named.
func TestWithoutBooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	place, names := blindPlace(t), writeUps
	if os.Getenv(allVariable) != "" {
		names = longestFirst(t)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(name, ".scn"), func(t *testing.T) {
			t.Parallel()
			r := playBlind(t, place, name, nil)
			if r.Status == runner.Skipped && len(r.Runs) == 0 {
				t.Skip(r.Case.NotHere())
			}
			if r.Status != runner.Held || !strings.Contains(r.Report(), "; not judged without books: 6 invariants") {
				t.Errorf("expected held, and what was not judged: %s", r.Report())
			}
		})
	}
}

// small are scenarios of this file's own: a node that has to clean up what its kernel has of pods, and one whose daemon starts while few
// pods have flows. Of silent flows and pods each look at a node waits in real time.
var small = map[string]string{
	"shrinking.scn": `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 8 on node-1
at 1s   kube scale web 3
finally converges within 5m
`,
	"flowing.scn": `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 2 on node-1
at 1s   kube hold-flows
at 2s   node-1 restart WARM_IP_TARGET=3
finally converges within 5m
`,
}

// TestSeenFromOutside: for every invariant that needs no books, a daemon that breaks it turns the run red without books. It is the table of
// docs/testing.md.
func TestSeenFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	place := blindPlace(t)
	seen := map[judge.ID]bool{}
	for _, c := range []struct {
		file, mutant string
		breaks       []judge.ID
	}{
		{"runtime-restart.scn", "recover-from-runtime-only", []judge.ID{judge.I1, judge.I2}},
		{"scale-down.scn", "drain-without-proof", []judge.ID{judge.I4}},
		{"neighbours-leak.scn", "no-sweep", []judge.ID{judge.I5}},
		{"shrinking.scn", "rules-left-behind", []judge.ID{judge.I5}},
		{"del-retries.scn", "unknown-del-fails", []judge.ID{judge.I6}},
		{"records-lost.scn", "forgotten-is-free", []judge.ID{judge.I7}},
		{"role-and-clock.scn", "sdk-retries", []judge.ID{judge.I8}},
		{"force-delete.scn", "free-what-has-no-pod", []judge.ID{judge.I10}},
		{"flowing.scn", "mac-of-its-own", []judge.ID{judge.I17}},
		{"socket-mismatch.scn", "waits-for-the-runtime", []judge.ID{judge.I16}},
		{"hands-off.scn", "all-attached-is-ours", []judge.ID{judge.I14}},
		{"third-party.scn", "sweeps-foreign-rules", []judge.ID{judge.I18}},
		{"subnets.scn", "any-subnet", []judge.ID{judge.I19}},
		{"security-groups.scn", "groups-of-birth", []judge.ID{judge.I20}},
	} {
		for _, id := range c.breaks {
			seen[id] = true
		}
		t.Run(c.mutant, func(t *testing.T) {
			t.Parallel()
			m, ok := mutants.ByName(c.mutant)
			if !ok {
				t.Fatal("there is no such mutant")
			}
			r := playBlind(t, place, c.file, &m)
			var broken []judge.ID
			for i := range r.Runs {
				if v := r.Runs[i].Verdict; v != nil {
					for _, x := range v.Violations {
						broken = append(broken, x.Invariant)
					}
				}
			}
			for _, id := range c.breaks {
				if !slices.Contains(broken, id) {
					t.Errorf("expected %q to break, found %v: %s", id.Phrase(), broken, r.Report())
				}
			}
			if r.Status != runner.Violated {
				t.Errorf("expected violated, found %v", r.Status)
			}
		})
	}
	for _, i := range judge.Catalogue() {
		if i.Needs&judge.Books == 0 && !seen[i.ID] {
			t.Errorf("no mutant shows that %q is judged without books", i.Phrase)
		}
	}
}

// unseen are the scenarios and mutants that run as if nothing were wrong without books: docs/testing.md says why.
var unseen = []string{"del-any-phase no-intent-for-later", "del-retries mute", "eni-leak no-intents", "metadata-silent asks-once",
	"quarantine quarantine-for-ever", "scale-down never-gives-back", "socket-mismatch unanswered-is-empty", "upgrade flows-end-by-themselves"}

// TestMutantsFromOutside plays every mutant in each scenario that names it.
func TestMutantsFromOutside(t *testing.T) {
	if os.Getenv(allVariable) == "" {
		t.Skipf("it takes five minutes: set %s=all", allVariable)
	}
	place := blindPlace(t)
	for _, name := range longestFirst(t) {
		data := must.Get(fs.ReadFile(scenarios.Files, name))(t)
		f := must.Get(scn.Parse(name, data))(t)
		for _, l := range f.Lines {
			a, ok := l.Stmt.(*scn.Against)
			if !ok || !l.Guard.Allows(place.Name) {
				continue
			}
			t.Run(strings.TrimSuffix(name, ".scn")+"/"+a.Mutant, func(t *testing.T) {
				t.Parallel()
				m, _ := mutants.ByName(a.Mutant)
				r := playBlind(t, place, name, &m)
				if r.Status == runner.Skipped && len(r.Runs) == 0 {
					t.Skip(r.Case.NotHere())
				}
				if held, expected := r.Status == runner.Held, slices.Contains(unseen, strings.TrimSuffix(name, ".scn")+" "+a.Mutant); held != expected {
					t.Errorf("held %v, expected %v: %s", held, expected, r.Report())
				}
			})
		}
	}
}

// playBlind runs a file of the catalogue, or a small one, without books, under a mutant or none.
func playBlind(t *testing.T, place *runner.Place, name string, m *mutants.Mutant) *runner.Result {
	t.Helper()
	data := []byte(small[name])
	if len(data) == 0 {
		data = must.Get(fs.ReadFile(scenarios.Files, name))(t)
	}
	c := must.Get(runner.Load(place, name, data))(t)
	return c.Run(runner.Options{Seed: runner.DefaultSeed, Against: m})
}
