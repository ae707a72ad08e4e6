package kind

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/verb"
)

// member is a node of the scenario.
type member struct {
	w       *World
	no      int32
	node    *cluster.Node
	runtime *containerRuntime
	end     *endpoint
	silent  map[netip.Addr]bool // pods' addresses that did not answer at the last snapshot; the judging goroutine's
	hung    map[string]int      // by the pod's UID: its shim, as the node numbers it
	flows   flows               // the judging goroutine's
	held    bool                // its daemon is kept down
	killed  bool                // its daemon has been killed before
	delsBy  int                 // the action that makes DELs fail, until one has
	faults  []byte              // what it wrote for that
	version int                 // of records and local protocol: its next daemon's
	plugin  int                 // of the local protocol: its next plugin's

	pluginBy int // the action that waits for such a plugin to be run

	// Guarded by World.mu.
	set      ipam.Settings
	customAt time.Duration   // when custom networking was switched on or off
	life     *judge.Life     // the daemon that runs, nil: none has been heard of
	pid      int             // of that daemon
	moves    uint64          // what has happened at EC2 to the node
	history  actions.History // sandboxes by pod name, newest last

	// The actions that have something still to meet: 0 is none.
	socketBy, heldBy, endedBy int
	starters                  actions.Starters
}

// gone says whether its instance is terminated.
func (m *member) gone() bool { return m.node.Gone.Load() }

func (m *member) name() string { return fmt.Sprintf("node-%d", m.no) }

// do carries out a verb of the node.
func (m *member) do(a *verb.Act, id int) error {
	if m.gone() {
		m.w.took(id, verb.Miss(actions.Terminated))
		return nil
	}
	return m.w.strike(a, id, m, verb.Pod{})
}

// members are the nodes of a scenario, 1-based: the first is nil.
type members []*member

// living are those whose instances are not terminated.
func (s members) living() []*member {
	return slices.DeleteFunc(slices.Clone(s[1:]), (*member).gone)
}

// on is the node that a machine is; nil: none.
func (s members) on(machine string) *member {
	for _, m := range s[1:] {
		if m.node.Name == machine {
			return m
		}
	}
	return nil
}

// nodeOf names an instance's node.
func (s members) nodeOf(i ec2.InstanceID) string {
	for _, m := range s[1:] {
		if m.node.Instance == i {
			return m.name()
		}
	}
	return "another machine"
}

// instance is a node's at EC2. It is asked in the cloud's goroutine.
func (s members) instance(no int) ec2.InstanceID {
	if no < 1 || no >= len(s) {
		return ""
	}
	return s[no].node.Instance
}

// machines are the names of the containers that are a node, or all nodes.
func (s members) machines(no int) (out []string) {
	for _, m := range s[1:] {
		if no == 0 || int(m.no) == no {
			out = append(out, m.node.Name)
		}
	}
	return out
}

// tell writes a line of the story.
func (m *member) tell(text string) {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	m.told(text)
}

// told is tell for who holds mu.
func (m *member) told(text string) { m.w.Lines.Add(m.w.witness.Now(), m.no, text) }

// kill is SIGKILL; kubelet starts the container again. Callers hold mu.
func (m *member) kill() {
	if m.pid != 0 {
		m.told("ipamd is killed")
		sigkill(m.pid)
	}
}

// nameOf is a pod's by its address; otherwise, of one that the API server does not know.
func (m *member) nameOf(a netip.Addr, otherwise string) string {
	if m.w.pods != nil {
		for _, p := range m.w.pods.all() {
			if p.node == m.node.Name && p.address == a {
				return p.name
			}
		}
	}
	return otherwise
}

// collectGarbage removes the sandboxes that have ended and whose pods are gone.
func (m *member) collectGarbage(ctx context.Context) {
	list, err := m.runtime.sandboxes(ctx)
	if err != nil {
		return // a runtime that does not answer has its turn in the next minute
	}
	for i := range list {
		if s := &list[i]; s.Namespace == namespaceOfPods && !s.Ready && !m.w.pods.knows(s.UID) {
			m.runtime.remove(ctx, s.ID)
		}
	}
}
