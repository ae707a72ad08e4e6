package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var throttle = &Verb{
	Name: "throttle", On: onEC2,
	Params: []Param{call("request"), howMany(), whose()},
	Doc:    "somebody else empties the bucket before the next such requests",
	Source: "EC2 API, throttling",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.ThrottleBurst}) },
	Draw: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 throttle %s%s%s", p.Call(), p.Times(5), p.Whose())
	}},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 throttle %s%s%s", p.Call(), p.Times(3), p.Whose())
	}},
}
