package kind

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// daemon is a node's daemon, for one action.
type daemon struct{ *deed }

var _ verb.Daemon = daemon{}

// awaits says that the action has struck when the next daemon starts.
func (d *deed) awaits() verb.Strike {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.m.starters.Any(d.id)
}

func (d daemon) Restart(settings []scn.Arg) verb.Strike {
	s := d.awaits()
	d.m.configure(settings)
	d.check(d.w.daemons.roll([]*member{d.m}))
	return s
}

// configure gives a node's next daemon settings.
func (m *member) configure(settings []scn.Arg) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	before := m.set.CustomNetwork
	for _, k := range settings {
		_ = m.set.Put(k.Key, k.Value) // checked by Bind
	}
	if m.set.CustomNetwork != before {
		m.customAt = m.w.now()
	}
}

// restartAll gives all nodes' daemons settings: where they have the same ones, all are told to end at once.
func (s *daemons) restartAll(a *verb.Act, parts []int) error {
	for _, m := range s.w.members.living() {
		s.w.took(parts[m.no], (&deed{w: s.w, m: m, id: parts[m.no]}).awaits())
		m.configure(a.Keys)
	}
	return s.roll(s.w.members.living())
}

func (d daemon) Upgrade(to int, part string) verb.Strike {
	m := d.m
	if (part == "plugin" || m.version == to) && (part == "daemon" || m.plugin == to) {
		return verb.Miss("version %d runs already", to)
	}
	if part != "daemon" {
		d.check(m.speak(to))
	}
	if part == "plugin" {
		m.pluginBy = d.id
		return verb.Wait("the new plugin was not run")
	}
	s := d.awaits()
	m.version = to
	d.check(d.w.daemons.roll([]*member{m}))
	return s
}

func (daemon) Exchange(string, string, bool) verb.Strike { return cannot() }

func (d daemon) Kill() verb.Strike {
	d.w.mu.Lock()
	runs := d.m.pid != 0
	d.m.kill()
	d.w.mu.Unlock() // kubelet takes seconds to start the next one, which awaits waits for
	if !runs {
		return verb.Miss("no daemon runs")
	}
	if d.m.killed { // kubelet would wait longer and longer for a container that ends again and again
		d.check(d.w.daemons.applyTemplate(d.m))
		end := func(ctx context.Context) error { return d.w.daemons.deleteDaemon(ctx, d.m, true) }
		d.check(d.w.persist("the API server", end))
	}
	d.m.killed = true
	return d.awaits()
}

func (d daemon) KillAt(request ec2.Action, after bool) verb.Strike {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.traps.Set(d.m.no, request, after, d.id)
	return verb.Wait("the daemon made no such request")
}

func (d daemon) Hold() verb.Strike {
	if d.m.held {
		return verb.Miss("the daemon is kept down already")
	}
	d.w.mu.Lock()
	d.m.heldBy = d.id
	d.w.mu.Unlock()
	d.check(d.w.daemons.keepDown(d.m))
	return verb.Wait("the daemon did not end")
}

func (d daemon) Release() verb.Strike {
	if !d.m.held {
		return verb.Miss("nobody keeps the daemon down")
	}
	s := d.awaits()
	d.check(d.w.daemons.letUp(d.m))
	return s
}

func (d daemon) LoseRecords() verb.Strike {
	err := os.Remove(d.m.node.Root() + records)
	if errors.Is(err, fs.ErrNotExist) {
		return verb.Miss("there are no records")
	}
	d.check(err)
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.m.starters.Bare(d.id)
}
