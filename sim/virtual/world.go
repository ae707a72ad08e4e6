package virtual

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
)

// Config of a world: what a scenario's cluster, config and start lines say.
type Config struct {
	Nodes    int
	Cluster  string // CLUSTER_NAME, which is tagged on every ENI; "" is unset
	Type     string // instance type
	VPC      netip.Prefix
	Subnet   netip.Prefix
	Runtime  cri.Runtime
	Warm     int // secondary addresses that the instances are launched with
	Budget   int64
	Version  int // of daemon and plugin at the start
	MaxPods  int
	Settings ipam.Settings
	Start    []Workload // running at t=0
	Seed     uint64
	Mutant   *mutants.Mutant // nil: sound
	Quiet    bool            // keep no story
	Book     *timeline.Book  // if any, is told what is done to every ENI and attachment; forks share it
}

// Workload of pods that run when time begins.
type Workload struct {
	Name     string
	Count    int
	Nodes    []int // 1-based
	Stateful bool
}

// World is a cluster in virtual time: one heap, N nodes, pure models. It is a value that can be forked.
type World struct {
	cfg    Config
	unborn *ipam.Node // what every daemon's core begins as
	now    time.Duration
	epoch  time.Duration // t=0 of the scenario
	seq    uint64
	heap   heap
	popped uint64
	hash   uint64

	cloud   *ec2.Cloud
	kube    *kube.Cluster
	nodes   []*node // 1-based: nodes[0] is nil
	byInst  map[ec2.InstanceID]int32
	audit   *judge.Auditor
	marks   [256]uint64
	base    []ec2.Count // the ledger at t=0
	cloudAt time.Duration
	armed   []deathTrap
	acts    actions.Log
	rng     uint64
	story   timeline.Timeline
	told    time.Duration // when a fleet's figures were told last
	files   int           // DEL intents written so far: their names
	tap     *tap

	view     ipam.View
	snapshot judge.Snapshot
}

// node is one machine: its kernel, its kubelet and runtime, its disks and its daemon.
type node struct {
	no       int32
	inst     ec2.InstanceID
	gone     bool       // terminated
	core     *ipam.Node // nil: no daemon runs
	life     uint32
	version  int
	plugin   int // version of the plugin binary
	writer   int // record version in which the disk was written last
	set      ipam.Settings
	self     string // the daemon's sandbox
	socket   socket
	held     bool // the daemon is kept down
	kern     *kernel.Kernel
	cri      *cri.Node
	disk     [2]disk
	lane     [2]time.Duration // until when a store's lane is busy
	run      []request        // plugin processes that talk to the daemon
	intents  []intentFile     // DEL intents on disk
	lastReq  ipam.Req
	tickAt   time.Duration
	criAt    time.Duration
	dirty    bool
	moved    bool                     // EC2 did something to the node's ENIs since the last snapshot
	fresh    []netip.Addr             // given to pods since then: the kernel had them before the runtime knew
	faults   map[cri.SandboxID]string // who was out of reach at the last snapshot, and why
	starts   int
	history  actions.History        // sandboxes by pod name, newest last
	booted   bool                   // the tmpfs marker exists
	bootedAt time.Duration          // on the world's clock
	seen     *dataplane.Observation // the last one, and the kernel's generation then: observations are not changed once made
	seenGen  uint64
	cutOff   int // observations that will be incomplete

	// The actions that have something still to meet: 0 is none.
	socketBy, pluginBy, heldBy, endedBy, cutBy int
	starters                                   actions.Starters
	listed                                     []ipam.Sandbox // the runtime's last list; nil when something may have changed
}

// disk is one store: rows by key, in the order in which the keys were first written.
type disk struct {
	rows []ipam.Row
	lost bool // the file is gone; the daemon has the rows in memory, and writes all of them when it writes next
}

// request is a plugin process that awaits the daemon's reply.
type request struct {
	req  ipam.Req
	op   cri.OpID // 0: an intent file, a GC or a stale DEL
	by   int      // GC: the action that asked
	verb cri.Verb
	att  ipam.Attachment
	pod  ipam.Pod
	addr netip.Addr // DEL: the address the attachment had
	file int        // intent file: its number, from 1
}

// intentFile is a DEL that could not reach the daemon.
type intentFile struct {
	num int
	att ipam.Attachment
	pod ipam.Pod
	req ipam.Req // under way in this life
}

// socket is what stands behind the runtime endpoint that the daemon is configured with.
type socket uint8

const (
	socketRight socket = iota
	socketAbsent
	socketUnimplemented // Docker's socket does not speak CRI
	socketEmpty         // another runtime, which has no sandboxes
	socketPartial       // the right runtime, but its answer ends early
)

var socketNames = []string{"right", "absent", "unimplemented", "empty", "partial"}

