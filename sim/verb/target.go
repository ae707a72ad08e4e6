package verb

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/sim/scn"
)

// Target is what an action strikes: itself, and the nouns of the world that it happens in. Those that its subject does
// not have are nil.
type Target struct {
	*Act
	ID int // the action's number: models call its faults by it

	// Of the node, or of the node that the pod is on.
	Daemon  Daemon
	Kernel  Kernel
	Runtime Runtime
	Pod     Pod

	Network Network
	API     API
	Cloud   *Cloud
}

// Pod is one that is on a node.
type Pod struct{ Name, UID string }

// Daemon is a node's daemon, on behalf of one action. Its methods say what has become of the action.
type Daemon interface {
	// Restart rolls the daemon: SIGTERM, then a new one with these settings.
	Restart(settings []scn.Arg) Strike
	// Upgrade exchanges daemon and plugin ("both"), or one of them, for a version of ours.
	Upgrade(version int, part string) Strike
	// Exchange exchanges them for another system's, NAME@WHERE, with the environment of the old one if it is kept.
	Exchange(system, part string, keep bool) Strike
	// Kill is SIGKILL. KillAt is that before or after the next such request to EC2.
	Kill() Strike
	KillAt(request ec2.Action, after bool) Strike
	// Hold keeps the daemon down, until Release.
	Hold() Strike
	Release() Strike
	// LoseRecords takes the daemon's record of addresses away.
	LoseRecords() Strike
}

// Kernel is a node's machine and its kernel, on behalf of one action.
type Kernel interface {
	// Interfere lets a third party change the machine's network namespace, and says how many things it found to
	// change.
	Interfere(kernel.Accident) int
	// InterfereAt does so to the namespace of a pod's newest sandbox, or to the link that leads there. 0 as well: it
	// has none.
	InterfereAt(Pod, kernel.Accident) int
	// MoreAddresses are addresses that a pod might add to its own: those of its node first, then free ones of the
	// subnet.
	MoreAddresses(p Pod, count int) []netip.Addr
	// AddThirdParty puts on the machine what others than its CNI have there.
	AddThirdParty() Strike
	// InterruptDumps lets the next netlink dumps end early.
	InterruptDumps(times int) Strike
	Reboot() Strike
	Terminate() Strike
}

// Runtime is a node's kubelet and container runtime, on behalf of one action.
type Runtime interface {
	// Socket changes what stands behind the runtime endpoint that the daemon is configured with.
	Socket(to string) Strike
	RestartKubelet() Strike
	RestartRuntime() Strike
	// FailDELs lets a plugin before the CNI's fail the next DELs, each after a while.
	FailDELs(times int, after time.Duration) Strike
	// GC calls CNI GC with all attachments, with none, or without the list ("missing").
	GC(valid string) Strike
	// Hang has a process of the pod go into D state, until Unhang.
	Hang(Pod) Strike
	Unhang(Pod) Strike
	// Hide lets the runtime's list lack the pod's sandbox.
	Hide(Pod) Strike
	// ReplayDEL sends DELs of the sandbox that had the pod's name before, each so much later.
	ReplayDEL(p Pod, after []time.Duration) Strike
}

// Network is what carries packets between pods and the VPC.
type Network interface {
	// HoldFlows opens a flow to every pod that runs, now and from now on.
	HoldFlows() Strike
}

// API is the API server.
type API interface {
	// Create makes a workload of the kind deployment or statefulset; node is the only one for its pods, 0 is all.
	Create(name string, count int, kind string, node int) Strike
	// Scale sets how many pods a workload is to have, or takes it there by step pods at most (Towards).
	Scale(name string, count, step int) Strike
	// Roll deletes a workload's oldest pods.
	Roll(name string, count int) Strike
	// Delete deletes a pod, gracefully or by force.
	Delete(pod string, force bool) Strike
	// PutENIConfig makes or changes an ENIConfig, in which of the cluster's subnets and with which security groups, which are made if they
	// are not there; DeleteENIConfig deletes it.
	PutENIConfig(name string, in int, groups []string) Strike
	DeleteENIConfig(name string) Strike
	// Mark sets an annotation or a label of a node, or takes it away when the value is nil.
	Mark(node int, annotation bool, key string, value *string) Strike
	// Away has no daemon reach it for a while.
	Away(d time.Duration) Strike
}
