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

// records is where a daemon keeps them, on its machine.
const records = "/run/aws-node/ipam.json"

// daemonOf is a node's daemon, for one action.
type daemonOf struct{ *deed }

var _ verb.Daemon = daemonOf{}

// awaits says that the action has struck when the next daemon starts.
func (d *deed) awaits() verb.Strike {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.m.starters.Any(d.id)
}

func (d daemonOf) Restart(settings []scn.Arg) verb.Strike {
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

func (d daemonOf) Upgrade(to int, part string) verb.Strike {
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

func (daemonOf) Exchange(string, string, bool) verb.Strike { return cannot() }

func (d daemonOf) Kill() verb.Strike {
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

func (d daemonOf) KillAt(request ec2.Action, after bool) verb.Strike {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.traps.Set(d.m.no, request, after, d.id)
	return verb.Wait("the daemon made no such request")
}

func (d daemonOf) Hold() verb.Strike {
	if d.m.held {
		return verb.Miss("the daemon is kept down already")
	}
	d.w.mu.Lock()
	d.m.heldBy = d.id
	d.w.mu.Unlock()
	d.check(d.w.daemons.keepDown(d.m))
	return verb.Wait("the daemon did not end")
}

func (d daemonOf) Release() verb.Strike {
	if !d.m.held {
		return verb.Miss("nobody keeps the daemon down")
	}
	s := d.awaits()
	d.check(d.w.daemons.letUp(d.m))
	return s
}

func (d daemonOf) LoseRecords() verb.Strike {
	err := os.Remove(d.m.node.Root() + records)
	if errors.Is(err, fs.ErrNotExist) {
		return verb.Miss("there are no records")
	}
	d.check(err)
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.m.starters.Bare(d.id)
}
