package conform

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// place is where the rows of EC2 work: found by Describe, or named in the Config.
type place struct {
	subnet, vpc, zone string
	cidr              netip.Prefix
	instance, kind    string // "": none, and whyNone says why
	whyNone           string
	most, perENI      int // interfaces of the instance's type, and addresses of each
	lastIndex         int // the device index that was used last
	subnets, groups   []*element
	instances         []*element // running
}

// find looks around. What an endpoint does not answer is not there; that it should have answered is for the rows to say.
func (l *lab) find(ctx context.Context) error {
	if _, err := l.post(ctx, form(describeSubnets), signed); err != nil {
		return fmt.Errorf("conform ec2: %w as EC2: %w", errUnreachable, err)
	}
	probe := func() *try { return &try{lab: l, ctx: ctx, row: &Row{Name: "find"}, made: map[string]*made{}} }
	p := probe()
	l.subnets = p.ok(describeSubnets).all("subnetSet/item")
	if p.err != nil {
		return fmt.Errorf("conform ec2: looking for subnets: %w", p.err)
	}
	l.groups = probe().ok(describeGroups).all("securityGroupInfo/item")
	if p = probe(); l.findInstance(p) != nil {
		return fmt.Errorf("conform ec2: looking for an instance: %w", p.err)
	}
	return l.findSubnet()
}

// findInstance takes the instance that is named, or a running one with the smallest room for interfaces: some rows fill it.
func (l *lab) findInstance(t *try) error {
	if l.Instance == "" && l.real() {
		l.whyNone = "on AWS the instance to attach to has to be named: --instance"
		return nil
	}
	var pairs []string
	if l.Instance != "" {
		pairs = []string{"InstanceId.1", l.Instance}
	}
	l.whyNone = "no instance runs: start one, or name it with --instance"
	for _, i := range t.ok(describeInstances, pairs...).all("reservationSet/item/instancesSet/item") {
		if i.say("instanceState/name") != "running" {
			continue
		}
		l.instances = append(l.instances, i)
		info := t.ok(describeTypes, "InstanceType.1", i.say("instanceType")).get("instanceTypeSet/item/networkInfo")
		most, _ := strconv.Atoi(info.say("maximumNetworkInterfaces"))
		per, _ := strconv.Atoi(info.say("ipv4AddressesPerInterface"))
		if most < 2 || l.instance != "" && most >= l.most || l.Subnet != "" && i.say("placement/availabilityZone") != l.zoneOf(l.Subnet) {
			continue
		}
		l.instance, l.kind, l.most, l.perENI = i.say("instanceId"), i.say("instanceType"), most, per
		l.subnet = i.say("subnetId")
	}
	if l.Instance != "" && l.instance == "" {
		t.differ("%s does not run, takes one interface only, or is in another zone than the subnet: name another one", l.Instance)
	}
	if l.Instance == "" {
		return nil // an endpoint without instances is asked what needs none
	}
	return t.err
}

func (l *lab) zoneOf(subnet string) string {
	for _, s := range l.subnets {
		if s.say("subnetId") == subnet {
			return s.say("availabilityZone")
		}
	}
	return ""
}

// findSubnet takes the subnet that is named, or the one with the most free addresses; beside the instance, if there is one.
func (l *lab) findSubnet() error {
	want, vpc, zone, best := l.Subnet, "", "", -1
	for _, s := range l.subnets {
		if s.say("subnetId") == l.subnet {
			vpc, zone = s.say("vpcId"), s.say("availabilityZone")
		}
	}
	for _, s := range l.subnets {
		id := s.say("subnetId")
		free, _ := strconv.Atoi(s.say("availableIpAddressCount"))
		if want != "" && id != want || want == "" && (free <= best || vpc != "" && vpc != s.say("vpcId") || zone != "" && zone != s.say("availabilityZone")) {
			continue
		}
		cidr, err := netip.ParsePrefix(s.say("cidrBlock"))
		if err != nil {
			return fmt.Errorf("conform ec2: subnet %s: its cidrBlock %q is none: %w", id, s.say("cidrBlock"), err)
		}
		best = free
		l.subnet, l.vpc, l.zone, l.cidr = id, s.say("vpcId"), s.say("availabilityZone"), cidr
	}
	switch {
	case best < 0 && want != "":
		return fmt.Errorf("conform ec2: there is no subnet %s: name one of the endpoint's", want)
	case best < 64:
		return fmt.Errorf("conform ec2: no subnet has 64 free addresses (%q has %d): make one, or name it with --subnet", l.subnet, max(best, 0))
	}
	return nil
}

// needInstance skips the row when there is nothing to attach to.
func (t *try) needInstance() {
	if t.instance == "" {
		t.skip("%s", t.whyNone)
	}
}

