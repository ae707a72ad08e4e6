package netns

import (
	"cmp"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
)

// costs are what a world remembers of what its systems took, and of what they did.
type costs struct {
	adds, dels   percentiles.Times // dels: of pods that had a network until then
	failed       int               // ADDs
	start        time.Duration
	pods         []sim.PodLife // in the world's time
	alive        map[ipam.Attachment]int
	flows, pairs int
}

// ran is a plugin's run that succeeded.
func (c *costs) ran(now time.Duration, verb cri.Verb, att ipam.Attachment, took time.Duration) {
	switch verb {
	case cri.ADD:
		c.adds = append(c.adds, took)
		if c.alive == nil {
			c.alive = map[ipam.Attachment]int{}
		}
		if _, again := c.alive[att]; !again {
			c.alive[att] = len(c.pods)
			c.pods = append(c.pods, sim.PodLife{Made: now})
		}
	case cri.DEL:
		if i, ok := c.alive[att]; ok { // a runtime repeats DELs, which find nothing to do
			c.dels = append(c.dels, took)
			c.pods[i].Ended, c.pods[i].Deleted = now, true
			delete(c.alive, att)
		}
	}
}

// lives are the pods, in the scenario's time.
func (c *costs) lives(epoch time.Duration) []sim.PodLife {
	out := slices.Clone(c.pods)
	for i := range out {
		out[i].Made -= epoch
		if out[i].Deleted {
			out[i].Ended -= epoch
		}
	}
	return out
}

// Figures are what the run has cost until now.
func (w *World) Figures() *sim.Figures {
	f := &sim.Figures{Adds: len(w.costs.adds), Dels: len(w.costs.dels), Add: w.costs.adds.P50(), Del: w.costs.dels.P50(), Failed: w.costs.failed,
		Start: w.costs.start, Ready: w.Epoch(), Calls: map[string]int64{}, Errors: map[string]int64{}, Facts: w.facts(),
		Pods: w.costs.lives(w.Epoch()), Flows: w.costs.flows, Pairs: w.costs.pairs}
	for a, c := range actions.Ledger(w.EC2) {
		if n := c.Total; n > 0 {
			f.Calls[ec2.Action(a).String()] = int64(n)
		}
	}
	for _, r := range w.EC2.LedgerRows() {
		if r.Outcome == ec2.CallFailed || r.Outcome == ec2.CallThrottled {
			f.Errors[cmp.Or(r.Code, "another code")] += int64(r.Calls)
		}
	}
	for n := range w.nodes.living() {
		f.ENIs += len(w.EC2.AttachedENIs(n.Instance))
		if !n.Runs() || n.unmanned() || w.broken != nil {
			continue
		}
		if size, err := n.box.Memory(); err == nil { // it may end at this moment
			f.Memory = max(f.Memory, size)
		}
	}
	return f
}
