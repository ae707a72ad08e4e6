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
	if !maps.Equal(c.byAtt, n.byAtt) {
		return fmt.Errorf("index of attachments: expected %v, found %v", c.byAtt, n.byAtt)
	}
	if c.due != n.due {
		return fmt.Errorf("next deadline: expected %v, found %v", c.due, n.due)
	}
	return nil
}
