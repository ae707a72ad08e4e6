package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/draw"
)

// MainTable is where a machine's own routes are (RT_TABLE_MAIN).
const MainTable = 254

var flushRoutes = &Verb{
	Name: "flush-routes", On: onNode,
	Params: []Param{named("table", Count, "254", "routing table")},
	Doc:    "a stranger flushes a routing table",
	Source: "nm-cloud-setup",
	Strike: func(t *Target) Strike {
		return gone(t.Kernel.Interfere(kernel.Accident{What: kernel.FlushRoutes, Table: t.Int("table")}), "route")
	},
	Check: func(f *File, a *Act) {
		limits, _ := ec2.LimitsOf(f.Type)
		if t := a.Int("table"); t != MainTable && (t < 2 || t > limits.ENIs) && f.Headed {
			f.bad("254 is the main table; table N+1 is that of the ENI at device N",
				"flush-routes table=%d strikes nobody: a %s has tables %d and 2 to %d",
				t, f.Type, MainTable, limits.ENIs)
		}
	},
	Survives: Survival{Why: "not table=254: the machine's default route is in it, and no CNI knows what it was",
		Beyond: func(a *Act) bool { return a.Int("table") == MainTable }},
	AnyCNI: Survival{Never: true, Why: "only some CNIs say that they put back routes which a stranger takes"},
	Skips: []Skip{{World: "kind", Line: "flush-routes table=254",
		Why: "the machine's own routes are in the main table too, the one to the API server among them, and nobody " +
			"puts those back",
		When: func(a *Act, _ int) bool { return a.Int("table") == MainTable }}},
	Draw: &Draw{Weight: 2, Draw: drawFlushRoutes, Fits: hasSecondENI},
}

// drawFlushRoutes takes an ENI's table, which is the CNI's own: device 1 has table 2.
func drawFlushRoutes(p *draw.Plan, at time.Duration) {
	p.Write(at, "%s flush-routes table=%d", p.OneNode(), p.Between(2, p.Shape.ENIs))
}
