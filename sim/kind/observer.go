package kind

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/sim/actions"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// eyes are the world's, for its witness. They are asked with mu held.
type eyes struct{ w *World }

func (e eyes) Now() time.Duration                          { return e.w.c.Now() }
func (e eyes) Ran(*judge.Life, *ipam.Apply, *ipam.Applied) {}

func (e eyes) Held(node int32, a netip.Addr) (count int) {
	for _, ns := range namespaces(e.w.members[node].node) {
		if ns.has(a) {
			count++
		}
	}
	return count
}

// What follows runs in the cloud's goroutine.

// arrived springs a trap that waits for this request.
func (w *World) arrived(n *Node, a ec2.Action, after bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byNode[n]
	if m == nil || m.pid == 0 {
		return false
	}
	id, sprung := w.traps.Spring(m.no, a, after)
	if sprung {
		w.metNow(id, actions.Sprung(a, after))
		w.kill(m)
	}
	return sprung
}

// kill is SIGKILL; kubelet starts the container again. Callers hold mu.
func (w *World) kill(m *member) {
	if m.pid != 0 {
		w.story.Add(w.witness.Now(), m.no, "ipamd is killed")
		sigkill(m.pid)
	}
}

func (w *World) asked(n *Node, q *ec2.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.byNode[n]; m != nil {
		w.witness.Asked(judge.Whose{Model: w.c.cloud, Node: q.Caller}, m.no, q)
	}
}

func (w *World) served(n *Node, q *ec2.Request, r *ec2.Response) {
	w.events.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.byNode[n]; m != nil {
		m.moves++
		w.witness.Served(w.c.cloud, m.no, q, r)
	}
}

// happened judges I4. A pod lives while its namespace does and has its address.
func (w *World) happened(n *Node, e *ec2.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.byNode[n]
	if m == nil {
		return
	}
	m.moves++
	var seen []namespace
	looked := false
	w.witness.Happened(w.c.cloud, m.no, e, func(a netip.Addr) string {
		if !looked {
			seen, looked = namespaces(n), true
		}
		for _, ns := range seen {
			if ns.has(a) {
				return w.nameOf(m, a, ns.name)
			}
		}
		return ""
	})
	if e.Kind == ec2.InstanceTerminated {
		w.story.Add(w.witness.Now(), m.no, "the instance is terminated")
		w.metNow(m.endedBy, "EC2 has terminated the instance")
	}
}

// nameOf is a pod's by its address; otherwise, of one that the API server does not know.
func (w *World) nameOf(m *member, a netip.Addr, otherwise string) string {
	if w.pods != nil {
		for _, p := range w.pods.all() {
			if p.node == m.node.Name && p.address == a {
				return p.name
			}
		}
	}
	return otherwise
}

func (w *World) rebooted(n *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.byNode[n]; m != nil {
		m.moves++
		w.story.Add(w.witness.Now(), m.no, "the machine restarts")
	}
}

// ledgerOfOthers are the calls of the machines that are no nodes of the scenario. It is asked in the cloud's goroutine.
func (w *World) ledgerOfOthers(m *ec2.Cloud) []ec2.Count {
	out := make([]ec2.Count, ec2.ActionCount)
	for _, e := range w.endpoints {
		if e.member != nil {
			continue
		}
		for a := range out {
			n := m.CallsBy(e.node.Instance, ec2.Action(a))
			out[a].Total += n.Total
			out[a].Throttled += n.Throttled
			out[a].Failed += n.Failed
			out[a].Lost += n.Lost
		}
	}
	return out
}

// ledger is the one that the scenario's calls count from: the others' calls since t=0 are none of them.
func (w *World) ledger(m *ec2.Cloud) []ec2.Count {
	out := append([]ec2.Count(nil), w.base...)
	for a, n := range w.ledgerOfOthers(m) {
		out[a].Total += n.Total - w.others[a].Total
		out[a].Throttled += n.Throttled - w.others[a].Throttled
		out[a].Failed += n.Failed - w.others[a].Failed
		out[a].Lost += n.Lost - w.others[a].Lost
	}
	return out
}
