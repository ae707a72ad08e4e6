package virtual

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// CrashOptions say how far CrashEverywhere goes. The zero value goes everywhere.
type CrashOptions struct {
	Progress    func(done, total int) // crash points, after each one
	Interrupted func() bool           // asked before every fork; ends the enumeration
	Limit       int                   // stop after so many broken forks; default 5
	Every       int                   // take only every so-manieth crash point; default 1, which is all of them
	Distance    int                   // of those take only so many, evenly, that from all to the end there are at most so many crash points together; default: any number
}

// CrashReport is what came of it.
type CrashReport struct {
	Points    int // instants at which a daemon was killed
	Forks     int // worlds that were run to their end for it
	Shifted   int // forks that settled with other ENIs, see Digest
	Broken    []BrokenFork
	Reference Digest // of the run without a crash
	Cut       bool   // interrupted, or stopped by Limit
}

// BrokenFork is a crash after which the world did not settle like without it.
type BrokenFork struct {
	At       time.Duration // of the scenario
	Node     int
	Event    string   // what had just happened
	InFlight []string // effects of the daemon that had not ended
	Choice   string   // which of them happened nevertheless
	What     string   // the invariant that broke, or how the settled world differs
	Story    string   // the lines before the crash and all after it

	named func(text string) string // gives ENIs the names that the story has for them
}

// String is one sentence.
func (b *BrokenFork) String() string {
	s := fmt.Sprintf("at %s node-%d was killed after %s; %s", brief(b.At), b.Node, b.Event, b.What)
	if len(b.InFlight) > 0 {
		s += fmt.Sprintf("; under way when it was killed: %s; of that happened: %s", strings.Join(b.InFlight, ", "), b.Choice)
	}
	if b.named != nil {
		s = b.named(s)
	}
	return s
}

// settleTime is how long a world runs on after the last line and the last crash before it is compared: an open intent is in
// doubt for two minutes and an attachment that the runtime never listed for five, and each is then acted on.
const settleTime = 12 * time.Minute

// maxBroken is CrashOptions.Limit's default: one cause breaks many forks.
const maxBroken = 5

// CrashEverywhere judges I9. It runs the scenario that open makes once to its end, as the reference, and then again event by
// event. At every event of a daemon (in a cluster of one node: at every event), and after every action, it forks the world, kills
// that daemon there and lets none, all, or each single one happen of what was in flight: a Save also together with the Saves
// before it in its store, which is one FIFO; a Call also 110 s late; an Apply also by half. Kubelet starts the daemon again, the
// rest of the scenario runs, and what has settled is compared with the reference. Lines with `expect` are not judged in forks: a
// crash may make anything late. Invariants are.
//
// Two crashes are one when the daemon made no step between them and has the same effects in flight: what a crash destroys
// is the daemon's memory, which only a step changes, and what a crash decides is the fate of the effects in flight. They differ
// in the instant alone, by less than the distance of two events of the daemon.
//
// The error is open's, or says that the reference itself is broken or is not the same twice.
func CrashEverywhere(open func() (*sim.Run, *World, error), opt CrashOptions) (CrashReport, error) {
	if opt.Limit <= 0 {
		opt.Limit = maxBroken
	}
	opt.Every = max(opt.Every, 1)
	ref, err := newWalk(open)
	if err != nil {
		return CrashReport{}, err
	}
	total := 0
	ref.crash = func(*node, string) bool { total++; return true }
	ref.toEnd()
	if v, broken := ref.World.Auditor.First(); broken {
		v.At -= ref.World.epoch
		return CrashReport{}, fmt.Errorf("crash everywhere: the scenario does not hold without a crash: %q broke at %s: %s", v.Invariant.Phrase(), brief(v.At), v.Text)
	}
	if opt.Distance > 0 {
		opt.Every *= max(1, (total*total/2+opt.Distance-1)/opt.Distance)
	}
	e := enumeration{opt: opt, total: total, reference: ref.World.digest()}
	e.report.Reference = e.reference
	if e.walk, err = newWalk(open); err != nil {
		return CrashReport{}, err
	}
	e.walk.crash = e.point
	e.walk.toEnd()
	if !e.report.Cut && e.walk.World.Hash() != ref.World.Hash() {
		return e.report, errors.New("crash everywhere: the scenario is not deterministic: two runs without a crash have different traces")
	}
	return e.report, nil
}