// subnetWith is another subnet that is like that.
func (t *try) subnetWith(what string, like func(s *element) bool) *element {
	k := slices.IndexFunc(t.subnets, like)
	if k < 0 {
		t.skip("there is no subnet %s", what)
		return &element{}
	}
	return t.subnets[k]
}

// tiny is a /28: small enough to be filled.
func (t *try) tiny() string {
	return t.subnetWith("of at most 16 addresses in "+t.zone, func(s *element) bool {
		p, err := netip.ParsePrefix(s.say("cidrBlock"))
		return err == nil && p.Bits() >= 28 && s.say("vpcId") == t.vpc && s.say("availabilityZone") == t.zone
	}).say("subnetId")
}

// elsewhere is a subnet of the same VPC in another zone.
func (t *try) elsewhere() string {
	return t.subnetWith("of "+t.vpc+" in another zone", func(s *element) bool {
		return s.say("vpcId") == t.vpc && s.say("availabilityZone") != t.zone
	}).say("subnetId")
}

// sixCIDR is a subnet's IPv6 CIDR.
func sixCIDR(s *element) string { return s.say("ipv6CidrBlockAssociationSet/item/ipv6CidrBlock") }

// six is a subnet with an IPv6 CIDR, beside the instance.
func (t *try) six() (string, netip.Prefix) {
	s := t.subnetWith("of "+t.vpc+" with an IPv6 CIDR in "+t.zone, func(s *element) bool {
		return sixCIDR(s) != "" && s.say("vpcId") == t.vpc && s.say("availabilityZone") == t.zone
	})
	p, err := netip.ParsePrefix(sixCIDR(s))
	if err != nil && t.err == nil {
		t.differ("ipv6CidrBlock: expected a prefix, found %q", sixCIDR(s))
	}
	return s.say("subnetId"), p
}

// four is a subnet without an IPv6 CIDR.
func (t *try) four() string {
	return t.subnetWith("without an IPv6 CIDR", func(s *element) bool { return sixCIDR(s) == "" }).say("subnetId")
}

// groupsOf are the security groups of the subnet's VPC.
func (t *try) groupsOf(vpc string) []string {
	var out []string
	for _, g := range t.groups {
		if g.say("vpcId") == vpc {
			out = append(out, g.say("groupId"))
		}
	}
	return out
}

// group is one of the VPC's that is not its default one.
func (t *try) group() string {
	for _, g := range t.groups {
		if g.say("vpcId") == t.vpc && g.say("groupName") != "default" {
			return g.say("groupId")
		}
	}
	t.skip("%s has no security group but its default one", t.vpc)
	return ""
}

// spare is a free address of the subnet, far from where EC2 takes its own from. Many are tried: some may be taken.
func (t *try) spare(n int) []string {
	used := map[string]bool{}
	for _, e := range t.ok(describeENIs, "Filter.1.Name", "subnet-id", "Filter.1.Value.1", t.subnet).all("networkInterfaceSet/item") {
		for _, a := range addresses(e) {
			used[a] = true
		}
	}
	size := 1 << (32 - t.cidr.Bits())
	var out []string
	for tries := 0; len(out) < n && tries < 300; tries++ {
		t.calls++
		o := size/2 + (t.calls*7)%(size/2-20)
		a := offset(t.cidr, o)
		if !used[a.String()] {
			out = append(out, a.String())
			used[a.String()] = true
		}
	}
	if len(out) < n {
		t.skip("%d addresses of %s could not be found free", n, t.subnet)
		return make([]string, n)
	}
	return out
}

// offset is an address of a prefix by its number.
func offset(p netip.Prefix, n int) netip.Addr {
	b := p.Masked().Addr().As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

// freshPrefix is an aligned /28 of the subnet that no interface has anything of.
func (t *try) freshPrefix() netip.Prefix {
	var used []netip.Addr
	var prefixes []netip.Prefix
	for _, e := range t.ok(describeENIs, "Filter.1.Name", "subnet-id", "Filter.1.Value.1", t.subnet).all("networkInterfaceSet/item") {
		for _, a := range addresses(e) {
			if x, err := netip.ParseAddr(a); err == nil {
				used = append(used, x)
			}
		}
		for _, p := range e.texts("ipv4PrefixSet/item/ipv4Prefix") {
			if x, err := netip.ParsePrefix(p); err == nil {
				prefixes = append(prefixes, x)
			}
		}
	}
	size := 1 << (32 - t.cidr.Bits())
	for o := size - 32 - 16*(t.calls%8); o > 16; o -= 16 {
		p := netip.PrefixFrom(offset(t.cidr, o), 28)
		t.calls++
		if !slices.ContainsFunc(used, p.Contains) && !slices.Contains(prefixes, p) {
			return p
		}
	}
	t.skip("no /28 of %s is free", t.subnet)
	return netip.Prefix{}
}
