package ipam_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// TestDELDuringTheEndOfACoolDown: something of the pod is left at the end of its address's cool-down and is taken away; a DEL that comes meanwhile is
// answered when that is done.
func TestDELDuringTheEndOfACoolDown(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.down(b)
	w.live(29 * time.Second)
	w.kernel.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityToPod, To: prefix(a), Table: dataplane.MainTable})
	removes := func(e ipam.Effect) bool {
		p, ok := e.(*ipam.Apply)
		return ok && p.Lane.Kind == ipam.PodLane && p.Lane.Att == b.att
	}
	p := w.until("the rest of the pod to be taken away", removes)
	if w.marks[ipam.ResidueRemoved] == 0 {
		t.Fatalf("no residue was seen, and the pod's lane does %+v", p)
	}
	r := w.del(b)
	for range 10 {
		w.pass(0)
	}
	if w.replies[r] != nil {
		t.Errorf("the DEL is answered by %+v while the pod's rules are taken away", w.replies[r])
	}
	w.step(w.outcome(p))
	w.calm()
	w.answered(r)
}

// TestGoneWhileItCools: EC2 takes back an address that cools. What was released may be named again by a stale view, so its record stays until the
// cool-down's end.
func TestGoneWhileItCools(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.set.CoolDown = 20 * time.Minute
	w.step(ipam.Set{Settings: w.set})
	b, a := w.up("c1", "web-1")
	w.down(b)
	b.ready = false
	for i := range w.enis {
		e := &w.enis[i]
		e.Addresses = slices.DeleteFunc(e.Addresses, func(ip netip.Addr) bool { return ip == a })
	}
	w.live(5 * time.Minute)
	if r, ok := w.rows[ipam.Key{Address: a}]; !ok || r.State != ipam.Cooling || r.ENI != "" {
		t.Errorf("the record of %v, which EC2 took back while it cooled, is %+v, %v", a, r, ok)
	}
	w.live(20 * time.Minute)
	if r, ok := w.rows[ipam.Key{Address: a}]; ok && r.State != ipam.Departed {
		t.Errorf("it has cooled down, and its record is %+v", r)
	}
}

// TestCreatedWithoutACIDR: EC2's answer does not name the subnet's CIDR (the API's does not), and the ENI's routes lead to it all the same.
func TestCreatedWithoutACIDR(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.MinimumIPTarget, w.set.WarmIPTarget = 8, 1
	w.start()
	c := w.untilCall(ipam.CreateENI)
	made := w.call(c)
	made.ENI.CIDR = netip.Prefix{}
	w.step(ipam.Called{ID: c.ID, Result: made})
	p := w.until("a plan for the ENI", func(e ipam.Effect) bool {
		p, ok := e.(*ipam.Apply)
		return ok && p.Lane.Kind == ipam.ENILane
	}).(*ipam.Apply)
	subnet := netip.MustParsePrefix("10.0.0.0/24")
	if !slices.ContainsFunc(p.Plan.Ops, func(op dataplane.Op) bool { return op.Kind == dataplane.ENIAddress && op.Dst == subnet }) {
		t.Errorf("no operation knows the subnet: %+v", p.Plan.Ops)
	}
}

// TestClaimedInQuarantine: a living veth that nobody recorded has an address, and the runtime's next list says whose it is.
func TestClaimedInQuarantine(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.down(b)
	w.boxes = nil
	w.stranger(a)
	w.live(5 * time.Minute)
	if w.seenView().Quarantined != 1 {
		t.Fatalf("the address of an unknown veth is not set aside: %+v", w.seenView())
	}
	other := w.pod("c2", "web-2")
	other.ready, other.addr = true, a
	w.live(5 * time.Minute)
	if r, ok := w.node.Find(other.att); !ok || r.State != ipam.Assigned || r.Address != a || r.Pod != other.pod {
		t.Errorf("the runtime claims %v for %v, and the record is %+v, %v", a, other.att, r, ok)
	}
	if w.marks[ipam.RecoveredRuntime] != 1 {
		t.Errorf("it is told %d times", w.marks[ipam.RecoveredRuntime])
	}
}
