package judge

import (
	"testing"

	"github.com/enilab/enilab/impl/ipam"
)

// TestTally: starts and coverage points count for each node from t=0 on, over all lives, and a clone counts for itself.
func TestTally(t *testing.T) {
	a := New(Config{Nodes: 2})
	repaired := []ipam.Effect{&ipam.Note{Point: ipam.DriftRepaired}, &ipam.Note{Point: ipam.DriftRepaired}, &ipam.Note{}}
	a.Started(0, 1)
	a.Effects(0, 1, repaired)
	a.Begin()
	if a.Starts(1) != 0 || a.Reached(1, ipam.DriftRepaired) != 0 {
		t.Errorf("what came before t=0 is counted: %d starts, %d repairs", a.Starts(1), a.Reached(1, ipam.DriftRepaired))
	}
	a.Effects(1, 1, repaired)
	a.Died(2, 1)
	a.Started(3, 1)
	a.Effects(4, 1, repaired)
	b := a.Clone()
	b.Started(5, 1)
	b.Effects(6, 1, repaired)
	if a.Starts(1) != 1 || a.Reached(1, ipam.DriftRepaired) != 4 || a.Reached(1, ipam.ENIMade) != 0 {
		t.Errorf("%d starts, %d repairs: expected 1 and 4", a.Starts(1), a.Reached(1, ipam.DriftRepaired))
	}
	if b.Starts(1) != 2 || b.Reached(1, ipam.DriftRepaired) != 6 {
		t.Errorf("the clone: %d starts, %d repairs", b.Starts(1), b.Reached(1, ipam.DriftRepaired))
	}
	if a.Starts(2)+a.Starts(9)+a.Starts(-1)+a.Reached(2, ipam.DriftRepaired)+a.Reached(9, ipam.DriftRepaired) != 0 {
		t.Error("another node's are counted")
	}
	if n := len(ipam.Marks()); n >= pointLimit {
		t.Errorf("there are %d coverage points: raise pointLimit", n)
	}
}
