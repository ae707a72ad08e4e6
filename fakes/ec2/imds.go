package ec2

import (
	"net/netip"
	"time"
)

// IMDS is what an instance's metadata says, as its own software would read it.
type IMDS struct {
	Instance Instance
	Region   string
	ENIs     []IMDSENI       // by device index, then MAC; Partial ones, whose index is unknown, last
	VPCIPv6  []netip.Prefix  // vpc-ipv6-cidr-blocks; shared, must not be written to
	Groups   []SecurityGroup // the account's, for their names; shared, must not be written to
}

// IMDSENI is one MAC under network/interfaces/macs/.
type IMDSENI struct {
	MAC          string
	ENI          ENIID
	Device       int
	Subnet       SubnetID
	SubnetCIDR   netip.Prefix
	Card         int
	Addresses    []netip.Addr   // local-ipv4s, primary first
	Prefixes     []netip.Prefix // ipv4-prefix
	IPv6         []netip.Addr   // ipv6s
	IPv6Prefixes []netip.Prefix // ipv6-prefix
	SubnetIPv6   netip.Prefix   // the zero Prefix: none
	Groups       []string       // security-group-ids; shared, must not be written to
	// Partial: the MAC is listed, but its leaves answer 404 (ec2-net-utils#38). All other fields but MAC
	// are empty then, as they are for the reader.
	Partial bool
}

// IMDS is the view at an instant: behind the truth when something came, and behind it when something
// went. It is false for an instance that is unknown or terminated, and while a fault keeps it silent. It
// changes nothing but what Met tells; now must not lie before the last call that did.
func (c *Cloud) IMDS(now time.Duration, id InstanceID) (IMDS, bool) {
	n := c.instanceIndex(id)
	if n == none || !c.instances[n].up() || len(c.faults) > 0 && c.silent(now, id) {
		return IMDS{}, false
	}
	i := &c.instances[n]
	v := IMDS{Instance: c.identity(n), Region: c.cfg.Region, VPCIPv6: c.vpcOf(i.subnet).ipv6, Groups: c.groups}
	v.Instance.VPCCIDRs = c.vpcOf(i.subnet).cidrsAt(now)
	v.ENIs = make([]IMDSENI, 0, len(i.enis)+len(i.ghosts))
	total := 0
	for _, slot := range i.enis {
		total += len(c.enis[slot].current())
	}
	addresses := make([]netip.Addr, 0, total)
	trails := false // for a LagIMDS
	for _, slot := range i.enis {
		e := &c.enis[slot]
		trails = trails || c.trails(now, e)
		if e.att.status == Attaching || now < e.listedAt || e.att.status == Detaching && now >= e.unlistedAt {
			continue
		}
		var entry IMDSENI
		entry, addresses = c.metadata(now, e, addresses)
		v.ENIs = insertEntry(v.ENIs, &entry)
	}
	for _, g := range i.ghosts {
		if now < g.until {
			v.ENIs = insertEntry(v.ENIs, &g.entry)
			trails = trails || c.lag.hides(now, g.until)
		}
	}
	if trails {
		c.meets(&Fault{ID: c.lag.id}, AnyAction, id)
	}
	return v, true
}

// trails says whether metadata shows an older state of an attached interface because of a LagIMDS.
func (c *Cloud) trails(now time.Duration, e *eni) bool {
	if c.lag.id == 0 || e.att.status == Attaching {
		return false
	}
	if e.att.status == Detaching {
		return c.lag.hides(now, e.unlistedAt)
	}
	if n := len(e.extras); n > 0 {
		if x := &e.extras[n-1]; x.imdsAt > x.at && c.lag.hides(now, x.imdsAt) {
			return true
		}
	}
	v := &e.versions[len(e.versions)-1]
	return c.lag.hides(now, e.listedAt) || c.lag.hides(now, e.secondariesAt) || v.imdsAt > v.at && c.lag.hides(now, v.imdsAt)
}

// metadata is what an interface's MAC shows; its addresses are cut from buf, which is returned longer.
func (c *Cloud) metadata(now time.Duration, e *eni, buf []netip.Addr) (IMDSENI, []netip.Addr) {
	if now < e.completeAt {
		return IMDSENI{MAC: e.mac, Partial: true}, buf
	}
	s := &c.subnets[e.subnet]
	k := len(e.versions) - 1
	for k > 0 && e.versions[k].imdsAt > now {
		k--
	}
	list := e.versions[k].list
	if now < e.secondariesAt {
		list = list[:1]
	}
	from := len(buf)
	for _, o := range list {
		buf = append(buf, s.addr(o))
	}
	entry := IMDSENI{
		MAC: e.mac, ENI: e.id, Device: int(e.att.device), Card: int(e.att.card), Subnet: s.id, SubnetCIDR: s.cidr, SubnetIPv6: s.six.cidr,
		Addresses: buf[from:len(buf):len(buf)], Groups: e.groupsShown(now),
	}
	if e.kind == EFAOnly {
		entry.Addresses = nil
	}
	if len(e.extras) > 0 && now >= e.secondariesAt {
		entry.Prefixes, entry.IPv6, entry.IPv6Prefixes = s.showExtras(e.extraShown(now))
	}
	return entry, buf
}

// leaveGhost keeps in the instance's metadata what it shows of an interface that is gone.
func (c *Cloud) leaveGhost(at time.Duration, i *instance, e *eni) {
	kept := make([]ghost, 0, len(i.ghosts)+1)
	for _, g := range i.ghosts {
		if at < g.until {
			kept = append(kept, g)
		}
	}
	entry, _ := c.metadata(at, e, nil)
	i.ghosts = append(kept, ghost{e.unlistedAt, entry})
}

// insertEntry keeps the order of IMDS.ENIs; the list is short and mostly in order already.
func insertEntry(list []IMDSENI, g *IMDSENI) []IMDSENI {
	list = append(list, *g)
	for k := len(list) - 1; k > 0 && g.before(&list[k-1]); k-- {
		list[k-1], list[k] = list[k], list[k-1]
	}
	return list
}

func (g *IMDSENI) before(o *IMDSENI) bool {
	if g.Partial != o.Partial {
		return o.Partial
	}
	if g.Card != o.Card {
		return g.Card < o.Card
	}
	if g.Device != o.Device {
		return g.Device < o.Device
	}
	return g.MAC < o.MAC
}
