package judge

import (
	"testing"
	"time"
)

// TestMustKnow: a daemon must know an ENIConfig once it has had two minutes with the API server, whenever that was away.
func TestMustKnow(t *testing.T) {
	c := Custom{Since: 2 * time.Minute, Away: []Span{{7 * time.Minute, 12 * time.Minute}, {14 * time.Minute, 24 * time.Minute}}}
	for at, want := range map[time.Duration]bool{
		3*time.Minute + 59*time.Second:  false, // changed a moment ago
		5 * time.Minute:                 true,
		7 * time.Minute:                 false,
		11*time.Minute + 30*time.Second: false, // away, and another time later
		13 * time.Minute:                false, // back a moment ago
		25 * time.Minute:                false,
		26 * time.Minute:                true,
	} {
		if got := c.mustKnow(at); got != want {
			t.Errorf("at %v: %v, expected %v", at, got, want)
		}
	}
}
