package judge

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Requested judges a request that EC2 is about to execute for a node's daemon (I14).
func (a *Auditor) Requested(now time.Duration, node int, whose Whose, q *ec2.Request) {
	if what, id := whose.Mutates(q); id != "" {
		a.Touched(now, node, what, string(id), whose.NotOurs(id))
	}
}

// Happened judges something that happened at EC2 to a node's ENI (I4). live names a live pod of the node that has an address; "" is none.
func (a *Auditor) Happened(now time.Duration, node int, m *ec2.Cloud, e *ec2.Event, live func(netip.Addr) string) {
	ours := e.By == e.Instance
	switch e.Kind {
	case ec2.AddressUnassigned:
		a.AddressUnassigned(now, node, e.Address, ours, live(e.Address))
	case ec2.ENIDetachStarted:
		v, ok := m.ENI(e.ENI)
		if !ok {
			return
		}
		pods, example := 0, ""
		for _, addr := range v.Secondaries {
			if name := live(addr); name != "" {
				pods, example = pods+1, name
			}
		}
		a.ENIFreed(now, node, string(e.ENI), ours, pods, example)
		for _, addr := range v.Secondaries {
			a.AddressUnassigned(now, node, addr, false, "")
		}
	}
}

// AppendENIs appends what EC2 has attached to a node.
func AppendENIs(list []CloudENI, whose Whose) []CloudENI {
	for _, id := range whose.Model.AttachedENIs(whose.Node) {
		e, _ := whose.Model.ENI(id)
		list = append(list, CloudENI{ID: string(id), Attached: true, NotOurs: whose.NotOurs(id) != "", Prefixes: len(e.Prefixes),
			Primary: e.Primary, Secondaries: e.Secondaries})
	}
	return list
}

// Orphans names the ENIs of a cluster that are attached to nothing and that no daemon knows: nobody will delete them (I5).
func Orphans(m *ec2.Cloud, cluster string, known func(eni string) bool) (out []string) {
	for _, e := range m.AllENIs() {
		if e.Status == ec2.Available && Made(m, cluster, &e) && !known(string(e.ID)) {
			out = append(out, "ENI "+string(e.ID)+" is available and nobody will delete it")
		}
	}
	return out
}
