package cri

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

// die is the crash that CrashAt has armed.
func (n *Node) die() {
	n.crash = NoCrash
	if n.cfg.Runtime == Dockershim {
		n.restartKubelet() // whose process dockershim is
		return
	}
	n.restartRuntime(false)
}

// restartRuntime: every call under way fails and the records are loaded again. The plugin's processes are not killed with their
// runtime (KillMode=process), but their answers are lost (recorded: containerd 2.1.5, runtime-crash-in-add); a
// containerd that is told to stop kills some itself. Dockershim's calls are kubelet's own and go on.
func (n *Node) restartRuntime(graceful bool) {
	n.runtimeDown, n.runtimeUpAt = true, n.now+n.cfg.RuntimeRestart
	n.wake(jobRuntime, n.runtimeUpAt)
	if n.cfg.Runtime == Dockershim {
		return
	}
	for i := n.first; i != none; {
		next := n.sandboxes[i].next
		if graceful && n.cfg.Runtime.containerd() {
			n.cancel(i)
		}
		n.reload(i)
		i = next
	}
	n.gcQueue, n.gcBusy = n.gcQueue[:0], 0
	n.wantGC()
	for pi := range n.pods {
		n.resume(int32(pi))
	}
}

// cancel is what becomes of a call when containerd is told to stop: its context ends, and with it the plugin. RunPodSandbox then
// begins to clean up, and either its DEL starts before the process exits and outlives it, unheard, or it does not (recorded:
// containerd 2.1.5, runtime-restart-in-add, both). A clean-up that had begun has a context of its own, and its DEL goes on.
func (n *Node) cancel(i int32) {
	switch s := &n.sandboxes[i]; s.state {
	case stopping:
		n.kill(i)
	case adding:
		n.kill(i)
		if n.rng.between(0, 2) == 0 {
			n.runUnheard(i)
		}
	}
}

// resume sets the back-off of a worker whose call has failed.
func (n *Node) resume(pi int32) {
	p := &n.pods[pi]
	if p.uid == "" || p.timer != none || p.ready && !p.deleting || n.kubeletDown {
		return
	}
	if p.deleting && !p.killing {
		p.killing, p.ended = true, !n.containersRun(pi)
	}
	n.retry(pi)
}

// reload is one sandbox as the restarted runtime finds it.
func (n *Node) reload(i int32) {
	s := &n.sandboxes[i]
	switch s.state {
	case ready, dead, stopped, orphaned:
		return
	case stopping:
		n.dropOp(i)
		n.calm(boxKey(i))
		s.rest()
		return
	case wantNetns:
		n.forget(i) // a namespace without a record; a late NetnsMade removes it
		return
	}
	n.dropOp(i)
	n.calm(boxKey(i))
	switch {
	case n.cfg.Runtime == CRIO134 && s.result && s.state != undoing && s.state != collecting:
		// CRI-O drops sandboxes that were not finished, and its collection at start calls DEL for the
		// attachments that libcni has in its cache (cnimgr.go:210-242).
		s.become(collecting)
		s.caller = nobody
		n.wake(boxKey(i), n.now+n.cfg.RuntimeRestart)
	case n.cfg.Runtime == CRIO134 || s.hostNet:
		n.unmount(i)
		n.forget(i)
	case n.cfg.Runtime == Containerd16 && !s.result:
		n.orphan(i)
	default:
		s.become(dead)
		s.show()
		n.notice(s.pod)
	}
}

// orphan is a sandbox that was not yet recorded: its namespace stays mounted and is forgotten.
func (n *Node) orphan(i int32) {
	s := &n.sandboxes[i]
	if s.owes() {
		n.count.Lost++
	}
	n.emit(Action{Kind: SandboxGone, ContainerID: s.cid, UID: s.uid, Sandbox: s.id, Lost: s.owes()})
	n.leavePod(i)
	s.become(orphaned)
	s.listing, s.processes = unlisted, noProcess
}

func (n *Node) runtimeUp() {
	n.runtimeDown = false
	n.meets(n.runtimeBy, "the runtime has loaded its records again")
	n.runtimeBy = 0
}

