package verb

var roll = &Verb{
	Name: "roll", On: onKube,
	Params: []Param{bare("name", Word, "workload"), bare("count", Count, "pods")},
	Doc:    "deletes a workload's oldest pods; others follow",
	Source: "seeds/001",
	Strike: func(t *Target) Strike { return t.API.Roll(t.Text("name"), t.Int("count")) },
	Check: func(f *File, a *Act) {
		f.isMade(a.Text("name"))
		if a.Int("count") == 0 {
			f.bad("write how many pods are deleted", "roll %s 0 strikes nobody", a.Text("name"))
		}
	},
	Ordinary: true,
	Pods:     true,
}
