package ipam

import (
	"errors"
	"fmt"
	"maps"
)

// Sane recomputes what the node keeps twice, and checks every reference.
func (n *Node) Sane() error {
	if err := n.valid(); err != nil {
		return err
	}
	for i := range n.ENIs {
		if err := n.ENIs[i].sane(); err != nil {
			return fmt.Errorf("ENI %d (%s, %v): %w: %+v", i, n.ENIs[i].ID, n.ENIs[i].Stage, err, n.ENIs[i].mutation)
		}
	}
	c := n.Clone()
	for i := range n.ENIs {
		if c.ENIs[i].blocked != n.ENIs[i].blocked {
			return fmt.Errorf("ENI %d: what it has in prefixes: expected %+v, found %+v", i, c.ENIs[i].blocked, n.ENIs[i].blocked)
		}
	}
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
	if c.dueNext(); c.due != n.due {
		return fmt.Errorf("next deadline: expected %v, found %v", c.due, n.due)
	}
	return nil
}

// sane says what holds of a mutation at any time.
func (m *mutation) sane() error {
	switch {
	case m.Wait == calling && m.Doing == 0:
		return errors.New("EC2 is called, and nothing was intended")
	case m.Wait == storing && !m.Stored:
		return errors.New("it waits for a record, and has no intent on record")
	case m.Lost && m.Wait != idle && m.Wait != applying: // drift may be put right meanwhile
		return errors.New("a mutation is in doubt, and the next one has begun")
	case m.Extra != "" && !m.Stored:
		return errors.New("it keeps another version's fields of an intent that is not on record")
	case m.Tries < 0 || m.Barred < 0 || m.Count < 0:
		return errors.New("it counts below zero")
	}
	return nil
}

// Follows is the table of stages.
func Follows() [][]Stage { return follows[:] }

// Watch has every move of an ENI from stage to stage told to f.
func (n *Node) Watch(f func(from, to Stage)) { n.moved = f }
