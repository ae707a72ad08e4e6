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
