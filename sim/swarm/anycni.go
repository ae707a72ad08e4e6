package swarm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// CNI is what a scenario that is drawn for any CNI has to know of the one that it is for. What it draws is less than [Draw] does, for two
// reasons: others promise less (verb.Verb.ForAnyCNI), and their time is a kernel's, which is dear.
type CNI struct {
	Settings []string // those of the scenario language that it knows
	Runtimes []string // that it works with, as a cluster line names them; at least one
	Daemon   bool     // it has one
	Cloud    bool     // it asks EC2 and metadata
	Asks     bool     // it asks the runtime for sandboxes
	GC       bool     // its plugins have the specification's GC
}

// Ours is our own daemon, as one of any.
func Ours() *CNI {
	return &CNI{Settings: ipam.Variables(), Runtimes: Newer(), Daemon: true, Cloud: true, Asks: true, GC: true}
}

// Newer are the runtimes that are played for CNIs of this decade; Older is what kubelet had before it asked a runtime.
func Newer() []string {
	return []string{"containerd", "containerd-2.1", "containerd-1.7-guard", "crio-1.34"}
}

func Older() []string { return []string{"dockershim"} }

// How long the parts of a scenario for any CNI take: a quarter of an hour together at most. A CNI looks at what it has every minute, gives an
// ENI back a minute after it was used, and asks EC2 again for some minutes; kubelet tries again after five minutes at the latest.
const (
	briefest     = time.Minute // safety phase
	briefLongest = 3 * time.Minute
	briefly      = 6 * time.Minute // until every pod is ready, and once more until everything has settled
)

// Bounds of what a fault does to any CNI.
const (
	anyPods = 12 // on a node
)

// anyTypes are instance types with few addresses: limits are near, and little time is spent on filling them.
var anyTypes = []string{"t3.nano", "t3.small", "t3.small", "t3.medium", "t3.medium", "m5.large"}

// Draw writes the scenario of a seed for the CNI. Its stream of random numbers is another one than [Draw]'s.
func (c *CNI) Draw(seed uint64) string {
	p := &drawing{Plan: draw.Plan{Source: draw.NewSource(^seed), Attached: map[int]int{}, Ready: briefly,
		Settle: briefly, Drawn: "for any CNI ",
		Settings: c.Settings}}
	p.Shape = c.shape(&p.Source)
	p.Fit()
	p.Upgraded = p.Shape.Version
	p.Safety = p.Span(briefest, briefLongest, 15*time.Second)
	p.enableAny(c)
	p.StartPods()
	p.DrawMoments()
	for _, e := range p.events() {
		e.happens(p, e.at)
	}
	p.BringBack()
	return p.Text(seed)
}

// event is something that is drawn at its instant.
type event struct {
	at      time.Duration
	happens func(p *drawing, at time.Duration)
}

