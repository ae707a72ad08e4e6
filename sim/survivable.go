package sim

import "github.com/enilab/enilab/sim/scn"

// Key names a verb together with what it is done to, as "node hang" and "ec2 hang" are two.
func (v *Verb) Key() string {
	switch v.On[0] {
	case scn.Node, scn.AllNodes:
		return "node " + v.Name
	case scn.Pod:
		return "pod " + v.Name
	}
	return scn.Subject{Kind: v.On[0]}.String() + " " + v.Name
}

// Survival says whether a correct CNI survives what a verb does: pods come to run, what is broken is repaired in time, and nothing is
// left behind. A swarm draws only what one survives; else its violations would be nobody's mistake.
type Survival struct {
	Never bool   // whatever its arguments are
	Why   string // why no CNI survives it, or when none does; "" is that a correct one always survives
}

// Word is the short form: "yes", "no", or "partly" for a verb that only some arguments or circumstances make deadly.
func (s Survival) Word() string {
	switch {
	case s.Never:
		return "no"
	case s.Why != "":
		return "partly"
	}
	return "yes"
}

// deadly are the verbs that no CNI survives, by their keys.
var deadly = map[string]Survival{
	"node flush-routes":    {false, "not table=254: the machine's default route is in it, and no CNI knows what it was"},
	"node restart-runtime": {false, "not on containerd-1.6: it forgets sandboxes that are being made, and their namespaces keep the addresses"},
	"node add-third-party": {true, "it breaks nothing: it is about what has to stay, and a swarm's other faults take it away"},
	"node terminate":       {false, "its pods are lost; the other nodes survive it and give back what it left"},
	"ec2 unassign":         {true, "the address may be another node's before anybody notices, and the pod has no other"},
	"ec2 remove":           {true, "the addresses of the pods on that ENI are anybody's, and their pods have no others"},
	"ec2 detach":           {false, "not while the cloud fails or the daemon dies: nobody can notice and attach it again in time"},
	"kube hold-flows":      {true, "a client gives up sooner than a pod that strangers cut off has to be back: it is about what breaks nothing"},
	"ec2 allow":            {true, "what its role leaves out no CNI can do, and nobody gives it back: pods that need it wait for ever"},
	"ec2 draw":             {true, "it draws such things too: strangers that unassign addresses and delete ENIs under live pods"},
}

// Survivable says whether a correct CNI survives the verb.
func (v *Verb) Survivable() Survival { return deadly[v.Key()] }
