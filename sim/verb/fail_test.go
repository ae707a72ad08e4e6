package verb

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/draw"
)

// TestTheAttachLimitIsDrawnOnce: what EC2 says with it is believed for longer each time, and pods are owed an answer.
func TestTheAttachLimitIsDrawnOnce(t *testing.T) {
	some := 0
	for seed := range uint64(50) {
		p := &draw.Plan{Source: draw.NewSource(seed)}
		for range 200 {
			drawFail(p, time.Minute)
		}
		drawn := 0
		for _, l := range p.Lines {
			if strings.Contains(l.Text, attachLimit) {
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
