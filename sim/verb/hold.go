package verb

var hold = &Verb{
	Name: "hold", On: onNode,
	Doc:    "keeps the daemon down",
	Source: "rule F",
	Strike: func(t *Target) Strike { return t.Daemon.Hold() },
	Plan:   func(f *File, a *Act) { f.Held[a.Subject.Node] = true },
	Needs:  Needs{Daemon: true},
}
