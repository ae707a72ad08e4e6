package verb

var addThirdParty = &Verb{
	Name: "add-third-party", On: onNode,
	Doc: "others than the CNI use the node: iptables chains in both backends, an nftables table, a marked " +
		"connection, a route, a rule and sysctls, " +
		"as far as the kernel takes them",
	Source: "amazon-vpc-cni-k8s #2840",
	Strike: func(t *Target) Strike { return t.Kernel.AddThirdParty() },
	Survives: Survival{Never: true,
		Why: "it breaks nothing: it is about what has to stay, and a swarm's other faults take it away"},
	Skips: []Skip{{World: "kind", Line: "add-third-party",
		Why: "its nodes' kernels are third parties' already, kube-proxy's and Docker's, which change by themselves: " +
			"world netns looks at what stays"}},
}
