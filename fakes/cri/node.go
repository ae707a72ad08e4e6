package cri

import (
	"maps"
	"slices"
	"time"
)

// Node is the kubelet and the container runtime of one node.
//
// Pods and sandboxes live in slots that are used again; they speak of each other by slot number, so
// that a Clone is a copy of two slices.
type Node struct {
	cfg    Config
	rng    rng
	now    time.Duration
	out    []Action // of the current Step
	queued []Action // of faults, until the next Step
	timers []timer
	nodeAt [nodeTimers]int32 // heap positions of the node's own timers
	seq    uint64            // orders timers of the same instant
	ids    uint64            // last OpID or SandboxID serial

	pods      []pod
	freePods  []int32
	byUID     map[string]int32
	sandboxes []sandbox
	freeBoxes []int32
	first     int32 // oldest sandbox
	last      int32 // newest sandbox
	daemon    int32 // the daemon's own sandbox

	kubeletDown bool
	runtimeDown bool
	runtimeUpAt time.Duration // when a runtime that is down will work again
	gcPhase     time.Duration // evictSandboxes runs at gcPhase + k*GCPeriod, and the relist at gcPhase + k*RelistPeriod
	gcQueue     []SandboxID   // this pass's sandboxes, one at a time
	gcBusy      SandboxID     // whose Stop or Remove the pass waits for
	replays     []replay      // sorted by time
	buried      []grave       // the last sandboxes forgotten, for ReplayDEL
	number      int32         // of the faults that are asked for now
	met         []Met         // since Met was asked last
	failNumber  int32         // of failDELs
	kubeletBy   int32         // the fault that restarts kubelet
	runtimeBy   int32         // the fault that restarts the runtime
	failDELs    int
	failDelay   time.Duration
	busyNetns   int
	crash       CrashPoint
	list        []Sandbox // ListSandboxes' answer
	count       Counts
}

// none is no slot.
const none = int32(-1)

// New makes a node on which only the daemon's own sandbox runs (kube-system/aws-node). The same
// configuration, seed and inputs give the same actions.
func New(cfg Config, seed uint64) *Node {
	cfg.setDefaults()
	n := &Node{cfg: cfg, rng: rng(seed), byUID: make(map[string]int32), first: none, last: none, daemon: none}
	for i := range n.nodeAt {
		n.nodeAt[i] = none
	}
	n.gcPhase = n.rng.between(0, cfg.GCPeriod)
	n.SetDaemonSandbox(0, "kube-system", "aws-node", "aws-node")
	return n
}

// Clone is a deep copy; neither node influences the other afterwards.
func (n *Node) Clone() *Node {
	c := *n
	c.out, c.list = nil, nil
	c.queued = slices.Clone(n.queued)
	c.timers = slices.Clone(n.timers)
	c.pods = slices.Clone(n.pods)
	c.freePods = slices.Clone(n.freePods)
	c.byUID = maps.Clone(n.byUID)
	c.sandboxes = slices.Clone(n.sandboxes)
	c.freeBoxes = slices.Clone(n.freeBoxes)
	c.gcQueue = slices.Clone(n.gcQueue)
	c.replays = slices.Clone(n.replays)
	c.met = slices.Clone(n.met)
	c.buried = slices.Clip(n.buried) // shared: its elements are never written again
	return &c
}

// Config is the node's configuration with its defaults filled in.
func (n *Node) Config() Config { return n.cfg }

// Step fires what is due at now, then applies in (nil is a tick), and returns what to do, in order.
// The slice is valid until the next Step. Inputs about unknown pods, sandboxes or operations are
// stale news and change nothing. Time never goes backwards: an earlier now counts as the latest.
func (n *Node) Step(now time.Duration, in *Input) []Action {
	n.now = max(n.now, now)
	n.out = append(n.out[:0], n.queued...)
	n.queued = n.queued[:0]
	n.fire()
	if in == nil {
		return n.out
	}
	switch in.Kind {
	case PodBound:
		n.podBound(in)
	case PodDeleted:
		n.podDeleted(in.UID, in.Grace, false)
	case PodForceRemoved:
		n.podDeleted(in.UID, in.Grace, true)
	case NetnsMade:
		n.netnsMade(in.Sandbox, in.Inode)
	case PluginDone:
		n.pluginDone(in.Op, in.Err, in)
	case Reboot:
		n.reboot()
	case RestartKubelet:
		n.kubeletBy = n.number
		n.restartKubelet()
	case RestartRuntime:
		n.runtimeBy = n.number
		n.restartRuntime(in.Graceful)
	}
	n.fire()
	return n.out
}

// Next is when the node wants a tick; false while it waits only for inputs.
func (n *Node) Next() (time.Duration, bool) {
	if len(n.queued) > 0 {
		return n.now, true
	}
	if len(n.timers) == 0 {
		return 0, false
	}
	return n.timers[0].at, true
}

func (n *Node) emit(a Action) { n.out = append(n.out, a) }
