package lab

import (
	"errors"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/acts"
	"github.com/enilab/enilab/sim/lab/node"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/story"
)

// Can says what a real kernel cannot do on demand.
func (w *World) Can(l *scn.Line) error { return Can(l) }

// Can says what the world cannot do, whichever scenario asks.
func Can(l *scn.Line) error {
	at, ok := l.Stmt.(*scn.At)
	if ok && at.Action != nil && at.Action.Verb == "interrupt-dumps" {
		return errors.New("a real kernel interrupts a dump when it likes (NLM_F_DUMP_INTR), not when it is asked to")
	}
	return nil
}

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) {
	if w.broken != nil {
		return
	}
	w.story.Add(w.Now(), story.Scenario, acts.Describe(a))
	w.log("scenario: %s", acts.Describe(a))
	switch a.Subject.Kind {
	case scn.Node:
		w.doNode(w.nodes[a.Subject.Node], a)
	case scn.AllNodes:
		for _, n := range w.nodes[1:] {
			w.doNode(n, a)
		}
	case scn.Pod:
		w.doPod(a)
	case scn.Kube:
		acts.Kube(w.kube, w.now(), a, w.living())
	case scn.EC2:
		acts.EC2(w.cloud, w.now(), a, func(i int) ec2.InstanceID { return w.nodes[i].inst }, acts.AddressIn(w.kube))
	case scn.IMDS:
		acts.IMDS(w.cloud, w.now(), a, func(i int) ec2.InstanceID { return w.nodes[i].inst })
	}
	w.pump()
}

// living are the nodes that pods may be placed on.
func (w *World) living() []int {
	var out []int
	for _, n := range w.nodes[1:] {
		if !n.gone {
			out = append(out, int(n.no))
		}
	}
	return out
}

func (w *World) doNode(n *instance, a *sim.Act) {
	if n.gone {
		return
	}
	n.dirty = true
	switch a.Verb {
	case "socket":
		w.fail(w.setSocket(n, socket(slices.Index(socketNames, a.Text("cri")))))
	case "restart":
		for _, k := range a.Keys {
			_ = n.set.Put(k.Key, k.Value) // checked by Bind
		}
		w.term(n)
	case "upgrade":
		w.upgrade(n, a.Int("to"), a.Text("part"))
	case "kill":
		w.kill(n)
	case "kill-at":
		act, _ := ec2.ParseAction(a.Text("call"))
		w.armed = append(w.armed, deathTrap{n, act, a.Text("when") == "after"})
	case "hold":
		n.down = true
		w.kill(n)
	case "unhold":
		n.down = false
		w.at(w.now(), func() { w.startDaemon(n) })
	case "terminate":
		w.cloud.Terminate(w.now(), n.inst)
	case "reboot":
		w.reboot(n)
	case "gc":
		w.gc(n, a.Text("valid"))
	case "fail-dels":
		n.cri.FailDELs(a.Int("times"), a.Duration("after"))
	case "lose-records":
		w.fail(n.box.LoseRecords())
	case "restart-kubelet":
		w.kubelet(n, &cri.Input{Kind: cri.RestartKubelet})
	case "restart-runtime":
		w.kubelet(n, &cri.Input{Kind: cri.RestartRuntime})
	default:
		w.stranger(n, a)
	}
}

// stranger is somebody else who changes the node's kernel.
func (w *World) stranger(n *instance, a *sim.Act) {
	switch a.Verb {
	case "flush-rules":
		w.fail(n.box.FlushRules())
		n.mirror.FlushRules()
	case "flush-routes":
		w.fail(n.box.FlushRoutes(a.Int("table")))
		n.mirror.RemoveRoutes(a.Int("table"))
	case "flush-nat":
		w.fail(n.box.FlushNAT())
		n.mirror.FlushNAT()
	}
	n.stir()
}

func (w *World) upgrade(n *instance, to int, part string) {
	if part != "daemon" {
		n.plugin = to
		w.fail(n.box.WriteFile(node.ConfDir+"/10-aws.conflist", n.conflist()))
	}
	if part != "plugin" {
		n.version = to
		w.term(n)
	}
}

// bootTime is how long the machine is down; kubelet and runtime come back by themselves after that.
const bootTime = 30 * time.Second

func (w *World) reboot(n *instance) {
	n.rebooting = true
	if n.life == nil && !n.starting {
		w.rebooted(n)
		return
	}
	w.kill(n)
}

