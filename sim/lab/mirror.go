package lab

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// mirror is the model of the node's kernel: every plan that the daemon applied is applied to it too, and what it shows has to be what
// the real one shows (the kernel check).
type mirror struct {
	*kernel.Kernel
	inodes map[uint64]uint64 // of real namespaces, to the model's
	broken []*ipam.Apply     // under way when their daemon died: any prefix of each may be done
}

func newMirror(seed uint64) *mirror {
	return &mirror{Kernel: kernel.New(seed), inodes: map[uint64]uint64{}}
}

func (m *mirror) newNamespace(inode uint64) { m.inodes[inode] = m.NewNamespace() }

func (m *mirror) closeNamespace(inode uint64) { m.CloseNamespace(m.inodes[inode]) }

func (m *mirror) release(inode uint64) { m.Release(m.inodes[inode]) }

// reboot loses everything but the ENIs' links.
func (m *mirror) reboot() {
	m.Reboot()
	m.inodes, m.broken = map[uint64]uint64{}, nil
}

// init is the init step of a daemon.
func (m *mirror) init(n *instance) {
	p := dataplane.InitPlan(dataplane.HostSpec{PrimaryMAC: n.mac, NodePort: n.set.NodePort})
	m.Apply(p, 0, len(p.Ops))
}

// plan is a plan with the model's inodes.
func (m *mirror) plan(p dataplane.Plan) dataplane.Plan {
	q := dataplane.Plan{Ops: append([]dataplane.Op(nil), p.Ops...)}
	for i := range q.Ops {
		if op := &q.Ops[i]; op.Netns != 0 {
			op.Netns = m.inodes[op.Netns]
		}
	}
	return q
}

// mirrored applies to the model what the daemon has applied.
func (w *World) mirrored(n *instance, a *ipam.Apply, done *ipam.Applied) {
	p := n.mirror.plan(a.Plan)
	if done.Err == nil {
		if at, err := n.mirror.Apply(p, 0, len(p.Ops)); err != nil {
			w.disagree(n, "kernel: the real one ran the plan of lane %v, the model stops at operation %d: %v", a.Lane, at+1, err)
		}
		return
	}
	at, err := n.mirror.Apply(p, 0, min(done.Done+1, len(p.Ops)))
	if err == nil || at != done.Done || err.Kind != done.Err.Kind {
		w.disagree(n, "kernel: the real one stops at operation %d of the plan of lane %v: %v; the model: %d, %v", done.Done+1, a.Lane, done.Err, at+1, err)
	}
}

// crashed keeps the plans that were under way when their daemon died.
func (m *mirror) crashed(l *life) {
	for _, a := range l.plans {
		m.broken = append(m.broken, a)
	}
}

// doubtTime is how long, in real time, model and kernel may differ while nothing of the node works: what a kernel event, a line of a
// recording, or the end of a namespace takes on a machine that is busy with other things.
const doubtTime = 3 * time.Second

// doubtPause is between two looks in that time.
const doubtPause = 5 * time.Millisecond

// compare holds the model against the real kernel. What differs may only be on its way, so the clock does not jump until they agree;
// what stays is a disagreement.
func (w *World) compare(n *instance) {
	real, err := n.box.Observe()
	n.compared = time.Now()
	if err != nil || !real.Complete {
		return // not judged; the next cut is
	}
	normalize(&real)
	diff := n.mirror.agree(&real)
	switch {
	case diff == "":
		n.doubt = doubt{}
	case n.doubt.since.IsZero() || n.doubt.steps != n.steps():
		n.doubt = doubt{n.compared, n.steps()}
	case n.compared.Sub(n.doubt.since) > doubtTime:
		n.doubt = doubt{}
		n.mirror.giveUp()
		w.disagree(n, "kernel: the real one and the model differ:\n%s", diff)
	}
}

// doubt is when the real kernel was first seen to differ from the model; zero: it does not.
type doubt struct {
	since time.Time
	steps uint64 // of the daemon by then: whatever it does begins anew
}

