package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
)

// addressRule is a rule about one address; lists of them are sorted by address, then priority, and equals
// are in order of insertion, which is the order the kernel tries them in.
type addressRule struct {
	address  netip.Addr
	priority int
	table    int
}

// mainPriority is the kernel's own "from all lookup main", which is never removed here.
const mainPriority = 32766

func (r *addressRule) before(a netip.Addr, priority int) bool {
	if c := r.address.Compare(a); c != 0 {
		return c < 0
	}
	return r.priority < priority
}

// searchRules is the place of the first rule not before (a, priority).
func searchRules(rules []addressRule, a netip.Addr, priority int) int {
	lo, hi := 0, len(rules)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if rules[mid].before(a, priority) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// list is where a rule is kept, as one address's or among the wide ones (nil).
func (k *Kernel) list(r dataplane.Rule) (*[]addressRule, netip.Addr) {
	a, ok := r.Addr()
	switch {
	case !ok:
		return nil, a
	case r.To.IsValid():
		return &k.to, a
	default:
		return &k.from, a
	}
}

// addRule adds a rule that is not there yet.
func (k *Kernel) addRule(r dataplane.Rule) {
	list, a := k.list(r)
	if list == nil {
		at, known := slices.BinarySearchFunc(k.wide, r, dataplane.CompareRules)
		if !known {
			k.wide = slices.Insert(k.wide, at, r)
			k.changedWidely()
		}
		return
	}
	rule := addressRule{a, r.Priority, r.Table}
	at := searchRules(*list, a, r.Priority)
	for at < len(*list) && (*list)[at].address == a && (*list)[at].priority == r.Priority {
		if (*list)[at] == rule {
			return
		}
		at++
	}
	*list = slices.Insert(*list, at, rule)
	k.changed(a)
}

// removeRules removes the rules like r, in every table (r.Table is 0), in that table, or in every table
// but that one.
func (k *Kernel) removeRules(r dataplane.Rule, others bool) {
	hit := func(table int) bool { return r.Table == 0 || (table == r.Table) != others }
	list, a := k.list(r)
	if list == nil {
		before := len(k.wide)
		k.wide = slices.DeleteFunc(k.wide, func(w dataplane.Rule) bool {
			table := w.Table
			w.Table = r.Table
			return w == r && hit(table)
		})
		if len(k.wide) != before {
			k.changedWidely()
		}
		return
	}
	at := searchRules(*list, a, r.Priority)
	for at < len(*list) && (*list)[at].address == a && (*list)[at].priority == r.Priority {
		if !hit((*list)[at].table) {
			at++
			continue
		}
		*list = slices.Delete(*list, at, at+1)
		k.changed(a)
	}
}

// rulesOf is the part of a list that is about one address (priorities are not negative).
func rulesOf(rules []addressRule, a netip.Addr) []addressRule {
	if !a.IsValid() {
		return nil
	}
	at := searchRules(rules, a, 0)
	end := at
	for end < len(rules) && rules[end].address == a {
		end++
	}
	return rules[at:end]
}

// lookup is the route a packet takes: rules by priority, the first table with an answer. An invalid
// destination is "somewhere else", see routeIn.
func (k *Kernel) lookup(source, destination netip.Addr, mark uint32) *route {
	to, from, wide := rulesOf(k.to, destination), rulesOf(k.from, source), k.wide
	triedMain := false
	for {
		table, best := 0, 1<<31
		if len(to) > 0 {
			table, best = to[0].table, to[0].priority
		}
		if len(from) > 0 && from[0].priority < best {
			table, best = from[0].table, from[0].priority
		}
		for len(wide) > 0 && !wideMatch(&wide[0], source, destination, mark) {
			wide = wide[1:]
		}
		if len(wide) > 0 && wide[0].Priority < best {
			table, best = wide[0].Table, wide[0].Priority
		}
		if !triedMain && mainPriority < best {
			triedMain, table, best = true, dataplane.MainTable, mainPriority
		} else if best == 1<<31 {
			return nil
		} else if len(to) > 0 && to[0].priority == best {
			to = to[1:]
		} else if len(from) > 0 && from[0].priority == best {
			from = from[1:]
		} else {
			wide = wide[1:]
		}
		if r := k.routeIn(table, destination); r != nil {
			return r
		}
	}
}

func wideMatch(r *dataplane.Rule, source, destination netip.Addr, mark uint32) bool {
	if r.Mark != 0 && mark&r.Mark != r.Mark {
		return false
	}
	return (!r.From.IsValid() || r.From.Contains(source)) && (!r.To.IsValid() || r.To.Contains(destination))
}
