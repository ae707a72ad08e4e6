package verb

var hide = &Verb{
	Name: "hide", On: onPod,
	Doc:    "the runtime's list lacks the pod's sandbox although it lives",
	Source: "containerd restart.go",
	Strike: func(t *Target) Strike { return t.Runtime.Hide(t.Pod) },
	AnyCNI: Survival{Never: true, Why: "who takes the runtime's word for which pods live may do so"},
	Skips:  []Skip{{World: "kind", Line: "hide", Why: "containerd forgets no sandbox on demand"}},
}
