package judge

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Served is a request of a node that EC2 has answered.
func (w *Witness) Served(m *ec2.Cloud, node int32, q *ec2.Request, r *ec2.Response) {
	w.Audit.EC2Call(w.Eyes.Now(), int(node))
	if strings.HasPrefix(q.Action.String(), "Describe") {
		return
	}
	if q.ENI == "" && q.Attachment != "" { // a story is about ENIs
		named := *q
		named.ENI = eniOf(m, q.Attachment)
		q = &named
	}
	w.Story.Call(w.Now(), node, q, r)
	if w.begun && w.Book != nil {
		w.Book.Call(node, q, r)
	}
}

// Asked is a request of a node that EC2 is about to execute: I14 and I19 are judged.
func (w *Witness) Asked(whose Whose, node int32, q *ec2.Request) {
	whose.Cluster, whose.LeavesUntagged = w.Cluster, w.leaves[node]
	w.Audit.Requested(w.Eyes.Now(), int(node), whose, q)
}

// theirs is an attached ENI that is not the node's, or would not be with MANAGE_UNTAGGED_ENI=false. It is noted when it is attached: plans and
// replies are judged where the model of EC2 cannot be asked.
type theirs struct {
	why       string
	untagged  bool
	addresses []netip.Addr
}

func (w *Witness) attach(m *ec2.Cloud, e *ec2.Event) {
	t := theirs{why: Whose{Model: m, Node: e.Instance}.NotOurs(e.ENI)}
	if t.why == "" {
		t.why = Whose{Model: m, Node: e.Instance, LeavesUntagged: true}.NotOurs(e.ENI)
		t.untagged = true
	}
	if t.why == "" {
		return
	}
	v, _ := m.ENI(e.ENI)
	t.addresses = append([]netip.Addr{v.Primary}, carried(&v)...)
	if w.theirs == nil {
		w.theirs = map[ec2.ENIID]theirs{}
	}
	w.theirs[e.ENI] = t
}

// leave notes what a daemon's settings say about untagged ENIs.
func (w *Witness) leave(node int32, s *ipam.Settings) {
	if w.leaves == nil {
		w.leaves = map[int32]bool{}
	}
	w.leaves[node] = s.LeaveUntagged
}

// touched judges what a daemon did to an ENI beside its requests.
func (w *Witness) touched(node int32, what string, id ec2.ENIID) {
	if t, ok := w.theirs[id]; ok && (!t.untagged || w.leaves[node]) {
		w.Audit.Touched(w.Eyes.Now(), int(node), what, string(id), t.why)
	}
}

// given judges the address of a successful ADD.
func (w *Witness) given(node int32, a netip.Addr) {
	for id, t := range w.theirs { // a set: the order does not show, an address is on one ENI
		if slices.Contains(t.addresses, a) {
			w.touched(node, Gives, id)
		}
	}
}

// Happened is something that happened at EC2 to a node: I4 is judged. live names a live pod of the node that has an address, "" is none.
func (w *Witness) Happened(m *ec2.Cloud, node int32, e *ec2.Event, live func(netip.Addr) string) {
	switch e.Kind {
	case ec2.ENIAttached:
		w.attach(m, e)
	case ec2.ENIDetachStarted:
		delete(w.theirs, e.ENI)
	}
	w.Audit.Happened(w.Eyes.Now(), int(node), m, e, live)
}

// Orphans judges the cluster's ENIs that no daemon knows (I5), and names those that one will delete. A nil Life is a node without a daemon.
func (w *Witness) Orphans(m *ec2.Cloud, lives []*Life) (underWay []string) {
	var daemons []*ipam.Node
	for _, l := range lives {
		daemons = append(daemons, l.Core())
	}
	leaked, underWay := Orphans(m, w.Cluster, w.Eyes.Now(), w.epoch, daemons)
	w.Audit.Leaked(w.Eyes.Now(), leaked)
	return underWay
}
