package virtual

import (
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/acts"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/story"
)

// deathTrap kills a daemon when it makes an EC2 request.
type deathTrap struct {
	node   int32
	action ec2.Action
	after  bool
}

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) {
	w.mixString(a.Verb)
	if !w.cfg.Quiet {
		w.story.Add(w.Now(), story.Scenario, acts.Describe(a))
	}
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
		acts.Kube(w.kube, w.now, a, w.living())
	case scn.EC2:
		acts.EC2(w.cloud, w.now, a, func(i int) ec2.InstanceID { return w.nodes[i].inst }, acts.AddressIn(w.kube))
	case scn.IMDS:
		acts.IMDS(w.cloud, w.now, a, func(i int) ec2.InstanceID { return w.nodes[i].inst })
	}
	w.pump()
}

func (w *World) doNode(n *node, a *sim.Act) {
	if n.gone {
		return
	}
	n.dirty = true
	switch a.Verb {
	case "socket":
		for i, name := range socketNames {
			if name == a.Text("cri") {
				n.socket = socket(i)
			}
		}
	case "restart":
		for _, k := range a.Keys {
			_ = n.set.Put(k.Key, k.Value) // checked by Bind
		}
		w.restart(n)
	case "upgrade":
		if a.Text("part") != "daemon" {
			n.plugin = a.Int("to")
		}
		if a.Text("part") != "plugin" {
			n.version = a.Int("to")
			w.restart(n)
		}
	case "kill":
		w.kill(n)
	case "kill-at":
		act, _ := ec2.ParseAction(a.Text("call"))
		w.armed = append(w.armed, deathTrap{n.no, act, a.Text("when") == "after"})
	case "hold":
		n.held = true
		w.kill(n)
	case "unhold":
		n.held = false
		w.push(event{at: w.now, kind: evStart, node: n.no})
	case "terminate":
		w.cloud.Terminate(w.now, n.inst)
	case "reboot":
		w.reboot(n)
	case "gc":
		w.gc(n, a.Text("valid"))
	case "fail-dels":
		n.cri.FailDELs(a.Int("times"), a.Duration("after"))
	case "lose-records":
		n.disk[ipam.RunStore] = disk{}
	case "flush-rules":
		n.kern.FlushRules()
		w.hint(n)
	case "flush-routes":
		n.kern.RemoveRoutes(a.Int("table"))
		w.hint(n)
	case "flush-nat":
		n.kern.FlushNAT()
		w.hint(n)
	case "interrupt-dumps":
		n.cutOff = a.Int("times")
		n.kern.InterruptDumps(n.cutOff)
	case "restart-kubelet":
		w.kubelet(n, &cri.Input{Kind: cri.RestartKubelet})
	case "restart-runtime":
		w.kubelet(n, &cri.Input{Kind: cri.RestartRuntime})
	}
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
	n.booted = false
	n.disk[ipam.RunStore] = disk{}
	n.intents = nil
	n.kern.Reboot()
	w.cloud.Reboot(w.now, n.inst)
	w.kubelet(n, &cri.Input{Kind: cri.Reboot})
	w.push(event{at: w.now + bootTime + restartPause, kind: evStart, node: n.no})
}

// gc calls GC as a runtime would, with all attachments, with none, or without the key.
func (w *World) gc(n *node, valid string) {
	if n.core == nil {
		return
	}
	n.lastReq++
	in := ipam.GC{Req: n.lastReq, Network: "aws-cni", Absent: valid == "missing", Deadline: w.now + addTimeout}
	if valid == "all" {
		for t := range n.cri.Sandboxes() {
			in.Valid = append(in.Valid, ipam.Attachment{ContainerID: t.ID, IfName: "eth0"})
		}
	}
	n.run = append(n.run, request{req: n.lastReq})
	w.feed(n, in)
}

func (w *World) doPod(a *sim.Act) {
	p, ok := w.kube.Find(a.Subject.Pod)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) {
		return
	}
	n := w.nodes[p.Node]
	n.dirty = true
	switch a.Verb {
	case "delete":
		w.kube.DeletePod(w.now, a.Subject.Pod, 0)
	case "force-delete":
		w.kube.ForceDelete(w.now, a.Subject.Pod)
	case "hang":
		n.cri.Hang(w.now, p.UID)
	case "unhang":
		n.cri.Unhang(w.now, p.UID)
	case "hide":
		n.cri.Hide(w.now, p.UID)
	case "lose-gateway":
		if inode, ok := n.kern.InUse(p.Address); ok {
			n.kern.LoseNeighbour(inode)
		}
	case "change-mac":
		if veth := n.veth(&p); veth != "" {
			n.kern.SetLinkMAC(veth, "02:de:ad:be:ef:01")
			w.hint(n)
		}
	case "lose-alias":
		n.kern.SetLinkAlias(n.veth(&p), "")
	case "replay-del":
		n.history.ReplayDEL(n.cri, w.now, p.Name, p.UID, a)
	}
	w.armKubelet(n)
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
	w.cloud.ClearFaults(w.now)
	w.cloud.SetLag(ec2.Lag{})
	w.armed = nil
	for _, n := range w.nodes[1:] {
		if n.gone {
			continue
		}
		n.socket = socketRight
		n.cri.FailDELs(0, 0)
		for t := range n.cri.Sandboxes() {
			if t.Held {
				n.cri.Unhang(w.now, t.UID)
			}
		}
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
		if t.node == n.no && t.action == a && t.after == after {
			w.armed = append(w.armed[:i:i], w.armed[i+1:]...)
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
		return acts.MeasureKube(w.kube, metric)
	case scn.EC2:
		return acts.MeasureEC2(w.cloud, w.base, metric)
	}
	return 0, false
}

func (w *World) measureNode(n *node, metric string) (int64, bool) {
	switch metric {
	case "pods.ready":
		return int64(n.cri.Ready()), true
	case "serving":
		if n.core == nil {
			return 0, true
		}
	}
	if v, ok := acts.MeasureCalls(w.cloud, n.inst, metric); ok {
		return v, true
	}
	if n.core == nil {
		return 0, false
	}
	n.core.View(&w.view)
	return acts.MeasureView(&w.view, metric)
}

func (w *World) measurePod(name, metric string) (int64, bool) {
	p, ok := w.kube.Find(name)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) {
		return 0, true // neither ready nor reachable
	}
	n := w.nodes[p.Node]
	if metric == "ready" {
		return acts.Flag(n.cri.PodReady(p.UID)), true
	}
	id, _ := n.cri.SandboxOf(p.UID)
	for t := range n.cri.Sandboxes() {
		if t.ID == id && t.Address.IsValid() {
			return acts.Flag(w.fault(n, t.Address, t.Netns) == ""), true
		}
	}
	return 0, true
}

// Can says what this world cannot do: nothing that the catalogue has.
func (w *World) Can(*scn.Line) error { return nil }

// Steady has nothing to wait for: nothing moves while virtual time stands still.
func (w *World) Steady() {}

// Settle judges what has to hold once settled.
func (w *World) Settle() {
	w.judge()
	w.settle()
}

// Reached says whether the core came through a coverage mark since t=0.
func (w *World) Reached(mark string) bool {
	for m := range w.marks {
		if ipam.Mark(m).String() == mark {
			return w.marks[m] > 0
		}
	}
	return false
}

// Close has nothing to remove: all of it was memory.
func (w *World) Close() error { return nil }

var _ sim.World = (*World)(nil)
