package judge

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// tenure is the last use of an address on a node: held, or released at a moment that began a cool-down.
type tenure struct {
	att      ipam.Attachment
	held     bool
	released time.Duration
	coolDown time.Duration // the shortest that was set since the release
	flush    ipam.ID       // the Apply of the running daemon that has its flows forgotten, wanted since the release
	flowless bool          // that was applied
	done     bool          // it was when its cool-down ended, or the machine has rebooted: no later daemon owes that
}

// take judges I7 and remembers the new holder. An attachment that comes back to its own address (drift repaired, ADD
// repeated) reuses nothing.
func (a *Auditor) take(now time.Duration, node int, att ipam.Attachment, addr netip.Addr) {
	n := a.node(node)
	t, known := n.gate[addr]
	if known && t.held && t.att == att {
		return
	}
	a.look(I7)
	if known && !t.held && t.att != att && now+a.bounds.CoolDown < t.released+t.coolDown {
		a.breaks(I7, now, node, "address %v was given to %v on node-%d %v after %v released it: expected a cool-down of %v",
			addr, att, node, now-t.released, t.att, t.coolDown)
	} else if known && !t.held && t.att != att && n.running && !t.flowless && !t.done && a.without&Books == 0 {
		a.breaks(I7, now, node, "address %v was given to %v on node-%d before the running daemon had conntrack forget the flows that %v left: expected that first",
			addr, att, node, t.att)
	}
	if n.gate == nil {
		n.gate = map[netip.Addr]tenure{}
	}
	n.gate[addr] = tenure{att: att, held: true}
}

// givenBack judges I7 on an address that the node has EC2 take back, alone, in a prefix or with its ENI: the pod that
// has it next gets what is sent to it.
func (a *Auditor) givenBack(now time.Duration, node int, addr netip.Addr) {
	t, known := a.node(node).gate[addr]
	if a.look(I7); known && !t.held && now+a.bounds.CoolDown < t.released+t.coolDown {
		a.breaks(I7, now, node, "address %v was given back by node-%d %v after %v released it: expected a cool-down of %v",
			addr, node, now-t.released, t.att, t.coolDown)
	}
}

// release begins the cool-down, unless another pod has the address by now or it has begun.
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

// releaseAll begins the cool-down of all that attachments hold.
func (n *node) releaseAll(now time.Duration, of func(ipam.Attachment) bool) {
	for addr, t := range n.gate { // a set: the order does not show, each address is released by itself
		if t.held && of(t.att) {
			n.release(now, t.att, addr)
		}
	}
}

// flushes remembers which addresses an Apply has the flows forgotten of; what is still held then, is not done with.
func (n *node) flushes(a *ipam.Apply) {
	for i := range a.Plan.Ops {
		if op := &a.Plan.Ops[i]; op.Kind == dataplane.FlushConntrack {
			if t, known := n.gate[op.Addr]; known && !t.held {
				t.flush, t.flowless = a.ID, false
				n.gate[op.Addr] = t
			}
		}
	}
}

// flushed takes the outcome of an Apply that ran to its end.
func (n *node) flushed(in ipam.Applied) {
	if in.Err != nil {
		return
	}
	for addr, t := range n.gate { // order does not show: each entry on its own
		if t.flush == in.ID && !t.held {
			t.flowless = true
			n.gate[addr] = t
		}
	}
}

// anew ends the life of a daemon. The next one knows nothing of what this one had conntrack forget, but for what had cooled by then.
func (n *node) anew(now time.Duration) {
	for addr, t := range n.gate { // order does not show: each entry on its own
		t.done = t.done || t.flowless && now >= t.released+t.coolDown
		t.flush, t.flowless = 0, false
		n.gate[addr] = t
	}
}

// rebooted: the kernel remembers nothing.
func (n *node) rebooted() {
	for addr, t := range n.gate { // order does not show: each entry on its own
		t.done = true
		n.gate[addr] = t
	}
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
