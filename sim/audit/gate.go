package audit

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// tenure is the last use of an address on a node: held, or released at a moment that began a cool-down.
type tenure struct {
	att      ipam.Attachment
	held     bool
	released time.Duration
	coolDown time.Duration // the shortest that was set since the release
}

// take judges I7 and remembers the new holder. An attachment that comes back to its own address (drift repaired, ADD
// repeated) reuses nothing.
func (a *Auditor) take(now time.Duration, node int, att ipam.Attachment, addr netip.Addr) {
	n := a.node(node)
	t, known := n.gate[addr]
	if known && t.held && t.att == att {
		return
	}
	if known && !t.held && t.att != att && now+a.bounds.CoolDown < t.released+t.coolDown {
		a.breaks(I7, now, node, "address %v was given to %v on node-%d %v after %v released it: expected a cool-down of %v",
			addr, att, node, now-t.released, t.att, t.coolDown)
	}
	if n.gate == nil {
		n.gate = map[netip.Addr]tenure{}
	}
	n.gate[addr] = tenure{att: att, held: true}
}

// release begins the cool-down, unless somebody else has the address by now or it has begun.
func (n *node) release(now time.Duration, att ipam.Attachment, addr netip.Addr) {
	t, known := n.gate[addr]
	if known && (t.att != att || !t.held) {
		return
	}
	if n.gate == nil {
		n.gate = map[netip.Addr]tenure{}
	}
	n.gate[addr] = tenure{att: att, released: now, coolDown: n.coolDown}
}

// forget an address that EC2 has back.
func (n *node) forget(addr netip.Addr) { delete(n.gate, addr) }

// setCoolDown takes a new length. A shorter one also holds for what cools already: the node may have freed it by now.
// A longer one does not: the node may have freed it before.
func (n *node) setCoolDown(d time.Duration) {
	if d < n.coolDown {
		for addr, t := range n.gate { // order does not show: each entry on its own
			if !t.held && t.coolDown > d {
				t.coolDown = d
				n.gate[addr] = t
			}
		}
	}
	n.coolDown = d
}
