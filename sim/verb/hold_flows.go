package verb

var holdFlows = &Verb{
	Name: "hold-flows", On: onKube,
	Doc: "a client in the VPC opens a TCP connection to every pod, to those that come too, and keeps a byte " +
		"going in each",
	Source: "amazon-vpc-cni-k8s #3162",
	Strike: func(t *Target) Strike { return t.Network.HoldFlows() },
	Survives: Survival{Never: true,
		Why: "a client gives up sooner than a pod that strangers cut off has to be back: it is about what breaks " +
			"nothing"},
	Pods:  true,
	Lasts: always,
}
