package swarm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/virtual"
)

// What breaks without being an invariant of the catalogue has a name too.
const (
	Expectation = "an expectation"      // a line that expects something
	Started     = "the cluster starts"  // the pods of the start lines
	Settled     = "everything settles"  // by the end nothing is under way
	Ends        = "the run ends"        // within mostEvents
	Lives       = "the daemon runs on"  // it does not end by itself
	Sound       = "the simulator works" // it does not panic
	Drawable    = "a drawn scenario is one"
)

// mostEvents bounds a run: a drawn scenario has some ten thousand, and one that never rests would go on for ever.
const mostEvents = 5_000_000

// Broken is what broke first in a run.
type Broken struct {
	Invariant string // its phrase, or one of the names above
	Cause     string
	Text      string // as it was told
	At        time.Duration
	Node      int // 0: the cluster
}

// Same says whether two runs broke alike.
func (b *Broken) Same(o *Broken) bool { return b.Invariant == o.Invariant && b.Cause == o.Cause }

// Outcome is how a run ended.
type Outcome struct {
	Broken *Broken // nil: it held
	Marks  []string
	Struck map[string]int // lines that struck, by their verbs' keys; of a run that held
	Met    map[Met]bool   // in world sim
	Events uint64
	Hash   uint64
	Cut    bool // interrupted: nothing is known
	// Unknown is why nothing is known although the run was not interrupted: the machine did not keep up, or the laboratory broke.
	Unknown string
}

// Play plays a scenario, in its first variant, with every invariant judged. The error says why it was refused before it ran. stop, if
// any, is asked now and then, and ends the run by returning true.
func Play(name, text string, seed uint64, stop func() bool) (*Outcome, error) {
	return PlayAgainst(name, text, seed, nil, stop)
}

// PlayAgainst is Play with a mutant in the place of the daemon: what the swarm would find in a daemon with that
// mistake.
func PlayAgainst(name, text string, seed uint64, m *mutants.Mutant, stop func() bool) (*Outcome, error) {
	f, c, err := Read(name, []byte(text))
	if err != nil {
		return nil, err
	}
	return play(f, c, seed, m, stop), nil
}

// Read parses, expands and checks a scenario, in its first variant and without the lines that are not for world sim.
func Read(name string, data []byte) (*scn.File, *sim.Cluster, error) {
	return ReadFor(world, name, data)
}

// ReadFor is Read for another world.
func ReadFor(world, name string, data []byte) (*scn.File, *sim.Cluster, error) {
	f, err := scn.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	if f, err = f.Expand(f.Variants()[0]); err != nil {
		return nil, nil, err
	}
	for _, l := range f.Lines {
		if l.Stmt != nil && !l.Guard.Allows(world) {
			f = f.Without(l.Number)
		}
	}
	c, err := sim.Check(f)
	return f, c, err
}

const world = "sim"

func play(f *scn.File, c *sim.Cluster, seed uint64, m *mutants.Mutant, stop func() bool) (o *Outcome) {
	o = &Outcome{Struck: map[string]int{}, Met: map[Met]bool{}}
	defer func() {
		if p := recover(); p != nil {
			o.Broken = NewBroken(Sound, fmt.Sprintf("panic: %v", p), 0, 0)
		}
	}()
	w, err := virtual.Open(c, seed, m)
	if err != nil {
		o.Broken = NewBroken(Started, err.Error(), 0, 0)
		return o
	}
	r, err := sim.NewRun(f, watched{w, c.Nodes, o.Met}, world)
	if err != nil {
		o.Broken = NewBroken(Started, err.Error(), 0, 0)
		return o
	}
	r.StopAtFirst = true
	asked := 0
	v := r.Finish(func() bool {
		asked++
		return w.Popped() > mostEvents || stop != nil && asked%1024 == 0 && stop()
	})
	o.Events, o.Hash = w.Popped(), w.Hash()
	o.Broken = first(v, state(w, c.Nodes))
	if v.Cut && o.Broken == nil {
		if o.Cut = w.Popped() <= mostEvents; !o.Cut {
			o.Broken = NewBroken(Ends, fmt.Sprintf("more than %d events", mostEvents), v.Ended, 0)
		}
	}
	o.cover(f, w, v)
	return o
}

// first is what broke first. Of what did not come true, the state in the end says more than the line.
func first(v *sim.Verdict, state string) *Broken {
	var b *Broken
	if len(v.Violations) > 0 {
		x := v.Violations[0]
		b = NewBroken(phrase(x.Invariant), x.Text, x.At, x.Node)
	}
	if len(v.Failures) > 0 && (b == nil || v.Failures[0].At < b.At) {
		x := v.Failures[0]
		text := x.Text
		if len(v.UnderWay) > 0 { // it never came true; else it did so too late
			text += "; in the end: " + gravest(v.UnderWay, state)
		}
		b = NewBroken(Expectation, text, x.At, 0)
	}
	if b == nil && !v.Settled() {
		b = NewBroken(Settled, "still under way at the end: "+gravest(v.UnderWay, state), v.Ended, 0)
	}
	return b
}

// state is what the daemons say of themselves, without numbers: pods that wait for an address wait for another reason than others.
func state(w sim.World, nodes int) string {
	out := ""
	for _, c := range [...]struct{ metric, none, some string }{
		{"addresses.free", "no address is free", ""},
		{"addresses.quarantined", "", "addresses are quarantined"},
	} {
		for n := 1; n <= nodes; n++ {
			v, ok := w.Measure(scn.Subject{Kind: scn.Node, Node: n}, c.metric)
			text := c.some
			if v == 0 {
				text = c.none
			}
			if ok && text != "" {
				out += "; " + text
				break
			}
		}
	}
	return out
}

// gravest is the pod that does not run, if there is one, and the state: what is under way on its node is because of it, and another thing
// each time.
func gravest(underWay []string, state string) string {
	if i := slices.IndexFunc(underWay, func(s string) bool { return strings.HasPrefix(s, "pod ") }); i >= 0 {
		return underWay[i] + state
	}
	return underWay[0]
}

// NewBroken is what broke, by its text.
func NewBroken(invariant, text string, at time.Duration, node int) *Broken {
	return &Broken{Invariant: invariant, Cause: Cause(text), Text: text, At: at, Node: node}
}

func phrase(id judge.ID) string {
	for _, i := range judge.Catalogue() {
		if i.ID == id {
			return i.Phrase
		}
	}
	return id.String()
}

// cover notes where the run came through, and which of its lines struck. A run that was stopped does not know that.
func (o *Outcome) cover(f *scn.File, w *virtual.World, v *sim.Verdict) {
	for _, m := range ipam.Marks() {
		if w.Reached(m) {
			o.Marks = append(o.Marks, m)
		}
	}
	missed := map[scn.Pos]bool{}
	for _, u := range v.Unplayed {
		missed[u.Pos] = true
	}
	for _, m := range v.Maybe {
		missed[m.Pos] = !m.Struck
	}
	for i := range f.Lines {
		l := &f.Lines[i]
		if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil && o.Broken == nil && !missed[l.Pos] {
			o.Struck[verb.Of(at.Action).Key()]++
		}
	}
}
