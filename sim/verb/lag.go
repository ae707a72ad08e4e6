package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var lag = &Verb{
	Name: "lag", On: onIMDS,
	Params: []Param{named("by", Duration, "30s", "how far behind")},
	Doc:    "instance metadata shows changes that much later",
	Source: "amazon-ecs-cni-plugins#66",
	Strike: func(t *Target) Strike {
		t.Cloud.Model.LagIMDS(t.Cloud.Now, t.Duration("by"), t.ID)
		return Wait("nobody read metadata that showed an older state for it")
	},
	Draw: &Draw{Weight: 3, Draw: drawLag},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "imds lag by=%s", draw.Short(p.Span(5*time.Second, 20*time.Second, 5*time.Second)))
		p.Write(p.Safety, "imds lag by=%s", draw.Short(promptly))
	}},
	Owe:   func(o *draw.Owing, a *Act) { o.Set("lag", a.Duration("by") > promptly) },
	Lasts: always,
}

func drawLag(p *draw.Plan, at time.Duration) {
	most := 100 * time.Second
	if p.Chance(15) {
		most = time.Hour
	}
	by := p.Span(5*time.Second, most, 5*time.Second)
	p.Trails = p.Trails || by > catchesUp
	p.Write(at, "imds lag by=%s", draw.Short(by))
	p.Write(p.Safety, "imds lag by=%s", draw.Short(promptly))
}

// catchesUp is how far behind metadata may be for what it shows last to be known well before the usual end of a plan. A node
// that needs nothing has no other way to hear of an ENI that was attached.
const catchesUp = 10 * time.Minute

// promptly is how late metadata shows changes when nothing is wrong with it.
const promptly = time.Second
