package dataplane

import (
	"cmp"
	"net/netip"
	"strings"
)

// InitPlan is what the init container does, once, as amazon-vpc-cni-k8s's does; it is not repaired later. A DNATed
// NodePort request to a pod of a secondary ENI comes in by the primary, and its reverse path (rule 1536) is another
// link, which a strict rp_filter drops.
func InitPlan(s HostSpec) Plan {
	if !s.NodePort {
		return Plan{}
	}
	return Plan{Ops: []Op{{Kind: Sysctl, MAC: s.PrimaryMAC, Name: "rp_filter", Value: "2"}}}
}

// HostPlan is the node's own part: the primary link, the mark rule and the NAT table.
func HostPlan(s HostSpec) Plan {
	return Plan{Ops: []Op{
		{Kind: ENIUp, MAC: s.PrimaryMAC, MTU: s.MTU},
		markRule(s),
		hostNAT(s),
	}}
}

func markRule(s HostSpec) Op {
	op := Op{Kind: EnsureRule, Priority: PriorityMark, Mark: Mark, Table: MainTable}
	if !s.NodePort && s.ExternalSNAT { // nothing marks, so nothing may be sent to main by a mark
		op.Kind = RemoveRule
	}
	return op
}

func hostNAT(s HostSpec) Op {
	return NAT{
		Device: s.PrimaryMAC, Address: s.NodeAddress, CIDRs: joinCIDRs(s.VPCCIDRs),
		SNAT: !s.ExternalSNAT, NodePort: s.NodePort,
	}.op()
}

// acceptForward is no part of HostPlan: only a machine on which somebody has set that policy needs it.
func acceptForward(s HostSpec) Op { return Op{Kind: AcceptForward, Name: s.VethPrefix} }

// joinCIDRs is sorted and without repeats, so that two orders of the same CIDRs are the same plan.
func joinCIDRs(cidrs []netip.Prefix) string {
	texts := make([]string, 0, len(cidrs))
	for _, c := range sortedPrefixes(cidrs) {
		texts = append(texts, c.String())
	}
	return strings.Join(texts, " ")
}

// ENIPlan makes a secondary ENI ready to carry pods. The primary needs nothing: the machine's own
// network configuration and HostPlan made it what it is.
func ENIPlan(s ENISpec) Plan {
	if s.Table == MainTable {
		return Plan{}
	}
	gateway := SubnetGateway(s.Subnet)
	return Plan{Ops: []Op{
		{Kind: ENIUp, MAC: s.MAC, MTU: s.MTU},
		{Kind: ENIAddress, MAC: s.MAC, Addr: s.Primary, Dst: s.Subnet.Masked()},
		{Kind: EnsureRoute, MAC: s.MAC, Table: s.Table, Dst: hostPrefix(gateway)},
		{Kind: EnsureRoute, MAC: s.MAC, Table: s.Table, Dst: defaultRoute(), Via: gateway},
		// The kernel made this one with the address. In main it would draw the node's and the primary
		// ENI's pods' traffic to that subnet out of the wrong ENI.
		{Kind: RemoveRoute, MAC: s.MAC, Table: MainTable, Dst: s.Subnet.Masked()},
		{Kind: RemoveStaleRules, Priority: PriorityFromENI, Addr: s.Primary, Table: s.Table},
		{Kind: EnsureRule, Priority: PriorityFromENI, Addr: s.Primary, Table: s.Table},
	}}
}

// ENIRemoval undoes ENIPlan, before the ENI is detached or after it is gone.
func ENIRemoval(s ENISpec) Plan {
	if s.Table == MainTable {
		return Plan{}
	}
	return Plan{Ops: []Op{
		{Kind: RemoveRule, Priority: PriorityFromENI, Addr: s.Primary},
		{Kind: RemoveRoute, MAC: s.MAC, Table: s.Table, Dst: defaultRoute()},
		{Kind: RemoveRoute, MAC: s.MAC, Table: s.Table, Dst: hostPrefix(SubnetGateway(s.Subnet))},
	}}
}

// PodPlan makes one attachment, in amazon-vpc-cni-k8s's order (cmd/routed-eni-cni-plugin/driver 1.23.1).
func PodPlan(s PodSpec) Plan {
	mac, ifName := s.MAC, s.IfName
	if mac == "" {
		mac = VethMAC(s.Alias)
	}
	ifName = cmp.Or(ifName, PodInterface)
	ops := make([]Op, 0, 11)
	if s.DisplacedName != "" {
		ops = append(ops, Op{Kind: RenameLink, Alias: s.Displaced, Link: s.HostVeth, Name: s.DisplacedName})
	}
	ops = append(ops, Op{Kind: CreateVeth, Link: s.HostVeth, Alias: s.Alias, MAC: mac, Netns: s.Netns, Name: ifName, MTU: s.MTU})
	ops = append(ops, Op{Kind: PodRoute, Alias: s.Alias, Netns: s.Netns, Dst: hostPrefix(Gateway())})
	ops = append(ops, Op{Kind: PodRoute, Alias: s.Alias, Netns: s.Netns, Dst: defaultRoute(), Via: Gateway()})
	ops = append(ops, Op{Kind: PodAddress, Alias: s.Alias, Netns: s.Netns, Addr: s.Address})
	ops = append(ops, Op{Kind: PodNeighbour, Alias: s.Alias, Netns: s.Netns, Addr: Gateway(), MAC: mac})
	ops = append(ops, proxyNeighbour(&s), staleRules(&s), podRoute(&s), toPodRule(&s))
	if s.ruled() {
		ops = append(ops, fromPodRule(&s))
	}
	return Plan{Ops: ops}
}

func proxyNeighbour(s *PodSpec) Op {
	return Op{Kind: ProxyNeighbour, Alias: s.Alias, Addr: Gateway()}
}

func staleRules(s *PodSpec) Op {
	return Op{Kind: RemoveStaleRules, Priority: PriorityFromPod, Addr: s.Address, Table: s.Table}
}

func podRoute(s *PodSpec) Op {
	return Op{Kind: EnsureRoute, Alias: s.Alias, Table: MainTable, Dst: hostPrefix(s.Address)}
}

func toPodRule(s *PodSpec) Op {
	return Op{Kind: EnsureRule, Priority: PriorityToPod, Addr: s.Address, Table: MainTable}
}

func fromPodRule(s *PodSpec) Op {
	return Op{Kind: EnsureRule, Priority: PriorityFromPod, Addr: s.Address, Table: s.Table}
}

// PodRemoval takes an attachment away, whatever is left of it. The veth goes first: that takes the
// address from the pod even if a process still holds the namespace. What conntrack remembers of the address is forgotten later, for
// many addresses at once: that is a walk of the node's whole table, and no request waits for it.
func PodRemoval(s PodSpec) Plan {
	return Plan{Ops: []Op{
		{Kind: DeleteVeth, Alias: s.Alias},
		{Kind: RemoveRule, Priority: PriorityFromPod, Addr: s.Address},
		{Kind: RemoveRule, Priority: PriorityToPod, Addr: s.Address},
		{Kind: RemoveRoute, Link: s.HostVeth, Alias: s.Alias, Table: MainTable, Dst: hostPrefix(s.Address)},
	}}
}

func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func defaultRoute() netip.Prefix { return netip.PrefixFrom(netip.IPv4Unspecified(), 0) }
