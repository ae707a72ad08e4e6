package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
)

// The faults a trace names: the first hop that fails, on the way in, then on the way back.
const (
	NoENILink       = "no link has the ENI's MAC"
	ENILinkDown     = "the ENI's link is down"
	OnHost          = "the address is configured on the host itself"
	NoRouteToPod    = "no route leads to the address"
	RoutedElsewhere = "the route to the address does not lead to a host veth"
	HostVethDown    = "the host veth is down"
	NotInNamespace  = "the namespace behind the host veth does not have the address"
	PodHasNoRoute   = "the pod has no default route"
	WrongNeighbour  = "the pod's permanent gateway entry is not the host veth's MAC"
	NoNeighbour     = "nobody answers the pod's ARP for its gateway"
	NoRouteBack     = "no route leads from the pod to the VPC"
	BackBySelf      = "the answer is routed back to a pod"
	BackByOther     = "the answer leaves by another ENI"
	NoPodLink       = "no live namespace has the address"
	WrongSource     = "the packet leaves with a source that its ENI does not own"
	StrictFilter    = "the primary link's strict rp_filter drops the request"
	NotOnHost       = "the host does not have the address"
	WrongPod        = "the route between the pods leads elsewhere"
	ForwardDrops    = "the policy of the chain FORWARD is DROP, and no rule accepts pods' packets"
)

// Trace says whether a packet from the VPC that arrives on the ENI with that MAC reaches a in a live
// namespace, and whether the answer leaves by the same ENI. fault names the first hop that fails.
func (k *Kernel) Trace(a netip.Addr, eniMAC string) (fault string, ok bool) {
	return k.TraceFrom(a, eniMAC, netip.Addr{})
}

// TraceFrom is Trace for a packet that comes from peer; an invalid peer is somewhere else in the VPC,
// which only default routes reach.
func (k *Kernel) TraceFrom(a netip.Addr, eniMAC string, peer netip.Addr) (fault string, ok bool) {
	eni := k.slotByMAC(eniMAC)
	if fault = k.receives(eni); fault != "" {
		return fault, false
	}
	pod, fault := k.deliver(a, peer)
	if fault != "" {
		return fault, false
	}
	if fault = k.podSends(pod, a); fault != "" {
		return fault, false
	}
	fault = k.leavesBy(eni, k.lookup(a, peer, 0))
	return fault, fault == ""
}

// receives says what is wrong with an ENI's link.
func (k *Kernel) receives(slot int32) string {
	if slot == none {
		return NoENILink
	}
	if !k.links[slot].up {
		return ENILinkDown
	}
	return ""
}

// deliver is the way from the node's routing decision into the pod. A route's link is up: a link that
// goes down loses its routes.
func (k *Kernel) deliver(a, peer netip.Addr) (pod *link, fault string) {
	if k.onHost(a) {
		return nil, OnHost
	}
	r := k.lookup(peer, a, 0)
	if r == nil {
		return nil, NoRouteToPod
	}
	l := &k.links[r.slot]
	switch {
	case l.netns == 0:
		return nil, RoutedElsewhere
	case !slices.Contains(l.podAddresses, a):
		return nil, NotInNamespace
	case k.forward.DropsOf(l.name):
		return nil, ForwardDrops
	}
	return l, ""
}

func (k *Kernel) onHost(a netip.Addr) bool {
	for i := range k.enis {
		for _, p := range k.links[k.enis[i].slot].addresses {
			if p.Addr() == a {
				return true
			}
		}
	}
	return false
}

// podSends is the way of a packet from a past its host veth: route, gateway, neighbour, firewall.
func (k *Kernel) podSends(l *link, a netip.Addr) string {
	hasDefault := false
	for i := range l.podRoutes {
		if r := &l.podRoutes[i]; r.dst.Bits() == 0 && r.via == dataplane.Gateway() {
			hasDefault = true
		}
	}
	switch {
	case !hasDefault:
		return PodHasNoRoute
	case l.neighbour != "" && l.neighbour != l.mac:
		return WrongNeighbour
	case l.neighbour == "" && !k.answersARP(l, a):
		return NoNeighbour
	case k.forward.DropsOf(l.name):
		return ForwardDrops
	}
	return ""
}

// answersARP says whether a host veth answers a pod's question for its gateway: by its proxy entry,
// and only while the host would route the gateway out of another link (arp_process).
func (k *Kernel) answersARP(l *link, a netip.Addr) bool {
	if !slices.Contains(l.proxy, dataplane.Gateway()) {
		return false
	}
	r := k.lookup(a, dataplane.Gateway(), 0)
	return r != nil && &k.links[r.slot] != l
}

// leavesBy says what is wrong with a packet's route when it must leave by an ENI.
func (k *Kernel) leavesBy(eni int32, r *route) string {
	switch {
	case r == nil:
		return NoRouteBack
	case k.links[r.slot].netns != 0:
		return BackBySelf
	case r.slot != eni:
		return BackByOther
	}
	return ""
}

// TraceHost is Trace for an address of the node itself, such as an ENI's primary one.
func (k *Kernel) TraceHost(a netip.Addr, eniMAC string) (fault string, ok bool) {
	eni := k.slotByMAC(eniMAC)
	if fault = k.receives(eni); fault != "" {
		return fault, false
	}
	if !k.onHost(a) {
		return NotOnHost, false
	}
	fault = k.leavesBy(eni, k.lookup(a, netip.Addr{}, 0))
	return fault, fault == ""
}

