package ec2

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// "Assigning prefixes to network interfaces" of the EC2 user guide: an IPv4 prefix is a /28 on its own boundary. It takes the place of
// one address in an interface's limit and of sixteen in the subnet.
const (
	prefixBits = 28
	prefixSize = 16
)

// extras are what an interface has beside its IPv4 addresses, each in order of assignment.
type extras struct {
	prefixes  []uint16 // of each the first offset in the subnet
	six       []uint64 // the lower halves of IPv6 addresses
	prefixes6 []uint16 // the 16 bits by which a /80 differs from its subnet
}

func (x *extras) none() bool { return len(x.prefixes)+len(x.six)+len(x.prefixes6) == 0 }

// extraVersion is an interface's extras since an instant. It never changes once made.
type extraVersion struct {
	at     time.Duration // when it became the truth
	imdsAt time.Duration // when metadata shows it
	extras
}

// extra is what the interface truly has beside its IPv4 addresses.
func (e *eni) extra() extras {
	if n := len(e.extras); n > 0 {
		return e.extras[n-1].extras
	}
	return extras{}
}

// extraAt is the same as a replica of that instant knows it.
func (e *eni) extraAt(at time.Duration) extras {
	for k := len(e.extras) - 1; k >= 0; k-- {
		if e.extras[k].at <= at || k == 0 && e.extras[0].at == e.created {
			return e.extras[k].extras
		}
	}
	return extras{}
}

// extraShown is the same as metadata shows it.
func (e *eni) extraShown(now time.Duration) extras {
	for k := len(e.extras) - 1; k >= 0; k-- {
		if e.extras[k].imdsAt <= now {
			return e.extras[k].extras
		}
	}
	return extras{}
}

// setExtras makes x the truth now; metadata follows after lag, but never out of order.
func (c *Cloud) setExtras(e *eni, x extras, lag time.Duration) {
	shown := c.now + lag
	keep := 0 // drop what neither metadata nor the most stale read can still show
	for k, v := range e.extras {
		shown = max(shown, v.imdsAt)
		if v.imdsAt <= c.now && v.at <= c.now-c.cfg.Lag.Describe.Max {
			keep = k
		}
	}
	list := make([]extraVersion, 0, len(e.extras)-keep+1)
	list = append(list, e.extras[keep:]...)
	if keep > 0 { // a read that is staler than what is kept shows the oldest of that, and not that there was nothing
		list[0].at = e.created
	}
	e.extras = append(list, extraVersion{c.now, shown, x})
}

// places is how much of its IPv4 limit an interface uses.
func (e *eni) places() int {
	n := len(e.current())
	if len(e.extras) > 0 {
		n += len(e.extra().prefixes)
	}
	return n
}

// places6 is how much of its IPv6 limit an interface uses.
func (e *eni) places6() int {
	x := e.extra()
	return len(x.six) + len(x.prefixes6)
}

// prefix is the /28 at an offset.
func (s *subnet) prefix(o uint16) netip.Prefix { return netip.PrefixFrom(s.addr(o), prefixBits) }

// wantedPrefix is the offset of a prefix that is asked for by value, or what speaks against it.
func (s *subnet) wantedPrefix(p netip.Prefix, before []uint16) (o uint16, why string) {
	if !p.IsValid() || !p.Addr().Is4() || p.Bits() != prefixBits || p != p.Masked() {
		return 0, " is not a /" + strconv.Itoa(prefixBits)
	}
	o, ok := s.offset(p.Addr())
	if !ok {
		return 0, " does not fall within the subnet's address range"
	}
	for k := range uint16(prefixSize) {
		switch s.ownerOf(o + k) {
		case addressReserved:
			return 0, " is in the subnet's reserved address range"
		case addressFree, addressSetAside, addressForPrefix:
		default:
			return 0, addressTaken
		}
	}
	if slices.Contains(before, o) {
		return 0, " was specified twice"
	}
	return o, ""
}

// chooseBlocks finds n blocks of which no address is in use, and that hold none of except: those of reservations for
// prefixes first, then what was never used, then what has been free for a while. Nothing is taken yet.
func (s *subnet) chooseBlocks(n int, except []uint16) ([]uint16, bool) {
	list := make([]uint16, 0, n)
	try := func(b int) {
		o := uint16(b * prefixSize)
		in := func(x uint16) bool { return x/prefixSize == o/prefixSize }
		if !slices.Contains(list, o) && !slices.ContainsFunc(except, in) {
			list = append(list, o)
		}
	}
	among := func(from, to int) { // blocks that the tables know
		for from < to && len(list) < n {
			at := bytes.IndexByte(s.busy[from:to], 0)
			if at < 0 {
				return
			}
			try(from + at)
			from += at + 1
		}
	}
	for _, p := range s.forPrefix {
		if o, ok := s.offset(p.Masked().Addr()); ok {
			from := int(o) / prefixSize
			among(min(from, len(s.busy)), min(from+1<<max(0, prefixBits-p.Bits()), len(s.busy)))
		}
	}
	for b := len(s.busy); b < s.size/prefixSize-1 && len(list) < n; b++ { // the last one has the last address
		try(b)
	}
	turn := min(s.turn, len(s.busy))
	among(turn, len(s.busy))
	among(0, turn)
	return list, len(list) == n
}

// generalIn is how many of the blocks' addresses are among the free ones, and not in a reservation.
func (s *subnet) generalIn(blocks []uint16) (n int) {
	for _, o := range blocks {
		for k := range uint16(prefixSize) {
			if s.ownerOf(o+k) == addressFree {
				n++
			}
		}
	}
	return n
}

