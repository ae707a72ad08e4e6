package ipam

import (
	"iter"
	"net/netip"
	"slices"
)

// A prefix is a /28 on its own boundary: sixteen addresses that take the place of one on an ENI (EC2 user guide, "Assign
// prefixes to network interfaces").
const (
	prefixBits = 28
	prefixSize = 1 << (32 - prefixBits)
)

// prefixOf is the /28 that an address lies in.
func prefixOf(ip netip.Addr) netip.Prefix { return netip.PrefixFrom(ip, prefixBits).Masked() }

// addressesOf are the sixteen addresses of a prefix, in ascending order.
func addressesOf(p netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		ip := p.Masked().Addr()
		for i := 0; i < prefixSize && yield(ip); i++ {
			ip = ip.Next()
		}
	}
}

// prefixesOf are the prefixes that some addresses lie in, each once, in the order of the addresses.
func prefixesOf(list []netip.Addr) (out []netip.Prefix) {
	for _, ip := range list {
		if p := prefixOf(ip); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// carried are the addresses that an ENI has for pods: secondaries, then those of its prefixes.
func (v *ENI) carried() iter.Seq2[netip.Addr, bool] {
	return func(yield func(ip netip.Addr, prefixed bool) bool) {
		for _, ip := range v.Addresses {
			if !yield(ip, false) {
				return
			}
		}
		for _, p := range v.Prefixes {
			for ip := range addressesOf(p) {
				if !yield(ip, true) {
					return
				}
			}
		}
	}
}

// carries says whether an ENI has an address for pods.
func (v *ENI) carries(ip netip.Addr) bool {
	return slices.Contains(v.Addresses, ip) ||
		slices.ContainsFunc(v.Prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// size is how many addresses an ENI has for pods.
func (v *ENI) size() int { return len(v.Addresses) + prefixSize*len(v.Prefixes) }

// block is a prefix on an ENI, as far as its addresses are in the books.
type block struct {
	Prefix netip.Prefix
	ENI    int32
	Has    [Quarantined + 1]int // its addresses by state
}

// use is what its addresses are.
func (b *block) use() PrefixUse {
	return PrefixUse{Free: b.Has[Free], Cooling: b.Has[Cooling], Held: b.Has[Assigned] + b.Has[Quarantined]}
}

// blocked is what an ENI has in prefixes. It is rebuilt from the addresses, never encoded.
type blocked struct {
	blocks    int // prefixes
	addresses int // addresses of them
	free      int // free ones
	whole     int // prefixes that may be given back
}

// count adds what a block has to what its ENI has, or takes it away.
func (p *pool) count(b *block, sign int) {
	e := &p.enis.ENIs[b.ENI].blocked
	sum := 0
	for _, n := range b.Has {
		sum += n
	}
	if sum == 0 {
		return
	}
	e.blocks += sign
	e.addresses += sign * sum
	e.free += sign * b.Has[Free]
	if p.policy.Idle(b.use()) {
		e.whole += sign
	}
}

// join counts an address in the block that it lies in on its ENI.
func (p *pool) join(ix int32) {
	a := &p.Addrs[ix]
	if !a.Prefixed || a.ENI < 0 {
		return
	}
	want := prefixOf(a.IP)
	at := slices.IndexFunc(p.blocks, func(b block) bool { return b.ENI == a.ENI && b.Prefix == want })
	if at < 0 {
		if at = slices.IndexFunc(p.blocks, func(b block) bool { return b.ENI < 0 }); at < 0 {
			at = len(p.blocks)
			p.blocks = append(p.blocks, block{})
		}
		p.blocks[at] = block{Prefix: want, ENI: a.ENI}
	}
	b := &p.blocks[at]
	p.count(b, -1)
	b.Has[a.State]++
	p.count(b, 1)
	a.block = int32(at) + 1
}

// leave takes an address out of its block.
func (p *pool) leave(ix int32) {
	a := &p.Addrs[ix]
	if a.block == 0 {
		return
	}
	b := &p.blocks[a.block-1]
	p.count(b, -1)
	b.Has[a.State]--
	p.count(b, 1)
	if b.Has == [Quarantined + 1]int{} {
		*b = block{ENI: -1}
	}
	a.block = 0
}

// mark says of an address whether a prefix carries it.
func (p *pool) mark(ix int32, prefixed bool) {
	if a := &p.Addrs[ix]; a.Prefixed != prefixed {
		p.leave(ix)
		a.Prefixed = prefixed
		p.join(ix)
	}
}

// rebuildBlocks counts the blocks anew.
func (p *pool) rebuildBlocks() {
	p.blocks = nil
	for i := range p.enis.ENIs {
		p.enis.ENIs[i].blocked = blocked{}
	}
	for i := range p.Addrs {
		if p.Addrs[i].block = 0; p.Addrs[i].State != 0 {
			p.join(int32(i))
		}
	}
}

// blockOf is the block of an address, nil for one that is by itself.
func (p *pool) blockOf(a *address) *block {
	if a.block == 0 {
		return nil
	}
	return &p.blocks[a.block-1]
}

// better says whether an address is to be given away rather than another one: of the kind that the mode uses, so that the
// other kind can go; and of prefixes the one of which most is in use, so that the others become free.
func (p *pool) better(a, than *address) bool {
	x, y := p.blockOf(a), p.blockOf(than)
	switch {
	case x != nil && y != nil:
		if u, v := x.use(), y.use(); u.Held != v.Held {
			return u.Held > v.Held
		} else {
			return u.Cooling > v.Cooling
		}
	case (x != nil) != (y != nil):
		return (x != nil) == p.delegates()
	}
	return false
}

// delegates says whether slots are to carry prefixes: the setting asks for it, and the instance's type can.
func (l *life) delegates() bool { return l.Set.PrefixDelegation && l.Inst.Limits.Prefixes }

// idle says whether nobody has an address of a prefix that an ENI has: what the books have of it is free, and there.
func (p *pool) idle(prefix netip.Prefix, ix int32) bool {
	for ip := range addressesOf(prefix) {
		if i, known := p.byAddress[ip]; known && (p.Addrs[i].State != Free || p.Addrs[i].ENI != ix) {
			return false
		}
	}
	return true
}

// wholly are those of some addresses whose prefixes are among them with all sixteen addresses.
func (p *pool) wholly(list []netip.Addr) (out []netip.Addr) {
	for _, prefix := range prefixesOf(list) {
		in := 0
		for _, ip := range list {
			if prefix.Contains(ip) {
				in++
			}
		}
		if in == prefixSize {
			out = slices.AppendSeq(out, addressesOf(prefix))
		}
	}
	return out
}
