package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var kill = &Verb{
	Name: "kill", On: onNode,
	Doc:    "SIGKILL to the daemon; kubelet starts it again after two seconds",
	Source: "rule I",
	Strike: func(t *Target) Strike { return t.Daemon.Kill() },
	Needs:  Needs{Daemon: true},
	Draw: &Draw{Weight: 5, Draw: func(p *draw.Plan, at time.Duration) { p.Write(at, "%s kill", p.AnyNode()) },
		Starts: true},
	DrawAny:  &Draw{Weight: 5, Draw: func(p *draw.Plan, at time.Duration) { p.Write(at, "%s kill", p.AnyNode()) }},
	AtDaemon: true,
}
