package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var duplicate = &Verb{
	Name: "duplicate", On: onEC2,
	Params: []Param{call("request"), howMany(), whose()},
	Doc:    "the next such requests arrive twice: both are executed, the second answer is seen",
	Source: "EC2 API, idempotency",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.Duplicate}) },
	AnyCNI: Survival{Why: "not of a request that makes an ENI: what nobody knows of is swept within hours", Beyond: (*Act).makesENI},
	Needs:  Needs{Cloud: true},
}
