package ipam

import (
	"fmt"
	"maps"
)

// Sane recomputes what the node keeps twice, and checks every reference.
func (n *Node) Sane() error {
	if err := n.valid(); err != nil {
		return err
	}
	c := Node{state: n.state}
	c.reindex()
	if !maps.Equal(c.byAddress, n.byAddress) {
		return fmt.Errorf("index of addresses: expected %v, found %v", c.byAddress, n.byAddress)
	}
	if len(c.byID)+len(c.byAtt) != len(n.byID)+len(n.byAtt) {
		return fmt.Errorf("index of attachments: expected %v and %v, found %v and %v", c.byID, c.byAtt, n.byID, n.byAtt)
	}
	for i := range n.Addrs {
		if a := &n.Addrs[i]; a.State != 0 && a.Keyed {
			want, _ := c.rowOf(a.Att)
			if ix, ok := n.rowOf(a.Att); !ok || ix != want {
				return fmt.Errorf("index of attachments: expected %v at %d, found %v %d", a.Att, want, ok, ix)
			}
		}
	}
	if c.due != n.due {
		return fmt.Errorf("next deadline: expected %v, found %v", c.due, n.due)
	}
	return nil
}

// Follows is the table of stages.
func Follows() [][]Stage { return follows[:] }

// Watch has every move of an ENI from stage to stage told to f.
func (n *Node) Watch(f func(from, to Stage)) { n.moved = f }
