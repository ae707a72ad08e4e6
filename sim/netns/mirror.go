package netns

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// mirror is the model of the node's kernel: every plan that the daemon applied is applied to it too, and what it shows has to be what
// the real one shows (the kernel check).
type mirror struct {
	*kernel.Kernel
	inodes map[uint64]uint64 // of real namespaces, to the model's
	pods   map[uint64]*pod   // namespaces that were made, by real inode
	broken []*ipam.Apply     // under way when their daemon died: any prefix of each may be done
	ending map[string]bool   // names and aliases of veths whose namespace has ended: the real kernel takes them away a while later (cleanup_net)
}

// pod is a namespace's life as the runtime knows it.
type pod struct {
	unmounted bool
	holds     int
}

func (p *pod) ended() bool { return p != nil && p.unmounted && p.holds == 0 }

func newMirror(seed uint64) *mirror {
	return &mirror{Kernel: kernel.New(seed), inodes: map[uint64]uint64{}, pods: map[uint64]*pod{}, ending: map[string]bool{}}
}

func (m *mirror) newNamespace(inode uint64) {
	m.inodes[inode], m.pods[inode] = m.NewNamespace(), &pod{}
}

func (m *mirror) closeNamespace(inode uint64) {
	m.end(func() { m.CloseNamespace(m.inodes[inode]) })
	if p := m.pods[inode]; p != nil {
		p.unmounted = true
	}
}

func (m *mirror) hold(inode uint64) {
	m.Hold(m.inodes[inode])
	if p := m.pods[inode]; p != nil {
		p.holds++
	}
}

func (m *mirror) release(inode uint64) {
	m.end(func() { m.Release(m.inodes[inode]) })
	if p := m.pods[inode]; p != nil {
		p.holds--
	}
}

// end notes the veths that end with a namespace.
func (m *mirror) end(namespace func()) {
	before := m.Observe().Links
	namespace()
	after := m.Observe().Links
	for _, l := range before {
		if !slices.ContainsFunc(after, func(o dataplane.Link) bool { return o.Name == l.Name }) {
			m.ending[l.Name], m.ending[l.Alias] = true, true
		}
	}
}

// reboot loses everything but the ENIs' links.
func (m *mirror) reboot() {
	m.Reboot()
	m.inodes, m.pods, m.broken, m.ending = map[uint64]uint64{}, map[uint64]*pod{}, nil, map[string]bool{}
}

// init is the init step of a daemon.
func (m *mirror) init(host dataplane.HostSpec) {
	p := dataplane.InitPlan(host)
	m.Apply(p, 0, len(p.Ops))
}

// run carries out the first operations of a daemon's plan. A namespace that the runtime has ended meanwhile lives for as long as the daemon
// has the file of it that the plugin passed; then it takes along what the plan made in it.
func (m *mirror) run(k *kernel.Kernel, p dataplane.Plan, to int) (done int, err *dataplane.Error) {
	q := dataplane.Plan{Ops: slices.Clone(p.Ops)}
	var passed uint64
	for i := range q.Ops {
		op := &q.Ops[i]
		if op.Netns != 0 && m.pods[op.Netns].ended() {
			if passed == 0 {
				passed = k.NewNamespace()
			}
			op.Netns = passed
			if op.Kind == dataplane.CreateVeth {
				m.ending[op.Link], m.ending[op.Alias] = true, true
			}
		} else if op.Netns != 0 {
			op.Netns = m.inodes[op.Netns]
		}
	}
	done, err = k.Apply(q, 0, to)
	if passed != 0 {
		k.CloseNamespace(passed)
	}
	return done, err
}

