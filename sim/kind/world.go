package kind

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/mutants"
)

// Config is what a scenario does not say of its cluster.
type Config struct {
	Context   context.Context // ends what waits; nil: nothing does
	Name      string          // of the cluster
	NodeImage string          // see cluster.Config
	Parts     cluster.Parts
	Log       func(at time.Duration, text string) // told what happens, a line each; nil: nobody is
	Leave     func() bool                         // see cluster.Config
	Mutants   bool                                // those that a file names are played too, each on a cluster of its own
}

// World is a scenario on a kind cluster. Its nodes are the workers, in their order; what runs on the control plane, a daemon of ours
// too, is no part of it. Time leaps where nobody waits for anything real, see leap.
//
// One goroutine uses it: the one that calls its methods. What others write beside it is in its journal.
type World struct {
	journal
	scenario *sim.Cluster
	cfg      Config
	cancel   context.CancelFunc

	c         *cluster.Cluster
	members   members
	endpoints []*endpoint
	pods      *pods
	work      *controller
	beside    sync.WaitGroup // what is done while time goes on
	hold      *cluster.Hold
	nextCut   time.Duration
	pace      pace
	daemons   daemons
	observer  observer
	ledger    ledger
	configs   eniConfigs
	flowing   bool          // flows are held; the judging goroutine's
	nextByte  time.Duration // of the flows
	nextWaste time.Duration // when garbage is collected
}

// bounds are what real time adds to what the simulator can judge exactly, on a machine that has other things to do.
var bounds = judge.Bounds{Reply: 2 * time.Second, CoolDown: 500 * time.Millisecond}

// podsPerNode is kubelet's limit where a scenario names none: the models know none either.
const podsPerNode = 110

// Open makes the cluster that a scenario asks for, installs the CNI, starts the workloads, and waits until they are ready: that is t=0.
func Open(s *sim.Cluster, seed uint64, m *mutants.Mutant, cfg Config) (*World, error) {
	if s.Nodes > cluster.MostWorkers {
		return nil, cluster.Lackingf("the scenario asks for %d nodes: world kind carries %d on one machine", s.Nodes, cluster.MostWorkers)
	}
	if cfg.Context == nil {
		cfg.Context = context.Background()
	}
	if cfg.Log == nil {
		cfg.Log = func(time.Duration, string) {}
	}
	w := &World{scenario: s, cfg: cfg, members: make(members, 1, s.Nodes+1)}
	w.audit = judge.New(judge.Config{Nodes: s.Nodes, Budget: s.Budget, Bounds: bounds})
	w.ctx, w.cancel = context.WithCancel(cfg.Context)
	w.Guard = &w.mu
	w.pace.w, w.daemons.w = w, w
	w.observer = observer{j: &w.journal, byNode: map[*cluster.Node]*member{}}
	w.witness = &judge.Witness{Eyes: &w.observer, Audit: w.audit, Story: &w.Lines, Mutant: m, Heard: w.observer.heard}
	if err := w.open(seed, m); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func (w *World) open(seed uint64, m *mutants.Mutant) error {
	cfg := w.cluster(seed)
	if err := cfg.Possible(w.ctx); err != nil { // said at once, and not when the image is built
		return err
	}
	w.log("building the image")
	archive, image, err := w.cfg.Parts.Image(w.ctx, m != nil)
	if err != nil {
		return err
	}
	if w.hold, err = cluster.NewHold(w.cfg.Name, ""); err != nil {
		return err
	}
	cfg.VPC, cfg.Subnets, cfg.Movable = w.scenario.CIDRs(), w.subnets(cfg.Name), true
	cfg.Kubeconfig = w.hold.Kubeconfig
	c, err := cluster.Up(w.ctx, cfg)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.c, w.witness.Cluster = c, c.Name()
	w.mu.Unlock()
	w.addMembers()
	if err := w.prepare(); err != nil {
		return err
	}
	w.log("loading the image %s", image)
	if err := c.LoadImage(w.ctx, archive); err != nil {
		return err
	}
	w.configs = eniConfigs{&w.journal, c, w.members, kube.New(seed)}
	if err := w.configs.begin(w.scenario.ENIConfigs); err != nil {
		return err
	}
	w.log("installing the CNI")
	if err := c.Install(w.ctx, w.options(image)); err != nil {
		return err
	}
	w.daemons.made = w.daemons.templateOf(w.members[1])
	return w.begin()
}

// cluster is what the scenario asks for, but for its addresses.
func (w *World) cluster(seed uint64) cluster.Config {
	s, o := w.scenario, &w.observer
	return cluster.Config{Name: w.cfg.Name, Leave: w.cfg.Leave, NodeImage: w.cfg.NodeImage, Workers: s.Nodes, Type: s.Type, Secondaries: s.Warm, MaxPods: w.maxPods(),
		Seed: seed, Log: func(text string) { w.log("%s", text) },
		Hooks: cluster.Hooks{Arrived: o.arrived, Asked: o.asked, Served: o.served, Happened: o.happened, Rebooted: o.rebooted}}
}

// subnets are the scenario's, tagged for a cluster that has another name here.
func (w *World) subnets(name string) []sim.Subnet {
	subnets := slices.Clone(w.scenario.AllSubnets())
	for i := range subnets {
		subnets[i].Clusters = slices.Clone(subnets[i].Clusters)
		for k, tag := range subnets[i].Clusters {
			if tag == w.scenario.Name {
				subnets[i].Clusters[k] = name
			}
		}
	}
	return subnets
}

// maxPods is kubelet's limit. Custom networking leaves an ENI without pods, which the daemon of a node that may have more calls a mistake.
func (w *World) maxPods() int {
	s := w.scenario
	switch limits, ok := ec2.LimitsOf(s.Type); {
	case s.MaxPods > 0:
		return s.MaxPods
	case ok && s.Settings.CustomNetwork:
		most := (limits.ENIs - 1) * (limits.IPv4PerENI - 1)
		if s.Settings.PrefixDelegation {
			most *= 16
		}
		return min(podsPerNode, most+cluster.HostPods)
	}
	return podsPerNode
}

// addMembers makes the scenario's nodes of the workers.
func (w *World) addMembers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, n := range w.c.Workers() {
		m := &member{w: w, no: int32(i + 1), node: n, runtime: &containerRuntime{node: n}, set: w.scenario.Settings,
			silent: map[netip.Addr]bool{}, hung: map[string]int{}, version: w.scenario.Version}
		m.flows.m = m
		m.set.MaxPods = w.maxPods()
		w.members = append(w.members, m)
		w.observer.byNode[n] = m
	}
	w.observer.c, w.observer.members = w.c, w.members
}

