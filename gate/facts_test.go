package gate

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
)

// TestFacts: what others rely on is compared with the old version alone, whatever the checks say.
func TestFacts(t *testing.T) {
	seen := func(p Play, seed uint64, fact, value string) Result {
		return Result{Scenario: "x", Play: p, Seed: seed, Status: "held", Figures: &sim.Figures{Facts: map[string]string{fact: value}}}
	}
	for _, c := range []struct {
		name    string
		results []Result
		want    string // a finding's text and cause
		note    string
	}{
		{"the same", []Result{seen(Old, 1, sim.FactMTU, "9001"), seen(Upgrade, 1, sim.FactMTU, "9001")}, "", ""},
		{"another MTU", []Result{seen(Old, 1, sim.FactMTU, "9001"), seen(Upgrade, 1, sim.FactMTU, "1500, 9001")}, "1500, 9001; with the old version alone: 9001/the upgrade", ""},
		{"the old one is unsteady", []Result{seen(Old, 1, sim.FactMTU, "9001"), seen(Old, 2, sim.FactMTU, "1500"), seen(New, 1, sim.FactMTU, "1400")}, "", ""},
		{"not looked at", []Result{seen(Old, 1, sim.FactMTU, "9001"), {Scenario: "x", Play: New, Seed: 1, Figures: &sim.Figures{}}}, "", ""},
		{"other words in the configuration", []Result{seen(Old, 1, sim.FactConfiguration, "10-aws.conflist {}"), seen(New, 1, sim.FactConfiguration, "10-aws.conflist []")}, "", "is another one"},
		{"no configuration", []Result{seen(Old, 1, sim.FactConfiguration, "10-aws.conflist {}"), seen(New, 1, sim.FactConfiguration, sim.NoConfiguration)}, "none; with the old version alone: 10-aws.conflist {}/the new version itself", ""},
	} {
		v := Compare(c.results)
		got := ""
		for _, f := range v.Findings {
			if f.Kind != Regression {
				t.Errorf("%s: %+v", c.name, f)
			}
			got += strings.TrimPrefix(f.Text, f.Check+": ") + "/" + f.Cause
		}
		if got != c.want {
			t.Errorf("%s: found %q, expected %q", c.name, got, c.want)
		}
		if notes := strings.Join(v.Notes, "\n"); strings.Contains(notes, "configuration") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%s: notes %q, expected %q", c.name, notes, c.note)
		}
	}
}

// TestErrorsByCode: what EC2 refuses is compared by code.
func TestErrorsByCode(t *testing.T) {
	run := func(p Play, n int64) Result {
		return Result{Scenario: "load", Play: p, Seed: 1, Figures: &sim.Figures{Errors: map[string]int64{"InvalidParameterValue": n}}}
	}
	for _, c := range []struct {
		old, new int64
		beyond   int
	}{{10, 10, 0}, {10, 12, 0}, {10, 20, 1}, {0, 3, 0}, {0, 4, 1}, {20, 10, 0}} {
		v := Verdict{Figures: Measure([]Result{run(Old, c.old), run(New, c.new)})}
		if d := v.Dearer(); len(d) != c.beyond || c.beyond > 0 && d[0].Name != "EC2 errors, InvalidParameterValue" {
			t.Errorf("%d, then %d: %v", c.old, c.new, d)
		}
	}
}
