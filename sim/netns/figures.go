package netns

import (
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
)

// costs are what a world remembers of what its systems took.
type costs struct {
	adds, dels percentiles.Times
	failed     int // ADDs
	start      time.Duration
}

// ran is a plugin's run that succeeded.
func (c *costs) ran(verb cri.Verb, took time.Duration) {
	switch verb {
	case cri.ADD:
		c.adds = append(c.adds, took)
	case cri.DEL:
		c.dels = append(c.dels, took)
	}
}

// Figures are what the run has cost until now.
func (w *World) Figures() *sim.Figures {
	f := &sim.Figures{Adds: len(w.costs.adds), Dels: len(w.costs.dels), Add: w.costs.adds.P50(), Del: w.costs.dels.P50(), Failed: w.costs.failed,
		Start: w.costs.start, Ready: w.Epoch(), Calls: map[string]int64{}}
	for a, c := range actions.Ledger(w.EC2) {
		if n := c.Total; n > 0 {
			f.Calls[ec2.Action(a).String()] = int64(n)
		}
	}
	for _, n := range w.nodes[1:] {
		if n.Gone || !n.Runs() || n.unmanned() || w.broken != nil {
			continue
		}
		if size, err := n.box.Memory(); err == nil { // it may end at this moment
			f.Memory = max(f.Memory, size)
		}
	}
	return f
}
