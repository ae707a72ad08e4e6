package virtual

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
)

// crashNodes is up to how many nodes a scenario is small enough to be crashed everywhere.
const crashNodes = 8

// wholeVariable asks for every crash point (.ci/full); without it one in usualEvery is tried, the same ones each time, which takes two
// minutes of two cores and not ten.
const wholeVariable, usualEvery = "ENILAB_CRASH", 5

// crashDistance thins out what does the same for hours: churn, attach-refused, stale-metadata and neighbour-held alone would take as long as all others
// a hundred times. What crashesWhole names is crashed everywhere, whatever it takes.
const crashDistance = 2_500_000

var crashesWhole = []string{"upgrade", "eni-leak"}

// crashesSampled have a hundred pods and more, or hours: of their crash points one in sampledEvery is tried, and as long as
// all others they would take otherwise.
var crashesSampled = []string{"prefix", "prefix-switch", "prefix-given-back", "prefix-lost", "prefix-fragmented", "prefix-cool-down", "prefix-reserved",
	"custom-switched", "subnets-excluded", "prefix-excluded"}

const sampledEvery = 10

// opener makes a variant of a scenario again and again.
func opener(t *testing.T, f *scn.File, vars map[string]string, m *mutants.Mutant) (func() (*sim.Run, *World, error), *sim.Cluster) {
	t.Helper()
	f = must.Get(f.Expand(vars))(t)
	c := must.Get(sim.Check(f))(t)
	return func() (*sim.Run, *World, error) {
		w, err := Open(c, 1, m)
		if err != nil {
			return nil, nil, err
		}
		r, err := sim.NewRun(f, w, "sim")
		return r, w, err
	}, c
}

func parse(t *testing.T, name, text string) *scn.File {
	t.Helper()
	return must.Get(scn.Parse(name, []byte(text)))(t)
}

// shortEvery thins out further under -short: the figures that the test logs are then those of every so-manieth crash point.
const shortEvery = 96

// TestCrashEverywhere crashes every daemon of every small scenario at events all over it; when asked for, at every event.
func TestCrashEverywhere(t *testing.T) {
	before := debug.SetGCPercent(400) // forks are garbage soon
	t.Cleanup(func() { debug.SetGCPercent(before) })
	files, err := filepath.Glob("../../scenarios/*.scn")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	slices.Reverse(files) // upgrade takes half as long as all others together: they run beside it
	for _, name := range files {
		data := must.Get(os.ReadFile(name))(t)
		crashVariants(t, strings.TrimSuffix(filepath.Base(name), ".scn"), string(data))
	}
	for _, s := range crashStories {
		crashVariants(t, s.name, s.text)
	}
}

func crashVariants(t *testing.T, name, text string) {
	f := parse(t, name, text)
	for _, vars := range f.Variants() {
		t.Run(strings.TrimSpace(name+" "+f.VariantName(vars)), func(t *testing.T) {
			t.Parallel()
			open, c := opener(t, f, vars, nil)
			if slices.ContainsFunc(f.Lines, func(l scn.Line) bool { _, never := l.Stmt.(*scn.Never); return never }) {
				t.Skip("it never settles: there is nothing that a crash could be held against")
			}
			if c.Nodes > crashNodes {
				t.Skipf("%d nodes: more than %d", c.Nodes, crashNodes)
			}
			began := time.Now()
			o := CrashOptions{Distance: crashDistance}
			if slices.Contains(crashesWhole, name) {
				o.Distance = 0
			}
			switch {
			case testing.Short():
				o.Every = shortEvery
			case slices.Contains(crashesSampled, name):
				o.Every = sampledEvery
			}
			if os.Getenv(wholeVariable) != "whole" {
				o.Every = max(o.Every, 1) * usualEvery
			}
			r := must.Get(CrashEverywhere(open, o))(t)
			t.Logf("%s: %d crash points, %d forks (%d with other ENIs), %v", name, r.Points, r.Forks, r.Shifted, time.Since(began))
			for i := range r.Broken {
				t.Errorf("%v\n%s", &r.Broken[i], r.Broken[i].Story)
			}
		})
		if testing.Short() {
			return
		}
	}
}

// crashStories are what the scenarios of incidents do not do: grow and shrink the pool, and use pods' names again.
var crashStories = []struct{ name, text string }{
	{"churn-ips", `
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  WARM_IP_TARGET=2 MINIMUM_IP_TARGET=5
start   pods web 3 on node-1
at 1s   kube scale web 12
at 2m   kube scale web 4
at 6m   kube scale web 9
finally converges within 4m
`}, {"churn-enis", `
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  WARM_ENI_TARGET=1
start   pods web 3 on node-1
at 1s   kube scale web 12
at 2m   kube scale web 4
finally converges within 4m
`}, {"stateful-roll", `
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  WARM_IP_TARGET=2 MINIMUM_IP_TARGET=5
at 1s   kube create db 4 kind=statefulset
at 2m   kube roll db 2
at 4m   kube roll db 4
finally converges within 2m
`}, {"hung", `
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  WARM_IP_TARGET=2 MINIMUM_IP_TARGET=5
start   pods web 4 on node-1
at 1s   pod web-1 hang
at 2s   pod web-1 force-delete
at 1m   kube roll web 1
at 7m   pod web-1 unhang
finally converges within 2m
`}}