// events are what happens, in order: workloads change, and faults strike, often with a change soon after that meets them.
func (p *drawing) events() []event {
	var out []event
	for range p.Between(3, 9) {
		at := p.Span(0, p.Safety*9/10, time.Second)
		if p.Chance(70) {
			at = draw.Pick(&p.Source, p.Moments...) + p.Span(0, 8*time.Second, time.Second)
		}
		if p.Chance(40) {
			out = append(out, event{at, func(p *drawing, at time.Duration) { p.Operate(at) }})
			continue
		}
		out = append(out, event{at, func(p *drawing, at time.Duration) { p.strike(at) }})
		if p.Chance(60) {
			out = append(out, event{at + p.Span(0, 10*time.Second, time.Second), (*drawing).provoke})
		}
	}
	slices.SortStableFunc(out, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return out
}

// provoke scales a workload far up or down soon after a fault: a pool that stays as it is asks nothing of EC2, and meets no fault of it.
func (p *drawing) provoke(at time.Duration) {
	l := p.SomeLoad()
	if at > p.Safety || l == nil {
		return
	}
	p.Wanted = max(p.Wanted, at)
	perNode, _ := p.Shape.Room()
	if l.Count > perNode/2 {
		l.Count = p.Between(0, 1)
	} else {
		l.Count = p.Between(perNode*3/4, perNode)
	}
	p.Must(at, "kube scale %s %d", l.Name, l.Count)
}

func (c *CNI) shape(s *draw.Source) draw.Shape {
	h := draw.Shape{Nodes: draw.Pick(s, 1, 1, 1, 2), Kind: draw.Pick(s, anyTypes...), Runtime: c.runtime(s),
		Version: ipam.Version, Settings: ipam.Defaults()}
	l, _ := ec2.LimitsOf(h.Kind)
	h.ENIs, h.Per = l.ENIs, l.IPv4PerENI-1
	switch {
	case s.Chance(40):
		c.set(&h, "WARM_IP_TARGET", s.Between(1, 3))
		if s.Chance(40) {
			c.set(&h, "MINIMUM_IP_TARGET", s.Between(1, h.Per))
		}
	case s.Chance(40):
		c.set(&h, "WARM_ENI_TARGET", s.Between(1, 2))
	}
	if s.Chance(25) {
		c.set(&h, "MAX_ENI", s.Between(1, h.ENIs))
	}
	if s.Chance(30) {
		c.set(&h, "IP_COOLDOWN_PERIOD", draw.Pick(s, 5, 10, 60))
	}
	if s.Chance(15) {
		c.set(&h, "AWS_VPC_K8S_CNI_EXTERNALSNAT", true)
	}
	if h.Settings.MaxENI > 0 {
		h.ENIs = min(h.ENIs, h.Settings.MaxENI)
	}
	h.Bits = h.Roomy()
	if s.Chance(25) {
		h.Bits = min(h.Bits+1, 28)
	}
	h.MaxPods = min(h.ENIs*h.Per, anyPods)
	return h
}

// runtime takes one number of the stream however many there are: a seed should be nearly the same for two versions of a CNI.
func (c *CNI) runtime(s *draw.Source) string { return c.Runtimes[s.Next()%uint64(len(c.Runtimes))] }

// set says a setting that the CNI knows; it takes what it is drawn from either way.
func (c *CNI) set(h *draw.Shape, key string, value any) {
	if slices.Contains(c.Settings, key) {
		h.Set(key, value)
	}
}

// enableAny draws which faults the seed may use.
func (p *drawing) enableAny(c *CNI) {
	percent := draw.Pick(&p.Source, 8, 15, 25)
	for _, k := range kinds(forAny) {
		if enabled := p.Chance(percent); enabled && c.has(k.Verb) {
			p.kinds = append(p.kinds, k)
			p.weight += k.Weight
		}
	}
}

// has says whether the CNI has what a verb needs: without it the verb means nothing to it.
func (c *CNI) has(v *verb.Verb) bool {
	n := v.Needs
	return (c.Daemon || !n.Daemon) && (c.Asks || !n.Runtime) && (c.GC || !n.GC) && (c.Cloud || !v.NeedsCloud())
}

// Drawn are the keys of all verbs that are drawn for the CNI, sorted.
func (c *CNI) Drawn() []string {
	return drawn(func(v *verb.Verb) bool { return (v.Ordinary || v.Closes != nil || v.DrawAny != nil) && c.has(v) })
}

// Feasible returns an error that names what any correct CNI, or this one, cannot do of a scenario; nil: it can do all
// of it.
func (c *CNI) Feasible(f *scn.File, cl *sim.Cluster) error {
	errs := []error{Feasible(f, cl)}
	if !slices.ContainsFunc(c.Runtimes, func(name string) bool { r, ok := cri.ParseRuntime(name); return ok && r == cl.Runtime }) {
		errs = append(errs, fmt.Errorf("the CNI does not work with runtime=%s", cl.Runtime))
	}
	for _, at := range inOrder(f) {
		if at.Action == nil {
			continue
		}
		a, err := verb.Bind(at.Action)
		if err != nil {
			return err
		}
		if why := c.refuses(a); why != "" {
			errs = append(errs, fmt.Errorf("at %s %s is not for any CNI: %s", draw.Short(at.When), a.Verb, why))
		}
	}
	for i := range f.Lines {
		if s, ok := f.Lines[i].Stmt.(*scn.Config); ok {
			for _, kv := range s.Args {
				if !slices.Contains(c.Settings, kv.Key) {
					errs = append(errs, fmt.Errorf("the CNI does not know the setting %s", kv.Key))
				}
			}
		}
	}
	return errors.Join(errs...)
}

// refuses says why an action is not for the CNI: "" is that it is.
func (c *CNI) refuses(a *verb.Act) string {
	rule := a.Of.ForAnyCNI()
	unknown := func(kv scn.Arg) bool { return !slices.Contains(c.Settings, kv.Key) }
	switch {
	case rule.Excludes(a) || slices.ContainsFunc(a.Keys, unknown):
		return rule.Why
	case !c.has(a.Of):
		return "it means nothing to this one"
	case a.Text("for") != "" && a.Duration("for") > draw.AnyOutage:
		return "it lasts longer than " + draw.Short(draw.AnyOutage)
	}
	return ""
}
