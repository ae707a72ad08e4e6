package verb_test

import (
	"reflect"
	"testing"

	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/verb"
)

// TestNounsAreSmall: what a verb works on, and what a world gives for it, has at most ten methods each.
func TestNounsAreSmall(t *testing.T) {
	for _, noun := range []reflect.Type{
		reflect.TypeFor[verb.Daemon](), reflect.TypeFor[verb.Kernel](), reflect.TypeFor[verb.Runtime](),
		reflect.TypeFor[verb.Network](), reflect.TypeFor[verb.API](),
		reflect.TypeFor[models.Daemon](), reflect.TypeFor[models.Kernel](), reflect.TypeFor[models.Runtime](),
		reflect.TypeFor[models.Network](),
	} {
		if n := noun.NumMethod(); n > 10 {
			t.Errorf("%v has %d methods, at most ten are a noun", noun, n)
		}
	}
}
