package verb

var deleteGroup = &Verb{
	Name: "delete-group", On: onEC2,
	Params: []Param{bare("name", Word, "its name")},
	Doc:    "somebody deletes a security group that no ENI has any more",
	Strike: func(t *Target) Strike {
		c, name := t.Cloud, t.Text("name")
		if !c.Model.StrangerDeleteGroup(c.Now, name) {
			return Miss("there is no security group %s, or an ENI still has it", name)
		}
		return Hit("the security group %s is gone", name)
	},
	AnyCNI: Survival{Never: true, Why: "not every CNI has its ENIs follow the groups of the primary one"},
}
