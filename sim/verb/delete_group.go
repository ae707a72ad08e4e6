package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var deleteGroup = &Verb{
	Name: "delete-group", On: onEC2,
	Params: []Param{bare("name", Word, "its name")},
	Doc:    "somebody deletes a security group that no ENI has any more",
	Strike: func(t *Target) Strike {
		c, name := t.Cloud, t.Text("name")
		if !c.Model.ThirdPartyDeleteGroup(c.Now, name) {
			return Miss("there is no security group %s, or an ENI still has it", name)
		}
		return Hit("the security group %s is gone", name)
	},
	Draw: &Draw{Weight: 1, Draw: func(p *draw.Plan, at time.Duration) { // its ENIs follow within a look at metadata
		p.Write(at, "ec2 change-groups to=sg-c")
		back := p.Later(at, time.Second, 3*time.Minute)
		p.Write(back, "ec2 change-groups")
		p.Write(p.Later(back, time.Second, 3*time.Minute), "ec2 delete-group sg-c")
	}},
	AnyCNI: Survival{Never: true, Why: "not every CNI has its ENIs follow the groups of the primary one"},
}
