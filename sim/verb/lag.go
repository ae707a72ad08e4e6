package verb

var lag = &Verb{
	Name: "lag", On: onIMDS,
	Params: []Param{named("by", Duration, "30s", "how far behind")},
	Doc:    "instance metadata shows changes that much later",
	Source: "amazon-ecs-cni-plugins#66",
	Strike: func(t *Target) Strike {
		t.Cloud.Model.LagIMDS(t.Cloud.Now, t.Duration("by"), t.ID)
		return Wait("nobody read metadata that showed an older state for it")
	},
	Needs: Needs{Cloud: true},
}
