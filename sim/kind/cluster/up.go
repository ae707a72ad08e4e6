package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/wait"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/vpc"
)

// Up makes a cluster without a CNI, whose API server answers and whose nodes have joined: see Install. When it fails nothing is left.
// What the request is to blame for is an ordinary error, what the machine lacks is a Lacking.
func Up(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := cfg.Possible(ctx); err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, byInst: map[ec2.InstanceID]*Node{}}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Possible fills what is zero, and says what stands in the way of the cluster, whose node image may be pulled; nil is
// nothing. What the machine lacks is a Lacking.
func (c *Config) Possible(ctx context.Context) (err error) {
	if *c, err = c.withDefaults(); err != nil {
		return err
	}
	if err := Available(ctx); err != nil {
		return err
	}
	if err := removeOrphans(ctx, c.Log); err != nil {
		return err
	}
	what, err := existing(ctx, c.Name)
	if err != nil {
		return err
	}
	if what != "" {
		return alreadyThere(c.Name, what)
	}
	arch, err := askDocker(ctx)
	if err != nil {
		return err
	}
	return nodeImage(ctx, c.NodeImage, arch, c.Log)
}

func alreadyThere(name, what string) error {
	return fmt.Errorf("a cluster named %s is already there (Docker has a %s of it): enilab down --name %[1]s removes it, or choose another name", name, what)
}

func (c *Cluster) up(ctx context.Context) error {
	var err error
	if c.temp, err = os.MkdirTemp("", folderName); err != nil {
		return err
	}
	if err := c.makeNetwork(ctx); err != nil {
		return err
	}
	for _, step := range []struct {
		text string
		do   func(context.Context) error
	}{
		{"making the VPC", c.makeVPC},
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

// looks is how often addresses are looked for, with a pause in between: Docker refuses what overlaps a network that it makes, and does not list that
// one yet.
const (
	looks     = 50
	lookPause = 100 * time.Millisecond
)

// makeNetwork makes the Docker network, of addresses that nothing uses. Who else looks at this moment finds the same: one of them has it, and
// the other looks again.
func (c *Cluster) makeNetwork(ctx context.Context) error {
	for look := 1; ; look++ {
		used, err := usedPrefixes(ctx)
		if err != nil {
			return fmt.Errorf("which addresses does this machine use: %w", err)
		}
		if c.layout, err = c.cfg.chooseLayout(used); err != nil {
			return err
		}
		c.cfg.Log(fmt.Sprintf("making the VPC's subnet %v, a Docker network", c.layout.wire))
		switch err := createNetwork(ctx, &c.cfg, &c.layout, c.temp); {
		case err == nil:
			c.made = true
			return nil
		case refusedFor(err, "already exists"):
			return alreadyThere(c.cfg.Name, "network")
		case look == looks || !refusedFor(err, "overlaps"):
			return err
		}
		if err := wait.For(ctx, lookPause); err != nil {
			return err
		}
	}
}

// makeVPC makes the model of EC2, and the VPC with its router.
func (c *Cluster) makeVPC(ctx context.Context) error {
	if err := makeRouter(ctx, &c.cfg, &c.layout); err != nil {
		return err
	}
	pid, err := containerPID(ctx, routerOf(c.cfg.Name))
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
	c.Loop = NewLoop(ec2.New(cfg, c.cfg.Seed), c.happened)
	return nil
}

// createLock: kind's Docker provider takes the network's name and Docker's client from the environment, which is the process's.
var createLock sync.Mutex

func (c *Cluster) makeCluster(ctx context.Context) error {
	var cfg *v1alpha4.Cluster
	var err error
	c.mail.Ask(func() {
		zone := func(n int) string { return c.model.Subnets()[c.layout.homeOf(n).no].Zone }
		cfg, err = c.cfg.kindConfig(&c.layout, zone, c.model.InstanceAt)
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

// addressNodes makes a folder with a client of Docker's that gives each node's container the address of its ENI: kind knows no addresses of nodes,
// and starts their containers at once, so that Docker would give each any. It is the first of PATH while kind makes the cluster, and not for who
// comes after it.
func (c *Cluster) addressNodes(cfg *v1alpha4.Cluster) (folder string, err error) {
	real, err := exec.LookPath("docker")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("#!/bin/sh\nif [ \"$1 $2\" = 'run --name' ]; then\n\tcase $3 in\n")
	for i, number := range numbers(cfg.Nodes) {
		name, nth := c.cfg.Name+"-"+string(cfg.Nodes[i].Role), number
		if number <= 0 {
			nth = 1 - number
		}
		if nth > 1 {
			name += strconv.Itoa(nth)
		}
		fmt.Fprintf(&b, "\t%s) shift; set -- run --ip %v \"$@\" ;;\n", name, c.layout.address(number))
	}
	fmt.Fprintf(&b, "\tesac\nfi\nPATH=${PATH#*:}\nexec '%s' \"$@\"\n", strings.ReplaceAll(real, "'", `'\''`))
	folder = filepath.Join(c.temp, "bin")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return "", err
	}
	return folder, os.WriteFile(filepath.Join(folder, "docker"), []byte(b.String()), 0o700)
}

// logger hands kind's own messages on, without its terminal's ornaments.
type logger struct{ to func(string) }

func (l *logger) say(s string) {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r > 0x7f {
			return -1
		}
		return r
	}, s))
	if s != "" && !strings.Contains(s, "KIND_EXPERIMENTAL") && !strings.HasPrefix(s, "WARNING: ") {
		l.to("kind: " + s)
	}
}

func (l *logger) Warn(s string)               { l.say(s) }
func (l *logger) Warnf(s string, args ...any) { l.say(fmt.Sprintf(s, args...)) }
func (l *logger) Error(s string)              { l.say(s) }
func (l *logger) Errorf(s string, a ...any)   { l.say(fmt.Sprintf(s, a...)) }
func (l *logger) V(v log.Level) log.InfoLogger {
	return infoLogger{l, v <= 0}
}

type infoLogger struct {
	l  *logger
	on bool
}

func (i infoLogger) Info(s string) {
	if i.on {
		i.l.say(s)
	}
}

func (i infoLogger) Infof(s string, args ...any) {
	if i.on {
		i.l.say(fmt.Sprintf(s, args...))
	}
}

func (i infoLogger) Enabled() bool { return i.on }
