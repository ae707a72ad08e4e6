package world

import (
	"cmp"
	"net/netip"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/strictyaml"
)

// subnet is one of a region's, with where it is written.
type subnet struct {
	ec2.SubnetConfig
	name string
	room int // addresses that it can give away

	object
}

// group is a security group, with where it is written.
type group struct {
	id, vpc string
	Begin   place
}

func (r *reader) vpc(n *yaml.Node, g *Region) {
	var v ec2.VPC
	var name string
	var tags map[string]string
	var subnets, groups *yaml.Node
	o := r.object(n, "a vpc", r.text("id", &v.ID), r.text("name", &name), r.prefixes("cidrs", &v.CIDRs), r.prefixes("ipv6", &v.IPv6), r.tags("tags", &tags),
		field{"subnets", func(n *yaml.Node) { subnets = n }}, field{"groups", func(n *yaml.Node) { groups = n }})
	r.Need(n, &o, "a vpc", "cidrs")
	r.named(&o, "a vpc", v.ID, name)
	v.ID = cmp.Or(v.ID, g.identifier("vpc-", name))
	v.Tags = tagList(tags, name)
	for _, other := range g.Config.VPCs {
		if other.ID == v.ID {
			r.Add(o.Begin, "give it another name or id", "there is a vpc %s already", v.ID)
		}
	}
	for i, c := range v.CIDRs {
		if !c.Addr().Is4() || c.Bits() < 16 || c.Bits() > 28 {
			r.Add(o.At("cidrs"), "", "vpc %s: expected IPv4 CIDRs between /16 and /28, found %v", v.ID, c)
		}
		for _, d := range v.CIDRs[:i] {
			if c.Overlaps(d) {
				r.Add(o.At("cidrs"), "cut them apart", "vpc %s: its CIDRs %v and %v overlap", v.ID, d, c)
			}
		}
	}
	for _, c := range v.IPv6 {
		if !c.Addr().Is6() || c.Bits() != 56 {
			r.Add(o.At("ipv6"), "", "vpc %s: expected IPv6 CIDRs of /56, found %v", v.ID, c)
		}
	}
	g.Config.VPCs = append(g.Config.VPCs, v)
	if subnets != nil {
		r.List(subnets, "subnets", func(n *yaml.Node) { r.subnet(n, g, &v) })
	}
	if groups != nil {
		r.List(groups, "groups", func(n *yaml.Node) { r.group(n, g, &v) })
	}
}

// named refuses what has neither an identifier nor a name to make one of.
func (r *reader) named(o *object, what, id, name string) {
	if id == "" && name == "" {
		r.Add(o.Begin, "", "%s needs a name or an id", what)
	}
}

func (r *reader) subnet(n *yaml.Node, g *Region, v *ec2.VPC) {
	var s subnet
	var id string
	var tags map[string]string
	s.object = r.object(n, "a subnet", r.text("id", &id), r.text("name", &s.name), r.prefix("cidr", &s.CIDR), r.prefix("ipv6", &s.IPv6),
		r.text("zone", &s.Zone), r.tags("tags", &tags), r.prefixes("reservations", &s.Reservations),
		r.prefixes("prefix-reservations", &s.PrefixReservations))
	r.Need(n, &s.object, "a subnet", "cidr")
	r.named(&s.object, "a subnet", id, s.name)
	id = cmp.Or(id, g.identifier("subnet-", v.ID, s.name))
	s.ID, s.VPC, s.Tags = ec2.SubnetID(id), v.ID, tagList(tags, s.name)
	s.Zone = cmp.Or(s.Zone, g.Config.Zone)
	if s.CIDR.IsValid() {
		r.checkSubnet(g, v, &s)
	}
	g.subnets = append(g.subnets, s)
	g.Config.Subnets = append(g.Config.Subnets, s.SubnetConfig)
}

