package kind

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
)

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) (id int) {
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
		err = w.doNode(w.members[a.Subject.Node], a, id)
	case scn.AllNodes:
		err = w.doNodes(a, id)
	case scn.Pod:
		err = w.doPod(a, id)
	case scn.Kube:
		var s sim.Strike
		if s, err = w.work.do(a, w.machines); err == nil {
			w.took(id, s)
		}
	case scn.EC2, scn.IMDS:
		var s sim.Strike
		if p, ok := w.pods.find(a.Text("pod")); ok {
			w.acts.Means(id, a.Text("pod"), p.name)
		}
		w.c.Cloud(func(now time.Duration, m *ec2.Cloud) {
			c := actions.Cloud{Model: m, Cluster: w.witness.Cluster, Now: now, Instance: w.instance, Address: w.addressOf}
			s = c.Do(a, id)
		})
		w.took(id, s)
	}
	if err != nil {
		w.fail(fmt.Errorf("%s: %w", actions.Describe(a), err))
	}
	w.nextCut = 0 // look at once what it did
	return id
}

// Strike is what has become of an action by now.
func (w *World) Strike(id int) sim.Strike {
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
		w.met(m.Fault, actions.Told(m, w.nodeOf))
	}
	for _, m := range w.members[1:] {
		if m.delsBy != 0 && m.failed() {
			w.met(m.delsBy, "a plugin before ours fails a DEL")
			m.delsBy = 0
		}
	}
}

// took enters how an action was taken, and tells what it did.
func (w *World) took(id int, s sim.Strike) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did(w.acts.Took(id, s))
}

// met enters that something met an armed action, and tells what that did.
func (w *World) met(id int, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metNow(id, text)
}

// metNow is met for who holds mu.
func (w *World) metNow(id int, text string) {
	if id != 0 {
		w.did(w.acts.Met(id, text))
	}
}

func (w *World) did(line string) {
	if line != "" {
		w.story.Add(w.witness.Now(), timeline.Scenario, line)
	}
}

// nodeOf names an instance's node.
func (w *World) nodeOf(i ec2.InstanceID) string {
	for _, m := range w.members[1:] {
		if m.node.Instance == i {
			return m.name()
		}
	}
	return "another machine"
}

// instance is a node's at EC2. It is asked in the cloud's goroutine.
func (w *World) instance(no int) ec2.InstanceID {
	if no < 1 || no >= len(w.members) {
		return ""
	}
	return w.members[no].node.Instance
}

func (w *World) addressOf(name string) netip.Addr {
	p, _ := w.pods.find(name)
	return p.address
}

// machines are the names of the containers that are a node, or all nodes.
func (w *World) machines(no int) (out []string) {
	for _, m := range w.members[1:] {
		if no == 0 || int(m.no) == no {
			out = append(out, m.node.Name)
		}
	}
	return out
}

// persistLimit is how long the API server and the machines may take to do what a scenario asks.
const persistLimit = 30 * time.Second

// persist repeats what fails, for a while: an API server answers again after a moment in which it did not.
func (w *World) persist(what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(w.ctx, persistLimit)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(pollPeriod):
		}
	}
}

