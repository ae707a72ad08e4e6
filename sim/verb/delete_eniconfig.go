package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var deleteENIConfig = &Verb{
	Name: "delete-eniconfig", On: onKube,
	Params: []Param{bare("name", Word, "its name")},
	Doc:    "somebody deletes an ENIConfig",
	Source: "amazon-vpc-cni-k8s README, AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG",
	Strike: func(t *Target) Strike { return t.API.DeleteENIConfig(t.Text("name")) },
	Draw: &Draw{Weight: 2, Last: true, Later: true, Fits: customized, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "kube delete-eniconfig default")
		p.Write(p.Later(at, 10*time.Second, 5*time.Minute), "kube put-eniconfig default in=%d", p.Between(1, 2))
	}},
	Survives: Survival{Why: "where a node has no ENIConfig, pods that need a further ENI do not start"},
	Needs:    Needs{Ours: "ENIConfigs are one CNI's"},
	AnyCNI:   Survival{Never: true, Why: "ENIConfigs are one CNI's"},
}
