package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var interruptDumps = &Verb{
	Name: "interrupt-dumps", On: onNode,
	Params: []Param{howMany()},
	Doc:    "the next netlink dumps end early",
	Source: "NLM_F_DUMP_INTR",
	Strike: func(t *Target) Strike { return t.Kernel.InterruptDumps(t.Int("times")) },
	AnyCNI: Survival{Never: true, Why: "a kernel does it when it likes: world netns has none on demand"},
	Skips: []Skip{
		{World: "netns", Line: "interrupt-dumps", Why: uninterrupted},
		{World: "kind", Line: "interrupt-dumps", Why: uninterrupted},
	},
	Draw: &Draw{Weight: 2, Draw: func(p *draw.Plan, at time.Duration) {
		p.Write(at, "%s interrupt-dumps times=%d", p.AnyNode(), p.Between(1, 5))
	}},
}

const uninterrupted = "a real kernel interrupts a dump when it likes (NLM_F_DUMP_INTR), not when it is asked to"