// restartKubelet: the calls under way are cancelled with their connection, and the pod workers'
// memory is gone. kubeletUp finds everything again from the API server and the runtime's list.
func (n *Node) restartKubelet() {
	n.kubeletDown = true
	n.wake(jobKubelet, n.now+n.cfg.KubeletRestart)
	n.calm(jobGC)
	n.gcQueue, n.gcBusy = n.gcQueue[:0], 0
	for pi := range n.pods {
		if n.pods[pi].uid != "" {
			n.calm(podKey(int32(pi)))
		}
	}
	for i := n.first; i != none; {
		next := n.sandboxes[i].next
		n.disconnect(i)
		i = next
	}
}

// disconnect is one sandbox whose caller has gone.
func (n *Node) disconnect(i int32) {
	s := &n.sandboxes[i]
	switch {
	case s.state == unused || s.state == orphaned || s.listing == hidden:
	case n.cfg.Runtime == Dockershim:
		n.disconnectDocker(i)
	case s.creating():
		n.cutOff(i)
	case s.state == stopping && n.cfg.Runtime.containerd():
		n.kill(i)
		n.calm(boxKey(i))
		s.rest()
	}
	s.caller = nobody
}

// disconnectDocker: dockershim lives in kubelet, so its plugin runs die with it; Docker keeps the
// pause container. A sandbox that was being removed, and whose pause is already gone, is forgotten
// although no DEL has succeeded (kubernetes #59741), unless Docker still lists a container of it, which cannot be killed.
func (n *Node) disconnectDocker(i int32) {
	s := &n.sandboxes[i]
	s.networkStopped = false // known only to the process that has died
	if !s.creating() && s.state != stopping && s.state != dead {
		return
	}
	n.kill(i)
	n.calm(boxKey(i))
	removing := s.pod == none || n.pods[s.pod].deleting
	switch {
	case s.state == wantNetns, s.hostNet && s.state == starting, removing && !s.mounted && !s.hostNet && s.processes != stuck:
		n.forget(i)
	default:
		s.become(dead)
		s.show()
	}
}

// kubeletUp syncs every pod once (HandlePodCleanups and the first sync).
func (n *Node) kubeletUp() {
	n.kubeletDown = false
	n.meets(n.kubeletBy, "kubelet has listed its pods again")
	n.kubeletBy = 0
	n.gcPhase = n.now // its periods begin anew
	for i := range n.pods {
		pi := int32(i)
		p := &n.pods[pi]
		switch {
		case p.uid == "":
		case p.deleting && !p.ended:
			n.terminate(pi)
		default:
			n.work(pi)
		}
	}
	n.wantGC()
}

// reboot: processes, namespaces and /run are gone; records and libcni's cache on /var/lib are kept,
// so the old sandboxes are found NOTREADY and stopped with an empty CNI_NETNS before the pods
// get new ones.
func (n *Node) reboot() {
	n.kubeletDown, n.runtimeDown, n.runtimeUpAt = true, true, n.now+n.cfg.BootTime
	n.calm(jobGC)
	n.wake(jobRuntime, n.now+n.cfg.BootTime)
	n.wake(jobKubelet, n.now+n.cfg.BootTime)
	n.gcQueue, n.gcBusy = n.gcQueue[:0], 0
	for i := n.first; i != none; {
		next := n.sandboxes[i].next
		n.lose(i)
		i = next
	}
	for i := range n.pods {
		pi := int32(i)
		p := &n.pods[pi]
		if p.uid == "" {
			continue
		}
		n.calm(podKey(pi))
		p.hang = false
		n.unready(pi)
		p.ended = p.deleting
	}
	if n.daemon != none {
		d := &n.sandboxes[n.daemon]
		n.setDaemon(d.ns, d.name, d.uid, d.attempt+1)
	}
}

// lose is one sandbox after a reboot.
func (n *Node) lose(i int32) {
	s := &n.sandboxes[i]
	if i == n.daemon {
		return
	}
	n.dropOp(i)
	n.calm(boxKey(i))
	recorded := s.visible() || s.mounted && n.cfg.Runtime <= Containerd17Guard && s.creating()
	s.mounted, s.processes, s.caller = false, noProcess, nobody
	switch {
	case !recorded:
		if s.state == orphaned {
			n.bury(s)
			n.unlink(i) // it was counted as lost when it was orphaned
			return
		}
		n.forget(i)
	case s.state == stopped:
	default:
		s.rest()
		s.show()
	}
	if n.cfg.Runtime == Dockershim {
		s.networkStopped = false // known only to the process that has died
	}
}
