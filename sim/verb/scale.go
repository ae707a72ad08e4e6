package verb

import "github.com/enilab/enilab/sim/draw"

var scale = &Verb{
	Name: "scale", On: onKube,
	Params:   []Param{bare("name", Word, "workload"), bare("count", Count, "pods")},
	Doc:      "scales a workload",
	Source:   "seeds/004",
	Strike:   func(t *Target) Strike { return t.API.Scale(t.Text("name"), t.Int("count")) },
	Plan:     func(f *File, a *Act) { f.AtLeast(a.Text("name"), a.Int("count")) },
	Check:    func(f *File, a *Act) { f.isMade(a.Text("name")) },
	Ordinary: true,
	Owe: func(o *draw.Owing, a *Act) {
		o.Load(draw.Workload{Name: a.Text("name"), Count: a.Int("count")}, true)
	},
	Pods: true,
}
