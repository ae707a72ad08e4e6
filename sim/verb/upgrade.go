package verb

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/draw"
)

var upgrade = &Verb{
	Name: "upgrade", On: onNode,
	Params: []Param{
		{Name: "to", Type: Version,
			Doc: "record and protocol version of ours, 1 or 2, or a system, as NAME@WHERE (enilab systems)"},
		choice("part", "both", "what is exchanged", "both", "daemon", "plugin"),
		choice("env", "new",
			"whose environment the new daemon has: its own manifest's, or the old one's, as when the image alone is "+
				"changed", "new", "keep"),
	},
	Doc:    "exchanges daemon and plugin for another version's; also the way back",
	Source: "seeds/001",
	Strike: func(t *Target) Strike {
		if to := t.System(); to != "" {
			return t.Daemon.Exchange(to, t.Text("part"), t.Text("env") == "keep")
		}
		return t.Daemon.Upgrade(t.Int("to"), t.Text("part"))
	},
	Plan: func(f *File, a *Act) { f.Versions[a.Int("to")] = true },
	Check: func(f *File, a *Act) {
		to := a.Int("to")
		switch {
		case a.System() != "":
			if !slices.Contains(f.Systems, a.System()) {
				f.Systems = append(f.Systems, a.System())
			}
		case to < 1 || to > ipam.Version:
			f.bad("", "upgrade to=%d: there are versions 1 to %d", to, ipam.Version)
		}
		if to == f.Version && len(f.Versions) == 1 {
			f.bad("write version=1 on the cluster line, or another version here",
				"upgrade to=%d changes nothing: the cluster has version %d from the start", to, f.Version)
		}
	},
	AnyCNI: Survival{Never: true, Why: "it exchanges two versions of our records and protocol"},
	Needs:  Needs{Ours: "versions 1 and 2 are of enilab's records and protocol"}, // unless it exchanges systems
	Skips: []Skip{
		{World: "sim", Line: "upgrade to=NAME@WHERE",
			Why:  "virtual time has no processes, it steps enilab's core: world netns exchanges systems",
			When: func(a *Act, _ int) bool { return a.System() != "" }},
		{World: "kind", Line: "upgrade to=NAME@WHERE",
			Why:  "its image is enilab's: world netns exchanges systems",
			When: func(a *Act, _ int) bool { return a.System() != "" }},
	},
	Draw:     &Draw{Weight: 2, Draw: drawUpgrade, Starts: true},
	AtDaemon: true,
}

// drawUpgrade is to another version than the last one was to, wherever that was.
func drawUpgrade(p *draw.Plan, at time.Duration) {
	part := draw.Pick(&p.Source, "", " part=daemon", " part=plugin")
	p.Upgraded = 3 - p.Upgraded
	p.Write(at, "%s upgrade to=%d%s", p.AnyNode(), p.Upgraded, part)
}
