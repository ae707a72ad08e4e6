package dataplane

import (
	"net/netip"
	"slices"
)

// Index answers questions about one Observation in constant time. It keeps the observation and must
// not outlive a change of it.
type Index struct {
	Observation *Observation

	byName, byAlias, byMAC table // of Links
	byAddress              table // of about
	about                  []about
	nextRule               []int32 // the next one of the address, 1-based; 0 ends
	nextRoute              []int32
}

// about is what there is of one address.
type about struct {
	address netip.Addr
	link    int32 // by which it is in use
	how     useKind
	beyond  int32 // the link of a namespace that has it beyond its own, 1-based
	rule    int32 // the first, 1-based
	route   int32 // the first host route, 1-based
}

// useKind is why an address may not be given away.
type useKind uint8

const (
	unused     useKind = iota
	carried            // configured behind a veth, as its pod's own
	configured         // configured on the host
	routed             // a host route leads to a veth whose peer's namespace lives
)

// Index is IndexBy without records.
func (o *Observation) Index() *Index {
	return o.IndexBy(func(string, netip.Addr) bool { return false })
}

// IndexBy makes the index; it costs one pass over the observation. recorded says whether the records name an address as that of the pod behind
// the host veth of that name.
func (o *Observation) IndexBy(recorded func(link string, a netip.Addr) bool) *Index {
	links, most := len(o.Links), len(o.Routes)+len(o.Rules)
	for i := range o.Links {
		most += len(o.Links[i].Addresses) + len(o.Links[i].PeerAddresses)
	}
	ix := &Index{
		Observation: o,
		byName:      makeTable(links),
		byAlias:     makeTable(links),
		byMAC:       makeTable(links),
		byAddress:   makeTable(most),
		about:       make([]about, 0, links+8),
		nextRule:    make([]int32, len(o.Rules)),
		nextRoute:   make([]int32, len(o.Routes)),
	}
	ix.indexLinks()
	ix.indexRoutes()
	ix.indexRules()
	for i := range o.Links {
		if l := &o.Links[i]; l.Veth && l.PeerLive && len(l.PeerAddresses) > 0 {
			ix.indexPeer(int32(i), recorded)
		}
	}
	return ix
}

func (ix *Index) indexLinks() {
	for i := range ix.Observation.Links {
		l := &ix.Observation.Links[i]
		*ix.named(l.Name) = int32(i + 1)
		if l.Alias != "" {
			*ix.aliased(l.Alias) = int32(i + 1)
		} else if l.MAC != "" { // a host veth of ours is never an ENI, whatever its MAC
			if at := ix.withMAC(l.MAC); *at == 0 {
				*at = int32(i + 1)
			}
		}
		for _, p := range l.Addresses {
			a := ix.note(p.Addr())
			a.link, a.how = int32(i), configured
		}
	}
}

// indexPeer says which addresses of the namespace behind a veth are its pod's own: those that the link's alias, a route to it or the records
// name. A pod with NET_ADMIN can add any others to itself, so they are in no use of ours. Where none is named, each
// may be the pod's.
func (ix *Index) indexPeer(i int32, recorded func(link string, a netip.Addr) bool) {
	l := &ix.Observation.Links[i]
	_, _, _, own, named := ParseAlias(l.Alias)
	if named && len(l.PeerAddresses) == 1 && l.PeerAddresses[0] == own { // nearly always
		a := ix.note(own)
		a.link, a.how = i, carried
		return
	}
	owns := func(p netip.Addr) bool {
		if named {
			return p == own
		}
		a := ix.of(p)
		return a.how == routed && a.link == i || recorded(l.Name, p)
	}
	known := named || slices.ContainsFunc(l.PeerAddresses, owns)
	for _, p := range l.PeerAddresses {
		switch a := ix.note(p); {
		case owns(p) || !known && a.how == unused:
			a.link, a.how = i, carried
		case known:
			a.beyond = i + 1
		}
	}
}

// indexRoutes and indexRules go backwards, so that each chain is in the observation's order.
func (ix *Index) indexRoutes() {
	for i := len(ix.Observation.Routes) - 1; i >= 0; i-- {
		r := &ix.Observation.Routes[i]
		if !r.Dst.IsSingleIP() {
			continue
		}
		a := ix.note(r.Dst.Addr())
		ix.nextRoute[i], a.route = a.route, int32(i+1)
		if a.how != unused || r.Via.IsValid() {
			continue
		}
		if at := *ix.named(r.Link) - 1; at >= 0 && ix.Observation.Links[at].Veth && ix.Observation.Links[at].PeerLive {
			a.link, a.how = at, routed
		}
	}
}

func (ix *Index) indexRules() {
	for i := len(ix.Observation.Rules) - 1; i >= 0; i-- {
		if address, ok := ix.Observation.Rules[i].Addr(); ok {
			a := ix.note(address)
			ix.nextRule[i], a.rule = a.rule, int32(i+1)
		}
	}
}

// note is what there is of an address, to be added to.
func (ix *Index) note(a netip.Addr) *about {
	at := ix.place(a)
	if *at == 0 {
		ix.about = append(ix.about, about{address: a})
		*at = int32(len(ix.about))
	}
	return &ix.about[*at-1]
}

