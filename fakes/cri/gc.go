package cri

import "time"

// wantGC makes sure that evictSandboxes runs once more. Kubelet runs it every minute; here it
// wakes only when it has something to look at.
func (n *Node) wantGC() {
	if n.nodeAt[-jobGC-1] != none || n.kubeletDown {
		return
	}
	n.wake(jobGC, n.nextGC())
}

// nextGC is the next instant of kubelet's minute after now.
func (n *Node) nextGC() time.Duration {
	period := n.cfg.GCPeriod
	if n.now < n.gcPhase {
		return n.gcPhase
	}
	return n.now + period - (n.now-n.gcPhase)%period
}

// evictable: not READY, no containers left, and its pod is deleted or has a newer sandbox
// (kuberuntime_gc.go evictSandboxes).
func (n *Node) evictable(i int32) bool {
	s := &n.sandboxes[i]
	if !s.visible() || s.processes == stuck || s.state != dead && s.state != stopped {
		return false
	}
	return s.pod == none || n.pods[s.pod].newest != i
}

// evictSandboxes queues what there is, oldest first. A pass that still runs is not overtaken.
func (n *Node) evictSandboxes() {
	if n.kubeletDown {
		return
	}
	if n.gcBusy != 0 {
		n.wantGC()
		return
	}
	n.gcQueue = n.gcQueue[:0]
	for i := n.first; i != none; i = n.sandboxes[i].next {
		if n.evictable(i) {
			n.gcQueue = append(n.gcQueue, n.sandboxes[i].id)
		}
	}
	if len(n.gcQueue) > 0 {
		n.evictNext()
	}
}

// evictNext takes one sandbox after the other: Stop, then Remove. What fails waits for the next minute.
func (n *Node) evictNext() {
	for n.gcBusy == 0 && len(n.gcQueue) > 0 {
		id := n.gcQueue[0]
		n.gcQueue = n.gcQueue[:copy(n.gcQueue, n.gcQueue[1:])]
		i, ok := n.box(id)
		if !ok || !n.evictable(i) {
			continue
		}
		n.gcBusy = id
		o := n.stop(i, byEvict)
		if o == success {
			o = n.remove(i)
		}
		switch o {
		case success:
			n.forget(i)
		case failure:
			n.gcBusy = 0
			n.wantGC()
		}
	}
}

// remove is RemovePodSandbox: containerd stops the sandbox once more (sandbox_remove.go:55-61).
func (n *Node) remove(i int32) outcome {
	if !n.cfg.Runtime.containerd() {
		return success
	}
	return n.stop(i, byRemove)
}

// evicted goes on after a DEL of the pass.
func (n *Node) evicted(i int32, who caller, o outcome) {
	if o == success && who == byEvict {
		o = n.remove(i)
		if o == running {
			return
		}
	}
	if o == success && n.crash == BeforeForget {
		n.die()
		return
	}
	n.gcBusy = 0
	if o == success {
		n.forget(i)
	} else {
		n.wantGC()
	}
	n.evictNext()
}
