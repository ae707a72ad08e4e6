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

// groupVersion is the list of an interface's security groups since an instant. Neither list nor version changes once made.
type groupVersion struct {
	at     time.Duration // when it became the truth
	imdsAt time.Duration // when metadata shows it
	list   []string
}

// firstGroups are those of a new interface: the ones asked for, or the VPC's default one when there are none.
func (c *Cloud) firstGroups(sub int32, groups []string) []groupVersion {
	if len(groups) == 0 {
		return []groupVersion{{never, never, c.vpcOf(sub).defaultGroup}}
	}
	return []groupVersion{{never, never, slices.Clone(groups)}}
}

// setGroups gives an interface other groups now. A Describe and metadata follow as they do for addresses.
func (c *Cloud) setGroups(e *eni, groups []string, by int32) {
	last := e.grouped[len(e.grouped)-1]
	keep := 0 // drop what neither metadata nor the most stale read can still show
	for keep+1 < len(e.grouped) && e.grouped[keep+1].imdsAt <= c.now && e.grouped[keep+1].at <= c.now-c.cfg.Lag.Describe.Max {
		keep++
	}
	shown := max(last.imdsAt, c.now+c.stream(by).draw(c.cfg.Lag.IMDSAddress))
	e.grouped = append(slices.Clone(e.grouped[keep:]), groupVersion{c.now, shown, slices.Clone(groups)})
}

// groups are those of an interface, as they are.
func (e *eni) groups() []string { return e.grouped[len(e.grouped)-1].list }

// groupsAt are an interface's groups as a replica of that instant knows them.
func (e *eni) groupsAt(at time.Duration) []string {
	k := len(e.grouped) - 1
	for k > 0 && e.grouped[k].at > at {
		k--
	}
	return e.grouped[k].list
}

// groupsShown are an interface's groups as metadata shows them.
func (e *eni) groupsShown(now time.Duration) []string {
	k := len(e.grouped) - 1
	for k > 0 && e.grouped[k].imdsAt > now {
		k--
	}
	return e.grouped[k].list
}

// ThirdPartyGroups gives an interface other security groups, as a person at a console would. It returns false, and
// changes nothing, when EC2 would refuse it or the interface has exactly these.
func (c *Cloud) ThirdPartyGroups(now time.Duration, id ENIID, groups []string) bool {
	c.Advance(now)
	slot := c.slotOf(id)
	if slot == none || slices.Equal(c.enis[slot].groups(), groups) {
		return false
	}
	p := c.modify(none, &Request{ENI: id, SecurityGroups: groups})
	return p.Code == ""
}

// ThirdPartyMakeGroup makes a security group in a VPC, the first one for "". It returns false when there is one with
// that ID.
func (c *Cloud) ThirdPartyMakeGroup(now time.Duration, vpc, id string) bool {
	c.Advance(now)
	n := c.vpcNamed(vpc)
	if n == none || c.groupNamed(id) != none {
		return false
	}
	c.groups = append(c.groups, SecurityGroup{ID: id, Name: id, Description: id, VPC: c.vpcs[n].id})
	return true
}

// ThirdPartyDeleteGroup deletes a security group. It returns false when it is a VPC's default one, or an interface has
// it (DependencyViolation), or it is gone already.
func (c *Cloud) ThirdPartyDeleteGroup(now time.Duration, id string) bool {
	c.Advance(now)
	n := c.groupNamed(id)
	used := n == none || slices.ContainsFunc(c.vpcs, func(v vpc) bool { return slices.Contains(v.defaultGroup, id) })
	for slot := c.oldest; slot != none && !used; slot = c.enis[slot].newer {
		used = !c.enis[slot].dead && slices.Contains(c.enis[slot].groups(), id)
	}
	if used {
		return false
	}
	c.groups = slices.Delete(slices.Clone(c.groups), int(n), int(n)+1)
	return true
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
