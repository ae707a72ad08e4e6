package cri

import "time"

// defaultGrace is terminationGracePeriodSeconds when a pod does not say.
const defaultGrace = 30 * time.Second

// pod is what kubelet's worker knows of a pod.
type pod struct {
	uid, ns, name string
	newest        int32 // its newest sandbox
	timer         int32
	attempts      int32
	hostNet       bool
	ready         bool // containers run in a sandbox that kubelet sees
	hang          bool // a container is in D state, or will be as soon as it runs
	deleting      bool
	killing       bool // the containers have been told to stop
	ended         bool // they have stopped
	grace         time.Duration
}

func (n *Node) podBound(in *Input) {
	if _, known := n.byUID[in.UID]; known || in.UID == "" {
		return
	}
	var pi int32
	if l := len(n.freePods); l > 0 {
		pi = n.freePods[l-1]
		n.freePods = n.freePods[:l-1]
	} else {
		pi = int32(len(n.pods))
		n.pods = append(n.pods, pod{})
	}
	n.pods[pi] = pod{
		uid: in.UID, ns: in.Namespace, name: in.Name, hostNet: in.HostNetwork,
		newest: none, timer: none, grace: defaultGrace,
	}
	n.byUID[in.UID] = pi
	n.work(pi)
}

// podDeleted is the deletionTimestamp, or the object's disappearance, which kubelet treats alike:
// it kills with the pod's own grace period, in the background. Further deletions change nothing
// while one is in progress (kubernetes #113717).
func (n *Node) podDeleted(uid string, grace time.Duration, forced bool) {
	pi, ok := n.byUID[uid]
	if !ok || n.pods[pi].deleting {
		return
	}
	p := &n.pods[pi]
	p.deleting = true
	if grace > 0 && !forced {
		p.grace = grace
	}
	if !n.kubeletDown {
		n.terminate(pi)
	}
}

// terminate turns the worker from running the pod to killing it. Kubelet cancels the RunPodSandbox
// under way (pod_workers.go UpdatePod); before 1.22 it waited for it.
func (n *Node) terminate(pi int32) {
	n.calm(podKey(pi))
	if !n.cfg.OldKubelet {
		for i := n.pods[pi].newest; i != none; {
			s := &n.sandboxes[i]
			older := s.older // cutting may forget the sandbox
			if s.creating() {
				n.cutOff(i)
			}
			i = older
		}
	}
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.creating() && !s.cut {
			return // the older kubelet's RunPodSandbox; its end goes on from here
		}
	}
	n.beginKill(pi)
}

// beginKill sends SIGTERM to the containers.
func (n *Node) beginKill(pi int32) {
	p := &n.pods[pi]
	p.killing = true
	if !n.containersRun(pi) {
		p.ended = true
		n.work(pi)
		return
	}
	if p.hang {
		n.wake(podKey(pi), n.now+p.grace+n.cfg.StopTimeout) // StopContainer's deadline
		return
	}
	n.wake(podKey(pi), n.now+min(p.grace, n.rng.between(n.cfg.ContainerEndMin, n.cfg.ContainerEndMax)))
}

// containersRun: kubelet sees a container of the pod.
func (n *Node) containersRun(pi int32) bool {
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.running && s.visible() {
			return true
		}
	}
	return false
}

// podDue is the pod worker's only timer: the containers' end, or a retry.
func (n *Node) podDue(pi int32) {
	p := &n.pods[pi]
	if n.kubeletDown {
		return // kubeletUp works on every pod
	}
	if p.killing && !p.ended && !n.podHung(pi) {
		n.containersEnd(pi)
	}
	n.work(pi)
}

func (n *Node) podHung(pi int32) bool {
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.hung && s.visible() {
			return true
		}
	}
	return false
}

func (n *Node) containersEnd(pi int32) {
	n.pods[pi].ended = true
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.visible() {
			s.running = false
		}
	}
	n.unready(pi)
}

// unready tells the API server that the pod's containers do not run.
func (n *Node) unready(pi int32) {
	if p := &n.pods[pi]; p.ready {
		p.ready = false
		n.count.Ready--
		n.emit(Action{Kind: PodStopped, UID: p.uid})
	}
}

// work is one sync of the pod worker: sandboxes that are not ready are stopped first, then a pod
// that is wanted gets a new one and a pod that is not is finished with.
func (n *Node) work(pi int32) {
	if n.kubeletDown {
		return
	}
	if n.runtimeDown {
		n.retry(pi)
		return
	}
	deleting := n.pods[pi].deleting
	var busy, failed, alive bool
	for i := n.pods[pi].newest; i != none; {
		s := &n.sandboxes[i]
		older := s.older
		switch {
		case s.creating():
			busy = busy || !s.cut
		case s.state == stopping:
			busy = busy || s.caller == byWorker
		case !s.visible() || s.state == stopped:
		case s.state == ready && !deleting:
			alive = true
		default:
			switch n.stop(i, byWorker) {
			case running:
				busy = true
			case failure:
				failed = true
			}
		}
		i = older
	}
	p := &n.pods[pi]
	switch {
	case busy:
	case failed:
		n.killFailed(pi)
	case deleting && p.ended:
		n.finish(pi)
	case deleting:
		n.retryAfter(pi, n.cfg.StopTimeout) // a container is still there
	case !alive:
		n.create(pi)
	}
}

// killFailed is KillPodSandboxError. Before 1.22 the object could go all the same, and the sandbox
// was left to evictSandboxes.
func (n *Node) killFailed(pi int32) {
	p := &n.pods[pi]
	switch {
	case p.deleting && p.ended && n.cfg.OldKubelet && !n.runtimeDown:
		n.finish(pi)
	case n.podHung(pi):
		n.retryAfter(pi, n.cfg.StopTimeout)
	default:
		n.retry(pi)
	}
}

// retry is the pod worker's back-off after an error.
func (n *Node) retry(pi int32) { n.retryAfter(pi, 0) }

func (n *Node) retryAfter(pi int32, wait time.Duration) {
	back := n.cfg.RetryBackoff
	n.wake(podKey(pi), n.now+wait+n.rng.between(back, back+back/2))
}

// finish ends the pod worker; what is left of its sandboxes is evictSandboxes' work.
func (n *Node) finish(pi int32) {
	n.unready(pi)
	n.calm(podKey(pi))
	p := &n.pods[pi]
	for i := p.newest; i != none; {
		s := &n.sandboxes[i]
		older := s.older
		s.pod, s.older = none, none
		if s.caller == byWorker {
			s.caller = nobody
		}
		s.cut = s.cut || s.creating()
		i = older
	}
	n.emit(Action{Kind: PodGone, UID: p.uid})
	delete(n.byUID, p.uid)
	*p = pod{timer: none, newest: none}
	n.freePods = append(n.freePods, pi)
	n.wantGC()
}
