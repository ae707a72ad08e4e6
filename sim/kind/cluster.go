package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/vpc"
)

// Cluster is a kind cluster in a VPC. Its methods may be called from any goroutine.
type Cluster struct {
	cfg    Config
	layout layout
	loop   *loop
	temp   string // folder
	net    *os.File

	cloud   *ec2.Cloud // the loop's, as is due
	due     time.Duration
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

// Up makes a cluster without a CNI, whose API server answers and whose nodes have joined: see Install. When it fails nothing is left.
// What the request is to blame for is an ordinary error, what the machine lacks is a Lacking.
func Up(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := cfg.possible(ctx); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, loop: newLoop(), due: models.Never, byInst: map[ec2.InstanceID]*Node{}}
	go c.loop.run(c.pump)
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Possible says what stands in the way of a cluster with that name and the default node image, which may be pulled; nil is nothing. What the
// machine lacks is a Lacking.
func Possible(ctx context.Context, name string, log func(string)) error {
	cfg, err := Config{Name: name, Log: log}.withDefaults()
	if err != nil {
		return err
	}
	return cfg.possible(ctx)
}

// possible says what stands in the way of a cluster, before anything is made for it.
func (c *Config) possible(ctx context.Context) error {
	if err := Available(ctx); err != nil {
		return err
	}
	if err := removeOrphans(ctx, c.Log); err != nil {
		return err
	}
	what, err := taken(ctx, c.Name)
	if err != nil {
		return err
	}
	if what != "" {
		return fmt.Errorf("a cluster named %s is already there (Docker has a %s of it): enilab down --name %[1]s removes it, or choose another name", c.Name, what)
	}
	arch, err := askDocker(ctx)
	if err != nil {
		return err
	}
	return nodeImage(ctx, c.NodeImage, arch, c.Log)
}

func (c *Cluster) up(ctx context.Context) error {
	used, err := usedPrefixes(ctx)
	if err != nil {
		return err
	}
	if c.layout, err = c.cfg.chooseLayout(used); err != nil {
		return err
	}
	if c.temp, err = os.MkdirTemp("", folderName); err != nil {
		return err
	}
	for _, step := range []struct {
		text string
		do   func(context.Context) error
	}{
		{fmt.Sprintf("making the VPC's subnet %v, a Docker network", c.layout.wire), c.makeVPC},
		{"creating the cluster " + c.cfg.Name, c.makeCluster},
		{"plugging its nodes into the VPC", c.plugNodes},
	} {
		c.cfg.Log(step.text)
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeVPC makes the Docker network, the model of EC2, and the VPC.
func (c *Cluster) makeVPC(ctx context.Context) error {
	if err := makeNetwork(ctx, &c.cfg, &c.layout, c.temp); err != nil {
		return err
	}
	pid, err := containerPID(ctx, router(c.cfg.Name))
	if err != nil {
		return err
	}
	if c.net, err = openNetns(pid); err != nil {
		return err
	}
	if err := addGateways(c.net, c.layout.homes[1:]); err != nil {
		return err
	}
	scenario := sim.Cluster{Subnets: c.layout.subnets}
	c.network, err = vpc.New(vpc.Config{VPC: c.layout.vpc, Subnets: scenario.Prefixes(), Namespace: c.net, Segment: segment,
		Strangers: []netip.Addr{c.layout.host}})
	if err != nil {
		return err
	}
	cfg := actions.Cloud(c.layout.vpc, c.layout.subnets)
	cfg.Latency, cfg.Throttle = c.cfg.Latency, c.cfg.Throttle
	for _, h := range c.layout.homes {
		s := &cfg.Subnets[h.no]
		s.Reservations = append(s.Reservations, h.machines)
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	c.loop.mail.Ask(func() { c.cloud = ec2.New(cfg, c.cfg.Seed) })
	return nil
}

// createLock: kind's Docker provider takes the network's name and Docker's client from the environment, which is the process's.
var createLock sync.Mutex

func (c *Cluster) makeCluster(ctx context.Context) error {
	var cfg *v1alpha4.Cluster
	var err error
	c.loop.mail.Ask(func() {
		zone := func(n int) string { return c.cloud.Subnets()[c.layout.homeOf(n).no].Zone }
		cfg, err = c.cfg.kindConfig(&c.layout, zone, c.cloud.InstanceAt)
	})
	if err != nil {
		return err
	}
	if err := enoughInotify(len(cfg.Nodes)); err != nil {
		return err
	}
	c.provider = cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(&logger{c.cfg.Log}))
	createLock.Lock()
	defer createLock.Unlock()
	addressing, err := c.addressNodes(cfg)
	if err != nil {
		return err
	}
	path := os.Getenv("PATH")
	if err := errors.Join(os.Setenv("KIND_EXPERIMENTAL_DOCKER_NETWORK", c.cfg.Name), os.Setenv("PATH", addressing+":"+path)); err != nil {
		return err
	}
	defer func() {
		_ = os.Unsetenv("KIND_EXPERIMENTAL_DOCKER_NETWORK")
		_ = os.Setenv("PATH", path)
	}()
	done := make(chan error, 1)
	go func() {
		done <- c.provider.Create(c.cfg.Name, cluster.CreateWithV1Alpha4Config(cfg), cluster.CreateWithNodeImage(c.cfg.NodeImage),
			cluster.CreateWithKubeconfigPath(c.Kubeconfig()), cluster.CreateWithRetain(false), cluster.CreateWithWaitForReady(0),
			cluster.CreateWithDisplayUsage(false), cluster.CreateWithDisplaySalutation(false))
	}()
	select {
	case err = <-done:
	case <-ctx.Done(): // kind knows no contexts: without its containers it fails by itself
		_ = remove(context.WithoutCancel(ctx), c.cfg.Name)
		<-done
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("create the kind cluster %s: %w", c.cfg.Name, err)
	}
	if c.rest, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.rest.QPS, c.rest.Burst = 200, 400
	c.client, err = kubernetes.NewForConfig(c.rest)
	return err
}

// Close removes the containers, the network and with them the namespaces, and the temporary files. It leaves to Config.Leave what takes as
// long as Docker takes, if that wants to.
func (c *Cluster) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	var errs []error
	c.loop.close()
	for _, n := range c.nodes {
		n.close()
	}
	if c.network != nil {
		errs = append(errs, c.network.Close())
	}
	if c.cfg.Leave == nil || !c.cfg.Leave() {
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

// Down removes a cluster that another process made, or one that was killed. It is false when there was nothing.
func Down(ctx context.Context, name string) (bool, error) {
	if err := Available(ctx); err != nil {
		return false, err
	}
	what, err := taken(ctx, name)
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
