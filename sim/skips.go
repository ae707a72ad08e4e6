package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Skipped is a kind of line that a world does not carry out, and why that cannot be helped.
type Skipped struct {
	World string
	Line  string // the verb, with what else the line must have to be left out
	Why   string
}

// The lines that some world leaves out. The worlds ask Cannot by these names; docs/skips.md is this table.
const (
	SkipUpgrade      = "upgrade"
	SkipExchange     = "upgrade to=NAME@WHERE"
	SkipTerminate    = "terminate"
	SkipGC           = "gc"
	SkipHide         = "hide"
	SkipDumps        = "interrupt-dumps"
	SkipFlows        = "hold-flows"
	SkipRestartOne   = "restart KEY=VALUE, of one node of several"
	SkipThirdParty   = "add-third-party"
	SkipOthers       = "cluster other-nodes=, other-pods="
	SkipMainTable    = "flush-routes table=254"
	SkipOtherRuntime = "cluster runtime=, other than containerd"
	SkipName         = "cluster name="
)

// Skips are all of them.
func Skips() []Skipped {
	const dumps = "a real kernel interrupts a dump when it likes (NLM_F_DUMP_INTR), not when it is asked to"
	return []Skipped{
		{"sim", SkipExchange, "virtual time has no processes, it steps enilab's core: world netns exchanges systems"},
		{"sim", SkipOthers, "virtual time has no API server, whose other objects a daemon could list; the rest of the line holds"},
		{"netns", SkipDumps, dumps},
		{"kind", SkipDumps, dumps},
		{"kind", SkipUpgrade, "a DaemonSet has one version for all nodes, and the image one plugin: world netns exchanges them node by node"},
		{"kind", SkipTerminate, "a node container that is removed stays a node of its cluster until somebody deletes the object: world netns terminates instances"},
		{"kind", SkipGC, "containerd never calls CNI GC"},
		{"kind", SkipHide, "containerd forgets no sandbox on demand"},
		{"kind", SkipFlows, "its pods' image answers nobody: expectations of flows.* are skipped with it"},
		{"kind", SkipThirdParty, "its nodes' kernels are third parties' already, kube-proxy's and Docker's, which change by themselves: world netns looks at what stays"},
		{"kind", SkipRestartOne, "a DaemonSet has one environment, and this changes one node's of several: say node-*, or use world netns"},
		{"kind", SkipMainTable, "the machine's own routes are in the main table too, the one to the API server among them, and nobody puts those back"},
		{"kind", SkipOtherRuntime, "the nodes' runtime is kind's containerd; the rest of the line holds"},
		{"kind", SkipOthers, "its API server is a real one, whose scheduler and controllers would act on them; the rest of the line holds"},
		{"kind", SkipName, "the cluster is named after its machine's network; the rest of the line holds"},
	}
}

// outside are the metrics of a node that the runtime, EC2 and packets tell too. Its others are what its daemon believes, and where it came.
var outside = []string{"pods.ready", "pods.reachable", "daemon.starts", "enis", "addresses.total"}

// CannotMeasure is why a world without these sources leaves an expectation out; nil is that it does not.
func CannotMeasure(without judge.Source, c *scn.Check) error {
	if without&judge.Books == 0 || !slices.Contains(onNode, c.Subject.Kind) || slices.Contains(outside, c.Metric) || strings.HasPrefix(c.Metric, "calls.") {
		return nil
	}
	return fmt.Errorf("only books tell %s, and there are none", c.Metric)
}

// Exchanges is the system that an action upgrades to, as NAME@WHERE; "" is none.
func Exchanges(a *scn.Action) string {
	if a.Verb != "upgrade" {
		return ""
	}
	for _, arg := range a.Args {
		if arg.Key == "to" && strings.Contains(arg.Value, "@") {
			return arg.Value
		}
	}
	return ""
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
