package ec2

import (
	"net/netip"
	"slices"
	"time"
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
	list, p := c.chooseForCreate(sub, r)
	if p.Code != "" {
		return p
	}
	slot := c.newSlot()
	for k, o := range list {
		if len(r.Addresses) > k {
			c.subnets[sub].take(o, slot+1)
		} else {
			list[k] = c.subnets[sub].pop(slot + 1)
		}
	}
	c.initENI(slot, sub, list)
	e := &c.enis[slot]
	e.description, e.token = r.Description, r.ClientToken
	e.tags = merged(nil, r.Tags)
	e.groups = c.groupsOr(sub, r.SecurityGroups)
	if r.ClientToken != "" {
		c.tokens[r.ClientToken] = tokenUse{sum: r.sum(), slot: slot}
	}
	c.emit(c.now, ENICreated, e, from)
	p = success()
	p.ENI = c.show(e, always)
	return p
}

// chooseForCreate checks the addresses a new interface asks for and gives the list's shape: the offsets
// of those asked for by value, then zeros for those that the subnet is to choose.
func (c *Cloud) chooseForCreate(sub int32, r *Request) ([]uint16, Response) {
	s := &c.subnets[sub]
	if r.SecondaryCount < 0 {
		return nil, failure(codeValue, "Invalid value for secondaryPrivateIpAddressCount: it must not be negative")
	}
	if r.SecondaryCount > 0 && len(r.Addresses) > 1 {
		return nil, failure(codeCombination, "Only one of secondaryPrivateIpAddressCount and privateIpAddresses can be specified")
	}
	if len(r.Addresses) > mostAddresses || r.SecondaryCount >= mostAddresses {
		return nil, failure(codeAddressLimit, messageLimit)
	}
	n := max(1+r.SecondaryCount, len(r.Addresses))
	if c.living >= c.cfg.ENIQuota {
		return nil, failure(codeENIQuota, messageENIQuota)
	}
	list := make([]uint16, n)
	for k, a := range r.Addresses {
		o, why := s.wanted(a, list[:k])
		switch {
		case why == addressTaken && k == 0:
			return nil, failure(codePrimaryInUse, "Address "+a.String()+" is in use.")
		case why != "":
			return nil, failure(codeValue, "Address "+a.String()+why)
		}
		list[k] = o
	}
	if s.free < n-s.asideOf(r.Addresses...) {
		return nil, failure(codeSubnetFull, c.subnetFull(sub))
	}
	return list, Response{}
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
	p.ENI.Secondaries = slices.Clone(p.ENI.Secondaries)
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
	for _, a := range r.Addresses {
		b := a.As16()
		for _, x := range b {
			h.number(uint64(x))
		}
	}
	for _, t := range r.Tags {
		h.text(t.Key)
		h.text(t.Value)
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

func (h *digest) number(v uint64) { *h = (*h ^ digest(mix(v))) * 1099511628211 }

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

// groupsOr is a copy of the groups, or the VPC's default one when there are none.
func (c *Cloud) groupsOr(sub int32, groups []string) []string {
	if len(groups) == 0 {
		return c.vpcOf(sub).defaultGroup
	}
	return slices.Clone(groups)
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
