package draw

import (
	"fmt"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// shape is a cluster and its settings, and what they have room for.
type Shape struct {
	Nodes    int
	Kind     string // instance type
	Runtime  string
	Bits     int // of the subnet
	Warm     int
	Version  int
	MaxPods  int // 0: not said
	Settings ipam.Settings
	Config   []string // KEY=VALUE, as the scenario says them
	ENIs     int      // that a node may have
	Foreign  int      // of them, those that third parties may attach
	Prefixed bool     // these may have prefixes
	Leaked   int      // ENIs that other clusters may leave in the subnet
	Reserved bool     // half of the subnet is for prefixes alone
	Unnamed  bool     // no daemon knows the cluster's name
	Subnets  []string // the zone's others, as the scenario says them; a node's daemon chooses among them
	Custom   string   // ENIConfigs of custom networking, as the scenario says them; "" is none
	Role     string   // what the nodes may ask EC2 for; "": everything
	Per      int      // addresses for pods on one of them
}

// types are small ones, where limits are near, and one that is not. One seed in twelve has any type of the catalogue,
// up to bare metal.
var types = []string{"t3.nano", "t3.small", "t3.small", "t3.medium", "c5.large", "m5.large", "m5.large", "c5.xlarge"}

var runtimes = []string{"containerd", "containerd", "containerd", "containerd-2.1", "containerd-1.7-guard",
	"containerd-1.6", "crio-1.34", "dockershim"}

func DrawShape(s *Source) Shape {
	h := Shape{Nodes: Pick(s, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 1, 1, 2, 2, 3, 1, 2, 3, 4, 16), Kind: drawType(s),
		Runtime: Pick(s, runtimes...), Version: ipam.Version,
		Settings: ipam.Defaults()}
	if s.Chance(25) {
		h.Version = s.Between(1, ipam.Version)
	}
	l, _ := ec2.LimitsOf(h.Kind)
	h.ENIs, h.Per = l.ENIs, l.IPv4PerENI-1
	if s.Chance(20) {
		h.Warm = s.Between(1, min(h.Per, MostPods))
	}
	h.DrawSettings(s)
	if s.Chance(4) {
		h.Alone()
	}
	if h.Settings.MaxENI > 0 {
		h.ENIs = min(h.ENIs, h.Settings.MaxENI)
	}
	h.Bits = h.Roomy()
	if s.Chance(35) {
		h.Bits = min(h.Bits+s.Between(1, 3), 28)
	}
	h.MaxPods = h.DrawMaxPods(s)
	h.drawPrefixes(*s)
	h.drawCustom(*s)
	h.drawSubnets(*s)
	return h
}

// mostPods is how many pods a seed has to begin with, or a workload later: what more of them would show is not worth
// their time.
const MostPods = 60

func drawType(s *Source) string {
	if s.Chance(8) {
		return Pick(s, ec2.Types()...).Name
	}
	return Pick(s, types...)
}

// alone is a node that may not ask EC2 for anything: its pods have the addresses that its first ENI came with.
func (h *Shape) Alone() {
	h.Set("ENABLE_IMDS_ONLY_MODE", true)
	h.ENIs, h.Per = 1, min(h.Per, MostPods)
	h.Warm = h.Per
}

func (h *Shape) Set(key string, value any) {
	text := fmt.Sprint(value)
	if h.Settings.Put(key, text) == nil {
		h.Config = append(h.Config, key+"="+text)
	}
}

func (h *Shape) DrawSettings(s *Source) {
	switch {
	case s.Chance(55):
		h.Set("WARM_IP_TARGET", s.Between(1, 5))
		if s.Chance(50) {
			h.Set("MINIMUM_IP_TARGET", s.Between(1, h.Per))
		}
	case s.Chance(50):
		h.Set("WARM_ENI_TARGET", s.Between(0, 2))
	}
	if s.Chance(35) {
		h.Set("MAX_ENI", s.Between(1, h.ENIs))
	}
	if s.Chance(40) {
		h.Set("IP_COOLDOWN_PERIOD", Pick(s, 0, 5, 10, 20, 60))
	}
	if s.Chance(15) {
		h.Set("AWS_VPC_K8S_CNI_EXTERNALSNAT", true)
	}
	if s.Chance(10) {
		h.Set("AWS_VPC_CNI_NODE_PORT_SUPPORT", false)
	}
	if s.Chance(10) {
		h.Set("MANAGE_UNTAGGED_ENI", false)
	}
	if s.Chance(8) {
		h.Set("DISABLE_LEAKED_ENI_CLEANUP", true)
	}
}

// drawPrefixes switches prefixes on under one seed in eight. It draws from a copy, so that the others stay what they were. The
// subnet has room for all prefixes that the nodes can carry: what fragments it are third parties.
func (h *Shape) drawPrefixes(s Source) {
	if !s.Chance(12) || h.Settings.IMDSOnly {
		return
	}
	h.Set("ENABLE_PREFIX_DELEGATION", true)
	if s.Chance(60) {
		h.Set("WARM_PREFIX_TARGET", s.Between(0, 2))
	}
	for h.Bits > 16 && Usable(h.Bits) < 2*h.Nodes*h.ENIs*(h.Per*16+1) {
		h.Bits--
	}
	h.Reserved = s.Chance(25)
}

// drawCustom switches custom networking on under one seed in twelve, where a node may have an ENI beside its first one. It draws from a
// copy, as drawPrefixes does. Pods have a subnet as large as the nodes', in a further CIDR of the VPC, and another zone has one, too.
func (h *Shape) drawCustom(s Source) {
	s.Between(0, 1) // what drawPrefixes has drawn first says nothing here
	if !s.Chance(8) || h.Settings.IMDSOnly || h.ENIs < 2 {
		return
	}
	h.Set("AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG", true)
	h.ENIs-- // the first one is not for pods
	h.MaxPods = min(h.MaxPods, h.ENIs*h.Per)
	h.Subnets, h.Custom = []string{"", ":zone=b"}, Pick(&s, "default:2", "default:2:sg-pods")
}

// withoutSubnets is a role of before subnets were chosen among: it may ask for everything but them.
const withoutSubnets = "DescribeNetworkInterfaces,CreateNetworkInterface,CreateTags,AttachNetworkInterface,ModifyNetworkInterfaceAttribute," +
	"DetachNetworkInterface,DeleteNetworkInterface,AssignPrivateIpAddresses,UnassignPrivateIpAddresses,DescribeInstances"

// drawSubnets gives one seed in twelve a second subnet that is tagged for pods, and a third that is not for these. It draws from a copy,
// as drawPrefixes does.
func (h *Shape) drawSubnets(s Source) {
	s.Between(0, 1)
	s.Between(0, 1) // what the others have drawn first says nothing here
	if !s.Chance(8) || h.Settings.IMDSOnly || h.Settings.CustomNetwork {
		return
	}
	h.Subnets = []string{":cni", Pick(&s, "", ":cni=0", ":cni:cluster=another", ":cni:zone=b")}
	if s.Chance(20) {
		h.Role = withoutSubnets
	}
}

// drawMaxPods is rarely said; then there are at least as many as one ENI has addresses for.
func (h *Shape) DrawMaxPods(s *Source) int {
	if !s.Chance(15) {
		return 0
	}
	return s.Between(h.Per, h.ENIs*h.Per)
}

// roomy is a subnet that all nodes together cannot use up, third parties' addresses left out.
func (h *Shape) Roomy() int {
	bits := 28
	for Usable(bits) < 2*h.Nodes*h.ENIs*(h.Per+1) {
		bits--
	}
	return bits
}

// mostForeign is how many addresses an ENI that is not ours takes from the subnet, and mostPrefixes how many /28
// instead.
const (
	MostForeign  = 4
	MostPrefixes = 2
)

// usable are the addresses of a subnet without the five that EC2 keeps.
func Usable(bits int) int { return 1<<(32-bits) - 5 }

// perNode is how many pods a node can have at once for good.
func (h *Shape) PerNode() int {
	n := (h.ENIs - h.Foreign) * h.Per
	if h.MaxPods > 0 {
		n = min(n, h.MaxPods)
	}
	return n
}

// cluster is the head of the scenario.
func (h *Shape) Head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "cluster nodes=%d type=%s subnet=10.0.0.0/%d", h.Nodes, h.Kind, h.Bits)
	if h.Reserved {
		half := 1 << (31 - h.Bits)
		fmt.Fprintf(&b, ":prefixes=10.%d.%d.%d/%d", half>>16, half>>8&0xff, half&0xff, h.Bits+1)
	}
	b.WriteString(" runtime=" + h.Runtime)
	if len(h.Subnets) > 0 {
		fmt.Fprintf(&b, " vpc=10.0.0.0/16,100.64.0.0/16,100.65.0.0/16 subnets=100.64.0.0/%d%s,100.65.0.0/%[1]d%[3]s", h.Bits, h.Subnets[0], h.Subnets[1])
	}
	if h.Custom != "" {
		b.WriteString(" eniconfigs=" + h.Custom)
	}
	if h.Role != "" {
		b.WriteString(" role=" + h.Role)
	}
	if h.Warm > 0 {
		fmt.Fprintf(&b, " warm=%d", h.Warm)
	}
	if h.Version != ipam.Version {
		fmt.Fprintf(&b, " version=%d", h.Version)
	}
	if h.MaxPods > 0 {
		fmt.Fprintf(&b, " max-pods=%d", h.MaxPods)
	}
	if h.Unnamed {
		b.WriteString(" name=none")
	}
	b.WriteString("\n")
	if len(h.Config) > 0 {
		b.WriteString("config  " + strings.Join(h.Config, " ") + "\n")
	}
	return b.String()
}

// room is how many pods can be ready in the end: on one node, and in all. What the warm targets ask for has to fit
// too, or growing is refused for ever and nothing settles; and what one node may hoard is not there for the others.
func (h *Shape) Room() (perNode, all int) {
	each := MostForeign
	if h.Prefixed {
		each = 1 + 16*MostPrefixes
	}
	perNode, all = h.PerNode(), Usable(h.Bits)-h.Nodes*h.Foreign*each-h.Leaked*MostForeign
	switch set := &h.Settings; {
	case h.Nodes*h.ENIs*(h.Per+1) <= all:
		return perNode, h.Nodes * perNode // each may have all that it can carry
	case set.WarmIPTarget > 0 || set.MinimumIPTarget > 0:
		all -= h.Nodes * (h.ENIs + max(set.WarmIPTarget, set.MinimumIPTarget))
	default:
		all = 0 // whole ENIs are asked for
	}
	return min(perNode, max(all, 0)), min(all, h.Nodes*perNode)
}
