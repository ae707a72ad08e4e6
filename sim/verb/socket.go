package verb

import (
	"slices"
)

// Failing are runtime sockets that say that they fail.
var Failing = []string{"absent", "unimplemented"}

var socket = &Verb{
	Name: "socket", On: onNode,
	Params: []Param{choice("cri", "", "what stands behind the runtime endpoint", "right", "absent", "unimplemented", "empty", "partial")},
	Doc:    "changes what the daemon's runtime socket is",
	Source: "seeds/000",
	Strike: func(t *Target) Strike { return t.Runtime.Socket(t.Text("cri")) },
	Plan:   func(f *File, a *Act) { f.Sockets = f.Sockets || a.Text("cri") != "right" },
	Check: func(f *File, a *Act) {
		if a.Text("cri") == "right" && !f.Sockets && f.Whole {
			f.bad("the socket is right from the start", "socket cri=right changes nothing: no line has it be another")
		}
	},
	AnyCNI: Survival{Why: "only absent and unimplemented, which fail; a list that lacks living pods is the only memory that some CNIs have",
		Beyond: func(a *Act) bool { return a.Text("cri") != "right" && !slices.Contains(Failing, a.Text("cri")) }},
	Needs: Needs{Runtime: true},
}
