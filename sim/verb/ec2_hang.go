package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var hangCloud = &Verb{
	Name: "hang", On: onEC2,
	Params: []Param{{Name: "what", Bare: true, Type: Word, Words: []string{"attach", "detach"}, Doc: "what hangs"},
		named("for", Duration, "1m", "how long"), whose()},
	Doc:    "attaches or detaches that begin meanwhile do not end before that",
	Source: "amazon-vpc-cni-k8s #608",
	Strike: func(t *Target) Strike {
		if t.Text("what") == "attach" {
			return t.fault(ec2.Fault{Kind: ec2.AttachHangs})
		}
		return t.fault(ec2.Fault{Kind: ec2.DetachHangs})
	},
	Needs: Needs{Cloud: true},
}
