package verb

import "github.com/enilab/enilab/fakes/ec2"

var allow = &Verb{
	Name: "allow", On: onEC2,
	Params: []Param{{Name: "actions", Bare: true, Type: Actions,
		Doc: "all that the role names, such as CreateNetworkInterface,CreateTags"}, whose()},
	Doc:    "the nodes' role names these actions and no other, until another one takes its place",
	Source: "AmazonEKS_CNI_Policy",
	// It strikes whoever asks for what the role leaves out; a role that gives back what an earlier one took has struck
	// at once.
	Strike: func(t *Target) Strike {
		names, _ := ec2.ParseActions(t.Text("actions")) // checked by Bind
		narrow := false
		for _, f := range t.Cloud.Model.Faults() {
			narrow = narrow || f.Kind == ec2.AllowOnly && f.Allow&^names == 0 && f.Allow != names
		}
		s := t.fault(ec2.Fault{Kind: ec2.AllowOnly, Allow: names})
		if narrow {
			return Hit("the role names what an earlier one did not")
		}
		return s
	},
	Survives: Survival{Never: true,
		Why: "what its role leaves out no CNI can do, and nobody gives it back: pods that need it wait for ever"},
	Lasts:    always,
	Replaces: true,
}
