package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// Cluster is the API server with its controllers and its scheduler. The zero Cluster is not
// usable; make one with New.
type Cluster struct {
	rng       rng
	pods      []pod
	free      []int32
	byUID     map[string]int32
	byName    map[string]int32 // by namespace/name
	nodes     []node           // by node index
	workloads []workload       // in order of creation
	byLoad    map[string]int32
	events    []Event
	drained   []Event
	list      []Pod
	serial    uint64
	ready     int // pods that run and are not being deleted
	changes   uint64
	configs   []config // by name
	parted    []Parting
}

// pod is a slot: the object and its neighbours in three orders.
type pod struct {
	Pod
	load       int32 // workload
	onNode     links // pods of the node
	ofWorkload links // pods of the workload, oldest first
}

type node struct {
	cordoned bool
	pods     ends

	labels, annotations map[string]string // never written to, only replaced
	marked              time.Duration     // when they were changed last
}

type workload struct {
	Spec
	next     int // round robin: position in Nodes of the next placement
	count    int // objects, also those that are being deleted
	deleting int // of them, those with a deletionTimestamp
	pods     ends
	missing  []int // StatefulSet: ordinals whose object is gone, ascending; reconcile empties it
	waiting  ends  // pods that no node took
}

const none = int32(-1)

// nodeLimit bounds node indices, so that a typing error does not ask for memory without end.
const nodeLimit = 1 << 20

// New is an empty cluster. The seed makes pod name suffixes and UIDs.
func New(seed uint64) *Cluster {
	return &Cluster{rng: rng(seed), byUID: map[string]int32{}, byName: map[string]int32{}, byLoad: map[string]int32{}}
}

// Clone is a deep copy; neither cluster influences the other afterwards.
func (c *Cluster) Clone() *Cluster {
	d := *c
	d.pods = slices.Clone(c.pods)
	d.free = slices.Clone(c.free)
	d.byUID = maps.Clone(c.byUID)
	d.byName = maps.Clone(c.byName)
	d.nodes = slices.Clone(c.nodes)
	d.workloads = slices.Clone(c.workloads)
	for i := range d.workloads {
		d.workloads[i].missing = nil // empty between calls; Nodes is never written after CreateWorkload
	}
	d.byLoad = maps.Clone(c.byLoad)
	d.configs = slices.Clone(c.configs)
	d.events = slices.Clone(c.events)
	d.drained, d.list = nil, nil
	return &d
}

// Made counts the pod objects that were ever made.
func (c *Cluster) Made() int { return int(c.serial) }

// Changes counts what has changed of pods, nodes and ENIConfigs: as long as it stays, so does what the API server shows.
func (c *Cluster) Changes() uint64 { return c.changes }

// KindOf is the controller of a workload, a Deployment when there is none of that name.
func (c *Cluster) KindOf(workload string) Kind {
	li, ok := c.byLoad[workload]
	if !ok {
		return Deployment
	}
	return c.workloads[li].Kind
}

// CreateWorkload makes a controller and its pods. It refuses a name that exists, a negative
// number of replicas, and a node index out of range.
func (c *Cluster) CreateWorkload(now time.Duration, s Spec) error {
	s.Namespace = cmp.Or(s.Namespace, DefaultNamespace)
	if err := c.check(s); err != nil {
		return fmt.Errorf("create workload %q: %w", s.Name, err)
	}
	s.Nodes = slices.Clone(s.Nodes)
	for _, n := range s.Nodes {
		c.growNodes(n)
	}
	c.byLoad[s.Name] = int32(len(c.workloads))
	c.workloads = append(c.workloads, workload{Spec: s, pods: ends{none, none}, waiting: ends{none, none}})
	li := int32(len(c.workloads) - 1)
	if s.Kind == StatefulSet {
		for i := range s.Replicas {
			c.workloads[li].missing = append(c.workloads[li].missing, i)
		}
	}
	c.reconcile(now, li)
	return nil
}

func (c *Cluster) check(s Spec) error {
	if _, ok := c.byLoad[s.Name]; ok {
		return errors.New("it exists; scale it instead")
	}
	if s.Name == "" {
		return errors.New("it has no name")
	}
	if s.Replicas < 0 {
		return fmt.Errorf("%d replicas, expected 0 or more", s.Replicas)
	}
	if len(s.Nodes) == 0 && s.Replicas > 0 {
		return errors.New("no nodes to place its pods on")
	}
	for _, n := range s.Nodes {
		if n < 0 || n >= nodeLimit {
			return fmt.Errorf("node index %d, expected 0 to %d", n, nodeLimit-1)
		}
	}
	return nil
}

func (c *Cluster) growNodes(n int) {
	for len(c.nodes) <= n {
		c.nodes = append(c.nodes, node{pods: ends{none, none}})
	}
}

