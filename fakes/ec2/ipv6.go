package ec2

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// "Subnet CIDR blocks" of the VPC user guide: a subnet's IPv6 CIDR is a /64, whose first four addresses and whose last one are EC2's
// own. "Assigning prefixes to network interfaces": an IPv6 prefix is a /80 on its own boundary.
const (
	subnet6Bits = 64
	prefix6Bits = 80
)

// drawsOf6 bounds how often a random address or prefix is drawn before they are looked through in order: with a subnet a thousandth
// full, so many draws all fail in none of 10^190 cases.
const drawsOf6 = 64

// subnet6 owns a subnet's IPv6 addresses, by their lower halves. There are too many for tables: what is free is in no map.
type subnet6 struct {
	cidr   netip.Prefix // the zero Prefix: none
	high   uint64       // the upper half of all addresses
	owner  map[uint64]int32
	blocks map[uint16]block6
	held   []held6 // in order of release
}

// block6 is what happens in one of the subnet's 65,536 /80s.
type block6 struct {
	owner     int32 // who has it as a prefix
	addresses int32 // how many single addresses of it are not free
}

// held6 is an address, or with block a whole /80, that was just freed.
type held6 struct {
	at    time.Duration
	low   uint64
	block bool
}

// usable6 says whether EC2 would give a subnet this IPv6 CIDR.
func usable6(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is6() && !p.Addr().Is4In6() && p.Bits() == subnet6Bits
}

func newSubnet6(p netip.Prefix) subnet6 {
	if !usable6(p) {
		return subnet6{}
	}
	p = p.Masked()
	high, _ := halves(p.Addr())
	return subnet6{cidr: p, high: high}
}

func (s *subnet6) clone() subnet6 {
	n := *s
	n.owner, n.blocks, n.held = maps.Clone(s.owner), maps.Clone(s.blocks), slices.Clone(s.held)
	return n
}

// halves are an IPv6 address as two numbers.
func halves(a netip.Addr) (high, low uint64) {
	b := a.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// addr is the address with that lower half.
func (s *subnet6) addr(low uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], s.high)
	binary.BigEndian.PutUint64(b[8:], low)
	return netip.AddrFrom16(b)
}

// prefix is the /80 with that number.
func (s *subnet6) prefix(block uint16) netip.Prefix {
	return netip.PrefixFrom(s.addr(uint64(block)<<48), prefix6Bits)
}

// low is where an address lies in the subnet.
func (s *subnet6) low(a netip.Addr) (uint64, bool) {
	if !s.cidr.IsValid() || !a.Is6() || a.Is4In6() || a.Zone() != "" {
		return 0, false
	}
	high, low := halves(a)
	return low, high == s.high
}

// blockOf is the /80 an address lies in.
func blockOf(low uint64) uint16 { return uint16(low >> 48) }

// reserved6 says whether an address is one of EC2's own.
func reserved6(low uint64) bool { return low < 4 || low == 1<<64-1 }

// ownerOf is who has an address, by itself or in a prefix.
func (s *subnet6) ownerOf(low uint64) int32 {
	if reserved6(low) {
		return addressReserved
	}
	if b := s.blocks[blockOf(low)]; b.owner != addressFree {
		return b.owner
	}
	return s.owner[low]
}

// blockFree says whether a /80 can be assigned: neither it nor an address of it is in use, by EC2 either.
func (s *subnet6) blockFree(block uint16) bool {
	return block != 0 && block != 1<<16-1 && s.blocks[block] == block6{}
}

// take gives a free address to an owner.
func (s *subnet6) take(low uint64, owner int32) {
	if s.owner == nil {
		s.owner = map[uint64]int32{}
	}
	s.owner[low] = owner
	s.count(blockOf(low), 1)
}

// count adds to the single addresses of a /80 that are not free.
func (s *subnet6) count(block uint16, n int32) {
	b := s.blocks[block]
	b.addresses += n
	s.setBlock(block, b)
}

