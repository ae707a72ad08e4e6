package kernel

import (
	"net/netip"

	"github.com/enilab/enilab/impl/dataplane"
)

// Counts is how much of everything there is. It compares: a node that took a pod and gave it up has
// the counts it had before.
type Counts struct {
	Veths      int // pairs, by any maker
	Ours       int // of these, with an alias of ours
	Routes     int
	Rules      int
	Addresses  int // configured in pods' namespaces
	Namespaces int
	Flows      int
}

// Counts counts.
func (k *Kernel) Counts() Counts {
	c := Counts{
		Routes: len(k.routes), Rules: len(k.to) + len(k.from) + len(k.wide), Addresses: len(k.holders),
		Namespaces: len(k.namespaces), Flows: len(k.flows),
	}
	for i := range k.links {
		if k.links[i].netns == 0 {
			continue
		}
		c.Veths++
		if _, _, _, _, ours := dataplane.ParseAlias(k.links[i].alias); ours {
			c.Ours++
		}
	}
	return c
}

// Uses says whether anything has an address: a pod to which it was given, the host, or a route into a pod's namespace.
func (k *Kernel) Uses(a netip.Addr) bool {
	if k.podLink(a) != nil || k.onHost(a) {
		return true
	}
	r := k.routeIn(dataplane.MainTable, a)
	return r != nil && r.dst.IsSingleIP() && k.links[r.slot].netns != 0
}

// What Leftovers names.
const (
	LeftRule  = "a rule is left"
	LeftRoute = "a host route is left"
	LeftFlow  = "a conntrack flow is left"
)

// Leftovers says whether something is left of an address that no live namespace has, and names the
// first. An address in use has none.
func (k *Kernel) Leftovers(a netip.Addr) (what string, left bool) {
	if k.podLink(a) != nil {
		return "", false
	}
	if len(rulesOf(k.to, a)) > 0 || len(rulesOf(k.from, a)) > 0 {
		return LeftRule, true
	}
	at := k.searchRoute(dataplane.MainTable, a.BitLen(), a)
	if k.matches(at, dataplane.MainTable, single(a)) {
		return LeftRoute, true
	}
	if k.HasFlow(a) {
		return LeftFlow, true
	}
	return "", false
}