// follow does what the real kernel has done of a plan; "" is that the model did the same.
func (m *mirror) follow(a *ipam.Apply, done *ipam.Applied) string {
	ops := len(a.Plan.Ops)
	if done.Err == nil {
		if at, err := m.run(m.Kernel, a.Plan, ops); err != nil {
			return fmt.Sprintf("the real one ran the plan of lane %v, the model stops at operation %d: %v", a.Lane, at+1, err)
		}
		return ""
	}
	if m.lingers(a.Plan, done) {
		if at, err := m.run(m.Kernel, a.Plan, done.Done); err != nil {
			return fmt.Sprintf("the real one stops at operation %d of the plan of lane %v: %v; the model before it: %d, %v", done.Done+1, a.Lane, done.Err, at+1, err)
		}
		return ""
	}
	at, err := m.run(m.Kernel, a.Plan, min(done.Done+1, ops))
	if err == nil || at != done.Done || err.Kind != done.Err.Kind {
		return fmt.Sprintf("the real one stops at operation %d of the plan of lane %v: %v; the model: %d, %v", done.Done+1, a.Lane, done.Err, at+1, err)
	}
	return ""
}

// lingers says whether a plan met a veth that has ended, and that the real kernel still had.
func (m *mirror) lingers(p dataplane.Plan, done *ipam.Applied) bool {
	if done.Err.Kind != dataplane.Exists || done.Done >= len(p.Ops) {
		return false
	}
	op := &p.Ops[done.Done]
	return op.Kind == dataplane.CreateVeth && (m.ending[op.Link] || m.ending[op.Alias])
}

// crashed keeps the plans that were under way when their daemon died, in the order in which they were started.
func (m *mirror) crashed(plans []*ipam.Apply) {
	m.broken = append(m.broken, plans...)
}

// agree says in what the model and the real kernel differ; "" is in nothing.
func (m *mirror) agree(real *dataplane.Observation) string {
	m.explain(real)
	o := m.Observe()
	normalize(&o)
	diff := difference(&o, real)
	if diff == "" {
		clear(m.ending) // none of them is left
	}
	return diff
}

// explain applies the prefix of every broken plan that leaves the fewest differences to the real kernel. Plans that run at the same time
// are about different things, so each is judged by itself, and a second time for those that are not.
func (m *mirror) explain(real *dataplane.Observation) {
	if len(m.broken) == 0 {
		return
	}
	done := make([]int, len(m.broken))
	for range 2 {
		for i := range done {
			done[i] = m.nearest(real, done, i)
		}
	}
	m.Kernel = m.branch(done)
	m.broken = nil
}

// nearest is the number of operations of broken plan i that explains the real kernel best, the others being done so far.
func (m *mirror) nearest(real *dataplane.Observation, done []int, i int) int {
	best, least := 0, math.MaxInt
	tried := slices.Clone(done)
	for ops := 0; ops <= len(m.broken[i].Plan.Ops); ops++ {
		tried[i] = ops
		o := m.branch(tried).Observe()
		normalize(&o)
		if d := distance(&o, real); d < least {
			best, least = ops, d
		}
	}
	return best
}

// branch is the kernel after the first operations of each broken plan.
func (m *mirror) branch(done []int) *kernel.Kernel {
	k := m.Clone()
	for i, a := range m.broken {
		m.run(k, a.Plan, done[i])
	}
	return k
}

// distance is the number of things that only one of two observations has.
func distance(a, b *dataplane.Observation) int {
	if a.Equal(b) {
		return 0
	}
	count := map[string]int{}
	for _, l := range lines(a) {
		count[l]++
	}
	for _, l := range lines(b) {
		count[l]--
	}
	d := 1 // the order differs
	for _, c := range count {
		d += max(c, -c)
	}
	return d
}

// normalize masks what names nothing: interface indexes, and the links that are not ours to know, such as loopback's.
func normalize(o *dataplane.Observation) {
	links := o.Links[:0:0]
	for _, l := range o.Links {
		if l.Name == "lo" {
			continue
		}
		if strings.HasPrefix(l.Name, "eth") { // a cable of the VPC; in EC2 it is no veth
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
	only := func(in string, has, other []string) {
		for _, l := range has {
			if !slices.Contains(other, l) {
				fmt.Fprintf(&b, "  only in the %s: %s\n", in, l)
			}
		}
	}
	only("model", a, c)
	only("kernel", c, a)
	if b.Len() == 0 {
		return "  the same things in another order\n"
	}
	return b.String()
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
	return append(out, fmt.Sprintf("nat %+v", o.NAT), fmt.Sprintf("forward %+v", o.Forward))
}
