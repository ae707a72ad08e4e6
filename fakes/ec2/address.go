package ec2

import (
	"net/netip"
	"slices"
)

// assign adds secondary addresses or prefixes: so many, or exactly these. Repeating it adds more.
func (c *Cloud) assign(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	if kinds := r.kinds4(); kinds != 1 {
		if kinds == 0 {
			return missing("secondaryPrivateIpAddressCount, privateIpAddresses, ipv4PrefixCount or ipv4Prefixes")
		}
		return failure(codeCombination, messageOneOf4)
	}
	switch {
	case r.SecondaryCount < 0 || r.PrefixCount < 0:
		return failure(codeValue, "Invalid value for secondaryPrivateIpAddressCount or ipv4PrefixCount: it must be positive")
	case r.PrefixCount > 0 || len(r.Prefixes) > 0:
		return c.assignPrefixes(from, slot, r)
	case r.AllowReassignment && len(r.Addresses) > 0:
		return c.reassign(from, slot, r)
	}
	e := &c.enis[slot]
	s := &c.subnets[e.subnet]
	n := r.SecondaryCount + len(r.Addresses)
	if n > mostAddresses || e.places()+n > c.addressLimit(e) {
		return failure(codeAddressLimit, messageLimit)
	}
	old := e.current()
	list := make([]uint16, len(old), len(old)+n)
	copy(list, old)
	for _, a := range r.Addresses {
		o, why := s.wanted(a, list[len(old):])
		if why != "" {
			return failure(codeValue, "Address "+a.String()+why)
		}
		list = append(list, o)
	}
	if s.free < n-s.asideOf(r.Addresses...) {
		return failure(codeSubnetFull, c.subnetFull(e.subnet))
	}
	for _, o := range list[len(old):] {
		s.take(o, slot+1)
	}
	for range r.SecondaryCount {
		list = append(list, s.pop(slot+1))
	}
	p := success()
	p.Assigned = make([]netip.Addr, n)
	for k, o := range list[len(old):] {
		p.Assigned[k] = s.addr(o)
		c.emitAddress(c.now, AddressAssigned, e, p.Assigned[k], from)
	}
	c.setAddresses(e, list, c.stream(from).draw(c.cfg.Lag.IMDSAddress))
	return p
}

// kinds4 is how many of the four ways to ask for IPv4 a request uses.
func (r *Request) kinds4() (n int) {
	for _, is := range [...]bool{r.SecondaryCount != 0, len(r.Addresses) > 0, r.PrefixCount != 0, len(r.Prefixes) > 0} {
		if is {
			n++
		}
	}
	return n
}

// reassign makes exactly these addresses secondary ones of the interface, and takes them from those that have them as secondary ones.
// One that it has already stays where it is.
func (c *Cloud) reassign(from, slot int32, r *Request) Response {
	e := &c.enis[slot]
	s := &c.subnets[e.subnet]
	list := slices.Clone(e.current())
	before := len(list)
	var losers []int32 // the slot that each new one is taken from, or none
	seen := make([]uint16, 0, min(len(r.Addresses), mostAddresses+1))
	for _, a := range r.Addresses {
		if len(list) > mostAddresses {
			return failure(codeAddressLimit, messageLimit)
		}
		o, loser, why := c.wantedAnyway(s, slot, a, seen)
		if why != "" {
			return failure(codeValue, "Address "+a.String()+why)
		}
		seen = append(seen, o)
		if loser != slot {
			list, losers = append(list, o), append(losers, loser)
		}
	}
	if len(list)-before+e.places() > c.addressLimit(e) {
		return failure(codeAddressLimit, messageLimit)
	}
	for k, o := range list[before:] {
		if losers[k] == none {
			s.take(o, slot+1)
			continue
		}
		s.owner[o] = slot + 1
		other := &c.enis[losers[k]]
		at := slices.Index(other.current(), o)
		c.emitAddress(c.now, AddressUnassigned, other, s.addr(o), from)
		c.setAddresses(other, slices.Delete(slices.Clone(other.current()), at, at+1), c.stream(from).draw(c.cfg.Lag.IMDSAddress))
	}
	p := success()
	p.Assigned = slices.Clone(r.Addresses)
	for _, o := range list[before:] {
		c.emitAddress(c.now, AddressAssigned, e, s.addr(o), from)
	}
	if len(list) > before {
		c.setAddresses(e, list, c.stream(from).draw(c.cfg.Lag.IMDSAddress))
	}
	return p
}

// wantedAnyway is the offset of an address that may be taken from an interface, and whose it is: none for a free one. Only secondary
// addresses can be had so.
func (c *Cloud) wantedAnyway(s *subnet, slot int32, a netip.Addr, before []uint16) (o uint16, loser int32, why string) {
	o, ok := s.offset(a)
	if !ok || s.ownerOf(o) <= addressFree {
		o, why = s.wanted(a, before)
		return o, none, why
	}
	loser = s.ownerOf(o) - 1
	switch at := slices.Index(c.enis[loser].current(), o); {
	case slices.Contains(before, o):
		return 0, none, " was specified twice"
	case at == 0:
		return 0, none, " is the primary private IP address of interface " + string(c.enis[loser].id)
	case at < 0:
		return 0, none, " lies in a prefix of interface " + string(c.enis[loser].id)
	}
	return o, loser, ""
}

// addressLimit is how many addresses an interface may have: its instance type's limit while it is attached.
func (c *Cloud) addressLimit(e *eni) int {
	if e.att.instance == none {
		return mostAddresses
	}
	return c.instances[e.att.instance].limits.IPv4PerENI
}

// unassign removes secondary addresses or prefixes, all or none.
func (c *Cloud) unassign(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	switch {
	case len(r.Addresses) > 0 && len(r.Prefixes) > 0:
		return failure(codeCombination, "Only one of privateIpAddresses and ipv4Prefixes can be specified")
	case len(r.Prefixes) > 0:
		return c.unassignPrefixes(from, &c.enis[slot], r)
	case len(r.Addresses) == 0:
		return missing("privateIpAddresses or ipv4Prefixes")
	}
	e := &c.enis[slot]
	s := &c.subnets[e.subnet]
	list := slices.Clone(e.current())
	for _, a := range r.Addresses {
		o, ok := s.offset(a)
		at := slices.Index(list, o)
		switch {
		case !ok || at < 0:
			return failure(codeValue, "Some of the specified addresses are not assigned to interface "+string(r.ENI))
		case at == 0:
			return failure(codeValue, "The primary private IP address "+a.String()+" of interface "+string(r.ENI)+" cannot be unassigned")
		}
		list = slices.Delete(list, at, at+1)
	}
	c.removeAddresses(e, list, r.Addresses, from)
	return success()
}

// removeAddresses makes list the interface's addresses; gone are those that list lacks.
func (c *Cloud) removeAddresses(e *eni, list []uint16, gone []netip.Addr, by int32) {
	s := &c.subnets[e.subnet]
	until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress)
	for _, a := range gone {
		o, _ := s.offset(a)
		s.hold(o, until)
		c.emitAddress(c.now, AddressUnassigned, e, a, by)
	}
	c.setAddresses(e, list, c.stream(by).draw(c.cfg.Lag.IMDSAddress))
}
