package ipam_test

import (
	"slices"
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

// TestAnENIThatStaysHoldsNoOther: of two ENIs that nothing needs the last one goes, and where the runtime claims an
// address of that one, the other.
func TestAnENIThatStaysHoldsNoOther(t *testing.T) {
	for _, claimed := range []bool{false, true} {
		w := newWorld(t, ipam.Sound())
		w.set.WarmENITarget = 3
		w.start()
		w.live(time.Minute)
		last := slices.MaxFunc(w.enis, func(a, b cloudENI) int { return a.Device - b.Device })
		if len(w.enis) != 3 {
			t.Fatalf("expected three ENIs, found %+v", w.enis)
		}
		w.up("c0", "web-0")
		b := w.pod("c1", "web-1")
		b.ready, b.addr = claimed, last.Addresses[0]
		w.set.WarmENITarget = 1 // of 14 free addresses nine may go
		w.step(ipam.Set{Settings: w.set})
		w.live(10 * time.Minute)
		if len(w.enis) != 2 || (w.eni(last.ID) != nil) != claimed {
			t.Errorf("%s is claimed: %t, and these are left: %+v", last.ID, claimed, w.enis)
		}
	}
}

// TestAnENIThatStaysIsLookedAt: a stranger takes an address of an ENI away that would be given back, as a whole or in
// part, and has to be kept, again and again. The address is missed nevertheless: a pod that gets it would reach nobody.
func TestAnENIThatStaysIsLookedAt(t *testing.T) {
	for _, c := range []struct {
		what     string
		full, to func(*ipam.Settings)
	}{
		{"an idle ENI", func(s *ipam.Settings) { s.WarmENITarget = 2 }, func(s *ipam.Settings) { s.WarmENITarget = 0 }},
		{"addresses too many", func(s *ipam.Settings) { s.WarmIPTarget = 9 }, func(s *ipam.Settings) { s.WarmIPTarget = 6 }},
		{"slots of the other kind", func(s *ipam.Settings) { s.WarmENITarget = 2 }, func(s *ipam.Settings) { s.PrefixDelegation = true }},
	} {
		w := newWorld(t, ipam.Sound())
		w.limits.Prefixes = true
		c.full(&w.set)
		w.start()
		w.live(time.Minute)
		e := w.eni("eni-1")
		b := w.pod("c1", "web-1")
		b.ready, b.addr = true, e.Addresses[0]
		w.up("c0", "web-0")
		c.to(&w.set)
		w.step(ipam.Set{Settings: w.set})
		w.live(3 * time.Minute)
		if w.marks[ipam.DrainStopped] == 0 {
			t.Errorf("%s: nothing had to be kept", c.what)
		}
		e = w.eni("eni-1")
		e.Addresses = e.Addresses[:len(e.Addresses)-1]
		w.live(10 * time.Minute)
		var v ipam.View
		w.node.View(&v)
		for _, o := range v.ENIs {
			if e := w.eni(o.ID); o.Total-o.Prefixed != len(e.Addresses) {
				t.Errorf("%s: the books have %d addresses of %s, and EC2 %v", c.what, o.Total-o.Prefixed, e.ID, e.Addresses)
			}
		}
	}
}