// New makes a world, starts its daemons and workloads, and runs it until they are ready: that is t=0.
func New(cfg Config) (*World, error) {
	vpc, subnet := actions.Neighbour()
	cloud := ec2.Config{VPCs: []ec2.VPC{{CIDRs: []netip.Prefix{cfg.VPC}}, vpc}, Subnets: []ec2.SubnetConfig{{CIDR: cfg.Subnet}, subnet}}
	if err := cloud.Validate(); err != nil {
		return nil, err
	}
	w := &World{cfg: cfg, cloud: ec2.New(cloud, cfg.Seed), kube: kube.New(cfg.Seed + 1), byInst: map[ec2.InstanceID]int32{},
		audit: judge.New(judge.Config{Nodes: cfg.Nodes, Budget: cfg.Budget}), nodes: make([]*node, 1, cfg.Nodes+1),
		hash: 14695981039346656037, rng: cfg.Seed ^ 0x5851f42d4c957f2d, cloudAt: never}
	policy := ipam.Sound()
	if m := cfg.Mutant; m != nil && m.Policy != nil {
		m.Policy(policy)
	}
	var err error
	if w.unborn, err = ipam.New(policy); err != nil {
		return nil, err
	}
	for i := 1; i <= cfg.Nodes; i++ {
		if err := w.addNode(i); err != nil {
			return nil, err
		}
	}
	for _, s := range cfg.Start {
		kind := kube.Deployment
		if s.Stateful {
			kind = kube.StatefulSet
		}
		if err := w.kube.CreateWorkload(0, kube.Spec{Name: s.Name, Kind: kind, Replicas: s.Count, Nodes: s.Nodes}); err != nil {
			return nil, err
		}
	}
	w.pump()
	return w, w.warmUp()
}

func (w *World) addNode(i int) error {
	inst, err := w.cloud.Launch(0, ec2.LaunchSpec{Type: w.cfg.Type, SecondaryAddresses: w.cfg.Warm})
	if err != nil {
		return err
	}
	n := &node{no: int32(i), inst: inst, version: w.cfg.Version, plugin: w.cfg.Version, set: w.cfg.Settings, tickAt: never, criAt: never,
		kern: kernel.New(w.random()), cri: cri.New(cri.Config{Node: fmt.Sprintf("node-%d", i), Runtime: w.cfg.Runtime}, w.random())}
	n.set.MaxPods = w.cfg.MaxPods
	for _, l := range w.cloud.Links(inst) {
		in, _ := w.cloud.InstanceOf(inst)
		n.kern.PlugPrimary(l.MAC, netip.PrefixFrom(in.PrimaryAddress, w.cfg.Subnet.Bits()), w.cfg.Subnet.Masked().Addr().Next())
	}
	w.nodes = append(w.nodes, n)
	w.byInst[inst] = n.no
	w.push(event{at: time.Duration(w.random() % uint64(100*time.Millisecond)), kind: evStart, node: n.no})
	return nil
}

// warmLimit bounds how long the workloads of a scenario may take to start before t=0.
const warmLimit = 30 * time.Minute

// warmUp runs until every pod runs and nothing is under way, and calls that instant t=0.
func (w *World) warmUp() error {
	w.pushSnapshot()
	quiet := 0
	for w.now < warmLimit {
		w.runUntil(w.now+time.Second, nil)
		if w.quiet() {
			quiet++
		} else {
			quiet = 0
		}
		if quiet >= 2 {
			w.epoch = w.now
			w.base = actions.Ledger(w.cloud)
			w.story.Clear()
			w.audit.Begin()
			clear(w.marks[:])
			return nil
		}
	}
	return fmt.Errorf("the workloads that should run when time begins did not within %v: %s", warmLimit, w.unready())
}

// quiet says whether nothing is under way anywhere.
func (w *World) quiet() bool {
	for _, n := range w.nodes[1:] {
		if n.gone {
			continue
		}
		if n.core == nil && !n.held {
			return false
		}
		if n.core != nil {
			n.core.View(&w.view)
			if !w.view.Serving || !w.view.Surveyed || w.view.Waiting > 0 || w.view.Intents > 0 || w.view.Cooling > 0 {
				return false
			}
		}
	}
	for _, l := range w.kube.Workloads() {
		for _, p := range w.kube.Pods(l) {
			if p.Phase != kube.Running || p.Deleting {
				return false
			}
		}
	}
	return true
}

func (w *World) unready() string {
	for _, n := range w.nodes[1:] {
		if n.core == nil {
			return fmt.Sprintf("node-%d has no daemon", n.no)
		}
		n.core.View(&w.view)
		if len(w.view.Reasons) > 0 {
			return fmt.Sprintf("node-%d: %s", n.no, w.view.Reasons[0])
		}
	}
	for _, l := range w.kube.Workloads() {
		for _, p := range w.kube.Pods(l) {
			if p.Phase != kube.Running {
				return "pod " + p.Name + " does not run"
			}
		}
	}
	return "intents are open"
}

