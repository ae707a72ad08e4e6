package virtual

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
)

// node is one machine: what the models know of it, and the four nouns of models.Machine, each with its own state.
type node struct {
	models.Node
	w *World
	daemon
	machine
	runtime
	network
}

var _ models.Machine = (*node)(nil)

func (w *World) addNode() error {
	n := &node{w: w, daemon: daemon{tickAt: models.Never}, machine: machine{kern: kernel.New(w.Random())},
		network: network{faults: map[cri.SandboxID]string{}, apart: map[netip.Addr]string{}}}
	n.join()
	if err := w.Launch(&n.Node, n, w.Random()); err != nil {
		return err
	}
	for _, l := range w.EC2.Links(n.Instance) {
		address, gateway := w.FirstLink(n.Instance)
		n.kern.PlugPrimary(l.MAC, address, gateway)
	}
	w.nodes = append(w.nodes, n)
	n.in(time.Duration(w.Random()%uint64(100*time.Millisecond)), evStart, 0, nil)
	return nil
}

// join tells the parts whose they are.
func (n *node) join() { n.daemon.n, n.machine.n, n.runtime.n, n.network.n = n, n, n, n }

func (n *node) clone(w *World) *node {
	c := *n
	c.join()
	c.Node, c.w = n.Node.Clone(&c), w
	c.daemon.fork()
	c.machine.fork()
	c.runtime.fork()
	c.network.fork()
	return &c
}

// in lets something happen on the machine after a while, whatever becomes of its daemon.
func (n *node) in(after time.Duration, kind eventKind, num uint64, data any) {
	n.w.push(event{at: n.w.now + after, kind: kind, node: n.No, num: num, data: data})
}

// handle gives an event to the part that it is about.
func (n *node) handle(e *event) {
	switch e.kind {
	case evPlugin:
		n.plugin(e)
	case evResult:
		n.result(e)
	case evKubelet:
		n.w.Wake(&n.Node)
	case evStart:
		n.begin()
	case evStale:
		n.feedIntent(n.find(int(e.num)))
	default:
		n.daemon.handle(e)
	}
}

// ThirdParty is the machine's word: that of models.Node is what the judge asks for.
func (n *node) ThirdParty() (map[string]string, bool) { return n.machine.ThirdParty() }

// happened: links come and go, and I4 is judged.
func (n *node) happened(e *ec2.Event) {
	w := n.w
	n.moved = true
	w.Auditor.Happened(w.now, int(n.No), w.EC2, e, n.livePod)
	switch e.Kind {
	case ec2.LinkPlugged:
		n.kern.Plug(e.MAC)
		n.hint()
	case ec2.LinkUnplugged:
		n.kern.Unplug(e.MAC)
		n.hint()
	case ec2.InstanceTerminated:
		if n.core != nil {
			w.Auditor.Died(w.now, int(n.No))
			n.tornPages()
		}
		n.core = nil
		w.Ended(&n.Node)
		n.tell("the instance is terminated")
	}
}

// touched is an edge at which I14 is judged.
func (n *node) touched(what string, eni ec2.ENIID) {
	if eni != "" {
		n.w.Auditor.Touched(n.w.now, int(n.No), what, string(eni), n.w.Whose(&n.Node).NotOurs(eni))
	}
}

// livePod names a pod whose containers run and whose namespace has the address; "" is none.
func (n *node) livePod(a netip.Addr) string {
	inode, used := n.kern.InUse(a)
	if !used {
		return ""
	}
	for t := range n.CRI.Sandboxes() {
		if t.Netns == inode && t.Running {
			return t.Name
		}
	}
	return ""
}

// leaks are what has no owner.
func (n *node) leaks() []string {
	live := map[uint64]bool{}
	for t := range n.CRI.Sandboxes() {
		live[t.Netns] = true
	}
	r := judge.Residue{Left: n.kern.Leftovers, Used: n.kern.Uses}
	n.kern.LiveAddresses(func(inode uint64, a netip.Addr) {
		if !live[inode] {
			r.Stray = append(r.Stray, a)
		}
	})
	return r.Leaks(n.core)
}
