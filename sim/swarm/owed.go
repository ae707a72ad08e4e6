package swarm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Owed says why a scenario asks for more than a correct CNI owes: a fault that none survives, pods that have no room, pods that should
// be ready while a fault is still there. nil is that it asks for what is possible.
func Owed(f *scn.File, c *sim.Cluster) error {
	o := owing{shape: shapeOf(c), runtime: c.Runtime, open: map[string]bool{}, keys: map[string]bool{}, foreign: map[int]int{}}
	for _, s := range c.Start {
		w := workload{name: s.Name, count: s.Count}
		if len(s.Nodes) == 1 {
			w.node = s.Nodes[0]
		}
		o.loads = append(o.loads, w)
	}
	for _, at := range inOrder(f) {
		if at.Check != nil {
			o.check(at)
			continue
		}
		act, err := verb.Bind(at.Action)
		if err != nil {
			return err
		}
		o.act(at, act)
	}
	for _, r := range apart() {
		if r.met(o.keys) && slices.ContainsFunc(slices.Sorted(maps.Keys(o.keys)), r.without) {
			o.say("%s", r.why)
		}
	}
	if o.limits > mostRefusals {
		o.say("EC2 refuses %d attaches as one too many: that is believed for longer than pods may wait", o.limits)
	}
	if o.open[drained] { // the only fault that does not end with the script
		o.say("strangers keep the subnet's addresses to the end")
	}
	if w := overloaded(&o.shape, o.loads, o.hidden); w != nil {
		o.say("there is no room for all pods in the end")
	}
	return errors.Join(o.errs...)
}

// inOrder are the file's actions and checks as they happen.
func inOrder(f *scn.File) []*scn.At {
	var out []*scn.At
	for i := range f.Lines {
		if at, ok := f.Lines[i].Stmt.(*scn.At); ok {
			out = append(out, at)
		}
	}
	slices.SortStableFunc(out, func(a, b *scn.At) int { return int(a.When - b.When) })
	return out
}

// shapeOf is the shape of a cluster that a scenario describes.
func shapeOf(c *sim.Cluster) shape {
	l, _ := ec2.LimitsOf(c.Type) // checked
	h := shape{nodes: c.Nodes, kind: c.Type, bits: c.Subnet.Bits(), warm: c.Warm, version: c.Version, maxPods: c.MaxPods, settings: c.Settings,
		enis: l.ENIs, per: l.IPv4PerENI - 1}
	if c.Settings.MaxENI > 0 {
		h.enis = min(h.enis, c.Settings.MaxENI)
	}
	if c.Settings.IMDSOnly {
		h.enis, h.per = 1, min(h.per, c.Warm)
	}
	return h
}

// owing walks through a scenario.
type owing struct {
	shape   shape
	runtime cri.Runtime
	loads   []workload
	hidden  int
	open    map[string]bool // faults that somebody has to end
	ends    time.Duration   // of the faults that end by themselves
	wanted  time.Duration   // when a workload was changed last
	keys    map[string]bool // of all actions
	limits  int             // attaches that EC2 refuses as one too many
	foreign map[int]int     // ENIs that strangers attach, by node
	errs    []error
}

func (o *owing) say(format string, args ...any) { o.errs = append(o.errs, fmt.Errorf(format, args...)) }

// check is a line that expects something: readiness is owed only when nothing is broken any more.
func (o *owing) check(at *scn.At) {
	if at.Check.Metric != "pods.unready" {
		return
	}
	if at.When < o.ends {
		o.say("at %s pods should become ready, and a fault lasts until %s", short(at.When), short(o.ends))
	}
	if len(o.open) > 0 {
		o.say("at %s pods should become ready, and nobody has ended %s", short(at.When), strings.Join(sorted(o.open), ", "))
	}
}

func sorted(set map[string]bool) []string {
	var out []string
	for k := range set {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func (o *owing) act(at *scn.At, a *verb.Act) {
	key := a.Of.Key()
	if a.Of.Survives.Excludes(a) {
		o.say("no CNI survives %s", key)
	}
	if key == "ec2 detach" {
		if at.When < o.wanted+young {
			o.say("at %s an ENI is detached by a stranger that may be too new to be missed: pods came or went less than %s before", short(at.When), short(young))
		}
	}
	if strings.HasPrefix(key, "kube ") || key == "pod delete" || key == "pod force-delete" {
		o.wanted = max(o.wanted, at.When, at.Until)
	}
	o.keys[key] = true
	o.ends = max(o.ends, at.When, at.Until)
	if a.Text("for") != "" {
		o.ends = max(o.ends, at.When+a.Duration("for"))
	}
	switch key {
	case "kube create", "kube scale":
		o.scale(a)
	case "ec2 fail":
		if a.Text("code") == attachLimit {
			o.limits += a.Int("times")
		}
	case "ec2 attach":
		n := a.Int("node")
		o.foreign[n]++
		o.shape.foreign = max(o.shape.foreign, o.foreign[n])
		o.shape.prefixed = o.shape.prefixed || a.Int("prefixes") > 0
	case "ec2 leak":
		o.shape.leaked++
		if set := &o.shape.settings; a.Text("of") == "this-cluster" && (set.NoSweep || set.IMDSOnly) {
			o.say("a node of this cluster leaves an ENI, and nobody sweeps")
		}
	case "pod hide":
		o.hidden++
	case "node lose-records":
		if o.shape.settings.NoSweep {
			o.say("records may be lost and nobody sweeps: nobody knows of an ENI that was on its way")
		}
	case "node terminate":
		if o.shape.settings.NoSweep {
			o.say("a node is terminated and nobody sweeps: what it was making is left for ever")
		}
		o.open["the loss of "+a.Subject.String()] = true
	case "node restart-runtime":
		if o.runtime == cri.Containerd16 {
			o.say("containerd 1.6 that restarts forgets sandboxes that are being made, and their namespaces keep the addresses")
		}
	case "pod hang":
		o.open["the hang of "+a.Subject.String()] = true // its name may be another pod's by then
	case "node hold", "node unhold":
		o.toggle("hold", a, key == "node hold")
	case "node socket":
		o.toggle("socket", a, a.Text("cri") != "right")
	case "ec2 drain-subnet":
		o.set(drained, a.Int("leave") < usable(o.shape.bits))
	case "imds lag":
		o.set("lag", a.Duration("by") > promptly)
	}
}

// drained is a subnet of which strangers have the addresses.
const drained = "drain-subnet"

func (o *owing) scale(a *verb.Act) {
	name := a.Text("name")
	for i := range o.loads {
		if o.loads[i].name == name {
			if a.Verb == "scale" {
				o.loads[i].count = a.Int("count")
			}
			return
		}
	}
	o.loads = append(o.loads, workload{name: name, count: a.Int("count"), node: a.Int("node")})
}

// toggle opens or closes a fault of one node or of all.
func (o *owing) toggle(what string, a *verb.Act, on bool) {
	if a.Subject.Kind == scn.Node {
		o.set(what+" of "+a.Subject.String(), on)
		return
	}
	for n := 1; n <= o.shape.nodes; n++ {
		o.set(what+" of "+scn.Subject{Kind: scn.Node, Node: n}.String(), on)
	}
}

func (o *owing) set(what string, on bool) {
	if on {
		o.open[what] = true
	} else {
		delete(o.open, what)
	}
}