// setBlock keeps only blocks of which there is something to tell.
func (s *subnet6) setBlock(block uint16, b block6) {
	if b == (block6{}) {
		delete(s.blocks, block)
		return
	}
	if s.blocks == nil {
		s.blocks = map[uint16]block6{}
	}
	s.blocks[block] = b
}

// takeBlock gives a free /80 to an owner.
func (s *subnet6) takeBlock(block uint16, owner int32) { s.setBlock(block, block6{owner: owner}) }

// hold takes an address from its owner and makes it free at an instant to come.
func (s *subnet6) hold(low uint64, until time.Duration) {
	s.owner[low] = addressHeld
	s.queue(held6{until, low, false})
}

// holdBlock does the same with a /80.
func (s *subnet6) holdBlock(block uint16, until time.Duration) {
	s.takeBlock(block, addressHeld)
	s.queue(held6{until, uint64(block) << 48, true})
}

func (s *subnet6) queue(h held6) {
	if n := len(s.held); n > 0 {
		h.at = max(h.at, s.held[n-1].at) // keeps the queue in order
	}
	s.held = append(s.held, h)
}

// release frees what is held and whose time has come.
func (s *subnet6) release(now time.Duration) {
	n := 0
	for n < len(s.held) && s.held[n].at <= now {
		h := s.held[n]
		if h.block {
			s.setBlock(blockOf(h.low), block6{})
		} else {
			delete(s.owner, h.low)
			s.count(blockOf(h.low), -1)
		}
		n++
	}
	s.held = s.held[n:]
}

// drawAddresses finds n addresses that are free and not among except. Nothing is taken yet. What it draws is random all over the
// subnet, as EC2's own choice is.
func (s *subnet6) drawAddresses(n int, rand *stream, except []uint64) ([]uint64, bool) {
	list := make([]uint64, 0, n)
	ok := func(low uint64) bool {
		return s.ownerOf(low) == addressFree && !slices.Contains(list, low) && !slices.Contains(except, low)
	}
	for len(list) < n {
		low, found := uint64(0), false
		for k := 0; k < drawsOf6 && !found; k++ {
			low = rand.next()
			found = ok(low)
		}
		for b, k := blockOf(low), 0; k < 1<<16 && !found; b, k = b+1, k+1 { // most of it is given away as prefixes
			if s.blocks[b].owner == addressFree {
				low = uint64(b)<<48 | rand.next()>>16
				found = ok(low)
			}
		}
		if !found {
			return nil, false
		}
		list = append(list, low)
	}
	return list, true
}

// drawBlocks finds n /80s that are free, likewise.
func (s *subnet6) drawBlocks(n int, rand *stream) ([]uint16, bool) {
	list := make([]uint16, 0, n)
	for len(list) < n {
		b, found := uint16(0), false
		for k := 0; k < drawsOf6 && !found; k++ {
			b = uint16(rand.next())
			found = s.blockFree(b) && !slices.Contains(list, b)
		}
		for k := 0; k < 1<<16 && !found; k++ {
			b++
			found = s.blockFree(b) && !slices.Contains(list, b)
		}
		if !found {
			return nil, false
		}
		list = append(list, b)
	}
	return list, true
}

// wantedSix is the lower half of an address that is asked for by value, or what speaks against it.
func (s *subnet6) wanted(a netip.Addr, before []uint64) (low uint64, why string) {
	low, ok := s.low(a)
	switch owner := s.ownerOf(low); {
	case !ok:
		return 0, " does not fall within the subnet's address range"
	case owner == addressReserved:
		return 0, " is in the subnet's reserved address range"
	case owner != addressFree:
		return 0, addressTaken
	case slices.Contains(before, low):
		return 0, " was specified twice"
	}
	return low, ""
}

