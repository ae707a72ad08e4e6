package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/draw"
)

var addAddresses = &Verb{
	Name: "add-addresses", On: onPod,
	Params: []Param{bare("count", Count, "how many: those of its node first, then free ones of the subnet")},
	Doc:    "a process of the pod, with NET_ADMIN, gives its interface more addresses",
	Source: "rule B",
	Strike: func(t *Target) Strike {
		more := t.Kernel.MoreAddresses(t.Pod, t.Int("count"))
		count := t.Kernel.InterfereAt(t.Pod, kernel.Accident{What: kernel.AddAddresses, Addresses: more})
		if count == 0 {
			return Miss("pod %s has no interface, or all addresses that there are", t.Pod.Name)
		}
		return Hit("the pod gives itself %s", Number(count, "address"))
	},
	Check: func(f *File, a *Act) {
		if a.Int("count") == 0 {
			f.bad("write how many addresses the pod adds", "add-addresses 0 strikes nobody")
		}
	},
	AnyCNI: Survival{Never: true, Why: "a CNI need not look for addresses inside of pods' namespaces"},
	Draw:   &Draw{Weight: 2, Draw: drawAddAddresses, Last: true},
}

// drawAddAddresses is of a pod with NET_ADMIN: of some addresses, or of more than its node has.
func drawAddAddresses(p *draw.Plan, at time.Duration) {
	if l := p.SomeLoad(); l != nil {
		p.Write(at, "pod %s add-addresses %d", p.PodOf(l), p.Between(1, 40))
	}
}
