package runner

import (
	"fmt"
	"strings"
	"testing"
)

func TestParseSeeds(t *testing.T) {
	for text, want := range map[string]Seeds{"1-200": {1, 200}, "7": {7, 7}, "7-7": {7, 7}, "0-0": {}, "5-100004": {5, 100_004}} {
		if got, err := ParseSeeds(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-", "1-", "-1", "2-1", "a-b", "1-2-3", " 1-2", "0x1-2", "1.5", "1-100001", "0-18446744073709551615", "18446744073709551616"} {
		if got, err := ParseSeeds(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// sweep runs a text with some seeds, several at once.
func sweep(t *testing.T, o SweepOptions, texts ...string) []*Sweep {
	t.Helper()
	var cases []*Case
	for _, text := range texts {
		cases = append(cases, load(t, text))
	}
	o.AtOnce = 4
	return SweepAll(cases, o)
}

// TestSweep: every seed is run once, each file is told once and in order, and the first failing seed is the smallest one.
func TestSweep(t *testing.T) {
	broken := strings.Replace(quiet, "assigned == 14", "assigned == 4", 1)
	var told []string
	var ran SweepProgress
	out := sweep(t, SweepOptions{Seeds: Seeds{3, 8}, Swept: func(p SweepProgress) { ran = p }, Done: func(s *Sweep) { told = append(told, s.Report()) }}, quiet, broken)
	if out[0].Status != Held || out[0].Ran != 6 || out[0].First != nil || len(out[0].Failed) != 0 || out[0].Events == 0 {
		t.Errorf("got %+v", out[0])
	}
	if out[1].Status != Violated || fmt.Sprint(out[1].Failed) != "[3 4 5 6 7 8]" || out[1].First == nil || !strings.Contains(out[1].First.Command, "--seed 3") {
		t.Errorf("got %+v", out[1])
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "held  test  6 seeds, 1 variant, 0 mutants, ") || strings.Count(told[0], "\n") != 1 ||
		!strings.Contains(told[1], "; 6 seeds failed: 3, 4, 5, 6, 7, 8\nseed 3:\nviolated  test  line 7, ") || !strings.Contains(told[1], "again: enilab run dir/test.scn --seed 3\n") {
		t.Errorf("told %q", told)
	}
	if ran.Done != 12 || ran.Total != 12 || ran.Failed != 6 {
		t.Errorf("progress %+v", ran)
	}
}

// TestSweepOfMaybes: a line that may miss strikes under some seed, or there are too few seeds to say that it never does.
func TestSweepOfMaybes(t *testing.T) {
	never := quiet + "maybe at 2m kube scale web 14\nmaybe at 2m node-1 flush-nat\n"
	for _, c := range []struct {
		last uint64
		want Status
	}{{enoughSeeds - 1, Held}, {enoughSeeds, NotPlayed}} {
		out := sweep(t, SweepOptions{Seeds: Seeds{1, c.last}}, never)[0]
		if out.Status != c.want || len(out.Never()) != 1 || !strings.Contains(out.Report(), "; line 9, which may miss, struck under none of them") {
			t.Errorf("%d seeds: %v, want %v: %s", c.last, out.Status, c.want, out.Report())
		}
	}
}

// TestSweepIsTheRuns: side by side, every seed does what it does alone.
func TestSweepIsTheRuns(t *testing.T) {
	var events uint64
	for seed := uint64(1); seed <= 4; seed++ {
		events += run(t, quiet, Options{Seed: seed}).Events
	}
	if out := sweep(t, SweepOptions{Seeds: Seeds{1, 4}}, quiet); out[0].Events != events {
		t.Errorf("%d events, and alone %d", out[0].Events, events)
	}
}

// TestSweepInterrupted: what was cut is not told as a failure, and what was never begun not at all.
func TestSweepInterrupted(t *testing.T) {
	asked, told := 0, 0
	o := SweepOptions{Seeds: Seeds{1, 50}, Options: Options{Interrupted: func() bool { asked++; return asked > 300 }}, Done: func(*Sweep) { told++ }}
	out := sweep(t, o, quiet, quiet)
	if out[0].Status != Interrupted || out[0].Ran == 0 || out[0].Ran >= 50 || len(out[0].Failed) != 0 || !strings.Contains(out[0].Report(), " of 50 seeds, ") {
		t.Errorf("got %+v", out[0])
	}
	if out[1].Status != Interrupted || told != 1 {
		t.Errorf("%v, and %d files told", out[1].Status, told)
	}
}
