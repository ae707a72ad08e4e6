package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var loseRecords = &Verb{
	Name: "lose-records", On: onNode,
	Doc:    "the daemon's records of allocations are gone: a damaged file, a lost tmpfs",
	Source: "plugins #498",
	Strike: func(t *Target) Strike { return t.Daemon.LoseRecords() },
	AnyCNI: Survival{Never: true, Why: "a CNI's records may be all that it knows of its pods"},
	Needs:  Needs{Ours: "where it keeps what it knows is not said"},
	Draw: &Draw{Weight: 3, Draw: drawLoseRecords,
		Fits: func(h *draw.Shape) bool { return !h.Settings.NoSweep }},
	Owe: func(o *draw.Owing, _ *Act) {
		if o.Shape.Settings.NoSweep {
			o.Say("records may be lost and nobody sweeps: nobody knows of an ENI that was on its way")
		}
	},
	AtDaemon: true,
}

// drawLoseRecords: only the next daemon misses them, so it often follows soon.
func drawLoseRecords(p *draw.Plan, at time.Duration) {
	node := p.OneNode()
	p.Write(at, "%s lose-records", node)
	if p.Chance(60) {
		p.Write(p.Later(at, 0, 5*time.Second), "%s %s", node, draw.Pick(&p.Source, "kill", "restart"))
	}
}
