package verb

import (
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
)

var unhold = &Verb{
	Name: "unhold", On: onNode,
	Doc:    "lets the daemon start again",
	Source: "rule F",
	Strike: func(t *Target) Strike { return t.Daemon.Release() },
	Check: func(f *File, a *Act) {
		all := a.Subject.Kind == scn.AllNodes
		if !f.Held[0] && !f.Held[a.Subject.Node] && !(all && len(f.Held) > 0) && f.Whole {
			f.bad("hold keeps it down", "unhold strikes nobody: no line keeps the daemon down")
		}
	},
	Needs:    Needs{Daemon: true},
	Closes:   hold,
	Owe:      func(o *draw.Owing, a *Act) { o.Toggle("hold", a.Subject, false) },
	AtDaemon: true,
}
