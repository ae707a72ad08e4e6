package models

import (
	"testing"

	"github.com/enilab/enilab/fakes/ec2"
)

// A trap is about one node, one side of the request, and one action or any; and it is sprung once.
func TestTraps(t *testing.T) {
	var traps Traps
	traps.Set(1, ec2.CreateNetworkInterface, false, 7)
	traps.Set(2, ec2.AnyAction, true, 8)
	for _, c := range []struct {
		node   int32
		action ec2.Action
		after  bool
		id     int
		sprung bool
	}{
		{2, ec2.CreateNetworkInterface, false, 0, false},
		{1, ec2.AttachNetworkInterface, false, 0, false},
		{1, ec2.CreateNetworkInterface, true, 0, false},
		{1, ec2.CreateNetworkInterface, false, 7, true},
		{1, ec2.CreateNetworkInterface, false, 0, false},
		{2, ec2.DetachNetworkInterface, true, 8, true},
		{2, ec2.DetachNetworkInterface, true, 0, false},
	} {
		if id, sprung := traps.Spring(c.node, c.action, c.after); id != c.id || sprung != c.sprung {
			t.Errorf("node %d, %v, after %v: expected %d %v, found %d %v", c.node, c.action, c.after, c.id, c.sprung, id, sprung)
		}
	}
	if len(traps) != 0 {
		t.Errorf("expected that no trap is left, found %v", traps)
	}
}

// A socket is what a scenario calls it.
func TestSockets(t *testing.T) {
	for s := Right; s <= Partial; s++ {
		if found := ParseSocket(s.String()); found != s {
			t.Errorf("%v: found %v", s, found)
		}
	}
}
