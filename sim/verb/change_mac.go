package verb

import "github.com/enilab/enilab/fakes/kernel"

// strangeMAC is what udev gives a link.
const strangeMAC = "02:de:ad:be:ef:01"

var changeMAC = &Verb{
	Name: "change-mac", On: onPod,
	Doc:    "udev gives the host veth another MAC",
	Source: "amazon-vpc-cni-k8s #2103",
	Strike: func(t *Target) Strike {
		if t.Kernel.InterfereAt(t.Pod, kernel.Accident{What: kernel.ChangeMAC, MAC: strangeMAC}) == 0 {
			return Miss("pod %s has no host veth with another MAC", t.Pod.Name)
		}
		return Hit("the host veth has another MAC")
	},
	AnyCNI: Survival{Never: true,
		Why: "machines are told to leave the MACs of host veths alone; only some CNIs repair what is changed"},
	Draw: &Draw{Weight: 2, Draw: onSomePod("change-mac")},
}
