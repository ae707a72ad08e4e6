package swarm_test

import (
	"slices"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/swarm"
)

// unmet are mutants that a batch of this size does not meet: each breaks something only when two rare things come together.
var unmet = []string{
	"no-kernel-veto",         // a record, an alias and the runtime's word have to be gone at once, as in takeover.scn
	"durable-before-written", // the daemon has to die in the instant between an answer and a write: enilab run --crash-everywhere is for that
	"views-show-now",         // metadata has to lag by minutes while a pool shrinks and grows again, as in stale-metadata.scn: one seed in 1,500
	"mac-as-found",           // records have to be lost while a pod's MAC has changed, as in records-lost.scn
	"quarantine-for-ever",    // something has to use an address when its cool-down ends, and a daemon's life less long, as in quarantine.scn
	"link-does-not-matter",   // an interface has to go while EC2 or metadata says nothing of it, as in link-gone.scn
	"sweeps-the-living",      // a daemon has to be kept from an interface of its own for half an hour, as in neighbour-held.scn
	"waits-for-the-runtime",  // the runtime has to be away until somebody minds, as in socket-mismatch.scn: one seed in 500
	"full-subnet-again",      // third parties have to keep a subnet's addresses to the end, as in subnets.scn: a swarm's give them back
	"waits-for-a-prefix",     // nor do they leave the /28s of a subnet in pieces, as in prefix-fragmented.scn
	"tags-of-birth",          // tags have to change just before EC2 denies DescribeSubnets, as in subnets-stale.scn: one seed in 100,000
	"each-for-itself",        // it only costs more requests, and a swarm counts none, as pod-a-second.scn does
	"sweeps-foreign-rules",   // third parties have to use the node, as in third-party.scn: a swarm's flush-rules takes away what they have there
}

// TestSwarmBites: a swarm that finds nothing says something only if it finds what is there. Each mistake that somebody's daemon made is
// found by some seed that finds nothing of the kind in ours.
func TestSwarmBites(t *testing.T) {
	if testing.Short() {
		t.Skip("a seed or two catch few; scenarios prove each mutant")
	}
	const last = 400
	for _, m := range mutants.All() {
		by := catches(t, &m, last)
		switch met := !slices.Contains(unmet, m.Name); {
		case by > 0 && !met:
			t.Errorf("%s is caught by seed %d: take it out of the list of those that are not", m.Name, by)
		case by == 0 && met:
			t.Errorf("%s: %d seeds, and none catches it", m.Name, last)
		}
	}
}

// catches is the first seed under which the mutant breaks otherwise than our daemon; 0 is none.
func catches(t *testing.T, m *mutants.Mutant, last uint64) uint64 {
	t.Helper()
	for seed := uint64(1); seed <= last; seed++ {
		name, text := swarm.Name(seed), swarm.Draw(seed)
		theirs := must.Get(swarm.PlayAgainst(name, text, seed, m, nil))(t)
		if theirs.Broken == nil {
			continue
		}
		ours := must.Get(swarm.Play(name, text, seed, nil))(t)
		if ours.Broken == nil || !ours.Broken.Same(theirs.Broken) {
			return seed
		}
	}
	return 0
}
