package judge

import (
	"fmt"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// clock counts how long the daemon has run, over all its lives: nothing is repaired while it is down, and a daemon
// that dies every minute does not get a new bound each time.
type clock struct {
	running bool
	since   time.Duration
	before  time.Duration
}

func (c *clock) start(now time.Duration) {
	if !c.running {
		c.running, c.since = true, now
	}
}

func (c *clock) stop(now time.Duration) {
	if c.running {
		c.running, c.before = false, c.before+now-c.since
	}
}

func (c *clock) at(now time.Duration) time.Duration {
	if c.running {
		return c.before + now - c.since
	}
	return c.before
}

// fault is something that is broken and may be repaired yet.
type fault struct {
	invariant ID
	att       ipam.Attachment
	since     time.Duration // on the node's clock
	seen      bool          // in the snapshot that is being judged
	reported  bool
}

// Judge takes a snapshot and judges what has to be repaired within a bound: I3, I10 and I16. The bound counts while the daemon
// runs, from the first snapshot that shows the fault.
func (a *Auditor) Judge(now time.Duration, c *Snapshot) {
	n := a.node(c.Node)
	if c.Up {
		n.up.start(now)
	} else {
		n.up.stop(now)
	}
	n.busy.mark(now, c)
	a.thirdParty(now, c)
	for i := range n.faults {
		n.faults[i].seen = false
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.State != ipam.Assigned {
			continue
		}
		a.look(I3)
		if !onAttached(c.Cloud, r) {
			a.fault(now, c, n, I3, r.Att, func() string { return describeRow(r) })
		}
	}
	for i := range c.Pods {
		p := &c.Pods[i]
		if !p.Ours {
			continue
		}
		a.look(I10)
		if p.Fault != "" {
			a.fault(now, c, n, I10, p.Att, func() string { return describePod(p) })
		}
	}
	if c.Up && c.View != nil {
		a.look(I16)
	}
	if c.starts() && (c.View.Named || !c.Silent) { // else it cannot be known which addresses the node has
		a.fault(now, c, n, I16, ipam.Attachment{}, func() string { return describeStart(c) })
	}
	n.repaired()
}

// onAttached says whether the row's address is a secondary of an attached ENI, asking its own ENI first.
func onAttached(cloud []CloudENI, r *ipam.Row) bool {
	for i := range cloud {
		if cloud[i].ID == r.ENI && cloud[i].Attached && slices.Contains(cloud[i].Secondaries, r.Address) {
			return true
		}
	}
	for i := range cloud {
		if cloud[i].ID != r.ENI && cloud[i].Attached && slices.Contains(cloud[i].Secondaries, r.Address) {
			return true
		}
	}
	return false
}

// fault remembers since when something is broken, and reports it once when that is longer than the bound.
func (a *Auditor) fault(now time.Duration, c *Snapshot, n *node, id ID, att ipam.Attachment, describe func() string) {
	f := n.fault(id, att)
	if f == nil {
		n.faults = append(n.faults, fault{invariant: id, att: att, since: n.up.at(now)})
		f = &n.faults[len(n.faults)-1]
	}
	f.seen = true
	age, bound := n.up.at(now)-f.since, a.bound(id)
	if f.reported || age <= bound {
		return
	}
	f.reported = true
	a.breaks(id, now, c.Node, "%s for %v on node-%d: expected %s within %v", describe(), age, c.Node, remedies[id], bound)
}

func (n *node) fault(id ID, att ipam.Attachment) *fault {
	for i := range n.faults {
		if f := &n.faults[i]; f.invariant == id && f.att == att {
			return f
		}
	}
	return nil
}

func (a *Auditor) bound(id ID) time.Duration {
	switch id {
	case I3:
		return a.bounds.Attached
	case I16:
		return a.bounds.Serves
	}
	return a.bounds.Reachable
}

// remedies are what ends a fault.
var remedies = [ids]string{I3: "repair", I10: "repair", I16: "it to serve"}

func describePod(p *PodSnapshot) string {
	return fmt.Sprintf("live pod %s (%v, address %v) has been unreachable (%s)", p.Name, p.Att, p.Address, p.Fault)
}

func describeRow(r *ipam.Row) string {
	return fmt.Sprintf("address %v of %v has been on no attached ENI (its row says %s)", r.Address, r.Att, r.ENI)
}

// repaired forgets the faults that the snapshot did not show.
func (n *node) repaired() {
	left := n.faults[:0]
	for _, f := range n.faults {
		if f.seen {
			left = append(left, f)
		}
	}
	n.faults = left
}

// Watching says until when the node's oldest unreported fault may last if the daemon keeps running: a world that
// judges only nodes that changed judges this one again right after that moment. ok is false when there is none.
func (a *Auditor) Watching(now time.Duration, node int) (until time.Duration, ok bool) {
	if node < 0 || node >= len(a.nodes) || !a.nodes[node].up.running {
		return 0, false
	}
	n := a.nodes[node]
	for i := range n.faults {
		f := &n.faults[i]
		if end := now + f.since + a.bound(f.invariant) - n.up.at(now); !f.reported && (!ok || end < until) {
			until, ok = end, true
		}
	}
	return until, ok
}