// wantedPrefix is the number of a /80 that is asked for by value, or what speaks against it.
func (s *subnet6) wantedPrefix(p netip.Prefix, before []uint16) (block uint16, why string) {
	if !p.IsValid() || !p.Addr().Is6() || p.Bits() != prefix6Bits || p != p.Masked() {
		return 0, " is not a /" + strconv.Itoa(prefix6Bits)
	}
	low, ok := s.low(p.Addr())
	block = blockOf(low)
	switch {
	case !ok:
		return 0, " does not fall within the subnet's address range"
	case block == 0 || block == 1<<16-1:
		return 0, " is in the subnet's reserved address range"
	case !s.blockFree(block):
		return 0, addressTaken
	case slices.Contains(before, block):
		return 0, " was specified twice"
	}
	return block, ""
}

// asks6 says whether a request is about IPv6 at all.
func (r *Request) asks6() bool {
	return r.IPv6Count != 0 || r.IPv6PrefixCount != 0 || len(r.IPv6) > 0 || len(r.IPv6Prefixes) > 0
}

// chosen6 is what a request for IPv6 gets.
type chosen6 struct {
	six    []uint64
	blocks []uint16
}

// choose6 checks what a request asks for in IPv6, of which an interface has so much and may have so much, and chooses. Nothing is
// taken yet.
func (c *Cloud) choose6(from, sub int32, r *Request, have, limit int) (chosen6, Response) {
	s := &c.subnets[sub].six
	addresses, prefixes := r.IPv6Count != 0 || len(r.IPv6) > 0, r.IPv6PrefixCount != 0 || len(r.IPv6Prefixes) > 0
	n := len(r.IPv6) + len(r.IPv6Prefixes)
	switch {
	case r.IPv6Count < 0 || r.IPv6PrefixCount < 0:
		return chosen6{}, failure(codeValue, "Invalid value for ipv6AddressCount or ipv6PrefixCount: it must not be negative")
	case r.IPv6Count > 0 && len(r.IPv6) > 0: // ansible#40334
		return chosen6{}, failure(codeCombination, "IPv6 addresses and IPv6 address count may not be specified on the same request")
	case r.IPv6PrefixCount > 0 && len(r.IPv6Prefixes) > 0:
		return chosen6{}, failure(codeCombination, "IPv6 prefixes and IPv6 prefix count may not be specified on the same request")
	case addresses && prefixes: // karpenter-provider-aws#2187
		return chosen6{}, failure(codeValue, messageOneOf6)
	case !s.cidr.IsValid():
		return chosen6{}, failure(codeValue, "The subnet '"+string(c.subnets[sub].id)+"' has no IPv6 CIDR block")
	case r.IPv6Count > mostAddresses || r.IPv6PrefixCount > mostAddresses || have+n+r.IPv6Count+r.IPv6PrefixCount > limit:
		return chosen6{}, failure(codeAddressLimit, messageLimit6)
	}
	var out chosen6
	for _, a := range r.IPv6 {
		low, why := s.wanted(a, out.six)
		if why != "" {
			return chosen6{}, failure(codeValue, "Address "+a.String()+why)
		}
		out.six = append(out.six, low)
	}
	for _, q := range r.IPv6Prefixes {
		b, why := s.wantedPrefix(q, out.blocks)
		if why != "" {
			return chosen6{}, failure(codeValue, "Prefix "+q.String()+why)
		}
		out.blocks = append(out.blocks, b)
	}
	ok := true
	if r.IPv6Count > 0 {
		if out.six, ok = s.drawAddresses(r.IPv6Count, c.stream(from), nil); !ok {
			return chosen6{}, failure(codeSubnetFull, c.subnetFull(sub))
		}
	}
	if r.IPv6PrefixCount > 0 {
		if out.blocks, ok = s.drawBlocks(r.IPv6PrefixCount, c.stream(from)); !ok {
			return chosen6{}, failure(codeNoBlocks, messageNoBlocks)
		}
	}
	return out, Response{}
}

