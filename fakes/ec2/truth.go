package ec2

import (
	"net/netip"
	"time"
)

// The methods of this file tell the truth as of the last instant the cloud was stepped to: no throttling,
// no lag. They are for auditors, metrics and the VPC, not for the software under test.

// ENI is an interface as it is.
func (c *Cloud) ENI(id ENIID) (ENI, bool) {
	slot := c.slotOf(id)
	if slot == none {
		return ENI{}, false
	}
	return c.show(&c.enis[slot], always), true
}

// Tagged is when third parties changed a subnet's tags last: long ago, if they never did.
func (c *Cloud) Tagged(id SubnetID) time.Duration {
	if n := c.subnetIndex(id); n != none {
		return c.subnets[n].tagged
	}
	return never
}

// MAC is an interface's MAC, "" if there is no such interface.
func (c *Cloud) MAC(id ENIID) string {
	slot := c.slotOf(id)
	if slot == none {
		return ""
	}
	return c.enis[slot].mac
}

// AttachedENIs are the interfaces that are in-use on an instance, by network card and device index.
func (c *Cloud) AttachedENIs(i InstanceID) []ENIID {
	n := c.instanceIndex(i)
	if n == none {
		return nil
	}
	out := make([]ENIID, 0, len(c.instances[n].enis))
	for _, slot := range c.instances[n].enis {
		if e := &c.enis[slot]; e.att.status == InUse {
			out = append(out, e.id)
		}
	}
	return out
}

// Link is a kernel device on an instance.
type Link struct {
	MAC    string
	ENI    ENIID
	Device int
	Card   int // network card
}

// Links are the kernel devices that are plugged into an instance, by network card and device index: what its kernel finds
// when it boots.
func (c *Cloud) Links(i InstanceID) []Link {
	n := c.instanceIndex(i)
	if n == none {
		return nil
	}
	var out []Link
	for _, slot := range c.instances[n].enis {
		if e := &c.enis[slot]; e.plugged {
			out = append(out, Link{e.mac, e.id, int(e.att.device), int(e.att.card)})
		}
	}
	return out
}

// HasAddress says whether an address belongs to an interface that is in-use on an instance, and to which.
func (c *Cloud) HasAddress(i InstanceID, a netip.Addr) (ENIID, bool) {
	for k := range c.subnets { // VPCs may overlap: it is the one that the instance has an interface in
		if e := c.ownerIn(&c.subnets[k], a); e != nil && e.att.status == InUse && c.instances[e.att.instance].id == i {
			return e.id, true
		}
	}
	return "", false
}

// OwnerOf is the interface that an address belongs to, by itself or in a prefix, and the instance that is on, "" while it is on
// none. It is false for an address that no interface has. Where VPCs overlap it is the one of the first; OwnerIn asks for another's.
func (c *Cloud) OwnerOf(a netip.Addr) (ENIID, InstanceID, bool) {
	e := c.ownerOf(a)
	if e == nil {
		return "", "", false
	}
	return e.id, c.instanceID(e.att.instance), true
}

// OwnerIn is OwnerOf in the VPC with that ID.
func (c *Cloud) OwnerIn(vpc string, a netip.Addr) (ENIID, InstanceID, bool) {
	for k := range c.subnets {
		if s := &c.subnets[k]; c.vpcs[s.vpc].id == vpc {
			if e := c.ownerIn(s, a); e != nil {
				return e.id, c.instanceID(e.att.instance), true
			}
		}
	}
	return "", "", false
}

// ownerOf is the interface that has an address in the first VPC where one has it.
func (c *Cloud) ownerOf(a netip.Addr) *eni {
	for k := range c.subnets {
		if e := c.ownerIn(&c.subnets[k], a); e != nil {
			return e
		}
	}
	return nil
}

// ownerIn is the interface that has an address of a subnet, nil if none has.
func (c *Cloud) ownerIn(s *subnet, a netip.Addr) *eni {
	owner := addressFree
	if o, ok := s.offset(a); ok {
		owner = s.ownerOf(o)
	} else if low, ok := s.six.low(a); ok {
		owner = s.six.ownerOf(low)
	}
	if owner <= addressFree {
		return nil
	}
	return &c.enis[owner-1]
}

// AllENIs are all interfaces, oldest first.
func (c *Cloud) AllENIs() []ENI {
	out := make([]ENI, 0, c.living)
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		if e := &c.enis[slot]; !e.dead {
			out = append(out, c.show(e, always))
		}
	}
	return out
}

// CountENIs is how many interfaces are in a state.
func (c *Cloud) CountENIs(s Status) int {
	n := 0
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		if e := &c.enis[slot]; !e.dead && e.att.status == s {
			n++
		}
	}
	return n
}

// FreeAddresses is how many addresses a subnet could give away now: -1 if there is no such subnet.
func (c *Cloud) FreeAddresses(s SubnetID) int {
	n := c.subnetIndex(s)
	if n == none {
		return -1
	}
	return c.subnets[n].free
}

// Tokens are how many tokens an action's bucket has at an instant, and how many it holds. Nothing is drawn.
func (c *Cloud) Tokens(now time.Duration, a Action) (left, capacity int) {
	l, b := c.buckets[a], c.cfg.Throttle.Action[a]
	l.refill(max(now, l.at), b)
	return int((int64(b.Capacity)*token - l.spent) / token), b.Capacity
}

// Subnets are all subnets, as configured, but those that were deleted.
func (c *Cloud) Subnets() []Subnet {
	var out []Subnet
	for i := range c.subnets {
		if s := &c.subnets[i]; !s.gone {
			out = append(out, c.showSubnet(s))
		}
	}
	return out
}

// InstanceOf is an instance as it is, terminated ones included.
func (c *Cloud) InstanceOf(i InstanceID) (Instance, bool) {
	n := c.instanceIndex(i)
	if n == none {
		return Instance{}, false
	}
	return c.showInstance(n, always), true
}

// VPCID is the first VPC's identifier.
func (c *Cloud) VPCID() string { return c.vpcs[0].id }

// SecurityGroups are the groups that exist; the first of a VPC is its default one.
func (c *Cloud) SecurityGroups() []string {
	var out []string
	for i := range c.groups {
		out = append(out, c.groups[i].ID)
	}
	return out
}
