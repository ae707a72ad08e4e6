package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var stale = &Verb{
	Name: "stale", On: onEC2,
	Params: []Param{named("by", Duration, "10s", "how old"), named("for", Duration, "1m", "how long"), whose()},
	Doc:    "Describes answer what was true that long ago",
	Source: "EC2 API, consistency",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.StaleReads, By: t.Duration("by")}) },
	Draw:   &Draw{Weight: 3, Draw: drawStale},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 stale by=%s for=%s%s", draw.Short(p.Span(5*time.Second, 30*time.Second, 5*time.Second)),
			p.Outage(at), p.Whose())
	}},
}

// drawStale stays below the two minutes in which EC2 is consistent at last; metadata may be an hour behind.
func drawStale(p *draw.Plan, at time.Duration) {
	p.Write(at, "ec2 stale by=%s for=%s%s", draw.Short(p.Span(5*time.Second, 100*time.Second, 5*time.Second)),
		draw.Short(p.Lasts(at, 20*time.Second, 4*time.Minute)), p.Whose())
}
