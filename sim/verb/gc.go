package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var gc = &Verb{
	Name: "gc", On: onNode,
	Params: []Param{choice("valid", "", "which attachments the caller lists", "all", "none", "missing")},
	Doc:    "calls CNI GC with that list",
	Source: "CNI specification 1.1.0, GC",
	Strike: func(t *Target) Strike { return t.Runtime.GC(t.Text("valid")) },
	AnyCNI: Survival{Why: "only valid=all, for a CNI of specification 1.1.0; what a caller does not list has to go",
		Beyond: func(a *Act) bool { return a.Text("valid") != "all" }},
	Needs: Needs{GC: true, Ours: "its plugin is not known to have the verb GC"},
	Skips: []Skip{{World: "kind", Line: "gc", Why: "containerd never calls CNI GC"}},
	Draw: &Draw{Weight: 3, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "%s gc valid=%s", p.AnyNode(), draw.Pick(&p.Source, "all", "none", "missing"))
	}},
	DrawAny: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "%s gc valid=all", p.AnyNode())
	}},
}