// Between says whether two pods of this node reach each other without leaving it: the rule to a pod
// comes before the rule from one.
func (k *Kernel) Between(a, b netip.Addr) (fault string, ok bool) {
	if fault = k.sends(a, b); fault == "" {
		fault = k.sends(b, a)
	}
	return fault, fault == ""
}

// sends is one packet from a pod to another of this node.
func (k *Kernel) sends(source, destination netip.Addr) string {
	from, to := k.podLink(source), k.podLink(destination)
	switch {
	case from == nil || to == nil:
		return NoPodLink
	case !from.up:
		return HostVethDown
	}
	if fault := k.podSends(from, source); fault != "" {
		return fault
	}
	r := k.lookup(source, destination, 0)
	switch {
	case r == nil:
		return NoRouteToPod
	case &k.links[r.slot] != to:
		return WrongPod
	}
	return ""
}

// Egress follows a packet that a pod sends to a destination outside its node: the source it has and the MAC of
// the ENI it has when it leaves. fault names the first hop that fails; an ENI drops foreign sources
// (EC2's source check), and which addresses it owns beyond its own is for the caller to know.
func (k *Kernel) Egress(a, destination netip.Addr) (source netip.Addr, eniMAC, fault string) {
	pod, mark := k.podLink(a), uint32(0)
	if pod == nil {
		return source, "", NoPodLink
	}
	if !pod.up {
		return source, "", HostVethDown
	}
	if fault = k.podSends(pod, a); fault != "" {
		return source, "", fault
	}
	translated := k.nat.SNAT && !k.inVPC(destination)
	if translated {
		mark = dataplane.Mark
	}
	r := k.lookup(a, destination, mark)
	if r == nil {
		return source, "", NoRouteBack
	}
	if fault = k.leavesBy(r.slot, r); fault != "" {
		return source, "", fault
	}
	out := &k.links[r.slot]
	if !translated {
		return a, out.mac, ""
	}
	if !slices.ContainsFunc(out.addresses, func(p netip.Prefix) bool { return p.Addr() == k.nat.Address }) {
		return k.nat.Address, out.mac, WrongSource
	}
	return k.nat.Address, out.mac, ""
}

// Sends follows a packet from a pod to another pod of the VPC. Without a MAC it has arrived, on this node; else it has left by that ENI, whose
// source check is EC2's affair.
func (k *Kernel) Sends(source, destination netip.Addr) (eniMAC, fault string) {
	from := k.podLink(source)
	switch {
	case from == nil:
		return "", NoPodLink
	case !from.up:
		return "", HostVethDown
	}
	if fault := k.podSends(from, source); fault != "" {
		return "", fault
	}
	r := k.lookup(source, destination, 0)
	if r == nil {
		return "", NoRouteToPod
	}
	l := &k.links[r.slot]
	switch {
	case l.netns == 0:
		return l.mac, ""
	case !slices.Contains(l.podAddresses, destination):
		return "", WrongPod
	}
	return "", ""
}

// Arrives follows a packet from peer that arrives on the ENI with that MAC to a pod.
func (k *Kernel) Arrives(a netip.Addr, eniMAC string, peer netip.Addr) (fault string) {
	eni := k.slotByMAC(eniMAC)
	if fault = k.receives(eni); fault != "" {
		return fault
	}
	if k.links[eni].rpFilter == 1 && k.leavesBy(eni, k.lookup(a, peer, 0)) != "" {
		return StrictFilter
	}
	_, fault = k.deliver(a, peer)
	return fault
}

// podLink is the link behind which an address is configured, or nil.
func (k *Kernel) podLink(a netip.Addr) *link {
	at := k.searchHolder(a, 0)
	if at == len(k.holders) || k.holders[at].address != a {
		return nil
	}
	return &k.links[k.holders[at].slot]
}

func (k *Kernel) inVPC(a netip.Addr) bool {
	return slices.ContainsFunc(k.natCIDRs, func(p netip.Prefix) bool { return p.Contains(a) })
}

// NodePort says whether a request from outside to a node port, which kube-proxy translated to a pod of
// this node, reaches it, and whether the answer leaves by the primary ENI where it came in: the
// flow's mark brings it there past the pod's own rule.
func (k *Kernel) NodePort(a netip.Addr, primaryMAC string) (fault string, ok bool) {
	primary := k.slotByMAC(primaryMAC)
	if fault = k.receives(primary); fault != "" {
		return fault, false
	}
	// The destination is translated before routing, so the reverse path is the pod's, without mark.
	if k.links[primary].rpFilter == 1 && k.leavesBy(primary, k.lookup(a, netip.Addr{}, 0)) != "" {
		return StrictFilter, false
	}
	pod, fault := k.deliver(a, netip.Addr{})
	if fault != "" {
		return fault, false
	}
	if fault = k.podSends(pod, a); fault != "" {
		return fault, false
	}
	mark := uint32(0)
	if k.nat.NodePort && k.nat.Device == primaryMAC {
		mark = dataplane.Mark
	}
	fault = k.leavesBy(primary, k.lookup(a, netip.Addr{}, mark))
	return fault, fault == ""
}