// compareAgain looks once more at the kernels that are doubted.
func (w *World) compareAgain() {
	for _, n := range w.nodes[1:] {
		if !n.gone && !n.doubt.since.IsZero() && time.Since(n.compared) >= doubtPause && n.works(w.now()) == "" {
			w.compare(n)
		}
	}
}

// resolve runs on until nothing is doubted.
func (w *World) resolve() {
	for end := w.now() + 4*doubtTime; w.doubted() && w.broken == nil && w.now() < end; {
		w.until(w.now()+doubtPause, nil)
	}
}

func (w *World) doubted() bool {
	for _, n := range w.nodes[1:] {
		if !n.gone && !n.doubt.since.IsZero() {
			return true
		}
	}
	return false
}

// maxBranches bounds how many ways a crash may have left the kernel are tried.
const maxBranches = 4096

// agree finds the state that the model is in. After a crash it is the one prefix of what was under way that explains the real kernel.
func (m *mirror) agree(real *dataplane.Observation) string {
	if len(m.broken) == 0 {
		o := m.Observe()
		normalize(&o)
		return difference(&o, real)
	}
	branches := []*kernel.Kernel{m.Kernel}
	for _, a := range m.broken {
		p := m.plan(a.Plan)
		var more []*kernel.Kernel
		for _, b := range branches {
			for ops := 0; ops <= len(p.Ops) && len(more) < maxBranches; ops++ {
				c := b.Clone()
				c.Apply(p, 0, ops)
				more = append(more, c)
			}
		}
		branches = more
	}
	diff := ""
	for _, b := range branches {
		o := b.Observe()
		normalize(&o)
		if diff = difference(&o, real); diff == "" {
			m.Kernel, m.broken = b, nil
			return ""
		}
	}
	return "after a crash, no prefix of the plans under way explains it; with all of them:\n" + diff
}

// giveUp takes all that was under way at a crash for done.
func (m *mirror) giveUp() {
	for _, a := range m.broken {
		p := m.plan(a.Plan)
		m.Apply(p, 0, len(p.Ops))
	}
	m.broken = nil
}

// normalize masks what names nothing: interface indexes, and the links that are not ours to know, such as loopback's.
func normalize(o *dataplane.Observation) {
	links := o.Links[:0:0]
	for _, l := range o.Links {
		if l.Name == "lo" {
			continue
		}
		if strings.HasPrefix(l.Name, "eth") { // a cable of the fabric; in EC2 it is no veth
			l.Veth, l.PeerLive, l.PeerAddresses = false, false, nil
		}
		l.Index = 0
		links = append(links, l)
	}
	o.Links = links
	routes := o.Routes[:0:0]
	for _, r := range o.Routes {
		if r.Link != "lo" {
			routes = append(routes, r)
		}
	}
	o.Routes = routes
}

// difference is "" or what the model and the real kernel do not share, a line each.
func difference(model, real *dataplane.Observation) string {
	if model.Equal(real) {
		return ""
	}
	var b strings.Builder
	a, c := lines(model), lines(real)
	for _, l := range a {
		if !contains(c, l) {
			fmt.Fprintf(&b, "  only in the model: %s\n", l)
		}
	}
	for _, l := range c {
		if !contains(a, l) {
			fmt.Fprintf(&b, "  only in the kernel: %s\n", l)
		}
	}
	if b.Len() == 0 {
		return "  the same things in another order\n"
	}
	return b.String()
}

func contains(all []string, s string) bool {
	for _, x := range all {
		if x == s {
			return true
		}
	}
	return false
}

func lines(o *dataplane.Observation) []string {
	var out []string
	for _, l := range o.Links {
		out = append(out, fmt.Sprintf("link %+v", l))
	}
	for _, r := range o.Routes {
		out = append(out, fmt.Sprintf("route table %d %v via %v dev %s", r.Table, r.Dst, r.Via, r.Link))
	}
	for _, r := range o.Rules {
		out = append(out, fmt.Sprintf("rule %+v", r))
	}
	return append(out, fmt.Sprintf("nat %+v", o.NAT))
}
