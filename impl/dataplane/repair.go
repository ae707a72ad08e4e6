package dataplane

import (
	"net/netip"
	"slices"
)

// RepairPod returns the operations of PodPlan(want) that the observation lacks, restricted to the
// host's side: nothing here needs the pod's namespace. When the veth is gone there is nothing to
// repair (the pod has lost its network for good; its sandbox is for the runtime to end).
//
// A veth of that name without any alias, to which the address is routed or behind which it is, is adopted: another CNI made it (want.MAC is what
// was found), or a third party cleared the alias. The observation must be complete, and the row must be assigned:
// cooling addresses are not repaired.
func RepairPod(want PodSpec, ix *Index) Plan {
	var ops []Op
	foreign := want.MAC // of a link that another CNI made
	if own := vethMAC(want.Alias); foreign == string(own[:]) {
		foreign = ""
	}
	link := ix.LinkByAlias(want.Alias)
	if link == nil {
		if link = adoptable(want, ix); link == nil {
			return Plan{}
		}
		ops = append(ops, Op{Kind: AdoptLink, Link: link.Name, Alias: want.Alias, MAC: foreign, Addr: want.Address})
	} else if foreign != "" && !link.Adopted { // an earlier version adopted it, which did not say so in the kernel
		ops = append(ops, Op{Kind: AdoptLink, Link: link.Name, Alias: want.Alias, MAC: foreign, Addr: want.Address})
	}
	ops = append(ops, repairVeth(want, link, ix)...)
	ops = append(ops, repairPodRouting(want, ix)...)
	return Plan{Ops: ops}
}

// RemakePod returns what an ADD that is repeated in the same namespace has to do: what RepairPod does where the pod's end is still there, and
// else all of PodPlan. A veth whose other end is gone, or without the pod's address, is no network that a runtime could start a pod with.
// Where another link has the name, the address or the pod's interface the plan fails: it takes nothing from others.
func RemakePod(want PodSpec, ix *Index) Plan {
	link := ix.LinkByAlias(want.Alias)
	if link == nil {
		link = adoptable(want, ix)
	}
	switch {
	case link == nil:
		return PodPlan(want)
	case link.Alias != "" && !(link.PeerLive && slices.Contains(link.PeerAddresses, want.Address)):
		plan := PodPlan(want)
		plan.Ops = slices.Insert(plan.Ops, 0, Op{Kind: DeleteVeth, Alias: want.Alias})
		return plan
	}
	return RepairPod(want, ix)
}

// adoptable is the host veth of another CNI's pod with that name and address, or nil. Where the address is routed nowhere any more, the namespace
// behind the link says whose it is.
func adoptable(want PodSpec, ix *Index) *Link {
	link := ix.LinkByName(want.HostVeth)
	if link == nil || !link.Veth || !link.PeerLive || link.Alias != "" {
		return nil
	}
	r := ix.routeTo(MainTable, hostPrefix(want.Address))
	if r == nil && slices.Contains(link.PeerAddresses, want.Address) || r != nil && r.Link == link.Name {
		return link
	}
	return nil
}

func repairVeth(want PodSpec, link *Link, ix *Index) (ops []Op) {
	if ix.LinkByName(want.HostVeth) == nil { // also not this one's
		ops = append(ops, Op{Kind: RenameLink, Alias: want.Alias, Name: want.HostVeth})
	}
	if want.MAC != "" {
		if link.MAC != want.MAC {
			ops = append(ops, Op{Kind: SetMAC, Alias: want.Alias, MAC: want.MAC})
		}
	} else if own := vethMAC(want.Alias); link.MAC != string(own[:]) {
		ops = append(ops, Op{Kind: SetMAC, Alias: want.Alias, MAC: string(own[:])})
	}
	if !link.Up || want.MTU != 0 && link.MTU != want.MTU {
		ops = append(ops, Op{Kind: LinkUp, Alias: want.Alias, MTU: want.MTU})
	}
	if !slices.Contains(link.Proxy, Gateway()) {
		ops = append(ops, proxyNeighbour(&want))
	}
	return ops
}