// rebooted: the daemon is dead, and so is everything else.
func (w *World) rebooted(n *instance) {
	n.rebooting = false
	w.fail(n.box.Reboot())
	n.mirror.reboot()
	w.enumerate(n)
	w.fail(w.configure(n))
	w.fail(n.addAddress(imdsAddr))
	w.cloud.Reboot(w.now(), n.inst)
	w.kubelet(n, &cri.Input{Kind: cri.Reboot})
	n.stir()
	w.after(bootTime+n.pause, func() { w.startDaemon(n) })
}

// enumerate names the ENIs' links as a boot does: in their order, without the gaps that detached ones have left.
func (w *World) enumerate(n *instance) {
	links := n.mirror.Observe().Links
	for _, l := range links { // out of each other's way
		if old := n.links[l.MAC]; old != "" && old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, "boot-"+l.Name))
			n.links[l.MAC] = "boot-" + l.Name
		}
	}
	for _, l := range links {
		old := n.links[l.MAC]
		if old == "" {
			continue
		}
		if old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, l.Name))
			n.links[l.MAC] = l.Name
		}
		w.fail(setMTU(n.box.Netns(), l.Name, bootMTU))
	}
}

// gc calls GC as a runtime would, with all attachments, with none, or without the key.
func (w *World) gc(n *instance, valid string) {
	if n.life == nil {
		return
	}
	var list []node.Attachment
	if valid == "all" {
		for t := range n.cri.Sandboxes() {
			list = append(list, node.Attachment{ContainerID: t.ID, IfName: "eth0"})
		}
	}
	n.running++
	go func() {
		code, text := n.box.GC(list, valid == "missing")
		w.post(func() {
			n.running--
			w.log("%s: GC: code %d %s", n.name(), code, text)
		})
	}()
}

func (w *World) doPod(a *sim.Act) {
	p, ok := w.kube.Find(a.Subject.Pod)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) || w.nodes[p.Node].gone {
		return
	}
	n := w.nodes[p.Node]
	n.dirty = true
	switch a.Verb {
	case "delete":
		w.kube.DeletePod(w.now(), a.Subject.Pod, 0)
	case "force-delete":
		w.kube.ForceDelete(w.now(), a.Subject.Pod)
	case "hang":
		n.cri.Hang(w.now(), p.UID)
	case "unhang":
		n.cri.Unhang(w.now(), p.UID)
	case "hide":
		n.cri.Hide(w.now(), p.UID)
	case "lose-gateway":
		if inode := n.namespaceOf(p.UID); inode != 0 {
			w.fail(n.box.LoseGateway(inode))
			n.mirror.LoseNeighbour(n.mirror.inodes[inode])
		}
	case "change-mac":
		if veth := n.veth(&p); veth != "" {
			w.fail(n.box.ChangeMAC(veth, strangeMAC))
			n.mirror.SetLinkMAC(veth, strangeMAC)
			n.stir()
		}
	case "lose-alias":
		if veth := n.veth(&p); veth != "" {
			w.fail(n.box.LoseAlias(veth))
			n.mirror.SetLinkAlias(veth, "")
			n.stir()
		}
	case "replay-del":
		n.history.ReplayDEL(n.cri, w.now(), p.Name, p.UID, a)
	}
	w.armKubelet(n)
}

// strangeMAC is what udev gives a link.
const strangeMAC = "02:de:ad:be:ef:01"

// namespaceOf is the inode of the pod's newest sandbox, 0 if it has none.
func (n *instance) namespaceOf(uid string) uint64 {
	id, _ := n.cri.SandboxOf(uid)
	for t := range n.cri.Sandboxes() {
		if t.ID == id {
			return t.Netns
		}
	}
	return 0
}

// veth is the host end of a pod's link, "" if there is none.
func (n *instance) veth(p *kube.Pod) string {
	id, ok := n.cri.SandboxOf(p.UID)
	if !ok {
		return ""
	}
	return n.mirror.VethOf(id)
}

// EndFaults ends what actions broke.
func (w *World) EndFaults() {
	w.cloud.ClearFaults(w.now())
	w.cloud.SetLag(ec2.Lag{})
	w.armed = nil
	for _, n := range w.nodes[1:] {
		if n.gone {
			continue
		}
		if n.socket != socketRight {
			w.fail(w.setSocket(n, socketRight))
		}
		n.cri.FailDELs(0, 0)
		for t := range n.cri.Sandboxes() {
			if t.Held {
				n.cri.Unhang(w.now(), t.UID)
			}
		}
		if n.down {
			n.down = false
			w.at(w.now(), func() { w.startDaemon(n) })
		}
		w.armKubelet(n)
	}
	w.pump()
}
