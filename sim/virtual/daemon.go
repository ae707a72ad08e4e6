package virtual

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
)

// How long this machine's own things take. They only have to be of the right size: nothing is decided by them.
const (
	pluginExec  = 2 * time.Millisecond   // fork, exec, parse, connect
	pluginReply = 300 * time.Microsecond // reply, print, exit, reap
	saveRun     = 400 * time.Microsecond // write, fsync and rename on a tmpfs
	saveLib     = 4 * time.Millisecond   // the same on a disk
	applyBase   = 300 * time.Microsecond
	applyOp     = 100 * time.Microsecond
	lookKernel  = 3 * time.Millisecond
	lookRuntime = 8 * time.Millisecond
	lookIMDS    = 15 * time.Millisecond
	lookPods    = 20 * time.Millisecond
	lookDeliver = time.Millisecond
)

// startDaemon begins a life: the records are read as the version reads them, and the shell asks nothing itself.
func (w *World) startDaemon(n *node) {
	if n.Down {
		w.KeptDown(&n.Node)
	}
	if n.core != nil || n.Down || n.Gone {
		return
	}
	n.life++
	n.core = w.unborn.Clone()
	n.tickAt = models.Never
	n.self, _ = w.NewDaemon(&n.Node)
	n.Starts++
	in := ipam.Start{Boot: "boot", Rebooted: !n.booted, Booted: n.bootedAt, Seed: w.Random(), Daemon: n.self, Version: n.Version, Wall: wallAtZero,
		Cluster: w.Cluster.Name, Settings: n.Settings}
	w.records(n, &in)
	n.booted = true
	w.Auditor.Started(w.now, int(n.No))
	w.Started(&n.Node, &in)
	if !w.hushed {
		w.story.Started(w.Now(), n.No)
	}
	w.feed(n, in)
	for i := range n.intents {
		w.feedIntent(n, i)
	}
}

// wallAtZero is the wall clock when the simulation began: 2019-11-26T02:28:11Z, when the first of the incidents began.
const wallAtZero = 1574735291

// records reads both stores through the codec: what this version does not know survives, what it cannot read is missing.
func (w *World) records(n *node, in *ipam.Start) {
	run, err := w.reread(n, ipam.RunStore)
	if err == nil {
		in.Rows = append(in.Rows, run...)
	} else {
		in.Unread = err.Error()
	}
	lib, err := w.reread(n, ipam.LibStore)
	if err == nil {
		in.Rows = append(in.Rows, lib...)
	} else {
		in.Unread = err.Error()
	}
}

// feed steps the daemon with an input and carries out what it wants.
func (w *World) feed(n *node, in ipam.Input) {
	if n.core == nil {
		return
	}
	w.Auditor.Input(w.now, int(n.No), in)
	m := w.mutant
	if m != nil && m.Input != nil {
		in = m.Input(in)
	}
	effs := w.stepCore(n, in)
	if m != nil && m.Effects != nil {
		effs = m.Effects(effs)
	}
	w.Auditor.Effects(w.now, int(n.No), effs)
	w.Auditor.Makes(w.now, int(n.No), effs, n.core)
	w.perform(n, effs)
	w.armTick(n)
}

func (w *World) armTick(n *node) {
	if n.core == nil {
		return
	}
	if at, ok := n.core.Next(); ok && at < n.tickAt {
		n.tickAt = max(at, w.now)
		w.push(event{at: n.tickAt, kind: evTick, node: n.No, life: n.life})
	}
}

func (w *World) tick(n *node, e *event) {
	if e.life != n.life || n.core == nil || e.at != n.tickAt {
		return
	}
	n.tickAt = models.Never
	if at, ok := n.core.Next(); ok && at > w.now { // what it was for is gone
		w.armTick(n)
		return
	}
	w.feed(n, nil)
}

// perform starts effects, as the daemon's goroutines would.
func (w *World) perform(n *node, effs []ipam.Effect) {
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Save:
			w.save(n, e)
		case *ipam.Apply:
			w.startApply(n, e)
		case *ipam.Look:
			w.startLook(n, e)
		case *ipam.Call:
			w.startCall(n, e)
		case *ipam.Reply:
			w.reply(n, e)
		case *ipam.Note:
			w.marks[e.Point]++
			w.noted(n, e)
		}
		if n.core == nil {
			return // a trap has killed the daemon
		}
	}
}

func (w *World) save(n *node, s *ipam.Save) {
	w.mix(uint64(s.Store)<<60 ^ s.Seq)
	took := saveRun
	if s.Store == ipam.LibStore {
		took = saveLib
	}
	at := max(w.now, n.lane[s.Store]) + took
	n.lane[s.Store] = at
	w.push(event{at: at, kind: evSaved, node: n.No, life: n.life, num: s.Seq, data: s})
	if w.shell(mutants.AckEarly) {
		w.push(event{at: w.now, kind: evInput, node: n.No, life: n.life, num: s.Seq, data: ipam.Saved{Store: s.Store, Seq: s.Seq}})
	}
}

func (w *World) shell(s mutants.Shell) bool { return w.mutant != nil && w.mutant.Shell&s != 0 }

