package verb

import "github.com/enilab/enilab/sim/draw"

var fragmentSubnet = &Verb{
	Name: "fragment-subnet", On: onEC2,
	Params: []Param{named("leave", Count, "0", "free /28 prefixes")},
	Doc:    "strangers take an address of each aligned /28 of the subnet; `drain-subnet` gives them back",
	Source: "EC2 user guide, prefix delegation: InsufficientCidrBlocks",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		subnet := c.Model.Subnets()[0].ID
		before := c.Model.FreePrefixes(subnet)
		c.Model.FragmentSubnet(c.Now, subnet, t.Int("leave"))
		if taken := before - c.Model.FreePrefixes(subnet); taken > 0 {
			return Hit("strangers take an address of %s each", Number(taken, "free /28"))
		}
		return Miss("the subnet has no more than %d free /28 prefixes", t.Int("leave"))
	},
	Owe:   func(o *draw.Owing, a *Act) { o.Set(Drained, true) },
	Lasts: always,
}
