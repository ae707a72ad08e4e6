package ipam_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestATrimEndsWhenItsENIIsAttachedAgain: a stranger detaches an ENI while evidence for giving back some of its addresses is gathered. Once it is
// attached again nothing of it is on its way out: EC2 is not asked to take nothing back, and its free addresses can be given.
func TestATrimEndsWhenItsENIIsAttachedAgain(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget, w.set.MinimumIPTarget = 4, 10
	w.start()
	w.live(20 * time.Second)
	w.sevenPods()
	w.set.WarmIPTarget, w.set.MinimumIPTarget = 1, 0
	w.step(ipam.Set{Settings: w.set})
	detached, attached := false, false
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			c, ok := e.(*ipam.Call)
			attached = attached || ok && detached && c.Action == ipam.AttachENI
			if ok && c.Action == ipam.UnassignIPs && len(c.Addresses) == 0 {
				t.Errorf("at %v EC2 is asked to take no address back from %s", w.now, c.ENI)
			}
		}
	}
	begun := w.now
	for w.now < begun+10*time.Minute {
		for i := 0; i < len(w.flight); i++ {
			if l, ok := w.flight[i].(*ipam.Look); ok && l.What == ipam.LookRuntime && !attached && w.now > begun+50*time.Second {
				continue // the evidence does not come
			}
			w.step(w.outcome(w.take(i)))
			i = -1
		}
		for s := range w.saves {
			if len(w.saves[s]) > 0 {
				w.save(ipam.Store(s), len(w.saves[s]))
			}
		}
		if v := w.eni("eni-1"); !detached && w.now > begun+70*time.Second && v.Status == "in-use" {
			detached = true
			w.kernel.Unplug(v.MAC)
			v.stranded()
			w.step(ipam.Seen{What: ipam.LookKernel})
		}
		w.pass(200 * time.Millisecond)
	}
	if !detached || !attached {
		t.Fatalf("the story did not happen: detached %v, attached again %v", detached, attached)
	}
}
