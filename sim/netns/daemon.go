package netns

import (
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/netns/node"
)

// startDaemon begins a life: a sandbox for its pod, and then what its keeper does.
func (w *World) startDaemon(n *instance) {
	if n.Down {
		w.KeptDown(&n.Node)
	}
	if n.Gone || n.Down || n.life != nil || n.starting || n.dying {
		return
	}
	_, n.self = w.NewDaemon(&n.Node)
	n.Starts++
	n.starting = true
	w.keeper.begin(n)
}

// kill is SIGKILL.
func (w *World) kill(n *instance) {
	if n.life == nil && !n.starting || n.dying {
		return
	}
	n.dying = true
	if n.life != nil && !n.rebooting { // a reboot removes the records: it does not matter how far they were written
		w.witness.Torn(n.life.Life)
	}
	w.tell(n, n.daemon()+" is killed")
	n.expected = 0
	if n.unmanned() {
		n.exited, n.read = true, true
		w.died(n)
		return
	}
	if err := n.box.SignalDaemon(syscall.SIGKILL); err != nil && n.life != nil && !n.exited { // while it starts there may be no process yet: spawn sees that it dies
		w.fail(err)
	}
}

// term is SIGTERM: the daemon answers what waits, and ends.
func (w *World) term(n *instance) {
	if n.life == nil || n.dying {
		return
	}
	n.dying, n.expected = true, 0
	w.tell(n, n.daemon()+" is told to end")
	w.fail(w.keeper.stop(n))
}

func (w *World) daemonExited(n *instance, e *node.Event) {
	w.log("%s: %s ended: %s", n.Name(), n.daemon(), e.Exit)
	n.exited, n.process = true, false
	if !n.dying { // died says who wanted that, once its recording has been read
		n.dying, n.unasked = true, e
	}
	w.keeper.ended(n)
}

// explainEnd says of a daemon that this laboratory did not end whether a user did (enilab netns exec node-1 -- pkill
// ipamd), which is chaos like any other, or whether it ended by itself, which no daemon may.
func (w *World) explainEnd(n *instance, e *node.Event) {
	byHand := strings.HasPrefix(e.Exit, "signal: ") || e.Code == 0 && n.witness() != nil && n.life.Stopped()
	if n.system != nil { // it has no recording, and a program that is wrong may end by a signal of its own
		byHand = e.Exit == "signal: killed" || e.Exit == "signal: terminated"
	}
	if n.life != nil {
		w.witness.Torn(n.life.Life)
	}
	if byHand {
		w.byHand = true
		w.tell(n, "somebody ended "+n.daemon()+": "+e.Exit)
		return
	}
	said := n.lastSaid()
	n.failures++
	if w.Epoch() == 0 && n.system != nil { // it has its bound to serve, and is started again until then
		w.log("%s: %s ended by itself: %s; it said %q", n.Name(), n.daemon(), e.Exit, said)
		return
	}
	if w.Epoch() == 0 {
		w.fail(fmt.Errorf("%s: ipamd ended by itself: %s; %s", n.Name(), e.Exit, n.lastWords()))
		return
	}
	text := fmt.Sprintf("%s ended by itself: %s; it said %q", n.daemon(), e.Exit, said)
	w.tell(n, text)
	if len(w.crashes) < maxCrashes {
		w.crashes = append(w.crashes, sim.Failure{At: w.Now(), Text: n.Name() + "'s " + text})
	}
}

// maxCrashes bounds what is told of a daemon that ends again and again: the first ones say it all.
const maxCrashes = 10

// Crashes are the daemons that ended by themselves since t=0.
func (w *World) Crashes() []sim.Failure { return w.crashes }

// firstOf is the line of a process's last words that says why it ended: a panic's message, or else the last line.
func firstOf(words string) string {
	lines := strings.Split(strings.TrimSpace(words), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}
	return lines[len(lines)-1]
}

// lastBytes are enough for a panic and its stack.
const lastBytes = 16 << 10

// lastSaid is what the daemon's last words come to.
func (n *instance) lastSaid() string { return n.tokenless.and(firstOf(n.lastWords())) }

// lastWords is the end of what the daemon printed.
func (n *instance) lastWords() string {
	out, err := n.box.ReadFile(node.Output)
	if err != nil {
		return err.Error()
	}
	if older, err := n.box.ReadFile(node.OlderOutput); err == nil && len(out) < lastBytes {
		out = append(older, out...)
	}
	if n.system != nil && n.system.Daemon != nil && n.system.Daemon.Log != "" {
		if log, err := n.box.ReadFile(n.system.Daemon.Log); err == nil {
			out = append(out, log...)
		}
	}
	return string(out[max(0, len(out)-lastBytes):])
}

// died: the process is gone and its recording has been read, so nothing more is heard of it.
func (w *World) died(n *instance) {
	if !n.exited || !n.read || n.Gone {
		return
	}
	for _, id := range n.enders {
		w.Met(id, "the daemon dies")
	}
	n.enders = nil
	if n.unasked != nil {
		w.explainEnd(n, n.unasked)
		n.unasked = nil
	}
	if n.life != nil {
		w.witness.Died(n.No)
		if !w.parts.WithoutBooks {
			n.mirror.crashed(n.life)
			n.explain()
		}
	}
	n.was = nil
	n.life, n.starting, n.dying, n.exited, n.read, n.reported, n.held = nil, false, false, false, false, false, 0
	n.Changed = true
	if n.seat != nil {
		_ = n.seat.Close()
		n.seat = nil
	}
	if n.rebooting {
		n.rebooted()
		return
	}
	if !n.Down {
		w.after(w.keeper.pause(n), func() { w.startDaemon(n) })
	}
}
