package cri

import (
	"iter"
	"net/netip"
	"time"
)

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
	IP          netip.Addr // PodSandboxStatus's: what ADD answered, while the namespace is there
}

// Truth is what a sandbox really is, whatever the runtime's list says of it.
type Truth struct {
	Sandbox
	Handle  SandboxID
	Netns   uint64     // inode of the namespace while something mounts or holds it; else 0
	Address netip.Addr // what ADD answered, until DEL is run: of the network nothing is owed to a process that outlives it
	Running bool       // a container of the pod runs in it
	Held    bool       // one of them is in D state
	Hidden  bool       // the runtime does not list it although it lives
	OwesDEL bool       // ADD was run, no DEL has ended in success since, and the runtime will call one
}

// Counts are gauges, and totals since New.
type Counts struct {
	Pods, Ready, Sandboxes, Ops int // now
	ADDs, DELs, CHECKs          int // plugin runs asked for
	FailedADDs                  int // that ended in an error
	FailedDELs                  int // that the runtime took for a failure
	Lost                        int // sandboxes forgotten, or orphaned, without a DEL that succeeded
}

func (n *Node) row(s *sandbox) Sandbox {
	r := Sandbox{
		ID: s.cid, Namespace: s.ns, Name: s.name, UID: s.uid, Attempt: int(s.attempt),
		Ready: n.shownReady(s), HostNetwork: s.hostNet, Created: s.created,
	}
	if s.alive() && s.inode != 0 {
		r.IP = s.address
	}
	return r
}

// shownReady: Docker shows pause, which runs since before ADD; the others show READY after pause started.
func (n *Node) shownReady(s *sandbox) bool {
	return s.state == ready || n.cfg.Runtime == Dockershim && s.mounted && s.creating()
}

// ListSandboxes is what the runtime answers to ListPodSandbox, in order of creation, the daemon's
// own sandbox included. It is not complete while the runtime is down. The slice is valid until
// the next call.
func (n *Node) ListSandboxes() (list []Sandbox, complete bool) {
	if n.runtimeDown {
		return nil, false
	}
	n.list = n.list[:0]
	for i := n.first; i != none; i = n.sandboxes[i].next {
		s := &n.sandboxes[i]
		if s.visible() {
			n.list = append(n.list, n.row(s))
		} else if s.listing == hidden && s.hiddenBy != 0 {
			n.meets(s.hiddenBy, "the runtime's list lacks the sandbox of "+s.name)
			s.hiddenBy = 0
		}
	}
	return n.list, true
}

// Sandboxes is the truth for auditors: every sandbox with a live namespace or owing a DEL, in order of creation.
func (n *Node) Sandboxes() iter.Seq[Truth] {
	return func(yield func(Truth) bool) {
		for i := n.first; i != none; i = n.sandboxes[i].next {
			s := &n.sandboxes[i]
			if !s.alive() && !s.owes() {
				continue
			}
			if !yield(n.truth(s)) {
				return
			}
		}
	}
}

// alive: something mounts or holds the namespace.
func (s *sandbox) alive() bool { return s.mounted || s.processes == stuck && s.inode != 0 }

func (n *Node) truth(s *sandbox) Truth {
	t := Truth{
		Sandbox: n.row(s), Handle: s.id, Running: s.processes != noProcess,
		Held: s.processes == stuck, Hidden: s.listing == hidden || s.state == orphaned, OwesDEL: n.willDEL(s),
	}
	if s.network < parting {
		t.Address = s.address
	}
	if s.alive() {
		t.Netns = s.inode
	}
	return t
}

// willDEL says whether a DEL that has to end in success will come. It never does for a sandbox that the runtime has no record of, and not
// where Stop believes that there is no network: after a restart during ADD containerd 1.6 has forgotten the sandbox, and 2.1 skips DEL.
func (n *Node) willDEL(s *sandbox) bool {
	switch {
	case !s.owes() || s.listing == hidden || s.state == orphaned:
		return false
	case s.state == stopping || s.creating(): // whose clean-up calls DEL whatever Stop would do
		return true
	}
	return !n.skipsDEL(s)
}

// PodReady says whether kubelet sees the pod's containers run.
func (n *Node) PodReady(uid string) bool {
	pi, ok := n.byUID[uid]
	return ok && n.pods[pi].ready
}

// Ready counts the pods whose containers kubelet sees run.
func (n *Node) Ready() int { return n.count.Ready }

// Counts are the node's figures.
func (n *Node) Counts() Counts {
	c := n.count
	c.Pods = len(n.byUID)
	return c
}

// SandboxOf is the container ID of the pod's newest sandbox; false when it has none.
func (n *Node) SandboxOf(uid string) (containerID string, ok bool) {
	pi, known := n.byUID[uid]
	if !known || n.pods[pi].newest == none {
		return "", false
	}
	return n.sandboxes[n.pods[pi].newest].cid, true
}
