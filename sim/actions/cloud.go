package actions

import (
	"net/netip"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
)

// More are addresses that a pod adds to its own: those of its node first, then free ones of the node's subnet.
func More(m *ec2.Cloud, node ec2.InstanceID, own netip.Addr, count int) (out []netip.Addr) {
	add := func(a netip.Addr) {
		if a != own && len(out) < count {
			out = append(out, a)
		}
	}
	var first ec2.ENI
	for i, id := range m.AttachedENIs(node) {
		e, _ := m.ENI(id)
		if i == 0 {
			first = e
		}
		for _, a := range e.Secondaries {
			add(a)
		}
	}
	for _, s := range m.Subnets() {
		if s.ID != first.Subnet {
			continue
		}
		a := s.CIDR.Masked().Addr()
		for range reservedBelow { // by AWS
			a = a.Next()
		}
		for ; s.CIDR.Contains(a.Next()) && len(out) < count; a = a.Next() {
			if _, _, owned := m.OwnerOf(a); !owned {
				add(a)
			}
		}
	}
	return out
}

// reservedBelow is how many addresses of a subnet nobody can have, from its first ("Subnet CIDR blocks"); the last is reserved too.
const reservedBelow = 4

// Grant gives the instances of a cluster their role, if it has one. Ending all faults takes it away: whoever does grants it again.
func Grant(m *ec2.Cloud, c *sim.Cluster) {
	if c.Role != 0 {
		m.Fault(ec2.Fault{Kind: ec2.AllowOnly, Allow: c.Role})
	}
}

// Cloud is how a world's model of EC2 begins: the cluster's VPC and subnets, and behind them a VPC that is not the cluster's, with a subnet.
func Cloud(vpc []netip.Prefix, subnets []sim.Subnet) ec2.Config {
	const neighbour = "vpc-neighbour"
	all := netip.MustParsePrefix("10.0.0.0/16")
	cfg := ec2.Config{VPCs: []ec2.VPC{{CIDRs: vpc}, {ID: neighbour, CIDRs: []netip.Prefix{all}}}}
	for i := range subnets {
		cfg.Subnets = append(cfg.Subnets, subnets[i].Config())
	}
	cfg.Subnets = append(cfg.Subnets, ec2.SubnetConfig{VPC: neighbour, CIDR: netip.PrefixFrom(all.Addr(), 24)})
	return cfg
}

// Told is a fault of the cloud's that was met, for people. node names the node of an instance.
func Told(m ec2.Met, node func(ec2.InstanceID) string) string {
	who := node(m.Instance)
	switch call := m.Action.String(); m.Kind {
	case 0:
		return "the metadata of " + who + " shows an older state"
	case ec2.Lose:
		return "the answer to the " + call + " of " + who + " is lost"
	case ec2.LoseRequest:
		return "the " + call + " of " + who + " is lost on its way"
	case ec2.Fail:
		return "the " + call + " of " + who + " fails"
	case ec2.Slow:
		return "the " + call + " of " + who + " takes longer"
	case ec2.SlowAnswer:
		return "the answer to the " + call + " of " + who + " takes longer"
	case ec2.ThrottleBurst:
		return "the bucket is empty for the " + call + " of " + who
	case ec2.Down:
		return "EC2 is unavailable for the " + call + " of " + who
	case ec2.DenyPermission:
		return "the " + call + " of " + who + " is denied"
	case ec2.AllowOnly:
		return "the role of " + who + " does not name " + call
	case ec2.DetachHangs:
		return "a detach from " + who + " hangs"
	case ec2.AttachHangs:
		return "an attach to " + who + " hangs"
	case ec2.DeleteInUse:
		return who + " is told that the ENI to be deleted is in use"
	case ec2.Duplicate:
		return "the " + call + " of " + who + " arrives twice"
	case ec2.IMDSSilent:
		return "the metadata of " + who + " does not answer"
	case ec2.ClockSkew:
		return "the " + call + " of " + who + " is refused: its clock is wrong"
	case ec2.StaleReads:
		return "the " + call + " of " + who + " shows an older state"
	}
	return "a stranger has acted: " + m.Kind.String()
}
