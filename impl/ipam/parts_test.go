package ipam

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// newborn is a Node under the sound policy.
func newborn(t *testing.T) *Node {
	t.Helper()
	return must.Get(New(Sound()))(t)
}

// TestPartsKnowOnlyThoseBelow: a part points to parts before it in state, and to those of its own Node, also in a
// clone.
func TestPartsKnowOnlyThoseBelow(t *testing.T) {
	for _, n := range []*Node{newborn(t), newborn(t).Clone()} {
		v := reflect.ValueOf(&n.state).Elem()
		below := map[uintptr]bool{}
		for i := range v.NumField() {
			part := v.Field(i)
			for j := range part.NumField() {
				f := part.Type().Field(j)
				if f.Type.Kind() != reflect.Pointer || f.Type.Elem().Name() != f.Name || f.IsExported() {
					continue
				}
				if !below[part.Field(j).Pointer()] {
					t.Errorf("%s points to %s, which is not below it or another Node's", part.Type().Name(), f.Name)
				}
			}
			below[part.Addr().Pointer()] = true
		}
	}
}

// TestCloneSharesNothing: the simulator forks a node at a crash, and each goes its own way. What a step only replaces
// may be shared.
func TestCloneSharesNothing(t *testing.T) {
	replaced := []string{"Listed", "Cloud"}
	n := newborn(t)
	slicesOf(&n.state, func(_ string, f reflect.Value) {
		reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Set(reflect.MakeSlice(f.Type(), 1, 1))
	})
	theirs := map[string]uintptr{}
	slicesOf(&n.state, func(name string, f reflect.Value) { theirs[name] = f.Pointer() })
	c := n.state.clone()
	slicesOf(&c, func(name string, f reflect.Value) {
		if f.Len() > 0 && f.Pointer() == theirs[name] && !slices.Contains(replaced, name) {
			t.Errorf("%s is the original's", name)
		}
	})
}

// slicesOf calls f with each slice of a state and of its parts.
func slicesOf(s *state, f func(name string, field reflect.Value)) {
	var in func(v reflect.Value)
	in = func(v reflect.Value) {
		for i := range v.NumField() {
			switch field := v.Type().Field(i); {
			case field.Anonymous && field.Type.Kind() == reflect.Struct:
				in(v.Field(i))
			case field.Type.Kind() == reflect.Slice:
				f(field.Name, v.Field(i))
			}
		}
	}
	in(reflect.ValueOf(s).Elem())
}

// TestAStateOfNoNodeIsRefused: an address on an ENI that is not there would make the first step panic.
func TestAStateOfNoNodeIsRefused(t *testing.T) {
	for on, good := range map[int32]bool{-2: false, -1: true, 1: false} {
		n := newborn(t)
		n.ENIs, n.Addrs = make([]eni, 1), []address{{IP: netip.MustParseAddr("10.0.0.1"), ENI: on, State: Cooling}}
		n.Count[Cooling] = 1
		if err := n.valid(); (err == nil) != good {
			t.Errorf("an address on ENI %d of 1: %v", on, err)
		}
	}
}
