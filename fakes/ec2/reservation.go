package ec2

import (
	"fmt"
	"net/netip"
)

// Reservation is a subnet's CIDR reservation as an answer shows it.
type Reservation struct {
	ID     string
	Subnet SubnetID
	CIDR   netip.Prefix
	Type   string // "explicit" or "prefix"
}

// subnetReservations answers for one subnet: explicit reservations first, each kind in the order of the configuration.
func (c *Cloud) subnetReservations(r *Request) Response {
	if r.Subnet == "" {
		return missing("SubnetId")
	}
	n := c.subnetIndex(r.Subnet)
	if n == none {
		return noSuchSubnet(r.Subnet)
	}
	p := success()
	s := &c.subnets[n]
	add := func(kind string, list []netip.Prefix) {
		for _, cidr := range list {
			id := c.reservationNames.name(cidrPrefix, int(n)*maxReservations+len(p.Reservations))
			p.Reservations = append(p.Reservations, Reservation{id, s.id, cidr, kind})
		}
	}
	add("explicit", s.aside)
	add("prefix", s.forPrefix)
	return p
}

// maxReservations is more than fit into a subnet, of 65,536 addresses at most: their numbers do not meet those of
// another subnet.
const maxReservations = 1 << 17

// setAside gives the addresses of reservations that are free to their home, which is none of the free ones.
func (s *subnet) setAside(reservations []netip.Prefix, home int32) {
	for _, p := range reservations {
		for a := p.Masked().Addr(); p.Contains(a); a = a.Next() {
			o, ok := s.offset(a)
			if !ok || s.ownerOf(o) != addressFree {
				continue
			}
			s.take(o, home)
			if home == addressForPrefix {
				s.busy[o/prefixSize]-- // waits there to be given away
			}
		}
	}
}

// homeOf is what becomes of an address that is given back: free, or back in its reservation.
func (s *subnet) homeOf(o uint16) int32 {
	if len(s.aside)+len(s.forPrefix) == 0 {
		return addressFree
	}
	a := s.addr(o)
	for _, p := range s.aside {
		if p.Contains(a) {
			return addressSetAside
		}
	}
	for _, p := range s.forPrefix {
		if p.Contains(a) {
			return addressForPrefix
		}
	}
	return addressFree
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

// checkReservations says what is wrong with a subnet's reservations, i being its place in the Config.
func (s *SubnetConfig) checkReservations(i int) error {
	all := make([]netip.Prefix, 0, len(s.Reservations)+len(s.PrefixReservations))
	all = append(append(all, s.Reservations...), s.PrefixReservations...)
	for k, r := range all {
		if !r.IsValid() || r.Bits() < s.CIDR.Bits() || !s.CIDR.Contains(r.Addr()) {
			return fmt.Errorf("ec2 config: subnet %d: reservation %v does not lie in %v: cut it out of the subnet", i, r, s.CIDR)
		}
		if k >= len(s.Reservations) && r.Bits() > prefixBits {
			return fmt.Errorf("ec2 config: subnet %d: reservation %v of type prefix holds no /%d: make it larger", i, r, prefixBits)
		}
		for _, o := range all[:k] {
			if r.Overlaps(o) {
				return fmt.Errorf("ec2 config: subnet %d: reservation %v overlaps %v: cut them apart", i, r, o)
			}
		}
	}
	return nil
}

// checkIPv6 says what is wrong with a subnet's IPv6 CIDR: before are the subnets that came earlier in the Config.
func (s *SubnetConfig) checkIPv6(cfg *Config, i int) error {
	if s.IPv6 == (netip.Prefix{}) {
		return nil
	}
	if !usable6(s.IPv6) {
		return fmt.Errorf("ec2 config: subnet %d: %v is not an IPv6 /64: give one", i, s.IPv6)
	}
	v := cfg.vpcOf(s.VPC)
	in := false
	for _, p := range v.IPv6 {
		in = in || p.Bits() <= s.IPv6.Bits() && p.Contains(s.IPv6.Addr())
	}
	if !in {
		return fmt.Errorf("ec2 config: subnet %d: %v lies in none of the VPC's %v: add its IPv6 CIDR to the VPC", i, s.IPv6, v.IPv6)
	}
	for j := range cfg.Subnets[:i] {
		if o := &cfg.Subnets[j]; o.IPv6.IsValid() && o.IPv6.Overlaps(s.IPv6) {
			return fmt.Errorf("ec2 config: subnet %d: %v overlaps %v of subnet %d: IPv6 addresses are global, cut them apart", i, s.IPv6, o.IPv6, j)
		}
	}
	return nil
}
