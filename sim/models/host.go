package models

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// World is who hosts the models: it has a clock, and tells the story.
type World interface {
	// Clock is the models' time, since the world began.
	Clock() time.Duration
	// AdvanceAt lets Host.Advance be called at an instant; now, if that is past.
	AdvanceAt(at time.Duration)
	// Happened is told what happened at EC2. n is nil for what is on none of the nodes.
	Happened(n *Node, e *ec2.Event)
	// Did is told what an action has done: a line for the story.
	Did(line string)
}

// Host is the models of a cluster, and what has been done to them.
type Host struct {
	World   World
	Cluster *sim.Cluster // as the scenario asks for it: it does not change
	EC2     *ec2.Cloud
	Kube    *kube.Cluster
	Auditor *judge.Auditor
	Nodes   []*Node // 1-based: Nodes[0] is nil
	Traps   Traps
	Acts    actions.Log
	Base    []ec2.Count // the ledger at t=0; nil before
	// Prefixes are how many /28 a node's first ENI is launched with, or as many as its type has room for.
	Prefixes int

	numbers   map[ec2.InstanceID]int32 // of the nodes, which are all there when time begins
	rng       uint64
	advanceAt time.Duration
	flowing   bool // flows are held
}

// New makes the models of a cluster that has no nodes yet, and its judge, whose size the cluster says. What is wrong with its VPC or subnet
// is an error.
func New(w World, c *sim.Cluster, seed uint64, j judge.Config) (Host, error) {
	cfg := actions.Cloud(c.CIDRs(), c.AllSubnets())
	if err := cfg.Validate(); err != nil {
		return Host{}, err
	}
	j.Nodes, j.Budget = c.Nodes, c.Budget
	cloud := ec2.New(cfg, seed)
	actions.Grant(cloud, c)
	cluster := kube.New(seed + 1)
	for i := range c.ENIConfigs {
		cluster.PutENIConfig(0, actions.ENIConfig(cloud, 0, &c.ENIConfigs[i]))
	}
	return Host{World: w, Cluster: c, EC2: cloud, Kube: cluster, Nodes: make([]*Node, 1, c.Nodes+1),
		Auditor: judge.New(j),
		numbers: make(map[ec2.InstanceID]int32, c.Nodes), rng: seed ^ 0x5851f42d4c957f2d, advanceAt: Never}, nil
}

// Clone is an independent copy for a World that is a fork. It has no nodes: the fork's machines bring theirs, see Node.Clone.
func (h *Host) Clone(w World) Host {
	c := *h
	c.World = w
	c.EC2, c.Kube, c.Auditor = h.EC2.Clone(), h.Kube.Clone(), h.Auditor.Clone()
	c.Nodes = make([]*Node, len(h.Nodes))
	c.Traps, c.Acts = slices.Clone(h.Traps), h.Acts.Clone()
	return c
}

// Random is the next random number of the world's own.
func (h *Host) Random() uint64 { return splitmix.Next(&h.rng) }

// Launch launches the instance of one more node. seed is its kubelet's and runtime's.
func (h *Host) Launch(n *Node, m Machine, seed uint64) error {
	c := h.Cluster
	prefixes := h.Prefixes
	if limits, ok := ec2.LimitsOf(c.Type); ok {
		prefixes = max(0, min(prefixes, limits.IPv4PerENI-1-c.Warm))
	}
	no := int32(len(h.Nodes))
	home := h.EC2.Subnets()[c.HomeOf(int(no))].ID
	inst, err := h.EC2.Launch(h.World.Clock(), ec2.LaunchSpec{Type: c.Type, Subnet: home, SecondaryAddresses: c.Warm, Prefixes: prefixes})
	if err != nil {
		return err
	}
	*n = Node{No: no, Instance: inst, Machine: m, Version: c.Version, Plugin: c.Version, Settings: c.Settings, Written: c.Written, kubeletAt: Never,
		CRI: cri.New(cri.Config{Node: nodeName(no), Runtime: c.Runtime}, seed)}
	n.Settings.MaxPods = c.MaxPods
	h.Nodes = append(h.Nodes, n)
	h.numbers[inst] = no
	return nil
}

