package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var deny = &Verb{
	Name: "deny", On: onEC2,
	Params: []Param{call("request"), named("for", Duration, "1m", "how long"), whose()},
	Doc:    "the node's role loses the permission",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.DenyPermission}) },
	Draw:   &Draw{Weight: 2, Draw: drawDeny},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 deny %s for=%s%s", p.Call(), p.Outage(at), p.Whose())
	}},
}

func drawDeny(p *draw.Plan, at time.Duration) {
	p.Write(at, "ec2 deny %s for=%s%s", p.Call(), draw.Short(p.Lasts(at, 10*time.Second, p.Long(4*time.Minute))),
		p.Whose())
}
