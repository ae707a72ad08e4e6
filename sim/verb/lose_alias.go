package verb

import (
	"github.com/enilab/enilab/fakes/kernel"
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
}
