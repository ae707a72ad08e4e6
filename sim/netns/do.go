package netns

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/vpc"
	"github.com/enilab/enilab/sim/witness"
)

// Can says what a real kernel cannot do on demand.
func (w *World) Can(l *scn.Line) error { return Can(l) }

// Can says what the world cannot do, whichever scenario asks.
func Can(l *scn.Line) error {
	at, ok := l.Stmt.(*scn.At)
	if !ok || at.Action == nil {
		return nil
	}
	return sim.Cannot(worldName, at.Action.Verb)
}

// worldName is what guards and the table of skips call this world.
const worldName = "netns"

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) (id int) {
	id = w.acts.Begin(actions.Describe(a))
	if w.broken != nil {
		return id
	}
	w.log("scenario: %s", actions.Describe(a))
	switch a.Subject.Kind {
	case scn.Node:
		w.doNode(w.nodes[a.Subject.Node], a, id)
	case scn.AllNodes:
		for _, n := range w.nodes[1:] {
			one := *a
			one.Subject = scn.Subject{Kind: scn.Node, Node: int(n.no)}
			part := w.acts.Part(id, actions.Describe(&one))
			if n.gone {
				w.acts.Void(part, "the instance is terminated")
				continue
			}
			w.doNode(n, &one, part)
		}
	case scn.Pod:
		w.doPod(a, id)
	case scn.Kube:
		k := actions.API{Model: w.kube, Now: w.now(), Nodes: w.living()}
		s, _ := k.Do(a)
		w.took(id, s)
	case scn.EC2, scn.IMDS:
		c := actions.Cloud{Model: w.cloud, Cluster: w.cluster.Name, Now: w.now(), Instance: func(i int) ec2.InstanceID { return w.nodes[i].inst }, Address: actions.AddressIn(w.kube)}
		if p, ok := w.kube.Find(a.Text("pod")); ok {
			w.acts.Means(id, a.Text("pod"), p.Name)
		}
		w.took(id, c.Do(a, id))
	}
	w.pump()
	return id
}

// Strike is what has become of an action by now.
func (w *World) Strike(id int) sim.Strike { return w.acts.Of(id) }

// took enters how an action was taken, and tells what it did.
func (w *World) took(id int, s sim.Strike) { w.did(w.acts.Took(id, s)) }

// met enters that something met an armed action, and tells what that did.
func (w *World) met(id int, text string) {
	if id != 0 {
		w.did(w.acts.Met(id, text))
	}
}

// allMet is met for several actions, which have nothing to meet any more.
func (w *World) allMet(ids *[]int, text string) {
	for _, id := range *ids {
		w.met(id, text)
	}
	*ids = nil
}

func (w *World) did(line string) {
	if line != "" {
		w.story.Add(w.Now(), timeline.Scenario, line)
	}
}

