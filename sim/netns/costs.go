package netns

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/sim"
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