// FirstLink is the address with which an instance's first link begins, with the length of its subnet, and the gateway there.
func (h *Host) FirstLink(id ec2.InstanceID) (address netip.Prefix, gateway netip.Addr) {
	in, _ := h.EC2.InstanceOf(id)
	subnet := h.EC2.CIDROf(in.Subnet)
	return netip.PrefixFrom(in.PrimaryAddress, subnet.Bits()), subnet.Masked().Addr().Next()
}

// Start creates the workloads that run when time begins.
func (h *Host) Start() error {
	for _, s := range h.Cluster.Start {
		if err := h.Kube.CreateWorkload(h.World.Clock(), kube.Spec{Name: s.Name, Replicas: s.Count, Nodes: s.Nodes}); err != nil {
			return err
		}
	}
	h.Pump()
	return nil
}

// Begin is t=0.
func (h *Host) Begin() { h.Base = actions.Ledger(h.EC2) }

// Pump lets the models that have something to say say it, until none has.
func (h *Host) Pump() {
	for moved := true; moved; {
		moved = false
		for _, e := range h.EC2.Events() {
			h.happened(&e)
			moved = true
		}
		for _, e := range h.Kube.Events() {
			h.bound(&e)
			moved = true
		}
	}
	for _, m := range h.EC2.Met() { // which only reports
		h.Met(m.Fault, actions.Told(m, h.nameOf))
	}
	if at, ok := h.EC2.Next(); ok && at < h.advanceAt {
		h.advanceAt = at
		h.World.AdvanceAt(at)
	}
}

// Advance lets EC2 go on by itself. Pump tells what came of it.
func (h *Host) Advance() {
	now := h.World.Clock()
	if h.advanceAt <= now { // before EC2 goes on, and Pump asks it for the next instant
		h.advanceAt = Never
	}
	h.EC2.Advance(now)
}

// happened goes from EC2 to the node that it is about, and to the world.
func (h *Host) happened(e *ec2.Event) {
	var n *Node
	if no, ok := h.numbers[e.Instance]; ok {
		n = h.Nodes[no]
		n.Changed = true
	}
	h.World.Happened(n, e)
}

// Ended takes a terminated instance's node out of the cluster. The world has ended its machine.
func (h *Host) Ended(n *Node) {
	n.Gone = true
	h.Met(n.endedBy, "EC2 has terminated the instance")
}

var kubeletHears = map[kube.EventKind]cri.InputKind{kube.PodBound: cri.PodBound, kube.PodDeleted: cri.PodDeleted, kube.PodForceRemoved: cri.PodForceRemoved}

// bound goes from the API server to the node's kubelet.
func (h *Host) bound(e *kube.Event) {
	if n := h.at(e.Node); n != nil && !n.Gone {
		h.Kubelet(n, &cri.Input{Kind: kubeletHears[e.Kind], UID: e.UID, Namespace: e.Namespace, Name: e.Name, HostNetwork: e.HostNetwork, Grace: e.Grace})
	}
}

// at is the node with a number; nil is none.
func (h *Host) at(no int) *Node {
	if no <= 0 || no >= len(h.Nodes) {
		return nil
	}
	return h.Nodes[no]
}

// Kubelet steps a node's kubelet and runtime, and lets be done what they want. A nil input is that their time has come.
func (h *Host) Kubelet(n *Node, in *cri.Input) {
	var few [4]cri.Action // the slice is reused when an action steps kubelet again
	for _, a := range append(few[:0], n.CRI.Step(h.World.Clock(), in)...) {
		if n.Gone {
			return
		}
		n.Changed = true
		switch a.Kind {
		case cri.PodStarted:
			h.Kube.PodStarted(h.World.Clock(), a.UID, a.Address)
		case cri.PodStopped:
			h.Kube.PodStopped(h.World.Clock(), a.UID)
		case cri.PodGone:
			h.Kube.PodGone(h.World.Clock(), a.UID)
		default:
			n.Machine.Act(a)
		}
	}
	h.BoxesMet(n)
	h.ArmKubelet(n)
}

