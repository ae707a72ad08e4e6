package kind

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// observer is how a World sees: for its witness, with mu held, and what its nodes ask of the cloud.
type observer struct {
	j *journal

	// Guarded by the journal's mu.
	c       *cluster.Cluster
	members members
	byNode  map[*cluster.Node]*member
}

func (o *observer) Now() time.Duration                          { return o.c.Now() }
func (o *observer) Ran(*judge.Life, *ipam.Apply, *ipam.Applied) {}

func (o *observer) Held(node int32, a netip.Addr) (count int) {
	for _, ns := range namespaces(o.members[node].node) {
		if ns.has(a) {
			count++
		}
	}
	return count
}

// heard remembers which sandboxes there were. It is called with mu held.
func (o *observer) heard(l *judge.Life, in ipam.Input) {
	m := o.members[l.Number()]
	switch in := in.(type) {
	case ipam.Add:
		m.history.Add(in.Pod.Name, in.Att.ContainerID)
	case ipam.Start:
		ids, text := m.starters.Met(&in)
		for _, id := range ids {
			o.j.metNow(id, text)
		}
	case ipam.Seen:
		if in.What == ipam.LookRuntime && in.ID != 0 && m.socketBy != 0 {
			o.j.metNow(m.socketBy, actions.Listed(&in))
			m.socketBy = 0
		}
	}
}

// What follows runs in the cloud's goroutine.

// on calls f with the node of the scenario that a machine is, if it is one, with mu held.
func (o *observer) on(n *cluster.Node, f func(*member)) {
	o.j.mu.Lock()
	defer o.j.mu.Unlock()
	if m := o.byNode[n]; m != nil {
		f(m)
	}
}

// arrived springs a trap that waits for this request.
func (o *observer) arrived(n *cluster.Node, a ec2.Action, after bool) (sprung bool) {
	o.on(n, func(m *member) {
		if m.pid == 0 {
			return
		}
		var id int
		if id, sprung = o.j.traps.Spring(m.no, a, after); sprung {
			o.j.metNow(id, actions.Sprung(a, after))
			m.kill()
		}
	})
	return sprung
}

func (o *observer) asked(n *cluster.Node, q *ec2.Request) {
	o.on(n, func(m *member) { o.j.witness.Asked(m.whose(), m.no, q) })
}

func (o *observer) served(n *cluster.Node, q *ec2.Request, r *ec2.Response) {
	o.j.events.Add(1)
	o.on(n, func(m *member) {
		m.moves++
		o.j.witness.Served(o.c.Model(), m.no, q, r)
	})
}

// happened judges I4. A pod lives while its namespace does and has its address.
func (o *observer) happened(n *cluster.Node, e *ec2.Event) {
	o.on(n, func(m *member) {
		m.moves++
		var seen []namespace
		looked := false
		o.j.witness.Happened(o.c.Model(), m.no, e, func(a netip.Addr) string {
			if !looked {
				seen, looked = namespaces(n), true
			}
			for _, ns := range seen {
				if ns.has(a) {
					return m.nameOf(a, ns.name)
				}
			}
			return ""
		})
		if e.Kind == ec2.InstanceTerminated {
			m.told("the instance is terminated")
			o.j.metNow(m.endedBy, "EC2 has terminated the instance")
		}
	})
}

func (o *observer) rebooted(n *cluster.Node) {
	o.on(n, func(m *member) {
		m.moves++
		m.told("the machine restarts")
	})
}
