package dataplane

import "net/netip"

// Residue returns the operations that remove what is no longer wanted: links with our alias, and the
// rules and host routes of addresses, that keep refuses. keep is asked with the alias of a link, and
// with alias "" about an address alone, so it must also know the primary addresses of the ENIs.
//
// What third parties made is left alone: links without our alias, rules of other priorities or shapes,
// routes that have a gateway or lead to a link that is not ours, and whatever belongs to an address
// that a third party's link still uses (use is a veto, rule B). Deleting a link is the caller's decision:
// it passes a keep that says yes to every alias unless it has proof that the sandbox is gone.
func Residue(ix *Index, keep func(a netip.Addr, alias string) bool) Plan {
	r := residue{ix: ix, keep: keep}
	r.links()
	r.rules()
	r.routes()
	return Plan{Ops: r.ops}
}

type residue struct {
	ix      *Index
	keep    func(netip.Addr, string) bool
	deleted map[string]bool // names of links this plan deletes
	ops     []Op
}

func (r *residue) links() {
	for i := range r.ix.Observation.Links {
		l := &r.ix.Observation.Links[i]
		if !l.Veth {
			continue
		}
		_, _, _, a, ours := ParseAlias(l.Alias)
		if !ours || r.keep(a, l.Alias) {
			continue
		}
		if r.deleted == nil {
			r.deleted = map[string]bool{}
		}
		r.deleted[l.Name] = true
		r.ops = append(r.ops, Op{Kind: DeleteVeth, Alias: l.Alias})
	}
}

// wanted says whether an address's rules and routes must stay.
func (r *residue) wanted(a netip.Addr) bool {
	user := r.ix.User(a)
	return user != nil && !r.deleted[user.Name] || r.keep(a, "")
}

func (r *residue) rules() {
	for _, rule := range r.ix.Observation.Rules {
		a, ok := rule.Addr()
		if !ok || !ourRule(rule) || r.wanted(a) {
			continue
		}
		r.ops = append(r.ops, Op{Kind: RemoveRule, Priority: rule.Priority, Addr: a, Table: rule.Table})
	}
}

// ourRule knows our rules by priority and shape: the kernel keeps nothing else to tell them by.
func ourRule(r Rule) bool {
	switch r.Priority {
	case PriorityToPod:
		return r.To.IsValid() && r.Table == MainTable
	case PriorityFromPod, PriorityFromENI:
		return r.From.IsValid()
	}
	return false
}

// routes come after links: a deleted link has taken its own along.
func (r *residue) routes() {
	for i := range r.ix.Observation.Routes {
		route := &r.ix.Observation.Routes[i]
		if route.Table != MainTable || !route.Dst.IsSingleIP() || route.Via.IsValid() || r.deleted[route.Link] {
			continue
		}
		a := route.Dst.Addr()
		if r.keep(a, "") {
			continue
		}
		op := Op{Kind: RemoveRoute, Link: route.Link, Table: MainTable, Dst: route.Dst}
		if l := r.ix.LinkByName(route.Link); l != nil {
			_, _, _, own, ours := ParseAlias(l.Alias)
			if !ours || own == a { // a kept link keeps the route of its own address
				continue
			}
			op.Alias = l.Alias
		} else if r.wanted(a) {
			continue
		}
		r.ops = append(r.ops, op)
	}
}
