package judge_test

import (
	"net/netip"
	"testing"

	"github.com/enilab/enilab/sim/judge"
)

// TestHolders: the node that had an address before is looked at too, and a fork does not forget it for the other.
func TestHolders(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.9")
	one := func(int) int { return 1 }
	a := judge.New(judge.Config{Nodes: 3})
	if h := a.Holders(1, addr, one); h.Count != 1 {
		t.Errorf("the first holder: %+v, expected itself alone", h)
	}
	b := a.Clone()
	if h := b.Holders(2, addr, one); h.Count != 2 || h.Otherwise != "node-1" {
		t.Errorf("in the fork: %+v, expected node-1 as well", h)
	}
	if h := a.Holders(3, addr, one); h.Count != 2 || h.Otherwise != "node-1" {
		t.Errorf("beside the fork: %+v, expected node-1 as well", h)
	}
}
