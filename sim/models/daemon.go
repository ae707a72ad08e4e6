package models

import (
	"slices"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// daemon is a node's daemon, for one action.
type daemon struct{ onNode }

var _ verb.Daemon = daemon{}

func (d daemon) Restart(settings []scn.Arg) verb.Strike {
	before := d.n.Settings.CustomNetwork
	for _, k := range settings {
		_ = d.n.Settings.Put(k.Key, k.Value) // checked by Bind
		d.n.Written = append(slices.Clip(d.n.Written), k.Key)
	}
	if d.n.Settings.CustomNetwork != before {
		d.n.customAt = d.h.World.Clock()
	}
	if !d.n.Machine.Runs() {
		return verb.Miss("no daemon runs")
	}
	d.n.Machine.Restart()
	return d.n.Starters.Any(d.id)
}

func (d daemon) Upgrade(to int, part string) verb.Strike {
	n := d.n
	if (part == "plugin" || n.Version == to) && (part == "daemon" || n.Plugin == to) {
		return verb.Miss("version %d runs already", to)
	}
	if part != "daemon" {
		n.Plugin = to
		n.Machine.Installed()
	}
	if part == "plugin" {
		return d.awaitsPlugin()
	}
	n.Version = to
	if n.Machine.Runs() {
		n.Machine.Restart()
	}
	return n.Starters.Any(d.id)
}

func (d daemon) Exchange(to, part string, keep bool) verb.Strike {
	if !d.n.Machine.Exchange(to, part, keep) {
		return verb.Miss("%s runs already", to)
	}
	if part == "plugin" {
		return d.awaitsPlugin()
	}
	return d.n.Starters.Any(d.id)
}

func (d daemon) awaitsPlugin() verb.Strike {
	d.n.pluginBy = d.id
	return verb.Wait("the new plugin was not run")
}

func (d daemon) Kill() verb.Strike {
	if !d.n.Machine.Lives() {
		return verb.Miss("no daemon runs")
	}
	return d.n.Machine.Kill(d.id, "the daemon dies")
}

func (d daemon) KillAt(request ec2.Action, after bool) verb.Strike {
	d.h.Traps.Set(d.n.No, request, after, d.id)
	return verb.Wait("the daemon made no such request")
}

// Hold also strikes where it keeps a daemon from starting.
func (d daemon) Hold() verb.Strike {
	n := d.n
	if n.Down {
		return verb.Miss("the daemon is kept down already")
	}
	n.Down = true
	if !n.Machine.Lives() {
		n.heldBy = d.id
		return verb.Wait("no daemon ran or was to start")
	}
	return n.Machine.Kill(d.id, "the daemon dies and is not started again")
}

func (d daemon) Release() verb.Strike {
	n := d.n
	if !n.Down {
		return verb.Miss("nobody keeps the daemon down")
	}
	n.Down, n.heldBy = false, 0
	n.Machine.Start()
	return n.Starters.Any(d.id)
}

func (d daemon) LoseRecords() verb.Strike {
	if !d.n.Machine.LoseRecords() {
		return verb.Miss("there are no records")
	}
	return d.n.Starters.Bare(d.id)
}
