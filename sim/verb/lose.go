package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var lose = &Verb{
	Name: "lose", On: onEC2,
	Params: []Param{call("request"), howMany(), choice("after", "executed", "whether EC2 executes it", "executed", "dropped"), whose()},
	Doc:    "the next such requests get no answer",
	Source: "EC2 API, idempotency",
	Strike: func(t *Target) Strike {
		if t.Text("after") == "dropped" {
			return t.fault(ec2.Fault{Kind: ec2.LoseRequest})
		}
		return t.fault(ec2.Fault{Kind: ec2.Lose})
	},
	AnyCNI: Survival{Why: "not of a request that makes an ENI: what nobody knows of is swept within hours", Beyond: (*Act).makesENI},
	Needs:  Needs{Cloud: true},
}
