package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var duplicate = &Verb{
	Name: "duplicate", On: onEC2,
	Params: []Param{call("request"), howMany(), whose()},
	Doc:    "the next such requests arrive twice: both are executed, the second answer is seen",
	Source: "EC2 API, idempotency",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.Duplicate}) },
	AnyCNI: Survival{
		Why:    "not of a request that makes an ENI: what nobody knows of is swept within hours",
		Beyond: (*Act).makesENI},
	Draw: &Draw{Weight: 3, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 duplicate %s%s%s", p.Call(), p.Times(3), p.Whose())
	}},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 duplicate %s%s",
			p.OtherCall(), p.Whose())
	}},
}
