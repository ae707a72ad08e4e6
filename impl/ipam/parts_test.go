package ipam

import (
	"reflect"
	"testing"
)

// TestPartsKnowOnlyThoseBelow: a part points to parts that come before it in state, and to those of its own Node, also in a clone.
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
