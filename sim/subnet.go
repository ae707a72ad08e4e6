package sim

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/judge"
)

// mostSubnets bounds a cluster's subnets, the first one included.
const mostSubnets = 8

// region is the model's; its first zone is the one of subnets that name none.
const region = "us-west-2"

// Subnet is one of the cluster's VPC.
type Subnet struct {
	CIDR     netip.Prefix
	Zone     string   // a letter; "" is the first one
	Role     string   // its tag judge.TagRole; "" is none
	Clusters []string // names of clusters that it is tagged for
	Nodes    bool     // nodes are launched in it, in turn with the first one and others of these
	// Prefixes are its CIDR reservations of type "prefix": EC2 gives their addresses as parts of /28 prefixes alone.
	Prefixes []netip.Prefix
}

// subnetUsage is how a subnet is written.
const subnetUsage = "such as 10.0.20.0/24:cni, 10.0.20.0/24:cni=0:zone=b, 10.0.20.0/24:cni:cluster=NAME:nodes or 10.0.20.0/24:prefixes=10.0.20.128/25"

// parseSubnet reads CIDR{:WORD}.
func parseSubnet(text string) (Subnet, error) {
	words := strings.Split(text, ":")
	p, err := netip.ParsePrefix(words[0])
	if err != nil || !p.Addr().Is4() || p.Bits() < 16 || p.Bits() > 28 {
		return Subnet{}, fmt.Errorf("expected an IPv4 CIDR from /16 to /28, found %q", words[0])
	}
	s := Subnet{CIDR: p.Masked()}
	for _, w := range words[1:] {
		key, value, given := strings.Cut(w, "=")
		switch {
		case key == "cni" && !given:
			s.Role = "1"
		case key == "cni" && value != "":
			s.Role = value
		case key == "cluster" && value != "":
			s.Clusters = append(s.Clusters, value)
		case key == "zone" && len(value) == 1 && value >= "a" && value <= "f":
			s.Zone = value
		case key == "nodes" && !given:
			s.Nodes = true
		case key == "prefixes":
			r, err := netip.ParsePrefix(value)
			if err != nil || r != r.Masked() || r.Bits() < p.Bits() || r.Bits() > 28 || !p.Contains(r.Addr()) {
				return Subnet{}, fmt.Errorf("%s: prefixes: expected a CIDR within it from /%d to /28, found %q", words[0], p.Bits(), value)
			}
			if slices.ContainsFunc(s.Prefixes, r.Overlaps) {
				return Subnet{}, fmt.Errorf("%s: prefixes: %v is reserved twice", words[0], r)
			}
			s.Prefixes = append(s.Prefixes, r)
		default:
			return Subnet{}, fmt.Errorf("%s: it takes no %q", words[0], w)
		}
	}
	return s, nil
}

// String is the subnet as a scenario says it.
func (s *Subnet) String() string {
	out := s.CIDR.String()
	if s.Role != "" {
		out += ":cni=" + s.Role
	}
	for _, c := range s.Clusters {
		out += ":cluster=" + c
	}
	if s.Zone != "" {
		out += ":zone=" + s.Zone
	}
	if s.Nodes {
		out += ":nodes"
	}
	for _, r := range s.Prefixes {
		out += ":prefixes=" + r.String()
	}
	return out
}

// Config is the subnet for a model of EC2.
func (s *Subnet) Config() ec2.SubnetConfig {
	c := ec2.SubnetConfig{CIDR: s.CIDR, PrefixReservations: s.Prefixes}
	if s.Zone != "" {
		c.Zone = region + s.Zone
	}
	if s.Role != "" {
		c.Tags = append(c.Tags, ec2.Tag{Key: judge.TagRole, Value: s.Role})
	}
	for _, name := range s.Clusters {
		c.Tags = append(c.Tags, ec2.Tag{Key: judge.TagForCluster + name, Value: "shared"})
	}
	return c
}

// AllSubnets are the cluster's subnets, the one called subnet first.
func (c *Cluster) AllSubnets() []Subnet {
	if len(c.Subnets) == 0 {
		return []Subnet{{CIDR: c.Subnet}}
	}
	return c.Subnets
}

// Prefixes are the CIDRs of the cluster's subnets.
func (c *Cluster) Prefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range c.AllSubnets() {
		out = append(out, s.CIDR)
	}
	return out
}

// HomeOf is which of the cluster's subnets a node, from 1, is launched in.
func (c *Cluster) HomeOf(node int) int {
	homes := []int{0}
	for i, s := range c.AllSubnets() {
		if i > 0 && s.Nodes {
			homes = append(homes, i)
		}
	}
	return homes[(node-1)%len(homes)]
}
