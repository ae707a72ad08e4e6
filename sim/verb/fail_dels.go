package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var failDELs = &Verb{
	Name: "fail-dels", On: onNode,
	Params:  []Param{howMany(), named("after", Duration, "0s", "how long each takes")},
	Doc:     "a plugin before ours fails the next DELs, so that the runtime repeats them",
	Source:  "seeds/003",
	Strike:  func(t *Target) Strike { return t.Runtime.FailDELs(t.Int("times"), t.Duration("after")) },
	Draw:    &Draw{Weight: 3, Draw: drawFailDELs},
	DrawAny: &Draw{Weight: 3, Draw: drawFailDELs},
}

func drawFailDELs(p *draw.Plan, at time.Duration) {
	after := ""
	if p.Chance(50) {
		after = " after=" + draw.Short(p.Span(0, 5*time.Second, time.Second))
	}
	p.Write(at, "%s fail-dels%s%s", p.OneNode(), p.Times(5), after)
}
