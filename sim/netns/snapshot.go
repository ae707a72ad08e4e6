package netns

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
)

const (
	// snapshotPeriod is between two snapshots of a node that changes: far below the bounds of what is judged on them.
	snapshotPeriod = time.Second
	// flowPeriod is between two bytes of a flow.
	flowPeriod = 5 * time.Second
)

// armSnapshot makes sure that there is a snapshot when something changes, or a fault's bound ends.
func (w *World) armSnapshot() {
	at := never
	if w.Flowing() {
		at = w.now() + flowPeriod
	}
	for n := range w.nodes.living() {
		if n.Changed {
			at = min(at, w.now()+snapshotPeriod)
		}
		if until, ok := w.Auditor.Watching(w.now(), int(n.No)); ok {
			at = min(at, max(until, w.now())+time.Millisecond)
		}
	}
	if at >= w.snapshotAt {
		return
	}
	w.snapshotAt = at
	w.at(at, func() {
		if at == w.snapshotAt {
			w.snapshotAt = never
			w.judge()
		}
	})
}

// judge takes a snapshot of every node that has changed or that the auditor watches, if it is consistent: nothing of the node works, so
// nothing moves while it is collected. A node that does not come to rest is not judged, and stays due.
func (w *World) judge() {
	for _, n := range w.nodes[1:] {
		if w.broken == nil {
			w.Flow(&n.Node)
		}
		if n.Gone || w.broken != nil {
			continue
		}
		_, watched := w.Auditor.Watching(w.now(), int(n.No))
		if !n.Changed && !watched || n.busy(w.now()) != "" {
			continue
		}
		n.Changed = false
		c := w.collect(n)
		w.Auditor.Judge(w.now(), c)
		n.compare()
	}
}

// collect is a snapshot of a node that is at rest.
func (w *World) collect(n *instance) *judge.Snapshot {
	c := &judge.Snapshot{Node: int(n.No), Settings: n.Settings}
	c.Cloud = judge.AppendENIs(nil, w.Whose(&n.Node))
	if w.parts.WithoutBooks {
		c.Up = n.life != nil
	} else {
		c.Books(n.witness().Core(), &w.view)
		c.PendingDELs = w.intents(n)
	}
	c.Silent = w.EC2.MetadataSilent(w.now(), n.Instance)
	n.pods(c)
	c.ThirdParty = n.Node.ThirdParty()
	return c
}

// intents counts the DELs that wait on the node's disk.
func (w *World) intents(n *instance) int {
	files, err := filepath.Glob(n.box.Root() + "/run/aws-node/del/*.json")
	w.fail(err)
	return len(files)
}

// steadyLimit is how long a cluster may take to come to rest before something is expected of it.
const steadyLimit = 5 * time.Second

// Steady runs on to the first moment at which a consistent snapshot can be made, or to the limit.
func (w *World) Steady() {
	end := w.now() + slowed(steadyLimit)
	w.until(end, func() bool { return w.nodes.busy(w.now()) == "" })
}

// Settle judges what has to hold once settled.
func (w *World) Settle() (underWay []string) {
	w.Steady()
	w.judge()
	for n := range w.nodes.living() {
		if w.broken != nil || w.unwanted() {
			continue
		}
		if why := w.rest(n); w.unwanted() {
			return underWay
		} else if why != "" { // no snapshot is not judged, and not judged is not held
			underWay = append(underWay, fmt.Sprintf("%s: it did not come to rest within %v: %s", n.Name(), slowed(steadyLimit), why))
			continue
		}
		c := w.collect(n)
		c.Leaks = w.leaks(n)
		whose := w.Whose(&n.Node)
		c.Subnets, c.OtherGroups = whose.Subnets(), whose.Grouped()
		underWay = append(underWay, w.Auditor.Settle(w.now(), c)...)
		n.compare()
	}
	underWay = append(underWay, w.settleCloud()...)
	w.resolve()
	return append(underWay, actions.Pending(w.Kube, w.IsGone)...)
}

// rest runs on to the first moment at which nothing of a node works, or to the limit; then it says what does.
func (w *World) rest(n *instance) string {
	at := func() string { return cmp.Or(n.works(w.now()), n.settles()) }
	if at() == "" {
		return ""
	}
	rested, limit := false, slowed(steadyLimit)
	if n.system != nil {
		limit += restTime
	}
	w.until(w.now()+limit, func() bool { rested = at() == ""; return rested })
	if rested {
		return ""
	}
	return at()
}

// leaks are what has no owner on a node.
func (w *World) leaks(n *instance) []string {
	if n.life == nil {
		return nil
	}
	live := map[uint64]bool{}
	for t := range n.CRI.Sandboxes() {
		live[t.Netns] = true
	}
	held, err := n.box.Addresses()
	w.fail(err)
	var stray []netip.Addr
	for _, h := range held {
		if !live[h.Inode] {
			stray = append(stray, h.Addr)
		}
	}
	o, err := n.box.Observe()
	w.fail(err)
	if w.parts.WithoutBooks {
		normalize(&o)
		return judge.ResidueOf(stray, &o).Unclaimed(w.holds(n))
	}
	return judge.ResidueOf(stray, &o).Leaks(n.witness().Core())
}

// settleCloud judges the ENIs that no daemon knows (I5), and names those that one will delete.
func (w *World) settleCloud() (underWay []string) {
	var lives []*judge.Life
	for _, n := range w.nodes[1:] {
		lives = append(lives, n.witness())
	}
	return w.witness.Orphans(w.EC2, lives)
}

// Unready names what is under way anywhere; "" is nothing: every pod runs, nothing waits, cools down or has to be repeated.
func (w *World) Unready() string {
	if why := w.Host.Unready(); why != "" {
		return why
	}
	for n := range w.nodes.living() {
		for t := range n.CRI.Sandboxes() {
			if !t.Running {
				return fmt.Sprintf("%s: the sandbox of %s is to be removed", n.Name(), t.Name)
			}
		}
		if left := w.intents(n); left > 0 {
			return fmt.Sprintf("%s: %d DELs wait on its disk", n.Name(), left)
		}
	}
	return ""
}
