package ipam_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// An ENI that a third party detached cannot be attached again because its slot is taken. Its pods live, so it must
// stay.
func TestAnENIWithPodsOutlivesALimit(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.live(30 * time.Second)
	w.sevenPods()
	v := w.eni("eni-1")
	v.Status, v.Instance, v.Device, v.Attachment, v.DOT = "available", "", 0, "", false
	w.kernel.Unplug(v.MAC)
	c := w.untilCall(ipam.AttachENI)
	w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Limit, Code: "AttachmentLimitExceeded"}})
	w.live(time.Minute)
	if w.eni("eni-1") == nil {
		t.Fatal("eni-1 was deleted while pods have its addresses; expected it to be attached again later")
	}
}

// A host plan that fails while the node recovers is repeated after a pause.
func TestAFailingHostPlanPauses(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	applies := 0
	for range 500 {
		host := slices.IndexFunc(w.flight, func(e ipam.Effect) bool {
			a, ok := e.(*ipam.Apply)
			return ok && a.Lane.Kind == ipam.HostLane
		})
		switch {
		case host >= 0:
			a := w.take(host).(*ipam.Apply)
			applies++
			w.step(ipam.Applied{ID: a.ID, Err: &dataplane.Error{Text: "nft transaction refused"}})
		case len(w.flight) > 0:
			w.step(w.outcome(w.take(0)))
		case len(w.saves[ipam.RunStore]) > 0:
			w.save(ipam.RunStore, 1)
		}
	}
	if applies != 1 {
		t.Fatalf("%d host plans at one instant, expected 1 and a pause", applies)
	}
	at, ok := w.node.Next()
	if !ok || at <= w.now || at > w.now+2*time.Second {
		t.Fatalf("the next try is at %v (%v), now is %v: expected within two seconds", at, ok, w.now)
	}
}

// An unassignment whose answer was lost may land two minutes later. Its addresses, when EC2 assigns them again, wait until then.
func TestALateUnassignmentTakesNothingInUse(t *testing.T) {
	for _, crash := range []bool{false, true} {
		w := newWorld(t, ipam.Sound())
		w.set.WarmIPTarget, w.set.WarmENITarget = 3, 0
		w.start()
		w.live(30 * time.Second)
		w.set.WarmIPTarget = 1
		w.step(ipam.Set{Settings: w.set})
		c := w.untilCall(ipam.UnassignIPs)
		w.now += 5 * time.Second
		if crash {
			w.start()
		} else {
			w.lose(c, false) // still under way
		}
		w.live(10 * time.Second)
		w.set.WarmIPTarget = 3
		w.step(ipam.Set{Settings: w.set})
		w.live(20 * time.Second)
		w.node.Rows(func(r ipam.Row) {
			if r.State == ipam.Free && slices.Contains(c.Addresses, r.Address) {
				t.Errorf("crash %v: %v is free at %v, and an unassignment may still take it", crash, r.Address, w.now)
			}
		})
		w.live(3 * time.Minute)
		free := 0
		w.node.Rows(func(r ipam.Row) {
			if r.State == ipam.Free {
				free++
			}
		})
		if free < 3 {
			t.Errorf("crash %v: %d addresses are free in the end, expected the 3 of the target", crash, free)
		}
	}
}

// outlivesADrain says whether an ENI stays attached when a daemon starts with the intent of a drain that is over.
func (w *world) outlivesADrain(v *cloudENI) bool {
	stale := ipam.Row{Intent: &ipam.Intent{Token: "enilab-old", Stage: ipam.Draining, Doing: ipam.DetachENI,
		ENI: ipam.ENI{ID: v.ID, MAC: v.MAC, Device: v.Device, Primary: v.Primary, Addresses: v.Addresses, Attachment: v.Attachment, Instance: v.Instance}}}
	w.rows[stale.Key()] = stale
	w.start()
	w.live(10 * time.Minute)
	now := w.eni(v.ID)
	return now != nil && now.Status == "in-use"
}

// A drain's intent whose drop never became durable comes back when pods use the ENI. Evidence is about the rows that EC2 says are on
// the ENI, also when nobody has placed them there yet.
func TestAnOldDrainSparesPods(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmENITarget = 2
	w.start()
	w.live(30 * time.Second)
	w.sevenPods()
	v := w.eni("eni-1")
	var used []netip.Addr
	w.node.Rows(func(r ipam.Row) {
		if r.State == ipam.Assigned && slices.Contains(v.Addresses, r.Address) {
			used = append(used, r.Address)
		}
	})
	if len(used) == 0 {
		t.Fatal("no pod is on eni-1: the test shows nothing")
	}
	if !w.outlivesADrain(v) {
		t.Fatalf("eni-1 was detached under %v", used)
	}
}

