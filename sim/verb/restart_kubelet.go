package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var restartKubelet = &Verb{
	Name: "restart-kubelet", On: onNode,
	Doc:    "kubelet restarts",
	Source: "k8s #59741",
	Strike: func(t *Target) Strike { return t.Runtime.RestartKubelet() },
	Draw: &Draw{Weight: 3, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "%s restart-kubelet", p.AnyNode())
	}},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "%s restart-kubelet", p.AnyNode())
	}},
}
