package verb

var unassign = &Verb{
	Name: "unassign", On: onEC2,
	Params: []Param{bare("pod", Word, "whose address")},
	Doc:    "a stranger unassigns a pod's address",
	Strike: func(t *Target) Strike {
		pod := t.Text("pod")
		address := t.Cloud.Address(pod)
		if !address.IsValid() {
			return Miss("pod %s has no address", pod)
		}
		if !t.Cloud.Model.ThirdPartyUnassign(t.Cloud.Now, address) {
			return Miss("no ENI has the address of pod %s as a secondary one", pod)
		}
		return Hit("no ENI has the address of %s any more", pod)
	},
	Check: func(f *File, a *Act) { f.Pod(f.pos, a.Text("pod")) },
	Survives: Survival{Never: true,
		Why: "the address may be another node's before anybody notices, and the pod has no other"},
}