// enumeration is CrashEverywhere under way.
type enumeration struct {
	opt       CrashOptions
	walk      *walk
	reference Digest
	report    CrashReport
	seen      int // crash points so far, those left out included
	total     int
}

// point tries every crash of one daemon here, and says whether to go on.
func (e *enumeration) point(n *node, event string) bool {
	e.seen++
	if e.opt.Progress != nil {
		defer e.opt.Progress(e.seen, e.total)
	}
	if (e.seen-1)%e.opt.Every != 0 {
		return true
	}
	e.report.Points++
	flight := n.inFlight()
	for _, c := range choices(flight) {
		if e.opt.Interrupted != nil && e.opt.Interrupted() {
			e.report.Cut = true
			return false
		}
		e.report.Forks++
		end := e.walk.fork(n.No, &c, true)
		what := end.broken
		if what == "" {
			d := end.digest()
			if what = e.reference.diff(d); what == "" {
				if e.reference.shifted(d) {
					e.report.Shifted++
				}
				continue
			}
		}
		b := BrokenFork{At: e.walk.World.Now(), Node: int(n.No), Event: event, Choice: c.name, What: what}
		for i := range flight {
			b.InFlight = append(b.InFlight, effectName(&flight[i]))
		}
		loud := e.walk.fork(n.No, &c, false)
		b.Story, b.named = loud.Story(), loud.Named
		e.report.Broken = append(e.report.Broken, b)
		if len(e.report.Broken) >= e.opt.Limit {
			e.report.Cut = true
			return false
		}
	}
	return true
}

// inFlight are the effects of a daemon whose end a crash decides about, oldest first: what it asked of disk, kernel and EC2,
// and answers on their way. Looks are nothing after a crash.
func (d *daemon) inFlight() []event {
	var out []event
	for i := range d.n.w.heap {
		e := &d.n.w.heap[i]
		if !d.wants(e) {
			continue
		}
		switch e.kind {
		case evSaved, evApply, evResult:
			out = append(out, *e)
		case evServe:
			if e.data.(*inFlight).what == 0 {
				out = append(out, *e)
			}
		}
	}
	slices.SortFunc(out, bySeq)
	return out
}

// choice is one outcome of a crash: which effects in flight happen.
type choice struct {
	name  string
	fates map[uint64]fate // by the event's seq; others vanish
}

func (c *choice) fate(e *event) fate { return c.fates[e.seq] }

// choices are {none, all, each one alone}, without those that are the same.
func choices(flight []event) []choice {
	out := []choice{{name: "nothing"}}
	all := choice{"all of it", map[uint64]fate{}}
	for i := range flight {
		all.fates[flight[i].seq] = lands
	}
	if len(flight) > 0 {
		out = append(out, all)
	}
	for i := range flight {
		e := &flight[i]
		one := func(f fate, how string) {
			out = append(out, choice{effectName(e) + how, map[uint64]fate{e.seq: f}})
		}
		switch {
		case e.kind == evServe:
			one(landsLate, ", 110 s late")
		case e.kind == evApply && len(e.data.(*ipam.Apply).Plan.Ops) > 1:
			one(landsHalf, ", half of it")
		}
		one(lands, "")
		if e.kind == evSaved {
			out[len(out)-1].withEarlier(flight[:i], e.data.(*ipam.Save).Store)
		}
		if maps.Equal(out[len(out)-1].fates, all.fates) {
			out = out[:len(out)-1]
		}
	}
	return out
}

// withEarlier lets the earlier Saves of a store happen: it is one FIFO.
func (c *choice) withEarlier(flight []event, s ipam.Store) {
	for i := range flight {
		if p, ok := flight[i].data.(*ipam.Save); ok && p.Store == s {
			c.fates[flight[i].seq] = lands
		}
	}
}

// walk is a world on its way through a scenario that stops at every crash point.
type walk struct {
	*World
	run      *sim.Run
	last     time.Duration // the last line
	until    time.Duration // of crash points: the scenario's own end
	end      time.Duration // everything has settled
	settling bool          // the last line and the end of faults are behind it
	acted    string        // actions since the last event
	standing []standing    // by node
	crash    func(*node, string) bool
	stopped  bool
}

