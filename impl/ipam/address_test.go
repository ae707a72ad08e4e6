package ipam

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// refused says whether a function panics.
func refused(f func()) (panics bool) {
	defer func() { panics = recover() != nil }()
	f()
	return false
}

// TestAnOperationThatCannotFollowIsRefused: each move of the table is taken, every other one panics and changes
// nothing.
func TestAnOperationThatCannotFollowIsRefused(t *testing.T) {
	for from := noOp; from <= wiring; from++ {
		for to := noOp; to <= wiring; to++ {
			a := address{Op: from}
			want := !slices.Contains(opFollows[from], to)
			if got := refused(func() { a.run(to) }); got != want || got && a.Op != from || !got && a.Op != to {
				t.Errorf("%v after %v: refused %t, expected %t; it is %v", to, from, got, want, a.Op)
			}
		}
	}
}

// TestAStateThatCannotFollowIsRefused: likewise, of a pool that would count wrongly.
func TestAStateThatCannotFollowIsRefused(t *testing.T) {
	for from := State(0); from <= Quarantined; from++ {
		for to := State(0); to <= Quarantined; to++ {
			n := newborn(t)
			n.Addrs = []address{{ENI: -1, State: from}}
			want := !slices.Contains(stateFollows[from], to)
			got := refused(func() { n.pool.become(0, to) })
			if a := &n.Addrs[0]; got != want || got && a.State != from || !got && a.State != to {
				t.Errorf("%v after %v: refused %t, expected %t; it is %v", to, from, got, want, a.State)
			}
		}
	}
}

// TestACoolDownThatCannotGoOnIsRefused: likewise.
func TestACoolDownThatCannotGoOnIsRefused(t *testing.T) {
	for from := inKernel; from <= forgotten; from++ {
		for to := inKernel; to <= forgotten; to++ {
			a := address{Cooling: from}
			want := !slices.Contains(coolingFollows[from], to)
			got := refused(func() { a.cool(to) })
			if got != want || got && a.Cooling != from || !got && a.Cooling != to {
				t.Errorf("%v after %v: refused %t, expected %t; it is %v", to, from, got, want, a.Cooling)
			}
		}
	}
}

// TestAnOperationThatDoesNotFitItsStateIsDamage: a decoded Node is refused whose address could make a move panic.
func TestAnOperationThatDoesNotFitItsStateIsDamage(t *testing.T) {
	fitting := map[State][]op{Free: {noOp}, Assigned: {noOp, adding, repairing, recording, held, wiring},
		Cooling: {noOp, releasing}, Quarantined: {noOp}}
	for state, ops := range fitting {
		for o := noOp; o <= wiring+1; o++ {
			n := newborn(t)
			n.Addrs = []address{{IP: netip.MustParseAddr("10.0.0.1"), ENI: -1, State: state, Op: o, Keyed: true}}
			n.Count[state] = 1
			if err := n.valid(); (err == nil) != slices.Contains(ops, o) {
				t.Errorf("%v, and %v runs: %v", state, o, err)
			}
		}
	}
}

// TestAddressesAreEncodedAsEver: an older core's recording is read, which has booleans beside an operation and a
// cool-down.
func TestAddressesAreEncodedAsEver(t *testing.T) {
	for members, want := range map[string]address{
		`"Op":0,"Wiring":false,"Held":false,"Removed":false,"Flows":0`: {},
		`"Op":1,"Wiring":false,"Held":false,"Removed":false,"Flows":0`: {Op: adding},
		`"Op":1,"Wiring":true,"Held":false,"Removed":false,"Flows":0`:  {Op: wiring},
		`"Op":1,"Wiring":false,"Held":true,"Removed":false,"Flows":0`:  {Op: held},
		`"Op":2,"Wiring":false,"Held":false,"Removed":false,"Flows":0`: {Op: releasing},
		`"Op":3,"Wiring":false,"Held":false,"Removed":false,"Flows":0`: {Op: repairing},
		`"Op":4,"Wiring":false,"Held":false,"Removed":false,"Flows":0`: {Op: recording},
		`"Op":0,"Wiring":false,"Held":false,"Removed":true,"Flows":0`:  {Cooling: remembered},
		`"Op":0,"Wiring":false,"Held":false,"Removed":true,"Flows":1`:  {Cooling: forgetting},
		`"Op":0,"Wiring":false,"Held":false,"Removed":true,"Flows":2`:  {Cooling: forgotten},
	} {
		var got address
		if err := json.Unmarshal([]byte("{"+members+"}"), &got); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v; expected %+v", members, got, err, want)
		}
		if text, err := json.Marshal(want); err != nil || !strings.Contains(string(text), members) {
			t.Errorf("%+v is written as %s, %v; expected %s in it", want, text, err, members)
		}
	}
	for _, damaged := range []string{`{"Op":5}`, `{"Op":2,"Wiring":true}`, `{"Op":1,"Wiring":true,"Held":true}`,
		`{"Removed":true,"Flows":3}`, `{"Wired":1}`} {
		if err := json.Unmarshal([]byte(damaged), new(address)); err == nil {
			t.Errorf("%s is read", damaged)
		}
	}
}
