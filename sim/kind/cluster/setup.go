package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/fakes/ec2"
	kindconfig "github.com/enilab/enilab/kind-config"
)

// kindConfig is what kind is told: the file, and what the Config says beside it. zone is asked for a node by its number, and id for the n-th
// instance that is launched.
func (c *Config) kindConfig(l *layout, zone func(n int) string, id func(n int) ec2.InstanceID) (*v1alpha4.Cluster, error) {
	raw, name := kindconfig.Cluster, "kind-config/cluster.yaml"
	if c.File != "" {
		var err error
		if raw, err = os.ReadFile(c.File); err != nil {
			return nil, err
		}
		name = c.File
	}
	out := &v1alpha4.Cluster{}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(raw), out); err != nil {
		return nil, fmt.Errorf("%s: %w: it should be a configuration of kind's, kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4", name, err)
	}
	if !out.Networking.DisableDefaultCNI {
		return nil, errors.New(name + ": networking.disableDefaultCNI is not true: two CNIs would fight for every pod")
	}
	out.Networking.PodSubnet = l.vpc[0].String()
	if c.File == "" {
		out.Networking.KubeProxyMode = v1alpha4.ProxyMode(c.Proxy)
		out.Nodes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}}
		for range c.Workers {
			out.Nodes = append(out.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
		}
	}
	all := numbers(out.Nodes)
	for i, number := range all {
		if h := l.homeOf(number); number < -dockers || !h.machines.Contains(l.address(number)) {
			return nil, fmt.Errorf("%s: %d nodes: subnet %v has room for %d workers and %d control planes, whose addresses are in %v",
				name, len(all), h.subnet, 1<<(32-h.machines.Bits())-dockers-1, dockers+1, h.machines)
		}
		asOnEKS(&out.Nodes[i], c.Type, zone(number), id(launched(number, slices.Max(all))))
	}
	out.KubeadmConfigPatches = append(out.KubeadmConfigPatches, fmt.Sprintf("kind: KubeletConfiguration\nmaxPods: %d\n", c.maxPods()))
	return out, nil
}

// numbers are what the layout knows a configuration's nodes by: workers from 1 up, control planes from 0 down.
func numbers(nodes []v1alpha4.Node) (out []int) {
	workers, planes := 0, 0
	for _, n := range nodes {
		if n.Role == v1alpha4.WorkerRole {
			workers++
			out = append(out, workers)
		} else {
			out = append(out, -planes)
			planes++
		}
	}
	return out
}

// asOnEKS lets kubelet say of its node what it says on EKS: the labels that it may set itself, unless the file has others, and the provider's ID.
func asOnEKS(n *v1alpha4.Node, kind, zone string, id ec2.InstanceID) {
	labels := map[string]string{"node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": zone,
		"topology.kubernetes.io/region": zone[:max(0, len(zone)-1)]}
	maps.Copy(labels, n.Labels)
	n.Labels = labels
	for _, start := range []string{"InitConfiguration", "JoinConfiguration"} { // each is for what the node does, and the other one is passed over
		n.KubeadmConfigPatches = append(n.KubeadmConfigPatches, fmt.Sprintf("kind: %s\nnodeRegistration:\n  kubeletExtraArgs:\n    provider-id: aws:///%s/%s\n",
			start, zone, id))
	}
}

// HostPods are the pods of the node's network that kubelet counts too: aws-node and kube-proxy.
const HostPods = 2

// maxPods is what EKS tells kubelet: an address per pod, without the ENIs' own, and two pods on the host's network.
func (c *Config) maxPods() int {
	if c.MaxPods > 0 {
		return c.MaxPods
	}
	l, _ := ec2.LimitsOf(c.Type)
	return l.ENIs*(l.IPv4PerENI-1) + HostPods
}
