package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var hang = &Verb{
	Name: "hang", On: onPod,
	Doc:     "a process of the pod goes into D state",
	Source:  "seeds/002",
	Strike:  func(t *Target) Strike { return t.Runtime.Hang(t.Pod) },
	Plan:    func(f *File, a *Act) { f.Hung[a.Subject.Pod] = true },
	Draw:    &Draw{Weight: 3, Draw: drawHangPod},
	DrawAny: &Draw{Weight: 2, Draw: drawHangPod},
	// The hang stays open: its name may be another pod's by then.
	Owe:   func(o *draw.Owing, a *Act) { o.Set("the hang of "+a.Subject.String(), true) },
	Lasts: always,
}

func drawHangPod(p *draw.Plan, at time.Duration) {
	l := p.SomeLoad()
	if l == nil {
		return
	}
	p.Unready = true // its name may be another pod's when it ends
	pod := p.PodOf(l)
	p.Write(at, "pod %s hang", pod)
	if p.Chance(60) {
		then := p.Later(at, 0, 30*time.Second)
		p.Wanted = max(p.Wanted, then)
		p.Write(then, "pod %s %s", pod, draw.Pick(&p.Source, "delete", "force-delete"))
	}
	p.Write(p.Later(at, 30*time.Second, 6*time.Minute), "pod %s unhang", pod)
}
