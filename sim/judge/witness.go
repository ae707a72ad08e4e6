package judge

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
)

// Eyes are what a world sees of its nodes.
type Eyes interface {
	// Now is the world's clock, the daemons' own.
	Now() time.Duration
	// Held counts the live network namespaces of a node that have an address.
	Held(node int32, a netip.Addr) int
	// Ran is told of a plan that has run, with what the mutant made of it.
	Ran(l *Life, a *ipam.Apply, done *ipam.Applied)
}

// Witness is what the daemons of one world have in common.
type Witness struct {
	Eyes    Eyes
	Cluster string // CLUSTER_NAME of the daemons; "" is unset
	Audit   *Auditor
	Story   *timeline.Timeline
	Book    *timeline.Book  // written from t=0 on; nil: it is not compared
	Mutant  *mutants.Mutant // plays the daemons; nil: none
	// Heard, if any, is told of every input before the second Node is stepped with it.
	Heard func(l *Life, in ipam.Input)

	leaves map[int32]bool       // nodes whose daemon leaves untagged ENIs alone
	theirs map[ec2.ENIID]theirs // attached to a node (I14)

	begun bool
	epoch time.Duration // t=0 of the scenario
	marks [256]uint64
}

// Begin says that it is t=0 of the scenario: what happened before is no part of the story, and no mark was reached.
func (w *Witness) Begin() {
	w.begun, w.epoch = true, w.Eyes.Now()
	w.Story.Clear()
	w.Audit.Begin()
	clear(w.marks[:])
}

// Epoch is when t=0 was, by the world's clock; 0 before.
func (w *Witness) Epoch() time.Duration { return w.epoch }

// Now is the instant of the scenario.
func (w *Witness) Now() time.Duration { return w.Eyes.Now() - w.epoch }

// Reached says whether a daemon came through a coverage point since t=0.
func (w *Witness) Reached(mark string) bool {
	for m := range w.marks {
		if ipam.Point(m).String() == mark {
			return w.marks[m] > 0
		}
	}
	return false
}

// policy finds the policy of a recording.
func (w *Witness) policy(name string) (*ipam.Policy, bool) {
	p := ipam.Sound()
	if w.Mutant != nil && w.Mutant.Policy != nil {
		w.Mutant.Policy(p)
	}
	return p, w.Mutant == nil || name == w.Mutant.Name
}

// Died says that a node's daemon crashed or left: nothing is heard of it any more.
func (w *Witness) Died(node int32) { w.Audit.Died(w.Eyes.Now(), int(node)) }

// Torn says that a daemon is killed now, for the book: whether what it had under way was done is no part of the story. Nil is one
// without a recording.
func (w *Witness) Torn(l *Life) {
	if w.Book == nil || l == nil {
		return
	}
	var open []ipam.Attachment
	for _, req := range slices.Sorted(maps.Keys(l.reqs)) {
		open = append(open, l.reqs[req].Att)
	}
	w.Book.Died(w.Eyes.Now(), l.node, open)
}
