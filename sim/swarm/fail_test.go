package swarm

import (
	"strings"
	"testing"
	"time"
)

// TestTheAttachLimitIsDrawnOnce: what EC2 says with it is believed for longer each time, and pods are owed an answer.
func TestTheAttachLimitIsDrawnOnce(t *testing.T) {
	some := 0
	for seed := range uint64(50) {
		p := &plan{source: newSource(seed)}
		for range 200 {
			p.fail(time.Minute)
		}
		drawn := 0
		for _, l := range p.lines {
			if strings.Contains(l.text, attachLimit) {
				drawn++
			}
		}
		if some += drawn; drawn > 1 {
			t.Errorf("seed %d: it is drawn %d times", seed, drawn)
		}
	}
	if some == 0 {
		t.Error("it is never drawn")
	}
}
