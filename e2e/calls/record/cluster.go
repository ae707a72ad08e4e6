package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	kind "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cmd"

	"github.com/enilab/enilab/e2e/calls"
)

// kindConfig is one node without kind's own CNI.
const kindConfig = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
networking:
  disableDefaultCNI: true
`

// conflist is like enilab's own in what a runtime sees of it: the version that it negotiates, and a plugin that keeps results.
const conflist = `{"cniVersion":"0.4.0","cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"record","plugins":[
  {"type":"ptp","mtu":1500,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.244.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}]}}
]}
`

// the plugins, from the module that go.mod says; a distribution's are too old for STATUS.
var plugins = []string{
	"github.com/containernetworking/plugins/plugins/main/ptp",
	"github.com/containernetworking/plugins/plugins/ipam/host-local",
}

// cluster is a kind cluster of one node on a Docker network of its own.
type cluster struct {
	name string
	dir  string // for the kubeconfig
}

func (c *cluster) node() string       { return c.name + "-control-plane" }
func (c *cluster) kubeconfig() string { return filepath.Join(c.dir, "kubeconfig") }

func provider() *kind.Provider {
	return kind.NewProvider(kind.ProviderWithDocker(), kind.ProviderWithLogger(cmd.NewLogger()))
}

// up makes the cluster, or finds it, and gives it its CNI.
func (c *cluster) up(ctx context.Context) error {
	if err := os.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", c.name); err != nil {
		return err
	}
	p := provider()
	there, err := p.List()
	if err != nil {
		return fmt.Errorf("list kind's clusters: %w", err)
	}
	if slices.Contains(there, c.name) {
		if err := p.ExportKubeConfig(c.name, c.kubeconfig(), false); err != nil {
			return err
		}
	} else {
		err := p.Create(c.name,
			kind.CreateWithRawConfig([]byte(kindConfig)), kind.CreateWithNodeImage(os.Getenv("KIND_NODE_IMAGE")),
			kind.CreateWithKubeconfigPath(c.kubeconfig()), kind.CreateWithDisplayUsage(false), kind.CreateWithDisplaySalutation(false))
		if err != nil {
			return fmt.Errorf("make cluster %s: %w", c.name, err)
		}
	}
	b := &calls.Bench{Node: c.node()}
	for _, p := range plugins {
		binary, err := calls.Compile(ctx, p)
		if err != nil {
			return err
		}
		if err := b.Put(ctx, binary, "/opt/cni/bin/"+path.Base(p), "755"); err != nil {
			return err
		}
	}
	return b.Put(ctx, []byte(conflist), "/etc/cni/net.d/10-record.conflist", "644")
}

// remove takes the containers and the network away.
func (c *cluster) remove() error {
	err := provider().Delete(c.name, c.kubeconfig())
	out, e := exec.Command("docker", "network", "rm", c.name).CombinedOutput()
	if e != nil && !strings.Contains(string(out), "not found") {
		err = errors.Join(err, fmt.Errorf("remove Docker network %s: %w: %s", c.name, e, bytes.TrimSpace(out)))
	}
	return err
}
