package kind

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/fakes/ec2"
	kindconfig "github.com/enilab/enilab/kind-config"
)

// kindConfig is what kind is told: the file, and what the Config says beside it.
func (c *Config) kindConfig(l *layout) (*v1alpha4.Cluster, error) {
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
	out.Networking.PodSubnet = l.vpc.String()
	if c.File == "" {
		out.Networking.KubeProxyMode = v1alpha4.ProxyMode(c.Proxy)
		out.Nodes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}}
		for range c.Workers {
			out.Nodes = append(out.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
		}
	}
	out.KubeadmConfigPatches = append(out.KubeadmConfigPatches, fmt.Sprintf("kind: KubeletConfiguration\nmaxPods: %d\n", c.maxPods()))
	return out, nil
}

// maxPods is what EKS tells kubelet: an address per pod, without the ENIs' own, and two pods on the host's network.
func (c *Config) maxPods() int {
	if c.MaxPods > 0 {
		return c.MaxPods
	}
	l, _ := ec2.LimitsOf(c.Type)
	return l.ENIs*(l.IPv4PerENI-1) + 2
}