// nodeOf names an instance's node.
func (w *World) nodeOf(i ec2.InstanceID) string {
	if n := w.byInst[i]; n != nil {
		return n.name()
	}
	return "nobody"
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

// nodeVerbs are the verbs of nodes; Can says which of them a real kernel cannot do.
var nodeVerbs = map[string]func(w *World, n *instance, a *sim.Act, id int) sim.Strike{
	"socket":       (*World).doSocket,
	"restart":      (*World).doRestart,
	"upgrade":      (*World).doUpgrade,
	"kill":         (*World).doKill,
	"kill-at":      (*World).doKillAt,
	"hold":         (*World).doHold,
	"unhold":       (*World).doUnhold,
	"terminate":    (*World).doTerminate,
	"reboot":       (*World).doReboot,
	"gc":           (*World).doGC,
	"fail-dels":    (*World).doFailDELs,
	"lose-records": (*World).doLoseRecords,
	"flush-rules":  (*World).doFlushRules,
	"flush-routes": (*World).doFlushRoutes,
	"flush-nat":    (*World).doFlushNAT,
	"restart-kubelet": func(w *World, n *instance, _ *sim.Act, id int) sim.Strike {
		return w.restartBox(n, cri.RestartKubelet, id)
	},
	"restart-runtime": func(w *World, n *instance, _ *sim.Act, id int) sim.Strike {
		return w.restartBox(n, cri.RestartRuntime, id)
	},
}

func (w *World) doNode(n *instance, a *sim.Act, id int) {
	do := nodeVerbs[a.Verb]
	switch {
	case n.gone:
		w.took(id, sim.Miss("the instance is terminated"))
	case do == nil:
		w.took(id, sim.Miss("this world does not know the verb"))
	default:
		n.dirty = true
		w.took(id, do(w, n, a, id))
	}
}

func (w *World) doSocket(n *instance, a *sim.Act, id int) sim.Strike {
	to := socket(slices.Index(socketNames, a.Text("cri")))
	if n.socket == to {
		return sim.Miss("the runtime socket is %s already", socketNames[to])
	}
	w.fail(w.setSocket(n, to))
	n.socketBy = id
	return sim.Wait("the daemon did not ask for the runtime's list")
}

// heard is an input of a daemon's, which tells what it met.
func (w *World) heard(l *witness.Life, in ipam.Input) {
	n := w.nodes[l.Number()]
	switch in := in.(type) {
	case ipam.Start:
		ids, text := n.starters.Met(&in)
		w.allMet(&ids, text)
	case ipam.Seen:
		if in.What != ipam.LookRuntime || in.ID == 0 || n.socketBy == 0 {
			return
		}
		w.met(n.socketBy, actions.Listed(&in))
		n.socketBy = 0
	}
}

// dies says that an action has struck when the daemon's process has ended.
func (w *World) dies(n *instance, id int) sim.Strike {
	n.enders = append(n.enders, id)
	w.kill(n)
	return sim.Wait("the daemon's process did not end")
}

// lives says whether a daemon runs or is about to.
func (n *instance) lives() bool { return (n.life != nil || n.starting) && !n.dying }

func (w *World) doRestart(n *instance, a *sim.Act, id int) sim.Strike {
	for _, k := range a.Keys {
		_ = n.set.Put(k.Key, k.Value) // checked by Bind
	}
	if n.life == nil || n.dying {
		return sim.Miss("no daemon runs")
	}
	w.term(n)
	return n.starters.Any(id)
}

func (w *World) doUpgrade(n *instance, a *sim.Act, id int) sim.Strike {
	to, part := a.Int("to"), a.Text("part")
	if (part == "plugin" || n.version == to) && (part == "daemon" || n.plugin == to) {
		return sim.Miss("version %d runs already", to)
	}
	if part != "daemon" {
		n.plugin = to
		w.fail(n.box.WriteFile(node.ConfDir+"/10-aws.conflist", n.conflist()))
	}
	if part == "plugin" {
		n.pluginBy = id
		return sim.Wait("the new plugin was not run")
	}
	n.version = to
	w.term(n)
	return n.starters.Any(id)
}

func (w *World) doKill(n *instance, _ *sim.Act, id int) sim.Strike {
	if !n.lives() {
		return sim.Miss("no daemon runs")
	}
	return w.dies(n, id)
}

func (w *World) doKillAt(n *instance, a *sim.Act, id int) sim.Strike {
	act, _ := ec2.ParseAction(a.Text("call"))
	w.armed = append(w.armed, deathTrap{n, act, a.Text("when") == "after", id})
	return sim.Wait("the daemon made no %s", a.Text("call"))
}

// doHold also strikes where it keeps a daemon from starting.
func (w *World) doHold(n *instance, _ *sim.Act, id int) sim.Strike {
	if n.down {
		return sim.Miss("the daemon is kept down already")
	}
	n.down = true
	if !n.lives() {
		n.heldBy = id
		return sim.Wait("no daemon ran or was to start")
	}
	return w.dies(n, id)
}

func (w *World) doUnhold(n *instance, _ *sim.Act, id int) sim.Strike {
	if !n.down {
		return sim.Miss("nobody keeps the daemon down")
	}
	n.down, n.heldBy = false, 0
	w.at(w.now(), func() { w.startDaemon(n) })
	return n.starters.Any(id)
}

func (w *World) doTerminate(n *instance, _ *sim.Act, id int) sim.Strike {
	n.endedBy = id
	w.cloud.Terminate(w.now(), n.inst)
	return sim.Wait("EC2 did not terminate the instance")
}

func (w *World) doReboot(n *instance, _ *sim.Act, id int) sim.Strike {
	w.reboot(n)
	return n.starters.Any(id)
}

func (w *World) doFailDELs(n *instance, a *sim.Act, id int) sim.Strike {
	n.cri.Number(id)
	n.cri.FailDELs(a.Int("times"), a.Duration("after"))
	return sim.Wait("no DEL was run")
}

func (w *World) doLoseRecords(n *instance, _ *sim.Act, id int) sim.Strike {
	had, err := n.box.LoseRecords()
	if w.fail(err); !had {
		return sim.Miss("there are no records")
	}
	return n.starters.Bare(id)
}

// restartBox restarts kubelet or the runtime.
func (w *World) restartBox(n *instance, what cri.InputKind, id int) sim.Strike {
	n.cri.Number(id)
	w.kubelet(n, &cri.Input{Kind: what})
	return sim.Wait("it did not come up again")
}

// The verbs of somebody else who changes the node's kernel. What was changed is told by the kernel.

func (w *World) doFlushRules(n *instance, _ *sim.Act, _ int) sim.Strike {
	count, err := n.box.FlushRules()
	w.fail(err)
	n.mirror.FlushRules()
	n.stir()
	return actions.Flushed(count, "rules")
}

func (w *World) doFlushRoutes(n *instance, a *sim.Act, _ int) sim.Strike {
	count, err := n.box.FlushRoutes(a.Int("table"))
	w.fail(err)
	n.mirror.RemoveRoutes(a.Int("table"))
	n.stir()
	return actions.Flushed(count, "routes")
}

func (w *World) doFlushNAT(n *instance, _ *sim.Act, _ int) sim.Strike {
	had, err := n.box.FlushNAT()
	w.fail(err)
	n.mirror.FlushNAT()
	n.stir()
	return actions.FlushedNAT(had)
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
	n.rebooting, n.booted = false, w.now()
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
		w.fail(vpc.SetMTU(n.box.Netns(), l.Name, bootMTU))
	}
}

