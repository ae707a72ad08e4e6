package kernel

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
)

// route is one route; via is invalid for scope link.
type route struct {
	table int
	dst   netip.Prefix // masked
	via   netip.Addr
	slot  int32
}

// searchRoute is the place of the first route of that table and destination, or where it would be.
func (k *Kernel) searchRoute(table, bits int, a netip.Addr) int {
	lo, hi := 0, len(k.routes)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if k.routes[mid].before(table, bits, a) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (r *route) before(table, bits int, a netip.Addr) bool {
	if r.table != table {
		return r.table < table
	}
	if b := r.dst.Bits(); b != bits {
		return b > bits
	}
	return r.dst.Addr().Less(a)
}

func (k *Kernel) matches(at, table int, dst netip.Prefix) bool {
	return at < len(k.routes) && k.routes[at].table == table && k.routes[at].dst == dst
}

// insertRoute adds a route behind its equals (NLM_F_APPEND).
func (k *Kernel) insertRoute(r route) {
	at := k.searchRoute(r.table, r.dst.Bits(), r.dst.Addr())
	for k.matches(at, r.table, r.dst) {
		at++
	}
	k.routes = slices.Insert(k.routes, at, r)
	k.changedRoute(r.dst)
}

// replaceRoute makes r the first of its table and destination (NLM_F_REPLACE).
func (k *Kernel) replaceRoute(r route) {
	at := k.searchRoute(r.table, r.dst.Bits(), r.dst.Addr())
	if !k.matches(at, r.table, r.dst) {
		k.routes = slices.Insert(k.routes, at, r)
	} else if k.routes[at] == r {
		return
	} else {
		k.routes[at] = r
	}
	k.changedRoute(r.dst)
}

// removeRoute removes the routes of that table and destination through one link.
func (k *Kernel) removeRoute(table int, dst netip.Prefix, slot int32) {
	at := k.searchRoute(table, dst.Bits(), dst.Addr())
	for k.matches(at, table, dst) {
		if k.routes[at].slot != slot {
			at++
			continue
		}
		k.routes = slices.Delete(k.routes, at, at+1)
		k.changedRoute(dst)
	}
}

// removeRoutesOf removes every route through a link.
func (k *Kernel) removeRoutesOf(slot int32) {
	k.routes = slices.DeleteFunc(k.routes, func(r route) bool {
		if r.slot != slot {
			return false
		}
		k.changedRoute(r.dst)
		return true
	})
}

func (k *Kernel) changedRoute(dst netip.Prefix) {
	if dst.IsSingleIP() {
		k.changed(dst.Addr())
	} else {
		k.changedWidely()
	}
}

// routeIn is what a table answers for a destination, or nil. An invalid destination is "somewhere
// else": only a default route leads there.
func (k *Kernel) routeIn(table int, dst netip.Addr) *route {
	shorter := 0
	if dst.IsValid() {
		at := k.searchRoute(table, dst.BitLen(), dst)
		if at < len(k.routes) {
			if r := &k.routes[at]; r.table == table && r.dst.IsSingleIP() && r.dst.Addr() == dst {
				return r
			}
		}
		shorter = dst.BitLen() - 1
	}
	for at := k.searchRoute(table, shorter, netip.Addr{}); at < len(k.routes); at++ {
		r := &k.routes[at]
		if r.table != table {
			return nil
		}
		if r.dst.Bits() == 0 || r.dst.Contains(dst) {
			return r
		}
	}
	return nil
}

// onLink says whether a gateway is reachable through a link: by a route of scope link in the table
// itself or in main (fib_check_nh).
func (k *Kernel) onLink(table int, gateway netip.Addr, slot int32) bool {
	return k.linkRoute(table, gateway, slot) || table != dataplane.MainTable && k.linkRoute(dataplane.MainTable, gateway, slot)
}

func (k *Kernel) linkRoute(table int, gateway netip.Addr, slot int32) bool {
	for at := k.searchRoute(table, gateway.BitLen(), netip.Addr{}); at < len(k.routes) && k.routes[at].table == table; at++ {
		if r := &k.routes[at]; r.slot == slot && !r.via.IsValid() && r.dst.Contains(gateway) {
			return true
		}
	}
	return false
}
