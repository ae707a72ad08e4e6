package ec2

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// describeENIs answers from a replica that is behind by a drawn lag. By ID, one that the replica does not
// know fails the whole request.
func (c *Cloud) describeENIs(from int32, r *Request) Response {
	at := c.readAt(from, r.Action)
	p := success()
	if len(r.ENIs) > 0 {
		p.ENIs = make([]ENI, 0, min(len(r.ENIs), c.living+len(c.graves)))
		for _, id := range r.ENIs {
			slot := c.slotAt(id, at)
			if slot == none {
				return noSuchENI(id)
			}
			p.ENIs = c.appendMatch(p.ENIs, slot, at, r)
		}
		return p
	}
	if r.FilterInstance != "" {
		n := c.instanceIndex(InstanceID(r.FilterInstance))
		if n == none {
			return p // a filter that fits nothing is no error
		}
		p.ENIs = make([]ENI, 0, len(c.instances[n].enis))
		for _, slot := range c.instances[n].enis {
			p.ENIs = c.appendMatch(p.ENIs, slot, at, r)
		}
		return p
	}
	if r.unfiltered() {
		p.ENIs = make([]ENI, 0, c.living)
	}
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		p.ENIs = c.appendMatch(p.ENIs, slot, at, r)
	}
	return p
}

// describeENIAttribute answers with the whole interface, as a replica knows it; the transport shows the attribute that
// was asked for.
func (c *Cloud) describeENIAttribute(from int32, r *Request) Response {
	at := c.readAt(from, r.Action)
	slot := c.slotAt(r.ENI, at)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	p := success()
	p.ENI = c.show(&c.enis[slot], at)
	return p
}

// slotAt finds an interface that a replica of that instant knows, which includes one deleted since.
func (c *Cloud) slotAt(id ENIID, at time.Duration) int32 {
	slot := c.slotOf(id)
	for i := len(c.graves) - 1; slot == none && i >= 0; i-- {
		if c.enis[c.graves[i].slot].id == id {
			slot = c.graves[i].slot
		}
	}
	if slot == none || !c.enis[slot].known(at) {
		return none
	}
	return slot
}

// known says whether a replica of that instant has the interface.
func (e *eni) known(at time.Duration) bool {
	return e.visibleFrom <= at && (!e.dead || at < e.diedAt)
}

// appendMatch adds the interface as it was at an instant, if the filters let it through.
func (c *Cloud) appendMatch(out []ENI, slot int32, at time.Duration, r *Request) []ENI {
	e := &c.enis[slot]
	if !e.known(at) {
		return out
	}
	a := e.attachmentAt(at)
	switch {
	case r.FilterStatus != "" && r.FilterStatus != a.status.String(),
		r.FilterInstance != "" && string(c.instanceID(a.instance)) != r.FilterInstance,
		r.FilterDescription != "" && !matchText(r.FilterDescription, e.description),
		r.FilterTagKey != "" && !matchTag(e.tags, r.FilterTagKey, r.FilterTagValue):
		return out
	}
	return append(out, c.show(e, at))
}

// matchText compares with a pattern that may end in "*".
func matchText(pattern, text string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(text, start)
	}
	return pattern == text
}

// matchTag says whether the key is there, with that value unless it is "".
func matchTag(tags []Tag, key, value string) bool {
	for _, t := range tags {
		if t.Key == key {
			return value == "" || t.Value == value
		}
	}
	return false
}

// attachmentAt is the attachment as a replica of that instant knows it. One step of history is kept:
// a replica further behind than two changes sees the state between them.
func (e *eni) attachmentAt(at time.Duration) *attachment {
	if e.attAt > at {
		return &e.was
	}
	return &e.att
}

// addressesAt is the address list as a replica of that instant knows it.
func (e *eni) addressesAt(at time.Duration) []uint16 {
	i := len(e.versions) - 1
	for i > 0 && e.versions[i].at > at {
		i--
	}
	return e.versions[i].list
}

// show is the interface as it was at an instant; always gives the truth.
func (c *Cloud) show(e *eni, at time.Duration) ENI {
	a, list, s := e.attachmentAt(at), e.addressesAt(at), &c.subnets[e.subnet]
	v := ENI{
		ID: e.id, Status: a.status, MAC: e.mac, Subnet: s.id, Zone: s.zone, VPC: c.vpcs[s.vpc].id, Primary: s.addr(list[0]),
		Attachment: a.id, Instance: c.instanceID(a.instance), DeviceIndex: int(a.device), AttachedAt: a.since, NetworkCard: int(a.card), SourceDestCheck: !e.unchecked,
		DeleteOnTermination: a.deleteOnTermination, Owner: c.cfg.Account, Description: e.description,
		Tags: e.tags, SecurityGroups: e.groupsAt(at), Created: e.created, Kind: e.kind,
	}
	if e.kind == EFAOnly {
		v.Primary = netip.Addr{}
		return v
	}
	if len(list) > 1 {
		v.Secondaries = make([]netip.Addr, len(list)-1)
		for i, o := range list[1:] {
			v.Secondaries[i] = s.addr(o)
		}
	}
	if len(e.extras) > 0 {
		v.Prefixes, v.IPv6, v.IPv6Prefixes = s.showExtras(e.extraAt(at))
	}
	return v
}

// showExtras spells out what an interface has beside its IPv4 addresses.
func (s *subnet) showExtras(x extras) (prefixes []netip.Prefix, six []netip.Addr, prefixes6 []netip.Prefix) {
	for _, o := range x.prefixes {
		prefixes = append(prefixes, s.prefix(o))
	}
	for _, low := range x.six {
		six = append(six, s.six.addr(low))
	}
	for _, b := range x.prefixes6 {
		prefixes6 = append(prefixes6, s.six.prefix(b))
	}
	return prefixes, six, prefixes6
}

func (c *Cloud) showSubnet(s *subnet) Subnet {
	return Subnet{ID: s.id, CIDR: s.cidr, Zone: s.zone, Available: s.free, VPC: c.vpcs[s.vpc].id, IPv6: s.six.cidr, Tags: s.tags}
}

func (c *Cloud) describeSubnets(from int32, r *Request) Response {
	p := success()
	at := c.countAt(from, r.Action)
	if r.Subnet == "" && len(r.Subnets) == 0 {
		for n := range c.subnets {
			if s := &c.subnets[n]; s.known(at) {
				p.Subnets = append(p.Subnets, c.describeSubnet(s, at))
			}
		}
		return p
	}
	ids := r.Subnets
	if r.Subnet != "" {
		ids = append([]SubnetID{r.Subnet}, ids...)
	}
	for _, id := range ids {
		n := slices.IndexFunc(c.subnets, func(s subnet) bool { return s.id == id && s.known(at) })
		if n < 0 {
			return noSuchSubnet(id)
		}
		p.Subnets = append(p.Subnets, c.describeSubnet(&c.subnets[n], at))
	}
	return p
}

// describeSubnet is a subnet with its count of free addresses as it was at an instant.
func (c *Cloud) describeSubnet(s *subnet, at time.Duration) Subnet {
	v := c.showSubnet(s)
	v.Available = c.shownFree(s, at)
	return v
}
