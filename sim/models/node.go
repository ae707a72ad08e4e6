package models

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/verb"
)

// Node is one machine as the models know it: its instance, its kubelet and runtime, and how its daemon is to run.
type Node struct {
	No       int32
	Instance ec2.InstanceID
	Gone     bool // the instance is terminated
	Machine  Machine
	CRI      *cri.Node
	Settings ipam.Settings
	Written  []string // names of those that lines have written, see sim.Cluster
	Version  int      // of the records and the protocol that the daemon writes
	Plugin   int      // of the protocol that the plugin speaks
	ran      int      // Plugin when one was run last
	Down     bool     // the daemon is kept down
	Socket   Socket   // behind the runtime endpoint that the daemon is configured with
	Starts   int      // daemons so far
	Changed  bool     // something has changed since the last snapshot

	kubeletAt time.Duration
	customAt  time.Duration // when custom networking was switched on or off
	flows     Flows
	history   actions.History   // sandboxes by pod name
	foreign   map[string]string // what third parties have put on the machine, by name
	claimed   []uint64          // network namespaces of sandboxes that have given themselves addresses

	// The actions that have something still to meet: 0 is none.
	socketBy, pluginBy, heldBy, endedBy int
	Starters                            actions.Starters
}

// Machine is what only the world has of a node, as four nouns. Verbs do not see them: they work on those of package
// verb, which this package makes of these and of the models.
type Machine interface {
	Daemon
	Kernel
	Runtime
	Network
}

// Daemon is a node's daemon.
type Daemon interface {
	// Runs says whether there is a daemon that takes requests.
	Runs() bool
	// Lives says whether there is a daemon, or one is about to start.
	Lives() bool
	// Busy names what is under way on the node; "" is nothing.
	Busy() string
	// View is what the daemon believes; false: none runs.
	View() (*ipam.View, bool)
	// Kill is SIGKILL for the daemon that lives. The strike is the action's: told, if it dies at once.
	Kill(id int, told string) verb.Strike
	// Restart is SIGTERM for the daemon that runs, and another one after it.
	Restart()
	// Start starts a daemon that was kept down.
	Start()
	// Exchange has another system run, or one's daemon or plugin alone, named as NAME@WHERE; with the old one's
	// environment, if that is kept. False: it runs already.
	Exchange(to, part string, keep bool) bool
	// LoseRecords takes the daemon's record of addresses away; false: there is none.
	LoseRecords() bool
}

// Kernel is the machine and its kernel.
type Kernel interface {
	// Interfere has a third party change the machine's network namespace, or a sandbox's and its link, and says how
	// many things there were to change. The zero sandbox is none.
	Interfere(a kernel.Accident, at cri.Truth) int
	// InterruptDumps lets the daemon's next netlink dumps end early, for an action.
	InterruptDumps(times, id int) verb.Strike
	// AddThirdParty puts on the machine what others than its CNI have there. lacks is what this kernel takes none of,
	// with the reason.
	AddThirdParty() (lacks []string)
	// ThirdParty is all of that as it is now, by name; what is gone is left out. False: it could not be looked at.
	ThirdParty() (map[string]string, bool)
	// Reboot reboots the machine.
	Reboot()
}

// Runtime is what kubelet and the container runtime need of a machine.
type Runtime interface {
	// Act does what kubelet and the runtime want of namespaces and plugins.
	Act(a cri.Action)
	// WakeAt lets Host.Wake be called at an instant.
	WakeAt(at time.Duration)
	// Stepped is told that kubelet and the runtime may be other than they were.
	Stepped()
	// GC calls the plugin as a runtime would, with a list or without one, and lets Host.Met know.
	GC(valid []ipam.Attachment, absent bool, id int)
	// Exchanged is told that Node.Socket is another, and Installed that Node.Plugin is.
	Exchanged()
	Installed()
}

// Network is what carries packets to a machine's pods.
type Network interface {
	// Reach says which of some pods answer.
	Reach(pods []cri.Truth) []bool
	// Connect has pods of this node ask others, here or elsewhere, and says why one gets no answer; "" is that it does.
	Connect(pairs []Pair) []string
	Client
}

func nodeName(no int32) string { return fmt.Sprintf("node-%d", no) }

// Name is what scenarios call it.
func (n *Node) Name() string { return nodeName(n.No) }

// Clone is an independent copy for the machine of a fork.
func (n *Node) Clone(m Machine) Node {
	c := *n
	c.Machine = m
	c.CRI = n.CRI.Clone()
	c.flows = n.flows.clone()
	c.foreign = maps.Clone(n.foreign)
	c.history, c.Starters, c.claimed = n.history.Clone(), n.Starters.Clone(), slices.Clone(n.claimed)
	return c
}

// sandbox is a pod's newest one.
func (n *Node) sandbox(uid string) (cri.Truth, bool) {
	id, _ := n.CRI.SandboxOf(uid)
	for t := range n.CRI.Sandboxes() {
		if t.ID == id {
			return t, true
		}
	}
	return cri.Truth{}, false
}

// running are the sandboxes whose containers run and that have an address.
func (n *Node) running() (out []cri.Truth) {
	for t := range n.CRI.Sandboxes() {
		if t.Running && t.Address.IsValid() {
			out = append(out, t)
		}
	}
	return out
}
