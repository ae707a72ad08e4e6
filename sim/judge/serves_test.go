package judge

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// I16: a daemon has its bound over all its lives, one that serves is forgotten, and one that ends is not expected to.
func TestServes(t *testing.T) {
	shot := func(v ipam.View) *Snapshot { return &Snapshot{Node: 1, Up: true, View: &v} }
	waits := ipam.View{Reasons: []string{"recovering: nobody answers"}}
	for name, c := range map[string]struct {
		then   ipam.View
		breaks bool
	}{
		"does not serve": {waits, true},
		"serves":         {ipam.View{Serving: true}, false},
		"is ended":       {ipam.View{Stopping: true}, false},
	} {
		a := New(Config{Nodes: 1, Bounds: Bounds{Serves: time.Minute}})
		a.Started(0, 1)
		a.Judge(time.Second, shot(waits))
		a.Died(31*time.Second, 1)
		a.Started(time.Hour, 1)
		a.Judge(time.Hour+time.Second, shot(waits))
		if a.Total(I16) != 0 {
			t.Errorf("%s: broken after half a minute of running: %v", name, a.Violations())
		}
		a.Judge(time.Hour+31*time.Second, shot(c.then))
		a.Judge(time.Hour+32*time.Second, shot(c.then))
		v, broken := a.First()
		if broken != c.breaks || broken && (v.Invariant != I16 || !strings.Contains(v.Text, "nobody answers")) {
			t.Errorf("%s: broken %v, %v", name, broken, v)
		}
		if a.Total(I16) > 1 {
			t.Errorf("%s: told %d times", name, a.Total(I16))
		}
	}
}

// A daemon of which only the outside is known: its last words are told.
func TestUnserved(t *testing.T) {
	a := New(Config{Nodes: 1, Without: Books})
	a.Unserved(time.Minute, 1, 30*time.Second, "panic: no such thing")
	v, _ := a.First()
	if v.Invariant != I16 || !strings.Contains(v.Text, "did not serve within 30s of its start; its last lines: panic: no such thing") {
		t.Errorf("found %v", v)
	}
}
