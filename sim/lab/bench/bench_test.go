package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/lab"
)

// TestMain is also what a node executes.
func TestMain(m *testing.M) {
	role()
	os.Exit(m.Run())
}

func TestNearestRank(t *testing.T) {
	var s series
	for i := 100; i > 0; i-- {
		s = append(s, time.Duration(i))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.1: 10, 0.5: 50, 0.99: 99, 1: 100} {
		if got := s.at(share); got != want {
			t.Errorf("the time of %v of 1 to 100: %d, expected %d", share, got, want)
		}
	}
	if got := (series{7}).p99(); got != 7 {
		t.Errorf("p99 of one run of 7: %d", got)
	}
	if got := series(nil).p50(); got != 0 {
		t.Errorf("p50 of no run: %d", got)
	}
}

func TestTable(t *testing.T) {
	r := &report{machine: "Machine: a test.", failed: []string{"one thing"}}
	r.add(row{what: "ADD", asked: "p50 5 ms", ours: series{4 * time.Millisecond}, ptp: series{8 * time.Millisecond}, upstream: "20"})
	r.add(row{what: "memory", asked: "25 MB", memory: [2]int{20000, 10000}, upstream: "58 MB"})
	r.add(row{what: "burst", counted: true, failed: 3})
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"ADD     p50 5 ms          1     4.0  4.0      4.0          [20]                   8.0      8.0      0.50           0.50",
		"20.5 MB  (10.2 anon)", "burst: 3 failed", "failed: one thing"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("expected %q in\n%s", want, out.String())
		}
	}
}

// TestMeasure: everything that is measured can be, and nothing fails but by being slow.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs and runs them for some seconds")
	}
	if err := lab.Available(); err != nil {
		t.Skip(err)
	}
	b, err := build(t.Context(), binaries{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.remove()
	r := &report{side: io.Discard}
	if err := measure(t.Context(), b, few, r, false); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.failed {
		t.Error(f)
	}
	for _, x := range r.rows {
		if len(x.ours) == 0 && x.memory[0] == 0 {
			t.Errorf("%s: nothing was measured", x.what)
		}
	}
}
