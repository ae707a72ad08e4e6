package ec2

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// describeVPCs answers for all networks, or for those asked for in that order.
func (c *Cloud) describeVPCs(r *Request) Response {
	p := success()
	if len(r.VPCs) == 0 {
		p.VPCs = c.VPCs()
		return p
	}
	for _, id := range r.VPCs {
		n := c.vpcKnown(id)
		if n == none {
			return noSuchVPC(id)
		}
		p.VPCs = append(p.VPCs, c.showVPC(n))
	}
	return p
}

// vpcKnown is vpcNamed without a default.
func (c *Cloud) vpcKnown(id string) int32 {
	if id == "" {
		return none
	}
	return c.vpcNamed(id)
}

// showVPC is a network as it is.
func (c *Cloud) showVPC(n int32) VPC {
	v := &c.vpcs[n]
	return VPC{ID: v.id, CIDRs: slices.Clone(v.cidrs()), IPv6: slices.Clone(v.ipv6), Tags: v.tags}
}

// describeGroups answers for all security groups, or for those asked for in that order.
func (c *Cloud) describeGroups(r *Request) Response {
	p := success()
	if len(r.SecurityGroups) == 0 {
		p.Groups = c.Groups()
		return p
	}
	for _, id := range r.SecurityGroups {
		n := c.groupNamed(id)
		if n == none {
			return noSuchGroup(id)
		}
		p.Groups = append(p.Groups, c.groups[n])
	}
	return p
}

// VPCs are all networks, as they are.
func (c *Cloud) VPCs() []VPC {
	out := make([]VPC, len(c.vpcs))
	for n := range c.vpcs {
		out[n] = c.showVPC(int32(n))
	}
	return out
}

// Groups are all security groups. Their tags are shared and must not be written to.
func (c *Cloud) Groups() []SecurityGroup { return slices.Clone(c.groups) }

// AddCIDR adds a CIDR to a VPC, as a person at a console would; metadata shows it after Lag.IMDSAddress. An empty
// ID is the first VPC's. It does nothing when the VPC is unknown or has it already.
func (c *Cloud) AddCIDR(now time.Duration, vpc string, p netip.Prefix) {
	c.Advance(now)
	n := c.vpcNamed(vpc)
	if n == none {
		return
	}
	v := &c.vpcs[n]
	last := v.cidr[len(v.cidr)-1]
	if !p.IsValid() || slices.Contains(last.cidrs, p) {
		return
	}
	cidrs := append(slices.Clone(last.cidrs), p)
	at := max(last.at, c.now+c.rand.draw(c.cfg.Lag.IMDSAddress))
	v.cidr = append(v.cidr[:len(v.cidr):len(v.cidr)], cidrVersion{at, cidrs})
}

func noSuchVPC(id string) Response {
	if !strings.HasPrefix(id, vpcPrefix) {
		return failure(codeVPCMalformed, "Invalid id: \""+id+"\" (expecting \"vpc-...\")")
	}
	return failure(codeVPCNotFound, "The vpc ID '"+id+"' does not exist")
}

func noSuchGroup(id string) Response {
	if !strings.HasPrefix(id, groupPrefix) {
		return failure(codeGroupMalformed, "Invalid id: \""+id+"\" (expecting \"sg-...\")")
	}
	return failure(codeGroupNotFound, "The security group '"+id+"' does not exist")
}
