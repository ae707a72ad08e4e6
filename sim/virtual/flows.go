package virtual

import (
	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/models"
)

// A flow of this world is its pod's sandbox, address and ENI: it goes as long as packets from the VPC get to that sandbox and back. Conntrack has no
// part in it: what is routed and not translated outlives its entry.

// OpenFlows needs nothing but a way there and back.
func (n *node) OpenFlows(pods []cri.Truth) []bool { return n.Reach(pods) }

// CloseFlow has nothing to close.
func (n *node) CloseFlow(cri.Truth) {}

// Echo follows packets. Another pod that has the address knows nothing of the connection, and resets it.
func (n *node) Echo(pods []cri.Truth, _ bool) []models.Answer {
	out := make([]models.Answer, len(pods))
	for i, p := range pods {
		why := n.w.fault(n, p.Address, p.Netns)
		out[i] = models.Answer{Why: why, Cut: why == taken}
	}
	return out
}
