package verb

import "github.com/enilab/enilab/fakes/kernel"

var flushRules = &Verb{
	Name: "flush-rules", On: onNode,
	Doc:    "a stranger removes all ip rules",
	Source: "amazon-vpc-cni-k8s #3162",
	Strike: func(t *Target) Strike {
		return gone(t.Kernel.Interfere(kernel.Accident{What: kernel.FlushRules}), "rule")
	},
	AnyCNI: Survival{Never: true, Why: "only some CNIs say that they put back rules which a stranger takes"},
	Draw:   &Draw{Weight: 2, Draw: onAnyNode("flush-rules")},
}
