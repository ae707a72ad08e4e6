package virtual

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
)

// addTimeout is the plugin's own patience with the daemon.
const addTimeout = 30 * time.Second

// runtime is a node's models.Runtime: the plugin processes, the DELs that found no daemon, and the list of sandboxes.
type runtime struct {
	n       *node
	waiting []request // plugin processes that talk to the daemon
	intents []intent  // DELs on disk
	lastReq ipam.Req
	listed  []ipam.Sandbox // the last list; nil when something may have changed
}

// request is a plugin process that awaits the daemon's reply.
type request struct {
	req  ipam.Req
	op   cri.OpID // 0: an intent, a GC or a stale DEL
	by   int      // GC: the action that asked
	verb cri.Verb
	att  ipam.Attachment
	pod  ipam.Pod
	addr netip.Addr // DEL: the address the attachment had
	file int        // intent: its number, from 1
}

// intent is a DEL that could not reach the daemon, in a file.
type intent struct {
	num int
	att ipam.Attachment
	pod ipam.Pod
	req ipam.Req // under way in this life
}

// outcome is how a plugin process ended.
type outcome struct {
	verb cri.Verb
	att  ipam.Attachment
	err  *cri.PluginError
	addr netip.Addr
}

func (r *runtime) fork() {
	r.waiting, r.intents = slices.Clone(r.waiting), slices.Clone(r.intents)
}

// Exchanged and Installed: socket and plugin are looked up when they are used.
func (r *runtime) Exchanged() {}
func (r *runtime) Installed() {}

// Act does what kubelet and the runtime want.
func (r *runtime) Act(a cri.Action) {
	n := r.n
	switch a.Kind {
	case cri.MakeNetns:
		n.w.Kubelet(&n.Node, &cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: n.kern.NewNamespace()})
	case cri.RemoveNetns:
		n.kern.CloseNamespace(a.Inode)
	case cri.HoldNetns:
		n.kern.Hold(a.Inode)
	case cri.ReleaseNetns:
		n.kern.Release(a.Inode)
	case cri.RunPlugin: // only a plugin's action outlives the step
		n.in(pluginExec, evPlugin, uint64(a.Op), &a)
	case cri.KillPlugin:
		r.killPlugin(a.Op)
	}
}

func (r *runtime) WakeAt(at time.Duration) { r.n.in(at-r.n.w.now, evKubelet, 0, nil) }

// Stepped: the runtime's list may be another.
func (r *runtime) Stepped() { r.listed = nil }

// ask lets a request wait for the daemon's reply, and gives its number.
func (r *runtime) ask(q request) ipam.Req {
	r.lastReq++
	q.req = r.lastReq
	if q.verb == cri.DEL {
		if row, ok := r.n.core.Find(q.att); ok {
			q.addr = row.Address
		}
	}
	r.waiting = append(r.waiting, q)
	return q.req
}

func (r *runtime) GC(valid []ipam.Attachment, absent bool, id int) {
	req := r.ask(request{by: id})
	r.n.feed(ipam.GC{Req: req, Network: "aws-cni", Valid: valid, Absent: absent, Deadline: r.n.w.now + addTimeout})
}

// plugin is the plugin process: one local call.
func (r *runtime) plugin(e *event) {
	n, w := r.n, r.n.w
	a := e.data.(*cri.Action)
	att := ipam.Attachment{Network: a.Network, ContainerID: a.ContainerID, IfName: a.IfName}
	pod := ipam.Pod{Namespace: a.Namespace, Name: a.Name, UID: a.UID}
	w.mix(uint64(a.Verb))
	w.PluginRuns(&n.Node, a)
	q := request{op: a.Op, verb: a.Verb, att: att, pod: pod}
	if n.core == nil {
		r.daemonDown(&q)
		return
	}
	req := r.ask(q)
	deadline := w.now + min(addTimeout, a.Timeout)
	switch a.Verb {
	case cri.ADD:
		n.feed(ipam.Add{Req: req, Att: att, Pod: pod, Netns: a.Netns, Deadline: deadline, Version: n.Plugin})
	case cri.DEL:
		n.feed(ipam.Del{Req: req, Att: att, Pod: pod, Netns: a.Netns, Deadline: deadline, Version: n.Plugin})
	case cri.CHECK:
		n.feed(ipam.Check{Req: req, Att: att, Netns: a.Netns, Deadline: deadline})
	}
}

// daemonDown: no daemon listens, or it dies while the plugin waits. A DEL becomes a durable intent and succeeds (rule F).
func (r *runtime) daemonDown(q *request) {
	w := r.n.w
	o := outcome{verb: q.verb, att: q.att}
	if q.verb == cri.DEL {
		w.files++
		r.intents = append(r.intents, intent{num: w.files, att: q.att, pod: q.pod})
		w.Auditor.DelResult(w.now, int(r.n.No), q.att, true, "")
	} else {
		o.err = &cri.PluginError{Code: ipam.CodeTryAgain, Msg: "cni " + q.verb.String() + " " + q.att.String() + ": ipamd does not answer on its socket, try again"}
	}
	// Of no life: this process has had its answer, and a daemon's death breaks no connection of it.
	r.n.in(pluginReply, evResult, uint64(q.op), &o)
}

// hungUp: the daemon has died, and with it its connections.
func (r *runtime) hungUp() {
	for i := range r.waiting {
		if q := &r.waiting[i]; q.op != 0 {
			r.daemonDown(q)
		}
	}
	r.waiting = r.waiting[:0]
	for i := range r.intents {
		r.intents[i].req = 0
	}
}