// doGC calls GC as a runtime would, with all attachments, with none, or without the key.
func (w *World) doGC(n *instance, a *sim.Act, id int) sim.Strike {
	if n.life == nil {
		return sim.Miss("no daemon runs")
	}
	var list []node.Attachment
	valid := a.Text("valid")
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
			switch {
			case code == 0:
				w.met(id, "GC has succeeded")
			case code > 0:
				w.met(id, "GC is refused: "+text)
			}
		})
	}()
	return sim.Wait("the plugin did not answer")
}

// podVerbs are the verbs of pods that are about its node.
var podVerbs = map[string]func(w *World, n *instance, p *kube.Pod, a *sim.Act) sim.Strike{
	"hang":          (*World).doHang,
	"unhang":        (*World).doUnhang,
	"hide":          (*World).doHide,
	"lose-gateway":  (*World).doLoseGateway,
	"change-mac":    (*World).doChangeMAC,
	"lose-alias":    (*World).doLoseAlias,
	"add-addresses": (*World).doAddAddresses,
	"replay-del": func(w *World, n *instance, p *kube.Pod, a *sim.Act) sim.Strike {
		return n.history.ReplayDEL(n.cri, w.now(), p.Name, p.UID, a)
	},
}

func (w *World) doPod(a *sim.Act, id int) {
	p, ok := w.kube.Find(a.Subject.Pod)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) || w.nodes[p.Node].gone {
		w.took(id, actions.NoPod(a.Subject.Pod, ok))
		return
	}
	n := w.nodes[p.Node]
	n.dirty = true
	n.cri.Number(id)
	w.acts.Means(id, a.Subject.Pod, p.Name)
	k := actions.API{Model: w.kube, Now: w.now()}
	if s, ours := k.Do(a); ours {
		w.took(id, s)
	} else if do := podVerbs[a.Verb]; do != nil {
		w.took(id, do(w, n, &p, a))
	}
	w.armKubelet(n)
}

func (w *World) doHang(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Hang(w.now(), p.UID) {
		return sim.Miss("a process of pod %s is in D state already, or its node does not know it", p.Name)
	}
	return sim.Wait("nobody tried to stop the pod")
}

func (w *World) doUnhang(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Unhang(w.now(), p.UID) {
		return sim.Miss("no process of pod %s is in D state", p.Name)
	}
	return sim.Hit("the process ends")
}

func (w *World) doHide(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Hide(w.now(), p.UID) {
		return sim.Miss("the runtime lists no sandbox of pod %s", p.Name)
	}
	return sim.Wait("nobody asked for the runtime's list")
}

func (w *World) doLoseGateway(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	inode := n.namespaceOf(p.UID)
	if inode == 0 {
		return actions.LostGateway(p.Name, false)
	}
	had, err := n.box.LoseGateway(inode)
	w.fail(err)
	n.mirror.LoseNeighbour(n.mirror.inodes[inode])
	return actions.LostGateway(p.Name, had)
}

func (w *World) doChangeMAC(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	veth := n.veth(p)
	if veth == "" {
		return actions.ChangedMAC(p.Name, false)
	}
	changed, err := n.box.ChangeMAC(veth, strangeMAC)
	w.fail(err)
	n.mirror.SetLinkMAC(veth, strangeMAC)
	n.stir()
	return actions.ChangedMAC(p.Name, changed)
}

func (w *World) doLoseAlias(n *instance, p *kube.Pod, _ *sim.Act) sim.Strike {
	veth := n.veth(p)
	if veth == "" {
		return actions.LostAlias(p.Name, false)
	}
	had, err := n.box.LoseAlias(veth)
	w.fail(err)
	n.mirror.SetLinkAlias(veth, "")
	n.stir()
	return actions.LostAlias(p.Name, had)
}

func (w *World) doAddAddresses(n *instance, p *kube.Pod, a *sim.Act) sim.Strike {
	inode := n.namespaceOf(p.UID)
	if inode == 0 {
		return actions.AddedAddresses(p.Name, 0)
	}
	more := actions.More(w.cloud, n.inst, p.Address, a.Int("count"))
	count, err := n.box.AddAddresses(inode, more)
	w.fail(err)
	n.mirror.AddAddresses(n.mirror.inodes[inode], more)
	n.stir()
	return actions.AddedAddresses(p.Name, count)
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
	w.audit.FaultsEnded(w.now())
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
		n.cri.EndHangs(w.now())
		if n.down {
			n.down = false
			w.at(w.now(), func() { w.startDaemon(n) })
		}
		w.armKubelet(n)
	}
	w.pump()
}
