package verb

var restartRuntime = &Verb{
	Name: "restart-runtime", On: onNode,
	Doc:      "the container runtime restarts",
	Source:   "containerd #12922",
	Strike:   func(t *Target) Strike { return t.Runtime.RestartRuntime() },
	Survives: Survival{Why: "not on containerd-1.6: it forgets sandboxes that are being made, and their namespaces keep the addresses"},
}