// toldCrash is how a crash is told: where, after what, what broke, and what became of the daemon's work. Nothing of it is a type's name.
var toldCrash = regexp.MustCompile(`^at [0-9hms.]+ node-1 was killed after [a-zA-Z][^*%;]*; ("[a-z -]+" broke at [0-9hms.]+: |node-1 |it )[^*%]*$`)

// TestCrashesShowMutants: an enumeration that nothing can turn red proves nothing.
func TestCrashesShowMutants(t *testing.T) {
	for _, c := range []struct {
		mutant, story string
		want          judge.ID // what breaks first; 0: any
	}{
		{"cool-down-in-memory", "stateful-roll", judge.I7},
		{"nothing-written", "stateful-roll", judge.I7},
		{"durable-before-written", "stateful-roll", 0},
		{"lost-is-failed", "churn-enis", judge.I5},
		{"recover-from-runtime-only", "churn-ips", judge.I13},
	} {
		t.Run(c.mutant, func(t *testing.T) {
			m, ok := mutants.ByName(c.mutant)
			if !ok {
				t.Fatalf("no mutant %q", c.mutant)
			}
			if testing.Short() && c.mutant != "durable-before-written" {
				t.Skip("scenarios show it too")
			}
			for _, s := range crashStories {
				if s.name != c.story {
					continue
				}
				open, _ := opener(t, parse(t, s.name, s.text), nil, &m)
				r, err := CrashEverywhere(open, CrashOptions{Limit: 1})
				switch {
				case err != nil:
					t.Fatal(err)
				case len(r.Broken) == 0:
					t.Fatalf("%d forks settled like no crash: expected the mutant to show", r.Forks)
				case c.want != 0 && !strings.HasPrefix(r.Broken[0].What, fmt.Sprintf("%q broke at ", c.want.Phrase())):
					t.Errorf("expected %q, found %v", c.want.Phrase(), &r.Broken[0])
				case !toldCrash.MatchString(r.Broken[0].String()):
					t.Errorf("the crash is told as: %v", &r.Broken[0])
				}
			}
		})
	}
}

// TestForkWithoutCrash: a fork that nobody kills comes to the very trace of the world that it was forked from.
func TestForkWithoutCrash(t *testing.T) {
	open, _ := opener(t, parse(t, "churn", crashStories[0].text), nil, nil)
	whole := must.Get(newWalk(open))(t)
	points := 0
	whole.crash = func(*node, string) bool { points++; return true }
	whole.toEnd()
	again := must.Get(newWalk(open))(t)
	seen := 0
	again.crash = func(*node, string) bool {
		if seen++; seen%17 != 0 || again.settling {
			return true
		}
		w := again.World.Clone()
		r := again.run.Clone(w)
		r.To(r.LastLine(), nil)
		w.Until(again.last, nil)
		w.EndFaults()
		w.Until(again.end, nil)
		w.Settle()
		if w.Hash() != whole.Hash() {
			t.Errorf("a fork at %v has another trace", again.Now())
		}
		return true
	}
	again.toEnd()
	if again.Hash() != whole.Hash() || seen != points || points < 100 {
		t.Errorf("the world that was forked has trace %x after %d points: expected %x after %d", again.Hash(), seen, whole.Hash(), points)
	}
}

// TestChoices: none, all, each alone; what differs from neither is not tried twice.
func TestChoices(t *testing.T) {
	save := func(seq uint64, s ipam.Store) event {
		return event{seq: seq, kind: evSaved, data: &ipam.Save{Store: s, Seq: seq}}
	}
	call := event{seq: 3, kind: evServe, data: &inFlight{act: ipam.DetachENI}}
	apply := event{seq: 4, kind: evApply, data: &ipam.Apply{Plan: dataplane.Plan{Ops: make([]dataplane.Op, 4)}}}
	for _, c := range []struct {
		name   string
		flight []event
		want   []map[uint64]fate
	}{
		{"nothing", nil, []map[uint64]fate{nil}},
		{"one save", []event{save(1, 0)}, []map[uint64]fate{nil, {1: lands}}},
		{"a call", []event{call}, []map[uint64]fate{nil, {3: lands}, {3: landsLate}}},
		{"a plan", []event{apply}, []map[uint64]fate{nil, {4: lands}, {4: landsHalf}}},
		{"two saves of a store", []event{save(1, 0), save(2, 0)}, []map[uint64]fate{nil, {1: lands, 2: lands}, {1: lands}}},
		{"two stores", []event{save(1, 0), save(2, 1)}, []map[uint64]fate{nil, {1: lands, 2: lands}, {1: lands}, {2: lands}}},
		{"a call and a plan", []event{call, apply},
			[]map[uint64]fate{nil, {3: lands, 4: lands}, {3: landsLate}, {3: lands}, {4: landsHalf}, {4: lands}}},
	} {
		var found []map[uint64]fate
		for _, o := range choices(c.flight) {
			found = append(found, o.fates)
		}
		if !slices.EqualFunc(found, c.want, maps.Equal) {
			t.Errorf("%s: expected %v, found %v", c.name, c.want, found)
		}
	}
}
