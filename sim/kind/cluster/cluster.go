package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/vpc"
)

// Cluster is a kind cluster in a VPC. Its methods may be called from any goroutine.
type Cluster struct {
	*Loop

	cfg    Config
	layout layout
	temp   string // folder
	net    *os.File

	made bool // the Docker network is: what else has the cluster's name is this process's, too

	network *vpc.Network
	byInst  map[ec2.InstanceID]*Node

	nodes    []*Node
	provider *cluster.Provider
	rest     *rest.Config
	client   kubernetes.Interface
	watchers sync.WaitGroup

	mu  sync.Mutex
	err error // what broke the laboratory itself
}

// Close removes the containers, the network and with them the namespaces, and the temporary files. It leaves to Config.Leave what takes as
// long as Docker takes, if that wants to.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var errs []error
	if c.Loop != nil {
		c.Loop.Close()
	}
	for _, n := range c.nodes {
		n.close()
	}
	if c.network != nil {
		errs = append(errs, c.network.Close())
	}
	if c.made && (c.cfg.Leave == nil || !c.cfg.Leave()) {
		errs = append(errs, remove(ctx, c.cfg.Name))
	}
	c.watchers.Wait()
	if c.net != nil {
		_ = c.net.Close()
	}
	if c.cfg.Kubeconfig != "" {
		errs = append(errs, ignoreMissing(os.Remove(c.cfg.Kubeconfig)))
	}
	if c.temp != "" {
		errs = append(errs, os.RemoveAll(c.temp))
	}
	return errors.Join(errs...)
}

// closeLimit bounds how long Docker may take to remove a cluster.
const closeLimit = 2 * time.Minute

// Available says what this machine lacks for world kind; nil is nothing.
func Available(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return Lackingf("world kind needs Linux, and this is %s: its process enters the node containers' namespaces", runtime.GOOS)
	}
	if err := privileged(); err != nil {
		return err
	}
	_, err := askDocker(ctx)
	return err
}

// Down removes a cluster that another process made, or one that was killed. It is false when there was nothing.
func Down(ctx context.Context, name string) (bool, error) {
	if err := Available(ctx); err != nil {
		return false, err
	}
	what, err := existing(ctx, name)
	if err != nil || what == "" {
		return false, err
	}
	return true, remove(ctx, name)
}

// Kubeconfig is the path of the cluster's.
func (c *Cluster) Kubeconfig() string {
	if c.cfg.Kubeconfig != "" {
		return c.cfg.Kubeconfig
	}
	return filepath.Join(c.temp, "kubeconfig")
}

// Name is the cluster's.
func (c *Cluster) Name() string { return c.cfg.Name }

// Client talks to the API server.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// REST is how to reach the API server.
func (c *Cluster) REST() *rest.Config { return rest.CopyConfig(c.rest) }

// Nodes are the machines, the control plane first.
func (c *Cluster) Nodes() []*Node { return append([]*Node(nil), c.nodes...) }

// Workers are the machines that are not the control plane.
func (c *Cluster) Workers() []*Node { return append([]*Node(nil), c.nodes[1:]...) }

// Node is the machine with that name, nil if there is none.
func (c *Cluster) Node(name string) *Node {
	for _, n := range c.nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// Network is the VPC.
func (c *Cluster) Network() *vpc.Network { return c.network }

// Err is why the laboratory itself broke; nil when it did not.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Cluster) fail(err error) {
	if err == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		c.cfg.Log("the laboratory broke: " + err.Error())
	}
}

// LoadImage puts an image archive into every node's containerd.
func (c *Cluster) LoadImage(ctx context.Context, archive []byte) error {
	list, err := c.provider.ListInternalNodes(c.cfg.Name)
	if err != nil {
		return err
	}
	errs := make([]error, len(list))
	var all sync.WaitGroup
	for i, n := range list {
		all.Go(func() { errs[i] = nodeutils.LoadImageArchive(n, bytes.NewReader(archive)) })
	}
	all.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
