package sim

// Anybody says whether a swarm for any CNI draws a verb, and why not or with which arguments. It draws less than what a correct CNI
// survives (Survivable): only what every CNI promises to survive, by the CNI specification or because clouds and machines do it every day.
// What ours repairs because it says so is not owed by others.
func (v *Verb) Anybody() Survival {
	if s := v.Survivable(); s.Never {
		return s
	}
	return anybody[v.Key()]
}

// anybody are the verbs that are not for any CNI, or only in part, by their keys.
var anybody = map[string]Survival{
	"node socket":          {false, "only absent and unimplemented, which fail; a list that lacks living pods is the only memory that some CNIs have"},
	"node restart":         {false, "only with settings that the CNI knows"},
	"node upgrade":         {true, "it exchanges two versions of our records and protocol"},
	"node kill-at":         {false, "not between an ENI's making and its attaching, or its detaching and its deleting: what is left is swept within hours"},
	"node terminate":       {true, "what the instance was making or giving back is swept by others within hours"},
	"node gc":              {false, "only valid=all, for a CNI of specification 1.1.0; what a caller does not list has to go"},
	"node lose-records":    {true, "a CNI's records may be all that it knows of its pods"},
	"node flush-rules":     {true, "only some CNIs say that they put back rules which a stranger takes"},
	"node flush-routes":    {true, "only some CNIs say that they put back routes which a stranger takes"},
	"node flush-nat":       {true, "only some CNIs say that they put back what a stranger takes from netfilter"},
	"node interrupt-dumps": {true, "a kernel does it when it likes: world netns has none on demand"},
	"pod hide":             {true, "who takes the runtime's word for which pods live may do so"},
	"pod lose-gateway":     {true, "only some CNIs say that they put back a pod's neighbour entries"},
	"pod change-mac":       {true, "machines are told to leave the MACs of host veths alone; only some CNIs repair what is changed"},
	"pod lose-alias":       {true, "the alias is ours: others do not write one"},
	"pod add-addresses":    {true, "a CNI need not look for addresses inside of pods' namespaces"},
	"ec2 lose":             {false, "not of a request that makes an ENI: what nobody knows of is swept within hours"},
	"ec2 duplicate":        {false, "not of a request that makes an ENI: what nobody knows of is swept within hours"},
	"ec2 slow":             {false, "below the ten seconds after which AWS's own clients ask again, and not the answer of a request that makes an ENI"},
	"ec2 detach":           {true, "a CNI need not attach again what a stranger detached"},
	"ec2 attach":           {true, "CNIs tell the ENIs that are theirs by tags of their own, and some adopt what has none"},
	"ec2 leak":             {true, "leaked ENIs are looked for every few hours"},
}
