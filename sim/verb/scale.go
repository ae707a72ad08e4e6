package verb

import "github.com/enilab/enilab/sim/draw"

var scale = &Verb{
	Name: "scale", On: onKube,
	Params: []Param{bare("name", Word, "workload"), bare("count", Count, "pods"),
		named("step", Count, "0", "by so many pods at most; 0 is by all of them")},
	Doc:      "scales a workload, at once or towards a count",
	Source:   "seeds/004",
	Strike:   func(t *Target) Strike { return t.API.Scale(t.Text("name"), t.Int("count"), t.Int("step")) },
	Plan:     func(f *File, a *Act) { f.AtLeast(a.Text("name"), a.Int("count")) },
	Check:    func(f *File, a *Act) { f.isMade(a.Text("name")) },
	Ordinary: true,
	Owe: func(o *draw.Owing, a *Act) {
		o.Load(draw.Workload{Name: a.Text("name"), Count: a.Int("count")}, true)
	},
	Pods: true,
}

// Towards is how many pods a workload is scaled to that has some and is to have count in the end, by step at most; 0 is
// no limit.
func Towards(had, count, step int) int {
	if step == 0 {
		return count
	}
	return min(max(count, had-step), had+step)
}
