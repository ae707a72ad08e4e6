package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var inUse = &Verb{
	Name: "in-use", On: onEC2,
	Params: []Param{howMany(), whose()},
	Doc:    "the next ENIs to be deleted are said to be in use",
	Source: "amazon-vpc-cni-k8s #608",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.DeleteInUse}) },
	Draw: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 in-use%s%s", p.Times(4),
			p.Whose())
	}},
	DrawAny: &Draw{Weight: 4, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 in-use%s%s", p.Times(3),
			p.Whose())
	}},
}
