package scenarios_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/virtual"
)

// deaf is a world in which some actions do nothing, and say that they struck.
type deaf struct {
	*virtual.World
	leaves func(line int, a *verb.Act) bool // out; lines are numbered in the order in which their actions come first, from 0
	lines  *[]*verb.Act
}

// unheard is the number of every action that a deaf world leaves out.
const unheard = -1

func (w deaf) Do(a *verb.Act) int {
	i := slices.Index(*w.lines, a) // one that repeats is the same
	if i < 0 {
		i, *w.lines = len(*w.lines), append(*w.lines, a)
	}
	if w.leaves(i, a) {
		return unheard
	}
	return w.World.Do(a)
}

func (w deaf) Strike(id int) verb.Strike {
	if id == unheard {
		return verb.Hit("nothing")
	}
	return w.World.Strike(id)
}

// without runs a scenario with actions that do nothing. lines are the actions that our daemon's last world was asked for.
func without(t *testing.T, name string, leaves func(line int, a *verb.Act) bool) (r *runner.Result, lines []*verb.Act) {
	t.Helper()
	place, last := runner.Sim(), new([]*verb.Act)
	place.Open = func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := virtual.Open(c, seed, m)
		asked := new([]*verb.Act)
		if m == nil { // a mutant's run ends where it breaks
			last = asked
		}
		return deaf{w, leaves, asked}, err
	}
	c := must.Get(runner.Load(place, name, read(t, name)))(t)
	r = c.Run(runner.Options{Seed: runner.DefaultSeed, NoStory: true})
	return r, *last
}

// TestEveryVerbIsUsed: a verb that no file uses is one of which TestEveryLineMatters says nothing.
func TestEveryVerbIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, name := range files(t) {
		f := must.Get(scn.Parse(name, read(t, name)))(t)
		for _, l := range f.Lines {
			if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
				for _, v := range verb.All() {
					if v.Name == at.Action.Verb && slices.Contains(v.On, at.Action.Subject.Kind) {
						used[v.Key()] = true
					}
				}
			}
		}
	}
	for _, v := range verb.All() {
		if !used[v.Key()] {
			t.Errorf("no scenario uses %s: give it one whose verdict changes when it does nothing", v.Key())
		}
	}
}

// Every verb and every line of every scenario matters: when it does nothing, an expectation, an invariant, a mark or a mutant says so. The golden story is
// not asked: a line that tells what was asked for would be no witness.
func TestEveryLineMatters(t *testing.T) {
	if testing.Short() {
		t.Skip("seventy files are run: leave -short out")
	}
	for _, name := range files(t) {
		t.Run(strings.TrimSuffix(name, ".scn"), func(t *testing.T) {
			t.Parallel()
			r, all := without(t, name, func(int, *verb.Act) bool { return false })
			if r.Status != runner.Held {
				t.Errorf("it does not hold with all of its lines: %s", r.Report())
			}
			verbs := map[string]bool{}
			for i, a := range all {
				t.Run(fmt.Sprintf("%d-%s", i+1, a.Verb), func(t *testing.T) {
					t.Parallel()
					if !matters(t, name, func(line int, _ *verb.Act) bool { return line == i }) {
						t.Errorf("without %s of %v it holds too: give it a witness, such as an expectation of what it does", a.Verb, a.Subject)
					}
				})
				if verbs[a.Verb] {
					continue
				}
				verbs[a.Verb] = true
				t.Run(a.Verb, func(t *testing.T) {
					t.Parallel()
					if !matters(t, name, func(_ int, of *verb.Act) bool { return of.Verb == a.Verb }) {
						t.Errorf("without any %s it holds too: give it a witness, such as an expectation of what it does", a.Verb)
					}
				})
			}
		})
	}
}

// matters says whether a scenario's verdict is another one when some of its actions do nothing.
func matters(t *testing.T, name string, leaves func(line int, a *verb.Act) bool) bool {
	t.Helper()
	r, _ := without(t, name, leaves)
	if r.Status != runner.Held && os.Getenv("ENILAB_VERBOSE") != "" {
		report := r.Report()
		t.Log(report[:strings.Index(report, "\n")])
	}
	return r.Status != runner.Held
}
