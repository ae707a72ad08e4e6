package verb

import "github.com/enilab/enilab/fakes/ec2"

var drawFaults = &Verb{
	Name: "draw", On: onEC2,
	Params: []Param{bare("seed", Count, "what they are drawn from"), named("faults", Count, "1", "how many")},
	Doc:    "faults of any kind that the seed picks, each over within two minutes",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		c.Model.Advance(c.Now)
		for k := range t.Int("faults") {
			f := ec2.DrawFault(uint64(t.Int("seed"))<<20+uint64(k), c.Now, c.Model.Running())
			f.ID = t.ID
			c.Model.Fault(f)
		}
		return Wait("nobody met one of its faults")
	},
	Survives: Survival{Never: true,
		Why: "it draws such things too: strangers that unassign addresses and delete ENIs under live pods"},
	AtRandom: true,
}
