package verb

import (
	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/draw"
)

var restartRuntime = &Verb{
	Name: "restart-runtime", On: onNode,
	Doc:    "the container runtime restarts",
	Source: "containerd #12922",
	Strike: func(t *Target) Strike { return t.Runtime.RestartRuntime() },
	Survives: Survival{
		Why: "not on containerd-1.6: it forgets sandboxes that are being made, and their namespaces keep the addresses"},
	Draw: &Draw{Weight: 3, Draw: onAnyNode("restart-runtime"),
		Fits: func(h *draw.Shape) bool { return h.Runtime != "containerd-1.6" }},
	DrawAny: &Draw{Weight: 2, Draw: onAnyNode("restart-runtime")},
	Owe: func(o *draw.Owing, _ *Act) {
		if o.Runtime == cri.Containerd16 {
			o.Say("containerd 1.6 that restarts forgets sandboxes that are being made, and their namespaces keep " +
				"the addresses")
		}
	},
}
