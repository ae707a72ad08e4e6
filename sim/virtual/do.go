package virtual

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
)

// deathTrap kills a daemon when it makes an EC2 request.
type deathTrap struct {
	node   int32
	action ec2.Action
	after  bool
	id     int // of the action that set it
}

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) (id int) {
	w.mixString(a.Verb)
	id = w.acts.Begin(actions.Describe(a))
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
		w.took(id, w.api(a))
	case scn.EC2, scn.IMDS:
		c := actions.Cloud{Model: w.cloud, Cluster: w.cfg.Cluster, Now: w.now, Instance: func(i int) ec2.InstanceID { return w.nodes[i].inst }, Address: actions.AddressIn(w.kube)}
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

func (w *World) did(line string) {
	if line != "" && !w.cfg.Quiet {
		w.story.Add(w.Now(), timeline.Scenario, line)
	}
}

func (w *World) api(a *sim.Act) sim.Strike {
	k := actions.API{Model: w.kube, Now: w.now, Nodes: w.living()}
	s, _ := k.Do(a)
	return s
}

// nodeVerbs are the verbs of nodes.
var nodeVerbs = map[string]func(w *World, n *node, a *sim.Act, id int) sim.Strike{
	"socket":          (*World).doSocket,
	"restart":         (*World).doRestart,
	"upgrade":         (*World).doUpgrade,
	"kill":            func(w *World, n *node, _ *sim.Act, _ int) sim.Strike { return w.doKill(n) },
	"kill-at":         (*World).doKillAt,
	"hold":            (*World).doHold,
	"unhold":          (*World).doUnhold,
	"terminate":       (*World).doTerminate,
	"reboot":          (*World).doReboot,
	"gc":              (*World).doGC,
	"fail-dels":       (*World).doFailDELs,
	"lose-records":    (*World).doLoseRecords,
	"flush-rules":     (*World).doFlushRules,
	"flush-routes":    (*World).doFlushRoutes,
	"flush-nat":       (*World).doFlushNAT,
	"interrupt-dumps": (*World).doInterruptDumps,
	"restart-kubelet": func(w *World, n *node, _ *sim.Act, id int) sim.Strike { return w.restartBox(n, cri.RestartKubelet, id) },
	"restart-runtime": func(w *World, n *node, _ *sim.Act, id int) sim.Strike { return w.restartBox(n, cri.RestartRuntime, id) },
}

func (w *World) doNode(n *node, a *sim.Act, id int) {
	do := nodeVerbs[a.Verb]
	switch {
	case n.gone:
		w.took(id, sim.Miss("the instance is terminated"))
	case do == nil:
		w.took(id, sim.Miss("world sim does not know the verb"))
	default:
		n.dirty = true
		w.took(id, do(w, n, a, id))
	}
}

func (w *World) doSocket(n *node, a *sim.Act, id int) sim.Strike {
	to := socket(slices.Index(socketNames, a.Text("cri")))
	if n.socket == to {
		return sim.Miss("the runtime socket is %s already", socketNames[to])
	}
	n.socket, n.socketBy = to, id
	return sim.Wait("the daemon did not ask for the runtime's list")
}

func (w *World) doRestart(n *node, a *sim.Act, id int) sim.Strike {
	for _, k := range a.Keys {
		_ = n.set.Put(k.Key, k.Value) // checked by Bind
	}
	if n.core == nil {
		return sim.Miss("no daemon runs")
	}
	w.restart(n)
	return n.starters.Any(id)
}

func (w *World) doUpgrade(n *node, a *sim.Act, id int) sim.Strike {
	to, part := a.Int("to"), a.Text("part")
	if (part == "plugin" || n.version == to) && (part == "daemon" || n.plugin == to) {
		return sim.Miss("version %d runs already", to)
	}
	if part != "daemon" {
		n.plugin = to
	}
	if part == "plugin" {
		n.pluginBy = id
		return sim.Wait("the new plugin was not run")
	}
	n.version = to
	w.restart(n)
	return n.starters.Any(id)
}

// doKill is told by the process that ends.
func (w *World) doKill(n *node) sim.Strike {
	if n.core == nil {
		return sim.Miss("no daemon runs")
	}
	w.kill(n)
	return sim.Hit("the daemon dies")
}

func (w *World) doKillAt(n *node, a *sim.Act, id int) sim.Strike {
	act, _ := ec2.ParseAction(a.Text("call"))
	w.armed = append(w.armed, deathTrap{n.no, act, a.Text("when") == "after", id})
	return sim.Wait("the daemon made no %s", a.Text("call"))
}

// doHold also strikes where it keeps a daemon from starting.
func (w *World) doHold(n *node, _ *sim.Act, id int) sim.Strike {
	if n.held {
		return sim.Miss("the daemon is kept down already")
	}
	n.held = true
	if n.core == nil {
		n.heldBy = id
		return sim.Wait("no daemon ran or was to start")
	}
	w.kill(n)
	return sim.Hit("the daemon dies and is not started again")
}

func (w *World) doUnhold(n *node, _ *sim.Act, id int) sim.Strike {
	if !n.held {
		return sim.Miss("nobody keeps the daemon down")
	}
	n.held, n.heldBy = false, 0
	w.push(event{at: w.now, kind: evStart, node: n.no})
	return n.starters.Any(id)
}

func (w *World) doTerminate(n *node, _ *sim.Act, id int) sim.Strike {
	n.endedBy = id
	w.cloud.Terminate(w.now, n.inst)
	return sim.Wait("EC2 did not terminate the instance")
}

func (w *World) doReboot(n *node, _ *sim.Act, id int) sim.Strike {
	w.reboot(n)
	return n.starters.Any(id)
}

func (w *World) doGC(n *node, a *sim.Act, id int) sim.Strike {
	if n.core == nil {
		return sim.Miss("no daemon runs")
	}
	w.gc(n, a.Text("valid"), id)
	return sim.Wait("the daemon did not answer")
}

func (w *World) doFailDELs(n *node, a *sim.Act, id int) sim.Strike {
	n.cri.Number(id)
	n.cri.FailDELs(a.Int("times"), a.Duration("after"))
	return sim.Wait("no DEL was run")
}

func (w *World) doLoseRecords(n *node, _ *sim.Act, id int) sim.Strike {
	d := &n.disk[ipam.RunStore]
	if len(d.rows) == 0 || d.lost {
		return sim.Miss("there are no records")
	}
	d.lost = true
	return n.starters.Bare(id)
}

func (w *World) doFlushRules(n *node, _ *sim.Act, _ int) sim.Strike {
	return w.flushed(n, n.kern.FlushRules(), "rules")
}

func (w *World) doFlushRoutes(n *node, a *sim.Act, _ int) sim.Strike {
	return w.flushed(n, n.kern.RemoveRoutes(a.Int("table")), "routes")
}

func (w *World) flushed(n *node, count int, what string) sim.Strike {
	w.hint(n)
	return actions.Flushed(count, what)
}

func (w *World) doFlushNAT(n *node, _ *sim.Act, _ int) sim.Strike {
	had := n.kern.FlushNAT()
	w.hint(n)
	return actions.FlushedNAT(had)
}

func (w *World) doInterruptDumps(n *node, a *sim.Act, id int) sim.Strike {
	n.cutOff, n.cutBy = a.Int("times"), id
	n.kern.InterruptDumps(n.cutOff)
	return sim.Wait("the daemon made no dump")
}

// restartBox restarts kubelet or the runtime.
func (w *World) restartBox(n *node, what cri.InputKind, id int) sim.Strike {
	n.cri.Number(id)
	w.kubelet(n, &cri.Input{Kind: what})
	return sim.Wait("it did not come up again")
}

// restart is a rolled DaemonSet: SIGTERM, what is under way ends or is answered, then a new daemon at once.
func (w *World) restart(n *node) {
	if n.core == nil {
		return
	}
	w.feed(n, ipam.Stop{})
	held := n.held
	n.held = true
	w.crash(n, func(*event) fate { return lands })
	n.held = held
	w.push(event{at: w.now + restartPause, kind: evStart, node: n.no})
}

// bootTime is how long the machine is down; kubelet and runtime come back by themselves after that.
const bootTime = 30 * time.Second

func (w *World) reboot(n *node) {
	held := n.held
	n.held = true
	w.crash(n, func(*event) fate { return vanishes })
	n.held = held
	n.booted, n.bootedAt = false, w.now
	n.disk[ipam.RunStore] = disk{}
	n.intents = nil
	n.kern.Reboot()
	w.cloud.Reboot(w.now, n.inst)
	w.kubelet(n, &cri.Input{Kind: cri.Reboot})
	w.push(event{at: w.now + bootTime + restartPause, kind: evStart, node: n.no})
}

// gc calls GC as a runtime would, with all attachments, with none, or without the key.
func (w *World) gc(n *node, valid string, id int) {
	n.lastReq++
	in := ipam.GC{Req: n.lastReq, Network: "aws-cni", Absent: valid == "missing", Deadline: w.now + addTimeout}
	if valid == "all" {
		for t := range n.cri.Sandboxes() {
			in.Valid = append(in.Valid, ipam.Attachment{ContainerID: t.ID, IfName: "eth0"})
		}
	}
	n.run = append(n.run, request{req: n.lastReq, by: id})
	w.feed(n, in)
}

// podVerbs are the verbs of pods that are about its node.
var podVerbs = map[string]func(w *World, n *node, p *kube.Pod, a *sim.Act) sim.Strike{
	"hang":          (*World).doHang,
	"unhang":        (*World).doUnhang,
	"hide":          (*World).doHide,
	"lose-gateway":  (*World).doLoseGateway,
	"change-mac":    (*World).doChangeMAC,
	"lose-alias":    (*World).doLoseAlias,
	"add-addresses": (*World).doAddAddresses,
	"replay-del": func(w *World, n *node, p *kube.Pod, a *sim.Act) sim.Strike {
		return n.history.ReplayDEL(n.cri, w.now, p.Name, p.UID, a)
	},
}

func (w *World) doPod(a *sim.Act, id int) {
	p, ok := w.kube.Find(a.Subject.Pod)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) {
		w.took(id, actions.NoPod(a.Subject.Pod, ok))
		return
	}
	n := w.nodes[p.Node]
	n.dirty = true
	n.cri.Number(id)
	w.acts.Means(id, a.Subject.Pod, p.Name)
	k := actions.API{Model: w.kube, Now: w.now}
	if s, ours := k.Do(a); ours {
		w.took(id, s)
	} else if do := podVerbs[a.Verb]; do != nil {
		w.took(id, do(w, n, &p, a))
	}
	w.armKubelet(n)
}