// Clone forks the world: neither copy influences the other.
func (w *World) Clone() *World {
	c := *w
	c.heap = slices.Clone(w.heap)
	c.cloud, c.kube, c.audit = w.cloud.Clone(), w.kube.Clone(), w.audit.Clone()
	c.nodes = make([]*node, len(w.nodes))
	for i, n := range w.nodes {
		if n != nil {
			c.nodes[i] = n.clone()
		}
	}
	c.armed, c.acts = slices.Clone(w.armed), w.acts.Clone()
	c.story = w.story.Clone()
	c.view, c.snapshot = ipam.View{}, judge.Snapshot{}
	return &c
}

func (n *node) clone() *node {
	c := *n
	if n.core != nil {
		c.core = n.core.Clone()
	}
	c.kern, c.cri = n.kern.Clone(), n.cri.Clone()
	for s := range c.disk {
		c.disk[s].rows = slices.Clone(n.disk[s].rows)
	}
	c.faults, c.fresh = maps.Clone(n.faults), slices.Clone(n.fresh)
	c.starters = n.starters.Clone()
	c.run, c.intents, c.history = slices.Clone(n.run), slices.Clone(n.intents), n.history.Clone()
	return &c
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	w.heap.push(e)
}

func (w *World) random() uint64 { return splitmix.Next(&w.rng) }

// Until runs to instant t of the scenario. each, if any, is called after every event and stops the run by returning true.
func (w *World) Until(t time.Duration, each func() bool) { w.runUntil(w.epoch+t, each) }

func (w *World) runUntil(t time.Duration, each func() bool) {
	for len(w.heap) > 0 && w.heap[0].at <= t {
		w.step()
		if each != nil && each() {
			return
		}
	}
	w.now = max(w.now, t)
}

// step pops one event.
func (w *World) step() {
	e := w.heap.pop()
	w.now = e.at
	w.popped++
	w.mix(uint64(e.at))
	w.mix(uint64(e.kind)<<56 ^ uint64(e.node)<<24 ^ e.num)
	w.handle(&e)
	w.pump()
}

// pump lets the models that have something to say say it, until none has.
func (w *World) pump() {
	for {
		moved := false
		for _, e := range w.cloud.Events() {
			w.cloudEvent(&e)
			moved = true
		}
		for _, e := range w.kube.Events() {
			w.kubeEvent(e)
			moved = true
		}
		if !moved {
			break
		}
	}
	for _, m := range w.cloud.Met() {
		w.met(m.Fault, actions.Told(m, w.nodeOf))
	}
	if at, ok := w.cloud.Next(); ok && at < w.cloudAt {
		w.cloudAt = at
		w.push(event{at: max(at, w.now), kind: evCloud})
	}
}

func (w *World) handle(e *event) {
	switch e.kind {
	case evCloud:
		if e.at >= w.cloudAt {
			w.cloudAt = never
		}
		w.cloud.Advance(w.now)
		return
	case evSnapshot:
		w.judge()
		w.pushSnapshot()
		return
	case evServe:
		w.serve(e)
		return
	}
	n := w.nodes[e.node]
	if n.gone {
		return
	}
	switch e.kind {
	case evTick:
		w.tick(n, e)
	case evInput:
		if in, ok := e.data.(ipam.Input); ok && e.life == n.life {
			w.feed(n, in)
		}
	case evSaved:
		w.saved(n, e)
	case evApply:
		w.apply(n, e)
	case evLook:
		w.look(n, e)
	case evPlugin:
		w.plugin(n, e)
	case evResult:
		w.result(n, e)
	case evKubelet:
		if e.at >= n.criAt {
			n.criAt = never
			w.kubelet(n, nil)
		}
	case evStart:
		w.startDaemon(n)
	case evStale:
		w.stale(n, e)
	}
}

// mix folds a word into the trace hash (FNV-1a over words).
func (w *World) mix(x uint64) {
	w.hash = (w.hash ^ x) * 1099511628211
}

func (w *World) mixString(s string) {
	h := w.hash
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	w.hash = h
}

func (w *World) mixAddr(a netip.Addr) {
	if a.Is4() {
		b := a.As4()
		w.mix(uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3]))
	}
}

// Hash is the trace so far; Popped is how many events were popped.
func (w *World) Hash() uint64   { return w.hash }
func (w *World) Popped() uint64 { return w.popped }

// Now is the instant of the scenario.
func (w *World) Now() time.Duration { return w.now - w.epoch }

// Audit is the world's auditor. Its instants are the world's: subtract Epoch for the scenario's.
func (w *World) Audit() *judge.Auditor { return w.audit }

// Epoch is when t=0 was, in the world's own time.
func (w *World) Epoch() time.Duration { return w.epoch }

// Point is how often the core came through a rare branch since t=0.
func (w *World) Point(m ipam.Point) uint64 { return w.marks[m] }
