package witness

import (
	"net/netip"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/audit"
)

// Served is a request of a node that EC2 has answered.
func (w *Witness) Served(m *ec2.Cloud, node int32, q *ec2.Request, r *ec2.Response) {
	w.Audit.EC2Call(w.Eyes.Now(), int(node))
	if strings.HasPrefix(q.Action.String(), "Describe") {
		return
	}
	if q.ENI == "" && q.Attachment != "" { // a story is about ENIs
		named := *q
		named.ENI = attached(m, q.Attachment)
		q = &named
	}
	w.Story.Call(w.Now(), node, q, r)
	if w.begun && w.Book != nil {
		w.Book.Call(node, q, r)
	}
}

// attached is the ENI of an attachment.
func attached(m *ec2.Cloud, attachment string) ec2.ENIID {
	for _, e := range m.AllENIs() {
		if e.Attachment == attachment {
			return e.ID
		}
	}
	return ""
}

// Happened is something that happened at EC2 to a node: I4 is judged. live names a live pod of the node that has an address, "" is none.
func (w *Witness) Happened(m *ec2.Cloud, node int32, e *ec2.Event, live func(netip.Addr) string) {
	now, ours := w.Eyes.Now(), e.By == e.Instance
	switch e.Kind {
	case ec2.AddressUnassigned:
		w.Audit.AddressUnassigned(now, int(node), e.Address, ours, live(e.Address))
	case ec2.ENIDetachStarted:
		v, ok := m.ENI(e.ENI)
		if !ok {
			return
		}
		pods, example := 0, ""
		for _, a := range v.Secondaries {
			if name := live(a); name != "" {
				pods, example = pods+1, name
			}
		}
		w.Audit.ENIFreed(now, int(node), string(e.ENI), ours, pods, example)
		for _, a := range v.Secondaries {
			w.Audit.AddressUnassigned(now, int(node), a, false, "")
		}
	}
}

// ENIs are an instance's, for a cut.
func ENIs(m *ec2.Cloud, i ec2.InstanceID) (out []audit.CloudENI) {
	for _, id := range m.AttachedENIs(i) {
		e, _ := m.ENI(id)
		out = append(out, audit.CloudENI{ID: string(id), Attached: true, Primary: e.Primary, Secondaries: e.Secondaries})
	}
	return out
}

// Orphans are the ENIs that are attached to nothing and that none of these daemons knows: nobody will delete them (I5). A nil Life is a
// node without a daemon.
func Orphans(m *ec2.Cloud, lives []*Life) (out []string) {
	known := map[string]bool{}
	for _, l := range lives {
		if l == nil {
			continue
		}
		v := l.view()
		for i := range v.ENIs {
			known[v.ENIs[i].ID] = true
		}
	}
	for _, e := range m.AllENIs() {
		if e.Status == ec2.Available && !known[string(e.ID)] {
			out = append(out, "ENI "+string(e.ID)+" is available and nobody will delete it")
		}
	}
	return out
}
