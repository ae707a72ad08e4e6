package daemon

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

// codeEnvironment is CNI's code for necessary variables that are missing (SPEC 1.1.0, section Error).
const codeEnvironment = 4

// request is one that awaits its Reply.
type request struct {
	*caller
	pod    *namespace
	intent *ipc.IntentFile // of a DEL from the folder: no caller waits, the file does
}

// caller is a connected plugin.
type caller struct {
	q        *ipc.Request
	who      string
	answer   chan *ipc.Response // of capacity 1: it gets one
	answered bool
	left     bool     // it will not take one
	req      ipam.Req // 0: the core does not know it
	at       time.Duration
}

// namespace is a pod's, as long as a request or a running plan needs it: a kept one pins the namespace.
type namespace struct {
	pod  *linux.Pod
	uses int
}

func (n *namespace) drop() {
	if n == nil {
		return
	}
	if n.uses--; n.uses == 0 {
		_ = n.pod.Close() // nothing was written
	}
}

// namespaceOf finds the namespace that a plan works in: the one with the inode that its operations name, passed for the attachment.
// It is used until drop.
func (d *daemon) namespaceOf(a *ipam.Apply) *namespace {
	if a.Lane.Kind != ipam.PodLane {
		return nil
	}
	inode := uint64(0)
	for i := range a.Plan.Ops {
		if inode = a.Plan.Ops[i].Netns; inode != 0 {
			break
		}
	}
	if inode == 0 {
		return nil
	}
	for _, r := range d.open {
		if r.pod != nil && r.q.Attachment() == a.Lane.Att && r.pod.pod.Inode() == inode {
			r.pod.uses++
			return r.pod
		}
	}
	return nil
}

// take begins a request. pod is its own now.
func (d *daemon) take(c *caller, pod *linux.Pod) {
	d.callers++
	c.at = d.clock.Now()
	r := &request{caller: c}
	if pod != nil {
		r.pod = &namespace{pod, 1}
	}
	att := c.q.Attachment()
	switch c.q.Verb {
	case ipc.Status:
		ready, why := d.ready()
		d.respond(c, &ipc.Response{Ready: ready, Serving: d.serving(), Reasons: why})
	case ipc.View:
		d.respond(c, d.inspect())
	case ipc.Record:
		d.record(c)
	case ipc.Add, ipc.Del, ipc.Check, ipc.GC:
		if att.Network == "" || c.q.Verb != ipc.GC && (att.ContainerID == "" || att.IfName == "") {
			d.respond(c, refusal(codeEnvironment, "cni "+c.q.Verb+": network, container ID and interface name are needed, found "+att.String()))
		} else if d.stopping {
			d.respond(c, refusal(ipam.CodeTryAgain, "cni "+c.q.Verb+" "+att.String()+": ipamd is stopping, try again"))
		} else if d.node == nil {
			d.respond(c, d.misconfigured(c.q))
		} else {
			d.enter(r)
			return
		}
	default:
		d.respond(c, refusal(ipam.CodeVersion, fmt.Sprintf("ipamd does not know the request %q; it speaks version %d", c.q.Verb, d.c.Version)))
	}
	r.pod.drop()
}

// enter gives a request to the core.
func (d *daemon) enter(r *request) {
	d.lastReq++
	r.req = d.lastReq
	d.open[r.req] = r
	q, timeout := r.q, r.q.Timeout()
	if timeout == 0 {
		timeout = defaultTimeout
	}
	deadline := d.clock.Now() + timeout
	switch q.Verb {
	case ipc.Add:
		d.step(ipam.Add{Req: r.req, Att: q.Attachment(), Pod: q.Pod(), Netns: r.pod.pod.Inode(), Deadline: deadline, Version: q.Version})
	case ipc.Del:
		d.step(ipam.Del{Req: r.req, Att: q.Attachment(), Pod: q.Pod(), Netns: q.Inode, Deadline: deadline, Version: q.Version})
	case ipc.Check:
		d.step(ipam.Check{Req: r.req, Att: q.Attachment(), Netns: q.Inode, Deadline: deadline})
	case ipc.GC:
		d.step(ipam.GC{Req: r.req, Network: q.Network, Valid: q.Valid, Absent: q.ValidAbsent, Deadline: deadline})
	}
}

