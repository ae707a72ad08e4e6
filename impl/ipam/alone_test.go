package ipam_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestEC2IsNotAsked: with ENABLE_IMDS_ONLY_MODE nothing is asked of EC2, whatever happens: addresses come and go by metadata's word, once it has stood
// for ten minutes.
func TestEC2IsNotAsked(t *testing.T) {
	w := ready(t, ipam.Sound())
	_, had := w.up("c1", "web-1")
	clear(w.rows)
	w.set.IMDSOnly = true
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e := e.(type) {
			case *ipam.Call:
				t.Errorf("at %v EC2 is called: %+v", w.now, e)
			case *ipam.Look:
				if e.What == ipam.LookENI || e.What == ipam.LookAttached || e.What == ipam.LookLeaked {
					t.Errorf("at %v EC2 is asked: %+v", w.now, e)
				}
			}
		}
	}
	v := ipam.View{}
	free := func() int { w.node.View(&v); return v.Free }
	w.start()
	w.live(9 * time.Minute)
	if n := free(); n != 0 || v.Assigned != 1 {
		t.Fatalf("after nine minutes %d addresses are free: %+v", n, v)
	}
	r := w.add(w.pod("c2", "web-2"))
	w.live(time.Minute)
	if reply := w.replies[r]; reply == nil || reply.Err == nil {
		t.Errorf("ADD while none is known is answered by %+v", reply)
	}
	w.live(3 * time.Minute)
	had2 := free()
	if had2 < 4 {
		t.Fatalf("after thirteen minutes %d addresses are free: %+v", had2, v)
	}

	// A stranger takes one away, and gives another.
	e := &w.enis[0]
	taken := e.Addresses[len(e.Addresses)-1]
	if taken == had {
		taken = e.Addresses[0]
	}
	for i := range e.Addresses {
		if e.Addresses[i] == taken {
			e.Addresses[i] = addr("10.0.0.99")
		}
	}
	w.live(9 * time.Minute)
	if n := free(); n != had2 {
		t.Errorf("by nine minutes of metadata's word %d addresses are free, after %d", n, had2)
	}
	w.live(4 * time.Minute)
	if n := free(); n != had2 || v.Assigned != 1 || v.Quarantined != 0 {
		t.Errorf("one went, one came, and %d addresses are free, after %d: %+v", n, had2, v)
	}
}
