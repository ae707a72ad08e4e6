package lab

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// life is one daemon as its recording shows it: a second Node, stepped with the same inputs.
type life struct {
	no      int
	player  *ipam.Player
	steps   uint64
	ended   bool // it has no more to tell
	plans   map[ipam.ID]*ipam.Apply
	reqs    map[ipam.Req]request
	holders map[netip.Addr]holding // when it was configured last
}

// holding is how many live namespaces have an address, and where the other one is.
type holding struct {
	count     int
	otherwise string
}

// request is something that a plugin, or a file that one left, asks the daemon.
type request struct {
	verb   cri.Verb
	att    ipam.Attachment
	addr   netip.Addr // DEL: the address the attachment had
	intent bool
}

func (l *life) node() *ipam.Node { return l.player.Node() }

// steps are those of the daemon that runs.
func (n *instance) steps() uint64 {
	if n.life == nil {
		return 0
	}
	return n.life.steps
}

// recordedHeader begins a life.
func (w *World) recordedHeader(n *instance, no int, line []byte) {
	if no != n.lifeNo {
		return
	}
	p, err := ipam.NewPlayer(line, w.policyNamed)
	if err != nil {
		w.fail(fmt.Errorf("%s: the recording cannot be replayed: %w", n.name(), err))
		return
	}
	l := &life{no: no, player: p, plans: map[ipam.ID]*ipam.Apply{}, reqs: map[ipam.Req]request{}, holders: map[netip.Addr]holding{}}
	p.Before = func(at time.Duration, in ipam.Input) { w.before(n, l, at, in) }
	n.life, n.starting = l, false
	w.audit.Started(w.now(), int(n.no))
	w.tell(n, "ipamd starts")
	w.log("%s: life %d begins", n.name(), no)
}

// recorded is one step of a daemon.
func (w *World) recorded(n *instance, no int, line []byte) {
	l := n.life
	if l == nil || l.no != no {
		return
	}
	at, in, effs, err := l.player.Step(line)
	if err != nil {
		w.disagree(n, "replay: %v", err)
		w.fail(fmt.Errorf("%s: the daemon does not decide as the core does: %w", n.name(), err))
		return
	}
	l.steps++
	n.dirty = true
	if m := w.mutant; m != nil && m.Effects != nil {
		effs = m.Effects(effs)
	}
	w.audit.Effects(at, int(n.no), effs)
	if done, ok := in.(ipam.Applied); ok {
		w.applied(n, l, &done)
	}
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Apply:
			l.plans[e.ID] = w.mutated(e)
		case *ipam.Reply:
			w.replied(n, l, at, e)
		case *ipam.Note:
			w.marks[e.Mark]++
			w.story.Note(at-w.epoch, n.no, e)
		}
	}
}

// mutated is the plan that really runs.
func (w *World) mutated(e *ipam.Apply) *ipam.Apply {
	if w.mutant == nil || w.mutant.Plan == nil {
		return e
	}
	c := *e
	c.Plan = w.mutant.Plan(e.Lane, e.Plan)
	return &c
}

// before looks at an input while the Node is as it was.
func (w *World) before(n *instance, l *life, at time.Duration, in ipam.Input) {
	w.audit.Input(at, int(n.no), in)
	switch in := in.(type) {
	case ipam.Add:
		l.reqs[in.Req] = request{verb: cri.ADD, att: in.Att}
	case ipam.Del:
		r := request{verb: cri.DEL, att: in.Att, intent: in.Intent}
		if row, ok := l.node().Find(in.Att); ok {
			r.addr = row.Address
		}
		l.reqs[in.Req] = r
	}
}

// replied is the edge at which I2, I6 and I7 are judged.
func (w *World) replied(n *instance, l *life, at time.Duration, r *ipam.Reply) {
	q, known := l.reqs[r.Req]
	delete(l.reqs, r.Req)
	w.story.Refused(at-w.epoch, n.no, r)
	if w.base != nil {
		w.book.Reply(at, n.no, r, q.addr.IsValid())
	}
	switch {
	case !known:
	case q.verb == cri.ADD && r.Err == nil:
		used := ""
		if h := l.holders[r.Address]; h.count > 1 {
			used = "another namespace, on " + h.otherwise
		}
		w.audit.Given(at, int(n.no), r.Att, r.Address, used)
	case q.verb == cri.DEL && r.Err == nil:
		w.audit.DelResult(at, int(n.no), q.att, true, "")
		if q.addr.IsValid() {
			w.audit.Released(at, int(n.no), q.att, q.addr)
		}
	case q.verb == cri.DEL:
		w.audit.DelResult(at, int(n.no), q.att, false, r.Err.Text)
	}
}

// applied is a plan that ran: the model's kernel runs it too, and I1 is judged.
func (w *World) applied(n *instance, l *life, done *ipam.Applied) {
	a := l.plans[done.ID]
	if a == nil {
		return
	}
	delete(l.plans, done.ID)
	w.mirrored(n, a, done)
	if a.Lane.Kind != ipam.PodLane {
		return
	}
	for i := range a.Plan.Ops[:min(done.Done, len(a.Plan.Ops))] {
		switch op := &a.Plan.Ops[i]; op.Kind {
		case dataplane.PodAddress:
			h := w.holders(n, op.Addr)
			w.lastNode[op.Addr], l.holders[op.Addr] = n, h
			w.audit.Configured(w.now(), int(n.no), op.Addr, a.Lane.Att, h.count, h.otherwise)
		case dataplane.DeleteVeth:
			if network, id, ifName, addr, ok := dataplane.ParseAlias(op.Alias); ok {
				w.audit.Released(w.now(), int(n.no), ipam.Attachment{Network: network, ContainerID: id, IfName: ifName}, addr)
			}
		}
	}
}

// holders counts the live namespaces that have an address: on a node, and on the one that had it before.
func (w *World) holders(n *instance, a netip.Addr) holding {
	h := holding{w.heldOn(n, a), "the same node"}
	if last := w.lastNode[a]; last != nil && last != n && !last.gone {
		if elsewhere := w.heldOn(last, a); elsewhere > 0 {
			h.count, h.otherwise = h.count+elsewhere, last.name()
		}
	}
	return h
}

func (w *World) heldOn(n *instance, a netip.Addr) int {
	all, err := n.box.Addresses()
	if err != nil {
		w.fail(err)
		return 0
	}
	count := 0
	for _, h := range all {
		if h.Addr == a {
			count++
		}
	}
	return count
}

// tornPages tells the book that a daemon died, and what nobody answers any more.
func (w *World) tornPages(l *life, n *instance) {
	var open []ipam.Attachment
	for _, q := range l.reqs {
		open = append(open, q.att)
	}
	w.book.Died(w.now(), n.no, open)
}
