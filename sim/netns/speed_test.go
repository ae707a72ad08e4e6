package netns

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What the machine did late excuses a failure, and what the laboratory chose to wait for does not.
func TestTooSlow(t *testing.T) {
	t.Logf("this machine is %.2f times slower than the reference", measureSlowness())
	w := newLoop(t.Context(), 0)
	w.clock.offset += 2 * time.Hour // long under way
	now := w.now()
	w.acted(now - lagSlack/2)
	if w.late.most > lagSlack {
		t.Errorf("half the slack is %v late", w.late.most)
	}
	w.late.rested = now
	w.acted(now - time.Hour)
	if w.late.most > lagSlack {
		t.Errorf("what fell due while a ping was waited for is %v late", w.late.most)
	}
	w.late.rested = 0
	w.acted(now - 3*time.Second)
	err := w.TooSlow()
	if err == nil {
		t.Fatal("three seconds late is in time")
	}
	if _, ok := errors.AsType[interface {
		error
		TooSlow()
	}](err); !ok || !strings.HasPrefix(err.Error(), "this machine did not keep up: ") {
		t.Errorf("it cannot be told from another error: %v", err)
	}
}

// Bounds grow with the slowness, never shrink, and have an end.
func TestSlowed(t *testing.T) {
	if s := slowness(); s < 1 || s > worstSlowness || slowed(time.Second) != time.Duration(s*float64(time.Second)) {
		t.Errorf("slowness %v: a second is %v", s, slowed(time.Second))
	}
}

// A probe is waited for no longer than daemons' requests can wait behind it, however slow the machine, and never shorter than it has to be.
func TestProbed(t *testing.T) {
	for _, d := range []time.Duration{pingPatience, doubtPatience, time.Minute} {
		if got := probed(d); got < d || got > max(d, probeLimit) || got > slowed(d) {
			t.Errorf("a probe of %v is waited for for %v", d, got)
		}
	}
	if n := 10 * time.Second / probed(doubtPatience); n < 3 {
		t.Errorf("in a daemon's ten seconds for a runtime's list there is time for %d probes, expected three", n)
	}
}