// Scale sets the number of replicas. A Deployment loses first those of its pods that do not run, then the others, of each the newest first,
// as a ReplicaSet does (k8s.io/kubernetes/pkg/controller, ActivePodsWithRanks): so it does not matter who of a burst came first. Whom no
// node has taken is newer here than who has a node. A StatefulSet loses its highest ordinals. False when there is no such workload.
func (c *Cluster) Scale(now time.Duration, name string, replicas int) bool {
	li, ok := c.byLoad[name]
	if !ok {
		return false
	}
	w := &c.workloads[li]
	w.Replicas = max(replicas, 0)
	if w.Kind == StatefulSet {
		c.scaleOrdinals(now, li)
		// One also loses a high ordinal while a low one is still going: that one comes back.
		c.shrink(now, w, func(p *Pod) bool { return p.Ordinal >= w.Replicas })
	} else {
		tooMany := func() bool { return w.count-w.deleting > w.Replicas }
		c.shrink(now, w, func(p *Pod) bool { return tooMany() && p.Phase != Running })
		c.shrink(now, w, func(*Pod) bool { return tooMany() })
	}
	c.reconcile(now, li)
	return true
}

// shrink deletes those of a workload's pods that may go, newest first.
func (c *Cluster) shrink(now time.Duration, w *workload, may func(*Pod) bool) {
	for i := w.pods.last; i != none; {
		p := &c.pods[i]
		older := p.ofWorkload.prev // deleting a pod without a node frees its slot
		if !p.Deleting && may(&p.Pod) {
			c.remove(now, i, defaultGrace)
		}
		i = older
	}
}

// Replicas is how many pods a workload is to have; false when there is no such workload.
func (c *Cluster) Replicas(name string) (int, bool) {
	li, ok := c.byLoad[name]
	if !ok {
		return 0, false
	}
	return c.workloads[li].Replicas, true
}

// scaleOrdinals makes missing those ordinals below Replicas that have no object.
func (c *Cluster) scaleOrdinals(now time.Duration, li int32) {
	w := &c.workloads[li]
	have := make([]bool, w.Replicas)
	for i := w.pods.first; i != none; i = c.pods[i].ofWorkload.next {
		if o := c.pods[i].Ordinal; o < len(have) {
			have[o] = true
		}
	}
	w.missing = w.missing[:0]
	for o, there := range have {
		if !there {
			w.missing = append(w.missing, o)
		}
	}
}

// reconcile is the controller: it makes the pods that are wanted.
func (c *Cluster) reconcile(now time.Duration, li int32) {
	w := &c.workloads[li]
	if w.Kind == StatefulSet {
		for len(w.missing) > 0 {
			o := w.missing[0]
			w.missing = w.missing[:copy(w.missing, w.missing[1:])]
			if o < w.Replicas {
				c.create(now, li, o)
			}
		}
		return
	}
	for w.count-w.deleting < w.Replicas {
		c.create(now, li, 0)
	}
}

// create makes one pod of a workload and places it.
func (c *Cluster) create(now time.Duration, li int32, ordinal int) {
	var i int32
	if l := len(c.free); l > 0 {
		i = c.free[l-1]
		c.free = c.free[:l-1]
	} else {
		i = int32(len(c.pods))
		c.pods = append(c.pods, pod{})
	}
	w := &c.workloads[li]
	name := w.Name + "-"
	if w.Kind == StatefulSet {
		name += strconv.Itoa(ordinal)
	} else {
		name += c.rng.suffix()
	}
	c.serial++
	c.changes++
	c.pods[i] = pod{
		Pod: Pod{
			UID: c.rng.uid(c.serial), Namespace: w.Namespace, Name: name, Workload: w.Name,
			Node: -1, Ordinal: ordinal, HostNetwork: w.HostNetwork, Created: now,
		},
		load: li, onNode: links{none, none}, ofWorkload: links{none, none},
	}
	p := &c.pods[i]
	c.byUID[p.UID] = i
	c.byName[p.Namespace+"/"+p.Name] = i
	c.push(&w.pods, i, workloadOrder)
	w.count++
	c.place(i)
}

// place is the scheduler: round robin over the workload's nodes that are not cordoned. A pod that
// no node takes waits for Cordon to end.
func (c *Cluster) place(i int32) {
	p := &c.pods[i]
	w := &c.workloads[p.load]
	for range w.Nodes {
		n := w.Nodes[w.next%len(w.Nodes)]
		w.next = (w.next + 1) % len(w.Nodes)
		if c.nodes[n].cordoned {
			continue
		}
		p.Node = n
		c.changes++
		c.push(&c.nodes[n].pods, i, nodeOrder)
		c.event(PodBound, p, 0)
		return
	}
	c.push(&w.waiting, i, nodeOrder)
}

// Cordon says whether the scheduler may place pods on a node. Pods that wait are placed when it ends.
func (c *Cluster) Cordon(now time.Duration, n int, on bool) {
	if n < 0 || n >= nodeLimit {
		return
	}
	c.growNodes(n)
	c.nodes[n].cordoned = on
	c.changes++
	if on {
		return
	}
	for li := range c.workloads {
		w := &c.workloads[li]
		i := w.waiting.first
		if i == none || !slices.Contains(w.Nodes, n) {
			continue
		}
		for i != none {
			next := c.pods[i].onNode.next
			c.drop(&w.waiting, i, nodeOrder)
			c.place(i)
			i = next
		}
	}
}

