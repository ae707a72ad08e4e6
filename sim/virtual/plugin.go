package virtual

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// addTimeout is the plugin's own patience with the daemon.
const addTimeout = 30 * time.Second

// outcome is how a plugin process ended.
type outcome struct {
	verb cri.Verb
	att  ipam.Attachment
	err  *cri.PluginError
	addr netip.Addr
}

// Act does what kubelet and the runtime want.
func (n *node) Act(a cri.Action) {
	w := n.w
	switch a.Kind {
	case cri.MakeNetns:
		w.Kubelet(&n.Node, &cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: n.kern.NewNamespace()})
	case cri.RemoveNetns:
		n.kern.CloseNamespace(a.Inode)
	case cri.HoldNetns:
		n.kern.Hold(a.Inode)
	case cri.ReleaseNetns:
		n.kern.Release(a.Inode)
	case cri.RunPlugin: // only a plugin's action outlives the step
		w.push(event{at: w.now + pluginExec, kind: evPlugin, node: n.No, num: uint64(a.Op), data: &a})
	case cri.KillPlugin:
		w.killPlugin(n, a.Op)
	}
}

func (n *node) WakeAt(at time.Duration) { n.w.push(event{at: at, kind: evKubelet, node: n.No}) }

// Stepped: the runtime's list may be another.
func (n *node) Stepped() { n.listed = nil }

// plugin is the plugin process: one local call.
func (w *World) plugin(n *node, e *event) {
	a := e.data.(*cri.Action)
	att := ipam.Attachment{Network: a.Network, ContainerID: a.ContainerID, IfName: a.IfName}
	pod := ipam.Pod{Namespace: a.Namespace, Name: a.Name, UID: a.UID}
	w.mix(uint64(a.Verb))
	w.PluginRuns(&n.Node, a)
	if n.core == nil {
		w.daemonDown(n, request{op: a.Op, verb: a.Verb, att: att}, pod)
		return
	}
	n.lastReq++
	r := request{req: n.lastReq, op: a.Op, verb: a.Verb, att: att, pod: pod}
	if a.Verb == cri.DEL {
		if row, ok := n.core.Find(att); ok {
			r.addr = row.Address
		}
	}
	n.run = append(n.run, r)
	deadline := w.now + min(addTimeout, a.Timeout)
	switch a.Verb {
	case cri.ADD:
		w.feed(n, ipam.Add{Req: r.req, Att: att, Pod: pod, Netns: a.Netns, Deadline: deadline, Version: n.Plugin})
	case cri.DEL:
		w.feed(n, ipam.Del{Req: r.req, Att: att, Pod: pod, Netns: a.Netns, Deadline: deadline, Version: n.Plugin})
	case cri.CHECK:
		w.feed(n, ipam.Check{Req: r.req, Att: att, Netns: a.Netns, Deadline: deadline})
	}
}

// daemonDown: no daemon listens on the socket. A DEL becomes a durable intent and succeeds (rule F).
func (w *World) daemonDown(n *node, r request, pod ipam.Pod) {
	o := outcome{verb: r.verb, att: r.att}
	switch {
	case r.verb == cri.DEL:
		w.files++
		n.intents = append(n.intents, intentFile{num: w.files, att: r.att, pod: pod})
		w.Auditor.DelResult(w.now, int(n.No), r.att, true, "")
	default:
		o.err = &cri.PluginError{Code: ipam.CodeTryAgain, Msg: "cni " + r.verb.String() + " " + r.att.String() + ": ipamd does not answer on its socket, try again"}
	}
	// Of no life: this process has had its answer, and a daemon's death breaks no connection of it.
	w.push(event{at: w.now + pluginReply, kind: evResult, node: n.No, num: uint64(r.op), data: &o})
}

// hangUp is a daemon that dies while a plugin waits for it: to the plugin that is a daemon that is down.
func (w *World) hangUp(n *node, r request) { w.daemonDown(n, r, r.pod) }

func (w *World) result(n *node, e *event) {
	o := e.data.(*outcome)
	w.mixAddr(o.addr)
	if o.err != nil {
		w.mix(uint64(o.err.Code))
	} else if o.verb == cri.ADD {
		n.fresh = append(n.fresh, o.addr)
	}
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.PluginDone, Op: cri.OpID(e.num), Err: o.err, Address: o.addr})
}

func (w *World) killPlugin(n *node, op cri.OpID) {
	for i := range n.run {
		if n.run[i].op == op {
			req := n.run[i].req
			n.run = append(n.run[:i], n.run[i+1:]...)
			w.push(event{at: w.now + time.Millisecond, kind: evInput, node: n.No, life: n.life, num: uint64(req), data: ipam.Gone{Req: req}})
			return
		}
	}
}

