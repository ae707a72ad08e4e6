package verb

import "github.com/enilab/enilab/fakes/kernel"

var dropForward = &Verb{
	Name: "drop-forward", On: onNode,
	Doc:    "a firewall, Docker or an administrator sets the policy of iptables' chain FORWARD to DROP",
	Source: "seeds/004, amazon-vpc-cni-k8s #535",
	Strike: func(t *Target) Strike {
		if t.Kernel.Interfere(kernel.Accident{What: kernel.DropForward}) == 0 {
			return Miss("the policy is DROP already")
		}
		return Hit("the policy of FORWARD is DROP")
	},
	AnyCNI: Survival{Never: true, Why: "amazon-vpc-cni-k8s's manual tells the operator to set the policy to ACCEPT"},
	Draw:   &Draw{Weight: 2, Last: true, Later: true, Draw: onAnyNode("drop-forward")},
}
