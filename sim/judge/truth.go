package judge

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Requested judges a request that EC2 is about to execute for a node's daemon (I14, I19). A token that was asked for before is repeated with
// what was asked then; what that makes is judged when it is attached.
func (a *Auditor) Requested(now time.Duration, node int, whose Whose, q *ec2.Request) {
	if what, id := whose.Mutates(q); id != "" {
		a.Touched(now, node, what, string(id), whose.NotOurs(id))
	}
	if q.Action == ec2.AssignPrivateIpAddresses {
		if why := whose.reserved(now, q.ENI); why != "" {
			a.breaks(I19, now, node, "node-%d asks for addresses on %s, which is %s: expected an ENI that is for pods", node, q.ENI, why)
		}
	}
	what, subnet, at := "makes an ENI", q.Subnet, now
	switch {
	case q.Action == ec2.AttachNetworkInterface:
		// one that is new: EC2 may have made it by a request of long ago. Which ENIConfig a node must know is judged of requests alone
		e, _ := whose.Model.ENI(q.ENI)
		if now-e.Created >= tagGrace || whose.Custom != nil {
			return
		}
		what, subnet, at = "attaches an ENI", e.Subnet, now-attachGrace
	case q.Action != ec2.CreateNetworkInterface || !a.first(node, q.ClientToken):
		return
	}
	a.look(I19)
	if why := whose.notForPods(at, subnet); why != "" {
		a.breaks(I19, now, node, "node-%d %s in %s, which is %s: expected one that is for pods", node, what, subnet, why)
	}
}

// first says whether EC2 was not asked for an ENI with that token before.
func (a *Auditor) first(node int, token string) bool {
	n := a.node(node)
	if slices.Contains(n.asked, token) {
		return false
	}
	n.asked = append(n.asked, token)
	return true
}

// Happened judges something that happened at EC2 to a node's ENI (I4, I7). live names a live pod of the node that has an address; "" is none.
func (a *Auditor) Happened(now time.Duration, node int, m *ec2.Cloud, e *ec2.Event, live func(netip.Addr) string) {
	ours := e.By == e.Instance
	switch e.Kind {
	case ec2.AddressUnassigned:
		a.AddressUnassigned(now, node, e.Address, ours, live(e.Address))
	case ec2.PrefixUnassigned:
		for _, addr := range carried(&ec2.ENI{Prefixes: []netip.Prefix{e.Prefix}}) {
			a.AddressUnassigned(now, node, addr, ours, live(addr))
		}
	case ec2.ENIDetachStarted:
		v, ok := m.ENI(e.ENI)
		if !ok {
			return
		}
		pods, example := 0, ""
		carried := carried(&v)
		for _, addr := range carried {
			if name := live(addr); name != "" {
				pods, example = pods+1, name
			}
		}
		a.ENIFreed(now, node, string(e.ENI), ours, pods, example)
		for _, addr := range carried {
			a.AddressUnassigned(now, node, addr, ours, "") // of live pods ENIFreed has told
		}
	}
}

// AppendENIs appends what EC2 has attached to a node.
func AppendENIs(list []CloudENI, whose Whose) []CloudENI {
	for _, id := range whose.Model.AttachedENIs(whose.Node) {
		e, _ := whose.Model.ENI(id)
		list = append(list, CloudENI{ID: string(id), Attached: true, Reserved: whose.Custom != nil && primary(&e), NotOurs: whose.NotOurs(id) != "",
			Subnet: e.Subnet, Prefixes: len(e.Prefixes), Primary: e.Primary, Secondaries: carried(&e)})
	}
	return list
}

// carried are the IPv4 addresses that an ENI has for pods: its secondaries, and those of its prefixes.
func carried(e *ec2.ENI) []netip.Addr {
	if len(e.Prefixes) == 0 {
		return e.Secondaries
	}
	out := slices.Clone(e.Secondaries)
	for _, p := range e.Prefixes {
		for a := p.Addr(); a.Is4() && p.Contains(a); a = a.Next() {
			out = append(out, a)
		}
	}
	return out
}

// Orphans are the ENIs of a cluster that are attached to nothing and of which no daemon knows. Those that a daemon will delete are under way, with
// the instant of the scenario by which it will, whose t=0 was at epoch; those that are not deleted are leaked (I5). A
// node that is nil has no daemon.
func Orphans(m *ec2.Cloud, cluster string, now, epoch time.Duration, daemons []*ipam.Node) (leaked, underWay []string) {
	for _, e := range m.AllENIs() {
		if e.Status != ec2.Available || !Made(m, cluster, &e) || knows(daemons, string(e.ID)) {
			continue
		}
		if at, ok := sweptBy(now, daemons, available(m, &e)); ok {
			underWay = append(underWay, fmt.Sprintf("ENI %s is available, and is deleted by %v at the latest", e.ID, (at-epoch).Truncate(time.Second)+time.Second))
		} else {
			leaked = append(leaked, "ENI "+string(e.ID)+" is available and nobody will delete it")
		}
	}
	return leaked, underWay
}

// knows says whether one of some daemons has an ENI in its books.
func knows(daemons []*ipam.Node, eni string) bool {
	view := new(ipam.View)
	return slices.ContainsFunc(daemons, func(d *ipam.Node) bool {
		if d == nil {
			return false
		}
		d.View(view)
		return slices.ContainsFunc(view.ENIs, func(e ipam.ViewENI) bool { return e.ID == eni })
	})
}

// sweptBy is when the first of some daemons deletes an ENI at the latest.
func sweptBy(now time.Duration, daemons []*ipam.Node, e *ipam.ENI) (first time.Duration, ok bool) {
	for _, d := range daemons {
		if d == nil {
			continue
		}
		if at, will := d.SweptBy(now, e); will && (!ok || at < first) {
			first, ok = at, true
		}
	}
	return first, ok
}

// available is an ENI that a CNI of the cluster made, as a daemon that looks for leaked ones is shown it.
func available(m *ec2.Cloud, e *ec2.ENI) *ipam.ENI {
	owner := TagOf(e, TagOwner)
	out := &ipam.ENI{ID: string(e.ID), Status: e.Status.String(), Owner: owner, Near: true, Addresses: e.Secondaries, Prefixes: e.Prefixes,
		OwnerGone: !Whose{Model: m}.lives(ec2.InstanceID(owner))}
	if at, err := time.Parse(time.RFC3339, TagOf(e, TagCreated)); err == nil {
		out.Created = at.Unix()
	}
	return out
}
