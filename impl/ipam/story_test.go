package ipam_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// grown is a node with a second ENI that is too much from now on.
func grown(t testing.TB, p *ipam.Policy) *world {
	w := newWorld(t, p)
	w.set.WarmENITarget = 2
	w.start()
	w.live(30 * time.Second)
	if v := w.eni("eni-1"); v == nil || len(v.Addresses) != 5 {
		t.Fatalf("the second ENI is %+v", v)
	}
	w.set.WarmENITarget = 1
	w.step(ipam.Set{Settings: w.set})
	return w
}

func TestDrain(t *testing.T) {
	w := grown(t, ipam.Sound())
	w.live(50 * time.Second)
	if w.eni("eni-1") == nil {
		t.Error("it was given back before it was too much for a minute")
	}
	w.live(time.Minute)
	if v := w.eni("eni-1"); v != nil {
		t.Errorf("the ENI is still there: %+v", v)
	}
	w.tidy()
}

// TestDrainStoppedByAUse: there is too much even without the ENI that is drained, and the runtime says that a sandbox has one
// of its addresses. It is asked again, once a minute, and not as fast as it answers.
func TestDrainStoppedByAUse(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmENITarget = 3
	w.enis[0].Addresses = w.fresh(10)
	w.start()
	w.live(30 * time.Second)
	w.set.WarmENITarget = 1
	w.step(ipam.Set{Settings: w.set})
	b := w.pod("c1", "web-1")
	b.ready, b.addr = true, w.eni("eni-1").Addresses[2]
	w.live(5*time.Minute + 30*time.Second)
	if got := w.marks[ipam.DrainStopped]; got < 2 || got > 6 {
		t.Errorf("the drain was stopped %d times in five minutes", got)
	}
	if w.eni("eni-1") == nil {
		t.Fatal("the ENI was given back")
	}
	w.boxes = nil
	w.live(5 * time.Minute)
	if v := w.eni("eni-1"); v != nil {
		t.Errorf("the use has ended, and the ENI is still there: %+v", v)
	}
}
