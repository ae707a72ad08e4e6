package ec2

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// mostAddresses is the largest addresses-per-interface limit of any instance type. CreateNetworkInterface
// knows no instance and checks nothing smaller: what is too much for the instance is refused at Attach
// (cilium#9730).
const mostAddresses = 50

// mostGroups is the default quota of security groups per interface.
const mostGroups = 5

// tokenLife is how long a client token is remembered after its interface is gone.
const tokenLife = 24 * time.Hour

// tokenUse is what a client token was used for.
type tokenUse struct {
	sum  uint64 // of the parameters
	slot int32  // none once the interface is gone
	past int32  // which one of all past tokens it is then; tells where in Cloud.past it is
}

// pastToken is a client token whose interface is gone, to be forgotten in time.
type pastToken struct {
	until time.Duration
	token string
	made  ENI // the interface as it last was
}

func (c *Cloud) create(from int32, r *Request) Response {
	if r.ClientToken != "" {
		if p, again := c.repeated(r); again {
			return p
		}
	}
	if r.Subnet == "" {
		return missing("subnetId")
	}
	sub := c.subnetIndex(r.Subnet)
	if sub == none {
		return noSuchSubnet(r.Subnet)
	}
	if p := c.checkGroups(sub, r.SecurityGroups); p.Code != "" {
		return p
	}
	if p := checkTags(nil, r.Tags); p.Code != "" {
		return p
	}
	want, p := c.chooseForCreate(from, sub, r)
	if p.Code != "" {
		return p
	}
	slot := c.makeENI(sub, &want)
	e := &c.enis[slot]
	e.description, e.token = r.Description, r.ClientToken
	e.tags = merged(nil, r.Tags)
	e.grouped = c.firstGroups(sub, r.SecurityGroups)
	if r.ClientToken != "" {
		c.tokens[r.ClientToken] = tokenUse{sum: r.sum(), slot: slot}
	}
	c.emit(c.now, ENICreated, e, from)
	p = success()
	p.ENI = c.show(e, always)
	return p
}

// chosen is what a new interface is to get. Nothing of it is taken yet.
type chosen struct {
	list     []uint16 // IPv4: offsets of those asked for by value, then zeros for those that the subnet is to choose
	exact    int      // how many are asked for by value
	prefixes []uint16 // of each the first offset
	chosen6
}

// makeENI makes an available interface of what was chosen.
func (c *Cloud) makeENI(sub int32, want *chosen) int32 {
	slot := c.newSlot()
	s := &c.subnets[sub]
	for _, o := range want.list[:want.exact] {
		s.take(o, slot+1)
	}
	s.takeBlocks(want.prefixes, slot+1)
	for k := want.exact; k < len(want.list); k++ {
		want.list[k] = s.pop(slot + 1)
	}
	s.six.take6(want.chosen6, slot+1)
	c.initENI(slot, sub, want.list)
	if x := (extras{want.prefixes, want.six, want.blocks}); !x.none() {
		c.enis[slot].extras = []extraVersion{{c.now, c.now, x}}
	}
	return slot
}

// chooseForCreate checks what a new interface asks for and chooses.
func (c *Cloud) chooseForCreate(from, sub int32, r *Request) (want chosen, p Response) {
	s := &c.subnets[sub]
	prefixes := r.PrefixCount + len(r.Prefixes)
	switch {
	case r.SecondaryCount < 0 || r.PrefixCount < 0:
		return want, failure(codeValue, "Invalid value for secondaryPrivateIpAddressCount or ipv4PrefixCount: it must not be negative")
	case len(r.Addresses) > 1 && r.kinds4() > 1, len(r.Addresses) <= 1 && r.kinds4()-len(r.Addresses) > 1: // one address is the primary
		return want, failure(codeCombination, messageOneOf4)
	case len(r.Addresses) > mostAddresses || r.SecondaryCount >= mostAddresses || prefixes >= mostAddresses:
		return want, failure(codeAddressLimit, messageLimit)
	case c.living >= c.cfg.ENIQuota:
		return want, failure(codeENIQuota, messageENIQuota)
	}
	want.list, want.exact = make([]uint16, max(1+r.SecondaryCount, len(r.Addresses))), len(r.Addresses)
	for k, a := range r.Addresses {
		o, why := s.wanted(a, want.list[:k])
		switch {
		case why == addressTaken && k == 0:
			return want, failure(codePrimaryInUse, "Address "+a.String()+" is in use.")
		case why != "":
			return want, failure(codeValue, "Address "+a.String()+why)
		}
		want.list[k] = o
	}
	if prefixes > 0 {
		if want.prefixes, p = c.choosePrefixes(sub, r, want.list[:want.exact]); p.Code != "" {
			return want, p
		}
	}
	if s.free < len(want.list)-s.asideOf(r.Addresses...)+s.generalIn(want.prefixes) {
		return want, failure(codeSubnetFull, c.subnetFull(sub))
	}
	if r.asks6() {
		want.chosen6, p = c.choose6(from, sub, r, 0, mostAddresses)
	}
	return want, p
}

const addressTaken = " is in use."