// misconfigured answers while the settings cannot be. A DEL ends nevertheless: as an intent for the daemon that can do it (rule F).
func (d *daemon) misconfigured(q *ipc.Request) *ipc.Response {
	why := fmt.Sprintf("cni %s %s: the node's settings cannot be: %s", q.Verb, q.Attachment(), join(d.c.Problems))
	if q.Verb != ipc.Del {
		return refusal(ipam.CodeConfig, why)
	}
	err := ipc.WriteIntent(d.intentDir(), ipc.Intent{Attachment: q.Attachment(), Pod: q.Pod(), Version: d.c.Version})
	if err != nil {
		return refusal(ipam.CodeTryAgain, why+"; and the DEL cannot be kept for later: "+err.Error())
	}
	return &ipc.Response{}
}

func refusal(code int, text string) *ipc.Response {
	return &ipc.Response{Code: code, Text: plain.Replace(text)}
}

// plain rewords what go-cni takes for a success of DEL, wherever it comes from: a kernel's or a file's error may be
// anywhere in a text (cni.go:250, rule F).
var plain = strings.NewReplacer("not found", "absent", "no such file or directory", "the file or its folder is missing")

// reply takes the core's answer to the caller.
func (d *daemon) reply(p *ipam.Reply) {
	r := d.open[p.Req]
	if r == nil {
		return // the caller hung up
	}
	delete(d.open, p.Req)
	r.pod.drop()
	if r.intent != nil {
		d.intentDone(r.intent, p.Err)
		return
	}
	if p.Err != nil {
		d.respond(r.caller, refusal(p.Err.Code, p.Err.Text))
		return
	}
	out := &ipc.Response{Address: p.Address, Device: p.Device, Table: p.Table, Veth: p.Veth}
	if p.Verb == ipam.VerbAdd {
		out.HostMAC = dataplane.VethMAC(dataplane.Alias(p.Att.Network, p.Att.ContainerID, p.Att.IfName, p.Address))
		if row, ok := d.node.Find(p.Att); ok && row.MAC != "" {
			out.HostMAC = row.MAC
		}
	}
	out.PolicyMode = d.policyMode(p.Verb, r.q.Attachment(), r.q.Pod())
	d.respond(r.caller, out)
}

// respond hands the answer to the caller's goroutine, which says when it is written.
func (d *daemon) respond(c *caller, out *ipc.Response) {
	out.Version = d.c.Version
	c.answered = true
	c.answer <- out
	d.callers--
	d.local++
	d.said(c, out)
}

// written: the answer was sent, or the caller is gone.
func (d *daemon) written() { d.local-- }

// hungUp: the caller's goroutine has ended without writing an answer.
func (d *daemon) hungUp(c *caller) {
	if c.answered {
		d.local--
		return
	}
	d.callers--
	c.left = true
	r := d.open[c.req]
	if r == nil {
		return
	}
	d.log.Info("a caller hung up", "verb", c.q.Verb, "attachment", c.q.Attachment(), "who", c.who)
	delete(d.open, c.req)
	r.pod.drop()
	d.step(ipam.Gone{Req: c.req})
}

// dismiss answers what is still open when a stopping daemon's time is over.
func (d *daemon) dismiss() {
	for req, r := range d.open {
		delete(d.open, req)
		r.pod.drop()
		if r.caller != nil {
			d.respond(r.caller, refusal(ipam.CodeTryAgain, "cni "+r.q.Verb+" "+r.q.Attachment().String()+": ipamd is stopping, try again"))
		}
	}
}
