package verb

var terminate = &Verb{
	Name: "terminate", On: onNode,
	Doc:      "terminates the instance",
	Source:   "amazon-vpc-cni-k8s #608",
	Strike:   func(t *Target) Strike { return t.Kernel.Terminate() },
	Survives: Survival{Why: "its pods are lost; the other nodes survive it and give back what it left"},
	AnyCNI:   Survival{Never: true, Why: "what the instance was making or giving back is swept by others within hours"},
	Skips: []Skip{{World: "kind", Line: "terminate",
		Why: "a node container that is removed stays a node of its cluster until somebody deletes the object: world netns terminates instances"}},
}
