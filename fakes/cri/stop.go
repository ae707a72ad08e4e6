package cri

import "net/netip"

// outcome of a Stop, or of what of it is known at once.
type outcome uint8

const (
	running outcome = iota // DEL runs; settle follows
	success
	failure
)

// stop is StopPodSandbox, also as the first half of RemovePodSandbox.
func (n *Node) stop(i int32, who caller) outcome {
	s := &n.sandboxes[i]
	if n.runtimeDown {
		return failure
	}
	s.caller = who
	if s.processes == stuck {
		n.defies(&s.hungBy, s.name)
	}
	if s.processes == stuck && n.cfg.Runtime.containerd() {
		return failure // a container that cannot be stopped: no DEL (sandbox_stop.go:60-75)
	}
	if s.state == ready {
		n.notice(s.pod)
	}
	if s.state == ready || s.state == dead {
		s.become(dead)
		s.end()
	}
	if n.crash == BeforeDEL {
		n.die()
		return failure
	}
	if n.skipsDEL(s) {
		return n.tornDown(i)
	}
	s.become(stopping)
	n.run(i, DEL, n.cfg.StopTimeout)
	return running
}

// skipsDEL: the network is already down, or this runtime believes so.
func (n *Node) skipsDEL(s *sandbox) bool {
	switch {
	case s.hostNet, s.networkStopped:
		return true
	case n.cfg.Runtime.guards() && !s.result:
		return true
	case n.cfg.SkipClosedDEL && !s.mounted:
		return true
	}
	return false
}

// torn goes on after DEL; ok when the runtime takes it for success.
func (n *Node) torn(i int32, ok bool) outcome {
	s := &n.sandboxes[i]
	s.rest()
	switch {
	case ok:
	case n.cfg.Runtime == Containerd2 && !s.result:
		// The network was never finished, so the error is only logged (sandbox_stop.go).
	case n.cfg.Runtime.containerd():
		return failure
	case n.cfg.Runtime == CRIO134:
		// networkStop removes the namespace and its cache, says so once, and never calls DEL again.
		n.unmount(i)
		s.networkStopped = true
		return failure
	default: // dockershim stops pause whatever DEL said
		n.unmount(i)
		return failure
	}
	if !n.cfg.Runtime.containerd() {
		s.networkStopped = true
	}
	if !s.owes() {
		s.address = netip.Addr{}
	}
	return n.tornDown(i)
}

// tornDown removes the namespace.
func (n *Node) tornDown(i int32) outcome {
	s := &n.sandboxes[i]
	s.become(dead)
	if n.crash == BeforeUnmount {
		n.die()
		return failure
	}
	if s.processes == stuck && n.cfg.Runtime == CRIO134 {
		return failure // CRI-O kills containers after DEL
	}
	if s.mounted && n.busyNetns > 0 {
		// EBUSY, after the mount has been detached: the next Stop calls DEL with an empty CNI_NETNS.
		n.busyNetns--
		n.unmount(i)
		return failure
	}
	n.unmount(i)
	s.become(stopped)
	s.wasStopped = true
	return success
}

// settle answers the caller of the Stop.
func (n *Node) settle(i int32, who caller, o outcome) {
	if o == running {
		return
	}
	s := &n.sandboxes[i]
	switch who {
	case byWorker:
		if s.pod != none && !n.kubeletDown {
			n.pods[s.pod].failed = n.pods[s.pod].failed || o == failure
			n.stopNext(s.pod)
		}
	case byEvict, byRemove:
		n.evicted(i, who, o)
	}
	if s.id != 0 && (s.pod == none || n.pods[s.pod].newest != i) {
		n.wantGC()
	}
}
