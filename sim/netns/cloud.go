package netns

import (
	"net/netip"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
)

// sender is how a node's requests travel.
func (n *instance) sender() *machine.Sender {
	w := n.w
	return &machine.Sender{EC2: w.EC2, Now: w.now, After: w.after,
		Trap:  func(a ec2.Action, after bool) bool { return !(after && n.dying()) && w.Trapped(&n.Node, a, after) },
		Asked: func(r *ec2.Request) { w.witness.Asked(w.Whose(&n.Node), n.No, r) },
		Served: func(r *ec2.Request, answer *ec2.Response) {
			w.witness.Served(w.EC2, n.No, r, answer)
			w.record.served(w.Now(), int32(n.No), r, answer)
		}}
}

// send is a request that has left its node, which counts as held back until it is answered.
func (n *instance) send(r *ec2.Request, answer func(*ec2.Response)) {
	r.Caller = n.Instance
	release := n.keep()
	if !strings.HasPrefix(r.Action.String(), "Describe") {
		n.mutated = time.Now()
	}
	n.sender().Send(r, func(resp *ec2.Response) {
		release()
		answer(resp)
	})
}

// Happened: cables and routes come and go, and I4 is judged.
func (w *World) Happened(m *models.Node, e *ec2.Event) {
	var n *instance
	if m != nil {
		n = w.nodes[m.No]
		w.witness.Happened(w.EC2, n.No, e, n.livePod)
	}
	w.fail(machine.Follow(w.network, w.EC2, e))
	switch {
	case n == nil:
	case e.Kind == ec2.LinkPlugged:
		n.plug(e.MAC)
	case e.Kind == ec2.LinkUnplugged:
		delete(n.links, e.MAC)
		n.mirror.Unplug(e.MAC)
		n.stir()
	case e.Kind == ec2.InstanceTerminated:
		n.terminated()
	}
}

// livePod names a pod whose containers run and that has the address; "" is none.
func (n *instance) livePod(a netip.Addr) string {
	for t := range n.CRI.Sandboxes() {
		if t.Running && t.Address == a && t.Netns != 0 {
			return t.Name
		}
	}
	return ""
}

func (n *instance) terminated() {
	if n.Gone {
		return
	}
	n.w.Ended(&n.Node)
	n.tell("the instance is terminated")
	n.lost()
	n.w.fail(n.close(false))
}
