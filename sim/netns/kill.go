package netns

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/netns/node"
)

// hunt SIGKILLs plugins.
type hunt struct {
	percent int           // of the runs
	within  time.Duration // of their start
	shot    map[cri.OpID]bool
	killed  int
}

// RestartAfter makes kubelet wait that long, instead of two seconds, before it starts a dead daemon again.
func (w *World) RestartAfter(pause time.Duration) {
	for _, n := range w.nodes[1:] {
		n.pause = pause
	}
}

// Kill SIGKILLs a node's daemon, now. It is false, and nothing happens, while the node has no process of a daemon: from the end of one to
// the start of the next.
func (w *World) Kill(no int) bool {
	n := w.nodes[no]
	if n.Gone || n.dying || !n.process {
		return false
	}
	w.kill(n)
	w.pump()
	return true
}

// Works says whether a node's daemon has a process and something to do.
func (w *World) Works(no int) bool {
	n := w.nodes[no]
	return !n.Gone && !n.dying && n.process && (n.life == nil || w.keeper.toil(n, w.now()) != "")
}

// KillPlugins SIGKILLs from now on that many of a hundred runs of the plugin on a node, each at a random instant within a while of its
// start. No deadline is over: to the runtime these runs just fail. Those that have ended by then are left alone.
func (w *World) KillPlugins(no, percent int, within time.Duration) {
	h := &w.nodes[no].hunt
	h.percent, h.within, h.shot = percent, within, map[cri.OpID]bool{}
}

// stalk waits for a plugin's hour, if it has one.
func (w *World) stalk(n *instance, op cri.OpID) {
	h := &n.hunt
	if h.percent == 0 || int(w.Random()%100) >= h.percent {
		return
	}
	w.after(time.Duration(w.Random()%uint64(h.within)), func() {
		if _, runs := n.verbs[op]; runs && !n.Gone {
			h.shot[op] = true
			w.fail(n.box.KillPlugin(uint64(op)))
		}
	})
}

// caught says whether a plugin's end was ours, and counts those that were killed in time.
func (n *instance) caught(e *node.Event) bool {
	op := cri.OpID(e.Op)
	if !n.hunt.shot[op] {
		return false
	}
	delete(n.hunt.shot, op)
	if strings.HasPrefix(e.Exit, "signal: killed") {
		n.hunt.killed++
	}
	return e.Code != 0
}

// PluginsKilled counts the plugins on a node that KillPlugins killed while they ran.
func (w *World) PluginsKilled(no int) int { return w.nodes[no].hunt.killed }

// Runtime are the figures of a node's kubelet and runtime: among them how many ADDs and DELs there were.
func (w *World) Runtime(no int) cri.Counts { return w.nodes[no].CRI.Counts() }

// Forgotten are the container IDs of sandboxes that a node's runtime has forgotten although no DEL had succeeded:
// libcni is not called for them again, so its cache keeps them.
func (w *World) Forgotten(no int) []string { return w.nodes[no].lost }

// Lives is how many daemons a node has had.
func (w *World) Lives(no int) int { return w.nodes[no].lifeNo }

// Unready names what is under way anywhere; "" is nothing: every pod runs, nothing waits, cools down or has to be repeated.
func (w *World) Unready() string {
	if why := w.Host.Unready(); why != "" {
		return why
	}
	for n := range w.nodes.living() {
		for t := range n.CRI.Sandboxes() {
			if !t.Running {
				return fmt.Sprintf("%s: the sandbox of %s is to be removed", n.Name(), t.Name)
			}
		}
		if left := w.intents(n); left > 0 {
			return fmt.Sprintf("%s: %d DELs wait on its disk", n.Name(), left)
		}
	}
	return ""
}

// Inventory is all that there is on a node now.
func (w *World) Inventory(no int) (node.Inventory, error) { return w.nodes[no].box.Leaks() }

// Box is a node's machine, to look into and to act on beside the models.
func (w *World) Box(no int) *node.Node { return w.nodes[no].box }
