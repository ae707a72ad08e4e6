package dataplane

import "net/netip"

// Index answers questions about one Observation in constant time. It keeps the observation and must
// not outlive a change of it.
type Index struct {
	Observation *Observation

	byName, byAlias, byMAC map[string]int32 // into Links
	uses                   map[netip.Addr]use
	rules                  map[netip.Addr]int32 // first rule of an address, 1-based
	nextRule               []int32              // the next one, 1-based; 0 ends
	routes                 map[netip.Addr]int32 // first host route of an address, 1-based
	nextRoute              []int32
}

// use is why an address may not be given away.
type use struct {
	link int32
	how  useKind
}

type useKind uint8

const (
	carried    useKind = iota // configured behind a veth
	configured                // configured on the host
	routed                    // a host route leads to a veth whose peer's namespace lives
)

// Index makes the index; it costs one pass over the observation.
func (o *Observation) Index() *Index {
	ix := &Index{
		Observation: o,
		byName:      make(map[string]int32, len(o.Links)),
		byAlias:     make(map[string]int32, len(o.Links)),
		byMAC:       make(map[string]int32, len(o.Links)),
		uses:        make(map[netip.Addr]use, len(o.Links)),
		rules:       make(map[netip.Addr]int32, len(o.Links)),
		nextRule:    make([]int32, len(o.Rules)),
		routes:      make(map[netip.Addr]int32, len(o.Links)),
		nextRoute:   make([]int32, len(o.Routes)),
	}
	ix.indexLinks()
	ix.indexRoutes()
	ix.indexRules()
	return ix
}

func (ix *Index) indexLinks() {
	for i := range ix.Observation.Links {
		l := &ix.Observation.Links[i]
		ix.byName[l.Name] = int32(i)
		if l.Alias != "" {
			ix.byAlias[l.Alias] = int32(i)
		} else if l.MAC != "" { // a host veth of ours is never an ENI, whatever its MAC
			if _, taken := ix.byMAC[l.MAC]; !taken {
				ix.byMAC[l.MAC] = int32(i)
			}
		}
		for _, p := range l.Addresses {
			ix.uses[p.Addr()] = use{int32(i), configured}
		}
		if !l.Veth || !l.PeerLive {
			continue
		}
		for _, a := range l.PeerAddresses {
			ix.uses[a] = use{int32(i), carried}
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
		a := r.Dst.Addr()
		ix.nextRoute[i] = ix.routes[a]
		ix.routes[a] = int32(i + 1)
		l := ix.LinkByName(r.Link)
		if l == nil || !l.Veth || !l.PeerLive || r.Via.IsValid() {
			continue
		}
		if _, known := ix.uses[a]; !known {
			ix.uses[a] = use{ix.byName[r.Link], routed}
		}
	}
}

func (ix *Index) indexRules() {
	for i := len(ix.Observation.Rules) - 1; i >= 0; i-- {
		if a, ok := ix.Observation.Rules[i].Addr(); ok {
			ix.nextRule[i] = ix.rules[a]
			ix.rules[a] = int32(i + 1)
		}
	}
}

// LinkByName is the link of that name, or nil.
func (ix *Index) LinkByName(name string) *Link { return ix.link(ix.byName, name) }

// LinkByAlias is the link with exactly that alias, or nil.
func (ix *Index) LinkByAlias(alias string) *Link { return ix.link(ix.byAlias, alias) }

// LinkByMAC is the link without an alias that has that MAC (an ENI's), or nil.
func (ix *Index) LinkByMAC(mac string) *Link { return ix.link(ix.byMAC, mac) }

func (ix *Index) link(in map[string]int32, key string) *Link {
	i, ok := in[key]
	if !ok {
		return nil
	}
	return &ix.Observation.Links[i]
}

// Uses says whether an address is in use: a veth whose peer's namespace lives carries it or a host
// route leads it there, or it is configured on the host. Rules and other routes are residue, not use.
// An observation that is not complete proves use, never its absence.
func (ix *Index) Uses(a netip.Addr) (evidence string, used bool) {
	u, ok := ix.uses[a]
	if !ok {
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
	u, ok := ix.uses[a]
	if !ok {
		return nil
	}
	return &ix.Observation.Links[u.link]
}

// Residue says whether rules or host routes are left for an address that nothing uses, and names the
// first. It is removed before the address is given away again; it is never a veto.
func (ix *Index) Residue(a netip.Addr) (evidence string, left bool) {
	if _, used := ix.uses[a]; used {
		return "", false
	}
	if ix.rules[a] != 0 {
		return "a rule", true
	}
	if ix.routes[a] != 0 {
		return "a route", true
	}
	return "", false
}

// hasRule says whether that very rule is there.
func (ix *Index) hasRule(want Rule) bool {
	a, ok := want.Addr()
	if !ok {
		for _, r := range ix.Observation.Rules {
			if r == want {
				return true
			}
		}
		return false
	}
	for i := ix.rules[a]; i != 0; i = ix.nextRule[i-1] {
		if ix.Observation.Rules[i-1] == want {
			return true
		}
	}
	return false
}

// hasStaleRule says whether a rule like want leads to another table.
func (ix *Index) hasStaleRule(want Rule) bool {
	a, _ := want.Addr()
	for i := ix.rules[a]; i != 0; i = ix.nextRule[i-1] {
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
		for i := ix.routes[dst.Addr()]; i != 0; i = ix.nextRoute[i-1] {
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
