package kind

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/vpc"
)

const (
	// pingPatience is how long a pod may take to answer on a machine that has other things to do.
	pingPatience = 100 * time.Millisecond
	// doubtPatience is how long one may that answered before: a host veth answers a pod's ARP for its gateway after up to proxy_delay, 0.8 s.
	doubtPatience = 1500 * time.Millisecond
	// snapshotTries is how often a snapshot is begun anew because something moved, before it is given up until the next one.
	snapshotTries = 3
)

// stamp is what a node's counters say: if none has moved, nothing has that a snapshot shows.
type stamp struct {
	life    *judge.Life
	steps   uint64 // of the recording
	moves   uint64 // of EC2's ledger and events
	objects uint64 // of the API server
}

// stamp reads a node's counters. Callers hold mu.
func (m *member) stamp() stamp {
	s := stamp{life: m.life, moves: m.moves, objects: m.w.pods.changed(m.node.Name)}
	if m.life != nil {
		s.steps = m.life.Steps()
	}
	return s
}

// judge takes a snapshot of every node. Of one that moves all the time there is none, and nothing is judged.
func (w *World) judge() {
	var all sync.WaitGroup
	for _, m := range w.members.living() {
		all.Go(func() {
			m.snapshot(func(c *judge.Snapshot, _ *collection) { w.audit.Judge(w.now(), c) })
		})
	}
	all.Wait()
}

// collection is what was seen of a node from outside of its daemon.
type collection struct {
	enis      []judge.CloudENI
	subnets   []judge.CloudSubnet
	others    []ec2.ENI // without the security groups of the primary one
	sandboxes []sandbox
	pods      []judge.PodSnapshot
	pending   int // DELs that somebody has to repeat
	silent    bool
}

// snapshot collects a node's state, and calls f with it, mu held, if nothing has moved meanwhile. It is false when there is no snapshot.
func (m *member) snapshot(f func(*judge.Snapshot, *collection)) bool {
	w := m.w
	for range snapshotTries {
		w.mu.Lock()
		before, whose := m.stamp(), m.whose()
		w.mu.Unlock()
		k, ok := m.collect(whose)
		if !ok {
			return false
		}
		w.mu.Lock()
		if m.stamp() != before {
			w.mu.Unlock()
			continue
		}
		c := &judge.Snapshot{Node: int(m.no), Settings: m.set, Cloud: k.enis, Subnets: k.subnets, OtherGroups: k.others, Pods: k.pods, PendingDELs: k.pending, Silent: k.silent}
		c.Books(m.life.Core(), &ipam.View{})
		f(c, k)
		w.mu.Unlock()
		w.events.Add(1)
		return true
	}
	return false
}

// whose says whose ENIs are, by EC2's model, which is the cloud's goroutine's. mu is held.
func (m *member) whose() judge.Whose {
	w := m.w
	return judge.Whose{Model: w.c.Model(), Node: m.node.Instance, Cluster: w.witness.Cluster, LeavesUntagged: m.set.LeaveUntagged, Undiscovered: !m.set.Discovery,
		Custom: actions.Custom(w.configs.book, int(m.no), m.node.Zone, &m.set, m.customAt)}
}

// collect looks at a node; false: something did not answer.
func (m *member) collect(whose judge.Whose) (*collection, bool) {
	k := &collection{}
	m.w.c.Cloud(func(now time.Duration, cloud *ec2.Cloud) {
		k.silent = cloud.MetadataSilent(now, m.node.Instance)
		k.enis = judge.AppendENIs(nil, whose)
		k.subnets, k.others = whose.Subnets(), whose.Grouped()
	})
	var err error
	if k.sandboxes, err = m.runtime.sandboxes(m.w.ctx); err != nil {
		return nil, false // the runtime restarts, or its machine does
	}
	root := m.node.Root()
	var live []sandbox // as k.pods
	for i := range k.sandboxes {
		s := &k.sandboxes[i]
		if s.Host {
			continue
		}
		if !s.Ready && s.Netns != "" && inodeAt(root+s.Netns) != 0 {
			k.pending++ // its network has not been taken down
		}
		if s.Ready && s.Running && s.Address.IsValid() {
			live = append(live, *s)
			k.pods = append(k.pods, judge.PodSnapshot{Att: attachment(s.ID), Name: s.Pod, Address: s.Address, Ours: true})
		}
	}
	k.pending += m.intents()
	m.reach(live, k.pods)
	return k, true
}

func attachment(containerID string) ipam.Attachment {
	return ipam.Attachment{Network: "aws-cni", ContainerID: containerID, IfName: "eth0"}
}

// intentsDir is where the plugin leaves DELs that found no daemon, on its machine.
const intentsDir = "/run/aws-node/del/"

// intents counts the DELs that wait on the node's disk.
func (m *member) intents() int {
	files, _ := filepath.Glob(m.node.Root() + intentsDir + "*.json") // the pattern is well-formed
	return len(files)
}

// reach asks pods for an answer from the far side of the VPC, longer those that have not been out of reach before, and says what is wrong with
// those that are silent.
func (m *member) reach(live []sandbox, pods []judge.PodSnapshot) {
	answered := ping(m.w.c.Network(), addressesOf(live), m.silent)
	m.silent = map[netip.Addr]bool{}
	for i := range answered {
		switch {
		case answered[i] && !owns(m.node, &live[i]):
			pods[i].Fault = "another namespace has the address"
		case !answered[i]:
			m.silent[live[i].Address] = true
			pods[i].Fault = m.fault(live[i].Address)
		}
	}
}

