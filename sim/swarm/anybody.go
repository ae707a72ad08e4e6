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
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// CNI is what a scenario that is drawn for any CNI has to know of the one that it is for. What it draws is less than [Draw] does, for two
// reasons: others promise less (verb.Verb.Anybody), and their time is a kernel's, which is dear.
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
	anyStale = 30 * time.Second // how old Describes are
	anyLag   = 20 * time.Second // of metadata
	anyPods  = 12               // on a node
)

// anyTypes are instance types with few addresses: limits are near, and little time is spent on filling them.
var anyTypes = []string{"t3.nano", "t3.small", "t3.small", "t3.medium", "t3.medium", "m5.large"}

// Draw writes the scenario of a seed for the CNI. Its stream of random numbers is another one than [Draw]'s.
func (c *CNI) Draw(seed uint64) string {
	p := &plan{source: newSource(^seed), attached: map[int]int{}, cni: c, ready: briefly, settle: briefly, drawn: "for any CNI "}
	p.shape = c.shape(&p.source)
	p.fit()
	p.upgraded = p.shape.version
	p.safety = p.span(briefest, briefLongest, 15*time.Second)
	p.enableAnybodys()
	p.startPods()
	p.drawMoments()
	for _, e := range p.events() {
		e.happens(p, e.at)
	}
	p.bringBack()
	return p.text(seed)
}

// event is something that is drawn at its instant.
type event struct {
	at      time.Duration
	happens func(p *plan, at time.Duration)
}

