package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
)

// Observe is a dump of everything: a fresh copy, sorted. While dumps are interrupted (InterruptDumps)
// each list may end early, and Complete is false.
func (k *Kernel) Observe() dataplane.Observation {
	o := dataplane.Observation{Links: k.dumpLinks(), Routes: k.dumpRoutes(), Rules: k.dumpRules(), NAT: k.observedNAT(), Forward: k.forward, Complete: true}
	if k.interrupted > 0 {
		k.interrupted--
		o.Complete = false
		o.Links = o.Links[:k.below(len(o.Links))]
		o.Routes = o.Routes[:k.below(len(o.Routes))]
		o.Rules = o.Rules[:k.below(len(o.Rules))]
	}
	return o
}

// observedNAT is the table, or nothing when it is about a name that the primary link no longer has.
func (k *Kernel) observedNAT() dataplane.NAT {
	if slot := k.slotByMAC(k.nat.Device); slot != none && k.links[slot].name != k.natLink {
		return dataplane.NAT{}
	}
	return k.nat
}

// below is a random number from 0 to n.
func (k *Kernel) below(n int) int { return int(k.next() % uint64(n+1)) }

// dumpLinks cuts the lists of all links out of two arrays, which is two allocations instead of a
// hundred. The lists have no spare room, so appending to one copies it.
func (k *Kernel) dumpLinks() []dataplane.Link {
	addresses, prefixes := 0, 0
	for i := range k.links {
		addresses += len(k.links[i].podAddresses) + len(k.links[i].added) + len(k.links[i].proxy)
		prefixes += len(k.links[i].addresses)
	}
	addressRoom, prefixRoom := make([]netip.Addr, 0, addresses), make([]netip.Prefix, 0, prefixes)
	cut := func(list []netip.Addr) []netip.Addr {
		if len(list) == 0 {
			return nil
		}
		at := len(addressRoom)
		addressRoom = append(addressRoom, list...)
		out := addressRoom[at:len(addressRoom):len(addressRoom)]
		slices.SortFunc(out, netip.Addr.Compare)
		return out
	}
	out := make([]dataplane.Link, 0, len(k.byName))
	for _, named := range k.byName {
		l := &k.links[named.slot]
		at := len(prefixRoom)
		prefixRoom = append(prefixRoom, l.addresses...)
		out = append(out, dataplane.Link{
			Index: l.index, Name: l.name, MAC: l.mac, Alias: l.alias, Adopted: l.adopted, Up: l.up, MTU: l.mtu, RPFilter: l.rpFilter,
			Veth: l.netns != 0, PeerLive: l.netns != 0,
			PeerAddresses: cut(k.peerAddresses(l)), Proxy: cut(l.proxy),
		})
		if len(prefixRoom) > at {
			out[len(out)-1].Addresses = prefixRoom[at:len(prefixRoom):len(prefixRoom)]
		}
	}
	return out
}

// peerAddresses are all addresses of the namespace behind a link, whichever of its interfaces has them.
func (k *Kernel) peerAddresses(l *link) []netip.Addr {
	if l.netns == 0 {
		return nil
	}
	if ns := k.namespace(l.netns); (ns == nil || ns.ends < 2) && len(l.added) == 0 {
		return l.podAddresses
	}
	var all []netip.Addr
	for i := range k.links {
		if k.links[i].netns == l.netns {
			all = append(append(all, k.links[i].podAddresses...), k.links[i].added...)
		}
	}
	return all
}

func (k *Kernel) dumpRoutes() []dataplane.Route {
	out := make([]dataplane.Route, len(k.routes))
	for i := range k.routes {
		r := &k.routes[i]
		out[i] = dataplane.Route{Table: r.table, Dst: r.dst, Via: r.via, Link: k.links[r.slot].name}
	}
	return out
}

func (k *Kernel) dumpRules() []dataplane.Rule {
	out := make([]dataplane.Rule, 0, len(k.to)+len(k.from)+len(k.wide))
	for _, r := range k.to {
		out = append(out, dataplane.Rule{Priority: r.priority, To: single(r.address), Table: r.table})
	}
	out = append(out, k.wide...)
	for _, r := range k.from {
		out = append(out, dataplane.Rule{Priority: r.priority, From: single(r.address), Table: r.table})
	}
	slices.SortFunc(out, dataplane.CompareRules)
	return out
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// InterruptDumps makes the next n observations incomplete, as NLM_F_DUMP_INTR and ENOBUFS do.
func (k *Kernel) InterruptDumps(n int) { k.interrupted = max(n, 0) }