func (r *reader) checkSubnet(g *Region, v *ec2.VPC, s *subnet) {
	if !s.CIDR.Addr().Is4() || s.CIDR.Bits() < 16 || s.CIDR.Bits() > 28 {
		r.Add(s.At("cidr"), "", "subnet %s: expected an IPv4 CIDR between /16 and /28, found %v", s.label(), s.CIDR)
		return
	}
	if !holds(v.CIDRs, s.CIDR) {
		r.Add(s.At("cidr"), "add its CIDR to the vpc", "subnet %s: %v lies in none of the vpc's CIDRs %v", s.label(), s.CIDR, v.CIDRs)
	}
	if s.IPv6.IsValid() && (s.IPv6.Bits() != 64 || !holds(v.IPv6, s.IPv6)) {
		r.Add(s.At("ipv6"), "give a /64 out of the vpc's ipv6", "subnet %s: %v is no /64 of the vpc's IPv6 CIDRs %v", s.label(), s.IPv6, v.IPv6)
	}
	for i := range g.subnets {
		o := &g.subnets[i]
		if o.ID == s.ID {
			r.Add(s.Begin, "give it another name or id", "there is a subnet %s already, in line %d", s.label(), o.Begin.Line)
		}
		if o.VPC == s.VPC && o.CIDR.IsValid() && o.CIDR.Overlaps(s.CIDR) {
			r.Add(s.At("cidr"), "cut them apart", "subnet %s: %v overlaps %v of subnet %s in line %d", s.label(), s.CIDR, o.CIDR, o.label(), o.At("cidr").Line)
		}
	}
	s.room = 1<<(32-s.CIDR.Bits()) - 5
	for _, key := range []string{"reservations", "prefix-reservations"} {
		list := s.Reservations
		if key == "prefix-reservations" {
			list = s.PrefixReservations
		}
		for _, p := range list {
			if !holds([]netip.Prefix{s.CIDR}, p) {
				r.Add(s.At(key), "cut it out of the subnet", "subnet %s: the reservation %v does not lie in %v", s.label(), p, s.CIDR)
			}
		}
	}
}

// holds says whether p lies in one of the CIDRs.
func holds(cidrs []netip.Prefix, p netip.Prefix) bool {
	return slices.ContainsFunc(cidrs, func(c netip.Prefix) bool {
		return c.Bits() <= p.Bits() && c.Contains(p.Addr())
	})
}

// label is what people call the subnet.
func (s *subnet) label() string {
	if s.name != "" {
		return s.name
	}
	return string(s.ID)
}

func (r *reader) group(n *yaml.Node, g *Region, v *ec2.VPC) {
	s := ec2.SecurityGroup{VPC: v.ID}
	var tags map[string]string
	o := r.object(n, "a group", r.text("id", &s.ID), r.text("name", &s.Name), r.text("description", &s.Description), r.tags("tags", &tags))
	r.named(&o, "a group", s.ID, s.Name)
	s.ID = cmp.Or(s.ID, g.identifier("sg-", v.ID, s.Name))
	s.Tags = tagList(tags, "")
	if other, twice := g.groups[s.ID]; twice {
		r.Add(o.Begin, "give it another name or id", "there is a group %s already, in line %d", s.ID, other.Begin.Line)
	}
	g.Config.SecurityGroups = append(g.Config.SecurityGroups, s)
	g.groups[s.ID] = group{s.ID, v.ID, o.Begin}
	if s.Name != "" {
		g.groups[v.ID+"\x00"+s.Name] = g.groups[s.ID]
	}
}

// subnetNamed is a subnet by its identifier or name, nil if there is none.
func (g *Region) subnetNamed(name string) *subnet {
	for i := range g.subnets {
		if s := &g.subnets[i]; string(s.ID) == name || s.name == name {
			return s
		}
	}
	return nil
}

// findSubnet is a subnet that a key names, the region's only one when there is no key; nil was refused.
func (r *reader) findSubnet(g *Region, o *object, name string) *subnet {
	if name == "" {
		if len(g.subnets) == 1 {
			return &g.subnets[0]
		}
		r.Add(o.Begin, "", "which subnet? the region has %d: give the key subnet", len(g.subnets))
		return nil
	}
	if s := g.subnetNamed(name); s != nil {
		return s
	}
	var known []string
	for i := range g.subnets {
		known = append(known, g.subnets[i].label())
	}
	r.Add(o.At("subnet"), strictyaml.Meant(name, known), "there is no subnet %q in %s", name, g.Name)
	return nil
}

// findGroups are groups of a subnet's VPC by their identifiers.
func (r *reader) findGroups(g *Region, o *object, s *subnet, names []string) (out []string) {
	for _, name := range names {
		found, ok := g.groups[name]
		if !ok {
			found, ok = g.groups[s.VPC+"\x00"+name]
		}
		switch {
		case !ok:
			r.Add(o.At("groups"), "give it to the vpc under groups", "there is no group %q in vpc %s", name, s.VPC)
		case found.vpc != s.VPC:
			r.Add(o.At("groups"), "", "the group %s is of %s, and the subnet %s of %s", name, found.vpc, s.label(), s.VPC)
		default:
			out = append(out, found.id)
		}
	}
	return out
}

// SubnetID is that of a subnet by its name or identifier.
func (g *Region) SubnetID(name string) ec2.SubnetID {
	if s := g.subnetNamed(name); s != nil {
		return s.ID
	}
	return ec2.SubnetID(name)
}