// A daemon that ends and waits for what is under way is not woken for looks that it begins no more.
func TestAfterStopThereIsNothingToBeginWith(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.live(10 * time.Second)
	w.step(ipam.Stop{})
	w.now += 5 * time.Minute // every look would be due
	w.step(nil)
	if at, ok := w.node.Next(); ok && at <= w.now {
		t.Fatalf("after Stop, Next is %v and now is %v: expected nothing that is due", at, w.now)
	}
}

// EC2 is asked for nothing before it has said what it has given already: there may be no room for more.
func TestNothingIsAskedForBeforeTheSurvey(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.enis[0].Addresses = w.fresh(5)
	w.start()
	survey := w.held(ipam.LookAttached)
	w.pass(20 * time.Second)
	for _, e := range w.flight {
		if c, ok := e.(*ipam.Call); ok {
			t.Fatalf("%v before EC2 has said what there is", c.Action)
		}
	}
	w.node.Rows(func(r ipam.Row) { t.Errorf("%v is in the books, and metadata alone lists it", r.Address) })
	w.step(survey)
	w.live(10 * time.Second)
	free := 0
	w.node.Rows(func(r ipam.Row) { free++ })
	if free < 5 {
		t.Errorf("%d addresses, EC2 says 5", free)
	}
}

// Metadata lists an address that nobody assigned by this node, and EC2 is asked. Its answer is on its way while it assigns more, and says
// nothing about those.
func TestASurveyOfBeforeTakesNothingBack(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget = 2
	w.start()
	w.live(30 * time.Second)
	w.enis[0].Addresses = append(w.enis[0].Addresses, w.fresh(1)...)
	survey := w.held(ipam.LookAttached)
	w.set.WarmIPTarget = 4
	w.step(ipam.Set{Settings: w.set})
	c := w.untilCall(ipam.AssignIPs)
	w.step(ipam.Called{ID: c.ID, Result: w.call(c)})
	w.step(survey)
	given, known := len(w.eni("eni-0").Addresses), 0
	w.node.Rows(func(r ipam.Row) {
		if r.ENI == "eni-0" && (r.State == ipam.Free || r.State == ipam.Cooling) {
			known++
		}
	})
	if known != given-1 {
		t.Fatalf("EC2 has given %d addresses, one by a stranger, and the node knows %d: the survey took them away", given, known)
	}
	w.live(100 * time.Second) // before what is too much is given back
	if w.node.Rows(func(ipam.Row) { known++ }); known != 2*given-1 {
		t.Errorf("EC2 has given %d addresses, and the node knows %d in the end", given, known-given+1)
	}
}

// held lives until EC2 or metadata is asked something, and returns the answer, which does not arrive.
func (w *world) held(what ipam.What) ipam.Input {
	for range 10_000 {
		switch {
		case len(w.saves[ipam.RunStore]) > 0:
			w.save(ipam.RunStore, 1)
		case len(w.saves[ipam.LibStore]) > 0:
			w.save(ipam.LibStore, 1)
		case len(w.flight) == 0:
			w.pass(time.Second)
		default:
			e := w.take(0)
			in := w.outcome(e)
			if l, ok := e.(*ipam.Look); ok && l.What == what {
				return in
			}
			w.step(in)
		}
	}
	w.t.Fatalf("nobody asked for %v", what)
	return nil
}

// TestDeleteWaitsForTheDetach: an ENI is deleted once EC2 says that it is available, and not before: neither while it is being detached, nor
// while an answer is of before that.
func TestDeleteWaitsForTheDetach(t *testing.T) {
	w := grown(t, ipam.Sound())
	c := w.untilCall(ipam.DetachENI)
	v := w.eni(c.ENI)
	was := v.ENI
	w.step(ipam.Called{ID: c.ID, Result: w.call(c)})
	deletes := 0
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok && c.Action == ipam.DeleteENI {
				deletes++
			}
		}
	}
	for _, x := range []struct {
		status string
		for_   time.Duration
	}{{"in-use", 50 * time.Second}, {"detaching", 30 * time.Minute}} {
		v := w.eni(c.ENI)
		v.ENI, v.Status = was, x.status
		w.live(x.for_)
		if deletes > 0 || w.marks[ipam.CallRefused] > 0 {
			t.Fatalf("EC2 says %s, and was asked %d times to delete the ENI", x.status, deletes)
		}
	}
	v = w.eni(c.ENI)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	w.live(2 * time.Minute)
	if deletes != 1 || w.eni(c.ENI) != nil {
		t.Errorf("%d deletes, the ENI is %+v", deletes, w.eni(c.ENI))
	}
	w.tidy()
}