// BoxesMet enters what a node's kubelet and runtime have met of armed actions.
func (h *Host) BoxesMet(n *Node) {
	for _, m := range n.CRI.Met() {
		h.Met(m.Fault, m.What)
	}
}

// ArmKubelet schedules the next step of a node's kubelet and runtime. It is called after every change of them.
func (h *Host) ArmKubelet(n *Node) {
	n.Machine.Stepped()
	if at, ok := n.CRI.Next(); ok && at < n.kubeletAt {
		n.kubeletAt = max(at, h.World.Clock())
		n.Machine.WakeAt(n.kubeletAt)
	}
}

// Wake is the instant that Machine.WakeAt was told.
func (h *Host) Wake(n *Node) {
	if n.kubeletAt > h.World.Clock() {
		return // there was an earlier one
	}
	n.kubeletAt = Never
	if !n.Gone {
		h.Kubelet(n, nil)
	}
}

// NewDaemon gives a node's next daemon a sandbox for its pod, and returns its container ID and the pod's name.
func (h *Host) NewDaemon(n *Node) (containerID, pod string) {
	pod = "aws-node-" + strconv.Itoa(int(n.No))
	containerID = n.CRI.SetDaemonSandbox(h.World.Clock(), "kube-system", pod, pod+"-"+strconv.Itoa(n.Starts))
	h.ArmKubelet(n)
	return containerID, pod
}

// Started enters what a daemon that has started ends of armed actions.
func (h *Host) Started(n *Node, in *ipam.Start) {
	ids, text := n.Starters.Met(in)
	h.allMet(ids, text)
}

// Ran is Started for a daemon whose start is not reported.
func (h *Host) Ran(n *Node) {
	ids, text := n.Starters.Ran()
	h.allMet(ids, text)
}

func (h *Host) allMet(ids []int, text string) {
	for _, id := range ids {
		h.Met(id, text)
	}
}

// Listed enters what a daemon met behind a runtime socket that an action has changed.
func (h *Host) Listed(n *Node, in *ipam.Seen) {
	if n.socketBy != 0 {
		h.SocketMet(n, actions.Listed(in))
	}
}

// SocketMet enters that a runtime socket which an action has changed was met.
func (h *Host) SocketMet(n *Node, text string) {
	h.Met(n.socketBy, text)
	n.socketBy = 0
}

// KeptDown enters that a daemon was to start and is kept down.
func (h *Host) KeptDown(n *Node) {
	h.Met(n.heldBy, "the daemon is not started")
	n.heldBy = 0
}

// PluginRuns enters that a plugin is run, for whom the runtime has made an ADD's sandbox.
func (h *Host) PluginRuns(n *Node, a *cri.Action) {
	h.Met(n.pluginBy, "a plugin of version "+strconv.Itoa(n.Plugin)+" is run")
	n.pluginBy, n.ran = 0, n.Plugin
	if a.Verb == cri.ADD {
		n.history.Add(a.Name, a.ContainerID)
	}
}

// Met enters that something met an armed action, and tells what that did. 0 is no action.
func (h *Host) Met(id int, text string) {
	if id != 0 {
		h.did(h.Acts.Met(id, text))
	}
}

// took enters how an action was taken, and tells what it did.
func (h *Host) took(id int, s verb.Strike) { h.did(h.Acts.Took(id, s)) }

func (h *Host) did(line string) {
	if line != "" {
		h.World.Did(line)
	}
}

// Trapped springs a trap that waits for a request of the node's daemon, before EC2 has it or after: the daemon is dead.
func (h *Host) Trapped(n *Node, a ec2.Action, after bool) bool {
	id, sprung := h.Traps.Spring(n.No, a, after)
	if sprung {
		h.Met(id, actions.Sprung(a, after))
		n.Machine.Kill(0, "")
	}
	return sprung
}

