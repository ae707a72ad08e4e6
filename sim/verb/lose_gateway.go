package verb

import "github.com/enilab/enilab/fakes/kernel"

var loseGateway = &Verb{
	Name: "lose-gateway", On: onPod,
	Doc:    "the pod loses its permanent ARP entry of the gateway",
	Source: "seeds/003",
	Strike: func(t *Target) Strike {
		if t.Kernel.InterfereAt(t.Pod, kernel.Accident{What: kernel.LoseGateway}) == 0 {
			return Miss("pod %s has no permanent entry of its gateway", t.Pod.Name)
		}
		return Hit("the pod has no entry of its gateway")
	},
	AnyCNI: Survival{Never: true, Why: "only some CNIs say that they put back a pod's neighbour entries"},
	Draw:   &Draw{Weight: 2, Draw: onSomePod("lose-gateway")},
}