// take6 gives an owner what was chosen.
func (s *subnet6) take6(x chosen6, owner int32) {
	for _, low := range x.six {
		s.take(low, owner)
	}
	for _, b := range x.blocks {
		s.takeBlock(b, owner)
	}
}

// assign6 adds IPv6 addresses or prefixes. Repeating it adds more.
func (c *Cloud) assign6(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	if !r.asks6() {
		return missing("ipv6AddressCount, ipv6Addresses, ipv6PrefixCount or ipv6Prefixes")
	}
	e := &c.enis[slot]
	s := &c.subnets[e.subnet].six
	got, p := c.choose6(from, e.subnet, r, e.places6(), c.addressLimit6(e))
	if p.Code != "" {
		return p
	}
	s.take6(got, slot+1)
	x := e.extra()
	x.six, x.prefixes6 = append(slices.Clip(x.six), got.six...), append(slices.Clip(x.prefixes6), got.blocks...)
	c.setExtras(e, x, c.stream(from).draw(c.cfg.Lag.IMDSAddress))
	p = success()
	for _, low := range got.six {
		p.Assigned = append(p.Assigned, s.addr(low))
		c.emitAddress(c.now, AddressAssigned, e, s.addr(low), from)
	}
	for _, b := range got.blocks {
		p.Prefixes = append(p.Prefixes, s.prefix(b))
		c.emitPrefix(PrefixAssigned, e, s.prefix(b), from)
	}
	return p
}

// addressLimit6 is how many IPv6 addresses and prefixes an interface may have: its instance type's limit while it is attached.
func (c *Cloud) addressLimit6(e *eni) int {
	if e.att.instance == none {
		return mostAddresses
	}
	return c.instances[e.att.instance].limits.IPv6PerENI
}

// unassign6 removes IPv6 addresses and prefixes, all or none.
func (c *Cloud) unassign6(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	if len(r.IPv6)+len(r.IPv6Prefixes) == 0 {
		return missing("ipv6Addresses or ipv6Prefixes")
	}
	return c.unassign6From(from, &c.enis[slot], r)
}

// unassign6From removes what a request names from an interface.
func (c *Cloud) unassign6From(from int32, e *eni, r *Request) Response {
	s := &c.subnets[e.subnet].six
	x := e.extra()
	x.six, x.prefixes6 = slices.Clone(x.six), slices.Clone(x.prefixes6)
	for _, a := range r.IPv6 {
		low, ok := s.low(a)
		at := slices.Index(x.six, low)
		if !ok || at < 0 {
			return failure(codeValue, "Some of the specified addresses are not assigned to interface "+string(r.ENI))
		}
		x.six = slices.Delete(x.six, at, at+1)
	}
	for _, q := range r.IPv6Prefixes {
		low, ok := s.low(q.Addr())
		at := slices.Index(x.prefixes6, blockOf(low))
		if !ok || at < 0 || q != s.prefix(blockOf(low)) {
			return failure(codeValue, "Some of the specified prefixes are not assigned to interface "+string(r.ENI))
		}
		x.prefixes6 = slices.Delete(x.prefixes6, at, at+1)
	}
	c.remove6(e, x, r.IPv6, r.IPv6Prefixes, from)
	return success()
}

// remove6 makes x the interface's extras; gone is what x lacks.
func (c *Cloud) remove6(e *eni, x extras, gone []netip.Addr, blocks []netip.Prefix, by int32) {
	s := &c.subnets[e.subnet].six
	until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress)
	for _, a := range gone {
		low, _ := s.low(a)
		s.hold(low, until)
		c.emitAddress(c.now, AddressUnassigned, e, a, by)
	}
	for _, q := range blocks {
		low, _ := s.low(q.Addr())
		s.holdBlock(blockOf(low), until)
		c.emitPrefix(PrefixUnassigned, e, q, by)
	}
	c.setExtras(e, x, c.stream(by).draw(c.cfg.Lag.IMDSAddress))
}
