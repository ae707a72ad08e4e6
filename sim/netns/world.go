package netns

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/vpc"
)

// World is a cluster of real nodes. One goroutine uses it: the one that calls its methods.
type World struct {
	models.Host
	loop
	observer
	findings
	timeline.Telling
	parts  Parts
	keeper keeper
	mutant *mutants.Mutant

	begun  bool // t=0 has been
	doomed bool // a daemon has not served, and so there will be no t=0
	around *outskirts
	byHand bool // a user ended a daemon
	events uint64

	network *vpc.Network
	witness *judge.Witness
	book    *timeline.Book // since t=0
	api     wholeCluster
	entry   string // its file in the registry
	record  *record
	costs   costs
}

// Open makes the world that a scenario asks for, starts its daemons and workloads, and runs it until they are ready: that is t=0.
func Open(c *sim.Cluster, seed uint64, m *mutants.Mutant, p Parts) (*World, error) {
	if m != nil && len(p.Play) == 0 {
		return nil, errors.New("open the laboratory: nobody can play the daemon with a mutant: Parts.Play is empty")
	}
	if p.Context == nil {
		p.Context = context.Background()
	}
	if err := p.resolve(c); err != nil {
		return nil, err
	}
	w := &World{loop: newLoop(p.Context, c.Nodes), parts: p, mutant: m, book: timeline.NewBook()}
	w.observer, w.api.w = observer{w: w, snapshotAt: never}, w
	w.then = func() {
		w.pump()
		w.api.bell.ring(w.api.shown)
	}
	w.clock.still = w.parts.RealTime
	w.keeper = ours{w}
	if w.parts.System != nil {
		w.keeper = described{w}
		var err error
		if w.around, err = newOutskirts(w.WholeCluster()); err != nil {
			return nil, err
		}
	}
	w.witness = &judge.Witness{Eyes: eyes{w}, Cluster: c.Name, Story: &w.Lines, Book: w.book, Mutant: m, Heard: w.heard}
	if err := w.open(c, seed); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// bounds are what real time adds to what the simulator can judge exactly: a reply leaves when its goroutine runs, and what the daemon
// calls two instants is one to it.
func bounds() judge.Bounds {
	return judge.Bounds{Reply: slowed(250 * time.Millisecond), CoolDown: slowed(250 * time.Millisecond)}
}

func (w *World) open(c *sim.Cluster, seed uint64) (err error) {
	if w.Host, err = models.New(w, c, seed, judge.Config{Bounds: bounds(), Without: w.parts.without()}); err != nil {
		return err
	}
	for _, s := range w.parts.all() {
		w.Prefixes = max(w.Prefixes, s.Node.Prefixes)
	}
	w.witness.Audit = w.Auditor
	if w.network, err = vpc.New(vpc.Config{VPC: c.CIDRs(), Subnets: c.Prefixes()}); err != nil {
		return err
	}
	if w.parts.Record != nil {
		if w.record, err = newRecord(w.parts.Record(), w.network.Namespace()); err != nil {
			return err
		}
	}
	for range c.Nodes {
		if err := w.addNode(); err != nil {
			return err
		}
	}
	if err := w.Start(); err != nil {
		return err
	}
	helpers := map[string]int{}
	for n := range w.nodes.living() {
		helpers[n.Name()] = n.box.PID()
	}
	if w.entry, err = register(helpers, w.routerPath()); err != nil {
		return err
	}
	err = w.WarmUp(func(to time.Duration) bool {
		w.until(to, nil)
		w.judgeDebuts()
		return w.broken == nil && !w.doomed && !w.unwanted()
	})
	switch {
	case w.broken != nil:
		return w.broken
	case w.unwanted():
		return fmt.Errorf("interrupted while the cluster started, after %v: %s", w.now().Round(time.Millisecond), w.Host.Unready())
	case w.doomed:
		return &neverBegan{w.Auditor.Violations()}
	case err != nil:
		return err
	}
	w.begun = true
	w.Begin()
	w.late = lateness{rested: w.late.rested}
	w.witness.Begin()
	w.epoch = w.witness.Epoch()
	return nil
}

// pump lets the models say what they have to say, and makes sure that it is judged.
func (w *World) pump() {
	w.events++
	if w.broken == nil {
		w.Pump()
	}
	w.arm()
}

// Clock is the models' time.
func (w *World) Clock() time.Duration { return w.now() }

// AdvanceAt lets EC2 go on by itself at an instant.
func (w *World) AdvanceAt(at time.Duration) { w.at(at, w.Advance) }

// Did tells what an action has done.
func (w *World) Did(line string) { w.Lines.Add(w.Now(), timeline.Scenario, line) }

// Audit is the world's auditor. Its instants are the world's: subtract Epoch for the scenario's.
func (w *World) Audit() *judge.Auditor { return w.Auditor }

// Unlike says why virtual time cannot tell the same; "" is nothing.
func (w *World) Unlike() string {
	switch {
	case w.parts.WithoutBooks:
		return "there are no books"
	case w.byHand:
		return "somebody ended a daemon, and no line asks for that"
	case len(w.crashes) > 0:
		return "a daemon ended by itself"
	}
	return ""
}

// Popped is how many things happened.
func (w *World) Popped() uint64 { return w.events }

// Reached says whether a daemon came through a coverage point since t=0.
func (w *World) Reached(mark string) bool { return w.witness.Reached(mark) }

func (w *World) log(format string, args ...any) {
	if w.parts.Log != nil {
		w.parts.Log(w.Now(), fmt.Sprintf(format, args...))
	}
}

// Close ends every process and removes everything. The error says what would not go.
func (w *World) Close() error {
	if !w.mail.Close() {
		return nil
	}
	w.mail.End()
	if w.entry != "" {
		labs.Forget(w.entry)
	}
	errs := make([]error, len(w.nodes)) // that of the VPC is the first
	var all sync.WaitGroup
	for i, n := range w.nodes[1:] {
		all.Go(func() { errs[1+i] = n.close(w.unwanted()) })
	}
	all.Wait()
	errs = append(errs, w.record.close(w.Timeline()))
	if w.network != nil {
		errs[0] = w.network.Close()
	}
	return errors.Join(errs...)
}

// Capabilities of a world whose daemons are processes, in real time, beside the books of their recordings.
func (w *World) Capabilities() sim.Capabilities {
	return sim.Capabilities{Broken: w.Err, Disagreements: w.Disagreements,
		Book: func() *timeline.Book { return w.book }, Incomparable: w.Unlike,
		Crashes: w.Crashes, TooSlow: w.TooSlow, Figures: w.Figures, Survey: w.Survey, Unknown: w.Unknown, Excuse: w.Excuse}
}

var _ sim.World = (*World)(nil)
