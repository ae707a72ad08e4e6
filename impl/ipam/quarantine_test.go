package ipam_test

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// squat puts free addresses of the node into namespaces of somebody else's, behind links without an alias: squat0, squat1.
func (w *world) squat(n int) (had []netip.Addr) {
	w.t.Helper()
	for _, a := range w.free()[:n] {
		name := "squat" + strconv.Itoa(len(had))
		plan := dataplane.PodPlan(dataplane.PodSpec{Alias: name, HostVeth: name, Netns: w.kernel.NewNamespace(), Address: a, Table: dataplane.MainTable})
		w.apply(plan.Ops...)
		w.kernel.SetLinkAlias(name, "")
		had = append(had, a)
	}
	return had
}

// free are the addresses that the node may give.
func (w *world) free() (out []netip.Addr) {
	for i := range w.enis {
		for _, a := range w.enis[i].Addresses {
			if w.state(a) == ipam.Free {
				out = append(out, a)
			}
		}
	}
	return out
}

// leave ends what squat has made.
func (w *world) leave(i int) {
	name := "squat" + strconv.Itoa(i)
	w.kernel.SetLinkAlias(name, name)
	w.apply(dataplane.Op{Kind: dataplane.DeleteVeth, Alias: name})
}

// squatted is a node that has found addresses in use by nobody whom it knows, and set them aside.
func squatted(t *testing.T, n int) (w *world, had []netip.Addr) {
	w = ready(t, ipam.Sound())
	had = w.squat(n)
	w.start()
	w.live(time.Minute)
	if v := w.seenView(); v.Quarantined != n {
		t.Fatalf("expected %d addresses to be set aside: %+v", n, v)
	}
	return w, had
}

// TestEachQuarantineEndsByItself: that one address is still in use says nothing of the others, whichever comes first.
func TestEachQuarantineEndsByItself(t *testing.T) {
	for gone := range 2 {
		w, had := squatted(t, 2)
		w.leave(gone)
		w.live(5 * time.Minute)
		if w.state(had[gone]) == ipam.Quarantined || w.state(had[1-gone]) != ipam.Quarantined {
			t.Errorf("%v is used no more and is %v, %v is and is %v", had[gone], w.state(had[gone]), had[1-gone], w.state(had[1-gone]))
		}
	}
}

// TestTheEndOfAQuarantineIsOnRecord: a daemon that starts meanwhile goes on with the cool-down. There is no pod whose removal it could resume, also
// where something of the address is left in the kernel.
func TestTheEndOfAQuarantineIsOnRecord(t *testing.T) {
	w, had := squatted(t, 1)
	w.set.CoolDown = 20 * time.Minute
	w.step(ipam.Set{Settings: w.set})
	w.leave(0)
	w.live(5 * time.Minute)
	if r, ok := w.rows[ipam.Key{Address: had[0]}]; w.marks[ipam.QuarantineEnded] != 1 || !ok || r.State != ipam.Cooling {
		t.Fatalf("the quarantine ended %d times, and the record is %+v, %v", w.marks[ipam.QuarantineEnded], r, ok)
	}
	w.kernel.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityToPod, To: netip.PrefixFrom(had[0], 32), Table: dataplane.MainTable})
	w.start()
	w.live(time.Minute)
	if w.state(had[0]) != ipam.Cooling || w.marks[ipam.IntentResumed] != 0 {
		t.Errorf("%v is %v, and %d removals were resumed", had[0], w.state(had[0]), w.marks[ipam.IntentResumed])
	}
	if err := w.node.Sane(); err != nil {
		t.Error(err)
	}
}

// TestAQuarantineOfNobodyEndsWithoutARemoval: the next daemon knows of no pod either, and takes nothing out of the kernel.
func TestAQuarantineOfNobodyEndsWithoutARemoval(t *testing.T) {
	w, had := squatted(t, 1)
	w.start()
	w.live(time.Minute)
	if w.state(had[0]) != ipam.Quarantined {
		t.Fatalf("after a restart %v is %v", had[0], w.state(had[0]))
	}
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if p, ok := e.(*ipam.Apply); ok && p.Lane.Kind == ipam.PodLane {
				t.Errorf("for attachment %q: %v", p.Lane.Att, p.Plan)
			}
		}
	}
	w.leave(0)
	w.live(5 * time.Minute)
	if w.state(had[0]) != ipam.Free {
		t.Errorf("its user has left, and %v is %v", had[0], w.state(had[0]))
	}
}

// TestADDOfAQuarantinedAddressIsAnswered: whoever repeats it hears at once what to do, and does not wait for nothing.
func TestADDOfAQuarantinedAddressIsAnswered(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	for i := range w.enis {
		e := &w.enis[i]
		for k, ip := range e.Addresses {
			if ip == a {
				e.Addresses = append(e.Addresses[:k:k], e.Addresses[k+1:]...)
				break
			}
		}
	}
	w.live(15 * time.Minute)
	if r, ok := w.node.Find(b.att); !ok || r.State != ipam.Quarantined {
		t.Fatalf("EC2 has taken the address away, and the record is %+v, %v", r, ok)
	}
	if r := w.replies[w.add(b)]; r == nil || r.Err == nil || r.Err.Code != ipam.CodeTryAgain {
		t.Errorf("the ADD is answered %+v", r)
	}
}
