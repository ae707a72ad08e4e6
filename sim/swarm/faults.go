package swarm

import (
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// drawing is a scenario that is being drawn, with the faults that may happen in it.
type drawing struct {
	draw.Plan
	kinds  []kind
	weight int // of them together
}

// kind is a fault that a swarm draws.
type kind struct {
	*verb.Verb
	*verb.Draw
}

// kinds are all faults that a correct CNI survives, or any CNI, in the order in which seeds draw them.
func kinds(of func(*verb.Verb) *verb.Draw) (out []kind) {
	for _, v := range verb.All() {
		if d := of(v); d != nil {
			out = append(out, kind{v, d})
		}
	}
	slices.SortStableFunc(out, func(a, b kind) int { return last(a.Draw) - last(b.Draw) })
	return out
}

func last(d *verb.Draw) int {
	if d.Last {
		return 1
	}
	return 0
}

func forOurs(v *verb.Verb) *verb.Draw { return v.Draw }
func forAny(v *verb.Verb) *verb.Draw  { return v.DrawAny }

// enable draws which faults the seed may use.
func (p *drawing) enable() {
	percent := draw.Pick(&p.Source, 8, 15, 25, 50)
	for _, k := range kinds(forOurs) {
		from := &p.Source
		if k.Later {
			own := draw.NewSource(p.State)
			from = &own
		}
		if from.Chance(percent) && (k.Fits == nil || k.Fits(&p.Shape)) {
			p.kinds = append(p.kinds, k)
		}
	}
	for _, r := range apart() {
		keys := born(&p.Shape)
		for _, k := range p.kinds {
			keys[k.Key()] = true
		}
		if r.met(keys) {
			p.kinds = slices.DeleteFunc(p.kinds, func(k kind) bool { return r.without(k.Key()) })
		}
	}
	for _, k := range p.kinds {
		p.weight += k.Weight
	}
	for _, ofNodes := range []bool{false, true} { // what EC2 is asked for first: that is what seeds mean
		for _, k := range p.kinds {
			if k.Begin != nil && slices.Contains(k.On, scn.Node) == ofNodes {
				k.Begin(&p.Plan)
			}
		}
	}
}

// rule is about faults that no CNI survives together: where all of some may happen, none of the others may.
type rule struct {
	all     []string
	without func(key string) bool
	why     string
}

// met says whether all of a rule's faults are among these.
func (r rule) met(keys map[string]bool) bool {
	return !slices.ContainsFunc(r.all, func(key string) bool { return !keys[key] })
}

// earlier is what a cluster has from its birth whose daemons write an earlier record version.
const earlier = "cluster version"

// born are the keys of what a cluster has before anything strikes it.
func born(h *draw.Shape) map[string]bool {
	if h.Version != ipam.Version {
		return map[string]bool{earlier: true}
	}
	return map[string]bool{}
}

const noMACs = "records of the version before have no MACs, and alias and MAC of a host veth may be lost: only the pod knows what the MAC was"

// apart are the rules, in the order in which they leave faults out.
func apart() []rule {
	return []rule{
		{[]string{"ec2 detach"}, hinders,
			"an ENI is detached by a stranger, and the cloud or the daemon may fail: nobody can attach it again in time"},
		{[]string{"node lose-records", "pod change-mac"}, among("pod lose-alias"),
			"records, alias and MAC of a host veth may all be lost: only the pod knows what the MAC was"},
		{[]string{"node upgrade", "pod change-mac"}, among("pod lose-alias"),
			noMACs},
		{[]string{earlier, "pod change-mac"}, among("pod lose-alias"), noMACs},
		{[]string{"ec2 stale", "imds lag"}, among("node lose-records", "node reboot"),
			"records may be lost while EC2 and metadata tell of a minute and a half ago: nobody knows what was given back since"},
		{[]string{"node lose-records", "imds silent"},
			among("node flush-rules", "node flush-routes", "node flush-nat", "node drop-arp", "node drop-forward", "pod lose-gateway",
				"pod change-mac", "pod lose-alias"),
			"records may be lost while metadata is silent: nobody puts back in time what pods lack"},
	}
}

func among(keys ...string) func(string) bool {
	return func(key string) bool { return slices.Contains(keys, key) }
}

// hinders says whether a fault may keep a daemon from noticing that an ENI was detached, and from attaching it again,
// in time: nobody can while the cloud fails, and what a dead daemon had asked of EC2 is in doubt for two minutes.
func hinders(key string) bool {
	switch key {
	case "ec2 detach":
		return false
	case "node kill", "node kill-at", "node hold", "node reboot", "node lose-records", "node restart", "node upgrade":
		return true
	}
	return strings.HasPrefix(key, "ec2 ") || strings.HasPrefix(key, "imds ")
}

// strike draws one of the enabled faults, and says whether a daemon starts after it; a seed without any is a day without trouble.
func (p *drawing) strike(at time.Duration) (starts bool) {
	if p.weight == 0 {
		p.Operate(at)
		return false
	}
	left := p.Between(1, p.weight)
	for _, k := range p.kinds {
		if left -= k.Weight; left <= 0 {
			k.Draw.Draw(&p.Plan, at)
			return k.Starts
		}
	}
	return false
}
