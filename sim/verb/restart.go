package verb

import (
	"fmt"
	"slices"
	"time"

	"github.com/enilab/enilab/sim/draw"
)

var restart = &Verb{
	Name: "restart", On: onNode,
	Params: []Param{{Name: "KEY", Type: Setting, Optional: true, Doc: "settings of the new daemon"}},
	Doc:    "rolls the daemon: SIGTERM, then a new one with these settings",
	Source: "seeds/000",
	Strike: func(t *Target) Strike { return t.Daemon.Restart(t.Keys) },
	AnyCNI: Survival{Why: "only with settings that the CNI knows"},
	Needs:  Needs{Daemon: true},
	Draw:   &Draw{Weight: 3, Draw: drawRestart, Starts: true},
	DrawAny: &Draw{Weight: 3, Draw: func(p *draw.Plan, at time.Duration) {
		args := ""
		if snat := "AWS_VPC_K8S_CNI_EXTERNALSNAT"; p.Chance(25) && slices.Contains(p.Settings, snat) {
			args = fmt.Sprintf(" %s=%v", snat, p.Chance(50))
		}
		p.Write(at, "%s restart%s", p.AnyNode(), args)
	}},
	AtDaemon: true,
}

func drawRestart(p *draw.Plan, at time.Duration) {
	args := ""
	if p.Chance(30) {
		args += " AWS_VPC_K8S_CNI_EXTERNALSNAT=" + draw.Pick(&p.Source, "true", "false")
	}
	if p.Chance(30) {
		args += " " + drawSetting(p)
	}
	if p.Shape.Settings.PrefixDelegation && p.Chance(30) {
		args += fmt.Sprintf(" ENABLE_PREFIX_DELEGATION=%v", p.Chance(50))
	}
	p.Write(at, "%s restart%s", p.AnyNode(), args)
}

// drawSetting is one that a restart changes. What a pool may hoard stays within what the subnet has room for.
func drawSetting(p *draw.Plan) string {
	h := &p.Shape
	switch {
	case p.Chance(40):
		return fmt.Sprintf("IP_COOLDOWN_PERIOD=%d", draw.Pick(&p.Source, 0, 5, 10, 20, 60))
	case h.Settings.WarmIPTarget > 0:
		return fmt.Sprintf("WARM_IP_TARGET=%d", p.Between(1, h.Settings.WarmIPTarget))
	default:
		return fmt.Sprintf("WARM_ENI_TARGET=%d", p.Between(0, 2))
	}
}