// prepare makes the machines ready for the CNI: what it records is read, what it asks is served, plugins can be made to fail, and nobody
// else's pods come.
func (w *World) prepare() error {
	w.c.Cloud(func(_ time.Duration, m *ec2.Cloud) { actions.Grant(m, w.scenario) })
	for _, n := range w.c.Nodes() {
		e := &endpoint{w: w, node: n, member: w.observer.byNode[n]}
		w.endpoints = append(w.endpoints, e)
		if e.member != nil {
			e.member.end = e
		} else {
			w.ledger.outsiders = append(w.ledger.outsiders, n.Instance)
		}
		if err := e.listen(); err != nil {
			return err
		}
		w.beside.Go(e.follow)
	}
	for _, m := range w.members[1:] {
		if err := reserve(w.ctx, w.c, m.node.Name); err != nil {
			return err
		}
		if err := installFaulty(w.ctx, m.node); err != nil {
			return err
		}
		if err := m.speak(w.scenario.Version); err != nil {
			return err
		}
	}
	return nil
}

// options are the manifests' for this scenario.
func (w *World) options(image string) deploy.Options {
	return deploy.Options{Image: image, Env: environment(&w.scenario.Settings), Command: w.daemons.command(w.scenario.Version),
		ExtraVolumes: []string{sockets}}
}

// begin starts the workloads and waits until nothing is under way: that is t=0.
func (w *World) begin() error {
	ctx, cancel := context.WithTimeout(w.ctx, watchLimit)
	defer cancel()
	seen, err := watchPods(ctx, w.c.Client())
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.pods = seen
	w.mu.Unlock()
	w.work = newController(w.c.Client(), seen, func(f func(context.Context) error) error { return w.persist("the API server", f) })
	for _, s := range w.scenario.Start {
		var on []string
		for _, no := range s.Nodes {
			on = append(on, w.members[no].node.Name)
		}
		if err := w.work.create(s.Name, s.Count, "deployment", on); err != nil {
			return fmt.Errorf("start pods %s: %w", s.Name, err)
		}
	}
	return w.warmUp()
}

const (
	// warmLimit bounds how long the workloads of a scenario may take to start before t=0.
	warmLimit = 15 * time.Minute
	// quietTime is for how long nothing must be under way then.
	quietTime = 3 * time.Second
)

