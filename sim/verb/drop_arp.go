package verb

import "github.com/enilab/enilab/fakes/kernel"

var dropARP = &Verb{
	Name: "drop-arp", On: onNode,
	Doc:    "a third party clears the node's neighbour table, the entries too by which it answers ARP for others",
	Source: "ip-neighbour(8), flush",
	Strike: func(t *Target) Strike {
		return gone(t.Kernel.Interfere(kernel.Accident{What: kernel.DropARP}), "neighbour")
	},
	AnyCNI: Survival{Never: true, Why: "only some CNIs say that they put back neighbours which a third party takes"},
	Draw:   &Draw{Weight: 2, Last: true, Later: true, Draw: onAnyNode("drop-arp")},
}
