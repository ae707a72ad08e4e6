package verb

var unhang = &Verb{
	Name: "unhang", On: onPod,
	Doc:    "that process ends",
	Source: "seeds/002",
	Strike: func(t *Target) Strike { return t.Runtime.Unhang(t.Pod) },
	Check: func(f *File, a *Act) {
		if !f.Hung[a.Subject.Pod] && f.Whole {
			f.bad("hang has one go into D state", "unhang strikes nobody: no line hangs a process of pod %s",
				a.Subject.Pod)
		}
	},
	Closes: hang,
}
