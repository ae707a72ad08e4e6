package ipam_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// untilWalk is the next Apply that has flows forgotten; it is not answered.
func (w *world) untilWalk() *ipam.Apply {
	w.t.Helper()
	return w.until("a walk of conntrack", func(e ipam.Effect) bool {
		a, ok := e.(*ipam.Apply)
		return ok && a.Lane.Kind == ipam.FlowLane
	}).(*ipam.Apply)
}

// walksFor says whether the flows of a pod's address are among those that are forgotten.
func walksFor(a *ipam.Apply, b *box) bool {
	return slices.Contains(a.Plan.Ops, dataplane.Op{Kind: dataplane.FlushConntrack, Addr: b.addr})
}

func (w *world) cooling() (n int) {
	w.node.Rows(func(r ipam.Row) {
		if r.State == ipam.Cooling && r.Att != (ipam.Attachment{}) {
			n++
		}
	})
	return n
}

// A DEL waits for no walk of conntrack, one walk is for all whose addresses cool, and none of them leaves that state before.
func TestFlowsAreForgottenTogether(t *testing.T) {
	for _, coolDown := range []time.Duration{30 * time.Second, 0} {
		w := ready(t, ipam.Sound())
		w.set.CoolDown = coolDown
		w.step(ipam.Set{Settings: w.set})
		w.calm()
		first, _ := w.up("c1", "web-1")
		second, _ := w.up("c2", "web-2")
		if coolDown == 0 { // the first address gets a walk at once, and the others the next
			w.del(first)
			alone := w.untilWalk()
			first, _ = w.up("c3", "web-3")
			w.deleted(first, second)
			w.step(w.outcome(alone))
		} else {
			w.deleted(first, second)
		}
		walk := w.untilWalk()
		if !walksFor(walk, first) || !walksFor(walk, second) {
			t.Errorf("cool-down %v: the walk is %v, expected one for %v and %v", coolDown, walk.Plan, first.addr, second.addr)
		}
		w.live(2 * time.Minute)
		if n := w.cooling(); n != 2 {
			t.Errorf("cool-down %v: %d addresses cool while conntrack does not answer, expected 2", coolDown, n)
		}
		w.step(ipam.Applied{ID: walk.ID, Err: &dataplane.Error{Text: "flush-conntrack: out of memory"}})
		if why := w.reasons(); !strings.Contains(why, " addresses, and they are withheld") || !strings.Contains(why, "out of memory") || w.marks[ipam.FlowsKept] != 1 {
			t.Errorf("cool-down %v: the walk failed, reasons: %q, marks %v", coolDown, why, w.marks)
		}
		walk = w.untilWalk()
		if n := w.cooling(); n != 2 {
			t.Errorf("cool-down %v: %d addresses cool after a walk that failed, expected 2", coolDown, n)
		}
		w.step(w.outcome(walk))
		w.live(2 * time.Second)
		if n := w.cooling(); n != 0 || w.reasons() != "" {
			t.Errorf("cool-down %v: %d addresses still cool after a walk, reasons %q", coolDown, n, w.reasons())
		}
	}
}

// deleted deletes pods, whose DELs have to be answered although no walk is.
func (w *world) deleted(pods ...*box) {
	w.t.Helper()
	for _, b := range pods {
		r := w.del(b)
		w.calmBut(ipam.FlowLane)
		if a := w.replies[r]; a == nil || a.Err != nil {
			w.t.Errorf("the DEL of %v: %+v, expected success", b.att, a)
		}
	}
}

// calmBut is calm, without the plans of one kind of lane.
func (w *world) calmBut(lane ipam.LaneKind) {
	var held []ipam.Effect
	for len(w.flight)+len(w.saves[0])+len(w.saves[1]) > 0 {
		if i := slices.IndexFunc(w.flight, func(e ipam.Effect) bool { a, ok := e.(*ipam.Apply); return ok && a.Lane.Kind == lane }); i >= 0 {
			held = append(held, w.take(i))
			continue
		}
		w.answer()
	}
	w.flight = held
}

// A daemon believes no earlier one that flows are forgotten: what that had wanted may not have happened.
func TestFlowsAreForgottenAnew(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	w.del(b)
	w.step(w.outcome(w.untilWalk()))
	w.start()
	if a := w.untilWalk(); !walksFor(a, b) {
		t.Errorf("the new daemon walks for %v, expected %v", a.Plan, b.addr)
	}
	w.live(time.Minute)
	if n := w.cooling(); n != 1 {
		t.Errorf("%d addresses cool, expected the one whose walk has not ended", n)
	}
}
