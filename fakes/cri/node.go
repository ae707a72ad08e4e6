package cri

import (
	"iter"
	"net/netip"
	"time"
)

// Node is the kubelet and the container runtime of one node.
type Node struct {
	cfg Config
	now time.Duration
	out []Action
}

// Sandbox is a row of the runtime's ListPodSandbox.
type Sandbox struct {
	ID          string // 64 hexadecimal digits
	Namespace   string
	Name        string
	UID         string
	Attempt     int
	Ready       bool
	HostNetwork bool
	Created     time.Duration
}

// Truth is what a sandbox really is, whatever the runtime's list says of it.
type Truth struct {
	Sandbox
	Handle  SandboxID
	Netns   uint64     // inode of the namespace while something mounts or holds it; else 0
	Address netip.Addr // what the runtime believes; invalid before ADD and after a successful DEL
	Running bool       // pause or a container runs in the namespace
	Held    bool       // a D-state process is in the namespace
	Hidden  bool       // the runtime does not list it although it lives
	OwesDEL bool       // ADD was run, and no DEL has ended in success since
}

// New makes a node on which only the daemon's own sandbox runs.
func New(cfg Config, seed uint64) *Node { cfg.setDefaults(); return &Node{cfg: cfg} }

// Clone is a deep copy.
func (n *Node) Clone() *Node { c := *n; return &c }

// Step applies one input at now; a nil Input is a tick. The slice is valid until the next Step.
func (n *Node) Step(now time.Duration, in *Input) []Action { return n.out }

// Next is when the node wants a tick.
func (n *Node) Next() (time.Duration, bool) { return 0, false }

func (n *Node) ListSandboxes() (list []Sandbox, complete bool) { return nil, false }
func (n *Node) Sandboxes() iter.Seq[Truth]                     { return func(func(Truth) bool) {} }
func (n *Node) PodReady(uid string) bool                       { return false }
func (n *Node) Ready() int                                     { return 0 }
func (n *Node) Counts() Counts                                 { return Counts{} }
func (n *Node) SandboxOf(uid string) (containerID string, ok bool) {
	return "", false
}

// Counts are totals since New, and gauges.
type Counts struct {
	Pods, Ready, Sandboxes, Ops  int // gauges
	ADDs, DELs, CHECKs           int // plugin runs asked for
	FailedADDs, FailedDELs, Lost int
}

func (n *Node) Hang(now time.Duration, uid string)   {}
func (n *Node) Unhang(now time.Duration, uid string) {}
func (n *Node) Hide(now time.Duration, id string) bool {
	return false
}
func (n *Node) FailDELs(times int, delay time.Duration) {}
func (n *Node) BusyNetns(times int)                     {}
func (n *Node) ReplayDEL(now time.Duration, containerID string, after time.Duration) bool {
	return false
}
func (n *Node) CrashAt(p CrashPoint) {}
func (n *Node) SetDaemonSandbox(now time.Duration, namespace, name, uid string) (containerID string) {
	return ""
}

// CrashPoint is where the runtime dies once, between two of its own steps.
type CrashPoint uint8

const (
	NoCrash       CrashPoint = iota
	BeforeADD                // P1: the namespace is made, ADD not yet run
	ADDUnsaved               // P2: ADD is done, its result not saved (containerd #12922)
	BeforePause              // P3: the result is saved, the shim not started
	BeforeDEL                // the containers are stopped, DEL not yet run
	BeforeUnmount            // DEL is done, the namespace not yet removed
	BeforeForget             // Remove's DEL is done, the record not yet dropped
)
