package verb

import (
	"strings"
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var putENIConfig = &Verb{
	Name: "put-eniconfig", On: onKube,
	Params: []Param{bare("name", Word, "its name"),
		named("in", Count, "1", "which of the cluster's subnets"),
		named("groups", Word, "none", "security groups with commas between, such as sg-web,sg-db; they are made if they are not there")},
	Doc:    "somebody makes an ENIConfig, or changes it",
	Source: "amazon-vpc-cni-k8s README, AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
	Strike: func(t *Target) Strike {
		var groups []string
		if list := t.Text("groups"); list != "none" {
			groups = strings.Split(list, ",")
		}
		return t.API.PutENIConfig(t.Text("name"), t.Int("in"), groups)
	},
	Check: func(f *File, a *Act) {
		if n := a.Int("in"); (n < 1 || n > f.Subnets) && f.Headed {
			f.bad("name it with subnets=CIDR,... on the cluster line", "there is no subnet %d: the cluster has %d", n, f.Subnets)
		}
		if list := a.Text("groups"); list != "none" {
			for _, g := range strings.Split(list, ",") {
				if !strings.HasPrefix(g, "sg-") {
					f.bad("such as sg-web", "put-eniconfig: %q is no name of a security group", g)
				}
			}
		}
	},
	Survives: Survival{Why: "where an ENIConfig names a subnet of another zone, pods that need a further ENI do not start"},
	Draw: &Draw{Weight: 3, Last: true, Later: true, Fits: customized, Draw: func(p *draw.Plan, at time.Duration) {
		in := p.Between(1, 3)
		p.Write(at, "kube put-eniconfig default in=%d groups=%s", in, draw.Pick(&p.Source, "none", "sg-a", "sg-a,sg-b"))
		if in == 3 { // another zone's
			p.Write(p.Later(at, 10*time.Second, 5*time.Minute), "kube put-eniconfig default in=%d", p.Between(1, 2))
		}
	}},
	Needs:  Needs{Ours: "ENIConfigs are one CNI's"},
	AnyCNI: Survival{Never: true, Why: "ENIConfigs are one CNI's"},
}

// customized says whether nodes have custom networking.
func customized(h *draw.Shape) bool { return h.Settings.CustomNetwork }
