package verb

import "github.com/enilab/enilab/fakes/kernel"

var flushNAT = &Verb{
	Name: "flush-nat", On: onNode,
	Doc:    "a stranger runs nft flush ruleset",
	Source: "rule H",
	Strike: func(t *Target) Strike {
		if t.Kernel.Interfere(kernel.Accident{What: kernel.FlushNAT}) == 0 {
			return Miss("there are no tables of nftables")
		}
		return Hit("the tables of nftables are gone")
	},
	AnyCNI: Survival{Never: true, Why: "only some CNIs say that they put back what a stranger takes from netfilter"},
	Draw:   &Draw{Weight: 2, Draw: onAnyNode("flush-nat")},
}
