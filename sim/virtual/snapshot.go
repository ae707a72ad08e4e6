package virtual

import (
	"cmp"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
)

// Snapshots are collected for nodes that changed, or that the auditor watches. Their distance is far below the bounds of
// the invariants that they judge.
const (
	snapshotPeriod      = time.Second
	snapshotPeriodFleet = 15 * time.Second
	fleet               = 64 // nodes
)

func (w *World) pushSnapshot() {
	p := snapshotPeriod
	if len(w.nodes) > fleet {
		p = snapshotPeriodFleet
	}
	w.push(event{at: w.now + p, kind: evSnapshot})
}

func (w *World) judge() {
	if len(w.nodes) > storyNodes+1 && w.Base != nil && w.now-w.told >= time.Minute {
		w.told = w.now
		w.figures()
	}
	for _, n := range w.nodes[1:] {
		w.Flow(&n.Node)
		if n.Gone {
			continue
		}
		if _, watched := w.Auditor.Watching(w.now, int(n.No)); !n.Changed && !watched {
			continue
		}
		n.Changed = false
		w.Auditor.Judge(w.now, n.collect())
	}
}

// collect is a consistent snapshot: nothing moves in virtual time while it is made.
func (n *node) collect() *judge.Snapshot {
	w := n.w
	c := &w.snapshot
	*c = judge.Snapshot{Node: int(n.No), Rows: c.Rows[:0], Cloud: c.Cloud[:0], Pods: c.Pods[:0], Settings: n.Settings}
	c.Books(n.core, &w.view)
	c.Cloud = judge.AppendENIs(c.Cloud, w.Whose(&n.Node))
	c.PendingDELs, c.Silent = len(n.intents), w.EC2.MetadataSilent(w.now, n.Instance)
	c.ThirdParty = n.Node.ThirdParty()
	n.retrace()
	for t := range n.CRI.Sandboxes() {
		if t.OwesDEL && !t.Running && !t.Ready {
			c.PendingDELs++
		}
		p := judge.PodSnapshot{Att: ipam.Attachment{Network: "aws-cni", ContainerID: t.ID, IfName: "eth0"}, Name: t.Name, Address: t.Address}
		if t.Running && t.Address.IsValid() { // also one in D state, until a DEL has come for it (CRI-O's does)
			p.Fault, p.Ours = cmp.Or(n.faults[t.Handle], n.apart[t.Address]), true
		}
		c.Pods = append(c.Pods, p)
	}
	return c
}

// Settle judges everything that has to hold once settled, on every node where nothing is under way any more, and names
// what is: also ENIs that no daemon knows (I5) and that one will delete.
func (w *World) Settle() (underWay []string) {
	w.judge()
	var daemons []*ipam.Node
	for _, n := range w.nodes[1:] {
		daemons = append(daemons, n.core)
		if n.Gone {
			continue
		}
		c := n.collect()
		c.Leaks = n.leaks()
		whose := w.Whose(&n.Node)
		c.Subnets, c.OtherGroups = whose.Subnets(), whose.Grouped()
		underWay = append(underWay, w.Auditor.Settle(w.now, c)...)
	}
	leaked, orphans := judge.Orphans(w.EC2, w.Cluster.Name, w.now, w.epoch, daemons)
	w.Auditor.Leaked(w.now, leaked)
	return slices.Concat(underWay, orphans, actions.Pending(w.Kube, w.IsGone))
}
