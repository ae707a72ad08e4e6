package virtual

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// replaced are the fields of a world and its nodes that a fork may share: what they point to is never written, only replaced.
var replaced = []string{
	"World.mutant", "World.book", "World.tap", "World.unborn", // constants; books and recordings are shared on purpose
	"Host.Cluster", "Host.Base", "Host.numbers", // what the scenario asks for, the ledger at t=0, and the instances, which are all there by then
	"machine.seen", "runtime.listed", // made anew by each look
	"Node.Written", // appended to a clipped slice only
}

// TestCloneSharesNothing: what a fork's machines and models change in place is its own. A field that Clone forgets is found here.
func TestCloneSharesNothing(t *testing.T) {
	data := must.Get(os.ReadFile("../../scenarios/churn.scn"))(t)
	f := parse(t, "churn.scn", string(data))
	f = must.Get(f.Expand(f.Variants()[0]))(t)
	open, _ := opener(t, f, nil, nil)
	r, w, err := open()
	if err != nil {
		t.Fatal(err)
	}
	r.To(r.LastLine(), nil)
	c := w.Clone()
	shared(t, "World", reflect.ValueOf(w).Elem(), reflect.ValueOf(c).Elem())
	for i := range w.nodes {
		if w.nodes[i] != nil {
			shared(t, "node", reflect.ValueOf(w.nodes[i]).Elem(), reflect.ValueOf(c.nodes[i]).Elem())
		}
	}
}

// shared finds the slices, maps and pointers that two values of a struct have in common, one level deep and in embedded structs.
func shared(t *testing.T, name string, a, b reflect.Value) {
	t.Helper()
	for i := range a.NumField() {
		f := a.Type().Field(i)
		what := name + "." + f.Name
		if slices.Contains(replaced, what) {
			continue
		}
		x, y := a.Field(i), b.Field(i)
		switch f.Type.Kind() {
		case reflect.Struct:
			if f.Anonymous || f.Type.PkgPath() == a.Type().PkgPath() {
				shared(t, f.Name, x, y)
			}
		case reflect.Slice:
			if x.Cap() > 0 && y.Cap() > 0 && x.Pointer() == y.Pointer() {
				t.Errorf("%s: a fork has the same slice: clone it in Clone, or say in this test why it is never written", what)
			}
		case reflect.Map, reflect.Pointer:
			if !x.IsNil() && x.Pointer() == y.Pointer() {
				t.Errorf("%s: a fork has the same %v: clone it in Clone, or say in this test why it is never written", what, f.Type.Kind())
			}
		}
	}
}
