package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

// Draw is how a swarm draws a verb as a fault.
type Draw struct {
	Weight int
	Draw   func(p *draw.Plan, at time.Duration)
	Fits   func(h *draw.Shape) bool // whether a cluster has what it needs; nil: each has
	Begin  func(p *draw.Plan)       // what a scenario needs in which it may be drawn; nil: nothing
	Starts bool                     // a daemon starts after it
	Last   bool                     // in the order of draws it comes after all that are not
	// whether a seed has it is no draw of the seed's own: seeds without it stay what they were before it
	Later bool
}

func hasSecondENI(h *draw.Shape) bool { return h.ENIs > 1 }

// onSomePod draws a verb without arguments for some pod.
func onSomePod(verb string) func(*draw.Plan, time.Duration) {
	return func(p *draw.Plan, at time.Duration) {
		if l := p.SomeLoad(); l != nil {
			p.Write(at, "pod %s %s", p.PodOf(l), verb)
		}
	}
}

// onOneNode draws a verb without arguments for a node, and onAnyNode for a node or for all.
func onOneNode(verb string) func(*draw.Plan, time.Duration) {
	return func(p *draw.Plan, at time.Duration) { p.Write(at, "%s %s", p.OneNode(), verb) }
}

func onAnyNode(verb string) func(*draw.Plan, time.Duration) {
	return func(p *draw.Plan, at time.Duration) { p.Write(at, "%s %s", p.AnyNode(), verb) }
}
