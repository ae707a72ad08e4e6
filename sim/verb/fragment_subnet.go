package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var fragmentSubnet = &Verb{
	Name: "fragment-subnet", On: onEC2,
	Params: []Param{named("leave", Count, "0", "free /28 prefixes"), ofSubnets()},
	Doc:    "strangers take an address of each free /28 of a subnet; `drain-subnet` gives them back",
	Source: "EC2 user guide, prefix delegation: InsufficientCidrBlocks",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		subnet := c.Subnet(t.Int("subnet")).ID
		before := c.Model.FreePrefixes(subnet)
		c.Model.FragmentSubnet(c.Now, subnet, t.Int("leave"))
		if taken := before - c.Model.FreePrefixes(subnet); taken > 0 {
			return Hit("strangers take an address of %s each", Number(taken, "free /28"))
		}
		return Miss("the subnet has no more than %d free /28 prefixes", t.Int("leave"))
	},
	AnyCNI: Survival{Never: true,
		Why: "CNIs that have prefixes alone wait for one: amazon-vpc-cni-k8s does"},
	Draw: &Draw{Weight: 3, Draw: drawFragmentSubnet, Last: true, Later: true,
		Fits: func(h *draw.Shape) bool { return h.Settings.PrefixDelegation }},
	Owe:   func(o *draw.Owing, _ *Act) { o.Set(Drained, true) },
	Lasts: always,
}

// drawFragmentSubnet has third parties take an address of each free /28, and give all back, perhaps.
func drawFragmentSubnet(p *draw.Plan, at time.Duration) {
	p.Write(at, "ec2 fragment-subnet leave=%d", p.Between(0, 3))
	p.Write(p.Later(at, 30*time.Second, 10*time.Minute), "ec2 drain-subnet leave=%d", draw.Usable(p.Shape.Bits))
}
