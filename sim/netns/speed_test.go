package netns

import (
	"testing"
	"time"
)

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
