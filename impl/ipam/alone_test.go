package ipam_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
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
	leak := ipam.Row{Intent: &ipam.Intent{Token: "t", Stage: ipam.Tombstoned, ENI: ipam.ENI{ID: "eni-9"}, Doing: ipam.DeleteENI}}
	w.rows[leak.Key()] = leak // of an earlier daemon, which could call EC2
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
	if n := free(); n != 0 || v.Assigned != 1 || !v.Surveyed {
		t.Fatalf("after nine minutes %d addresses are free: %+v", n, v)
	}
	r := w.add(w.pod("c2", "web-2"))
	w.live(time.Minute)
	if reply := w.replies[r]; reply == nil || reply.Err == nil || !strings.Contains(reply.Err.Error(), "ENABLE_IMDS_ONLY_MODE") {
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
	w.live(5 * time.Minute)
	given := e.Addresses
	e.Addresses = slices.DeleteFunc(slices.Clone(given), func(a netip.Addr) bool { return a == addr("10.0.0.99") })
	w.live(time.Minute) // and one look does not show it
	e.Addresses = given
	for i := range had2 {
		b := w.pod("c"+strconv.Itoa(10+i), "api-"+strconv.Itoa(i))
		r := w.add(b)
		w.live(time.Second)
		if reply := w.replies[r]; reply != nil && reply.Err == nil && reply.Address == taken {
			t.Errorf("%v is given away while metadata does not list it", taken)
		}
		w.del(&w.boxes[len(w.boxes)-1])
	}
	w.live(3 * time.Minute)
	if n := free(); n != had2 {
		t.Errorf("by nine minutes of metadata's word %d addresses are free, after %d", n, had2)
	}
	w.live(2 * time.Minute)
	if n := free(); n != had2-1 {
		t.Errorf("metadata has not listed the new one at all looks, and %d addresses are free, after %d", n, had2)
	}
	w.live(6 * time.Minute)
	if n := free(); n != had2 || v.Assigned != 1 || v.Quarantined != 0 {
		t.Errorf("one went, one came, and %d addresses are free, after %d: %+v", n, had2, v)
	}
}
