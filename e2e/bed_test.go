package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/impl/deploy/image"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// clusterName is that of this process's clusters: each process has one at a time.
func clusterName() string {
	if suite, _ := GinkgoConfiguration(); suite.ParallelTotal > 1 {
		return fmt.Sprintf("enilab-e2e-%d", suite.ParallelProcess)
	}
	return "enilab-e2e"
}

// Bounds on what is done once per cluster.
const (
	upLimit       = 10 * time.Minute
	downLimit     = 3 * time.Minute
	evidenceLimit = 2 * time.Minute
	rollLimit     = 4 * time.Minute
)

// site is what all clusters of a process share.
type site struct {
	*options
	production []byte // image archives
	laboratory []byte
	peer       []byte // binary, see e2e/peer
	daemon     []byte // the broken one, see e2e/broken
	traces     traces // of all clusters that there were
}

func imageOptions(laboratory bool) image.Options {
	o := image.Options{Tag: "e2e", Platforms: []string{image.Host()}, Laboratory: laboratory, Log: say}
	if laboratory {
		o.Tag += "-laboratory"
	}
	return o
}

// build builds the images and what pods run, once.
func (s *site) build(ctx SpecContext) {
	s.peer = got(buildProgram(ctx, "peer"))
	if s.broken != "" {
		s.daemon = got(buildProgram(ctx, "broken"))
	}
	for _, laboratory := range []bool{false, true} {
		var out bytes.Buffer
		check(image.WriteContext(ctx, &out, imageOptions(laboratory)))
		if laboratory {
			s.laboratory = out.Bytes()
		} else {
			s.production = out.Bytes()
		}
	}
}

// bed is a cluster with enilab's CNI, and what specs do with it. The cluster is there while specs run.
type bed struct {
	*cluster.Cluster
	*site
	config   cluster.Config // but its name and its log
	first    bool           // the run's first cluster, on which all specs run
	evidence int            // specs whose evidence is kept
	changed  bool           // aws-node is not as install(nil) leaves it
	isBroken bool           // aws-node is e2e/broken
}

// say tells a line of progress.
func say(line string) { GinkgoWriter.Println(time.Now().Format("15:04:05"), line) }

// up makes the cluster, and sees to its end.
func (b *bed) up(ctx SpecContext) {
	if b.fresh {
		got(cluster.Down(ctx, clusterName()))
	}
	b.config.Name, b.config.Log = clusterName(), say
	c := got(cluster.Up(ctx, b.config))
	b.Cluster = c
	DeferCleanup(b.down, GracePeriod(downLimit))
	DeferCleanup(b.waitIfKept)
	check(c.LoadImage(ctx, b.production))
	for _, n := range c.Nodes() {
		check(putProgram(n, peer, b.site.peer))
	}
	say("installing the CNI")
	check(b.install(ctx, nil))
	if b.broken != "" {
		check(b.breakDaemons(ctx))
	}
	say("the cluster is up: KUBECONFIG=" + c.Kubeconfig())
}

// install applies the production manifests with settings of its own, and waits for the roll.
func (b *bed) install(ctx context.Context, env map[string]string) error {
	err := b.roll(ctx, b.daemonOptions(env))
	b.changed = len(env) > 0 || err != nil
	return err
}

// daemonOptions are those of the daemon that the specs are about: ours, or the broken one once it is there.
func (b *bed) daemonOptions(env map[string]string) deploy.Options {
	o := deploy.Options{Image: imageOptions(false).Reference(), Env: env}
	if b.isBroken {
		o.Command, o.ExtraVolumes = []string{brokenDaemon, b.broken}, []string{brokenDir}
	}
	return o
}

func (b *bed) roll(ctx context.Context, o deploy.Options) error {
	ctx, cancel := context.WithTimeout(ctx, rollLimit)
	defer cancel()
	return b.Install(ctx, o)
}

// reinstall puts aws-node back as it was, at the end of the spec or container that says so before it changes it.
func (b *bed) reinstall() {
	DeferCleanup(func(ctx SpecContext) {
		if b.changed {
			check(b.install(ctx, nil))
		}
	}, NodeTimeout(rollLimit+time.Minute))
}

// waitIfKept leaves a cluster on which something failed to be looked at.
func (b *bed) waitIfKept(ctx SpecContext) {
	if !b.keep || b.evidence == 0 {
		return
	}
	say("kept until interrupted: KUBECONFIG=" + b.Kubeconfig())
	<-ctx.Done()
}

// down removes the cluster.
func (b *bed) down(ctx SpecContext) {
	list, err := tracesOf(ctx, b.Cluster)
	b.traces.Left = append(b.traces.Left, list...)
	if b.isBroken {
		err = errors.Join(err, b.hasStruck())
	}
	err = errors.Join(err, b.Close())
	b.traces.End = b.Now()
	check(err)
}

// holder is the ENI that has an address, and its instance's Node, as EC2 sees it.
func (b *bed) holder(a netip.Addr) (*cluster.Node, ec2.ENI, error) {
	var e ec2.ENI
	var ok bool
	b.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		var id ec2.ENIID
		if id, _, ok = m.OwnerOf(a); ok {
			e, ok = m.ENI(id)
		}
	})
	if !ok {
		return nil, e, fmt.Errorf("no ENI has %v", a)
	}
	for _, n := range b.Nodes() {
		if n.Instance == e.Instance {
			return n, e, nil
		}
	}
	return nil, e, fmt.Errorf("%v is on %s, which is attached to no node", a, e.ID)
}
