package swarm

import (
	"fmt"
	"slices"
	"time"

	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/models"
)

// How long the parts of a drawn scenario take. The bounds of the liveness phase are far above what a correct CNI needs: two minutes
// until EC2 is consistent and calls in doubt are known, five until an attachment that was never listed is believed gone, a minute for
// a pool to shrink, a minute and a half between two tries of a refused call.
const (
	shortest   = 4 * time.Minute // safety phase
	longest    = 20 * time.Minute
	longestDay = time.Hour        // of one in twenty
	readiness  = 15 * time.Minute // until every pod is ready
	settling   = 20 * time.Minute
)

// Name is what a seed's scenario is called.
func Name(seed uint64) string { return fmt.Sprintf("swarm-%d.scn", seed) }

// Draw writes the scenario of a seed.
func Draw(seed uint64) string {
	p := &drawing{Plan: draw.Plan{Source: draw.NewSource(seed), Ready: readiness, Settle: settling,
		Attached: map[int]int{}}}
	p.Shape = draw.DrawShape(&p.Source)
	p.Fit()
	p.Upgraded = p.Shape.Version
	p.Safety = p.Span(shortest, longest, 30*time.Second)
	if p.Chance(5) {
		p.Safety = p.Span(longest, longestDay, time.Minute)
	}
	p.enable()
	p.StartPods()
	for todo := p.Instants(); len(todo) > 0; {
		at := todo[0]
		todo = todo[1:]
		if p.Chance(45) {
			p.Operate(at)
		} else if p.strike(at) && p.Chance(30) { // something meets the daemon that has hardly started
			then := min(p.Safety, at+models.RestartPause+p.Span(0, 300*time.Millisecond, time.Millisecond))
			i, _ := slices.BinarySearch(todo, then)
			todo = slices.Insert(todo, i, then)
		}
	}
	p.BringBack()
	return p.Text(seed)
}
