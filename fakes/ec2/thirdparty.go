package ec2

import (
	"net/netip"
	"slices"
	"time"
)

// The methods of this file are what third parties do to the account: a person at a console, another controller,
// another tenant of the subnet. They are not throttled and not in the ledger. They return whether they changed
// anything, and do nothing when their target is gone.

// ThirdPartyDetach detaches an interface, as a DetachNetworkInterface of another caller would.
func (c *Cloud) ThirdPartyDetach(now time.Duration, id ENIID) bool {
	c.Advance(now)
	slot := c.slotOf(id)
	if slot == none {
		return false
	}
	r := c.detach(none, &Request{Attachment: c.enis[slot].att.id})
	return r.Code == ""
}

// ThirdPartyENI is an interface that a third party makes.
type ThirdPartyENI struct {
	Subnet      SubnetID // "": the instance's
	Description string
	Tags        []Tag
	Secondaries int
	Prefixes    int
	Kind        InterfaceKind
}

// ThirdPartyCreate makes an interface that is not attached. It returns false when the subnet or the account has no
// room for it.
func (c *Cloud) ThirdPartyCreate(now time.Duration, s ThirdPartyENI) (ENIID, bool) {
	c.Advance(now)
	p := c.create(none, &Request{Subnet: s.Subnet, Description: s.Description, Tags: s.Tags, SecondaryCount: s.Secondaries, PrefixCount: s.Prefixes})
	if p.Code != "" {
		return "", false
	}
	c.enis[c.slotOf(p.ENI.ID)].kind = s.Kind
	return p.ENI.ID, true
}

// ThirdPartyAttach makes an interface and attaches it to an instance, at a device index or, when that is 0, at the
// lowest free one. It returns false, and makes none, when EC2 would refuse it.
func (c *Cloud) ThirdPartyAttach(now time.Duration, to InstanceID, device int, s ThirdPartyENI) (ENIID, bool) {
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
	id, ok := c.ThirdPartyCreate(now, s)
	if !ok {
		return "", false
	}
	if p := c.attachSlot(none, c.slotOf(id), &Request{Instance: to, DeviceIndex: device}); p.Code != "" {
		c.deleteENI(c.slotOf(id), none)
		return "", false
	}
	return id, true
}

// ThirdPartyDelete removes an interface that is no instance's primary one: detached and deleted in one go, as by a
// caller that waits for the detach. The device index stays usable; metadata follows as after any detach.
func (c *Cloud) ThirdPartyDelete(now time.Duration, id ENIID) bool {
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

// ThirdPartyUnassign unassigns a secondary or IPv6 address from the interface that has it, or the prefix that it lies
// in.
func (c *Cloud) ThirdPartyUnassign(now time.Duration, a netip.Addr) bool {
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

// ThirdPartyTag sets a tag of a subnet, or removes it when the value is "". It returns whether anything was changed.
func (c *Cloud) ThirdPartyTag(now time.Duration, id SubnetID, key, value string) bool {
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

// DrainSubnet takes a subnet's addresses for third parties, or gives them back, until `leave` are free, or as near to
// that as possible. It returns how many were taken; a negative number was given back.
func (c *Cloud) DrainSubnet(now time.Duration, id SubnetID, leave int) (taken int) {
	c.Advance(now)
	n := c.subnetIndex(id)
	if n == none {
		return 0
	}
	s := &c.subnets[n]
	before := len(s.drained)
	for s.free > max(leave, 0) {
		s.drained = append(s.drained, s.pop(addressThirdParty))
	}
	for s.free < leave && len(s.drained) > 0 {
		last := len(s.drained) - 1
		s.pushFree(s.drained[last])
		s.drained = s.drained[:last]
	}
	return len(s.drained) - before
}
