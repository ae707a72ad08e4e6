package verb

var hang = &Verb{
	Name: "hang", On: onPod,
	Doc:    "a process of the pod goes into D state",
	Source: "seeds/002",
	Strike: func(t *Target) Strike { return t.Runtime.Hang(t.Pod) },
	Plan:   func(f *File, a *Act) { f.Hung[a.Subject.Pod] = true },
}