// reply takes the daemon's answer to the caller.
func (w *World) reply(n *node, r *ipam.Reply) {
	i := 0
	for i < len(n.run) && n.run[i].req != r.Req {
		i++
	}
	if i == len(n.run) {
		return // the process was killed
	}
	q := n.run[i]
	n.run[i] = n.run[len(n.run)-1]
	n.run = n.run[:len(n.run)-1]
	w.judgeReply(n, &q, r)
	w.refused(n, &q, r)
	w.Met(q.by, gcTold(r))
	if q.file != 0 {
		w.intentDone(n, q.file, r.Err == nil)
	}
	if q.op == 0 {
		return
	}
	if q.verb == cri.DEL && r.Err != nil && r.Err.Code == ipam.CodeTryAgain {
		w.daemonDown(n, q, q.pod) // or cannot do it now, which is the same to a DEL
		w.push(event{at: w.now + time.Second, kind: evStale, node: n.No, life: n.life, num: uint64(w.files)})
		return
	}
	o := &outcome{verb: q.verb, att: q.att, addr: r.Address}
	if r.Err != nil {
		o.err = &cri.PluginError{Code: r.Err.Code, Msg: r.Err.Text}
	}
	// Of this life: a daemon that dies before its answer has left breaks the connection.
	w.push(event{at: w.now + pluginReply, kind: evResult, node: n.No, life: n.life, num: uint64(q.op), data: o})
}

// gcTold is how a GC was answered.
func gcTold(r *ipam.Reply) string {
	if r.Err != nil {
		return "GC is refused: " + r.Err.Text
	}
	return "GC has succeeded"
}

// verbs are the daemon's names of what a runtime calls a plugin for.
var verbs = map[cri.Verb]ipam.Verb{cri.ADD: ipam.VerbAdd, cri.DEL: ipam.VerbDel, cri.CHECK: ipam.VerbCheck}

// judgeReply is the edge at which I2, I6 and I7 are judged.
func (w *World) judgeReply(n *node, q *request, r *ipam.Reply) {
	asked := judge.Asked{Verb: verbs[q.verb], Att: q.att, Address: q.addr, Intent: q.file != 0}
	used := func(a netip.Addr) string {
		if n.kern.Holders(a) > 1 {
			return "another namespace"
		}
		return ""
	}
	if !w.Auditor.Answered(w.now, int(n.No), &asked, r, used) {
		return
	}
	if on, of, ok := w.EC2.OwnerOf(r.Address); ok && of == n.Instance {
		w.touched(n, judge.Gives, on)
	}
}

// feedIntent gives the daemon a DEL that is on disk.
func (w *World) feedIntent(n *node, i int) {
	if n.core == nil || i >= len(n.intents) || n.intents[i].req != 0 {
		return
	}
	f := &n.intents[i]
	n.lastReq++
	f.req = n.lastReq
	q := request{req: f.req, verb: cri.DEL, att: f.att, file: f.num}
	if row, ok := n.core.Find(f.att); ok {
		q.addr = row.Address
	}
	n.run = append(n.run, q)
	w.feed(n, ipam.Del{Req: f.req, Att: f.att, Pod: f.pod, Deadline: w.now + addTimeout, Version: n.Plugin, Intent: true})
}

// intentDone removes the file once its DEL has succeeded, and tries again otherwise.
func (w *World) intentDone(n *node, num int, ok bool) {
	for i := range n.intents {
		if n.intents[i].num != num {
			continue
		}
		if ok {
			n.intents = append(n.intents[:i], n.intents[i+1:]...)
			return
		}
		n.intents[i].req = 0
		w.push(event{at: w.now + time.Second, kind: evStale, node: n.No, life: n.life, num: uint64(num)})
		return
	}
}

// stale feeds an intent again.
func (w *World) stale(n *node, e *event) {
	for i := range n.intents {
		if n.intents[i].num == int(e.num) {
			w.feedIntent(n, i)
			return
		}
	}
}

// holders counts the live namespaces that have an address that was just configured on a node: there, and on the node that had it before.
func (w *World) holders(n *node, a netip.Addr) judge.Holding {
	return w.Auditor.Holders(int(n.No), a, func(node int) int {
		if w.nodes[node].Gone {
			return 0
		}
		return w.nodes[node].kern.Holders(a)
	})
}

// runPlan applies the first ops of a plan and judges what that did (I1).
func (w *World) runPlan(n *node, a *ipam.Apply, ops int) (int, *dataplane.Error) {
	done, err := n.kern.Apply(a.Plan, 0, ops)
	n.Changed = true
	if a.Lane.Kind == ipam.ENILane {
		w.touched(n, judge.Configures, ec2.ENIID(a.Lane.ENI))
	}
	if a.Lane.Kind != ipam.PodLane {
		return done, err
	}
	w.Auditor.Ran(w.now, int(n.No), a.Lane.Att, a.Plan.Ops[:done], func(addr netip.Addr) judge.Holding {
		h := w.holders(n, addr)
		if n.kern.HasFlow(addr) && h.Count <= 1 { // of a pod that has the address no more; of two that have it I1 speaks
			w.Auditor.Inherited(w.now, int(n.No), a.Lane.Att, addr)
		}
		n.kern.OpenFlow(addr) // what a pod does first
		return h
	})
	return done, err
}