// of is what there is of an address.
func (ix *Index) of(a netip.Addr) about {
	if at := *ix.place(a); at != 0 {
		return ix.about[at-1]
	}
	return about{}
}

// place, named, aliased and withMAC are where a table has that key, or would have it.
func (ix *Index) place(a netip.Addr) *int32 {
	t := ix.byAddress
	i := t.slot(hashAddr(a))
	for t[i] != 0 && ix.about[t[i]-1].address != a {
		i = t.step(i)
	}
	return &t[i]
}

func (ix *Index) named(name string) *int32 {
	t := ix.byName
	i := t.slot(hashString(name))
	for t[i] != 0 && ix.Observation.Links[t[i]-1].Name != name {
		i = t.step(i)
	}
	return &t[i]
}

func (ix *Index) aliased(alias string) *int32 {
	t := ix.byAlias
	i := t.slot(hashString(alias))
	for t[i] != 0 && ix.Observation.Links[t[i]-1].Alias != alias {
		i = t.step(i)
	}
	return &t[i]
}

func (ix *Index) withMAC(mac string) *int32 {
	t := ix.byMAC
	i := t.slot(hashString(mac))
	for t[i] != 0 && ix.Observation.Links[t[i]-1].MAC != mac {
		i = t.step(i)
	}
	return &t[i]
}

// LinkByName is the link of that name, or nil.
func (ix *Index) LinkByName(name string) *Link { return ix.link(*ix.named(name)) }

// LinkByAlias is the link with exactly that alias, or nil.
func (ix *Index) LinkByAlias(alias string) *Link { return ix.link(*ix.aliased(alias)) }

// LinkByMAC is the link without an alias that has that MAC (an ENI's), or nil.
func (ix *Index) LinkByMAC(mac string) *Link { return ix.link(*ix.withMAC(mac)) }

func (ix *Index) link(at int32) *Link {
	if at == 0 {
		return nil
	}
	return &ix.Observation.Links[at-1]
}

// Uses says whether an address is in use: it is its pod's own and configured behind a veth whose peer's namespace lives, or a host
// route leads it there, or it is configured on the host. Rules and other routes are residue, not use.
// An observation that is not complete proves use, never its absence.
func (ix *Index) Uses(a netip.Addr) (evidence string, used bool) {
	u := ix.of(a)
	if u.how == unused {
		return "", false
	}
	name := ix.Observation.Links[u.link].Name
	switch u.how {
	case configured:
		return "configured on " + name, true
	case routed:
		return "routed to " + name + ", whose namespace lives", true
	}
	return "configured behind " + name, true
}

// User is the link by which an address is in use, or nil.
func (ix *Index) User(a netip.Addr) *Link {
	u := ix.of(a)
	if u.how == unused {
		return nil
	}
	return &ix.Observation.Links[u.link]
}

// Beyond is the link of a pod that has the address in its namespace beyond its own, or nil. That is no use of it.
func (ix *Index) Beyond(a netip.Addr) *Link { return ix.link(ix.of(a).beyond) }

// Residue says whether rules or host routes are left for an address that nothing uses, and names the
// first. It is removed before the address is given away again; it is never a veto.
func (ix *Index) Residue(a netip.Addr) (evidence string, left bool) {
	switch u := ix.of(a); {
	case u.how != unused:
		return "", false
	case u.rule != 0:
		return "a rule", true
	case u.route != 0:
		return "a route", true
	}
	return "", false
}

// hasRule says whether that very rule is there.
func (ix *Index) hasRule(want Rule) bool {
	a, ok := want.Addr()
	if !ok {
		return slices.Contains(ix.Observation.Rules, want)
	}
	for i := ix.of(a).rule; i != 0; i = ix.nextRule[i-1] {
		if ix.Observation.Rules[i-1] == want {
			return true
		}
	}
	return false
}

// hasStaleRule says whether a rule like want leads to another table.
func (ix *Index) hasStaleRule(want Rule) bool {
	a, _ := want.Addr()
	for i := ix.of(a).rule; i != 0; i = ix.nextRule[i-1] {
		r := ix.Observation.Rules[i-1]
		if r.Table == want.Table {
			continue
		}
		r.Table = want.Table
		if r == want {
			return true
		}
	}
	return false
}

// hasRoute says whether that very route is the one that counts: the first of its table and prefix.
func (ix *Index) hasRoute(want Route) bool {
	first := ix.routeTo(want.Table, want.Dst)
	return first != nil && *first == want
}

// routeTo is the first route of a table with exactly that destination, or nil.
func (ix *Index) routeTo(table int, dst netip.Prefix) *Route {
	if dst.IsSingleIP() {
		for i := ix.of(dst.Addr()).route; i != 0; i = ix.nextRoute[i-1] {
			if r := &ix.Observation.Routes[i-1]; r.Table == table {
				return r
			}
		}
		return nil
	}
	for i := range ix.Observation.Routes {
		if r := &ix.Observation.Routes[i]; r.Table == table && r.Dst == dst {
			return r
		}
	}
	return nil
}
