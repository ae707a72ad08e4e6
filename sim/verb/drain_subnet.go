package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var drainSubnet = &Verb{
	Name: "drain-subnet", On: onEC2,
	Params: []Param{named("leave", Count, "0", "free addresses"), ofSubnets()},
	Doc:    "strangers take a subnet's addresses, or give theirs back",
	Source: "seeds/004",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		switch n := c.Model.DrainSubnet(c.Now, c.Subnet(t.Int("subnet")).ID, t.Int("leave")); {
		case n > 0:
			return Hit("strangers take %s", Number(n, "address"))
		case n < 0:
			return Hit("strangers give %s back", Number(-n, "address"))
		}
		return Miss("strangers could neither take addresses nor give any back")
	},
	Draw: &Draw{Weight: 2, Draw: drawDrainSubnet},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 drain-subnet leave=%d", p.Between(0, 4))
		p.Write(p.Later(at, 20*time.Second, draw.AnyOutage), "ec2 drain-subnet leave=%d", draw.Usable(p.Shape.Bits))
	}},
	Owe:   func(o *draw.Owing, a *Act) { o.Set(Drained, a.Int("leave") < draw.Usable(o.Shape.Bits)) },
	Lasts: always,
}

// drawDrainSubnet has third parties take addresses, and give back all of them.
func drawDrainSubnet(p *draw.Plan, at time.Duration) {
	p.Write(at, "ec2 drain-subnet leave=%d", p.Between(0, 6))
	p.Write(p.Later(at, 30*time.Second, 6*time.Minute), "ec2 drain-subnet leave=%d", draw.Usable(p.Shape.Bits))
}

// Drained is a subnet of which third parties have the addresses.
const Drained = "drain-subnet"
