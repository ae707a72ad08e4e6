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

const (
	// snapshotPeriod is between two snapshots of a node that changes: far below the bounds of what is judged on them.
	snapshotPeriod = time.Second
	// flowPeriod is between two bytes of a flow.
	flowPeriod = 5 * time.Second
	// pingPatience is how long, in real time, a pod may take to answer.
	pingPatience = 40 * time.Millisecond
	// doubtPatience is how long one may that answered before. The kernel's own timers do not jump with the laboratory's clock: a host veth
	// answers a pod's ARP for its gateway after up to proxy_delay, 0.8 s.
	doubtPatience = 1500 * time.Millisecond
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
		w.compare(n)
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
	w.pods(n, c)
	c.ThirdParty = n.Node.ThirdParty()
	return c
}

// pods asks every pod that runs for an answer, from the far side of the VPC.
func (w *World) pods(n *instance, c *judge.Snapshot) {
	var asked []netip.Addr
	var who []int
	for t := range n.CRI.Sandboxes() {
		if t.OwesDEL && !t.Running && !t.Ready {
			c.PendingDELs++
		}
		if t.Running {
			if t.Address.IsValid() {
				asked, who = append(asked, t.Address), append(who, len(c.Pods))
			}
		}
		c.Pods = append(c.Pods, judge.PodSnapshot{Att: ipam.Attachment{Network: "aws-cni", ContainerID: t.ID, IfName: "eth0"}, Name: t.Name, Address: t.Address, Ours: t.Running})
	}
	silent := map[netip.Addr]bool{}
	for i, answered := range w.reach(n, asked) {
		if !answered {
			c.Pods[who[i]].Fault = w.fault(n, asked[i])
			silent[asked[i]] = true
		}
	}
	n.silent = silent
	w.reconnect(n)
	for i := range c.Pods {
		if p := &c.Pods[i]; p.Ours && p.Fault == "" {
			p.Fault = n.apart[p.Address]
		}
	}
}

// pairsPeriod is between two looks at how the pods of a node answer each other, while all do: a look takes some milliseconds, and is far more
// often than the bound in which an answer has to come back.
const pairsPeriod = 10 * time.Second

// reconnect has the pods of a node ask each other, and keeps who gave no answer.
func (w *World) reconnect(n *instance) {
	if len(n.apart) == 0 && w.now() < n.asked+pairsPeriod {
		if !n.asks { // what has changed now is looked at then
			n.asks = true
			w.at(n.asked+pairsPeriod, func() { n.asks, n.Changed = false, true })
		}
		return
	}
	n.asked = w.now()
	pairs := slices.DeleteFunc(models.Pairs(w.Places(&n.Node)), func(p models.Pair) bool { return n.silent[p.From.Address] || n.silent[p.To.Address] })
	apart := map[netip.Addr]string{}
	for i, why := range n.connect(pairs, func(p models.Pair) time.Duration {
		if n.apart[p.To.Address] != "" {
			return pingPatience
		}
		return doubtPatience
	}) {
		if why != "" {
			apart[pairs[i].To.Address] = models.Unanswered(&pairs[i].From.Pod, why)
		}
	}
	n.apart = apart
}

// reach pings, and waits longer for pods that have not been out of reach before.
func (w *World) reach(n *instance, asked []netip.Addr) []bool {
	answered := w.ping(n, asked, probed(pingPatience))
	var doubted []netip.Addr
	var which []int
	for i, ok := range answered {
		if !ok && !n.silent[asked[i]] {
			doubted, which = append(doubted, asked[i]), append(which, i)
		}
	}
	for i, ok := range w.ping(n, doubted, probed(doubtPatience)) {
		answered[which[i]] = ok
	}
	w.late.rested = w.now()
	return answered
}

// ping asks from the far side of the VPC, and for addresses that are no VPC's, a network of the node's own, from the node.
func (w *World) ping(n *instance, asked []netip.Addr, patience time.Duration) []bool {
	var inside []netip.Addr
	for _, a := range asked {
		if !w.Cluster.InVPC(a) {
			inside = append(inside, a)
		}
	}
	if len(inside) == 0 {
		return w.network.Ping(asked, patience)
	}
	near, err := w.network.PingFrom(n.box.Netns(), inside, patience)
	w.fail(err)
	far := w.network.Ping(slices.DeleteFunc(slices.Clone(asked), func(a netip.Addr) bool { return slices.Contains(inside, a) }), patience)
	out := make([]bool, len(asked))
	for i, a := range asked {
		from := &far
		if slices.Contains(inside, a) {
			from = &near
		}
		if len(*from) > 0 {
			out[i], *from = (*from)[0], (*from)[1:]
		}
	}
	return out
}

// fault says why a pod may be out of reach.
func (w *World) fault(n *instance, a netip.Addr) string {
	id, ok := w.EC2.HasAddress(n.Instance, a)
	if !ok && w.Cluster.InVPC(a) {
		return "the address is on no ENI that is attached to the node"
	}
	if w.parts.WithoutBooks {
		return "it does not answer a ping"
	}
	if why, ok := n.mirror.Trace(a, w.EC2.MAC(id)); !ok {
		return "it does not answer a ping: " + why
	}
	return "it does not answer a ping, although the model sees no reason"
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
		w.compare(n)
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
