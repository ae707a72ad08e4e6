package verb

import (
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

// defaultGroup stands for the group that every VPC has.
const defaultGroup = "default"

var changeGroups = &Verb{
	Name: "change-groups", On: onEC2,
	Params: []Param{named("to", Word, defaultGroup, "their names with commas between, such as sg-web,sg-db; default is the VPC's"),
		named("node", Count, "0", "whose; 0 is everybody's")},
	Doc:    "somebody gives the nodes' primary ENIs other security groups, which are made if they are not there",
	Source: "amazon-vpc-cni-k8s, pkg/awsutils/awsutils.go (RefreshSGIDs)",
	Strike: func(t *Target) Strike {
		c, groups := t.Cloud, strings.Split(t.Text("to"), ",")
		for i, g := range groups {
			if g != defaultGroup {
				c.Model.ThirdPartyMakeGroup(c.Now, "", g)
				continue
			}
			groups[i] = defaultOf(c.Model)
		}
		changed := 0
		for n := 1; n <= c.Nodes; n++ {
			if t.Int("node") != 0 && t.Int("node") != n {
				continue
			}
			if list := c.Model.AttachedENIs(c.Instance(n)); len(list) > 0 && c.Model.ThirdPartyGroups(c.Now, list[0], groups) {
				changed++
			}
		}
		if changed == 0 {
			return Miss("no node's primary ENI has other groups than these")
		}
		return Hit("the primary ENIs of %s have the security groups %s", Number(changed, "node"), t.Text("to"))
	},
	Check: func(f *File, a *Act) {
		for _, g := range strings.Split(a.Text("to"), ",") {
			if g != defaultGroup && !strings.HasPrefix(g, "sg-") {
				f.bad("such as sg-web", "change-groups: %q is no name of a security group", g)
			}
		}
	},
	Draw: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "ec2 change-groups to=%s", []string{"sg-a", "sg-b", "sg-a,sg-b"}[p.Between(0, 2)])
		if p.Chance(50) {
			p.Write(p.Later(at, time.Second, 3*time.Minute), "ec2 change-groups")
		}
	}},
	AnyCNI: Survival{Never: true, Why: "not every CNI has its ENIs follow the groups of the primary one"},
}

// defaultOf is the default group of the cluster's VPC.
func defaultOf(m *ec2.Cloud) string {
	vpc, groups := m.Subnets()[0].VPC, m.Groups()
	i := slices.IndexFunc(groups, func(g ec2.SecurityGroup) bool { return g.VPC == vpc && g.Name == defaultGroup })
	return groups[i].ID
}