// wanted is the offset of an address that is asked for by value, or what speaks against it.
func (s *subnet) wanted(a netip.Addr, before []uint16) (o uint16, why string) {
	o, ok := s.offset(a)
	switch {
	case !ok:
		return 0, " does not fall within the subnet's address range"
	case s.ownerOf(o) == addressReserved:
		return 0, " is in the subnet's reserved address range"
	case s.ownerOf(o) == addressForPrefix:
		return 0, " is in a subnet CIDR reservation of type prefix"
	case !s.available(a):
		return 0, addressTaken
	case slices.Contains(before, o):
		return 0, " was specified twice"
	}
	return o, ""
}

// repeated answers a client token that was used before ("Ensuring idempotency in Amazon EC2 API requests"):
// the same parameters get the same interface, as it is now; others are refused.
func (c *Cloud) repeated(r *Request) (Response, bool) {
	use, ok := c.tokens[r.ClientToken]
	if !ok {
		return Response{}, false
	}
	if use.sum != r.sum() {
		return failure(codeIdempotent, "The request uses the same client token as a previous, but non-identical request."), true
	}
	p := success()
	if use.slot != none {
		p.ENI = c.show(&c.enis[use.slot], always)
		return p, true
	}
	p.ENI = c.past[use.past-c.forgotten].made
	v := &p.ENI // its slices belong to the reader
	v.Secondaries, v.Prefixes = slices.Clone(v.Secondaries), slices.Clone(v.Prefixes)
	v.IPv6, v.IPv6Prefixes = slices.Clone(v.IPv6), slices.Clone(v.IPv6Prefixes)
	return p, true
}

// forgetToken keeps the answer for a token whose interface goes, and drops tokens that are old.
func (c *Cloud) forgetToken(e *eni) {
	for len(c.past) > 0 && c.past[0].until <= c.now {
		delete(c.tokens, c.past[0].token)
		c.past = c.past[1:]
		c.forgotten++
	}
	if e.token == "" {
		return
	}
	use := c.tokens[e.token]
	use.slot, use.past = none, c.forgotten+int32(len(c.past))
	c.tokens[e.token] = use
	c.past = append(c.past, pastToken{c.now + tokenLife, e.token, c.show(e, always)})
}

// sum is a digest (FNV-1a) of a creation's parameters, all of which a repetition must share.
func (r *Request) sum() uint64 {
	h := digest(14695981039346656037)
	h.text(string(r.Subnet))
	h.text(r.Description)
	h.number(uint64(r.SecondaryCount))
	h.number(uint64(len(r.SecurityGroups)))
	for _, g := range r.SecurityGroups {
		h.text(g)
	}
	h.addresses(r.Addresses)
	for _, t := range r.Tags {
		h.text(t.Key)
		h.text(t.Value)
	}
	if n := r.PrefixCount + len(r.Prefixes); n > 0 || r.asks6() {
		h.number(uint64(r.PrefixCount))
		h.prefixes(r.Prefixes)
		h.number(uint64(r.IPv6Count))
		h.addresses(r.IPv6)
		h.number(uint64(r.IPv6PrefixCount))
		h.prefixes(r.IPv6Prefixes)
	}
	return uint64(h)
}

type digest uint64

func (h *digest) text(s string) {
	for i := range len(s) {
		*h = (*h ^ digest(s[i])) * 1099511628211
	}
	h.number(uint64(len(s))) // so that "a","bc" differs from "ab","c"
}

func (h *digest) addresses(list []netip.Addr) {
	h.number(uint64(len(list)))
	for _, a := range list {
		b := a.As16()
		for _, x := range b {
			h.number(uint64(x))
		}
	}
}

func (h *digest) prefixes(list []netip.Prefix) {
	h.number(uint64(len(list)))
	for _, p := range list {
		h.addresses([]netip.Addr{p.Addr()})
		h.number(uint64(p.Bits()))
	}
}

func (h *digest) number(v uint64) { *h = (*h ^ digest(splitmix.Mix(v))) * 1099511628211 }

// checkGroups refuses groups that are malformed, unknown or too many.
func (c *Cloud) checkGroups(sub int32, groups []string) Response {
	for _, g := range groups {
		if len(g) < len(groupPrefix) || g[:len(groupPrefix)] != groupPrefix {
			return failure(codeGroupMalformed, "Invalid id: \""+g+"\" (expecting \"sg-...\")")
		}
		n := c.groupNamed(g)
		if n == none {
			return failure(codeGroupNotFound, "The security group '"+g+"' does not exist")
		}
		if c.groups[n].VPC != c.vpcOf(sub).id {
			return failure(codeValue, "You have specified two resources that belong to different networks.")
		}
	}
	if len(groups) > mostGroups {
		return failure(codeGroupLimit, "You have exceeded the maximum number of security groups per network interface.")
	}
	return Response{}
}

func (c *Cloud) delete(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	if c.enis[slot].att.status != Available {
		return stillInUse(r.ENI)
	}
	c.deleteENI(slot, from)
	return success()
}

// stillInUse is what Delete answers for an attached interface, as a log of amazon-vpc-cni-k8s 1.5.3 shows it.
func stillInUse(id ENIID) Response {
	return failure(codeValue, "Network interface '"+string(id)+"' is currently in use.")
}
