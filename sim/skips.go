package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// The parts of a cluster line that some world leaves out. The worlds ask Cannot by these names.
const (
	SkipOthers       = "cluster other-nodes=, other-pods="
	SkipOtherRuntime = "cluster runtime=, other than containerd"
	SkipName         = "cluster name="
)

// Skips are all kinds of line that a world does not carry out: docs/skips.md is this table.
func Skips() (out []verb.Skip) {
	for _, v := range verb.All() {
		out = append(out, v.Skips...)
	}
	out = append(out,
		verb.Skip{World: "sim", Line: SkipOthers,
			Why: "virtual time has no API server, whose other objects a daemon could list; the rest of the line holds"},
		verb.Skip{World: "kind", Line: SkipOtherRuntime,
			Why: "the nodes' runtime is kind's containerd; the rest of the line holds"},
		verb.Skip{World: "kind", Line: SkipOthers,
			Why: "its API server is a real one, whose scheduler and controllers would act on them; the rest of the " +
				"line holds"},
		verb.Skip{World: "kind", Line: SkipName,
			Why: "the cluster is named after its machine's network; the rest of the line holds"})
	worlds := []string{"sim", "netns", "kind"}
	slices.SortStableFunc(out, func(a, b verb.Skip) int {
		return slices.Index(worlds, a.World) - slices.Index(worlds, b.World)
	})
	return out
}

// outside are the metrics of a node that the runtime, EC2 and packets tell too. Its others are what its daemon believes, and where it came.
var outside = []string{"pods.ready", "pods.reachable", "daemon.starts", "enis", "enis.other-groups",
	"addresses.total"}

// CannotMeasure is why a world without these sources leaves an expectation out; nil is that it does not.
func CannotMeasure(without judge.Source, c *scn.Check) error {
	if without&judge.Books == 0 || !slices.Contains(ofNode, c.Subject.Kind) || slices.Contains(outside, c.Metric) ||
		strings.HasPrefix(c.Metric, "calls.") || strings.HasPrefix(c.Metric, "subnet-") {
		return nil
	}
	return fmt.Errorf("only books tell %s, and there are none", c.Metric)
}

// CannotDo is why a world leaves an action out, in a cluster with so many nodes; nil is that it does not.
func CannotDo(world string, a *scn.Action, nodes int) error {
	if why := verb.Skipped(world, a, nodes); why != "" {
		return errors.New(why)
	}
	return nil
}

// Cannot is why a world leaves such a line out; nil is that it does not.
func Cannot(world, line string) error {
	for _, s := range Skips() {
		if s.World == world && s.Line == line {
			return errors.New(s.Why)
		}
	}
	return nil
}
