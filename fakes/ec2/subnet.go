package ec2

import (
	"net/netip"
	"slices"
	"time"
)

// Who an address belongs to that no interface has. Interfaces are slot+1.
const (
	addressFree       int32 = 0
	addressReserved   int32 = -1 // EC2's own five
	addressThirdParty int32 = -2 // something else in the VPC, see DrainSubnet
	addressHeld       int32 = -3 // was just freed
	addressSetAside   int32 = -4 // in an explicit CIDR reservation: for those who ask for exactly it
	addressForPrefix  int32 = -5 // in a CIDR reservation of type prefix: for prefixes only
)

// subnet owns addresses. They are offsets from the network's own address, sixteen bits at most because
// EC2's largest subnet is a /16. The tables reach only as far as addresses have ever been given away, so
// that cloning a large and empty subnet costs nothing.
type subnet struct {
	id         SubnetID
	vpc        int32
	tags       []Tag         // never written to, only replaced
	tagged     time.Duration // when a third party changed them last; never: none has
	gone       bool          // deleted; it keeps its place in Cloud.subnets
	goneAt     time.Duration
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
	// busy counts, for each aligned /28 that the tables have reached, the addresses that keep it from being given away as a prefix:
	// those that are not free or, in a reservation of type prefix, that are not there any more. Bytes, so that the search for a
	// block without any is one instruction for many.
	busy []uint8
	turn int // where the next search for such a block begins: behind the last one that was given away

	aside     []netip.Prefix // explicit CIDR reservations; shared, never written to
	forPrefix []netip.Prefix // those of type prefix, likewise
	held      []heldAddress  // in order of release
	drained   []uint16       // a stack, so that DrainSubnet can be undone
	six       subnet6
}

type heldAddress struct {
	at     time.Duration // when it becomes free
	offset uint16
}

// newSubnet makes all addresses free but the first four and the last ("Subnet sizing") and those of reservations.
func newSubnet(id SubnetID, zone string, cfg *SubnetConfig) subnet {
	s := subnet{id: id, cidr: cfg.CIDR, zone: zone, aside: cfg.Reservations, forPrefix: cfg.PrefixReservations, six: newSubnet6(cfg.IPv6)}
	if !usableCIDR(cfg.CIDR) {
		return s
	}
	s.cidr = cfg.CIDR.Masked()
	s.size = 1 << (32 - cfg.CIDR.Bits())
	s.mask = ^uint32(s.size - 1)
	s.base = word(s.cidr.Addr())
	s.free = s.size - 1 // the last one never enters the tables
	for o := range uint16(4) {
		s.take(o, addressReserved)
	}
	s.setAside(s.aside, addressSetAside)
	s.setAside(s.forPrefix, addressForPrefix)
	return s
}

func (s *subnet) clone() subnet {
	n := *s
	n.owner, n.busy = slices.Clone(s.owner), slices.Clone(s.busy)
	links, k := slices.Concat(s.next, s.prev), len(s.next) // one allocation for both
	n.next, n.prev = links[:k:k], links[k:]
	n.held, n.drained = slices.Clone(s.held), slices.Clone(s.drained)
	if s.six.blocks != nil { // something of it is or was not free
		n.six = s.six.clone()
	}
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

// pushFree makes an address that was in use the last of the free ones, unless it goes back to its reservation.
func (s *subnet) pushFree(o uint16) {
	if home := s.homeOf(o); home != addressFree {
		s.owner[o] = home
		if home == addressForPrefix {
			s.busy[o>>4]--
		}
		return
	}
	s.link(o)
	s.busy[o>>4]--
	s.free++
}

// take gives an address that is free, or in a reservation, to an owner.
func (s *subnet) take(o uint16, owner int32) {
	switch s.ownerOf(o) {
	case addressSetAside: // has made its block busy already
		s.owner[o] = owner
		return
	case addressForPrefix:
		s.owner[o] = owner
		s.busy[o>>4]++
		return
	}
	for int(o) >= len(s.owner) { // o is fresh: it and the fresh ones before it enter the tables
		s.enter()
	}
	s.next[s.prev[o]], s.prev[s.next[o]] = s.next[o], s.prev[o]
	s.owner[o] = owner
	s.busy[o>>4]++
	s.free--
}

// enter makes the first of the fresh addresses one that the tables know.
func (s *subnet) enter() {
	n := len(s.owner)
	s.owner, s.next, s.prev = append(s.owner, addressFree), append(s.next, 0), append(s.prev, 0)
	s.link(uint16(n))
	if n%prefixSize == 0 {
		s.busy = append(s.busy, 0)
		if n+prefixSize == s.size {
			s.busy[n/prefixSize] = 1 // the subnet's last address
		}
	}
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
	if len(s.six.held) > 0 {
		s.six.release(now)
	}
}

// known says whether a replica of that instant has the subnet.
func (s *subnet) known(at time.Duration) bool { return !s.gone || at < s.goneAt }

// deleteSubnet deletes a subnet without addresses in use.
func (c *Cloud) deleteSubnet(r *Request) Response {
	if r.Subnet == "" {
		return missing("SubnetId")
	}
	n := c.subnetIndex(r.Subnet)
	if n == none {
		return noSuchSubnet(r.Subnet)
	}
	s := &c.subnets[n]
	used := len(s.drained) > 0
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		used = used || c.enis[slot].subnet == n && !c.enis[slot].dead
	}
	if used {
		return failure(codeDependency, "The subnet '"+string(s.id)+"' has dependencies and cannot be deleted.")
	}
	s.gone, s.goneAt = true, c.now
	return success()
}

// subnetIndex finds a subnet by ID, -1 if there is none. Subnets are a handful: a scan beats a map.
func (c *Cloud) subnetIndex(id SubnetID) int32 {
	for i := range c.subnets {
		if c.subnets[i].id == id && !c.subnets[i].gone {
			return int32(i)
		}
	}
	return -1
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

// CIDROf is the CIDR of a subnet, which never changes: the zero prefix if there is no such subnet.
func (c *Cloud) CIDROf(id SubnetID) netip.Prefix {
	if n := c.subnetIndex(id); n != none {
		return c.subnets[n].cidr
	}
	return netip.Prefix{}
}
