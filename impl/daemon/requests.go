package daemon

import (
	"cmp"
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

// requests are what plugins and intents ask of the core, until it replies, and the answers that callers have not got
// yet.
type requests struct {
	*core
	agent   *agent
	last    ipam.Req
	open    map[ipam.Req]*request
	callers int // without an answer
}

// request is one that awaits its Reply.
type request struct {
	*caller
	pod  *namespace
	done func(*ipam.Error) // of a DEL from the folder: no caller waits, the file does
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
func (rs *requests) namespaceOf(a *ipam.Apply) *namespace {
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
	for _, r := range rs.open {
		if r.pod != nil && r.q.Attachment() == a.Lane.Att && r.pod.pod.Inode() == inode {
			r.pod.uses++
			return r.pod
		}
	}
	return nil
}

// register names a request, so that its Reply is known by the name.
func (rs *requests) register(r *request) ipam.Req {
	rs.last++
	rs.open[rs.last] = r
	return rs.last
}

// enter gives a request to the core.
func (rs *requests) enter(r *request) {
	r.req = rs.register(r)
	q, timeout := r.q, r.q.Timeout()
	timeout = cmp.Or(timeout, defaultTimeout)
	deadline := rs.clock.Now() + timeout
	switch q.Verb {
	case ipc.Add:
		rs.step(ipam.Add{Req: r.req, Att: q.Attachment(), Pod: q.Pod(), Netns: r.pod.pod.Inode(), Deadline: deadline, Version: q.Version})
	case ipc.Del:
		rs.step(ipam.Del{Req: r.req, Att: q.Attachment(), Pod: q.Pod(), Netns: q.Inode, Deadline: deadline, Version: q.Version})
	case ipc.Check:
		rs.step(ipam.Check{Req: r.req, Att: q.Attachment(), Netns: q.Inode, Deadline: deadline})
	case ipc.GC:
		rs.step(ipam.GC{Req: r.req, Network: q.Network, Valid: q.Valid, Absent: q.ValidAbsent, Deadline: deadline})
	}
}

// misconfigured answers while the settings cannot be. A DEL ends nevertheless: as an intent for the daemon that can do it (rule F).
func (rs *requests) misconfigured(q *ipc.Request) *ipc.Response {
	why := fmt.Sprintf("cni %s %s: the node's settings cannot be: %s", q.Verb, q.Attachment(), join(rs.c.Problems))
	if q.Verb != ipc.Del {
		return refusal(ipam.CodeConfig, why)
	}
	err := ipc.WriteIntent(rs.c.intentDir(), ipc.Intent{Attachment: q.Attachment(), Pod: q.Pod(), Version: rs.c.Version})
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
func (rs *requests) reply(p *ipam.Reply) {
	r := rs.open[p.Req]
	if r == nil {
		return // the caller hung up
	}
	delete(rs.open, p.Req)
	r.pod.drop()
	if r.done != nil {
		r.done(p.Err)
		return
	}
	if p.Err != nil {
		rs.respond(r.caller, refusal(p.Err.Code, p.Err.Text))
		return
	}
	out := &ipc.Response{Address: p.Address, Device: p.Device, Table: p.Table, Veth: p.Veth}
	if p.Verb == ipam.VerbAdd {
		out.HostMAC = dataplane.VethMAC(dataplane.Alias(p.Att.Network, p.Att.ContainerID, p.Att.IfName, p.Address))
		if row, ok := rs.node.Find(p.Att); ok && row.MAC != "" {
			out.HostMAC = row.MAC
		}
	}
	out.PolicyMode = rs.agent.hears(p.Verb, r.q.Attachment(), r.q.Pod())
	rs.respond(r.caller, out)
}

// respond hands the answer to the caller's goroutine, which says when it is written.
func (rs *requests) respond(c *caller, out *ipc.Response) {
	out.Version = rs.c.Version
	c.answered = true
	c.answer <- out
	rs.callers--
	rs.local++
	rs.said(c, out)
}

// written: the answer was sent, or the caller is gone.
func (rs *requests) written() { rs.local-- }

// hungUp: the caller's goroutine has ended without writing an answer.
func (rs *requests) hungUp(c *caller) {
	if c.answered {
		rs.local--
		return
	}
	rs.callers--
	c.left = true
	r := rs.open[c.req]
	if r == nil {
		return
	}
	rs.log.Info("a caller hung up", "verb", c.q.Verb, "attachment", c.q.Attachment(), "who", c.who)
	delete(rs.open, c.req)
	r.pod.drop()
	rs.step(ipam.Gone{Req: c.req})
}

// dismiss answers what is still open when a stopping daemon's time is over.
func (rs *requests) dismiss() {
	for req, r := range rs.open {
		delete(rs.open, req)
		r.pod.drop()
		if r.caller != nil {
			rs.respond(r.caller, refusal(ipam.CodeTryAgain, "cni "+r.q.Verb+" "+r.q.Attachment().String()+": ipamd is stopping, try again"))
		}
	}
}

// said logs an answer: refusals always, what only looks never (STATUS comes every five seconds).
func (rs *requests) said(c *caller, out *ipc.Response) {
	args := []any{"verb", c.q.Verb, "attachment", c.q.Attachment(), "pod", c.q.Pod(), "took", rs.clock.Now() - c.at}
	switch c.q.Verb {
	case ipc.View, ipc.Record:
	case ipc.Status:
		if !out.Ready {
			rs.log.Debug("not ready", "reasons", join(out.Reasons))
		}
	default:
		if out.Code != 0 {
			rs.log.Warn("refused", append(args, "code", out.Code, "why", out.Text)...)
		} else {
			rs.log.Debug("done", append(args, "address", out.Address)...)
		}
	}
}
