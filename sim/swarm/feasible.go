package swarm

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Feasible returns an error that names what a correct CNI cannot do of a scenario: survive a fault that none survives,
// give an address to pods for which there is no room, make pods ready while a fault lasts. Nil: it can do all of it.
func Feasible(f *scn.File, c *sim.Cluster) error {
	h := shapeOf(c)
	o := feasibility{draw.Owing{Shape: h, Runtime: c.Runtime, Open: map[string]bool{}, Keys: born(&h), Foreign: map[int]int{}}}
	for _, s := range c.Start {
		w := draw.Workload{Name: s.Name, Count: s.Count}
		if len(s.Nodes) == 1 {
			w.Node = s.Nodes[0]
		}
		o.Loads = append(o.Loads, w)
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
		if r.met(o.Keys) && slices.ContainsFunc(slices.Sorted(maps.Keys(o.Keys)), r.without) {
			o.Say("%s", r.why)
		}
	}
	if o.Limits > verb.MostLimits {
		o.Say("EC2 refuses %d attaches as one too many: that is believed for longer than pods may wait", o.Limits)
	}
	if o.Open[verb.Drained] { // the only fault that does not end with the script
		o.Say("strangers keep the subnet's addresses to the end")
	}
	if w := draw.Overloaded(&o.Shape, o.Loads, o.Hidden); w != nil {
		o.Say("there is no room for all pods in the end")
	}
	return errors.Join(o.Errors...)
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
func shapeOf(c *sim.Cluster) draw.Shape {
	l, _ := ec2.LimitsOf(c.Type) // checked
	h := draw.Shape{Nodes: c.Nodes, Kind: c.Type, Bits: c.Subnet.Bits(), Warm: c.Warm, Version: c.Version,
		MaxPods: c.MaxPods, Settings: c.Settings,
		ENIs: l.ENIs, Per: l.IPv4PerENI - 1}
	if c.Settings.MaxENI > 0 {
		h.ENIs = min(h.ENIs, c.Settings.MaxENI)
	}
	if c.Settings.CustomNetwork {
		h.ENIs-- // as the draw counts them
	}
	if c.Settings.IMDSOnly {
		h.ENIs, h.Per = 1, min(h.Per, c.Warm)
	}
	return h
}

// feasibility walks through a scenario.
type feasibility struct{ draw.Owing }

// check is a line that expects something: pods become ready only once every fault has ended.
func (o *feasibility) check(at *scn.At) {
	if at.Check.Metric != "pods.unready" {
		return
	}
	if at.When < o.Ends {
		o.Say("at %s pods should become ready, and a fault lasts until %s", draw.Short(at.When), draw.Short(o.Ends))
	}
	if len(o.Open) > 0 {
		o.Say("at %s pods should become ready, and nobody has ended %s", draw.Short(at.When),
			strings.Join(sorted(o.Open), ", "))
	}
}

func sorted(set map[string]bool) []string {
	return slices.Sorted(maps.Keys(set))
}

func (o *feasibility) act(at *scn.At, a *verb.Act) {
	key := a.Of.Key()
	if a.Of.Survives.Excludes(a) {
		o.Say("no CNI survives %s", key)
	}
	o.At = at.When
	if a.Of.Pods {
		o.Wanted = max(o.Wanted, at.When, at.Until)
	}
	o.Keys[key] = true
	o.Ends = max(o.Ends, at.When, at.Until)
	if a.Text("for") != "" {
		o.Ends = max(o.Ends, at.When+a.Duration("for"))
	}
	if a.Of.Owe != nil {
		a.Of.Owe(&o.Owing, a)
	}
}
