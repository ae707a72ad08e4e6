package virtual

import (
	"cmp"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/verb"
)

// How long this machine's own things take. They only have to be of the right size: nothing is decided by them.
const (
	pluginExec  = 2 * time.Millisecond   // fork, exec, parse, connect
	pluginReply = 300 * time.Microsecond // reply, print, exit, reap
	saveRun     = 400 * time.Microsecond // write, fsync and rename on a tmpfs
	saveLib     = 4 * time.Millisecond   // the same on a disk
	applyBase   = 300 * time.Microsecond
	applyOp     = 100 * time.Microsecond
	lookDeliver = time.Millisecond
)

// lookTakes is what a look at the machine, its metadata or the API server takes.
var lookTakes = [...]time.Duration{ipam.LookKernel: 3 * time.Millisecond, ipam.LookRuntime: 8 * time.Millisecond,
	ipam.LookIMDS: 15 * time.Millisecond, ipam.LookPods: 20 * time.Millisecond, ipam.LookConfig: 20 * time.Millisecond}

// daemon is a node's models.Daemon: a core, and what is around it in a process.
type daemon struct {
	n      *node
	core   *ipam.Node // nil: no daemon runs
	life   uint32
	tickAt time.Duration
	lane   [2]time.Duration // until when a store's lane is busy
}

func (d *daemon) fork() {
	if d.core != nil {
		d.core = d.core.Clone()
	}
}

// Runs and Lives are the same: a daemon starts at once.
func (d *daemon) Runs() bool  { return d.core != nil }
func (d *daemon) Lives() bool { return d.core != nil }

func (d *daemon) Start() { d.n.in(0, evStart, 0, nil) }

// Exchange is never asked, see Can.
func (d *daemon) Exchange(string, string, bool) bool { return false }

func (d *daemon) LoseRecords() bool { return d.n.disk.lose(ipam.RunStore) }

func (d *daemon) View() (*ipam.View, bool) {
	if d.core == nil {
		return nil, false
	}
	d.core.View(&d.n.w.view)
	return &d.n.w.view, true
}

// Busy names what is under way on the node.
func (d *daemon) Busy() string {
	v, ok := d.View()
	switch {
	case !ok && d.n.Down:
		return ""
	case !ok:
		return "it has no daemon"
	case v.Serving && v.Surveyed && v.Waiting == 0 && v.Intents == 0 && v.Cooling == 0:
		return ""
	case len(v.Reasons) > 0:
		return v.Reasons[0]
	}
	return "an ADD waits, an intent is open or an address cools down"
}

// in lets something happen after a while in this life: an event of an earlier one reaches nobody.
func (d *daemon) in(after time.Duration, kind eventKind, num uint64, data any) {
	d.n.w.push(event{at: d.n.w.now + after, kind: kind, node: d.n.No, life: d.life, num: num, data: data})
}

// wants says whether an event is of this life. Of none is what kubelet, plugins and other machines do.
func (d *daemon) wants(e *event) bool { return e.node == d.n.No && e.life == d.life && e.life != 0 }

// begin begins a life: what this version does not know of the records survives, what it cannot read is missing.
func (d *daemon) begin() {
	n, w := d.n, d.n.w
	if n.Down {
		w.KeptDown(&n.Node)
	}
	if d.core != nil || n.Down || n.Gone {
		return
	}
	d.life++
	d.core = w.unborn.Clone()
	d.tickAt = models.Never
	self, _ := w.NewDaemon(&n.Node)
	n.Starts++
	in := ipam.Start{Boot: "boot", Rebooted: !n.booted, Booted: n.bootedAt, Seed: w.Random(), Daemon: self, Version: n.Version, Wall: wallAtZero,
		Cluster: w.Cluster.Name, Settings: n.Settings}
	for _, s := range [...]ipam.Store{ipam.RunStore, ipam.LibStore} {
		rows, err := n.disk.read(s, n.Version, w.shell(mutants.RefuseOtherVersions))
		if err == nil {
			in.Rows = append(in.Rows, rows...)
		} else {
			in.Unread = err.Error()
		}
	}
	n.booted = true
	w.Auditor.Started(w.now, int(n.No))
	w.Started(&n.Node, &in)
	if !w.hushed {
		w.Lines.Started(w.Now(), n.No)
	}
	d.feed(in)
	for i := range n.intents {
		n.feedIntent(i)
	}
}

// wallAtZero is the wall clock when the simulation began: 2019-11-26T02:28:11Z, when the first of the incidents began.
const wallAtZero = 1574735291

// handle is an event of the daemon's.
func (d *daemon) handle(e *event) {
	if e.life != d.life || d.core == nil {
		return
	}
	switch e.kind {
	case evTick:
		d.tick(e)
	case evInput:
		d.feed(e.data.(ipam.Input))
	case evSaved:
		d.saved(e.data.(*ipam.Save))
	case evApply:
		d.apply(e.data.(*ipam.Apply))
	case evLook:
		d.look(e.data.(*ipam.Look))
	}
}

// feed steps the daemon with an input and carries out what it wants.
func (d *daemon) feed(in ipam.Input) {
	if d.core == nil {
		return
	}
	n, w := d.n, d.n.w
	w.Auditor.Input(w.now, int(n.No), in)
	m := w.mutant
	if m != nil && m.Input != nil {
		in = m.Input(in)
	}
	effs := d.stepCore(in)
	if m != nil && m.Effects != nil {
		effs = m.Effects(effs)
	}
	w.Auditor.Effects(w.now, int(n.No), effs)
	w.Auditor.Makes(w.now, int(n.No), effs, d.core)
	if d.perform(effs); d.core != nil {
		d.armTick()
	}
}