// addressesOf are those of sandboxes. Who answers at one need not be the sandbox, see owns.
func addressesOf(live []sandbox) []netip.Addr {
	out := make([]netip.Addr, len(live))
	for i := range live {
		out[i] = live[i].Address
	}
	return out
}

// owns says whether a sandbox's own namespace has its address: who lost it has no link any more, and whoever was given the address
// since answers in its place. A namespace that nobody can name is believed.
func owns(n *cluster.Node, s *sandbox) bool {
	if s.Netns == "" {
		return true
	}
	ns, ok := lookInto(n.Root() + s.Netns)
	return ok && ns.has(s.Address)
}

func ping(n *vpc.Network, asked []netip.Addr, silent map[netip.Addr]bool) []bool {
	answered := n.Ping(asked, pingPatience)
	var doubted []netip.Addr
	var which []int
	for i, ok := range answered {
		if !ok && !silent[asked[i]] {
			doubted, which = append(doubted, asked[i]), append(which, i)
		}
	}
	for i, ok := range n.Ping(doubted, doubtPatience) {
		answered[which[i]] = ok
	}
	return answered
}

// fault says why a pod may be out of reach.
func (m *member) fault(a netip.Addr) string {
	on := false
	m.w.c.Cloud(func(_ time.Duration, cloud *ec2.Cloud) { _, on = cloud.HasAddress(m.node.Instance, a) })
	if !on {
		return "the address is on no ENI that is attached to the node"
	}
	const silent = "it does not answer a ping"
	o, err := observe(m.node)
	if err != nil {
		return silent + ", and the node's kernel cannot be observed: " + err.Error()
	}
	if why := gap(&o, a); why != "" {
		return silent + ": " + why
	}
	return silent
}

// gap names what a node's kernel lacks of a pod's path.
func gap(o *dataplane.Observation, a netip.Addr) string {
	route := ""
	for _, r := range o.Routes {
		if r.Dst == netip.PrefixFrom(a, 32) {
			route = r.Link
		}
	}
	if route == "" {
		return "the node has no route to it"
	}
	for _, l := range o.Links {
		if l.Name == route && !l.Up {
			return "its link " + l.Name + " is down"
		}
	}
	if o.Forward.DropsOf(route) {
		return "the policy of the chain FORWARD is DROP"
	}
	for _, r := range o.Rules {
		if r.To == netip.PrefixFrom(a, 32) {
			return ""
		}
	}
	return "the node has no rule for packets to it"
}

// Steady waits for a moment in which nothing moves anywhere, or the limit.
func (w *World) Steady() {
	w.steady(steadyLimit)
}

const (
	// steadyLimit is how long a cluster may take to come to rest before something is expected of it.
	steadyLimit = 5 * time.Second
	// steadyTime is for how long nothing must move.
	steadyTime = 300 * time.Millisecond
)

func (w *World) steady(limit time.Duration) bool {
	last, since := w.stamps(), w.now()
	for end := w.now() + limit; w.Err() == nil && w.ctx.Err() == nil; {
		w.sleep(steadyTime / 6)
		if s := w.stamps(); !same(s, last) {
			last, since = s, w.now()
		}
		if w.now()-since >= steadyTime {
			return true
		}
		if w.now() > end {
			return false
		}
	}
	return false
}

func (w *World) stamps() (out []stamp) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members.living() {
		out = append(out, m.stamp())
	}
	return out
}

func same(a, b []stamp) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// settleLimit is how long a node may go on moving once faults have ended and the time that settling may take is over.
const settleLimit = 30 * time.Second

// Settle judges what has to hold once settled.
func (w *World) Settle() (underWay []string) {
	for _, m := range w.members.living() {
		underWay = append(underWay, m.settle()...)
	}
	underWay = append(underWay, w.settleCloud()...)
	if why := w.pods.unsettled(w.work.want, w.pace.stuck); why != "" {
		underWay = append(underWay, why)
	}
	return underWay
}

func (m *member) settle() (underWay []string) {
	w := m.w
	for end := w.now() + settleLimit; w.Err() == nil && w.ctx.Err() == nil; {
		leaks, err := m.leaks()
		judged := err == nil && m.snapshot(func(c *judge.Snapshot, k *collection) {
			c.Leaks = leaks
			underWay = w.audit.Settle(w.now(), c)
		})
		if judged {
			return underWay
		}
		if w.now() > end {
			return []string{fmt.Sprintf("%s: it did not come to rest within %v: %v", m.name(), settleLimit, err)}
		}
		w.sleep(cluster.PollPeriod)
	}
	return nil
}

// leaks are what belongs to nobody on a node.
func (m *member) leaks() ([]string, error) {
	w := m.w
	list, err := m.runtime.sandboxes(w.ctx)
	if err != nil {
		return nil, err
	}
	o, err := observe(m.node)
	if err != nil {
		return nil, err
	}
	live := map[uint64]bool{}
	for i := range list {
		if s := &list[i]; s.Netns != "" {
			live[inodeAt(m.node.Root()+s.Netns)] = true
		}
	}
	var stray []netip.Addr
	for _, ns := range namespaces(m.node) {
		if !live[ns.inode] {
			stray = append(stray, ns.addrs...)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return judge.ResidueOf(stray, &o).Leaks(m.life.Core()), nil
}

// settleCloud judges the ENIs that no daemon knows (I5), and names those that one will delete.
func (w *World) settleCloud() (underWay []string) {
	w.c.Cloud(func(_ time.Duration, cloud *ec2.Cloud) {
		w.mu.Lock()
		defer w.mu.Unlock()
		var lives []*judge.Life
		for _, m := range w.members.living() {
			lives = append(lives, m.life)
		}
		underWay = w.witness.Orphans(cloud, lives)
	})
	return underWay
}
