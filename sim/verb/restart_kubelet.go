package verb

var restartKubelet = &Verb{
	Name: "restart-kubelet", On: onNode,
	Doc:     "kubelet restarts",
	Source:  "k8s #59741",
	Strike:  func(t *Target) Strike { return t.Runtime.RestartKubelet() },
	Draw:    &Draw{Weight: 3, Draw: onAnyNode("restart-kubelet")},
	DrawAny: &Draw{Weight: 2, Draw: onAnyNode("restart-kubelet")},
}
