package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

// mostSkew is how far off a signature's time may be ("Signature Version 4": five minutes).
const mostSkew = 5 * time.Minute

var skew = &Verb{
	Name: "skew", On: onEC2,
	Params: []Param{named("by", Duration, "10m", "how much"), choice("clock", "behind", "which way", "behind",
		"ahead"),
		named("for", Duration, "1m", "how long"), whose()},
	Doc:    "the node's clock is wrong: signatures more than five minutes off are refused",
	Source: "EC2 API, RequestExpired",
	Strike: func(t *Target) Strike {
		by := t.Duration("by")
		if t.Text("clock") == "behind" {
			by = -by
		}
		return t.fault(ec2.Fault{Kind: ec2.ClockSkew, By: by})
	},
	Check: func(f *File, a *Act) {
		if by := a.Duration("by"); by <= mostSkew && by > 0 {
			f.bad("EC2 accepts signatures that are up to five minutes off", "skew by=%v strikes nobody", by)
		}
	},
	Draw: &Draw{Weight: 2, Draw: drawSkew},
	DrawAny: &Draw{Weight: 1, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 skew by=%s for=%s%s", draw.Short(p.Span(6*time.Minute, 15*time.Minute, time.Minute)),
			p.Outage(at), p.Whose())
	}},
}

func drawSkew(p *draw.Plan, at time.Duration) {
	clock := ""
	if p.Chance(50) {
		clock = " clock=ahead"
	}
	p.Write(at, "ec2 skew by=%s%s for=%s%s", draw.Short(p.Span(6*time.Minute, 15*time.Minute, time.Minute)), clock,
		draw.Short(p.Lasts(at, 10*time.Second, 3*time.Minute)), p.Whose())
}
