package netns

import (
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/netns/node"
)

// Handle is one node for who acts on it beside the scenario and the models, as a soak does.
type Handle struct{ n *instance }

// Handle is that of a node, from 1.
func (w *World) Handle(no int) Handle { return Handle{w.nodes[no]} }

// RestartAfter makes kubelet wait that long, instead of two seconds, before it starts a dead daemon again.
func (h Handle) RestartAfter(pause time.Duration) { h.n.pause = pause }

// Kill SIGKILLs the daemon, now. It is false, and nothing happens, while there is no process of a daemon: from the end
// of one to the start of the next.
func (h Handle) Kill() bool {
	n := h.n
	if !n.Lives() || !n.process() {
		return false
	}
	n.kill()
	n.w.pump()
	return true
}

// Works says whether the daemon has a process and something to do.
func (h Handle) Works() bool {
	n := h.n
	return n.Lives() && n.process() && (n.life == nil || n.w.keeper.toil(n, n.w.now()) != "")
}

// KillPlugins SIGKILLs from now on that many of a hundred runs of the plugin, each at a random instant within a while
// of its start. No deadline is over: to the runtime these runs just fail. Those that have ended by then are left alone.
func (h Handle) KillPlugins(percent int, within time.Duration) {
	hunt := &h.n.hunt
	hunt.percent, hunt.within, hunt.shot = percent, within, map[cri.OpID]bool{}
}

// PluginsKilled counts the plugins that KillPlugins killed while they ran.
func (h Handle) PluginsKilled() int { return h.n.hunt.killed }

// Runtime are the figures of kubelet and the runtime: among them how many ADDs and DELs there were.
func (h Handle) Runtime() cri.Counts { return h.n.CRI.Counts() }

// Forgotten are the container IDs of sandboxes that the runtime has forgotten although no DEL had succeeded:
// libcni is not called for them again, so its cache keeps them.
func (h Handle) Forgotten() []string { return h.n.forgotten }

// Lives is how many daemons the node has had.
func (h Handle) Lives() int { return h.n.lifeNo }

// Inventory is all that there is on the node now.
func (h Handle) Inventory() (node.Inventory, error) { return h.n.box.Leaks() }

// Box is the machine, to look into and to act on beside the models.
func (h Handle) Box() *node.Node { return h.n.box }