func (w *World) warmUp() error {
	w.log("waiting for the pods that run when time begins")
	end, quiet, said := w.now()+warmLimit, w.now(), ""
	for w.Err() == nil && w.ctx.Err() == nil {
		why := w.unready()
		if why != "" {
			quiet = w.now()
		}
		if why != said && why != "" {
			w.log("waiting: %s", why)
			said = why
		}
		if w.now()-quiet >= quietTime || w.spoilt() {
			return w.zero()
		}
		if w.now() > end {
			return fmt.Errorf("the workloads that should run when time begins did not within %v: %s", warmLimit, why)
		}
		w.sleep(cluster.PollPeriod)
	}
	return errors.Join(w.Err(), w.ctx.Err())
}

// spoilt says that a mutant has broken something already: nobody waits for pods that may never run.
func (w *World) spoilt() bool {
	_, broken := w.Audit().First()
	return broken && w.witness.Mutant != nil
}

// zero: it is t=0.
func (w *World) zero() error {
	w.c.Cloud(func(_ time.Duration, m *ec2.Cloud) { w.ledger.begin(m) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.witness.Begin()
	return nil
}

// unready names what is under way; "" is nothing.
func (w *World) unready() string {
	if why := w.pods.unsettled(w.work.want, w.pace.stuck); why != "" {
		return why
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members.living() {
		if m.life == nil {
			return m.name() + " has no daemon"
		}
		if why := m.life.Busy(); why != "" {
			return m.name() + ": " + why
		}
	}
	return ""
}

// now is the daemons' clock.
func (w *World) now() time.Duration { return w.c.Now() }

// sleep waits; less if the world ends.
func (w *World) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.ctx.Done():
	}
}

// snapshotPeriod is between two snapshots.
const snapshotPeriod = time.Second

// Until runs to instant t of the scenario. each, if any, is called every second, and stops the run by returning true.
func (w *World) Until(t time.Duration, each func() bool) {
	for w.Err() == nil && w.ctx.Err() == nil {
		if now := w.Now(); now >= w.nextCut {
			w.judge()
			w.holdFlows()
			w.gather()
			w.collectGarbage(now)
			w.nextCut = now + snapshotPeriod
			if each != nil && each() {
				return
			}
		}
		now := w.Now()
		if now >= t {
			return
		}
		if !w.pace.leap(t) {
			w.sleep(min(t-now, w.nextCut-now, leapPeriod))
		}
	}
}

// garbagePeriod is how often kubelet removes what has ended (ContainerGCPeriod, pkg/kubelet/kubelet.go).
const garbagePeriod = time.Minute

// collectGarbage does what kubelet does by a timer, to which its real time does not come while the clock leaps. Otherwise it depended on how
// quick the computer is whether a run has a DEL of what is gone.
func (w *World) collectGarbage(now time.Duration) {
	if now < w.nextWaste {
		return
	}
	w.nextWaste = now + garbagePeriod
	w.aside("collecting garbage", func(ctx context.Context) error {
		for _, m := range w.members.living() {
			m.collectGarbage(ctx)
		}
		return nil
	})
}

// Stay keeps the cluster up until somebody wants it to end.
func (w *World) Stay(interrupted func() bool) {
	for !interrupted() && w.Err() == nil && w.ctx.Err() == nil {
		w.pace.stir() // people live in real time
		w.Until(w.Now()+200*time.Millisecond, nil)
	}
}

// Cluster is what the world is made of, to look into.
func (w *World) Cluster() *cluster.Cluster { return w.c }

// Err is why the laboratory itself broke; nil when it did not.
func (w *World) Err() error {
	w.mu.Lock()
	err := w.broken
	w.mu.Unlock()
	if err == nil && w.c != nil {
		err = w.c.Err()
	}
	return err
}

func (w *World) log(format string, args ...any) {
	w.cfg.Log(w.Now(), fmt.Sprintf(format, args...))
}

// Close removes the cluster. The error says what would not go.
func (w *World) Close() error {
	w.cancel()
	for _, e := range w.endpoints {
		e.close()
	}
	w.beside.Wait()
	if w.pods != nil {
		w.pods.close()
	}
	for _, m := range w.members[1:] {
		m.flows.close()
		m.runtime.close()
	}
	var err error
	if w.c != nil {
		err = w.c.Close()
	}
	if w.hold != nil {
		err = errors.Join(err, w.hold.End())
	}
	return err
}

// Capabilities of a cluster: it may break by itself, and recordings may contradict what the world saw.
func (w *World) Capabilities() sim.Capabilities {
	return sim.Capabilities{Broken: w.Err, Disagreements: w.Disagreements, Excuse: w.Excuse}
}

var _ sim.World = (*World)(nil)