// takeBlocks gives blocks to an owner.
func (s *subnet) takeBlocks(blocks []uint16, owner int32) {
	for _, o := range blocks {
		for k := range uint16(prefixSize) {
			s.take(o+k, owner)
		}
		s.turn = int(o)/prefixSize + 1
	}
}

// holdBlock takes a block from its owner and makes it free at an instant to come.
func (s *subnet) holdBlock(o uint16, until time.Duration) {
	for k := range uint16(prefixSize) {
		s.hold(o+k, until)
	}
}

// choosePrefixes are the blocks that a request asks for: so many, or exactly these. Nothing is taken yet.
func (c *Cloud) choosePrefixes(sub int32, r *Request, except []uint16) ([]uint16, Response) {
	s := &c.subnets[sub]
	if r.PrefixCount > 0 {
		list, ok := s.chooseBlocks(r.PrefixCount, except)
		switch {
		case ok:
			return list, Response{}
		case c.cfg.FullIsInvalidValue && s.free < r.PrefixCount*prefixSize:
			return nil, failure(codeValue, "There aren't sufficient free Ipv4 addresses or prefixes")
		}
		return nil, failure(codeNoBlocks, messageNoBlocks)
	}
	var list []uint16
	for _, p := range r.Prefixes {
		o, why := s.wantedPrefix(p, list)
		if why == "" && slices.ContainsFunc(except, func(x uint16) bool { return x/prefixSize == o/prefixSize }) {
			why = addressTaken
		}
		if why != "" {
			return nil, failure(codeValue, "Prefix "+p.String()+why)
		}
		list = append(list, o)
	}
	return list, Response{}
}

// assignPrefixes adds IPv4 prefixes. Repeating it adds more.
func (c *Cloud) assignPrefixes(from, slot int32, r *Request) Response {
	e := &c.enis[slot]
	s := &c.subnets[e.subnet]
	n := r.PrefixCount + len(r.Prefixes)
	if n > mostAddresses || e.places()+n > c.addressLimit(e) {
		return failure(codeAddressLimit, messageLimit)
	}
	list, p := c.choosePrefixes(e.subnet, r, nil)
	if p.Code != "" {
		return p
	}
	s.takeBlocks(list, slot+1)
	x := e.extra()
	x.prefixes = append(slices.Clip(x.prefixes), list...)
	c.setExtras(e, x, c.stream(from).draw(c.cfg.Lag.IMDSAddress))
	p = success()
	for _, o := range list {
		p.Prefixes = append(p.Prefixes, s.prefix(o))
		c.emitPrefix(PrefixAssigned, e, s.prefix(o), from)
	}
	return p
}

// unassignPrefixes removes IPv4 prefixes, all or none.
func (c *Cloud) unassignPrefixes(from int32, e *eni, r *Request) Response {
	s := &c.subnets[e.subnet]
	list := slices.Clone(e.extra().prefixes)
	for _, p := range r.Prefixes {
		o, ok := s.offset(p.Addr())
		at := slices.Index(list, o)
		if !ok || at < 0 || p.Bits() != prefixBits {
			return failure(codeValue, "Some of the specified prefixes are not assigned to interface "+string(r.ENI))
		}
		list = slices.Delete(list, at, at+1)
	}
	c.removePrefixes(e, list, r.Prefixes, from)
	return success()
}

// removePrefixes makes list the interface's prefixes; gone are those that list lacks.
func (c *Cloud) removePrefixes(e *eni, list []uint16, gone []netip.Prefix, by int32) {
	s := &c.subnets[e.subnet]
	until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress)
	for _, p := range gone {
		o, _ := s.offset(p.Addr())
		s.holdBlock(o, until)
		c.emitPrefix(PrefixUnassigned, e, p, by)
	}
	x := e.extra()
	x.prefixes = list
	c.setExtras(e, x, c.stream(by).draw(c.cfg.Lag.IMDSAddress))
}

// releaseExtras gives back all that a deleted interface had beside its IPv4 addresses.
func (c *Cloud) releaseExtras(e *eni, until time.Duration) {
	s, x := &c.subnets[e.subnet], e.extra()
	for _, o := range x.prefixes {
		s.holdBlock(o, until)
	}
	for _, low := range x.six {
		s.six.hold(low, until)
	}
	for _, b := range x.prefixes6 {
		s.six.holdBlock(b, until)
	}
}

// FragmentSubnet has third parties take one address of every aligned /28 that could be given away as a prefix, until
// `leave` such blocks are left. What DrainSubnet gives back begins with these.
func (c *Cloud) FragmentSubnet(now time.Duration, id SubnetID, leave int) {
	c.Advance(now)
	n := c.subnetIndex(id)
	if n == none || c.subnets[n].size == 0 {
		return
	}
	s := &c.subnets[n]
	most := s.size / prefixSize
	list, _ := s.chooseBlocks(most, nil)
	for len(list) > max(leave, 0) {
		o := list[len(list)-1]
		list = list[:len(list)-1]
		if s.ownerOf(o) != addressFree {
			continue // a reservation keeps third parties out
		}
		s.take(o, addressThirdParty)
		s.drained = append(s.drained, o)
	}
}

// FreePrefixes is how many /28 prefixes a subnet could give away now: -1 if there is no such subnet.
func (c *Cloud) FreePrefixes(id SubnetID) int {
	n := c.subnetIndex(id)
	if n == none {
		return -1
	}
	s := &c.subnets[n]
	return bytes.Count(s.busy, []byte{0}) + max(0, s.size/prefixSize-1-len(s.busy))
}
