package swarm

import (
	"fmt"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// shape is a cluster and its settings, and what they have room for.
type shape struct {
	nodes    int
	kind     string // instance type
	runtime  string
	bits     int // of the subnet
	warm     int
	version  int
	maxPods  int // 0: not said
	settings ipam.Settings
	config   []string // KEY=VALUE, as the scenario says them
	enis     int      // that a node may have
	foreign  int      // of them, those that strangers may attach
	prefixed bool     // these may have prefixes
	leaked   int      // ENIs that other clusters may leave in the subnet
	unnamed  bool     // no daemon knows the cluster's name
	per      int      // addresses for pods on one of them
}

// types are small ones, where limits are near, and one that is not. One seed in twelve has any type of the catalogue, up to bare metal.
var types = []string{"t3.nano", "t3.small", "t3.small", "t3.medium", "c5.large", "m5.large", "m5.large", "c5.xlarge"}

var runtimes = []string{"containerd", "containerd", "containerd", "containerd-2.1", "containerd-1.7-guard", "containerd-1.6", "crio-1.34", "dockershim"}

func drawShape(s *source) shape {
	h := shape{nodes: pick(s, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 1, 1, 2, 2, 3, 1, 2, 3, 4, 16), kind: drawType(s), runtime: pick(s, runtimes...), version: ipam.Version,
		settings: ipam.Defaults()}
	if s.chance(25) {
		h.version = s.between(1, ipam.Version)
	}
	l, _ := ec2.LimitsOf(h.kind)
	h.enis, h.per = l.ENIs, l.IPv4PerENI-1
	if s.chance(20) {
		h.warm = s.between(1, min(h.per, mostPods))
	}
	h.drawSettings(s)
	if s.chance(4) {
		h.alone()
	}
	if h.settings.MaxENI > 0 {
		h.enis = min(h.enis, h.settings.MaxENI)
	}
	h.bits = h.roomy()
	if s.chance(35) {
		h.bits = min(h.bits+s.between(1, 3), 28)
	}
	h.maxPods = h.drawMaxPods(s)
	return h
}

// mostPods is how many pods a seed has to begin with, or a workload later: what more of them would show is not worth their time.
const mostPods = 60

func drawType(s *source) string {
	if s.chance(8) {
		return pick(s, ec2.Types()...).Name
	}
	return pick(s, types...)
}

// alone is a node that may not ask EC2 for anything: its pods have the addresses that its first ENI came with.
func (h *shape) alone() {
	h.set("ENABLE_IMDS_ONLY_MODE", true)
	h.enis, h.per = 1, min(h.per, mostPods)
	h.warm = h.per
}

func (h *shape) set(key string, value any) {
	text := fmt.Sprint(value)
	if h.settings.Put(key, text) == nil {
		h.config = append(h.config, key+"="+text)
	}
}

func (h *shape) drawSettings(s *source) {
	switch {
	case s.chance(55):
		h.set("WARM_IP_TARGET", s.between(1, 5))
		if s.chance(50) {
			h.set("MINIMUM_IP_TARGET", s.between(1, h.per))
		}
	case s.chance(50):
		h.set("WARM_ENI_TARGET", s.between(0, 2))
	}
	if s.chance(35) {
		h.set("MAX_ENI", s.between(1, h.enis))
	}
	if s.chance(40) {
		h.set("IP_COOLDOWN_PERIOD", pick(s, 0, 5, 10, 20, 60))
	}
	if s.chance(15) {
		h.set("AWS_VPC_K8S_CNI_EXTERNALSNAT", true)
	}
	if s.chance(10) {
		h.set("AWS_VPC_CNI_NODE_PORT_SUPPORT", false)
	}
	if s.chance(10) {
		h.set("MANAGE_UNTAGGED_ENI", false)
	}
	if s.chance(8) {
		h.set("DISABLE_LEAKED_ENI_CLEANUP", true)
	}
}

// drawMaxPods is rarely said; then there are at least as many as one ENI has addresses for.
func (h *shape) drawMaxPods(s *source) int {
	if !s.chance(15) {
		return 0
	}
	return s.between(h.per, h.enis*h.per)
}

// roomy is a subnet that all nodes together cannot use up, strangers' addresses left out.
func (h *shape) roomy() int {
	bits := 28
	for usable(bits) < 2*h.nodes*h.enis*(h.per+1) {
		bits--
	}
	return bits
}

// mostForeign is how many addresses an ENI that is not ours takes from the subnet, and mostPrefixes how many /28 instead.
const (
	mostForeign  = 4
	mostPrefixes = 2
)

// usable are the addresses of a subnet without the five that EC2 keeps.
func usable(bits int) int { return 1<<(32-bits) - 5 }

// perNode is how many pods a node can have at once for good.
func (h *shape) perNode() int {
	n := (h.enis - h.foreign) * h.per
	if h.maxPods > 0 {
		n = min(n, h.maxPods)
	}
	return n
}

// cluster is the head of the scenario.
func (h *shape) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster nodes=%d type=%s subnet=10.0.0.0/%d runtime=%s", h.nodes, h.kind, h.bits, h.runtime)
	if h.warm > 0 {
		fmt.Fprintf(&b, " warm=%d", h.warm)
	}
	if h.version != ipam.Version {
		fmt.Fprintf(&b, " version=%d", h.version)
	}
	if h.maxPods > 0 {
		fmt.Fprintf(&b, " max-pods=%d", h.maxPods)
	}
	if h.unnamed {
		b.WriteString(" name=none")
	}
	b.WriteString("\n")
	if len(h.config) > 0 {
		b.WriteString("config  " + strings.Join(h.config, " ") + "\n")
	}
	return b.String()
}

// room is how many pods can be ready in the end: on one node, and in all. What the warm targets ask for has to fit too, or growing is
// refused for ever and nothing settles; and what one node may hoard is not there for the others.
func (h *shape) room() (perNode, all int) {
	each := mostForeign
	if h.prefixed {
		each = 1 + 16*mostPrefixes
	}
	perNode, all = h.perNode(), usable(h.bits)-h.nodes*h.foreign*each-h.leaked*mostForeign
	switch set := &h.settings; {
	case h.nodes*h.enis*(h.per+1) <= all:
		return perNode, h.nodes * perNode // each may have all that it can carry
	case set.WarmIPTarget > 0 || set.MinimumIPTarget > 0:
		all -= h.nodes * (h.enis + max(set.WarmIPTarget, set.MinimumIPTarget))
	default:
		all = 0 // whole ENIs are asked for
	}
	return min(perNode, max(all, 0)), min(all, h.nodes*perNode)
}
