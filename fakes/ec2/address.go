package ec2

import (
	"net/netip"
	"slices"
)

// assign adds secondary addresses: so many, or exactly these. Repeating it adds more.
func (c *Cloud) assign(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	e := &c.enis[slot]
	s := &c.subnets[e.subnet]
	n := r.SecondaryCount + len(r.Addresses)
	switch {
	case r.SecondaryCount != 0 && len(r.Addresses) > 0:
		return failure(codeCombination, "Only one of secondaryPrivateIpAddressCount and privateIpAddresses can be specified")
	case r.SecondaryCount < 0:
		return failure(codeValue, "Invalid value for secondaryPrivateIpAddressCount: it must be positive")
	case n == 0:
		return missing("secondaryPrivateIpAddressCount or privateIpAddresses")
	case n > mostAddresses, len(e.current())+n > c.addressLimit(e):
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
	if s.free < n {
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

// addressLimit is how many addresses an interface may have: its instance type's limit while it is attached.
func (c *Cloud) addressLimit(e *eni) int {
	if e.att.instance == none {
		return mostAddresses
	}
	return c.instances[e.att.instance].limits.IPv4PerENI
}

// unassign removes secondary addresses, all or none.
func (c *Cloud) unassign(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	if len(r.Addresses) == 0 {
		return missing("privateIpAddresses")
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
