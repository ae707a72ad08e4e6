package virtual

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
)

// A way between two pods of a node may be broken while either reaches the VPC: I10 and the metric see it, and no trace from the VPC does.
func TestPodsOfANodeAskEachOther(t *testing.T) {
	open, _ := opener(t, parse(t, "pairs.scn", "cluster nodes=2 type=m5.large subnet=10.0.50.0/24\nstart pods web 14 on node-*\nat 1m expect kube pairs.unreachable == 0\n"), nil, nil)
	_, w, err := open()
	if err != nil {
		t.Fatal(err)
	}
	n := w.nodes[1]
	unreachable := func() int64 { v, _ := w.Measure(scn.Subject{Kind: scn.Kube}, "pairs.unreachable"); return v }
	if tried, _ := w.Measure(scn.Subject{Kind: scn.Kube}, "pairs.tried"); tried < 30 || unreachable() != 0 {
		t.Fatalf("%d of %d pairs are unreachable before anything is broken", unreachable(), tried)
	}
	primary := w.EC2.AttachedENIs(n.Instance)[0]
	var from, to, other models.Place // one on a secondary ENI, and two on the primary
	for _, p := range w.Places(&n.Node) {
		switch {
		case p.ENI != string(primary):
			from = p
		case !to.Address.IsValid():
			to = p
		default:
			other = p
		}
	}
	row, ok := n.core.Find(ipam.Attachment{Network: "aws-cni", ContainerID: other.Pod.ID, IfName: "eth0"})
	if !ok {
		t.Fatal("the daemon does not know the pod")
	}
	veth := dataplane.Alias(row.Att.Network, row.Att.ContainerID, row.Att.IfName, row.Address)
	plan := dataplane.Plan{Ops: []dataplane.Op{
		{Kind: dataplane.RemoveRule, Priority: dataplane.PriorityToPod, Addr: to.Address},
		{Kind: dataplane.EnsureRoute, Alias: veth, Table: 2, Dst: netip.PrefixFrom(to.Address, 32)},
	}}
	if _, err := n.kern.Apply(plan, 0, len(plan.Ops)); err != nil {
		t.Fatal(err)
	}
	if why := n.between(from.Address, n, to.Address); why == "" {
		t.Fatal("nothing is broken")
	}
	if why := n.fault(to.Address, to.Pod.Netns); why != "" {
		t.Fatalf("the VPC does not reach the pod either: %s", why)
	}
	found := ""
	for _, p := range n.collect().Pods {
		if p.Fault != "" {
			found += p.Address.String() + ": " + p.Fault
		}
	}
	if !strings.HasPrefix(found, to.Address.String()+": pod ") || unreachable() == 0 {
		t.Errorf("faults %q, %d pairs unreachable: expected that a pod of the node gets no answer of %v", found, unreachable(), to.Address)
	}
}
