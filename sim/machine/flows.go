package machine

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/vpc"
)

// Echo lets each of some pods' flows carry a byte there and back, and says how each answers.
func Echo(f *vpc.Flows, pods []cri.Truth, patience time.Duration) []models.Answer {
	addrs := make([]netip.Addr, len(pods))
	for i, pod := range pods {
		addrs[i] = pod.Address
	}
	out := make([]models.Answer, len(pods))
	for i, r := range f.Echo(addrs, patience) {
		out[i] = models.Answer(r)
	}
	return out
}
