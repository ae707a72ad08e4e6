package netns

import (
	"net/netip"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
)

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
