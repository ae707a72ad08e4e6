package kind

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/acts"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/story"
)

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) {
	if w.Err() != nil {
		return
	}
	w.mu.Lock()
	w.story.Add(w.witness.Now(), story.Scenario, acts.Describe(a))
	w.mu.Unlock()
	w.log("scenario: %s", acts.Describe(a))
	var err error
	switch a.Subject.Kind {
	case scn.Node:
		err = w.doNodes(w.members[a.Subject.Node:a.Subject.Node+1], a)
	case scn.AllNodes:
		err = w.doNodes(w.members[1:], a)
	case scn.Pod:
		err = w.doPod(a)
	case scn.Kube:
		err = w.work.do(a, w.machines)
	case scn.EC2:
		w.c.Cloud(func(now time.Duration, m *ec2.Cloud) { acts.EC2(m, now, a, w.instance, w.addressOf) })
	case scn.IMDS:
		w.c.Cloud(func(now time.Duration, m *ec2.Cloud) { acts.IMDS(m, now, a, w.instance) })
	}
	if err != nil {
		w.fail(fmt.Errorf("%s: %w", acts.Describe(a), err))
	}
	w.nextCut = 0 // look at once what it did
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

// doNodes carries out a verb of some nodes.
func (w *World) doNodes(list []*member, a *sim.Act) error {
	if a.Verb == "restart" {
		return w.roll(list, a)
	}
	for _, m := range list {
		if err := w.doNode(m, a); err != nil {
			return fmt.Errorf("%s: %w", m.name(), err)
		}
	}
	return nil
}

func (w *World) doNode(m *member, a *sim.Act) error {
	switch a.Verb {
	case "socket":
		return m.end.set(socketNamed(a.Text("cri")))
	case "kill":
		w.mu.Lock()
		w.kill(m)
		w.mu.Unlock()
	case "kill-at":
		act, _ := ec2.ParseAction(a.Text("call"))
		w.mu.Lock()
		w.armed = append(w.armed, deathTrap{m, act, a.Text("when") == "after"})
		w.mu.Unlock()
	case "hold":
		return w.keepDown(m)
	case "unhold":
		return w.letUp(m)
	case "reboot":
		w.aside(m.name()+" restarts", m.node.Restart)
	case "fail-dels":
		return failDELs(m.node, a.Int("times"), a.Duration("after"))
	case "lose-records":
		return ignoreMissing(os.Remove(m.node.Root() + records))
	case "restart-kubelet":
		w.systemctl(m, "restart", "kubelet")
	case "restart-runtime":
		w.systemctl(m, "restart", "containerd")
	default:
		return w.stranger(m, a)
	}
	return nil
}

// Paths of the daemon, on a machine.
const (
	records    = "/run/aws-node/ipam.json"
	intentsDir = "/run/aws-node/del/"
)

func (w *World) systemctl(m *member, args ...string) {
	w.aside(m.name()+": systemctl "+strings.Join(args, " "), func(ctx context.Context) error {
		_, err := m.node.Exec(ctx, append([]string{"systemctl"}, args...)...)
		return err
	})
}

// doPod carries out a verb of a pod; nothing when it is gone.
func (w *World) doPod(a *sim.Act) error {
	p, ok := w.pods.find(a.Subject.Pod)
	if !ok {
		return nil
	}
	switch a.Verb {
	case "delete", "force-delete":
		return w.work.delete(p, a.Verb == "force-delete")
	}
	m := w.on(p.node)
	if m == nil {
		return nil // no node has taken it yet
	}
	if a.Verb == "unhang" {
		return w.unhang(m, p.uid)
	}
	s, ok, err := w.sandboxOf(m, p.uid)
	if err != nil || !ok {
		return err
	}
	switch a.Verb {
	case "hang":
		return w.hang(m, &s)
	case "replay-del":
		w.replay(m, p, &s, a)
		return nil
	}
	return w.strangerAtPod(m, &s, a)
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
func (w *World) hang(m *member, s *sandbox) error {
	pid, ok := shimOf(m.node, s.ID)
	if !ok {
		return nil
	}
	m.hung[s.UID] = pid
	_, err := m.node.Exec(w.ctx, "kill", "-STOP", strconv.Itoa(pid))
	return err
}

func (w *World) unhang(m *member, uid string) error {
	pid, ok := m.hung[uid]
	if !ok {
		return nil
	}
	delete(m.hung, uid)
	if _, err := m.node.Exec(w.ctx, "kill", "-CONT", strconv.Itoa(pid)); err != nil && alive(m.node.PID()) {
		w.log("%s: continue shim %d: %v", m.name(), pid, err) // it has ended, with its machine for one
	}
	return nil
}

// EndFaults ends what actions broke.
func (w *World) EndFaults() {
	if w.Err() != nil {
		return
	}
	w.c.Cloud(func(now time.Duration, m *ec2.Cloud) {
		m.ClearFaults(now)
		m.SetLag(ec2.Lag{})
	})
	w.mu.Lock()
	w.armed = nil
	w.mu.Unlock()
	for _, m := range w.members[1:] {
		w.fail(m.end.set(socketRight))
		w.fail(failDELs(m.node, 0, 0))
		for uid := range m.hung {
			w.fail(w.unhang(m, uid))
		}
		w.fail(w.letUp(m))
	}
}