// Whose says whose ENIs are, for the judge.
func (h *Host) Whose(n *Node) judge.Whose {
	return judge.Whose{Model: h.EC2, Node: n.Instance, Cluster: h.Cluster.Name, LeavesUntagged: n.Settings.LeaveUntagged,
		Undiscovered: !n.Settings.Discovery, Custom: actions.Custom(h.Kube, int(n.No), h.zone(n), &n.Settings, n.customAt)}
}

// zone is the one that a node's instance is in.
func (h *Host) zone(n *Node) string {
	in, _ := h.EC2.InstanceOf(n.Instance)
	return in.Zone
}

// ENIConfig is what the API server says of a node's.
func (h *Host) ENIConfig(n *Node) *ipam.ENIConfig {
	labels, annotations, _ := h.Kube.Marks(int(n.No))
	all := map[string]string{zoneLabel: h.zone(n)}
	maps.Copy(all, labels)
	name := n.Settings.ConfigName(all, annotations)
	e, _, ok := h.Kube.ENIConfig(name)
	if !ok {
		return &ipam.ENIConfig{Name: name, Missing: true}
	}
	return &ipam.ENIConfig{Name: e.Name, Subnet: e.Subnet, Groups: e.Groups}
}

// zoneLabel is how a cloud provider labels a node with its zone.
const zoneLabel = "topology.kubernetes.io/zone"

// nameOf names an instance's node.
func (h *Host) nameOf(i ec2.InstanceID) string {
	if no, ok := h.numbers[i]; ok {
		return nodeName(no)
	}
	return "nobody"
}

// IsGone says whether a node's instance is terminated.
func (h *Host) IsGone(no int) bool { n := h.at(no); return n != nil && n.Gone }

// living are the nodes that pods may be placed on.
func (h *Host) living() []int {
	var out []int
	for _, n := range h.Nodes[1:] {
		if !n.Gone {
			out = append(out, int(n.No))
		}
	}
	return out
}

// Unready names what is under way; "" is nothing.
func (h *Host) Unready() string {
	for _, n := range h.Nodes[1:] {
		if n.Gone {
			continue
		}
		if why := n.Machine.Busy(); why != "" {
			return n.Name() + ": " + why
		}
	}
	for _, l := range h.Kube.Workloads() {
		for _, p := range h.Kube.Pods(l) {
			if p.Phase != kube.Running || p.Deleting {
				return "pod " + p.Name + " does not run, or is being deleted"
			}
		}
	}
	return ""
}

// hindrance is why the cluster does not become ready: what a daemon complains of explains more than a pod that does not run.
func (h *Host) hindrance() string {
	for _, n := range h.Nodes[1:] {
		if n.Gone {
			continue
		}
		if v, ok := n.Machine.View(); ok && len(v.Reasons) > 0 {
			return n.Name() + ": " + v.Reasons[0]
		}
	}
	return h.Unready()
}

// warmLimit bounds how long the workloads of a scenario may take to start before t=0.
const warmLimit = 30 * time.Minute

// errStopped is what WarmUp returns when the world did.
var errStopped = errors.New("the world has stopped")

// WarmUp runs until every pod runs and nothing is under way, twice in a row: between two things that follow each other there may be a moment in
// which nothing is. run runs the world to an instant; false: it does not run any more.
func (h *Host) WarmUp(run func(to time.Duration) bool) error {
	for quiet := 0; quiet < 2; {
		now := h.World.Clock()
		if now >= warmLimit {
			return fmt.Errorf("the workloads that should run when time begins did not within %v: %s", warmLimit, h.hindrance())
		}
		if !run(now + time.Second) {
			return errStopped
		}
		if quiet++; h.Unready() != "" {
			quiet = 0
		}
	}
	return nil
}
