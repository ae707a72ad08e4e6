package cri

import "time"

// crioGrace is what CRI-O adds to kubelet's deadline for ADD (server/sandbox_network.go:40-46).
const crioGrace = 5 * time.Minute

// create begins RunPodSandbox for a pod: a namespace first, then ADD, then pause.
func (n *Node) create(pi int32) {
	p := &n.pods[pi]
	i := n.newSandbox(p.ns, p.name, p.uid)
	s := &n.sandboxes[i]
	s.pod, s.older, s.attempt = pi, p.newest, p.attempts
	s.hostNet, s.caller = p.hostNet, byWorker
	s.deadline = n.now + n.cfg.SandboxTimeout
	p.newest = i
	p.attempts++
	if s.older != none {
		n.wantGC()
	}
	if s.hostNet {
		n.start(i)
		return
	}
	s.become(wantNetns)
	n.emit(Action{Kind: MakeNetns, Sandbox: s.id, ContainerID: s.cid, UID: s.uid})
	n.wake(boxKey(i), s.deadline)
}

// netnsMade goes on to ADD, unless the caller has gone.
func (n *Node) netnsMade(id SandboxID, inode uint64) {
	i, ok := n.box(id)
	if !ok || n.sandboxes[i].state != wantNetns {
		n.emit(Action{Kind: RemoveNetns, Inode: inode, Sandbox: id}) // its caller has given up
		return
	}
	s := &n.sandboxes[i]
	s.inode, s.mounted = inode, true
	if n.cfg.Runtime == Dockershim {
		s.show() // pause already runs: it is what holds the namespace
	}
	s.become(adding)
	switch {
	case n.crash == BeforeADD:
		n.die()
	case s.caller == nobody:
		// The context has ended, so ADD is not even started; the clean-up calls DEL all the same.
		n.undo(i)
	default:
		limit := s.deadline - n.now
		if n.cfg.Runtime == CRIO134 {
			limit += crioGrace
		}
		n.run(i, ADD, limit)
		n.wake(boxKey(i), s.deadline)
	}
}

// added saves ADD's result.
func (n *Node) added(i int32, ok bool, in *Input) {
	s := &n.sandboxes[i]
	if !ok {
		n.count.FailedADDs++
		n.undo(i)
		return
	}
	if n.crash == ADDUnsaved {
		n.die()
		return
	}
	s.result = true
	s.address = in.Address
	if n.cfg.Runtime == CRIO134 {
		s.become(checking)
		n.run(i, CHECK, n.cfg.CleanupTimeout)
		return
	}
	n.start(i)
}

// checked is CRI-O's CHECK right after ADD (server/sandbox_network.go:78).
func (n *Node) checked(i int32, ok bool) {
	if !ok {
		n.undo(i)
		return
	}
	n.start(i)
}

// start runs the shim, pause and the containers.
func (n *Node) start(i int32) {
	n.sandboxes[i].become(starting)
	n.wake(boxKey(i), n.now+n.rng.between(n.cfg.PauseStartMin, n.cfg.PauseStartMax))
}

// started lists the sandbox: only now does the runtime's list hold it.
func (n *Node) started(i int32) {
	s := &n.sandboxes[i]
	if n.crash == BeforePause {
		n.die()
		return
	}
	if s.caller == nobody {
		n.undo(i) // CRI-O finished for a caller that has given up
		return
	}
	s.become(ready)
	s.processes = containers
	s.show()
	p := &n.pods[s.pod]
	p.ready = true
	n.count.Ready++
	n.emit(Action{Kind: PodStarted, UID: s.uid, ContainerID: s.cid, Sandbox: s.id, Address: s.address})
	if p.hang {
		if a, ok := n.hold(i); ok {
			n.emit(a)
		}
	}
	if p.deleting { // an older kubelet lets RunPodSandbox finish first
		n.beginKill(s.pod)
	}
}

// undo is the clean-up of a RunPodSandbox that failed: one DEL, in a context of its own.
func (n *Node) undo(i int32) {
	s := &n.sandboxes[i]
	if s.hostNet {
		n.undone(i, true)
		return
	}
	s.become(undoing)
	n.run(i, DEL, n.cfg.CleanupTimeout)
}

// undone ends a failed RunPodSandbox. What a failed DEL means is each runtime's own affair:
//   - containerd from 2.0 drops the record when ADD had no result (sandbox_run.go:240-256), and so
//     does 1.6, which only logs the error; DEL is not called again;
//   - containerd 1.7 keeps the sandbox as UNKNOWN, and its guard then skips DEL at Stop;
//   - with a result every containerd keeps it, and the next Stop calls DEL;
//   - CRI-O drops it; dockershim keeps the dead pause container and calls DEL again at Stop.
func (n *Node) undone(i int32, ok bool) {
	s := &n.sandboxes[i]
	pi, who := s.pod, s.caller
	keep := !ok && (s.result || n.cfg.Runtime == Containerd17Guard)
	switch n.cfg.Runtime {
	case CRIO134:
		keep = false
	case Dockershim:
		keep = !s.hostNet && s.listing == listed
		n.unmount(i) // pause is stopped whatever DEL said
	}
	if keep {
		s.networkStopped, s.wasStopped = ok, ok
		s.rest()
		s.show()
		if pi == none || n.pods[pi].newest != i {
			n.wantGC()
		}
	} else {
		n.unmount(i)
		n.forget(i)
	}
	if pi == none || who == nobody || n.kubeletDown {
		return
	}
	n.runFailed(pi)
}

// runFailed is RunPodSandbox's error as the pod worker takes it.
func (n *Node) runFailed(pi int32) {
	switch p := &n.pods[pi]; {
	case p.deleting && !p.killing:
		n.beginKill(pi)
	case p.deleting:
		n.work(pi)
	default:
		n.retry(pi)
	}
}

// cutOff ends the caller's interest in a RunPodSandbox under way.
func (n *Node) cutOff(i int32) {
	s := &n.sandboxes[i]
	if s.caller == nobody {
		return
	}
	s.caller = nobody
	if n.cfg.Runtime == CRIO134 {
		if s.state == adding {
			n.wake(boxKey(i), s.deadline+crioGrace)
		}
		return // its ADD runs in a context of its own
	}
	switch s.state {
	case wantNetns:
		n.calm(boxKey(i))
	case adding:
		n.kill(i)
		n.undo(i)
	case starting:
		n.undo(i)
	}
}

// sandboxDue is the sandbox's only timer: a deadline, a stalled chain, or pause's start.
func (n *Node) sandboxDue(i int32) {
	s := &n.sandboxes[i]
	switch s.state {
	case wantNetns:
		n.runTimedOut(i)
	case adding:
		if s.caller == nobody { // CRI-O's own limit
			n.kill(i)
			n.undo(i)
			return
		}
		n.runTimedOut(i)
	case checking:
		n.kill(i)
		n.checked(i, false)
	case starting:
		n.started(i)
	case collecting:
		n.undo(i)
	case undoing, stopping:
		n.kill(i)
		n.deleted(i, false)
	}
}

// runTimedOut is kubelet's deadline for RunPodSandbox: it will try a new one beside what is left.
func (n *Node) runTimedOut(i int32) {
	pi, who := n.sandboxes[i].pod, n.sandboxes[i].caller
	n.cutOff(i)
	if pi != none && who != nobody {
		n.runFailed(pi)
	}
}
