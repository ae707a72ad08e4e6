package cri

import (
	"slices"
	"time"
)

// graveLimit bounds how many forgotten sandboxes ReplayDEL can still name: more than a node's pods.
const graveLimit = 256

// grave is what a stale DEL of a forgotten sandbox says.
type grave struct{ cid, ns, name, uid string }

type replay struct {
	at     time.Duration
	number int32
	grave
}

// later queues an action of a fault for the next Step, which Next asks for at once.
func (n *Node) later(a Action) { n.queued = append(n.queued, a) }

// advance notes the instant of a fault without stepping.
func (n *Node) advance(now time.Duration) { n.now = max(n.now, now) }

// Hang puts a container of the pod into D state: it cannot be killed, so containerd's Stop fails
// before DEL, and its process holds the namespace (HoldNetns). A pod that does not run yet hangs
// as soon as it does. False, and nothing is changed, when the pod is unknown or hangs.
func (n *Node) Hang(now time.Duration, uid string) bool {
	n.advance(now)
	pi, ok := n.byUID[uid]
	if !ok || n.pods[pi].hang {
		return false
	}
	n.pods[pi].hang, n.pods[pi].hungBy = true, n.number
	for i := n.pods[pi].newest; i != none; i = n.sandboxes[i].older {
		if n.sandboxes[i].processes == noProcess {
			continue
		}
		if a, ok := n.hold(i); ok {
			n.later(a)
		}
	}
	return true
}

// hold marks the sandbox; the action is for the world, if there is a namespace to hold.
func (n *Node) hold(i int32) (Action, bool) {
	s := &n.sandboxes[i]
	if s.processes == stuck {
		return Action{}, false
	}
	s.processes = stuck
	if s.pod != none {
		s.hungBy = n.pods[s.pod].hungBy
	}
	return Action{Kind: HoldNetns, Inode: s.inode, UID: s.uid, ContainerID: s.cid, Sandbox: s.id}, s.inode != 0
}

// Unhang ends what Hang began: the process dies, or runs again if it was not to be killed. False when nothing of the
// pod hung.
func (n *Node) Unhang(now time.Duration, uid string) (hung bool) {
	n.advance(now)
	for i := n.first; i != none; i = n.sandboxes[i].next {
		s := &n.sandboxes[i]
		if s.processes != stuck || s.uid != uid {
			continue
		}
		s.processes, hung = containers, true
		if !s.mounted { // a Stop has killed it, and let its namespace go
			s.processes = noProcess
		}
		if s.inode != 0 {
			n.later(Action{Kind: ReleaseNetns, Inode: s.inode, UID: s.uid, ContainerID: s.cid, Sandbox: s.id})
		}
	}
	pi, ok := n.byUID[uid]
	if !ok {
		n.wantGC()
		return hung
	}
	p := &n.pods[pi]
	hung = hung || p.hang
	p.hang = false
	if p.killing && !p.ended && !n.kubeletDown {
		n.wake(podKey(pi), n.now)
	}
	return hung
}

// EndHangs is Unhang of everything that hangs, and of pods that were to hang as soon as they run.
func (n *Node) EndHangs(now time.Duration) {
	for i := n.first; i != none; i = n.sandboxes[i].next {
		if n.sandboxes[i].processes == stuck {
			n.Unhang(now, n.sandboxes[i].uid)
		}
	}
	for i := range n.pods {
		if p := &n.pods[i]; p.hang && p.uid != "" {
			n.Unhang(now, p.uid)
		}
	}
}

// Hide makes a listed sandbox, named by container ID or by its pod's UID, invisible to the runtime
// while its processes live: its record did not load at a restart (restart.go, ten seconds each).
// Kubelet sees a pod without a sandbox and makes another. False when no listed sandbox has that name.
func (n *Node) Hide(now time.Duration, id string) bool {
	n.advance(now)
	found := false
	for i := n.first; i != none; i = n.sandboxes[i].next {
		s := &n.sandboxes[i]
		if i == n.daemon || !s.visible() || s.creating() || s.uid != id && s.cid != id {
			continue
		}
		found = true
		n.hide(i)
	}
	return found
}

func (n *Node) hide(i int32) {
	s := &n.sandboxes[i]
	n.dropOp(i)
	n.calm(boxKey(i))
	if s.state == stopping {
		s.become(dead)
	}
	s.listing, s.hiddenBy, s.caller = hidden, n.number, nobody
	if n.gcBusy == s.id {
		n.gcBusy = 0
		n.wantGC()
	}
	if s.pod == none {
		return
	}
	p := &n.pods[s.pod]
	if p.ready && !n.containersRun(s.pod) {
		p.ready = false // kubelet sees no container, though one runs
		n.count.Ready--
	}
	if !n.kubeletDown {
		n.wake(podKey(s.pod), n.relist(n.now))
	}
}

