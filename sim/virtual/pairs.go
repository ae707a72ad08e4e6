package virtual

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/models"
)

// Connect follows packets there and back.
func (n *node) Connect(pairs []models.Pair) []string {
	out := make([]string, len(pairs))
	for i := range pairs {
		out[i] = n.w.between(n, pairs[i].From.Address, n.w.nodes[pairs[i].To.Node], pairs[i].To.Address)
	}
	return out
}

// between says why one pod gets no answer of another.
func (w *World) between(n *node, a netip.Addr, m *node, b netip.Addr) string {
	if why := w.way(n, a, m, b); why != "" {
		return why
	}
	if why := w.way(m, b, n, a); why != "" {
		return "no answer: " + why
	}
	return ""
}

// way says why a packet from a pod does not get to another one, through the rules of both nodes and the VPC between them.
func (w *World) way(n *node, a netip.Addr, m *node, b netip.Addr) string {
	mac, fault := n.kern.Sends(a, b)
	if fault != "" || mac == "" {
		return fault
	}
	if eni, ok := w.EC2.HasAddress(n.Instance, a); !ok || w.EC2.MAC(eni) != mac {
		return kernel.WrongSource
	}
	eni, ok := w.EC2.HasAddress(m.Instance, b)
	if !ok {
		return "the address is on no ENI that is attached to the node"
	}
	return m.kern.Arrives(b, w.EC2.MAC(eni), a)
}

// reconnect asks between the pods of a node after something has changed for all of them, or for some, and keeps who gives no answer. Between
// two nodes no pod is asked: either pod's way to the VPC and back is traced anyhow, and those are the two halves.
func (w *World) reconnect(n *node, all bool, changed []netip.Addr) {
	if !all && len(n.apart) == 0 {
		w.askNext(n, changed)
		return
	}
	n.apart = nil
	pairs := models.Pairs(w.Places(&n.Node))
	for i := range pairs {
		w.ask(n, &pairs[i].From.Pod, &pairs[i].To.Pod)
	}
}

// askNext has those for whom something has changed, and the pod before each of them, ask the next pod.
func (w *World) askNext(n *node, changed []netip.Addr) {
	var first, last cri.Truth
	fresh := func(t *cri.Truth) bool { return slices.Contains(changed, t.Address) }
	for t := range n.CRI.Sandboxes() {
		if !t.Running || !t.Address.IsValid() {
			continue
		}
		if first.ID == "" {
			first = t
		} else if fresh(&last) || fresh(&t) {
			w.ask(n, &last, &t)
		}
		last = t
	}
	if last.ID != first.ID && (fresh(&last) || fresh(&first)) {
		w.ask(n, &last, &first)
	}
}

// ask has one pod of a node ask another, if the VPC reaches both.
func (w *World) ask(n *node, from, to *cri.Truth) {
	if n.faults[from.Handle] != "" || n.faults[to.Handle] != "" {
		return
	}
	if why := w.between(n, from.Address, n, to.Address); why != "" {
		if n.apart == nil {
			n.apart = map[netip.Addr]string{}
		}
		n.apart[to.Address] = models.Unanswered(from, why)
	}
}
