package ipam

import (
	"errors"
	"fmt"
	"net/netip"
)

// Bounds of what an instance can carry: EC2's largest types have 64 interfaces and 50 addresses on each. What claims more
// is nonsense, and would make the node plan for it.
const (
	mostENIs      = 128
	mostAddresses = 128
)

// bounded holds limits inside what a node may plan for.
func (l Limits) bounded() Limits {
	l.ENIs, l.Addresses = min(max(l.ENIs, 0), mostENIs), min(max(l.Addresses, 0), mostAddresses)
	return l
}

// consistent recomputes whatever the state says twice: counters, free slots and keys. A difference is damage or a bug.
func (n *Node) consistent() error {
	return firstError(n.consistentSlots(), n.consistentKeys(), n.consistentCounts(), n.consistentNumbers())
}

// consistentSlots: exactly the empty slots are holes.
func (n *Node) consistentSlots() error {
	hole := make([]bool, len(n.Addrs))
	for _, i := range n.Holes {
		if hole[i] {
			return fmt.Errorf("address %d is twice among the holes", i)
		}
		hole[i] = true
	}
	for i := range n.Addrs {
		switch a := &n.Addrs[i]; {
		case hole[i] != (a.State == 0):
			return fmt.Errorf("address %d (%v) is %v, and a hole: %t", i, a.IP, a.State, hole[i])
		case a.State == 0 && (a.Keyed || a.Op != noOp || a.ENI >= 0):
			return fmt.Errorf("address %d is an empty slot that something is done to", i)
		case !a.fits():
			return fmt.Errorf("address %d (%v) is %v, and %v runs", i, a.IP, a.State, a.Op)
		case a.ENI >= 0 && n.ENIs[a.ENI].Stage == 0:
			return fmt.Errorf("address %d (%v) is on ENI %d, an empty slot", i, a.IP, a.ENI)
		}
	}
	return nil
}

// consistentKeys: no address, attachment or ENI is there twice, and what may be looked up can be found.
func (n *Node) consistentKeys() error {
	addresses, atts := map[netip.Addr]bool{}, map[Attachment]bool{}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 {
			continue
		}
		if !a.IP.IsValid() || addresses[a.IP] {
			return fmt.Errorf("address %d is %v: invalid, or there twice", i, a.IP)
		}
		addresses[a.IP] = true
		if a.Keyed && atts[a.Att] {
			return fmt.Errorf("address %d (%v): attachment %v has another address", i, a.IP, a.Att)
		}
		atts[a.Att] = atts[a.Att] || a.Keyed
		if !a.Keyed && (a.State == Assigned || a.Op != noOp) {
			return fmt.Errorf("address %d (%v) is %v, operation %d, and its attachment %v cannot be looked up", i, a.IP, a.State, a.Op, a.Att)
		}
	}
	ids := map[string]bool{}
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage == 0 || e.ID == "" {
			continue
		}
		if ids[e.ID] {
			return fmt.Errorf("ENI %d: %s is there twice", i, e.ID)
		}
		ids[e.ID] = true
	}
	return nil
}

// consistentCounts: addresses by state, of the node and of each ENI.
func (n *Node) consistentCounts() error {
	count, has := [Quarantined + 1]int{}, make([][Quarantined + 1]int, len(n.ENIs))
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 {
			continue
		}
		count[a.State]++
		if a.ENI >= 0 {
			has[a.ENI][a.State]++
		}
	}
	if count != n.Count {
		return fmt.Errorf("addresses by state: expected %v, found %v", count, n.Count)
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; has[i] != e.Has {
			return fmt.Errorf("ENI %d (%s): addresses by state: expected %v, found %v", i, e.ID, has[i], e.Has)
		}
	}
	return nil
}

// consistentNumbers: what is shifted by, counted down or looped to.
func (n *Node) consistentNumbers() error {
	if n.Phase > stopping {
		return fmt.Errorf("phase %d is none", n.Phase)
	}
	if n.Deaf && !n.Facts.usable() {
		return errors.New("it serves from its records, which do not say of what instance")
	}
	if n.Inst.Limits != n.Inst.Limits.bounded() {
		return fmt.Errorf("limits %+v: expected at most %d ENIs and %d addresses", n.Inst.Limits, mostENIs, mostAddresses)
	}
	for i := range n.Addrs {
		if n.Addrs[i].Tries < 0 {
			return fmt.Errorf("address %d: %d tries", i, n.Addrs[i].Tries)
		}
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Tries < 0 || e.Stage > Tombstoned {
			return fmt.Errorf("ENI %d: %d tries, stage %d", i, e.Tries, e.Stage)
		}
	}
	open := map[Req]bool{}
	for i := range n.Open {
		if r := n.Open[i].Req; r == 0 || open[r] {
			return fmt.Errorf("request %d is open twice, or none", r)
		}
		open[n.Open[i].Req] = true
	}
	for i := range n.Looks {
		if n.Looks[i].Fails < 0 {
			return errors.New(What(i).String() + ": a negative number of failures")
		}
	}
	return nil
}
