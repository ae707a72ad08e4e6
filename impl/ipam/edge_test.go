package ipam_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
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

// lostWhileItCools is a node one of whose addresses EC2 took back while it cooled.
func lostWhileItCools(t *testing.T, coolDown time.Duration) (*world, netip.Addr) {
	w := ready(t, ipam.Sound())
	w.set.CoolDown = coolDown
	w.step(ipam.Set{Settings: w.set})
	b, a := w.up("c1", "web-1")
	w.down(b)
	b.ready = false
	for i := range w.enis {
		e := &w.enis[i]
		e.Addresses = slices.DeleteFunc(e.Addresses, func(ip netip.Addr) bool { return ip == a })
	}
	return w, a
}

// TestGoneWhileItCools: EC2 takes back an address that cools. What was released may be named again by a stale view, so its record stays until the
// cool-down's end.
func TestGoneWhileItCools(t *testing.T) {
	w, a := lostWhileItCools(t, 20*time.Minute)
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
	w, a := quarantined(t)
	w.boxes = nil
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

// TestAQuarantinedPodsENIGoes: its row stays until somebody ends the attachment, or its next ADD would give it a second address.
func TestAQuarantinedPodsENIGoes(t *testing.T) {
	for _, what := range []string{"the ENI is deleted", "the address is unassigned"} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, ipam.Sound())
			w.start()
			w.live(10 * time.Second)
			w.sevenPods()
			v := w.eni("eni-1")
			i := slices.IndexFunc(w.boxes, func(b box) bool { return slices.Contains(v.Addresses, b.addr) })
			if i < 0 {
				t.Fatalf("no pod is on %+v", v)
			}
			b := w.boxes[i]
			row := w.rows[ipam.Key{Address: b.addr}]
			row.State = ipam.Quarantined
			w.rows[row.Key()] = row // an earlier daemon set it aside
			w.start()
			w.live(10 * time.Second)
			if w.seenView().Quarantined != 1 {
				t.Fatalf("the row is not set aside: %+v", w.seenView())
			}
			if what == "the ENI is deleted" {
				w.kernel.Unplug(v.MAC)
				w.enis = slices.DeleteFunc(w.enis, func(e cloudENI) bool { return e.ID == v.ID })
			} else {
				v.Addresses = slices.DeleteFunc(v.Addresses, func(a netip.Addr) bool { return a == b.addr })
			}
			w.live(5 * time.Minute)
			if r, ok := w.node.Find(b.att); !ok || r.State != ipam.Quarantined || r.Address != b.addr {
				t.Errorf("the pod lives, and its row is %+v, %v", r, ok)
			}
		})
	}
}

// TestTwoSandboxesOfOnePodAtOnce: their plans are about one link name. The newer's waits until the older's is done, and then knows whose the name is.
func TestTwoSandboxesOfOnePodAtOnce(t *testing.T) {
	for _, made := range []bool{true, false} {
		t.Run("the older is made: "+strconv.FormatBool(made), func(t *testing.T) {
			w := ready(t, ipam.Sound())
			w.up("c0", "web-1")
			plan := func(id string) (ipam.Req, func(ipam.Effect) bool) {
				b := *w.pod(id, "web-1")
				return w.add(&b), func(e ipam.Effect) bool {
					p, ok := e.(*ipam.Apply)
					return ok && p.Lane.Kind == ipam.PodLane && p.Lane.Att == b.att && p.Plan.Ops[len(p.Plan.Ops)-1].Kind == dataplane.EnsureRule
				}
			}
			older, isOlder := plan("c1")
			newer, isNewer := plan("c2")
			tooEarly := false
			w.tap = func(_ ipam.Input, effs []ipam.Effect) { tooEarly = tooEarly || slices.ContainsFunc(effs, isNewer) }
			p := w.until("the older's plan", isOlder)
			for len(w.saves[ipam.RunStore]) > 0 {
				w.save(ipam.RunStore, 1)
			}
			if w.tap = nil; tooEarly {
				t.Fatal("two plans about one link name are under way")
			}
			if made {
				w.step(w.outcome(p))
			} else {
				a := p.(*ipam.Apply)
				done, _ := w.kernel.Apply(a.Plan, 0, 1)
				w.step(ipam.Applied{ID: a.ID, Done: done, Err: &dataplane.Error{Kind: dataplane.NoNamespace, Op: done}})
			}
			w.step(w.outcome(w.until("the newer's plan", isNewer)))
			w.calm()
			if r := w.replies[newer]; r == nil || r.Err != nil {
				t.Errorf("the newer ADD was told %+v", r)
			}
			if r := w.replies[older]; r == nil || (r.Err == nil) != made {
				t.Errorf("the older ADD was told %+v", r)
			}
			for _, l := range w.kernel.Observe().Links {
				if l.Name == dataplane.HostVethName(w.set.VethPrefix, "default", "web-1") && !strings.Contains(l.Alias, " c2 ") {
					t.Errorf("the pod's name is that of %s, expected the newest's", l.Alias)
				}
				if r, ok := w.node.Find(att(strings.Fields(l.Alias + " - - -")[2])); ok && r.Veth != l.Name {
					t.Errorf("%s is called %s, and its row says %s", l.Alias, l.Name, r.Veth)
				}
			}
		})
	}
}

// TestDELOfWhomTheRecordNames: the kernel shows that another sandbox has the address. Whom the record named is answered when that is durable, or a
// daemon that dies would find the address assigned to who was told that it is gone.
func TestDELOfWhomTheRecordNames(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	row := w.rows[ipam.Key{Address: a}]
	row.Att = att("c0")
	w.rows[row.Key()] = row
	old := *b
	old.att = row.Att
	w.start()
	del := w.del(&old)
	w.live(time.Second) // the effect contract is judged
	w.answered(del)
	if r, ok := w.node.Find(b.att); !ok || r.Address != a || w.rows[row.Key()].Att != b.att {
		t.Errorf("the address is recorded as %+v, expected %v's", w.rows[row.Key()], b.att)
	}
}
