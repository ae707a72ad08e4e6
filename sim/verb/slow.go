package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

// anyDelay is how long a request may take for any CNI: AWS's clients ask again after ten seconds.
const anyDelay = 8 * time.Second

var slow = &Verb{
	Name: "slow", On: onEC2,
	Params: []Param{call("request"), named("by", Duration, "5s", "how much"), howMany(),
		choice("way", "there", "before EC2 executes it, or after", "there", "back"), whose()},
	Doc: "the next such requests take that much longer",
	Strike: func(t *Target) Strike {
		if t.Text("way") == "back" {
			return t.fault(ec2.Fault{Kind: ec2.SlowAnswer, Slow: t.Duration("by")})
		}
		return t.fault(ec2.Fault{Kind: ec2.Slow, Slow: t.Duration("by")})
	},
	AnyCNI: Survival{
		Why: "below the ten seconds after which AWS's own clients ask again, and not the answer of a request that " +
			"makes an ENI",
		Beyond: func(a *Act) bool { return a.Duration("by") > anyDelay || a.makesENI() && a.Text("way") == "back" }},
	Draw: &Draw{Weight: 4, Draw: drawSlow},
	DrawAny: &Draw{Weight: 4, Draw: func(p *draw.Plan, at time.Duration) {
		by := draw.Short(p.Span(time.Second, anyDelay, time.Second))
		if p.Chance(40) {
			p.Write(at, "ec2 slow %s by=%s way=back%s", p.OtherCall(), by, p.Whose())
			return
		}
		p.Write(at, "ec2 slow %s by=%s%s%s", p.Call(), by, p.Times(3), p.Whose())
	}},
}

func drawSlow(p *draw.Plan, at time.Duration) {
	way := ""
	if p.Chance(40) {
		way = " way=back"
	}
	p.Write(at, "ec2 slow %s by=%s%s%s%s", p.Call(), draw.Short(p.Span(time.Second, 25*time.Second, time.Second)),
		p.Times(3), way, p.Whose())
}