func (w *World) doHang(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Hang(w.now, p.UID) {
		return sim.Miss("a process of pod %s is in D state already, or its node does not know it", p.Name)
	}
	return sim.Wait("nobody tried to stop the pod")
}

func (w *World) doUnhang(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Unhang(w.now, p.UID) {
		return sim.Miss("no process of pod %s is in D state", p.Name)
	}
	return sim.Hit("the process ends")
}

func (w *World) doHide(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	if !n.cri.Hide(w.now, p.UID) {
		return sim.Miss("the runtime lists no sandbox of pod %s", p.Name)
	}
	return sim.Wait("nobody asked for the runtime's list")
}

func (w *World) doLoseGateway(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	inode, ok := n.kern.InUse(p.Address)
	return actions.LostGateway(p.Name, ok && n.kern.LoseNeighbour(inode))
}

func (w *World) doChangeMAC(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	veth := n.veth(p)
	if veth == "" || !n.kern.SetLinkMAC(veth, strangeMAC) {
		return actions.ChangedMAC(p.Name, false)
	}
	w.hint(n)
	return actions.ChangedMAC(p.Name, true)
}

// strangeMAC is what udev gives a link.
const strangeMAC = "02:de:ad:be:ef:01"

func (w *World) doLoseAlias(n *node, p *kube.Pod, _ *sim.Act) sim.Strike {
	veth := n.veth(p)
	return actions.LostAlias(p.Name, veth != "" && n.kern.SetLinkAlias(veth, ""))
}

