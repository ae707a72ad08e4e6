package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var hold = &Verb{
	Name: "hold", On: onNode,
	Doc:    "keeps the daemon down",
	Source: "rule F",
	Strike: func(t *Target) Strike { return t.Daemon.Hold() },
	Plan:   func(f *File, a *Act) { f.Held[a.Subject.Node] = true },
	Needs:  Needs{Daemon: true},
	Draw:   &Draw{Weight: 3, Draw: drawHold},
	DrawAny: &Draw{Weight: 3, Draw: func(p *draw.Plan, at time.Duration) {
		node := p.AnyNode()
		p.Write(at, "%s hold", node)
		p.Write(p.Later(at, time.Second, draw.AnyOutage), "%s unhold", node)
	}},
	Owe:      func(o *draw.Owing, a *Act) { o.Toggle("hold", a.Subject, true) },
	AtDaemon: true,
	Lasts:    always,
}

func drawHold(p *draw.Plan, at time.Duration) {
	node := p.AnyNode()
	p.Write(at, "%s hold", node)
	p.Write(p.Later(at, time.Second, 4*time.Minute), "%s unhold", node)
}
