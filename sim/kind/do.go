package kind

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Do carries out an action, now.
func (w *World) Do(a *verb.Act) (id int) {
	w.mu.Lock()
	id = w.acts.Begin(actions.Describe(a))
	w.mu.Unlock()
	if w.Err() != nil {
		return id
	}
	w.log("scenario: %s", actions.Describe(a))
	var err error
	switch a.Subject.Kind {
	case scn.Node:
		err = w.members[a.Subject.Node].do(a, id)
	case scn.AllNodes:
		err = w.doNodes(a, id)
	case scn.Pod:
		err = w.doPod(a, id)
	case scn.Kube:
		err = w.strike(a, id, nil, verb.Pod{})
	case scn.EC2, scn.IMDS:
		if p, ok := w.pods.find(a.Text("pod")); ok {
			w.acts.Means(id, a.Text("pod"), p.name)
		}
		t := &verb.Target{Act: a, ID: id}
		var s verb.Strike
		w.c.Cloud(func(now time.Duration, m *ec2.Cloud) {
			t.Cloud = &verb.Cloud{Model: m, Cluster: w.witness.Cluster, Now: now, Nodes: len(w.members) - 1,
				Instance: w.members.instance, Address: w.addressOf}
			s = a.Of.Strike(t)
		})
		w.took(id, s)
	}
	if err != nil {
		w.fail(fmt.Errorf("%s: %w", actions.Describe(a), err))
	}
	w.nextCut = 0 // look at once what it did
	w.pace.stir()
	return id
}

// Strike is what has become of an action by now.
func (w *World) Strike(id int) verb.Strike {
	w.gather()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acts.Of(id)
}

// gather enters what models and machines have met of armed actions.
func (w *World) gather() {
	var met []ec2.Met
	w.c.Cloud(func(_ time.Duration, m *ec2.Cloud) { met = m.Met() })
	for _, m := range met {
		w.met(m.Fault, actions.Told(m, w.members.nodeOf))
	}
	for _, m := range w.members.living() {
		if m.delsBy != 0 && m.failed() {
			w.met(m.delsBy, "a plugin before ours fails a DEL")
			m.delsBy = 0
		}
		if n, err := m.spoken(); m.pluginBy != 0 && err == nil && n == m.plugin {
			w.met(m.pluginBy, fmt.Sprintf("a plugin of version %d is run", n))
			m.pluginBy = 0
		}
	}
}

func (w *World) addressOf(name string) netip.Addr {
	p, _ := w.pods.find(name)
	return p.address
}

// aside does what takes long while time goes on.
func (w *World) aside(what string, f func(context.Context) error) {
	if w.ctx.Err() != nil {
		return
	}
	w.pace.asides.Add(1)
	w.beside.Go(func() {
		defer w.pace.asides.Add(-1)
		if err := f(w.ctx); err != nil && w.ctx.Err() == nil {
			w.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// doNodes carries out a verb of all nodes. A restart is the DaemonSet's.
func (w *World) doNodes(a *verb.Act, id int) error {
	parts := make([]int, len(w.members))
	for _, m := range w.members[1:] {
		w.mu.Lock()
		_, parts[m.no] = w.acts.Part(id, a, int(m.no), m.gone())
		w.mu.Unlock()
	}
	if len(a.Keys) > 0 {
		return w.daemons.restartAll(a, parts)
	}
	for _, m := range w.members.living() {
		if err := m.do(a, parts[m.no]); err != nil {
			return fmt.Errorf("%s: %w", m.name(), err)
		}
	}
	return nil
}

// strike lets a verb strike, and enters how the action was taken.
func (w *World) strike(a *verb.Act, id int, m *member, p verb.Pod) error {
	d := &deed{w: w, m: m, id: id}
	s := a.Of.Strike(&verb.Target{Act: a, ID: id, Daemon: daemonOf{d}, Kernel: kernelOf{d}, Runtime: runtimeOf{d},
		Network: networkOf{d}, Pod: p, API: api{d}})
	if d.err == nil {
		w.took(id, s)
	}
	return d.err
}

// doPod carries out a verb of a pod.
func (w *World) doPod(a *verb.Act, id int) error {
	p, ok := w.pods.find(a.Subject.Pod)
	if !ok {
		w.took(id, actions.NoPod(a.Subject.Pod, false))
		return nil
	}
	m := w.members.on(p.node)
	if m != nil && m.gone() {
		w.took(id, actions.NoPod(a.Subject.Pod, true))
		return nil
	}
	w.acts.Means(id, a.Subject.Pod, p.name)
	return w.strike(a, id, m, verb.Pod{Name: p.name, UID: p.uid})
}

// EndFaults ends what actions broke.
func (w *World) EndFaults() {
	if w.Err() != nil {
		return
	}
	w.c.Cloud(func(now time.Duration, m *ec2.Cloud) {
		m.ClearFaults(now)
		actions.Grant(m, w.scenario)
		m.SetLag(ec2.Lag{})
	})
	w.gather()
	w.mu.Lock()
	w.audit.FaultsEnded(w.now())
	w.traps = nil
	w.mu.Unlock()
	for _, m := range w.members.living() {
		w.fail(m.end.set(models.Right))
		w.fail(failDELs(m.node, 0, 0))
		for uid := range m.hung {
			m.goOn(uid)
		}
		w.fail(w.daemons.letUp(m))
	}
}
