package ipam_test

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// reasons are what the node says of itself.
func (w *world) reasons() string {
	var v ipam.View
	w.node.View(&v)
	return strings.Join(v.Reasons, "; ")
}

// A pod that another CNI made has a permanent neighbour entry with the MAC of its host veth. Once the link has our alias nobody can tell
// it from one of ours, so the MAC is durable before that: a later life that gave the link its canonical MAC would cut the pod off.
func TestATakenOverLinkKeepsItsMAC(t *testing.T) {
	const theirs = "0a:11:22:33:44:55"
	for _, again := range []int{1, 3} {
		w := ready(t, ipam.Sound())
		b, a := w.up("c1", "web-1")
		veth := ""
		for _, l := range w.kernel.Observe().Links {
			if l.Veth {
				veth = l.Name
			}
		}
		w.kernel.SetLinkMAC(veth, theirs)
		w.kernel.SetLinkAlias(veth, "")
		for k, r := range w.rows { // as another CNI's record is read
			if r.Att == b.att {
				r.Netns, r.Veth, r.MAC, r.ENI = 0, "", "", ""
				w.rows[k] = r
			}
		}
		for range again {
			w.start()
			w.live(3 * time.Minute)
		}
		for _, l := range w.kernel.Observe().Links {
			if l.Veth && (l.MAC != theirs || l.Alias == "") {
				t.Errorf("after %d starts the link of %v is %+v, expected our alias and MAC %s", again, a, l, theirs)
			}
		}
	}
}

// The record's time of allocation is when it was made: another CNI's daemon and the next life read it.
func TestARecordSaysWhenItWasAllocated(t *testing.T) {
	w := ready(t, ipam.Sound())
	before := w.now
	b, _ := w.up("c1", "web-1")
	for _, r := range w.rows {
		if r.Att == b.att && (r.Allocated > w.now || r.Allocated < before) {
			t.Errorf("allocated at %v, now is %v", r.Allocated, w.now)
		}
	}
}

// EC2 that does not answer is a reason, and ends as one.
func TestALostCallIsAReason(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	c := w.until("a call", func(e ipam.Effect) bool { _, ok := e.(*ipam.Call); return ok }).(*ipam.Call)
	w.lose(c, false)
	if why := w.reasons(); !strings.Contains(why, "EC2 has not answered "+c.Action.String()) {
		t.Errorf("reasons: %q", why)
	}
	w.live(5 * time.Minute)
	if why := w.reasons(); why != "" {
		t.Errorf("afterwards: %q", why)
	}
}

// A node that may not list its ENIs makes none, and says why.
func TestASurveyThatFailsIsAReason(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	l := w.untilLook(ipam.LookAttached)
	w.step(ipam.Seen{ID: l.ID, What: l.What, Err: "DescribeNetworkInterfaces: UnauthorizedOperation"})
	if why := w.reasons(); !strings.Contains(why, "EC2") || !strings.Contains(why, "UnauthorizedOperation") {
		t.Errorf("reasons: %q", why)
	}
	w.live(time.Minute)
	if why := w.reasons(); why != "" {
		t.Errorf("afterwards: %q", why)
	}
}

// The two stores are on different file systems: a save of one says nothing about the other.
func TestAStoreThatFailsStaysAReason(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.up("c1", "web-1")
	w.step(ipam.Saved{Store: ipam.RunStore, Err: "ipam.json: read-only file system"})
	w.step(ipam.Saved{Store: ipam.LibStore})
	if why := w.reasons(); !strings.Contains(why, "read-only") {
		t.Errorf("reasons: %q", why)
	}
	w.step(ipam.Saved{Store: ipam.RunStore})
	if why := w.reasons(); why != "" {
		t.Errorf("afterwards: %q", why)
	}
}
