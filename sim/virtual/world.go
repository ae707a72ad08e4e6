package virtual

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
)

// World is a cluster in virtual time: one heap, N nodes, pure models. It is a value that can be forked.
type World struct {
	models.Host
	mutant *mutants.Mutant // nil: sound
	hushed bool            // no story is kept
	book   *timeline.Book  // if any, is told what is done to every ENI and attachment; forks share it
	unborn *ipam.Node      // what every daemon's core begins as
	now    time.Duration
	epoch  time.Duration // t=0 of the scenario
	seq    uint64
	heap   heap
	popped uint64
	hash   uint64

	nodes []*node // 1-based: nodes[0] is nil
	marks [256]uint64
	story timeline.Timeline
	told  time.Duration // when a fleet's figures were told last
	files int           // DEL intents written so far: their names
	tap   *tap

	view     ipam.View
	snapshot judge.Snapshot
}

// node is one machine: what the models know of it, its kernel, its disks and its daemon.
type node struct {
	models.Node
	w        *World
	core     *ipam.Node // nil: no daemon runs
	life     uint32
	writer   int    // record version in which the disk was written last
	self     string // the daemon's sandbox
	kern     *kernel.Kernel
	disk     [2]disk
	lane     [2]time.Duration // until when a store's lane is busy
	run      []request        // plugin processes that talk to the daemon
	intents  []intentFile     // DEL intents on disk
	lastReq  ipam.Req
	tickAt   time.Duration
	moved    bool                     // EC2 did something to the node's ENIs since the last snapshot
	fresh    []netip.Addr             // given to pods since then: the kernel had them before the runtime knew
	faults   map[cri.SandboxID]string // who was out of reach at the last snapshot, and why
	apart    map[netip.Addr]string    // and of whom another pod of the node gets no answer
	booted   bool                     // the tmpfs marker exists
	bootedAt time.Duration            // on the world's clock
	seen     *dataplane.Observation   // the last one, and the kernel's generation then: observations are not changed once made
	seenGen  uint64
	cutOff   int            // observations that will be incomplete
	cutBy    int            // the action that asked for that
	listed   []ipam.Sandbox // the runtime's last list; nil when something may have changed
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

// open makes the models and the machines, starts daemons and workloads, and runs until they are ready: that is t=0.
func (w *World) open(c *sim.Cluster, seed uint64) error {
	policy := ipam.Sound()
	if m := w.mutant; m != nil && m.Policy != nil {
		m.Policy(policy)
	}
	var err error
	if w.Host, err = models.New(w, c, seed, judge.Config{}); err != nil {
		return err
	}
	if w.unborn, err = ipam.New(policy); err != nil {
		return err
	}
	w.nodes = make([]*node, 1, c.Nodes+1)
	for range c.Nodes {
		if err := w.addNode(); err != nil {
			return err
		}
	}
	if err := w.Start(); err != nil {
		return err
	}
	w.pushSnapshot()
	err = w.WarmUp(func(to time.Duration) bool { w.runUntil(to, nil); return true })
	if err != nil {
		return err
	}
	w.epoch = w.now
	w.Begin()
	w.story.Clear()
	w.Auditor.Begin()
	clear(w.marks[:])
	return nil
}

func (w *World) addNode() error {
	n := &node{w: w, tickAt: models.Never, kern: kernel.New(w.Random())}
	if err := w.Launch(&n.Node, n, w.Random()); err != nil {
		return err
	}
	for _, l := range w.EC2.Links(n.Instance) {
		address, gateway := w.FirstLink(n.Instance)
		n.kern.PlugPrimary(l.MAC, address, gateway)
	}
	w.nodes = append(w.nodes, n)
	w.push(event{at: time.Duration(w.Random() % uint64(100*time.Millisecond)), kind: evStart, node: n.No})
	return nil
}

// Clone forks the world: neither copy influences the other.
func (w *World) Clone() *World {
	c := *w
	c.Host = w.Host.Clone(&c)
	c.heap = slices.Clone(w.heap)
	c.nodes = make([]*node, len(w.nodes))
	for i, n := range w.nodes {
		if n != nil {
			c.nodes[i] = n.clone(&c)
			c.Nodes[i] = &c.nodes[i].Node
		}
	}
	c.story = w.story.Clone()
	c.view, c.snapshot = ipam.View{}, judge.Snapshot{}
	return &c
}

func (n *node) clone(w *World) *node {
	c := *n
	c.Node, c.w = n.Node.Clone(&c), w
	if n.core != nil {
		c.core = n.core.Clone()
	}
	c.kern = n.kern.Clone()
	for s := range c.disk {
		c.disk[s].rows = slices.Clone(n.disk[s].rows)
	}
	c.faults, c.apart, c.fresh = maps.Clone(n.faults), maps.Clone(n.apart), slices.Clone(n.fresh)
	c.run, c.intents = slices.Clone(n.run), slices.Clone(n.intents)
	return &c
}

func (w *World) push(e event) {
	w.seq++
	e.seq = w.seq
	w.heap.push(e)
}

// Clock is the world's own time.
func (w *World) Clock() time.Duration { return w.now }

// AdvanceAt lets EC2 go on by itself at an instant.
func (w *World) AdvanceAt(at time.Duration) { w.push(event{at: max(at, w.now), kind: evCloud}) }

// Did tells what an action has done.
func (w *World) Did(line string) {
	if !w.hushed {
		w.story.Add(w.Now(), timeline.Scenario, line)
	}
}

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
	w.Pump()
}

func (w *World) handle(e *event) {
	switch e.kind {
	case evCloud:
		w.Advance()
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
	if n.Gone {
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
		w.Wake(&n.Node)
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
func (w *World) Audit() *judge.Auditor { return w.Auditor }

// Epoch is when t=0 was, in the world's own time.
func (w *World) Epoch() time.Duration { return w.epoch }

// Point is how often the core came through a rare branch since t=0.
func (w *World) Point(m ipam.Point) uint64 { return w.marks[m] }
