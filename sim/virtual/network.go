package virtual

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/models"
)

// network is a node's models.Network: it follows packets through the models of kernel and VPC, and keeps who gets none.
type network struct {
	n      *node
	moved  bool                     // EC2 did something to the node's ENIs since the last snapshot
	fresh  []netip.Addr             // given to pods since then: the kernel had them before the runtime knew
	faults map[cri.SandboxID]string // who was out of reach at the last snapshot, and why
	apart  map[netip.Addr]string    // and of whom another pod of the node gets no answer
}

func (k *network) fork() {
	k.faults, k.apart, k.fresh = maps.Clone(k.faults), maps.Clone(k.apart), slices.Clone(k.fresh)
}

// Reach follows packets from the VPC.
func (k *network) Reach(pods []cri.Truth) []bool {
	out := make([]bool, len(pods))
	for i, p := range pods {
		out[i] = k.fault(p.Address, p.Netns) == ""
	}
	return out
}

// A flow of this world is its pod's sandbox, address and ENI: it goes as long as packets from the VPC get to that sandbox and back. Conntrack has no
// part in it: what is routed and not translated outlives its entry.

// OpenFlows needs nothing but a way there and back.
func (k *network) OpenFlows(pods []cri.Truth) []bool { return k.Reach(pods) }

// CloseFlow has nothing to close.
func (k *network) CloseFlow(cri.Truth) {}

// Echo follows packets. Another pod that has the address knows nothing of the connection, and resets it.
func (k *network) Echo(pods []cri.Truth, _ bool) []models.Answer {
	out := make([]models.Answer, len(pods))
	for i, p := range pods {
		why := k.fault(p.Address, p.Netns)
		out[i] = models.Answer{Why: why, Cut: why == taken}
	}
	return out
}

// manyTraces is from how many changed addresses on it is cheaper to trace all.
const manyTraces = 8

// retrace follows a packet to every pod that something has changed for since the last snapshot, and keeps who is out of reach.
func (k *network) retrace() {
	changed, all := k.n.kern.Changed()
	changed = append(k.fresh, changed...)
	all = all || k.moved || len(changed) > manyTraces
	k.moved, k.fresh = false, k.fresh[:0]
	if !all && len(changed) == 0 {
		return
	}
	for t := range k.n.CRI.Sandboxes() {
		if !t.Address.IsValid() || !all && !slices.Contains(changed, t.Address) {
			continue
		}
		if why := k.fault(t.Address, t.Netns); why == "" {
			delete(k.faults, t.Handle)
		} else {
			k.faults[t.Handle] = why
		}
	}
	k.reconnect(all, changed)
}

// taken is the fault of a pod whose packets another one gets.
const taken = "another namespace has the address"

// fault says why a packet from the VPC does not reach a pod and come back; "" is that it does.
func (k *network) fault(a netip.Addr, netns uint64) string {
	n, w := k.n, k.n.w
	id, ok := w.EC2.HasAddress(n.Instance, a)
	if !ok {
		return "the address is on no ENI that is attached to the node"
	}
	if inode, used := n.kern.InUse(a); used && inode != netns && n.kern.Holders(a) == 1 { // of two who have it I1 speaks
		return taken
	}
	why, _ := n.kern.Trace(a, w.EC2.MAC(id))
	return why
}

// Connect follows packets there and back.
func (k *network) Connect(pairs []models.Pair) []string {
	out := make([]string, len(pairs))
	for i := range pairs {
		out[i] = k.between(pairs[i].From.Address, k.n.w.nodes[pairs[i].To.Node], pairs[i].To.Address)
	}
	return out
}

// between says why one pod gets no answer of another.
func (k *network) between(a netip.Addr, m *node, b netip.Addr) string {
	if why := k.way(a, m, b); why != "" {
		return why
	}
	if why := m.way(b, k.n, a); why != "" {
		return "no answer: " + why
	}
	return ""
}

// way says why a packet from a pod does not get to another one, through the rules of both nodes and the VPC between them.
func (k *network) way(a netip.Addr, m *node, b netip.Addr) string {
	n, w := k.n, k.n.w
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
func (k *network) reconnect(all bool, changed []netip.Addr) {
	if !all && len(k.apart) == 0 {
		k.askNext(changed)
		return
	}
	clear(k.apart)
	pairs := models.Pairs(k.n.w.Places(&k.n.Node))
	for i := range pairs {
		k.ask(&pairs[i].From.Pod, &pairs[i].To.Pod)
	}
}

// askNext has those for whom something has changed, and the pod before each of them, ask the next pod.
func (k *network) askNext(changed []netip.Addr) {
	var first, last cri.Truth
	fresh := func(t *cri.Truth) bool { return slices.Contains(changed, t.Address) }
	for t := range k.n.CRI.Sandboxes() {
		if !t.Running || !t.Address.IsValid() {
			continue
		}
		if first.ID == "" {
			first = t
		} else if fresh(&last) || fresh(&t) {
			k.ask(&last, &t)
		}
		last = t
	}
	if last.ID != first.ID && (fresh(&last) || fresh(&first)) {
		k.ask(&last, &first)
	}
}

// ask has one pod of a node ask another, if the VPC reaches both.
func (k *network) ask(from, to *cri.Truth) {
	if k.faults[from.Handle] != "" || k.faults[to.Handle] != "" {
		return
	}
	if why := k.between(from.Address, k.n, to.Address); why != "" {
		k.apart[to.Address] = models.Unanswered(from, why)
	}
}
