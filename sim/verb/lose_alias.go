package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/draw"
)

var loseAlias = &Verb{
	Name: "lose-alias", On: onPod,
	Doc:    "the pod's host veth has no alias: as if amazon-vpc-cni-k8s had made it",
	Source: "takeover from amazon-vpc-cni-k8s",
	Strike: func(t *Target) Strike {
		if t.Kernel.InterfereAt(t.Pod, kernel.Accident{What: kernel.LoseAlias}) == 0 {
			return Miss("pod %s has no host veth with an alias", t.Pod.Name)
		}
		return Hit("the host veth has no alias")
	},
	AnyCNI: Survival{Never: true, Why: "the alias is ours: others do not write one"},
	Needs:  Needs{Ours: "aliases of links are enilab's"},
	Draw:   &Draw{Weight: 3, Draw: drawLoseAlias},
}

// drawLoseAlias is of one pod, or of some: as after another CNI.
func drawLoseAlias(p *draw.Plan, at time.Duration) {
	for range p.Between(1, 4) {
		onSomePod("lose-alias")(p, at)
	}
}