// Cordoned says whether the scheduler avoids the node.
func (c *Cluster) Cordoned(n int) bool { return n >= 0 && n < len(c.nodes) && c.nodes[n].cordoned }

// DeletePod sets a deletionTimestamp; grace 0 is the default of 30 s. The object goes when its
// kubelet says PodGone; a pod without a node goes at once. False when no pod has that name or its
// newest one is being deleted.
func (c *Cluster) DeletePod(now time.Duration, name string, grace time.Duration) bool {
	i, ok := c.find(name)
	if !ok || c.pods[i].Deleting {
		return false
	}
	li := c.pods[i].load
	c.remove(now, i, grace)
	c.reconcile(now, li)
	return true
}

// remove deletes gracefully, without the controller's answer.
func (c *Cluster) remove(now time.Duration, i int32, grace time.Duration) {
	p := &c.pods[i]
	if p.Node < 0 {
		c.erase(i)
		return
	}
	if grace <= 0 {
		grace = defaultGrace
	}
	c.tally(p, -1)
	p.Deleting, p.Deleted, p.Grace = true, now, grace
	c.changes++
	c.workloads[p.load].deleting++
	c.event(PodDeleted, p, grace)
}

// ForceDelete takes the object away at once (kubectl delete --grace-period=0 --force), also one
// that is being deleted; its kubelet is told and kills in the background. A StatefulSet replaces it
// immediately, by the same name. False when no pod has that name.
func (c *Cluster) ForceDelete(now time.Duration, name string) bool {
	i, ok := c.find(name)
	if !ok {
		return false
	}
	li := c.pods[i].load
	if c.pods[i].Node >= 0 {
		c.event(PodForceRemoved, &c.pods[i], 0)
	}
	c.erase(i)
	c.reconcile(now, li)
	return true
}

// Roll deletes the oldest pods of a workload, at most count of them; replacements follow by their
// controller. It gives how many were deleted.
func (c *Cluster) Roll(now time.Duration, name string, count int) int {
	li, ok := c.byLoad[name]
	if !ok {
		return 0
	}
	done := 0
	for i := c.workloads[li].pods.first; i != none && done < count; {
		next := c.pods[i].ofWorkload.next
		if !c.pods[i].Deleting {
			c.remove(now, i, defaultGrace)
			done++
		}
		i = next
	}
	c.reconcile(now, li)
	return done
}

// tally keeps count of the ready pods: it is called before a pod changes with -1, and after with 1.
func (c *Cluster) tally(p *pod, by int) {
	if p.Phase == Running && !p.Deleting {
		c.ready += by
	}
}

// PodStarted is kubelet's status update: the pod runs and has this address.
func (c *Cluster) PodStarted(now time.Duration, uid string, a netip.Addr) {
	if i, ok := c.byUID[uid]; ok {
		c.tally(&c.pods[i], -1)
		c.pods[i].Phase, c.pods[i].Address = Running, a
		c.tally(&c.pods[i], 1)
		c.changes++
	}
}

// PodStopped is kubelet's status update: the pod's containers do not run. Its address stays in the status.
func (c *Cluster) PodStopped(now time.Duration, uid string) {
	if i, ok := c.byUID[uid]; ok {
		c.tally(&c.pods[i], -1)
		c.pods[i].Phase = Pending
		c.changes++
	}
}

// PodGone is kubelet's last word: an object that is being deleted goes, and a StatefulSet makes the
// next pod of that name. Any other UID is stale news.
func (c *Cluster) PodGone(now time.Duration, uid string) {
	i, ok := c.byUID[uid]
	if !ok || !c.pods[i].Deleting {
		return
	}
	li := c.pods[i].load
	c.erase(i)
	c.reconcile(now, li)
}

// erase takes an object out of the store.
func (c *Cluster) erase(i int32) {
	p := &c.pods[i]
	w := &c.workloads[p.load]
	c.tally(p, -1)
	c.changes++
	delete(c.byUID, p.UID)
	delete(c.byName, p.Namespace+"/"+p.Name)
	c.drop(&w.pods, i, workloadOrder)
	if p.Node >= 0 {
		c.drop(&c.nodes[p.Node].pods, i, nodeOrder)
	} else {
		c.drop(&w.waiting, i, nodeOrder)
	}
	w.count--
	if p.Deleting {
		w.deleting--
	}
	if w.Kind == StatefulSet {
		at, _ := slices.BinarySearch(w.missing, p.Ordinal)
		w.missing = slices.Insert(w.missing, at, p.Ordinal)
	}
	*p = pod{}
	c.free = append(c.free, i)
}

func (c *Cluster) event(k EventKind, p *pod, grace time.Duration) {
	c.events = append(c.events, Event{
		Kind: k, Node: p.Node, HostNetwork: p.HostNetwork, UID: p.UID, Namespace: p.Namespace, Name: p.Name, Grace: grace,
	})
}