func (w *World) doAddAddresses(n *node, p *kube.Pod, a *sim.Act) sim.Strike {
	id, _ := n.cri.SandboxOf(p.UID)
	count := 0
	for t := range n.cri.Sandboxes() {
		if t.ID == id {
			count = n.kern.AddAddresses(t.Netns, actions.More(w.cloud, n.inst, t.Address, a.Int("count")))
		}
	}
	return actions.AddedAddresses(p.Name, count)
}

// veth is the host end of a pod's link, "" if there is none.
func (n *node) veth(p *kube.Pod) string {
	id, ok := n.cri.SandboxOf(p.UID)
	if !ok {
		return ""
	}
	return n.kern.VethOf(id)
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

// EndFaults ends what actions broke.
func (w *World) EndFaults() {
	w.audit.FaultsEnded(w.now)
	w.cloud.ClearFaults(w.now)
	w.cloud.SetLag(ec2.Lag{})
	w.armed = nil
	for _, n := range w.nodes[1:] {
		if n.gone {
			continue
		}
		n.socket = socketRight
		n.cri.FailDELs(0, 0)
		n.cri.EndHangs(w.now)
		if n.held {
			n.held = false
			w.push(event{at: w.now, kind: evStart, node: n.no})
		}
		w.armKubelet(n)
	}
	w.pump()
}

// trapped springs a trap that waits for this request.
func (w *World) trapped(n *node, a ec2.Action, after bool) bool {
	for i, t := range w.armed {
		if t.node == n.no && (t.action == a || t.action == ec2.AnyAction) && t.after == after {
			w.armed = append(w.armed[:i:i], w.armed[i+1:]...)
			w.met(t.id, actions.Sprung(a, after))
			w.kill(n)
			return true
		}
	}
	return false
}

// Measure reads a metric, now.
func (w *World) Measure(s scn.Subject, metric string) (int64, bool) {
	switch s.Kind {
	case scn.Node:
		return w.measureNode(w.nodes[s.Node], metric)
	case scn.AllNodes:
		var sum int64
		for _, n := range w.nodes[1:] {
			if n.gone {
				continue
			}
			v, ok := w.measureNode(n, metric)
			if !ok {
				return 0, false
			}
			sum += v
		}
		return sum, true
	case scn.Pod:
		return w.measurePod(s.Pod, metric)
	case scn.Kube:
		return actions.MeasureKube(w.kube, metric)
	case scn.EC2:
		return actions.MeasureEC2(w.cloud, w.base, metric)
	}
	return 0, false
}

func (w *World) measureNode(n *node, metric string) (int64, bool) {
	switch metric {
	case "pods.ready":
		return int64(n.cri.Ready()), true
	case "pods.reachable":
		return w.answering(n), true
	case "serving":
		if n.core == nil {
			return 0, true
		}
	}
	if v, ok := actions.MeasureCalls(w.cloud, n.inst, metric); ok {
		return v, true
	}
	if v, ok := actions.MeasureDaemon(w.audit, int(n.no), metric); ok {
		return v, true
	}
	if n.core == nil {
		return 0, false
	}
	n.core.View(&w.view)
	return actions.MeasureView(&w.view, metric)
}

// answering counts the pods that run and answer.
func (w *World) answering(n *node) (count int64) {
	for t := range n.cri.Sandboxes() {
		if t.Running && t.Address.IsValid() && w.fault(n, t.Address, t.Netns) == "" {
			count++
		}
	}
	return count
}

func (w *World) measurePod(name, metric string) (int64, bool) {
	p, ok := w.kube.Find(name)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) {
		return 0, true // neither ready nor reachable
	}
	n := w.nodes[p.Node]
	if metric == "ready" {
		return actions.Flag(n.cri.PodReady(p.UID)), true
	}
	id, _ := n.cri.SandboxOf(p.UID)
	for t := range n.cri.Sandboxes() {
		if t.ID == id && t.Address.IsValid() {
			return actions.Flag(w.fault(n, t.Address, t.Netns) == ""), true
		}
	}
	return 0, true
}

// Can says what this world cannot do: nothing that the catalogue has.
func (w *World) Can(*scn.Line) error { return nil }

// Steady has nothing to wait for: nothing moves while virtual time stands still.
func (w *World) Steady() {}

// Settle judges what has to hold once settled.
func (w *World) Settle() (underWay []string) {
	w.judge()
	return w.settle()
}

// Reached says whether the core came through a coverage point since t=0.
func (w *World) Reached(mark string) bool {
	for m := range w.marks {
		if ipam.Point(m).String() == mark {
			return w.marks[m] > 0
		}
	}
	return false
}

// Close has nothing to remove: all of it was memory.
func (w *World) Close() error { return nil }

var _ sim.World = (*World)(nil)
