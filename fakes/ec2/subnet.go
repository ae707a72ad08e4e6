package ec2

import (
	"net/netip"
	"slices"
	"time"
)

// Who an address belongs to that no interface has. Interfaces are slot+1.
const (
	addressFree     int32 = 0
	addressReserved int32 = -1 // EC2's own five
	addressStranger int32 = -2 // something else in the VPC, see DrainSubnet
	addressHeld     int32 = -3 // was just freed
	addressSetAside int32 = -4 // in a CIDR reservation: for those who ask for exactly it
)

// subnet owns addresses. They are offsets from the network's own address, sixteen bits at most because
// EC2's largest subnet is a /16. The tables reach only as far as addresses have ever been given away, so
// that cloning a large and empty subnet costs nothing.
type subnet struct {
	id         SubnetID
	vpc        int32
	tags       []Tag // never written to, only replaced
	cidr       netip.Prefix
	zone       string
	base, mask uint32
	size       int // of the CIDR; 0 for a subnet that cannot have addresses

	owner []int32 // by offset; what lies beyond is fresh: free, and never used before
	// The free addresses that are not fresh are a ring, longest free first, threaded through next and
	// prev. Offset 0 is reserved in any subnet and serves as the ring's head. A ring, because an address
	// that was just freed must be the last to come back, and because one in the middle can be asked for.
	next, prev []uint16
	free       int // fresh ones included
	history    freeHistory

	aside     []netip.Prefix // CIDR reservations; shared, never written to
	held      []heldAddress  // in order of release
	strangers []uint16       // a stack, so that DrainSubnet can be undone
}

type heldAddress struct {
	at     time.Duration // when it becomes free
	offset uint16
}

// newSubnet makes all addresses free but the first four and the last ("Subnet sizing") and those of reservations.
func newSubnet(id SubnetID, cidr netip.Prefix, zone string, aside []netip.Prefix) subnet {
	s := subnet{id: id, cidr: cidr, zone: zone, aside: aside}
	if !usableCIDR(cidr) {
		return s
	}
	s.cidr = cidr.Masked()
	s.size = 1 << (32 - cidr.Bits())
	s.mask = ^uint32(s.size - 1)
	s.base = word(s.cidr.Addr())
	s.owner = []int32{addressReserved, addressReserved, addressReserved, addressReserved}
	s.next, s.prev = make([]uint16, 4), make([]uint16, 4)
	s.free = s.size - 5
	for _, p := range aside {
		for a := p.Masked().Addr(); p.Contains(a); a = a.Next() {
			if o, ok := s.offset(a); ok && s.ownerOf(o) == addressFree {
				s.take(o, addressSetAside)
			}
		}
	}
	return s
}

// reserved says whether an address is in a CIDR reservation.
func (s *subnet) reserved(o uint16) bool {
	a := s.addr(o)
	return slices.ContainsFunc(s.aside, func(p netip.Prefix) bool { return p.Contains(a) })
}

func (s *subnet) clone() subnet {
	n := *s
	n.owner, n.next, n.prev = slices.Clone(s.owner), slices.Clone(s.next), slices.Clone(s.prev)
	n.held, n.strangers = slices.Clone(s.held), slices.Clone(s.strangers)
	return n
}

// word is an IPv4 address as a number.
func word(a netip.Addr) uint32 {
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// addr is the address at an offset.
func (s *subnet) addr(offset uint16) netip.Addr {
	v := s.base + uint32(offset)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// offset is where a lies in the subnet.
func (s *subnet) offset(a netip.Addr) (uint16, bool) {
	if s.size == 0 || !a.Is4() {
		return 0, false
	}
	v := word(a)
	return uint16(v &^ s.mask), v&s.mask == s.base
}

// ownerOf is who has the address at an offset.
func (s *subnet) ownerOf(o uint16) int32 {
	switch {
	case int(o) < len(s.owner):
		return s.owner[o]
	case int(o) == s.size-1:
		return addressReserved
	}
	return addressFree
}

// link makes o the last in the ring.
func (s *subnet) link(o uint16) {
	last := s.prev[0]
	s.next[last], s.prev[o] = o, last
	s.next[o], s.prev[0] = 0, o
	s.owner[o] = addressFree
}

// pushFree makes an address that somebody had the last of the free ones, unless it goes back to its reservation.
func (s *subnet) pushFree(o uint16) {
	if len(s.aside) > 0 && s.reserved(o) {
		s.owner[o] = addressSetAside
		return
	}
	s.link(o)
	s.free++
}

// take gives an address that is free, or in a reservation, to an owner.
func (s *subnet) take(o uint16, owner int32) {
	if s.ownerOf(o) == addressSetAside {
		s.owner[o] = owner
		return
	}
	for int(o) >= len(s.owner) { // o is fresh: it and the fresh ones before it enter the tables
		s.owner, s.next, s.prev = append(s.owner, addressFree), append(s.next, 0), append(s.prev, 0)
		s.link(uint16(len(s.owner) - 1))
	}
	s.next[s.prev[o]], s.prev[s.next[o]] = s.next[o], s.prev[o]
	s.owner[o] = owner
	s.free--
}

// pop gives away the address that has been free for longest; the caller has looked at s.free.
func (s *subnet) pop(owner int32) uint16 {
	o := s.next[0]
	if fresh := len(s.owner); fresh < s.size-1 {
		o = uint16(fresh)
	}
	s.take(o, owner)
	return o
}

// hold takes an address from its owner and makes it free at an instant to come.
func (s *subnet) hold(o uint16, until time.Duration) {
	s.owner[o] = addressHeld
	if n := len(s.held); n > 0 {
		until = max(until, s.held[n-1].at) // keeps the queue in order
	}
	s.held = append(s.held, heldAddress{until, o})
}

// release frees the held addresses whose time has come.
func (s *subnet) release(now time.Duration) {
	n := 0
	for n < len(s.held) && s.held[n].at <= now {
		s.pushFree(s.held[n].offset)
		n++
	}
	s.held = s.held[n:]
}

// subnetIndex finds a subnet by ID, -1 if there is none. Subnets are a handful: a scan beats a map.
func (c *Cloud) subnetIndex(id SubnetID) int32 {
	for i := range c.subnets {
		if c.subnets[i].id == id {
			return int32(i)
		}
	}
	return -1
}

// locate finds an address's subnet and offset.
func (c *Cloud) locate(a netip.Addr) (*subnet, uint16, bool) {
	for i := range c.subnets {
		if o, ok := c.subnets[i].offset(a); ok {
			return &c.subnets[i], o, true
		}
	}
	return nil, 0, false
}

// available says whether an address can be had by who asks for exactly it.
func (s *subnet) available(a netip.Addr) bool {
	o, ok := s.offset(a)
	if !ok {
		return false
	}
	owner := s.ownerOf(o)
	return owner == addressFree || owner == addressSetAside
}

// asideOf is how many of the addresses come from a reservation, and not from what is free for all.
func (s *subnet) asideOf(list ...netip.Addr) (n int) {
	for _, a := range list {
		if o, ok := s.offset(a); ok && s.ownerOf(o) == addressSetAside {
			n++
		}
	}
	return n
}
