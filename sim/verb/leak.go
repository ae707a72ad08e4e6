package verb

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/judge"
)

var leak = &Verb{
	Name: "leak", On: onEC2,
	Params: []Param{choice("of", "another-cluster",
		"whose it was: another cluster's of this VPC, one's in another VPC, or this one's",
		"another-cluster", "another-vpc", "this-cluster"), named("addresses", Count, "2", "secondary addresses")},
	Doc:    "a node that is gone leaves an available ENI, which its CNI made",
	Source: "amazon-vpc-cni-k8s #608",
	Strike: func(t *Target) Strike {
		c := t.Cloud
		subnets, cluster := c.Model.Subnets(), c.Cluster
		subnet, where := subnets[0].ID, "this cluster"
		switch t.Text("of") {
		case "another-cluster":
			cluster, where = cluster+"neighbour", "another cluster"
		case "another-vpc":
			where = "another VPC"
			i := slices.IndexFunc(subnets, func(s ec2.Subnet) bool { return s.VPC != subnets[0].VPC })
			if i < 0 {
				return Miss("there is no other VPC")
			}
			subnet = subnets[i].ID
		}
		const gone = "i-0123456789abcdef0"
		s := ec2.ThirdPartyENI{Subnet: subnet, Description: "aws-K8S-" + gone, Secondaries: t.Int("addresses"),
			Tags: []ec2.Tag{{Key: judge.TagOwner, Value: gone}, {Key: judge.TagCreated,
				Value: "2019-01-02T03:04:05Z"}}}
		if cluster != "" {
			s.Tags = append(s.Tags, ec2.Tag{Key: judge.TagCluster, Value: cluster})
		}
		if _, ok := c.Model.ThirdPartyCreate(c.Now, s); !ok {
			return Miss("EC2 refuses to make an ENI")
		}
		return Hit("a node of %s is gone, and has left an available ENI", where)
	},
	AnyCNI: Survival{Never: true, Why: "leaked ENIs are looked for every few hours"},
	Draw:   &Draw{Weight: 2, Draw: drawLeak, Begin: beginLeak},
	Owe: func(o *draw.Owing, a *Act) {
		o.Shape.Leaked++
		if set := &o.Shape.Settings; a.Text("of") == "this-cluster" && (set.NoSweep || set.IMDSOnly) {
			o.Say("a node of this cluster leaves an ENI, and nobody sweeps")
		}
	},
}

// drawLeak leaves what nobody here may touch, or what a node of this cluster has left: that is swept within hours.
func drawLeak(p *draw.Plan, at time.Duration) {
	if p.Leaks == mostLeaked {
		p.Operate(at)
		return
	}
	p.Leaks++
	of := draw.Pick(&p.Source, "another-cluster", "another-vpc")
	if set := &p.Shape.Settings; !set.NoSweep && !set.IMDSOnly && p.Chance(30) {
		of, p.Sweeps = "this-cluster", true
	}
	p.Write(at, "ec2 leak of=%s addresses=%d", of, p.Between(0, draw.MostForeign-1))
}

// mostLeaked is how many ENIs other clusters leave.
const mostLeaked = 2

func beginLeak(p *draw.Plan) {
	p.Shape.Leaked, p.Shape.Unnamed = mostLeaked, p.Chance(50)
	p.Fit()
}
