package ec2

import (
	"net/netip"
	"slices"
	"time"
)

// The methods of this file are what others do to the account: a person at a console, another
// controller, another tenant of the subnet. They are not throttled and not in the ledger. They say whether they changed
// anything, and do nothing when their target is gone.

// StrangerDetach detaches an interface, as a DetachNetworkInterface of somebody else's would.
func (c *Cloud) StrangerDetach(now time.Duration, id ENIID) bool {
	c.Advance(now)
	slot := c.slotOf(id)
	if slot == none {
		return false
	}
	r := c.detach(none, &Request{Attachment: c.enis[slot].att.id})
	return r.Code == ""
}

// StrangerENI is an interface that somebody else makes.
type StrangerENI struct {
	Subnet      SubnetID // "": the instance's
	Description string
	Tags        []Tag
	Secondaries int
	Prefixes    int
	Kind        InterfaceKind
}

// StrangerCreate makes an interface that is attached to nothing. It is false when the subnet, or the account, has no room for it.
func (c *Cloud) StrangerCreate(now time.Duration, s StrangerENI) (ENIID, bool) {
	c.Advance(now)
	p := c.create(none, &Request{Subnet: s.Subnet, Description: s.Description, Tags: s.Tags, SecondaryCount: s.Secondaries, PrefixCount: s.Prefixes})
	if p.Code != "" {
		return "", false
	}
	c.enis[c.slotOf(p.ENI.ID)].kind = s.Kind
	return p.ENI.ID, true
}

// StrangerAttach makes an interface and attaches it to an instance, at a device index or, when that is 0, at the lowest one that is free. It
// is false when EC2 would refuse it, and then there is none.
func (c *Cloud) StrangerAttach(now time.Duration, to InstanceID, device int, s StrangerENI) (ENIID, bool) {
	c.Advance(now)
	n := c.instanceIndex(to)
	if n == none {
		return "", false
	}
	i := &c.instances[n]
	for free := 1; device == 0 && free < deviceIndexes; free++ {
		if !c.deviceTaken(i, placeOf(0, int16(free))) {
			device = free
		}
	}
	if s.Subnet == "" {
		s.Subnet = c.subnets[i.subnet].id
	}
	id, ok := c.StrangerCreate(now, s)
	if !ok {
		return "", false
	}
	if p := c.attachSlot(none, c.slotOf(id), &Request{Instance: to, DeviceIndex: device}); p.Code != "" {
		c.deleteENI(c.slotOf(id), none)
		return "", false
	}
	return id, true
}

// StrangerDelete removes an interface that is no instance's primary one: detached and deleted in one go, as by somebody who waited for
// the detach. The device index stays usable; metadata follows as after any detach.
func (c *Cloud) StrangerDelete(now time.Duration, id ENIID) bool {
	c.Advance(now)
	slot := c.slotOf(id)
	if slot == none {
		return false
	}
	e := &c.enis[slot]
	if n := e.att.instance; n != none {
		if c.instances[n].primary == slot {
			return false
		}
		c.detach(none, &Request{Attachment: e.att.id}) // refused unless it is in use: what is under way is cut off
		c.unplug(e, none)
		c.detached(c.now, slot, none)
	}
	c.deleteENI(slot, none)
	return true
}

// StrangerUnassign takes a secondary or IPv6 address from whatever interface has it, or the prefix that it lies in.
func (c *Cloud) StrangerUnassign(now time.Duration, a netip.Addr) bool {
	c.Advance(now)
	e := c.ownerOf(a)
	if e == nil {
		return false
	}
	s, x := &c.subnets[e.subnet], e.extra()
	if low, ok := s.six.low(a); ok {
		r := Request{ENI: e.id, IPv6: []netip.Addr{a}}
		if !slices.Contains(x.six, low) {
			r = Request{ENI: e.id, IPv6Prefixes: []netip.Prefix{s.six.prefix(blockOf(low))}}
		}
		p := c.unassign6From(none, e, &r)
		return p.Code == ""
	}
	o, _ := s.offset(a)
	if block := o / prefixSize * prefixSize; slices.Contains(x.prefixes, block) {
		p := c.unassignPrefixes(none, e, &Request{ENI: e.id, Prefixes: []netip.Prefix{s.prefix(block)}})
		return p.Code == ""
	}
	at := slices.Index(e.current(), o)
	if at <= 0 {
		return false
	}
	c.removeAddresses(e, slices.Delete(slices.Clone(e.current()), at, at+1), []netip.Addr{a}, none)
	return true
}

// StrangerTag gives a subnet a tag, or takes it away when the value is "". It says whether anything was changed.
func (c *Cloud) StrangerTag(now time.Duration, id SubnetID, key, value string) bool {
	c.Advance(now)
	n := c.subnetIndex(id)
	if n == none {
		return false
	}
	s := &c.subnets[n]
	before := s.tagged
	s.tagged = c.now
	at := slices.IndexFunc(s.tags, func(t Tag) bool { return t.Key == key })
	switch {
	case value == "" && at < 0 || at >= 0 && s.tags[at].Value == value:
		s.tagged = before
		return false
	case value == "":
		s.tags = slices.Delete(slices.Clone(s.tags), at, at+1)
	default:
		s.tags = merged(s.tags, []Tag{{key, value}})
	}
	return true
}

// DrainSubnet has strangers take or give back a subnet's addresses until `leave` are free, or as near to
// that as what is free and what strangers hold allows. It says how many they took, or gave back when that is negative.
func (c *Cloud) DrainSubnet(now time.Duration, id SubnetID, leave int) (taken int) {
	c.Advance(now)
	n := c.subnetIndex(id)
	if n == none {
		return 0
	}
	s := &c.subnets[n]
	before := len(s.strangers)
	for s.free > max(leave, 0) {
		s.strangers = append(s.strangers, s.pop(addressStranger))
	}
	for s.free < leave && len(s.strangers) > 0 {
		last := len(s.strangers) - 1
		s.pushFree(s.strangers[last])
		s.strangers = s.strangers[:last]
	}
	return len(s.strangers) - before
}
