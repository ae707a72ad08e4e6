package virtual

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
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
		w.Auditor.Judge(w.now, w.collect(n))
	}
}

// collect is a consistent snapshot: nothing moves in virtual time while it is made.
func (w *World) collect(n *node) *judge.Snapshot {
	c := &w.snapshot
	*c = judge.Snapshot{Node: int(n.No), Rows: c.Rows[:0], Cloud: c.Cloud[:0], Pods: c.Pods[:0], Settings: n.Settings}
	c.Books(n.core, &w.view)
	c.Cloud = judge.AppendENIs(c.Cloud, w.Whose(&n.Node))
	c.PendingDELs, c.Silent = len(n.intents), w.EC2.MetadataSilent(w.now, n.Instance)
	c.ThirdParty = n.Node.ThirdParty()
	w.retrace(n)
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

// manyTraces is from how many changed addresses on it is cheaper to trace all.
const manyTraces = 8

// retrace follows a packet to every pod that something has changed for since the last snapshot, and keeps who is out of reach.
func (w *World) retrace(n *node) {
	changed, all := n.kern.Changed()
	changed = append(n.fresh, changed...)
	all = all || n.moved || len(changed) > manyTraces
	n.moved, n.fresh = false, n.fresh[:0]
	if !all && len(changed) == 0 {
		return
	}
	for t := range n.CRI.Sandboxes() {
		if !t.Address.IsValid() || !all && !slices.Contains(changed, t.Address) {
			continue
		}
		if why := w.fault(n, t.Address, t.Netns); why == "" {
			delete(n.faults, t.Handle)
		} else {
			if n.faults == nil {
				n.faults = map[cri.SandboxID]string{}
			}
			n.faults[t.Handle] = why
		}
	}
	w.reconnect(n, all, changed)
}

// taken is the fault of a pod whose packets another one gets.
const taken = "another namespace has the address"

// fault says why a packet from the VPC does not reach a pod and come back; "" is that it does.
func (w *World) fault(n *node, a netip.Addr, netns uint64) string {
	id, ok := w.EC2.HasAddress(n.Instance, a)
	if !ok {
		return "the address is on no ENI that is attached to the node"
	}
	if inode, used := n.kern.InUse(a); used && inode != netns && n.kern.Holders(a) == 1 { // of two who have it I1 speaks
		return taken
	}
	why, _ := n.kern.Trace(a, w.EC2.MAC(id))
	return why
}

// Settle judges everything that has to hold once settled, on every node where nothing is under way any more, and names
// what is.
func (w *World) Settle() (underWay []string) {
	w.judge()
	for _, n := range w.nodes[1:] {
		if n.Gone {
			continue
		}
		c := w.collect(n)
		c.Leaks = w.leaks(n)
		whose := w.Whose(&n.Node)
		c.Subnets, c.OtherGroups = whose.Subnets(), whose.Grouped()
		underWay = append(underWay, w.Auditor.Settle(w.now, c)...)
	}
	underWay = append(underWay, w.settleCloud()...)
	return append(underWay, actions.Pending(w.Kube, w.IsGone)...)
}

// leaks are what has no owner on a node.
func (w *World) leaks(n *node) []string {
	live := map[uint64]bool{}
	for t := range n.CRI.Sandboxes() {
		live[t.Netns] = true
	}
	r := judge.Residue{Left: n.kern.Leftovers, Used: n.kern.Uses}
	n.kern.LiveAddresses(func(inode uint64, a netip.Addr) {
		if !live[inode] {
			r.Stray = append(r.Stray, a)
		}
	})
	return r.Leaks(n.core)
}

// settleCloud judges the ENIs that no daemon knows (I5), and names those that one will delete.
func (w *World) settleCloud() (underWay []string) {
	var daemons []*ipam.Node
	for _, n := range w.nodes[1:] {
		daemons = append(daemons, n.core)
	}
	leaked, underWay := judge.Orphans(w.EC2, w.Cluster.Name, w.now, w.epoch, daemons)
	w.Auditor.Leaked(w.now, leaked)
	return underWay
}
