package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var hide = &Verb{
	Name: "hide", On: onPod,
	Doc:    "the runtime's list lacks the pod's sandbox although it lives",
	Source: "containerd restart.go",
	Strike: func(t *Target) Strike { return t.Runtime.Hide(t.Pod) },
	AnyCNI: Survival{Never: true, Why: "who takes the runtime's word for which pods live may do so"},
	Skips:  []Skip{{World: "kind", Line: "hide", Why: "containerd forgets no sandbox on demand"}},
	Draw:   &Draw{Weight: 1, Draw: drawHide},
	Owe:    func(o *draw.Owing, _ *Act) { o.Hidden++ },
}

// drawHide is for good: the sandbox runs on, and nobody knows of it.
func drawHide(p *draw.Plan, at time.Duration) {
	if l := p.SomeLoad(); l != nil && p.Hidden < 2 {
		p.Hidden++
		p.Write(at, "pod %s hide", p.PodOf(l))
	}
}
