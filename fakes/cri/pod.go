package cri

import "time"

const (
	// defaultGrace is terminationGracePeriodSeconds when a pod does not say.
	defaultGrace = 30 * time.Second
	// forcedGrace is what is left of it for a pod that is deleted with a grace period of 0: kubelet hears of the deletionTimestamp
	// before the object disappears, and grants no container less than this (minimumGracePeriodInSeconds; recorded: containerd
	// 2.1.5, kubelet 1.34.2, force-delete).
	forcedGrace = 2 * time.Second
)

// pod is what kubelet's worker knows of a pod.
type pod struct {
	uid, ns, name string
	newest        int32 // its newest sandbox
	timer         int32
	attempts      int32
	hostNet       bool
	ready         bool  // containers run in a sandbox that kubelet sees
	hang          bool  // a container is in D state, or will be as soon as it runs
	hungBy        int32 // the fault that did it, until it has been met
	deleting      bool
	killing       bool // the containers have been told to stop
	ended         bool // they have stopped
	creates       bool // the sync under way ends in a new sandbox
	failed        bool // a Stop of the sync under way has failed
	grace         time.Duration
	synced        time.Duration // when the worker's last sync began
	noticed       time.Duration // when the last change of its containers and sandboxes is seen, which wakes the worker
}

func (n *Node) podBound(in *Input) {
	if _, known := n.byUID[in.UID]; known || in.UID == "" {
		return
	}
	pi := takeSlot(&n.pods, &n.freePods)
	n.pods[pi] = pod{
		uid: in.UID, ns: in.Namespace, name: in.Name, hostNet: in.HostNetwork,
		newest: none, timer: none, grace: defaultGrace,
	}
	n.byUID[in.UID] = pi
	n.work(pi)
}

// podDeleted is the deletionTimestamp, or the object's disappearance, which kubelet treats alike: it
// kills in the background. Further deletions change nothing while one is in progress (kubernetes
// #113717).
func (n *Node) podDeleted(uid string, grace time.Duration, forced bool) {
	pi, ok := n.byUID[uid]
	if !ok || n.pods[pi].deleting {
		return
	}
	p := &n.pods[pi]
	p.deleting = true
	switch {
	case forced:
		p.grace = forcedGrace
	case grace > 0:
		p.grace = grace
	}
	if !n.kubeletDown {
		n.terminate(pi)
	}
}

// terminate turns the worker from running the pod to killing it. A sync under way goes on, with RunPodSandbox and the containers'
// start: kubelet's SyncPod does not heed the cancellation of its context (kubelet.go, "TODO(#113606)"; recorded: containerd
// 2.1.5, kubelet 1.34.2, delete-in-add).
func (n *Node) terminate(pi int32) {
	if n.syncing(pi) {
		return // its end goes on from here
	}
	n.calm(podKey(pi))
	n.beginKill(pi)
}

// syncing: the worker waits for a Stop or a RunPodSandbox.
func (n *Node) syncing(pi int32) bool {
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		s := &n.sandboxes[i]
		if s.caller == byWorker && (s.creating() || s.state == stopping) {
			return true
		}
	}
	return false
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
		n.defies(&p.hungBy, p.name)
		n.wake(podKey(pi), n.now+p.grace+n.cfg.StopTimeout) // StopContainer's deadline
		return
	}
	n.wake(podKey(pi), n.now+min(p.grace, n.rng.between(n.cfg.ContainerEndMin, n.cfg.ContainerEndMax)))
}

// defies: a container in D state is not killed.
func (n *Node) defies(by *int32, pod string) {
	n.meets(*by, "a process of "+pod+" in D state cannot be killed")
	*by = 0
}

// containersRun: kubelet sees a container of the pod.
func (n *Node) containersRun(pi int32) bool {
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.processes != noProcess && s.visible() {
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
		if s := &n.sandboxes[i]; s.processes == stuck && s.visible() {
			return true
		}
	}
	return false
}

