package netns

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
)

// snapshotPeriod is between two snapshots of a node that changes: far below the bounds of what is judged on them.
const snapshotPeriod = time.Second

// observer is what is seen of a world: snapshots of its nodes while they change, for the judge, and what there is once they
// have settled.
type observer struct {
	w          *World
	snapshotAt time.Duration // the next one
	view       ipam.View
}

// eyes are the world's, for its witness.
type eyes struct{ w *World }

var _ judge.Eyes = eyes{}

func (e eyes) Now() time.Duration { return e.w.now() }

// Ran: the model's kernel runs it too.
func (e eyes) Ran(l *judge.Life, a *ipam.Apply, done *ipam.Applied) {
	e.w.nodes[l.Number()].mirrored(a, done)
}

func (e eyes) Held(node int32, a netip.Addr) int {
	n := e.w.nodes[node]
	if n.Gone {
		return 0
	}
	all, err := n.box.Addresses()
	e.w.fail(err)
	count := 0
	for _, h := range all {
		if h.Addr == a {
			count++
		}
	}
	return count
}

// arm makes sure that there is a snapshot when something changes, or a fault's bound ends.
func (o *observer) arm() {
	w := o.w
	at := never
	if w.Flowing() {
		at = w.now() + models.FlowPeriod
	}
	for n := range w.nodes.living() {
		if n.Changed {
			at = min(at, w.now()+snapshotPeriod)
		}
		if until, ok := w.Auditor.Watching(w.now(), int(n.No)); ok {
			at = min(at, max(until, w.now())+time.Millisecond)
		}
	}
	if at >= o.snapshotAt {
		return
	}
	o.snapshotAt = at
	w.at(at, func() {
		if at == o.snapshotAt {
			o.snapshotAt = never
			o.judge()
		}
	})
}

// judge takes a snapshot of every node that has changed or that the auditor watches, if it is consistent: nothing of the node works, so
// nothing moves while it is collected. A node that does not come to rest is not judged, and stays due.
func (o *observer) judge() {
	w := o.w
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
		c := n.collect()
		w.Auditor.Judge(w.now(), c)
		n.compare()
	}
}

// collect is a snapshot of a node that is at rest.
func (n *instance) collect() *judge.Snapshot {
	w := n.w
	c := &judge.Snapshot{Node: int(n.No), Settings: n.Settings}
	c.Cloud = judge.AppendENIs(nil, w.Whose(&n.Node))
	if w.parts.WithoutBooks {
		c.Up = n.life != nil
	} else {
		c.Books(n.witness().Core(), &w.view)
		c.PendingDELs = n.intents()
	}
	c.Silent = w.EC2.MetadataSilent(w.now(), n.Instance)
	n.pods(c)
	c.ThirdParty = n.Node.ThirdParty()
	return c
}

// intents counts the DELs that wait on the node's disk.
func (n *instance) intents() int {
	files, err := filepath.Glob(n.box.Root() + "/run/aws-node/del/*.json")
	n.w.fail(err)
	return len(files)
}

// steadyLimit is how long a cluster may take to come to rest before something is expected of it.
const steadyLimit = 5 * time.Second

// Steady runs on to the first moment at which a consistent snapshot can be made, or to the limit.
func (o *observer) Steady() {
	o.w.until(o.w.now()+slowed(steadyLimit), func() bool { return o.w.nodes.busy(o.w.now()) == "" })
}

// Settle judges what has to hold once settled.
func (o *observer) Settle() (underWay []string) {
	w := o.w
	o.Steady()
	o.judge()
	for n := range w.nodes.living() {
		if w.broken != nil || w.unwanted() {
			continue
		}
		if why := n.rest(); w.unwanted() {
			return underWay
		} else if why != "" { // no snapshot is not judged, and not judged is not held
			underWay = append(underWay, fmt.Sprintf("%s: it did not come to rest within %v: %s", n.Name(), slowed(steadyLimit), why))
			continue
		}
		c := n.collect()
		c.Leaks = n.leaks()
		whose := w.Whose(&n.Node)
		c.Subnets, c.OtherGroups = whose.Subnets(), whose.Grouped()
		underWay = append(underWay, w.Auditor.Settle(w.now(), c)...)
		n.compare()
	}
	var lives []*judge.Life
	for _, n := range w.nodes[1:] {
		lives = append(lives, n.witness())
	}
	underWay = append(underWay, w.witness.Orphans(w.EC2, lives)...)
	o.resolve()
	return append(underWay, actions.Pending(w.Kube, w.IsGone)...)
}

// rest runs on to the first moment at which nothing of a node works, or to the limit; then it says what does.
func (n *instance) rest() string {
	w := n.w
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
func (n *instance) leaks() []string {
	w := n.w
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
		return judge.ResidueOf(stray, &o).Unclaimed(n.holds())
	}
	return judge.ResidueOf(stray, &o).Leaks(n.witness().Core())
}

// holds says of an address of the kernel that it is in use: a living sandbox, or the machine itself.
func (n *instance) holds() func(netip.Addr) bool {
	w := n.w
	var own []netip.Addr
	for _, p := range w.Cluster.Prefixes() {
		own = append(own, p.Masked().Addr().Next()) // the router
	}
	for t := range n.CRI.Sandboxes() {
		own = append(own, t.Address)
	}
	for _, id := range w.EC2.AttachedENIs(n.Instance) {
		e, _ := w.EC2.ENI(id)
		own = append(own, e.Primary)
	}
	return func(a netip.Addr) bool { return slices.Contains(own, a) }
}

// resolve runs on until nothing is doubted.
func (o *observer) resolve() {
	w := o.w
	for end := w.now() + 4*slowed(doubtTime); w.nodes.doubted() && w.broken == nil && w.now() < end && !w.unwanted(); {
		w.until(w.now()+doubtPause, nil)
	}
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
		if left := n.intents(); left > 0 {
			return fmt.Sprintf("%s: %d DELs wait on its disk", n.Name(), left)
		}
	}
	return ""
}
