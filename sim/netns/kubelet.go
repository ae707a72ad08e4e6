package netns

import (
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
)

// kubelet is what a node runs for kubelet and the container runtime, whose model decides: namespaces and plugins.
type kubelet struct {
	n         *instance
	running   int                     // plugin processes
	plugins   map[cri.OpID]cri.Action // those that run, but GC's
	killed    map[cri.OpID]bool       // those whose end is not awaited
	felled    map[cri.OpID]bool       // those that the machine's end met
	hunt      hunt                    // for plugins
	forgotten []string                // sandboxes that the runtime has forgotten without a DEL that succeeded
}

func newKubelet(n *instance) kubelet {
	return kubelet{n: n, plugins: map[cri.OpID]cri.Action{}, killed: map[cri.OpID]bool{}, felled: map[cri.OpID]bool{}}
}

// Act does what kubelet and the runtime want.
func (k *kubelet) Act(a cri.Action) {
	n, w := k.n, k.n.w
	if w.broken != nil {
		return
	}
	switch a.Kind {
	case cri.MakeNetns:
		k.makeNetns(&a)
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
		k.runPlugin(a)
	case cri.KillPlugin:
		k.killed[a.Op] = true
		w.fail(n.box.KillPlugin(uint64(a.Op)))
	case cri.SandboxGone:
		if a.Lost {
			w.log("%s: the runtime has forgotten %.8s, which still owes a DEL", n.Name(), a.ContainerID)
			k.forgotten = append(k.forgotten, a.ContainerID)
		}
	}
}

func (k *kubelet) WakeAt(at time.Duration) { k.n.w.at(at, func() { k.n.w.Wake(&k.n.Node) }) }

// Stepped: what the runtime lists is asked for anew each time.
func (k *kubelet) Stepped() {}

func (k *kubelet) makeNetns(a *cri.Action) {
	n, w := k.n, k.n.w
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
func (k *kubelet) runPlugin(a cri.Action) {
	n, w := k.n, k.n.w
	w.PluginRuns(&n.Node, &a)
	if a.Verb == cri.DEL && w.parts.WithoutBooks {
		w.Auditor.Removes(w.now(), int(n.No), attachment(&a))
	}
	k.plugins[a.Op] = a
	k.running++
	err := n.box.RunPlugin(uint64(a.Op), node.Run{Verb: a.Verb, ContainerID: a.ContainerID, IfName: a.IfName, Netns: a.Netns,
		Namespace: a.Namespace, Name: a.Name, UID: a.UID})
	if err != nil {
		k.pluginDone(&node.Event{Op: uint64(a.Op), Code: 999, Text: err.Error()})
		return
	}
	k.stalk(a.Op)
}

func (k *kubelet) pluginDone(e *node.Event) {
	n, w := k.n, k.n.w
	op := cri.OpID(e.Op)
	a, known := k.plugins[op]
	if !known {
		return
	}
	delete(k.plugins, op)
	k.running--
	n.stirs()
	shot := k.hunt.caught(e) || k.felled[op] && e.Code != 0
	delete(k.felled, op)
	if k.killed[op] {
		delete(k.killed, op)
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

// hunt SIGKILLs plugins.
type hunt struct {
	percent int           // of the runs
	within  time.Duration // of their start
	shot    map[cri.OpID]bool
	killed  int
}

// stalk waits for a plugin's hour, if it has one.
func (k *kubelet) stalk(op cri.OpID) {
	n, w, h := k.n, k.n.w, &k.hunt
	if h.percent == 0 || int(w.Random()%100) >= h.percent {
		return
	}
	w.after(time.Duration(w.Random()%uint64(h.within)), func() {
		if _, runs := k.plugins[op]; runs && !n.Gone {
			h.shot[op] = true
			w.fail(n.box.KillPlugin(uint64(op)))
		}
	})
}

// caught says whether a plugin's end was ours, and counts those that were killed in time.
func (h *hunt) caught(e *node.Event) bool {
	op := cri.OpID(e.Op)
	if !h.shot[op] {
		return false
	}
	delete(h.shot, op)
	if strings.HasPrefix(e.Exit, "signal: killed") {
		h.killed++
	}
	return e.Code != 0
}

// fell lets the machine's end meet the runs that there are.
func (k *kubelet) fell() {
	for op := range k.plugins {
		k.felled[op] = true
	}
}

// GC runs the plugin beside the loop.
func (k *kubelet) GC(valid []ipam.Attachment, absent bool, id int) {
	var list []node.Attachment
	for _, a := range valid {
		list = append(list, node.Attachment{ContainerID: a.ContainerID, IfName: a.IfName})
	}
	n, w := k.n, k.n.w
	k.running++
	go func() {
		code, text := n.box.GC(list, absent)
		w.mail.Post(func() {
			k.running--
			w.log("%s: GC: code %d %s", n.Name(), code, text)
			switch {
			case code == 0:
				w.Met(id, "GC has succeeded")
			case code > 0:
				w.Met(id, "GC is refused: "+text)
			}
		})
	}()
}

// Exchanged lets something else listen on the runtime's socket. Without books it is met when the list is asked for there (criBackend); where no
// runtime answers nobody hears of it, and that the socket is gone is all that can be said.
func (k *kubelet) Exchanged() {
	n, w := k.n, k.n.w
	w.fail(n.listenCRI())
	if w.parts.WithoutBooks && (n.Socket == models.Absent || n.Socket == models.Unimplemented) {
		w.SocketMet(&n.Node, "the runtime socket is "+n.Socket.String())
	}
}

// Installed writes the network configuration that says which plugin it is.
func (k *kubelet) Installed() { k.n.w.fail(k.n.w.keeper.installed(k.n)) }