// aside does what takes long while time goes on.
func (w *World) aside(what string, f func(context.Context) error) {
	w.beside.Go(func() {
		if err := f(w.ctx); err != nil && w.ctx.Err() == nil {
			w.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// doNodes carries out a verb of all nodes. A restart is the DaemonSet's.
func (w *World) doNodes(a *sim.Act, id int) error {
	parts := make([]int, len(w.members))
	for _, m := range w.members[1:] {
		one := *a
		one.Subject = scn.Subject{Kind: scn.Node, Node: int(m.no)}
		w.mu.Lock()
		parts[m.no] = w.acts.Part(id, actions.Describe(&one))
		w.mu.Unlock()
	}
	if a.Verb == "restart" {
		for _, m := range w.members[1:] {
			w.took(parts[m.no], w.awaits(m, parts[m.no]))
		}
		return w.roll(w.members[1:], a)
	}
	for _, m := range w.members[1:] {
		if err := w.doNode(m, a, parts[m.no]); err != nil {
			return fmt.Errorf("%s: %w", m.name(), err)
		}
	}
	return nil
}

// nodeVerbs are the verbs of nodes; Can says which of the others this world cannot do.
var nodeVerbs = map[string]func(w *World, m *member, a *sim.Act, id int) (sim.Strike, error){
	"socket": (*World).doSocket,
	"restart": func(w *World, m *member, a *sim.Act, id int) (sim.Strike, error) {
		return w.awaits(m, id), w.roll([]*member{m}, a)
	},
	"kill":         (*World).doKill,
	"kill-at":      (*World).doKillAt,
	"hold":         (*World).doHold,
	"unhold":       (*World).doUnhold,
	"reboot":       (*World).doReboot,
	"fail-dels":    (*World).doFailDELs,
	"lose-records": (*World).doLoseRecords,
	"flush-rules":  (*World).doFlushRules,
	"flush-routes": (*World).doFlushRoutes,
	"flush-nat":    (*World).doFlushNAT,
	"restart-kubelet": func(w *World, m *member, _ *sim.Act, id int) (sim.Strike, error) {
		return w.restartUnit(m, "kubelet", id)
	},
	"restart-runtime": func(w *World, m *member, _ *sim.Act, id int) (sim.Strike, error) {
		return w.restartUnit(m, "containerd", id)
	},
}

func (w *World) doNode(m *member, a *sim.Act, id int) error {
	do := nodeVerbs[a.Verb]
	if do == nil {
		w.took(id, sim.Miss("this world does not know the verb"))
		return nil
	}
	s, err := do(w, m, a, id)
	if err == nil {
		w.took(id, s)
	}
	return err
}

// awaits says that an action has struck when the next daemon starts.
func (w *World) awaits(m *member, id int) sim.Strike {
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.starters.Any(id)
}

func (w *World) doSocket(m *member, a *sim.Act, id int) (sim.Strike, error) {
	to := models.ParseSocket(a.Text("cri"))
	if err := m.end.set(to); err != nil {
		return sim.Strike{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.socketBy = id
	return sim.Wait("the daemon did not ask for the runtime's list"), nil
}

func (w *World) doKill(m *member, _ *sim.Act, id int) (sim.Strike, error) {
	w.mu.Lock()
	runs := m.pid != 0
	w.kill(m)
	w.mu.Unlock() // kubelet takes seconds to start the next one, which awaits waits for
	if !runs {
		return sim.Miss("no daemon runs"), nil
	}
	return w.awaits(m, id), nil
}

func (w *World) doKillAt(m *member, a *sim.Act, id int) (sim.Strike, error) {
	act, _ := ec2.ParseAction(a.Text("call"))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.traps.Set(m.no, act, a.Text("when") == "after", id)
	return sim.Wait("the daemon made no %s", a.Text("call")), nil
}

func (w *World) doHold(m *member, _ *sim.Act, id int) (sim.Strike, error) {
	if m.held {
		return sim.Miss("the daemon is kept down already"), nil
	}
	w.mu.Lock()
	m.heldBy = id
	w.mu.Unlock()
	return sim.Wait("the daemon did not end"), w.keepDown(m)
}

func (w *World) doUnhold(m *member, _ *sim.Act, id int) (sim.Strike, error) {
	if !m.held {
		return sim.Miss("nobody keeps the daemon down"), nil
	}
	return w.awaits(m, id), w.letUp(m)
}

func (w *World) doReboot(m *member, _ *sim.Act, id int) (sim.Strike, error) {
	w.aside(m.name()+" restarts", m.node.Restart)
	return w.awaits(m, id), nil
}

func (w *World) doFailDELs(m *member, a *sim.Act, id int) (sim.Strike, error) {
	err := failDELs(m.node, a.Int("times"), a.Duration("after"))
	if err == nil {
		m.delsBy = id
		m.faults, err = m.faultsFile()
	}
	return sim.Wait("no DEL was run"), err
}

func (w *World) doLoseRecords(m *member, _ *sim.Act, id int) (sim.Strike, error) {
	err := os.Remove(m.node.Root() + records)
	if errors.Is(err, fs.ErrNotExist) {
		return sim.Miss("there are no records"), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.starters.Bare(id), err
}

// restartUnit restarts a service of the machine's, which systemd tells of.
func (w *World) restartUnit(m *member, unit string, id int) (sim.Strike, error) {
	w.aside(m.name()+": systemctl restart "+unit, func(ctx context.Context) error {
		_, err := m.node.Exec(ctx, "systemctl", "restart", unit)
		if err == nil {
			w.met(id, unit+" has started again")
		}
		return err
	})
	return sim.Wait("it did not come up again"), nil
}

// Paths of the daemon, on a machine.
const (
	records    = "/run/aws-node/ipam.json"
	intentsDir = "/run/aws-node/del/"
)

// podVerbs are the verbs of pods that are about their node.
var podVerbs = map[string]func(w *World, m *member, p pod, s *sandbox, a *sim.Act, id int) (sim.Strike, error){
	"unhang": func(w *World, m *member, p pod, _ *sandbox, _ *sim.Act, _ int) (sim.Strike, error) {
		return w.unhang(m, p.uid)
	},
	"hang": func(w *World, m *member, _ pod, s *sandbox, _ *sim.Act, _ int) (sim.Strike, error) {
		return w.hang(m, s)
	},
	"replay-del": func(w *World, m *member, p pod, s *sandbox, a *sim.Act, id int) (sim.Strike, error) {
		return w.replay(m, p, s, a, id), nil
	},
	"lose-gateway":  (*World).doLoseGateway,
	"change-mac":    (*World).doChangeMAC,
	"lose-alias":    (*World).doLoseAlias,
	"add-addresses": (*World).doAddAddresses,
}

// doPod carries out a verb of a pod.
func (w *World) doPod(a *sim.Act, id int) error {
	p, ok := w.pods.find(a.Subject.Pod)
	if !ok {
		w.took(id, actions.NoPod(a.Subject.Pod, false))
		return nil
	}
	w.acts.Means(id, a.Subject.Pod, p.name)
	switch a.Verb {
	case "delete", "force-delete":
		if p.deleting && a.Verb == "delete" {
			w.took(id, sim.Miss("pod %s is being deleted already", p.name))
			return nil
		}
		err := w.work.delete(p, a.Verb == "force-delete")
		if err == nil {
			w.took(id, sim.Hit("the API server has done it"))
		}
		return err
	}
	m := w.on(p.node)
	if m == nil {
		w.took(id, actions.NoPod(p.name, true))
		return nil
	}
	s, ok, err := w.sandboxOf(m, p.uid)
	do := podVerbs[a.Verb]
	switch {
	case err != nil:
		return err
	case do == nil:
		w.took(id, sim.Miss("this world does not know the verb"))
		return nil
	case !ok && a.Verb != "unhang": // what hung may have been forgotten by the runtime
		w.took(id, sim.Miss("pod %s has no sandbox", p.name))
		return nil
	}
	strike, err := do(w, m, p, &s, a, id)
	if err == nil {
		w.took(id, strike)
	}
	return err
}

// on is the node that a machine is; nil: none.
func (w *World) on(machine string) *member {
	for _, m := range w.members[1:] {
		if m.node.Name == machine {
			return m
		}
	}
	return nil
}

// sandboxOf is a pod's newest sandbox.
func (w *World) sandboxOf(m *member, uid string) (s sandbox, ok bool, err error) {
	err = w.persist("the runtime", func(ctx context.Context) error {
		list, err := m.runtime.sandboxes(ctx)
		for _, t := range list {
			if t.UID == uid {
				s, ok = t, true
			}
		}
		return err
	})
	return s, ok, err
}

// hang stops a sandbox's shim: as with a process in D state, nothing in it can be stopped, and it goes on living.
func (w *World) hang(m *member, s *sandbox) (sim.Strike, error) {
	pid, ok := shimOf(m.node, s.ID)
	if !ok {
		return sim.Miss("pod %s has no shim", s.Pod), nil
	}
	m.hung[s.UID] = pid
	_, err := m.node.Exec(w.ctx, "kill", "-STOP", strconv.Itoa(pid))
	return sim.Hit("its shim is stopped"), err
}

func (w *World) unhang(m *member, uid string) (sim.Strike, error) {
	pid, ok := m.hung[uid]
	if !ok {
		return sim.Miss("nothing of the pod hangs"), nil
	}
	delete(m.hung, uid)
	if _, err := m.node.Exec(w.ctx, "kill", "-CONT", strconv.Itoa(pid)); err != nil && alive(m.node.PID()) {
		w.log("%s: continue shim %d: %v", m.name(), pid, err) // it has ended, with its machine for one
	}
	return sim.Hit("its shim goes on"), nil
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
	for _, m := range w.members[1:] {
		w.fail(m.end.set(models.Right))
		w.fail(failDELs(m.node, 0, 0))
		for uid := range m.hung {
			_, err := w.unhang(m, uid)
			w.fail(err)
		}
		w.fail(w.letUp(m))
	}
}