// standing is what makes two crash points one: see CrashEverywhere.
type standing struct {
	life   uint32
	steps  uint64
	flight uint64 // a hash
}

func newWalk(open func() (*sim.Run, *World, error)) (*walk, error) {
	r, w, err := open()
	if err != nil {
		return nil, err
	}
	k := &walk{World: w, last: r.LastLine(), until: r.End(), end: r.End() + settleTime, standing: make([]standing, len(w.nodes))}
	k.run, err = sim.NewRun(unjudged(r.File), k, "sim")
	return k, err
}

// unjudged is the scenario without its expectations.
func unjudged(f *scn.File) *scn.File {
	g := *f
	g.Lines = slices.DeleteFunc(slices.Clone(f.Lines), func(l scn.Line) bool {
		at, ok := l.Stmt.(*scn.At)
		return ok && at.Check != nil
	})
	return &g
}

// toEnd runs the scenario and lets it settle.
func (k *walk) toEnd() {
	k.run.To(k.run.LastLine(), nil)
	if !k.stopped {
		k.Until(k.last, nil)
	}
	if !k.stopped {
		k.World.EndFaults()
		k.settling, k.acted = true, "the end of faults"
		k.Until(k.end, nil)
	}
	if !k.stopped {
		k.World.Settle()
	}
}

// Do carries out an action and remembers that it is a crash point.
func (k *walk) Do(a *verb.Act) int {
	k.acted = "the action " + actions.Describe(a)
	return k.World.Do(a)
}

// Until runs to instant t and stops at the crash points on its way.
func (k *walk) Until(t time.Duration, each func() bool) {
	w := k.World
	if k.acted != "" {
		event := k.acted
		k.acted = ""
		for _, n := range w.nodes[1:] {
			k.point(n, event, nil)
		}
	}
	for !k.stopped && w.due(w.epoch+t) {
		e := w.heap[0]
		w.step()
		switch {
		case e.node != 0:
			k.point(w.nodes[e.node], "", &e)
		case len(w.nodes) == 2:
			k.point(w.nodes[1], "", &e)
		}
		if each != nil && each() {
			return
		}
	}
	if !k.stopped {
		w.now = max(w.now, w.epoch+t)
	}
}

// point is where a daemon may crash, unless it is as it was at the last one.
func (k *walk) point(n *node, event string, e *event) {
	if k.stopped || n.Gone || n.core == nil || k.Now() > k.until {
		return
	}
	s := standing{life: n.life, steps: n.core.Steps}
	for i := range k.heap {
		if f := &k.heap[i]; n.wants(f) && f.kind != evTick && f.kind != evLook {
			s.flight += f.seq * splitmix.Golden // a sum: the heap's order does not show
		}
	}
	if s == k.standing[n.No] {
		return
	}
	k.standing[n.No] = s
	if e != nil {
		event = eventName(e)
	}
	k.stopped = !k.crash(n, event)
}

// settled is a fork at its end.
type settled struct {
	*World
	broken string // the invariant that ended it
}

// fork kills a daemon here and runs what is left of the scenario. A quiet one tells no story.
func (k *walk) fork(no int32, c *choice, quiet bool) settled {
	w := k.World.Clone()
	w.hushed = quiet
	w.Lines.Keep(storyBefore)
	w.nodes[no].crash(c.fate)
	broken := func() bool { _, yes := w.Auditor.First(); return yes }
	if !k.settling {
		r := k.run.Clone(w)
		r.StopAtFirst = true
		r.To(r.LastLine(), nil)
		if !broken() {
			w.Until(k.last, broken)
		}
		w.EndFaults()
	}
	if !broken() {
		w.Until(k.end, broken)
	}
	var underWay []string
	if !broken() {
		underWay = w.Settle()
	}
	v, yes := w.Auditor.First()
	switch {
	case yes:
		return settled{w, fmt.Sprintf("%q broke at %s: %s", v.Invariant.Phrase(), brief(v.At-w.epoch), v.Text)}
	case len(underWay) > 0:
		return settled{w, "it has not settled: " + strings.Join(underWay, "; ")}
	}
	return settled{w, ""}
}

// storyBefore is how many lines from before the crash a broken fork's story keeps.
const storyBefore = 10
