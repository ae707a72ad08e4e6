package netns

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/sim"
)

// findings are what may not be in a world, and that no auditor judges.
type findings struct {
	differ  []string
	crashes []sim.Failure
}

// maxTold bounds what is told of a difference, or of a daemon that ends again and again: the first ones say it all.
const maxTold = 10

// Disagreements are the differences between what the processes and the kernel did and what core and model do: none, if the simulator can
// be believed.
func (f *findings) Disagreements() []string { return f.differ }

// Crashes are the daemons that ended by themselves since t=0.
func (f *findings) Crashes() []sim.Failure { return f.crashes }

// disagree notes a difference of a node's.
func (f *findings) disagree(at time.Duration, node, what string) {
	if len(f.differ) < maxTold {
		f.differ = append(f.differ, fmt.Sprintf("%v %s: %s", at.Round(time.Millisecond), node, what))
	}
}

// crashed notes a daemon that ended by itself.
func (f *findings) crashed(at time.Duration, text string) {
	if len(f.crashes) < maxTold {
		f.crashes = append(f.crashes, sim.Failure{At: at, Text: text})
	}
}
