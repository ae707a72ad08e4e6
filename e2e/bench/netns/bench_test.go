package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/sim/netns"
)

// TestMain is also what a node executes.
func TestMain(m *testing.M) {
	role()
	os.Exit(m.Run())
}

func TestTable(t *testing.T) {
	r := &report{machine: "Machine: a test.", failed: []string{"one thing"}}
	r.add(row{what: "ADD", asked: "p50 5 ms", ours: percentiles.Times{4 * time.Millisecond}, ptp: percentiles.Times{8 * time.Millisecond}, upstream: "20"})
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

// TestBeside: what two builds took, by the name of what was measured, also over several turns.
func TestBeside(t *testing.T) {
	turn := func(add time.Duration, memory int) *report {
		r := &report{}
		r.add(row{what: "ADD", ours: percentiles.Times{add}})
		r.add(row{what: "memory", memory: [2]int{memory, memory}})
		r.add(row{what: "burst", counted: true, failed: 1})
		return r
	}
	c := &comparison{commit: "v1"}
	c.base.merge(turn(4*time.Millisecond, 10000))
	c.base.merge(turn(4*time.Millisecond, 20000))
	c.now.merge(turn(2*time.Millisecond, 10000))
	var out bytes.Buffer
	c.print(&out)
	for _, want := range []string{"ADD 4.0 4.0 4.0 2.0 2.0 2.0 0.50", "memory 20.5 MB 10.2 MB 0.50", "burst 2 failed 0.0 1 failed"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("expected %q in\n%s", want, out.String())
		}
	}
}

// TestMeasure: everything that is measured can be, and nothing fails but by being slow.
func TestMeasure(t *testing.T) {
	if testing.Short() {
		t.Skip("builds four programs and runs them for some seconds")
	}
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
	b := must.Get(build(t.Context(), binaries{}))(t)
	defer b.remove()
	r := &report{side: io.Discard}
	must.Do(t, measure(t.Context(), b, few, r, false))
	for _, f := range r.failed {
		t.Error(f)
	}
	for _, x := range r.rows {
		if len(x.ours) == 0 && x.memory[0] == 0 {
			t.Errorf("%s: nothing was measured", x.what)
		}
	}
}
