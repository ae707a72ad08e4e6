package verb

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/judge"
)

var tagSubnet = &Verb{
	Name: "tag-subnet", On: onEC2,
	Params: []Param{ofSubnets(),
		choice("cni", "", "its tag kubernetes.io/role/cni", "1", "0", "none"),
		named("cluster", Word, "", "a cluster's name, for which it is tagged besides")},
	Doc:    "somebody tags a subnet as one for pods, or as none",
	Source: "amazon-vpc-cni-k8s README, ENABLE_SUBNET_DISCOVERY",
	Strike: func(t *Target) Strike {
		c, n := t.Cloud, t.Int("subnet")
		role, changed := t.Text("cni"), false
		id := c.Subnet(n).ID
		if role != "" {
			changed = c.Model.ThirdPartyTag(c.Now, id, judge.TagRole, map[string]string{"1": "1", "0": "0"}[role])
		}
		if name := t.Text("cluster"); name != "" {
			changed = c.Model.ThirdPartyTag(c.Now, id, judge.TagForCluster+name, "shared") || changed
		}
		if !changed {
			return Miss("subnet %d is tagged so already", n)
		}
		return Hit("the tags of subnet %d are %s", n, tagsOf(c.Subnet(n).Tags))
	},
	Check: func(f *File, a *Act) {
		if a.Text("cni") == "" && a.Text("cluster") == "" {
			f.bad("such as cni=1, cni=0, cni=none or cluster=NAME", "tag-subnet without a tag changes nothing")
		}
	},
	Survives: Survival{Why: "where no subnet is left for pods, none can start",
		Beyond: func(a *Act) bool { return a.Int("subnet") == 1 && a.Text("cni") == "0" }},
	Draw: &Draw{Weight: 1, Draw: func(p *draw.Plan, at time.Duration) {
		if len(p.Shape.Subnets) == 0 || p.Chance(30) {
			p.Write(at, "ec2 tag-subnet cni=%s", draw.Pick(&p.Source, "1", "none"))
			return
		}
		n, tag := p.Between(2, 3), draw.Pick(&p.Source, "1", "0", "none")
		p.Write(at, "ec2 tag-subnet subnet=%d cni=%s", n, tag)
		if n == 2 || tag == "0" { // interfaces in it do not take new pods, and are in the way of others
			p.Write(p.Later(at, 10*time.Second, 5*time.Minute), "ec2 tag-subnet subnet=%d cni=1", n)
		}
	}},
	Owe: func(o *draw.Owing, a *Act) {
		if n := a.Int("subnet"); n > 1 && a.Text("cni") != "" {
			o.Set(fmt.Sprintf("the exclusion of subnet %d", n), a.Text("cni") == "0")
		}
	},
	AnyCNI: Survival{Never: true, Why: "which subnets are for pods is said by one CNI's tags"},
}

// tagsOf is a list of tags for people.
func tagsOf(tags []ec2.Tag) string {
	var out []string
	for _, t := range tags {
		out = append(out, t.Key+"="+t.Value)
	}
	if len(out) == 0 {
		return "gone"
	}
	return strings.Join(out, ", ")
}
