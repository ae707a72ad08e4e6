package verb

import (
	"slices"
	"time"

	"github.com/enilab/enilab/sim/draw"
)

// failing are runtime sockets that say that they fail.
var failing = []string{"absent", "unimplemented"}

var socket = &Verb{
	Name: "socket", On: onNode,
	Params: []Param{choice("cri", "", "what stands behind the runtime endpoint", "right", "absent", "unimplemented",
		"empty", "partial")},
	Doc:    "changes what the daemon's runtime socket is",
	Source: "seeds/000",
	Strike: func(t *Target) Strike { return t.Runtime.Socket(t.Text("cri")) },
	Plan:   func(f *File, a *Act) { f.Sockets = f.Sockets || a.Text("cri") != "right" },
	Check: func(f *File, a *Act) {
		if a.Text("cri") == "right" && !f.Sockets && f.Whole {
			f.bad("the socket is right from the start", "socket cri=right changes nothing: no line has it be another")
		}
	},
	AnyCNI: Survival{
		Why: "only absent and unimplemented, which fail; a list that lacks living pods is the only memory that some " +
			"CNIs have",
		Beyond: func(a *Act) bool { return a.Text("cri") != "right" && !slices.Contains(failing, a.Text("cri")) }},
	Needs: Needs{Runtime: true},
	Draw:  &Draw{Weight: 4, Draw: drawSocket},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		node := p.OneNode()
		p.Write(at, "%s socket cri=%s", node, draw.Pick(&p.Source, failing...))
		p.Write(p.Later(at, 10*time.Second, draw.AnyOutage), "%s socket cri=right", node)
	}},
	Owe:      func(o *draw.Owing, a *Act) { o.Toggle("socket", a.Subject, a.Text("cri") != "right") },
	Lasts:    func(a *Act) bool { return a.Text("cri") != "right" },
	Replaces: true,
}

func drawSocket(p *draw.Plan, at time.Duration) {
	node := p.OneNode()
	p.Write(at, "%s socket cri=%s", node, draw.Pick(&p.Source, "absent", "unimplemented", "empty", "partial"))
	p.Write(p.Later(at, 20*time.Second, 6*time.Minute), "%s socket cri=right", node)
}
