package netns

import (
	"path"
	"slices"
	"time"

	"github.com/enilab/enilab/systems"
)

// versions are the systems that a node has.
type versions struct {
	system *systems.System // the daemon's; nil: it is ours, by its recording
	plugin *systems.System // the plugin's
	was    *systems.System // whose daemon still runs while another one's is awaited
	before []systems.Step  // what is done before the next start
	after  []systems.Step  // and once it serves
	// mutated is when EC2 last carried out something for it, in the machine's time.
	mutated time.Time
}

// runs is the system whose daemon runs.
func (v *versions) runs() *systems.System {
	if v.was != nil {
		return v.was
	}
	return v.system
}

// plan takes an order of steps apart: what comes before the daemon is stopped, before the next one starts, and after that. The first start does all
// but the stop.
func (v *versions) plan(order []systems.Step) (before []systems.Step) {
	if len(order) == 0 {
		order = []systems.Step{systems.StepStop, systems.StepFiles, systems.StepPlugins, systems.StepInit, systems.StepStart, systems.StepServes, systems.StepConflist}
	}
	start := slices.Index(order, systems.StepStart)
	if start < 0 {
		start = len(order)
	}
	stop := max(0, slices.Index(order[:start], systems.StepStop))
	v.before, v.after = nil, nil
	for i, s := range order {
		switch {
		case s == systems.StepStop || s == systems.StepStart || s == systems.StepServes:
		case i < stop:
			before = append(before, s)
			v.before = append(v.before, s) // a first start has no daemon to stop
		case i < start:
			v.before = append(v.before, s)
		default:
			v.after = append(v.after, s)
		}
	}
	return before
}

// program is what the story calls a node's daemov.
func (v *versions) program() string {
	if v.system == nil {
		return "ipamd"
	}
	if v.system.Daemon == nil {
		return v.system.Name
	}
	return path.Base(v.runs().Daemon.Argv[0])
}

// unmanned says whether the node has a system without a daemov.
func (v *versions) unmanned() bool { return v.system != nil && v.runs().Daemon == nil }