// events are what happens, in order: workloads change, and faults strike, often with a change soon after that meets them.
func (p *plan) events() []event {
	var out []event
	for range p.between(3, 9) {
		at := p.span(0, p.safety*9/10, time.Second)
		if p.chance(70) {
			at = pick(&p.source, p.moments...) + p.span(0, 8*time.Second, time.Second)
		}
		if p.chance(40) {
			out = append(out, event{at, (*plan).operate})
			continue
		}
		out = append(out, event{at, func(p *plan, at time.Duration) { p.strike(at) }})
		if p.chance(60) {
			out = append(out, event{at + p.span(0, 10*time.Second, time.Second), (*plan).provoke})
		}
	}
	slices.SortStableFunc(out, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return out
}

// provoke scales a workload far up or down soon after a fault: a pool that stays as it is asks nothing of EC2, and meets no fault of it.
func (p *plan) provoke(at time.Duration) {
	l := p.someLoad()
	if at > p.safety || l == nil {
		return
	}
	p.wanted = max(p.wanted, at)
	perNode, _ := p.shape.room()
	if l.count > perNode/2 {
		l.count = p.between(0, 1)
	} else {
		l.count = p.between(perNode*3/4, perNode)
	}
	p.must(at, "kube scale %s %d", l.name, l.count)
}

func (c *CNI) shape(s *source) shape {
	h := shape{nodes: pick(s, 1, 1, 1, 2), kind: pick(s, anyTypes...), runtime: c.runtime(s), version: ipam.Version, settings: ipam.Defaults()}
	l, _ := ec2.LimitsOf(h.kind)
	h.enis, h.per = l.ENIs, l.IPv4PerENI-1
	switch {
	case s.chance(40):
		c.set(&h, "WARM_IP_TARGET", s.between(1, 3))
		if s.chance(40) {
			c.set(&h, "MINIMUM_IP_TARGET", s.between(1, h.per))
		}
	case s.chance(40):
		c.set(&h, "WARM_ENI_TARGET", s.between(1, 2))
	}
	if s.chance(25) {
		c.set(&h, "MAX_ENI", s.between(1, h.enis))
	}
	if s.chance(30) {
		c.set(&h, "IP_COOLDOWN_PERIOD", pick(s, 5, 10, 60))
	}
	if s.chance(15) {
		c.set(&h, "AWS_VPC_K8S_CNI_EXTERNALSNAT", true)
	}
	if h.settings.MaxENI > 0 {
		h.enis = min(h.enis, h.settings.MaxENI)
	}
	h.bits = h.roomy()
	if s.chance(25) {
		h.bits = min(h.bits+1, 28)
	}
	h.maxPods = min(h.enis*h.per, anyPods)
	return h
}

// runtime takes one number of the stream however many there are: a seed should be nearly the same for two versions of a CNI.
func (c *CNI) runtime(s *source) string { return c.Runtimes[s.next()%uint64(len(c.Runtimes))] }

// set says a setting that the CNI knows; it takes what it is drawn from either way.
func (c *CNI) set(h *shape, key string, value any) {
	if slices.Contains(c.Settings, key) {
		h.set(key, value)
	}
}

// anybodysKinds are the faults for any CNI. A test compares them with what sim says about verbs, both ways.
func anybodysKinds() []kind {
	return []kind{
		{"node socket", 2, func(p *plan, at time.Duration) {
			node := p.oneNode()
			p.write(at, "%s socket cri=%s", node, pick(&p.source, verb.Failing...))
			p.write(p.later(at, 10*time.Second, verb.AnyOutage), "%s socket cri=right", node)
		}},
		{"node restart", 3, func(p *plan, at time.Duration) {
			args := ""
			if snat := "AWS_VPC_K8S_CNI_EXTERNALSNAT"; p.chance(25) && slices.Contains(p.cni.Settings, snat) {
				args = fmt.Sprintf(" %s=%v", snat, p.chance(50))
			}
			p.write(at, "%s restart%s", p.anyNode(), args)
		}},
		{"node kill", 5, func(p *plan, at time.Duration) { p.write(at, "%s kill", p.anyNode()) }},
		{"node kill-at", 4, func(p *plan, at time.Duration) {
			x := pick(&p.source, verb.Killings...)
			p.write(at, "%s kill-at %s when=%s", p.anyNode(), x.Call, x.When)
		}},
		{"node hold", 3, func(p *plan, at time.Duration) {
			node := p.anyNode()
			p.write(at, "%s hold", node)
			p.write(p.later(at, time.Second, verb.AnyOutage), "%s unhold", node)
		}},
		{"node reboot", 2, func(p *plan, at time.Duration) { p.write(at, "%s reboot", p.oneNode()) }},
		{"node gc", 2, func(p *plan, at time.Duration) { p.write(at, "%s gc valid=all", p.anyNode()) }},
		{"node fail-dels", 3, (*plan).failDELs},
		{"node restart-kubelet", 2, func(p *plan, at time.Duration) { p.write(at, "%s restart-kubelet", p.anyNode()) }},
		{"node restart-runtime", 2, func(p *plan, at time.Duration) { p.write(at, "%s restart-runtime", p.anyNode()) }},
		{"pod force-delete", 3, (*plan).forceDelete},
		{"pod hang", 2, (*plan).hangPod},
		{"pod replay-del", 3, (*plan).replayDEL},
		{"ec2 lose", 4, func(p *plan, at time.Duration) {
			after := ""
			if p.chance(30) {
				after = " after=dropped"
			}
			p.write(at, "ec2 lose %s%s%s", p.otherCall(), after, p.whose())
		}},
		{"ec2 duplicate", 2, func(p *plan, at time.Duration) { p.write(at, "ec2 duplicate %s%s", p.otherCall(), p.whose()) }},
		{"ec2 fail", 4, (*plan).fail},
		{"ec2 throttle", 2, func(p *plan, at time.Duration) { p.write(at, "ec2 throttle %s%s%s", p.call(), p.times(3), p.whose()) }},
		{"ec2 slow", 4, func(p *plan, at time.Duration) {
			by := short(p.span(time.Second, verb.AnyDelay, time.Second))
			if p.chance(40) {
				p.write(at, "ec2 slow %s by=%s way=back%s", p.otherCall(), by, p.whose())
				return
			}
			p.write(at, "ec2 slow %s by=%s%s%s", p.call(), by, p.times(3), p.whose())
		}},
		{"ec2 deny", 2, func(p *plan, at time.Duration) {
			p.write(at, "ec2 deny %s for=%s%s", p.call(), p.outage(at), p.whose())
		}},
		{"ec2 skew", 1, func(p *plan, at time.Duration) {
			p.write(at, "ec2 skew by=%s for=%s%s", short(p.span(6*time.Minute, 15*time.Minute, time.Minute)), p.outage(at), p.whose())
		}},
		{"ec2 stale", 2, func(p *plan, at time.Duration) {
			p.write(at, "ec2 stale by=%s for=%s%s", short(p.span(5*time.Second, anyStale, 5*time.Second)), p.outage(at), p.whose())
		}},
		{"ec2 hang", 2, func(p *plan, at time.Duration) {
			p.write(at, "ec2 hang %s for=%s%s", pick(&p.source, "attach", "detach"), p.outage(at), p.whose())
		}},
		{"ec2 in-use", 4, func(p *plan, at time.Duration) { p.write(at, "ec2 in-use%s%s", p.times(3), p.whose()) }},
		{"ec2 drain-subnet", 2, func(p *plan, at time.Duration) {
			p.write(at, "ec2 drain-subnet leave=%d", p.between(0, 4))
			p.write(p.later(at, 20*time.Second, verb.AnyOutage), "ec2 drain-subnet leave=%d", usable(p.shape.bits))
		}},
		{"ec2 down", 2, func(p *plan, at time.Duration) { p.write(at, "ec2 down for=%s", p.outage(at)) }},
		{"imds silent", 2, func(p *plan, at time.Duration) { p.write(at, "imds silent for=%s%s", p.outage(at), p.whose()) }},
		{"imds lag", 2, func(p *plan, at time.Duration) {
			p.write(at, "imds lag by=%s", short(p.span(5*time.Second, anyLag, 5*time.Second)))
			p.write(p.safety, "imds lag by=%s", short(promptly))
		}},
	}
}

// otherCall is a request that makes no ENI.
func (p *plan) otherCall() string {
	return pick(&p.source, slices.DeleteFunc(append(slices.Clone(mutations), "DescribeNetworkInterfaces"), func(c string) bool { return c == verb.Making })...)
}

// outage is how long a fault for any CNI lasts.
func (p *plan) outage(at time.Duration) string {
	return short(p.lasts(at, 10*time.Second, verb.AnyOutage))
}

// enableAnybodys draws which faults the seed may use.
func (p *plan) enableAnybodys() {
	all, percent := anybodysKinds(), pick(&p.source, 8, 15, 25)
	for i := range all {
		k := &all[i]
		if enabled := p.chance(percent); enabled && p.cni.fits(k.key) {
			p.kinds = append(p.kinds, k)
			p.weight += k.weight
		}
	}
}

// has says whether the CNI has what a verb needs: without it the verb means nothing to it.
func (c *CNI) has(n verb.Needs) bool {
	return (c.Daemon || !n.Daemon) && (c.Asks || !n.Runtime) && (c.GC || !n.GC) && (c.Cloud || !n.Cloud)
}

// fits is has for the verb of a key.
func (c *CNI) fits(key string) bool { return c.has(named(key).Needs) }

// named is the verb of a key.
func named(key string) *verb.Verb {
	all := verb.All()
	return all[slices.IndexFunc(all, func(v *verb.Verb) bool { return v.Key() == key })]
}

// Drawn are the keys of all verbs that are drawn for the CNI, sorted.
func (c *CNI) Drawn() []string {
	out := slices.Clone(ordinary)
	for _, closes := range closing {
		if c.fits(closes) {
			out = append(out, closes)
		}
	}
	for _, k := range anybodysKinds() {
		if c.fits(k.key) {
			out = append(out, k.key)
		}
	}
	slices.Sort(out)
	return out
}

// Owed says why a scenario asks for more than any correct CNI owes, or than this one has; nil is that it does not.
func (c *CNI) Owed(f *scn.File, cl *sim.Cluster) error {
	errs := []error{Owed(f, cl)}
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
			errs = append(errs, fmt.Errorf("at %s %s is not for any CNI: %s", short(at.When), a.Verb, why))
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
	rule := a.Of.Anybody()
	unknown := func(kv scn.Arg) bool { return !slices.Contains(c.Settings, kv.Key) }
	switch {
	case rule.Excludes(a) || slices.ContainsFunc(a.Keys, unknown):
		return rule.Why
	case !c.has(a.Of.Needs):
		return "it means nothing to this one"
	case a.Text("for") != "" && a.Duration("for") > verb.AnyOutage:
		return "it lasts longer than " + short(verb.AnyOutage)
	}
	return ""
}
