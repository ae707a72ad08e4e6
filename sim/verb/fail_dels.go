package verb

var failDELs = &Verb{
	Name: "fail-dels", On: onNode,
	Params: []Param{howMany(), named("after", Duration, "0s", "how long each takes")},
	Doc:    "a plugin before ours fails the next DELs, so that the runtime repeats them",
	Source: "seeds/003",
	Strike: func(t *Target) Strike { return t.Runtime.FailDELs(t.Int("times"), t.Duration("after")) },
}