func (r *runtime) result(e *event) {
	n, w := r.n, r.n.w
	o := e.data.(*outcome)
	w.mixAddr(o.addr)
	if o.err != nil {
		w.mix(uint64(o.err.Code))
	} else if o.verb == cri.ADD {
		n.fresh = append(n.fresh, o.addr)
	}
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.PluginDone, Op: cri.OpID(e.num), Err: o.err, Address: o.addr})
}

func (r *runtime) killPlugin(op cri.OpID) {
	if i := slices.IndexFunc(r.waiting, func(q request) bool { return q.op == op }); i >= 0 {
		req := r.waiting[i].req
		r.waiting = slices.Delete(r.waiting, i, i+1)
		r.n.daemon.in(time.Millisecond, evInput, uint64(req), ipam.Gone{Req: req})
	}
}

// reply takes the daemon's answer to the caller.
func (r *runtime) reply(a *ipam.Reply) {
	n, w := r.n, r.n.w
	i := 0
	for i < len(r.waiting) && r.waiting[i].req != a.Req {
		i++
	}
	if i == len(r.waiting) {
		return // the process was killed
	}
	q := r.waiting[i]
	r.waiting[i] = r.waiting[len(r.waiting)-1]
	r.waiting = r.waiting[:len(r.waiting)-1]
	r.judge(&q, a)
	n.refused(&q, a)
	w.Met(q.by, gcTold(a))
	if q.file != 0 {
		r.intentDone(q.file, a.Err == nil)
	}
	if q.op == 0 {
		return
	}
	if q.verb == cri.DEL && a.Err != nil && a.Err.Code == ipam.CodeTryAgain {
		r.daemonDown(&q) // or cannot do it now, which is the same to a DEL
		r.again(w.files)
		return
	}
	o := &outcome{verb: q.verb, att: q.att, addr: a.Address}
	if a.Err != nil {
		o.err = &cri.PluginError{Code: a.Err.Code, Msg: a.Err.Text}
	}
	// Of this life: a daemon that dies before its answer has left breaks the connection.
	n.daemon.in(pluginReply, evResult, uint64(q.op), o)
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

// judge is the edge at which I2, I6 and I7 are judged.
func (r *runtime) judge(q *request, a *ipam.Reply) {
	n, w := r.n, r.n.w
	asked := judge.Asked{Verb: verbs[q.verb], Att: q.att, Address: q.addr, Intent: q.file != 0}
	used := func(a netip.Addr) string {
		if n.kern.Holders(a) > 1 {
			return "another namespace"
		}
		return ""
	}
	if !w.Auditor.Answered(w.now, int(n.No), &asked, a, used) {
		return
	}
	if on, of, ok := w.EC2.OwnerOf(a.Address); ok && of == n.Instance {
		n.touched(judge.Gives, on)
	}
}

// feedIntent gives the daemon a DEL that is on disk, if it still is.
func (r *runtime) feedIntent(i int) {
	if r.n.core == nil || i < 0 || i >= len(r.intents) || r.intents[i].req != 0 {
		return
	}
	f := &r.intents[i]
	f.req = r.ask(request{verb: cri.DEL, att: f.att, file: f.num})
	deadline := r.n.w.now + addTimeout
	r.n.feed(ipam.Del{Req: f.req, Att: f.att, Pod: f.pod, Deadline: deadline, Version: r.n.Plugin, Intent: true})
}

// find is where an intent is; -1: nowhere.
func (r *runtime) find(num int) int {
	return slices.IndexFunc(r.intents, func(f intent) bool { return f.num == num })
}

// intentDone removes the file once its DEL has succeeded, and tries again otherwise.
func (r *runtime) intentDone(num int, ok bool) {
	switch i := r.find(num); {
	case i < 0:
	case ok:
		r.intents = slices.Delete(r.intents, i, i+1)
	default:
		r.intents[i].req = 0
		r.again(num)
	}
}

// again lets an intent be given to the daemon in a second.
func (r *runtime) again(num int) { r.n.daemon.in(time.Second, evStale, uint64(num), nil) }

// list is what stands behind the runtime's socket, and how long more that takes.
func (r *runtime) list(in *ipam.Seen) time.Duration {
	n := r.n
	switch n.Socket {
	case models.Absent:
		in.Complete, in.Err = false, "dial unix /run/cri.sock: connect: connection refused"
		return 0
	case models.Unimplemented:
		in.Complete, in.Err = false, "rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"
		return 0
	case models.Empty:
		return 0
	}
	list, whole := n.CRI.ListSandboxes()
	in.Complete = whole
	if !whole {
		in.Err = "the runtime is restarting"
		return models.HangTimeout
	}
	if r.listed != nil && n.Socket == models.Right {
		in.Sandboxes = r.listed
		return 0
	}
	in.Sandboxes = make([]ipam.Sandbox, 0, len(list))
	for i := range list {
		b := &list[i]
		in.Sandboxes = append(in.Sandboxes, ipam.Sandbox{ID: b.ID, Pod: ipam.Pod{Namespace: b.Namespace, Name: b.Name, UID: b.UID}, Ready: b.Ready, Address: b.IP})
	}
	r.listed = in.Sandboxes
	if n.Socket == models.Partial {
		in.Complete, in.Err = false, "rpc error: code = DeadlineExceeded"
		in.Sandboxes = in.Sandboxes[:len(in.Sandboxes)/2]
	}
	return 0
}
