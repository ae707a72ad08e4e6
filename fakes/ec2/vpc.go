package ec2

import (
	"net/netip"
	"slices"
	"time"
)

// vpc is a network. Its slices are never written to, only replaced.
type vpc struct {
	id           string
	cidr         []cidrVersion
	ipv6         []netip.Prefix
	tags         []Tag
	defaultGroup []string // one identifier
}

// cidrVersion is the list of a VPC's CIDRs since an instant, as metadata shows it.
type cidrVersion struct {
	at    time.Duration
	cidrs []netip.Prefix
}

// moreNames is where the numbers of the second and further VPCs begin, which share their numbering with subnets and groups.
const moreNames = 1 << 20

// makeVPCs makes the networks and their groups; names are those of all that is only ever compared.
func (c *Cloud) makeVPCs(names namer) {
	for i, v := range c.cfg.VPCs {
		id := v.ID
		if i == 0 {
			orString(&id, names.name(vpcPrefix, 0))
		} else {
			orString(&id, names.name(vpcPrefix, moreNames+i))
		}
		c.vpcs = append(c.vpcs, vpc{id: id, cidr: []cidrVersion{{0, slices.Clone(v.CIDRs)}}, ipv6: slices.Clone(v.IPv6), tags: merged(nil, v.Tags)})
	}
	for i, g := range c.cfg.SecurityGroups {
		v := c.vpcNamed(g.VPC)
		if v == none {
			continue // Validate tells
		}
		orString(&g.ID, names.name(groupPrefix, 2*moreNames+i))
		g.VPC = c.vpcs[v].id
		first := c.vpcs[v].defaultGroup == nil
		if first {
			c.vpcs[v].defaultGroup = []string{g.ID}
			orString(&g.Name, "default")
		}
		orString(&g.Name, g.ID)
		orString(&g.Description, g.Name)
		c.groups = append(c.groups, g)
	}
	for i := range c.vpcs {
		v := &c.vpcs[i]
		if v.defaultGroup != nil {
			continue
		}
		n := 1
		if i > 0 {
			n = 3*moreNames + i
		}
		g := SecurityGroup{ID: names.name(groupPrefix, n), Name: "default", Description: "default VPC security group", VPC: v.id}
		v.defaultGroup = []string{g.ID}
		c.groups = append(c.groups, g)
	}
}

// vpcNamed is the VPC with an ID, the first one for "", none if there is none.
func (c *Cloud) vpcNamed(id string) int32 {
	for i := range c.vpcs {
		if id == "" || c.vpcs[i].id == id {
			return int32(i)
		}
	}
	return none
}

// vpcOf is the network of a subnet.
func (c *Cloud) vpcOf(subnet int32) *vpc { return &c.vpcs[c.subnets[subnet].vpc] }

// cidrs are the VPC's as they are.
func (v *vpc) cidrs() []netip.Prefix { return v.cidr[len(v.cidr)-1].cidrs }

// cidrsAt are the VPC's as metadata shows them.
func (v *vpc) cidrsAt(now time.Duration) []netip.Prefix {
	k := len(v.cidr) - 1
	for k > 0 && v.cidr[k].at > now {
		k--
	}
	return v.cidr[k].cidrs
}

// groupNamed is a security group, none if there is none.
func (c *Cloud) groupNamed(id string) int32 {
	return int32(slices.IndexFunc(c.groups, func(g SecurityGroup) bool { return g.ID == id }))
}

// RouteTable is a VPC's main route table, the only one that it has, as an answer shows it.
type RouteTable struct {
	ID, VPC     string
	Association string         // what makes it the main one
	Local       []netip.Prefix // its routes: the VPC's CIDRs, IPv4 first
}

// describeRouteTables answers for all tables, or for those asked for in that order.
func (c *Cloud) describeRouteTables(r *Request) Response {
	p := success()
	for n := range c.vpcs {
		v := &c.vpcs[n]
		p.RouteTables = append(p.RouteTables, RouteTable{c.reservationNames.name(routeTablePrefix, n), v.id,
			c.reservationNames.name(associationPrefix, n), slices.Concat(v.cidrs(), v.ipv6)})
	}
	if len(r.RouteTables) == 0 {
		return p
	}
	all := p.RouteTables
	p.RouteTables = nil
	for _, id := range r.RouteTables {
		n := slices.IndexFunc(all, func(t RouteTable) bool { return t.ID == id })
		switch {
		case n < 0 && !wellFormed(routeTablePrefix, id):
			return failure(codeTableMalformed, "Invalid id: \""+id+"\" (expecting \"rtb-...\")")
		case n < 0:
			return failure(codeTableNotFound, "The routeTable ID '"+id+"' does not exist")
		}
		p.RouteTables = append(p.RouteTables, all[n])
	}
	return p
}
