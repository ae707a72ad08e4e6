package scenarios_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// deaf is a world in which the line of one action does nothing, and says that it struck.
type deaf struct {
	*virtual.World
	line  int // which action, in the order in which they come first, from 0
	lines *lines
}

// lines are the actions that a world was asked for: a line that repeats is one.
type lines struct {
	acts []*sim.Act
}

func (l *lines) number(a *sim.Act) int {
	if i := slices.Index(l.acts, a); i >= 0 {
		return i
	}
	l.acts = append(l.acts, a)
	return len(l.acts) - 1
}

// unheard is the number of every action that a deaf world leaves out.
const unheard = -1

func (w deaf) Do(a *sim.Act) int {
	if w.lines.number(a) == w.line {
		return unheard
	}
	return w.World.Do(a)
}

func (w deaf) Strike(id int) sim.Strike {
	if id == unheard {
		return sim.Hit("nothing")
	}
	return w.World.Strike(id)
}

// without runs a scenario with a line that does nothing; -1 is none. last are the lines that its last world was asked for.
func without(t *testing.T, name string, line int) (r *runner.Result, last *lines) {
	t.Helper()
	place := runner.Sim()
	place.Open = func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := virtual.Open(c, seed, m)
		last = &lines{}
		return deaf{w, line, last}, err
	}
	c, err := runner.Load(place, name, read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return c.Run(runner.Options{Seed: runner.DefaultSeed, NoStory: true}), last
}

// TestEveryVerbIsUsed: a verb that no file uses is one of which TestEveryLineMatters says nothing.
func TestEveryVerbIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, name := range files(t) {
		f, err := scn.Parse(name, read(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range f.Lines {
			if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
				for _, v := range sim.Verbs() {
					if v.Name == at.Action.Verb && slices.Contains(v.On, at.Action.Subject.Kind) {
						used[v.Key()] = true
					}
				}
			}
		}
	}
	for _, v := range sim.Verbs() {
		if !used[v.Key()] {
			t.Errorf("no scenario uses %s: give it one whose verdict changes when it does nothing", v.Key())
		}
	}
}

// Every line of every scenario matters: when it does nothing, an expectation, an invariant, a mark or a mutant says so. The golden story is not asked: a
// line that tells what was asked for would be no witness.
func TestEveryLineMatters(t *testing.T) {
	if testing.Short() {
		t.Skip("seventy files are run: leave -short out")
	}
	for _, name := range files(t) {
		t.Run(strings.TrimSuffix(name, ".scn"), func(t *testing.T) {
			t.Parallel()
			r, all := without(t, name, -1)
			if r.Status != runner.Held {
				t.Errorf("it does not hold with all of its lines: %s", r.Report())
			}
			for i, a := range all.acts {
				t.Run(fmt.Sprintf("%d-%s", i+1, a.Verb), func(t *testing.T) {
					t.Parallel()
					r, _ := without(t, name, i)
					if r.Status == runner.Held {
						t.Errorf("without its action %d, %s of %v, it holds too: give it a witness, such as an expectation of what it does", i+1, a.Verb, a.Subject)
					} else if os.Getenv("ENILAB_VERBOSE") != "" {
						report := r.Report()
						t.Log(report[:strings.Index(report, "\n")])
					}
				})
			}
		})
	}
}
