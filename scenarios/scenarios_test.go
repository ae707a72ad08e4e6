package scenarios_test

import (
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// files are the scenarios' names.
func files(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(scenarios.Files, "*.scn")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	return must.Get(fs.ReadFile(scenarios.Files, name))(t)
}

// seedsVariable names a range of seeds to play instead of the usual one, such as 1-200.
const seedsVariable = "ENILAB_SEEDS"

// fleet is from how many nodes on a scenario is a fleet, and usualFleet and wideFleet are how many seeds it is played with, since one run
// of it is a hundred of the others: usually, and when seeds are asked for.
const (
	fleet      = runner.MaxCrashNodes + 1
	usualFleet = 2
	wideFleet  = 5
)

// seedsOf are the seeds to play a scenario with.
func seedsOf(t *testing.T, c *runner.Case) runner.Seeds {
	t.Helper()
	seeds, most := runner.Seeds{From: runner.DefaultSeed, To: 20}, uint64(usualFleet)
	if testing.Short() {
		seeds.To = seeds.From
	}
	if text := os.Getenv(seedsVariable); text != "" {
		var err error
		if seeds, err = runner.ParseSeeds(text); err != nil {
			t.Fatalf("%s: %v", seedsVariable, err)
		}
		most = wideFleet
	}
	if c.Variants[0].Cluster.Nodes >= fleet {
		seeds.To = min(seeds.To, seeds.From+most-1)
	}
	return seeds
}

// Each scenario holds with every seed, tells its golden story with the first, and each mutant that it names breaks what it says, first and
// in time: what is so with one seed only is luck.
func TestScenarios(t *testing.T) {
	bySeeds := map[runner.Seeds][]*runner.Case{}
	for _, name := range files(t) {
		c := must.Get(runner.Load(runner.Sim(), name, read(t, name)))(t)
		if testing.Short() && c.Variants[0].Cluster.Nodes >= fleet {
			continue
		}
		seeds := seedsOf(t, c)
		bySeeds[seeds] = append(bySeeds[seeds], c)
	}
	for seeds, cases := range bySeeds {
		for _, s := range runner.SweepAll(cases, runner.SweepOptions{Seeds: seeds, AtOnce: runtime.GOMAXPROCS(0)}) {
			t.Run(s.Case.Name(), func(t *testing.T) {
				if t.Log(strings.TrimSuffix(s.Report(), "\n")); s.Status != runner.Held || s.Ran != seeds.Count() {
					t.Fail()
				}
			})
		}
	}
}

// named says which scenarios prove themselves against each mutant.
func named(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, name := range files(t) {
		f := must.Get(scn.Parse(name, read(t, name)))(t)
		for _, l := range f.Lines {
			if a, ok := l.Stmt.(*scn.Against); ok {
				out[a.Mutant] = append(out[a.Mutant], strings.TrimSuffix(name, ".scn"))
			}
		}
	}
	return out
}

// onlyInCrashes are mutants that show only when a daemon dies at the right instant: sim/virtual's crash enumeration names them.
var onlyInCrashes = []string{"durable-before-written"}

// A mutant that no scenario names proves nothing.
func TestEveryMutantIsNamed(t *testing.T) {
	by := named(t)
	for _, m := range mutants.All() {
		if len(by[m.Name]) == 0 && !slices.Contains(onlyInCrashes, m.Name) {
			t.Errorf("mutant %s (%s, rule %s) is named by no scenario: add an `against` line, or take it out", m.Name, m.Kind, m.Rule)
		}
	}
}

// Every line of ipam.Sound is a rule: with another in its place, a scenario fails. TestScenarios shows that the mutants named here are red.
func TestEveryRuleIsProven(t *testing.T) {
	by := named(t)
	rules := reflect.TypeFor[ipam.Policy]()
	for i := range rules.NumField() {
		field := rules.Field(i).Name
		var proof []string
		for _, m := range mutants.All() {
			if m.Policy != nil && slices.Equal(replaced(m.Policy), []string{field}) {
				proof = append(proof, m.Name+" in "+strings.Join(by[m.Name], ", "))
				if len(by[m.Name]) == 0 {
					t.Errorf("Policy.%s: mutant %s replaces it, and no scenario names that mutant", field, m.Name)
				}
			}
		}
		if len(proof) == 0 {
			t.Errorf("Policy.%s: no mutant replaces exactly this line of Sound", field)
		}
		t.Logf("%-10s %s", field, strings.Join(proof, "; "))
	}
}

// replaced are the fields of Sound that a mutation changes.
func replaced(mutate func(*ipam.Policy)) []string {
	sound, p := ipam.Sound(), ipam.Sound()
	mutate(p)
	var out []string
	was, is := reflect.ValueOf(sound).Elem(), reflect.ValueOf(p).Elem()
	for i := range is.NumField() {
		if is.Field(i).Pointer() != was.Field(i).Pointer() {
			out = append(out, is.Type().Field(i).Name)
		}
	}
	return out
}
