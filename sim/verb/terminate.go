package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var terminate = &Verb{
	Name: "terminate", On: onNode,
	Doc:      "terminates the instance",
	Source:   "amazon-vpc-cni-k8s #608",
	Strike:   func(t *Target) Strike { return t.Kernel.Terminate() },
	Survives: Survival{Why: "its pods are lost; the other nodes survive it and give back what it left"},
	AnyCNI: Survival{Never: true,
		Why: "what the instance was making or giving back is swept by others within hours"},
	Draw: &Draw{Weight: 2, Draw: drawTerminate,
		Fits:  func(h *draw.Shape) bool { return h.Nodes > 1 && !h.Settings.NoSweep },
		Begin: func(p *draw.Plan) { p.Doomed = p.Between(1, p.Shape.Nodes) }},
	Owe: func(o *draw.Owing, a *Act) {
		if o.Shape.Settings.NoSweep {
			o.Say("a node is terminated and nobody sweeps: what it was making is left for ever")
		}
		o.Set("the loss of "+a.Subject.String(), true)
	},
}

func drawTerminate(p *draw.Plan, at time.Duration) {
	if at < p.Safety/3 || p.Gone {
		p.Operate(at)
		return
	}
	p.Gone = true
	p.Write(at, "node-%d terminate", p.Doomed)
}
