package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var lose = &Verb{
	Name: "lose", On: onEC2,
	Params: []Param{call("request"), howMany(), choice("after", "executed", "whether EC2 executes it", "executed",
		"dropped"), whose()},
	Doc:    "the next such requests get no answer",
	Source: "EC2 API, idempotency",
	Strike: func(t *Target) Strike {
		if t.Text("after") == "dropped" {
			return t.fault(ec2.Fault{Kind: ec2.LoseRequest})
		}
		return t.fault(ec2.Fault{Kind: ec2.Lose})
	},
	AnyCNI: Survival{
		Why:    "not of a request that makes an ENI: what nobody knows of is swept within hours",
		Beyond: (*Act).makesENI},
	Draw: &Draw{Weight: 5, Draw: drawLose},
	DrawAny: &Draw{Weight: 4, Draw: func(p *draw.Plan, at time.Duration) {
		after := ""
		if p.Chance(30) {
			after = " after=dropped"
		}
		p.Write(at, "ec2 lose %s%s%s", p.OtherCall(), after, p.Whose())
	}},
}

func drawLose(p *draw.Plan, at time.Duration) {
	after := ""
	if p.Chance(30) {
		after = " after=dropped"
	}
	p.Write(at, "ec2 lose %s%s%s%s", p.Call(), p.Times(3), after, p.Whose())
}
