package verb

import (
	"slices"

	"github.com/enilab/enilab/sim/draw"
)

var create = &Verb{
	Name: "create", On: onKube,
	Params: []Param{bare("name", Word, "workload"), bare("count", Count, "pods"),
		choice("kind", "deployment", "controller", "deployment", "statefulset"), named("node", Count, "0",
			"only on that node; 0 is all")},
	Doc: "makes a workload",
	Strike: func(t *Target) Strike {
		return t.API.Create(t.Text("name"), t.Int("count"), t.Text("kind"), t.Int("node"))
	},
	Plan: func(f *File, a *Act) { f.AtLeast(a.Text("name"), a.Int("count")) },
	Check: func(f *File, a *Act) {
		name := a.Text("name")
		if slices.Contains(f.Made, name) {
			f.bad("give each its own name, or scale the one that there is", "workload %q is made twice", name)
		}
		f.Made = append(f.Made, name)
		if a.Int("count") == 0 {
			f.bad("write how many pods there are", "create %s 0 makes no pod", name)
		}
	},
	Ordinary: true,
	Owe: func(o *draw.Owing, a *Act) {
		o.Load(draw.Workload{Name: a.Text("name"), Count: a.Int("count"), Node: a.Int("node")}, false)
	},
	Pods: true,
}