func (n *Node) containersEnd(pi int32) {
	n.pods[pi].ended = true
	n.notice(pi)
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if s := &n.sandboxes[i]; s.visible() {
			s.end()
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

// work is one sync of the pod worker. A pod that is not wanted, or whose newest sandbox is not ready, has its sandboxes stopped, the
// newest first and one after the other, also those that have been stopped before (killPodWithSyncResult; recorded: containerd
// 2.1.5, kubelet 1.34.2, node-restart-add-fails). Then a pod that is wanted gets a new one and a pod that is not is finished with.
func (n *Node) work(pi int32) {
	p := &n.pods[pi]
	switch {
	case n.kubeletDown || n.syncing(pi):
		return
	case n.runtimeDown:
		// A worker first waits for a relist that is newer than its last sync (pod_workers.go, GetNewerThan).
		n.wake(podKey(pi), n.relist(n.runtimeUpAt))
		return
	case p.deleting && !p.killing:
		n.beginKill(pi)
		return
	}
	p.synced, p.failed, p.creates = n.now, false, !p.deleting
	if n.markDue(pi) {
		n.stopNext(pi)
	}
}

// markDue marks the sandboxes that the sync stops. False when the pod runs as it should, so that there is nothing to do.
func (n *Node) markDue(pi int32) bool {
	newest := true
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		s := &n.sandboxes[i]
		s.due = s.visible() && !s.creating() && s.state != stopping // evictSandboxes stops it
		if s.due && newest && s.state == ready && !n.pods[pi].deleting {
			s.due = false
			return false
		}
		newest = newest && !s.due
	}
	return true
}

// stopNext goes on with the Stops of a sync. One that fails keeps none of the others back, but the pod from going on.
func (n *Node) stopNext(pi int32) {
	for i := n.nextDue(pi); i != none; i = n.nextDue(pi) {
		n.sandboxes[i].due = false
		switch n.stop(i, byWorker) {
		case running:
			return
		case failure:
			n.pods[pi].failed = true
		}
	}
	switch p := &n.pods[pi]; {
	case p.failed && p.deleting && !p.killing:
		n.beginKill(pi)
	case p.failed:
		n.killFailed(pi)
	case p.creates:
		n.create(pi)
	case p.ended:
		n.finish(pi)
	default:
		n.retryAfter(pi, n.cfg.StopTimeout) // a container is still there
	}
}

func (n *Node) nextDue(pi int32) int32 {
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if n.sandboxes[i].due {
			return i
		}
	}
	return none
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

// retryAfter is the back-off, after what the failed call itself took. A change of the pod's containers and sandboxes that is seen
// after the sync had begun wakes the worker before its time: the first Stop that fails is repeated within a second, and only the
// next ones after 10 to 15 s (recorded: containerd 2.1.5, kubelet 1.34.2, del-fails).
func (n *Node) retryAfter(pi int32, wait time.Duration) {
	p, back := &n.pods[pi], n.cfg.RetryBackoff
	at := n.now + wait + n.rng.between(back, back+back/2)
	if p.noticed > p.synced {
		at = min(at, max(n.now+wait, p.noticed))
	}
	n.wake(podKey(pi), at)
}

// notice: a container or sandbox of the pod has changed its state, which the next relist finds.
func (n *Node) notice(pi int32) {
	if pi == none {
		return
	}
	from := n.now
	if n.runtimeDown {
		from = n.runtimeUpAt
	}
	n.pods[pi].noticed = n.relist(from)
}

// relist is the first relist of kubelet's PLEG after an instant.
func (n *Node) relist(from time.Duration) time.Duration {
	period := n.cfg.RelistPeriod
	phase := n.gcPhase % period
	if from < phase {
		return phase
	}
	return from + period - (from-phase)%period
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
		i = older
	}
	n.emit(Action{Kind: PodGone, UID: p.uid})
	delete(n.byUID, p.uid)
	*p = pod{timer: none, newest: none}
	n.freePods = append(n.freePods, pi)
	n.wantGC()
}
