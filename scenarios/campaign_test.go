package scenarios_test

import (
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

// deaf is a world in which a verb does nothing, and says that it struck.
type deaf struct {
	*virtual.World
	verb string
}

// unheard is the number of every action that a deaf world leaves out.
const unheard = -1

func (w deaf) Do(a *sim.Act) int {
	if a.Verb == w.verb {
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

// withoutVerb is virtual time in which a verb does nothing.
func withoutVerb(verb string) *runner.Place {
	p := runner.Sim()
	p.Open = func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := virtual.Open(c, seed, m)
		return deaf{w, verb}, err
	}
	return p
}

// verbsOf are the verbs that a scenario uses.
func verbsOf(t *testing.T, name string) []string {
	t.Helper()
	f, err := scn.Parse(name, read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range f.Lines {
		if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil && !slices.Contains(out, at.Action.Verb) {
			out = append(out, at.Action.Verb)
		}
	}
	return out
}

// without runs a scenario with a verb that does nothing.
func without(t *testing.T, name, verb string) *runner.Result {
	t.Helper()
	c, err := runner.Load(withoutVerb(verb), name, read(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return c.Run(runner.Options{Seed: runner.DefaultSeed, NoStory: true})
}

// TestEveryVerbIsUsed: a verb that no file uses is one of which TestEveryVerbMatters says nothing.
func TestEveryVerbIsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, name := range files(t) {
		for _, verb := range verbsOf(t, name) {
			used[verb] = true
		}
	}
	for _, v := range sim.Verbs() {
		if !used[v.Name] {
			t.Errorf("no scenario uses %s: give it one whose verdict changes when it does nothing", v.Name)
		}
	}
}

// Every verb of every scenario matters: when it does nothing, an expectation, an invariant, a mark or a mutant says so. The golden story
// is not asked: a line that tells what was asked for would be no witness.
func TestEveryVerbMatters(t *testing.T) {
	if testing.Short() {
		t.Skip("seventy files are run: leave -short out")
	}
	for _, name := range files(t) {
		t.Run(strings.TrimSuffix(name, ".scn"), func(t *testing.T) {
			t.Parallel()
			if r := without(t, name, ""); r.Status != runner.Held {
				t.Errorf("it does not hold with all of its verbs: %s", r.Report())
			}
		})
		for _, verb := range verbsOf(t, name) {
			t.Run(strings.TrimSuffix(name, ".scn")+"/"+verb, func(t *testing.T) {
				t.Parallel()
				r := without(t, name, verb)
				if r.Status == runner.Held {
					t.Errorf("without %s it holds too: give it a witness, such as an expectation of what it does", verb)
				} else if os.Getenv("ENILAB_VERBOSE") != "" {
					report := r.Report()
					t.Log(report[:strings.Index(report, "\n")])
				}
			})
		}
	}
}
