package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var forceDelete = &Verb{
	Name: "force-delete", On: onPod,
	Doc:     "takes the object away at once; kubelet kills in the background",
	Source:  "seeds/002",
	Strike:  func(t *Target) Strike { return t.API.Delete(t.Subject.Pod, true) },
	Draw:    &Draw{Weight: 3, Draw: drawForceDelete},
	DrawAny: &Draw{Weight: 3, Draw: drawForceDelete},
	Pods:    true,
}

func drawForceDelete(p *draw.Plan, at time.Duration) {
	p.Wanted = max(p.Wanted, at)
	onSomePod("force-delete")(p, at)
}
