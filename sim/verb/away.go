package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var away = &Verb{
	Name: "away", On: onKube,
	Params: []Param{named("for", Duration, "1m", "how long")},
	Doc:    "no daemon reaches the API server; kubelets and controllers do",
	Source: "amazon-vpc-cni-k8s 1.23.0, pkg/eniconfig/eniconfig.go (ErrNoENIConfig)",
	Strike: func(t *Target) Strike { return t.API.Away(t.Duration("for")) },
	Draw: &Draw{Weight: 12, Last: true, Later: true, Fits: customized, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "kube away for=%s", draw.Short(p.Lasts(at, 10*time.Second, p.Long(5*time.Minute))))
	}},
	Skips:  []Skip{{World: "kind", Line: "away", Why: "its API server is a real one, which answers kubelets and daemons alike"}},
	AnyCNI: Survival{Never: true, Why: "what a CNI does without the API server is its own affair"},
}
