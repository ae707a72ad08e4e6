package ipam

import (
	"net/netip"
	"testing"
)

func newLedger() *ledger { return &ledger{life: &life{}} }

// TestPutAfterDrop: in one step a row goes and comes again; a Save that says both would lose it, for what is dropped
// is dropped last.
func TestPutAfterDrop(t *testing.T) {
	l := newLedger()
	r := Row{Address: netip.MustParseAddr("10.0.0.1"), State: Cooling}
	l.dropRow(RunStore, r.Key())
	l.putRow(RunStore, r)
	if len(l.drop[RunStore]) != 0 || len(l.put[RunStore]) != 1 {
		t.Errorf("put %v, drop %v", l.put[RunStore], l.drop[RunStore])
	}
	l.dropRow(RunStore, r.Key())
	if len(l.drop[RunStore]) != 1 || len(l.put[RunStore]) != 0 {
		t.Errorf("put %v, drop %v", l.put[RunStore], l.drop[RunStore])
	}
}

// TestOneSaveAStepAndStore: what a step says of a store is one Save, with the next number, which is what is waited
// for.
func TestOneSaveAStepAndStore(t *testing.T) {
	l := newLedger()
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for step := range uint64(2) {
		l.out = nil
		l.putRow(RunStore, Row{Address: one, State: Assigned})
		l.waitSaved(RunStore, saveAdd, 0, 0)
		l.dropRow(RunStore, Key{Address: two})
		l.putRow(LibStore, Row{Intent: &Intent{Token: "t"}})
		l.flush()
		if len(l.out) != 2 {
			t.Fatalf("step %d: %d effects, expected a Save of each store", step, len(l.out))
		}
		for i, e := range l.out {
			s := e.(*Save)
			if s.Store != Store(i) || s.Seq != step+1 || len(s.Put) != 1 || len(s.Drop) != 1-i {
				t.Errorf("step %d: %+v", step, s)
			}
		}
		if w := l.Lanes[RunStore].Waits; w[step].Seq != step+1 {
			t.Errorf("step %d: what was put waits for Save %d", step, w[step].Seq)
		}
	}
	l.out = nil
	if l.flush(); len(l.out) != 0 {
		t.Errorf("a step that says nothing saves: %v", l.out)
	}
}

// TestAnOutcomeCountsOnce: an outcome that nobody awaits, of another kind, or that came before, is none.
func TestAnOutcomeCountsOnce(t *testing.T) {
	l := newLedger()
	plan, call := l.await(podPlan, 3), l.await(eniCall, 4)
	if plan == call || plan == 0 || call == 0 {
		t.Fatalf("effects %d and %d", plan, call)
	}
	for _, c := range []struct {
		id    ID
		kinds []kind
		ix    int32
		ok    bool
	}{
		{plan, []kind{eniCall}, 3, false},
		{call + 1, []kind{eniCall}, 0, false},
		{plan, []kind{eniPlan, podPlan}, 3, true},
		{plan, []kind{podPlan}, 0, false},
		{call, []kind{eniCall}, 4, true},
	} {
		if p, ok := l.take(c.id, c.kinds...); ok != c.ok || p.Ix != c.ix {
			t.Errorf("take %d of %v: %+v, %t; expected %+v", c.id, c.kinds, p, ok, c)
		}
	}
}
