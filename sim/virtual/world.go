package virtual

import (
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
)

// World is a cluster in virtual time: one heap, N nodes, pure models. It is a value that can be forked.
type World struct {
	models.Host
	timeline.Telling
	clock
	mutant *mutants.Mutant // nil: sound
	hushed bool            // no story is kept
	book   *timeline.Book  // if any, is told what is done to every ENI and attachment; forks share it
	unborn *ipam.Node      // what every daemon's core begins as

	nodes []*node // 1-based: nodes[0] is nil
	marks [256]uint64
	told  time.Duration // when a fleet's figures were told last
	files int           // DEL intents written so far: their names
	tap   *tap

	view     ipam.View
	snapshot judge.Snapshot
}

// storyNodes is up to how many nodes a world keeps a story: a fleet's is told by its figures.
const storyNodes = 8

// Open makes the models and machines that a scenario asks for, starts daemons and workloads, and runs until they are
// ready: that is t=0.
func Open(c *sim.Cluster, seed uint64, m *mutants.Mutant) (*World, error) {
	return OpenWith(c, seed, m, nil)
}

// OpenWith is Open with a book that is told what is done from t=0 on.
func OpenWith(c *sim.Cluster, seed uint64, m *mutants.Mutant, b *timeline.Book) (*World, error) {
	w := &World{mutant: m, hushed: c.Nodes > storyNodes, clock: clock{hash: 14695981039346656037}}
	policy := ipam.Sound()
	if m != nil && m.Policy != nil {
		m.Policy(policy)
	}
	var err error
	if w.Host, err = models.New(w, c, seed, judge.Config{}); err != nil {
		return nil, err
	}
	if w.unborn, err = ipam.New(policy); err != nil {
		return nil, err
	}
	w.nodes = make([]*node, 1, c.Nodes+1)
	for range c.Nodes {
		if err := w.addNode(); err != nil {
			return nil, err
		}
	}
	if err = w.Start(); err != nil {
		return nil, err
	}
	w.pushSnapshot()
	if err = w.WarmUp(func(to time.Duration) bool { w.runUntil(to, nil); return true }); err != nil {
		return nil, err
	}
	w.epoch = w.now
	w.Begin()
	w.book = b
	w.Lines.Clear()
	w.Auditor.Begin()
	clear(w.marks[:])
	return w, nil
}

// Clone forks the world: neither copy influences the other.
func (w *World) Clone() *World {
	c := *w
	c.Host = w.Host.Clone(&c)
	c.heap = slices.Clone(w.heap)
	c.nodes = make([]*node, len(w.nodes))
	for i, n := range w.nodes {
		if n != nil {
			c.nodes[i] = n.clone(&c)
			c.Nodes[i] = &c.nodes[i].Node
		}
	}
	c.Lines = w.Lines.Clone()
	c.view, c.snapshot = ipam.View{}, judge.Snapshot{}
	return &c
}

func (w *World) shell(s mutants.Shell) bool { return w.mutant != nil && w.mutant.Shell&s != 0 }

// Did tells what an action has done.
func (w *World) Did(line string) {
	if !w.hushed {
		w.Lines.Add(w.Now(), timeline.Scenario, line)
	}
}

// Until runs to instant t of the scenario. each, if any, is called after every event and stops the run by returning true.
func (w *World) Until(t time.Duration, each func() bool) { w.runUntil(w.epoch+t, each) }

func (w *World) runUntil(t time.Duration, each func() bool) {
	for w.due(t) {
		w.step()
		if each != nil && each() {
			return
		}
	}
	w.now = max(w.now, t)
}

// step carries out the next event.
func (w *World) step() {
	e := w.pop()
	switch e.kind {
	case evCloud:
		w.Advance()
	case evSnapshot:
		w.judge()
		w.pushSnapshot()
	case evServe:
		w.nodes[e.node].serve(&e)
	default:
		if n := w.nodes[e.node]; !n.Gone {
			n.handle(&e)
		}
	}
	w.Pump()
}

// Happened goes to the node that it is about.
func (w *World) Happened(m *models.Node, e *ec2.Event) {
	if m != nil {
		w.nodes[m.No].happened(e)
	}
}

// Audit is the world's auditor. Its instants are the world's: subtract Epoch for the scenario's.
func (w *World) Audit() *judge.Auditor { return w.Auditor }

// Point is how often the core came through a rare branch since t=0.
func (w *World) Point(m ipam.Point) uint64 { return w.marks[m] }

// Do carries out an action, now.
func (w *World) Do(a *verb.Act) int {
	w.mixString(a.Verb)
	return w.Host.Do(a)
}

// Can says what this world cannot do: nothing that the catalogue has.
func (w *World) Can(l *scn.Line) error {
	if c, ok := l.Stmt.(*scn.Cluster); ok && slices.ContainsFunc(c.Args, func(kv scn.KV) bool { return strings.HasPrefix(kv.Key, "other-") }) {
		return sim.Cannot("sim", sim.SkipOthers)
	}
	if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
		return sim.CannotDo("sim", at.Action, len(w.Nodes)-1)
	}
	return nil
}

// Steady has nothing to wait for: nothing moves while virtual time stands still.
func (w *World) Steady() {}

// Reached says whether the core came through a coverage point since t=0.
func (w *World) Reached(mark string) bool {
	for m := range w.marks {
		if ipam.Point(m).String() == mark {
			return w.marks[m] > 0
		}
	}
	return false
}

// Close has nothing to remove: all of it was memory.
func (w *World) Close() error { return nil }

// Capabilities of virtual time: it only tells what there is.
func (w *World) Capabilities() sim.Capabilities { return sim.Capabilities{Survey: w.Survey} }

var _ sim.World = (*World)(nil)