func (d *daemon) armTick() {
	if at, ok := d.core.Next(); ok && at < d.tickAt {
		d.tickAt = max(at, d.n.w.now)
		d.in(d.tickAt-d.n.w.now, evTick, 0, nil)
	}
}

func (d *daemon) tick(e *event) {
	if e.at != d.tickAt {
		return
	}
	d.tickAt = models.Never
	if at, ok := d.core.Next(); ok && at > e.at { // what it was for is gone
		d.armTick()
		return
	}
	d.feed(nil)
}

// perform starts effects, as the daemon's goroutines would.
func (d *daemon) perform(effs []ipam.Effect) {
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Save:
			d.save(e)
		case *ipam.Apply:
			d.startApply(e)
		case *ipam.Look:
			d.startLook(e)
		case *ipam.Call:
			d.startCall(e)
		case *ipam.Reply:
			d.n.reply(e)
		case *ipam.Note:
			if w := d.n.w; !w.hushed {
				w.Lines.Note(w.Now(), d.n.No, e)
			}
			d.n.w.marks[e.Point]++
		}
		if d.core == nil {
			return // a trap has killed the daemon
		}
	}
}

func (d *daemon) save(s *ipam.Save) {
	w := d.n.w
	w.mix(uint64(s.Store)<<60 ^ s.Seq)
	took := saveRun
	if s.Store == ipam.LibStore {
		took = saveLib
	}
	lane := &d.lane[s.Store]
	*lane = max(w.now, *lane) + took
	d.in(*lane-w.now, evSaved, s.Seq, s)
	if w.shell(mutants.AckEarly) {
		d.in(0, evInput, s.Seq, ipam.Saved{Store: s.Store, Seq: s.Seq})
	}
}

// saved commits the rows.
func (d *daemon) saved(s *ipam.Save) {
	if !d.n.w.shell(mutants.DropSaves) {
		d.n.disk.commit(s, d.n.Version)
	}
	if !d.n.w.shell(mutants.AckEarly) {
		d.feed(ipam.Saved{Store: s.Store, Seq: s.Seq})
	}
}

func (d *daemon) startApply(a *ipam.Apply) {
	if m := d.n.w.mutant; m != nil && m.Plan != nil {
		b := *a
		b.Plan = m.Plan(a.Lane, a.Plan)
		a = &b
	}
	d.n.w.mix(uint64(a.ID) ^ uint64(len(a.Plan.Ops))<<40)
	d.in(applyBase+time.Duration(len(a.Plan.Ops))*applyOp, evApply, uint64(a.ID), a)
}

func (d *daemon) apply(a *ipam.Apply) {
	done, err := d.n.machine.run(a, len(a.Plan.Ops))
	d.n.w.mix(uint64(done))
	d.feed(ipam.Applied{ID: a.ID, Done: done, Err: err})
}

// Kill is SIGKILL: what the daemon wanted and had not happened does not happen, except for requests on their way to EC2.
// The strike is told by the process that ends.
func (d *daemon) Kill(_ int, told string) verb.Strike {
	d.n.tornPages()
	d.crash(func(*event) fate { return lands })
	return verb.Hit("%s", told)
}

// Restart is a rolled DaemonSet: SIGTERM, what is under way ends or is answered, then a new daemon at once.
func (d *daemon) Restart() {
	d.feed(ipam.Stop{}) // which may spring a trap: of two starts the second finds a daemon
	d.end(func(*event) fate { return lands })
	d.n.in(models.RestartPause, evStart, 0, nil)
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

// crash ends the daemon's life as choose says, and kubelet starts the next one, unless it is kept down.
func (d *daemon) crash(choose func(*event) fate) {
	if d.end(choose) && !d.n.Down {
		d.n.in(models.RestartPause, evStart, 0, nil)
	}
}

// end ends the daemon's life, if there is one; choose decides about each effect in flight.
func (d *daemon) end(choose func(*event) fate) bool {
	if d.core == nil {
		return false
	}
	n, w := d.n, d.n.w
	n.tell("ipamd is killed")
	w.Auditor.Died(w.now, int(n.No))
	d.core, d.tickAt = nil, models.Never
	d.lane = [2]time.Duration{}
	var left []event // what happens all the same, and answers that do not
	w.heap.remove(func(e *event) bool {
		if !d.wants(e) || e.kind == evStale {
			return false
		}
		f, c := choose(e), *e
		switch e.kind {
		case evSaved, evApply:
			if c.num = uint64(f); f != vanishes {
				left = append(left, c)
			}
		case evServe:
			if f == landsLate {
				left = append(left, c)
			}
			return f != lands
		case evResult:
			if f != vanishes {
				return false
			}
			left = append(left, c)
		}
		return true
	})
	// Saves first, then plans, requests and answers, each in their order.
	slices.SortFunc(left, func(a, b event) int { return cmp.Or(cmp.Compare(a.kind, b.kind), bySeq(a, b)) })
	for _, e := range left {
		switch x := e.data.(type) {
		case *ipam.Save:
			n.disk.commit(x, n.Version)
		case *ipam.Apply:
			ops := len(x.Plan.Ops)
			if fate(e.num) == landsHalf {
				ops /= 2
			}
			n.machine.run(x, ops)
		case *inFlight:
			e.at = w.now + lateLanding
			w.push(e)
		case *outcome:
			n.daemonDown(&request{op: cri.OpID(e.num), verb: x.verb, att: x.att})
		}
	}
	n.hungUp()
	return true
}
