package cri

import (
	"strings"
	"time"
)

// replaySlot marks operations of ReplayDEL, whose answers are not awaited.
const replaySlot = 1<<slotBits - 1

// run starts the plugin for a sandbox and waits at most timeout for its answer.
func (n *Node) run(i int32, verb Verb, timeout time.Duration) {
	s := &n.sandboxes[i]
	s.verb = verb
	if verb == DEL && n.failDELs > 0 {
		// DEL runs a chain backwards; the plugin that fails is reached before ours, which never hears of it.
		n.failDELs--
		n.meets(n.failNumber, "a plugin before ours fails the DEL of "+s.name)
		s.op = 0
		n.wake(boxKey(i), n.now+min(n.failDelay, timeout))
		return
	}
	s.op = OpID(n.serial(i))
	n.count.Ops++
	var netns uint64
	if s.mounted {
		netns = s.inode
	}
	switch verb {
	case ADD:
		s.advance(addRun)
		n.count.ADDs++
	case DEL:
		s.advance(delRun)
		n.count.DELs++
	case CHECK:
		n.count.CHECKs++
	}
	uid := s.uid
	if n.cfg.Runtime == Dockershim {
		uid = ""
	}
	n.emit(Action{
		Kind: RunPlugin, Verb: verb, Op: s.op, Sandbox: s.id, Netns: netns, Timeout: timeout,
		ContainerID: s.cid, IfName: "eth0", Network: n.cfg.Network, Namespace: s.ns, Name: s.name, UID: uid,
	})
	n.wake(boxKey(i), n.now+timeout)
}

// runUnheard starts a DEL that ends when it ends.
func (n *Node) runUnheard(i int32) {
	s := &n.sandboxes[i]
	if n.failDELs > 0 {
		n.failDELs--
		n.meets(n.failNumber, "a plugin before ours fails the DEL of "+s.name)
		return
	}
	s.unheard = OpID(n.serial(i))
	s.advance(delRun)
	n.count.DELs++
	n.emit(Action{
		Kind: RunPlugin, Verb: DEL, Op: s.unheard, Sandbox: s.id, Netns: s.inode, Timeout: n.cfg.CleanupTimeout,
		ContainerID: s.cid, IfName: "eth0", Network: n.cfg.Network, Namespace: s.ns, Name: s.name, UID: s.uid,
	})
}

// dropOp stops waiting for the plugin without killing it.
func (n *Node) dropOp(i int32) {
	if s := &n.sandboxes[i]; s.op != 0 {
		s.op = 0
		n.count.Ops--
	}
}

// kill ends the plugin process, as exec.CommandContext does; what it asked the daemon for goes on.
func (n *Node) kill(i int32) {
	s := &n.sandboxes[i]
	if s.op == 0 {
		return
	}
	n.emit(Action{Kind: KillPlugin, Op: s.op, Sandbox: s.id, ContainerID: s.cid})
	n.dropOp(i)
}

// pluginDone brings an answer to the sandbox that waits for it.
func (n *Node) pluginDone(op OpID, err *PluginError, in *Input) {
	i := int32(op & (1<<slotBits - 1))
	if op == 0 || int(i) >= len(n.sandboxes) {
		return
	}
	s := &n.sandboxes[i]
	switch op {
	case s.op:
	case s.unheard:
		if s.unheard = 0; err == nil {
			s.advance(delDone)
		}
		return
	default:
		return
	}
	n.dropOp(i)
	n.calm(boxKey(i))
	switch s.verb {
	case ADD:
		n.added(i, err == nil, in)
	case CHECK:
		n.checked(i, err == nil)
	case DEL:
		if err == nil {
			s.advance(delDone)
			n.deleted(i, true)
			return
		}
		n.deleted(i, n.swallows(s, err))
	}
}

// swallows says whether go-cni takes a failed DEL for success (cni.go Remove, go-cni 3dbce1d): any
// text with "not found", and "no such file or directory" when CNI_NETNS is empty.
func (n *Node) swallows(s *sandbox, err *PluginError) bool {
	if !n.cfg.Runtime.containerd() {
		return false
	}
	return strings.Contains(err.Msg, "not found") ||
		!s.mounted && strings.Contains(err.Msg, "no such file or directory")
}

// deleted is the end of a DEL; ok when the runtime takes it for success.
func (n *Node) deleted(i int32, ok bool) {
	s := &n.sandboxes[i]
	if !ok {
		n.count.FailedDELs++
	}
	if s.state == undoing {
		n.undone(i, ok)
		return
	}
	who := s.caller
	n.settle(i, who, n.torn(i, ok))
}