// FailDELs makes the next DELs fail after delay, in a plugin that the chain reaches before ours:
// ours is not run, and the runtime tries again. Zero or fewer times ends the fault.
func (n *Node) FailDELs(times int, delay time.Duration) {
	n.failDELs, n.failDelay, n.failNumber = max(times, 0), max(delay, 0), n.number
}

// BusyNetns makes the next removals of a namespace fail with EBUSY after the mount was detached.
func (n *Node) BusyNetns(times int) { n.busyNetns = max(times, 0) }

// CrashAt kills the runtime the next time it reaches p, once. NoCrash disarms.
func (n *Node) CrashAt(p CrashPoint) { n.crash = p }

// ReplayDEL makes a stale DEL of an old sandbox arrive after a while, with an empty CNI_NETNS.
// False when the node remembers no such sandbox. The DEL is not sent if the sandbox is READY by then: no
// runtime does that. Its answer is not read.
func (n *Node) ReplayDEL(now time.Duration, containerID string, after time.Duration) bool {
	n.advance(now)
	g, ok := n.remember(containerID)
	if !ok {
		return false
	}
	r := replay{at: n.now + max(after, 0), number: n.number, grave: g}
	at := len(n.replays)
	for at > 0 && n.replays[at-1].at > r.at {
		at--
	}
	n.replays = slices.Insert(n.replays, at, r)
	n.wake(jobReplay, n.replays[0].at)
	return true
}

func (n *Node) remember(containerID string) (grave, bool) {
	for i := n.first; i != none; i = n.sandboxes[i].next {
		if s := &n.sandboxes[i]; s.cid == containerID && !s.hostNet {
			return grave{s.cid, s.ns, s.name, s.uid}, true
		}
	}
	for i := len(n.buried) - 1; i >= 0; i-- {
		if n.buried[i].cid == containerID {
			return n.buried[i], true
		}
	}
	return grave{}, false
}

// bury remembers a sandbox that is being forgotten.
func (n *Node) bury(s *sandbox) {
	if s.hostNet {
		return
	}
	if len(n.buried) == graveLimit { // a new array: clones may read the old one
		n.buried = append(make([]grave, 0, graveLimit), n.buried[graveLimit/2:]...)
	}
	n.buried = append(n.buried, grave{s.cid, s.ns, s.name, s.uid})
}

func (n *Node) replayDue() {
	for len(n.replays) > 0 && n.replays[0].at <= n.now {
		g, by := n.replays[0].grave, n.replays[0].number
		n.replays = slices.Delete(n.replays, 0, 1)
		if n.isReady(g.cid) {
			continue
		}
		n.part(g.cid)
		uid := g.uid
		if n.cfg.Runtime == Dockershim {
			uid = ""
		}
		n.count.DELs++
		n.meets(by, "a stale DEL of "+g.name+" arrives")
		n.emit(Action{
			Kind: RunPlugin, Verb: DEL, Op: OpID(n.serial(replaySlot)), Timeout: n.cfg.StopTimeout,
			ContainerID: g.cid, IfName: "eth0", Network: n.cfg.Network, Namespace: g.ns, Name: g.name, UID: uid,
		})
	}
	if len(n.replays) > 0 {
		n.wake(jobReplay, n.replays[0].at)
	}
}

// part says that a DEL of the sandbox is run.
func (n *Node) part(containerID string) {
	for i := n.first; i != none; i = n.sandboxes[i].next {
		if s := &n.sandboxes[i]; s.cid == containerID {
			s.advance(delRun)
		}
	}
}

func (n *Node) isReady(containerID string) bool {
	for i := n.first; i != none; i = n.sandboxes[i].next {
		if s := &n.sandboxes[i]; s.cid == containerID {
			return s.state == ready
		}
	}
	return false
}

// SetDaemonSandbox makes a new sandbox for the daemon's own host-network pod, as a roll of its
// DaemonSet does, and gives its container ID. The one before stays in the list, NOTREADY, until
// evictSandboxes removes it.
func (n *Node) SetDaemonSandbox(now time.Duration, namespace, name, uid string) (containerID string) {
	n.advance(now)
	return n.setDaemon(namespace, name, uid, 0)
}

func (n *Node) setDaemon(namespace, name, uid string, attempt int32) string {
	if n.daemon != none {
		old := &n.sandboxes[n.daemon]
		old.become(stopped)
		old.processes, old.wasStopped = noProcess, true
		n.wantGC()
	}
	i := n.newSandbox(namespace, name, uid)
	s := &n.sandboxes[i]
	s.become(ready)
	s.hostNet, s.processes, s.attempt = true, containers, attempt
	s.show()
	n.daemon = i
	return s.cid
}
