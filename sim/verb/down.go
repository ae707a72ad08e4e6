package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var down = &Verb{
	Name: "down", On: onEC2,
	Params: []Param{named("for", Duration, "1m", "how long")},
	Doc:    "the EC2 endpoint answers Unavailable",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.Down}) },
	Draw: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 down for=%s", draw.Short(p.Lasts(at, 10*time.Second, p.Long(3*time.Minute))))
	}},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 down for=%s",
			p.Outage(at))
	}},
}
