package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// TestMachineSweeps: seeds that were played in machines are told as those without are: a line, the failed ones, the first failed one's report.
func TestMachineSweeps(t *testing.T) {
	f := must.Get(scn.Parse("calm.scn", []byte(calm)))(t)
	var out bytes.Buffer
	m := &machines{cli: &cli{out: &out}, f: &runFlags{on: "netns"}}
	seeds := runner.Seeds{From: 1, To: 3}
	s := &runner.Sweep{Case: &runner.Case{File: f}, Seeds: seeds}
	for _, seed := range []uint64{3, 1, 2} { // as machines end
		j := runner.FileDocument{Status: "held", Events: 10, Virtual: 60}
		if seed > 1 {
			j.Status, j.Report = "violated", "violated  calm  with seed "+string(rune('0'+seed))+"\n"
		}
		s.Add(seed, &j, time.Second)
	}
	m.verdict(s.Status, s.Report())
	err := m.tellSweeps(m.f, seeds, []*runner.Sweep{s})
	if e, ok := err.(*exit); !ok || e.code != runner.ExitViolated {
		t.Errorf("expected exit code %d, found %v", runner.ExitViolated, err)
	}
	text := out.String()
	for _, want := range []string{"violated  calm  3 seeds, ", "30 events in 3m", "2 seeds failed: 2, 3", "seed 2:\nviolated  calm  with seed 2\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
}

// TestAgainIsTheSameRunOfAMachine: a machine reads its flags in its own time, so the command that shows a run again has all of them.
func TestAgainIsTheSameRunOfAMachine(t *testing.T) {
	f := must.Get(scn.Parse("calm.scn", []byte(calm)))(t)
	for _, c := range []struct {
		flags runFlags
		want  string
	}{
		{runFlags{clock: clockMachine}, "enilab run calm.scn --seed 3 --on netns --in vm"},
		{runFlags{clock: clockLeap, json: true, timeline: true, first: true, out: "/tmp/x", reports: reports{data: "/tmp/y"}},
			"enilab run calm.scn --seed 3 --on netns --in vm --json --timeline --stop-at-first --clock leap --out again --html again.html"},
	} {
		c.flags.inside, c.flags.in.given = "vm", true
		place := must.Get((&cli{}).laboratory(&c.flags, nil))(t)
		r := runner.Result{Case: &runner.Case{File: f, Place: place}, Seed: 3}
		if got := r.Command(); got != c.want {
			t.Errorf("again is\n%s\nexpected\n%s", got, c.want)
		}
	}
}
