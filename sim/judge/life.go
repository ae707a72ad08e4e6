package judge

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Life is one daemon as its recording shows it: a second Node, stepped with the same inputs.
type Life struct {
	w       *Witness
	node    int32
	player  *ipam.Player
	steps   uint64
	plans   map[ipam.ID]*ipam.Apply
	reqs    map[ipam.Req]Asked
	holders map[netip.Addr]Holding // when it was configured last
	stopped bool
}

// Open begins a life with the first line of its recording.
func (w *Witness) Open(node int32, header []byte) (*Life, error) {
	p, err := ipam.NewPlayer(header, w.policy)
	if err != nil {
		return nil, err
	}
	l := &Life{w: w, node: node, player: p, plans: map[ipam.ID]*ipam.Apply{}, reqs: map[ipam.Req]Asked{}, holders: map[netip.Addr]Holding{}}
	p.Before = l.before
	w.Audit.Started(w.Eyes.Now(), int(node))
	w.Story.Started(w.Now(), node)
	return l, nil
}

// Number is the node's.
func (l *Life) Number() int32 { return l.node }

// Node is the daemon's core as it is after the last step. It belongs to the Life.
func (l *Life) Node() *ipam.Node { return l.player.Node() }

// Stopped says whether the daemon was told to end, by whomever.
func (l *Life) Stopped() bool { return l.stopped }

// Steps counts the inputs that the daemon has told of.
func (l *Life) Steps() uint64 { return l.steps }

// Plans are those that were started and of whose end nothing has been heard, in their order.
func (l *Life) Plans() []*ipam.Apply {
	var out []*ipam.Apply
	for _, id := range slices.Sorted(maps.Keys(l.plans)) {
		out = append(out, l.plans[id])
	}
	return out
}

// Step is one further line. An error says that the daemon did not decide as the core does.
func (l *Life) Step(line []byte) error {
	at, in, effs, err := l.player.Step(line)
	if err != nil {
		return err
	}
	w := l.w
	l.steps++
	if m := w.Mutant; m != nil && m.Effects != nil {
		effs = m.Effects(effs)
	}
	if done, ok := in.(ipam.Applied); ok { // what a plan did was done before the daemon heard of it, and wanted anything because of it
		l.applied(&done)
	}
	w.Audit.Effects(at, int(l.node), effs)
	w.Audit.Makes(at, int(l.node), effs, l.Node())
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Apply:
			l.plans[e.ID] = w.mutated(e)
		case *ipam.Reply:
			l.replied(at, e)
		case *ipam.Note:
			w.marks[e.Point]++
			w.Story.Note(at-w.epoch, l.node, e)
		}
	}
	return nil
}

// mutated is the plan that really runs.
func (w *Witness) mutated(e *ipam.Apply) *ipam.Apply {
	if w.Mutant == nil || w.Mutant.Plan == nil {
		return e
	}
	c := *e
	c.Plan = w.Mutant.Plan(e.Lane, e.Plan)
	return &c
}

// before looks at an input while the Node is as it was.
func (l *Life) before(at time.Duration, in ipam.Input) {
	l.w.Audit.Input(at, int(l.node), in)
	if l.w.Heard != nil {
		l.w.Heard(l, in)
	}
	switch in := in.(type) {
	case ipam.Start:
		l.w.leave(l.node, &in.Settings)
	case ipam.Set:
		l.w.leave(l.node, &in.Settings)
	case ipam.Stop:
		l.stopped = true
	case ipam.Add:
		l.reqs[in.Req] = Asked{Verb: ipam.VerbAdd, Att: in.Att}
	case ipam.Del:
		r := Asked{Verb: ipam.VerbDel, Att: in.Att, Intent: in.Intent}
		if row, ok := l.Node().Find(in.Att); ok {
			r.Address = row.Address
		}
		l.reqs[in.Req] = r
	}
}

// replied is the edge at which I2, I6 and I7 are judged.
func (l *Life) replied(at time.Duration, r *ipam.Reply) {
	w, no := l.w, int(l.node)
	q, known := l.reqs[r.Req]
	delete(l.reqs, r.Req)
	w.Story.Refused(at-w.epoch, l.node, r)
	if w.begun && w.Book != nil {
		had := q.Address.IsValid()
		if q.Verb == ipam.VerbAdd {
			_, had = l.Node().Find(r.Att)
		}
		w.Book.Reply(at, l.node, r, had)
	}
	if !known {
		return
	}
	used := func(a netip.Addr) string { h := l.holders[a]; return h.user() }
	if w.Audit.Answered(at, no, &q, r, used) {
		w.given(l.node, r.Address)
	}
}

// applied is a plan that ran, as far as it did: I1 is judged.
func (l *Life) applied(done *ipam.Applied) {
	w := l.w
	a := l.plans[done.ID]
	if a == nil {
		return
	}
	delete(l.plans, done.ID)
	w.Eyes.Ran(l, a, done)
	if a.Lane.Kind == ipam.ENILane {
		w.touched(l.node, Configures, ec2.ENIID(a.Lane.ENI))
	}
	if a.Lane.Kind != ipam.PodLane {
		return
	}
	held := func(addr netip.Addr) Holding {
		h := w.Audit.Holders(int(l.node), addr, func(node int) int { return w.Eyes.Held(int32(node), addr) })
		l.holders[addr] = h
		return h
	}
	w.Audit.Ran(w.Eyes.Now(), int(l.node), a.Lane.Att, a.Plan.Ops[:min(done.Done, len(a.Plan.Ops))], held)
}

// view is what the daemon believes.
func (l *Life) view() *ipam.View {
	var v ipam.View
	l.Node().View(&v)
	return &v
}

// Busy says what a daemon has under way or waits for, "" is nothing: then a scenario may begin.
func (l *Life) Busy() string {
	switch v := l.view(); {
	case !v.Serving && len(v.Reasons) > 0:
		return v.Reasons[0]
	case !v.Surveyed:
		return "EC2 has not said yet what the node has"
	case !v.Serving || v.Waiting > 0 || v.Intents > 0 || v.Cooling > 0:
		return fmt.Sprintf("serving %v, %d ADDs wait, %d intents are open, %d addresses cool down", v.Serving, v.Waiting, v.Intents, v.Cooling)
	}
	return ""
}

// Core is what the daemon's core is now, by its recording; nil is that no daemon runs.
func (l *Life) Core() *ipam.Node {
	if l == nil {
		return nil
	}
	return l.Node()
}
