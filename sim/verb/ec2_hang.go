package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var hangCloud = &Verb{
	Name: "hang", On: onEC2,
	Params: []Param{{Name: "what", Bare: true, Type: Word, Words: []string{"attach", "detach"}, Doc: "what hangs"},
		named("for", Duration, "1m", "how long"), whose()},
	Doc:    "attaches or detaches that begin meanwhile do not end before that",
	Source: "amazon-vpc-cni-k8s #608",
	Strike: func(t *Target) Strike {
		if t.Text("what") == "attach" {
			return t.fault(ec2.Fault{Kind: ec2.AttachHangs})
		}
		return t.fault(ec2.Fault{Kind: ec2.DetachHangs})
	},
	Draw: &Draw{Weight: 3, Draw: drawHangCloud},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 hang %s for=%s%s", draw.Pick(&p.Source, "attach", "detach"), p.Outage(at), p.Whose())
	}},
}

func drawHangCloud(p *draw.Plan, at time.Duration) {
	p.Write(at, "ec2 hang %s for=%s%s", draw.Pick(&p.Source, "attach", "detach"),
		draw.Short(p.Lasts(at, 20*time.Second, 8*time.Minute)), p.Whose())
}
