package netns

import (
	"fmt"
	"net/netip"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/fakes/kube/apiserver"
	kubeserver "github.com/enilab/enilab/fakes/kube/server"
)

// otherNetwork has the addresses of the nodes and pods that exist only in the API server; no machine has them.
var otherNetwork = netip.MustParseAddr("100.64.0.1")

// otherObjects are the nodes and pods that the API server has beside the scenario's own, as those of a large cluster.
// They are objects and nothing else: no kubelet runs them, and they never change.
func (c *wholeCluster) otherObjects() *apiserver.Objects {
	w := c.w
	if c.elsewhere != nil {
		return c.elsewhere
	}
	out := &apiserver.Objects{}
	address := otherNetwork
	next := func() netip.Addr { address = address.Next(); return address }
	hosts := make([]netip.Addr, w.Cluster.OtherNodes)
	zone := ""
	if len(w.nodes) > 1 {
		in, _ := w.EC2.InstanceOf(w.nodes[1].Instance)
		zone = in.Zone
	}
	name := func(i int) string { return fmt.Sprintf("other-node-%d", i+1) }
	for i := range hosts {
		hosts[i] = next()
		out.Nodes = append(out.Nodes, apiserver.NodeOf(name(i), kubeserver.NodeInfo{UID: name(i), Address: hosts[i], Instance: fmt.Sprintf("i-0f%015x", i+1), Type: w.Cluster.Type, Zone: zone}, epoch))
	}
	for i := range w.Cluster.OtherPods {
		p := kube.Pod{UID: fmt.Sprintf("0000000f-0000-4000-a000-%012x", i+1), Namespace: kube.DefaultNamespace, Name: fmt.Sprintf("other-%d", i+1), Workload: fmt.Sprintf("other-%d", i/20+1),
			Node: -1, Phase: kube.Running, Address: next()}
		on, host := "", netip.Addr{}
		if len(hosts) > 0 {
			on, host = name(i%len(hosts)), hosts[i%len(hosts)]
		} else {
			p.Phase, p.Address = kube.Pending, netip.Addr{}
		}
		out.Pods = append(out.Pods, apiserver.PodOf(&p, kube.Deployment, on, host, epoch))
	}
	c.elsewhere = out
	return out
}
