package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var silent = &Verb{
	Name: "silent", On: onIMDS,
	Params: []Param{named("for", Duration, "1m", "how long"), whose()},
	Doc:    "instance metadata does not answer",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.IMDSSilent}) },
	Draw:   &Draw{Weight: 2, Draw: drawSilent},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "imds silent for=%s%s",
			p.Outage(at), p.Whose())
	}},
}

func drawSilent(p *draw.Plan, at time.Duration) {
	p.Write(at, "imds silent for=%s%s", draw.Short(p.Lasts(at, 10*time.Second, p.Long(3*time.Minute))), p.Whose())
}