// saved commits the rows; the daemon hears of it if it still lives.
func (w *World) saved(n *node, e *event) {
	s := e.data.(*ipam.Save)
	if e.life == n.life && n.core != nil {
		if !w.shell(mutants.DropSaves) {
			n.commit(s)
		}
		if !w.shell(mutants.AckEarly) {
			w.feed(n, ipam.Saved{Store: s.Store, Seq: s.Seq})
		}
	}
}

// commit makes a Save's rows durable.
func (n *node) commit(s *ipam.Save) {
	d := &n.disk[s.Store]
	d.lost, n.writer = false, n.Version
	for i := range s.Put {
		d.put(&s.Put[i])
	}
	for _, k := range s.Drop {
		d.drop(k)
	}
}

func (d *disk) put(r *ipam.Row) {
	k := r.Key()
	for i := range d.rows {
		if d.rows[i].Key() == k {
			d.rows[i] = *r
			return
		}
	}
	d.rows = append(d.rows, *r)
}

func (d *disk) drop(k ipam.Key) {
	for i := range d.rows {
		if d.rows[i].Key() == k {
			d.rows = slices.Delete(d.rows, i, i+1)
			return
		}
	}
}

func (w *World) startApply(n *node, a *ipam.Apply) {
	if m := w.mutant; m != nil && m.Plan != nil {
		b := *a
		b.Plan = m.Plan(a.Lane, a.Plan)
		a = &b
	}
	w.mix(uint64(a.ID) ^ uint64(len(a.Plan.Ops))<<40)
	took := applyBase + time.Duration(len(a.Plan.Ops))*applyOp
	w.push(event{at: w.now + took, kind: evApply, node: n.No, life: n.life, num: uint64(a.ID), data: a})
}

func (w *World) apply(n *node, e *event) {
	if e.life != n.life || n.core == nil {
		return
	}
	a := e.data.(*ipam.Apply)
	done, err := w.runPlan(n, a, len(a.Plan.Ops))
	w.mix(uint64(done))
	w.feed(n, ipam.Applied{ID: a.ID, Done: done, Err: err})
}

// kill is SIGKILL: what the daemon wanted and had not happened does not happen, except for requests on their way to EC2. Kubelet
// starts it again.
func (w *World) kill(n *node) {
	w.tornPages(n)
	w.crash(n, func(*event) fate { return lands })
}

// fate of an effect in flight when its daemon dies.
type fate uint8

const (
	vanishes  fate = iota // it never happens
	lands                 // it happens as if the daemon lived
	landsLate             // a Call: it happens almost two minutes later
	landsHalf             // an Apply: the first half of its operations
)

// lateLanding is just inside the two minutes of the contract.
const lateLanding = 110 * time.Second

// crash ends the daemon's life; choose decides about each effect in flight.
func (w *World) crash(n *node, choose func(*event) fate) {
	if n.core == nil {
		return
	}
	w.tell(n, "ipamd is killed")
	w.Auditor.Died(w.now, int(n.No))
	n.core, n.tickAt = nil, models.Never
	n.lane = [2]time.Duration{}
	var saves, applies, late, broken []*event
	w.heap.remove(func(e *event) bool {
		if e.node != n.No || e.life != n.life || e.life == 0 { // of no life is what kubelet, plugins and other machines do
			return false
		}
		switch e.kind {
		case evSaved, evApply:
			if f := choose(e); f != vanishes {
				c := *e
				c.num = uint64(f)
				if e.kind == evSaved {
					saves = append(saves, &c)
				} else {
					applies = append(applies, &c)
				}
			}
			return true
		case evServe:
			f := choose(e)
			if f == landsLate {
				c := *e
				late = append(late, &c)
			}
			return f != lands
		case evResult:
			if choose(e) != vanishes {
				return false
			}
			c := *e
			broken = append(broken, &c)
			return true
		case evTick, evInput, evLook:
			return true
		}
		return false
	})
	bySeq := func(a, b *event) int { return int(int64(a.seq) - int64(b.seq)) }
	slices.SortFunc(saves, bySeq)
	slices.SortFunc(applies, bySeq)
	slices.SortFunc(late, bySeq)
	slices.SortFunc(broken, bySeq)
	for _, e := range saves {
		n.commit(e.data.(*ipam.Save))
	}
	for _, e := range applies {
		a := e.data.(*ipam.Apply)
		ops := len(a.Plan.Ops)
		if fate(e.num) == landsHalf {
			ops /= 2
		}
		w.runPlan(n, a, ops)
	}
	for _, e := range late {
		e.at = w.now + lateLanding
		w.push(*e)
	}
	for _, e := range broken {
		o := e.data.(*outcome)
		w.hangUp(n, request{op: cri.OpID(e.num), verb: o.verb, att: o.att})
	}
	for _, r := range n.run { // their connections break
		if r.op != 0 {
			w.hangUp(n, r)
		}
	}
	n.run = n.run[:0]
	for i := range n.intents {
		n.intents[i].req = 0
	}
	if !n.Down {
		w.push(event{at: w.now + models.RestartPause, kind: evStart, node: n.No})
	}
}
