package netns

import (
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/netns/node"
)

// Act does what kubelet and the runtime want.
func (n *instance) Act(a cri.Action) {
	w := n.w
	if w.broken != nil {
		return
	}
	switch a.Kind {
	case cri.MakeNetns:
		w.makeNetns(n, &a)
	case cri.RemoveNetns:
		n.mirror.closeNamespace(a.Inode)
		w.fail(n.box.RemoveNetns(a.Inode))
		n.stir()
	case cri.HoldNetns:
		n.mirror.hold(a.Inode)
		w.fail(n.box.Hold(a.Inode))
	case cri.ReleaseNetns:
		n.mirror.release(a.Inode)
		w.fail(n.box.Release(a.Inode))
		n.stir()
	case cri.RunPlugin:
		w.runPlugin(n, a)
	case cri.KillPlugin:
		n.killed[a.Op] = true
		w.fail(n.box.KillPlugin(uint64(a.Op)))
	case cri.SandboxGone:
		if a.Lost {
			w.log("%s: the runtime has forgotten %.8s, which still owes a DEL", n.Name(), a.ContainerID)
			n.lost = append(n.lost, a.ContainerID)
		}
	}
}

func (n *instance) WakeAt(at time.Duration) { n.w.at(at, func() { n.w.Wake(&n.Node) }) }

// Stepped: what the runtime lists is asked for anew each time.
func (n *instance) Stepped() {}

func (w *World) makeNetns(n *instance, a *cri.Action) {
	inode, err := n.box.MakeNetns(netnsName(a.Sandbox, a.ContainerID))
	if err != nil {
		w.fail(err)
		return
	}
	n.mirror.newNamespace(inode)
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: inode})
}

func netnsName(s cri.SandboxID, containerID string) string {
	return "cni-" + strconv.FormatUint(uint64(s), 10) + "-" + containerID[:8]
}

// runPlugin starts the plugin's process. Deadlines are the model's: it says when a plugin is killed.
func (w *World) runPlugin(n *instance, a cri.Action) {
	w.PluginRuns(&n.Node, &a)
	if a.Verb == cri.DEL && w.parts.WithoutBooks {
		w.Auditor.Removes(w.now(), int(n.No), attachment(&a))
	}
	n.verbs[a.Op] = a
	n.running++
	err := n.box.RunPlugin(uint64(a.Op), node.Run{Verb: a.Verb, ContainerID: a.ContainerID, IfName: a.IfName, Netns: a.Netns,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID})
	if err != nil {
		w.pluginDone(n, &node.Event{Op: uint64(a.Op), Code: 999, Text: err.Error()})
		return
	}
	w.stalk(n, a.Op)
}

func (w *World) pluginDone(n *instance, e *node.Event) {
	op := cri.OpID(e.Op)
	a, known := n.verbs[op]
	if !known {
		return
	}
	delete(n.verbs, op)
	n.running--
	n.stirs()
	shot := n.caught(e) || n.felled[op] && e.Code != 0
	delete(n.felled, op)
	if n.killed[op] {
		delete(n.killed, op)
		return
	}
	att := attachment(&a)
	var failed *cri.PluginError
	if e.Code != 0 {
		failed = &cri.PluginError{Code: e.Code, Msg: e.Text}
		w.log("%s: %v %s: code %d: %s", n.Name(), a.Verb, att, e.Code, e.Text)
	}
	// Who was killed has given no answer; whether the runtime repeats it is the runtime's business. Nor has who was never run, for want of a network
	// configuration: a system may write its own once it serves.
	if a.Verb == cri.DEL && !shot && (e.Exit != "" || e.Code == 0) {
		w.Auditor.DelResult(w.now(), int(n.No), att, e.Code == 0, e.Text)
	}
	if a.Verb == cri.ADD && !shot {
		n.debut.added(w.now(), e)
	}
	switch {
	case e.Code == 0:
		w.costs.ran(w.now(), a.Verb, att, e.Took)
	case a.Verb == cri.ADD && !shot && e.Exit != "":
		w.costs.failed++
	}
	if a.Verb == cri.ADD && e.Code == 0 && w.parts.WithoutBooks {
		w.witness.Added(n.No, att, e.Address)
	}
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.PluginDone, Op: op, Err: failed, Address: e.Address})
}

func attachment(a *cri.Action) ipam.Attachment {
	return ipam.Attachment{Network: a.Network, ContainerID: a.ContainerID, IfName: a.IfName}
}
