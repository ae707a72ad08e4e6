package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/vpc"
)

// Available says what this machine lacks for a laboratory; nil is nothing.
func Available() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the laboratory needs Linux: network namespaces, veth and nftables (this is %s)", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the laboratory needs root, for namespaces of its own: run it with sudo")
	}
	ns, err := vpc.NewNamespace()
	if err != nil {
		return fmt.Errorf("the laboratory needs network namespaces, and making one failed: %w (in a container: run it privileged)", err)
	}
	return ns.Close()
}

// slack is how much later than in the simulator a mutant may show: a daemon is heard of once it has come to rest.
const slack = 10 * time.Second

// Place is world netns, for runner.Load, on a machine where Available says nothing.
func Place(p Parts) *runner.Place {
	open := func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := Open(c, seed, m, p)
		if err != nil {
			return nil, err // and no World that is nil
		}
		return w, nil
	}
	place := &runner.Place{Name: "netns", Open: open, Slack: slowed(slack), Plays: plays}
	if p.Find != nil {
		place.Resolve = func(name string) error { _, err := p.Find(name); return err }
	}
	switch {
	case p.System != nil:
		place.System = p.System.Name + " " + p.System.Version
		place.Plays = func(*mutants.Mutant) error {
			return errors.New("a mutant is of enilab's daemon, and this is " + place.System)
		}
		p.RealTime, p.WithoutBooks = true, true
	case p.WithoutBooks:
		place.Plays = func(*mutants.Mutant) error {
			return errors.New("what it breaks first is said for those who have books: without them run it alone, with --against")
		}
	}
	place.Without = p.without()
	return place
}

// plays: what a mutant of the core decides, it decides in every world, which the laboratory proves at every step of a daemon. So only
// those that replace something outside of the core have to be run on a real kernel too.
func plays(m *mutants.Mutant) error {
	if m.Kind == mutants.Plan || m.Kind == mutants.ShellPart {
		return nil
	}
	return fmt.Errorf("a %v mutant decides the same in every world: run it in sim", m.Kind)
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

func (w *World) open(c *sim.Cluster, seed uint64) (err error) {
	// Real time adds to what the simulator can judge exactly: a reply leaves when its goroutine runs, and what the daemon calls two
	// instants is one to it.
	bounds := judge.Bounds{Reply: slowed(250 * time.Millisecond), CoolDown: slowed(250 * time.Millisecond)}
	if w.Host, err = models.New(w, c, seed, judge.Config{Bounds: bounds, Without: w.parts.without()}); err != nil {
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

// addNode launches an instance and makes the machine.
func (w *World) addNode() error {
	n := &instance{w: w, nodeDaemon: nodeDaemon{pause: models.RestartPause}}
	n.nodeDaemon.n, n.kubelet, n.endpoints = n, newKubelet(n), endpoints{n: n}
	n.packets = packets{n: n, flows: n.w.network.Flows(node.EchoPort)}
	err := w.Launch(&n.Node, n, w.Random())
	if err != nil {
		return err
	}
	w.nodes = append(w.nodes, n)
	n.realKernel = realKernel{n: n, links: machine.Links{}, mirror: newMirror(w.Random())}
	if w.unwanted() {
		return errors.New("interrupted while the machines were made")
	}
	if n.box, err = node.Start(w.keeper.spec(n)); err != nil {
		return err
	}
	if err := w.record.tap(n.Name(), n.box.Netns()); err != nil {
		return err
	}
	n.stopKill = context.AfterFunc(w.ctx, func() { // who waits for an answer of the machine gets none soon
		time.AfterFunc(hurry, n.box.Kill)
	})
	go n.follow()
	w.pump() // its primary ENI is plugged in
	if w.broken != nil {
		return w.broken
	}
	if err := n.configure(); err != nil {
		return err
	}
	if err := n.serve(); err != nil {
		return fmt.Errorf("%s: %w", n.Name(), err)
	}
	w.at(w.now()+time.Duration(w.Random()%uint64(100*time.Millisecond)), n.start)
	return nil
}

// judgeDebuts ends a warm-up in which a daemon of another system answers, and starts no pod (I16).
func (w *World) judgeDebuts() {
	for n := range w.nodes.living() {
		if n.system == nil || w.doomed || !n.debut.hopeless(w.now()) {
			continue
		}
		words := ""
		if !n.unmanned() {
			words = n.lastSaid()
		}
		n.tell(n.program() + " starts no pod: " + n.debut.said)
		w.Auditor.Podless(w.now(), int(n.No), w.now()-n.debut.since, n.debut.failed, n.debut.said, words)
		w.doomed = true
	}
}

// neverBegan is why there is no t=0: what broke before.
type neverBegan struct{ broken []judge.Violation }

func (e *neverBegan) Error() string { return e.broken[0].Text }

// Violations are those before t=0.
func (e *neverBegan) Violations() []judge.Violation { return e.broken }
