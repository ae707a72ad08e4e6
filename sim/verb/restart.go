package verb

import (
	"github.com/enilab/enilab/sim/scn"
)

var restart = &Verb{
	Name: "restart", On: onNode,
	Params: []Param{{Name: "KEY", Type: Setting, Optional: true, Doc: "settings of the new daemon"}},
	Doc:    "rolls the daemon: SIGTERM, then a new one with these settings",
	Source: "seeds/000",
	Strike: func(t *Target) Strike { return t.Daemon.Restart(t.Keys) },
	AnyCNI: Survival{Why: "only with settings that the CNI knows"},
	Needs:  Needs{Daemon: true},
	Skips: []Skip{{World: "kind", Line: "restart KEY=VALUE, of one node of several",
		Why:  "a DaemonSet has one environment, and this changes one node's of several: say node-*, or use world netns",
		When: func(a *Act, nodes int) bool { return len(a.Keys) > 0 && a.Subject.Kind == scn.Node && nodes > 1 }}},
}