// repairPodRouting puts back the route after the link came up: a link that goes down loses its routes.
func repairPodRouting(want PodSpec, ix *Index) (ops []Op) {
	prefix := hostPrefix(want.Address)
	to := Rule{Priority: PriorityToPod, To: prefix, Table: MainTable}
	from := Rule{Priority: PriorityFromPod, From: prefix, Table: want.Table}
	if want.Table != UnknownTable && ix.hasStaleRule(from) {
		ops = append(ops, staleRules(&want))
	}
	if !ix.hasPodRoute(want) {
		ops = append(ops, podRoute(&want))
	}
	if !ix.hasRule(to) {
		ops = append(ops, toPodRule(&want))
	}
	if want.ruled() && !ix.hasRule(from) {
		ops = append(ops, fromPodRule(&want))
	}
	return ops
}

// hasPodRoute says whether main leads the pod's address to the pod's link, whatever that is called
// before the repair renames it.
func (ix *Index) hasPodRoute(want PodSpec) bool {
	r := ix.routeTo(MainTable, hostPrefix(want.Address))
	if r == nil || r.Via.IsValid() {
		return false
	}
	l := ix.LinkByName(r.Link)
	return l != nil && (l.Alias == want.Alias || l.Alias == "" && l.Name == want.HostVeth)
}

// RepairENI returns the operations of ENIPlan(want) that the observation lacks; nothing when no link
// has the ENI's MAC, for then there is nothing to set up.
func RepairENI(want ENISpec, ix *Index) Plan {
	link := ix.LinkByMAC(want.MAC)
	if link == nil {
		return Plan{}
	}
	var ops []Op
	subnetRoute := false // the kernel will make it when the link comes up or gets its address
	for _, op := range ENIPlan(want).Ops {
		if !ix.lacks(&op, link) && !(op.Kind == RemoveRoute && subnetRoute) {
			continue
		}
		ops = append(ops, op)
		subnetRoute = subnetRoute || !link.Up || op.Kind == ENIAddress
	}
	return Plan{Ops: ops}
}

// RepairHost returns the operations of HostPlan(want) that the observation lacks, and what accepts pods' packets where
// they are dropped; nothing when no link has the primary's MAC. InitPlan is not repaired: see there.
func RepairHost(want HostSpec, ix *Index) Plan {
	link := ix.LinkByMAC(want.PrimaryMAC)
	if link == nil {
		return Plan{}
	}
	var ops []Op
	for _, op := range append(HostPlan(want).Ops, acceptForward(want)) {
		if ix.lacks(&op, link) {
			ops = append(ops, op)
		}
	}
	return Plan{Ops: ops}
}

// lacks says whether an operation about an ENI's link, or about no link, would change anything.
func (ix *Index) lacks(op *Op, link *Link) bool {
	switch op.Kind {
	case ENIUp:
		return !link.Up || op.MTU != 0 && link.MTU != op.MTU
	case ENIAddress:
		return !slices.Equal(link.Addresses, []netip.Prefix{netip.PrefixFrom(op.Addr, op.Dst.Bits())})
	case EnsureRoute:
		return !ix.hasRoute(Route{Table: op.Table, Dst: op.Dst, Via: op.Via, Link: link.Name})
	case RemoveRoute:
		return slices.ContainsFunc(ix.Observation.Routes, func(r Route) bool {
			return r.Table == op.Table && r.Dst == op.Dst && r.Link == link.Name
		})
	case EnsureRule:
		return !ix.hasRule(op.Rule())
	case RemoveRule:
		return ix.hasRule(op.Rule())
	case RemoveStaleRules:
		return ix.hasStaleRule(op.Rule())
	case HostNAT:
		return ix.Observation.NAT != op.NAT()
	case AcceptForward:
		return ix.Observation.Forward.DropsOf(op.Name)
	}
	return false
}
