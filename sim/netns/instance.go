package netns

import (
	"fmt"
	"iter"
	"time"

	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
)

// instance is one machine: its namespaces, its kubelet and runtime, and its daemon.
type instance struct {
	models.Node
	w   *World
	box *node.Node
	// stopKill cancels the kill of the machine that the end of the laboratory's context would trigger.
	stopKill  func() bool
	rebooting bool // once its daemon is dead
	asides    int  // things that are done beside the loop

	nodeDaemon
	versions // of a system that is not ours by its recording

	realKernel
	kubelet
	endpoints
	packets
}

// follow takes what the node's helper tells until it is gone.
func (n *instance) follow() {
	for e := range n.box.Events() {
		if !n.w.mail.Post(func() { n.ended(&e) }) {
			for range n.box.Events() { // they are dropped
			}
			return
		}
	}
}

// ended is a process that has ended.
func (n *instance) ended(e *node.Event) {
	if n.Gone {
		return
	}
	switch e.Kind {
	case node.PluginDone:
		n.pluginDone(e)
	case node.DaemonExited:
		if e.Life == n.lifeNo {
			n.exit(e)
		}
	}
}

// How long a machine that is no longer wanted may take: for what the loop is doing there now, and then to end.
const (
	hurry    = time.Second
	endsSoon = 2 * time.Second
)

// close ends the machine.
func (n *instance) close(hurried bool) error {
	if n.stopKill != nil {
		n.stopKill()
	}
	n.endpoints.close()
	n.leave()
	switch {
	case n.box == nil:
		return nil
	case hurried:
		return n.box.CloseWithin(endsSoon)
	}
	return n.box.Close()
}

func (n *instance) busy(now time.Duration) string {
	why := n.works(now)
	if why == "" && !n.doubt.since.IsZero() {
		return "its kernel is not what the model shows"
	}
	return why
}

// works is busy, whatever the kernel shows.
func (n *instance) works(now time.Duration) string {
	switch {
	case time.Now().Before(n.stirred):
		return "its kernel has just been changed"
	case n.phase != absent && n.phase != serving:
		return "its daemon starts or ends"
	case n.asides > 0:
		return "something is done to it"
	case n.life == nil:
		if n.running > 0 {
			return "a plugin runs"
		}
		return ""
	}
	return n.w.keeper.toil(n, now)
}

// tell writes a line of the story.
func (n *instance) tell(text string) { n.w.Lines.Add(n.w.Now(), n.No, text) }

// disagree notes a difference.
func (n *instance) disagree(format string, args ...any) {
	n.w.findings.disagree(n.w.Now(), n.Name(), fmt.Sprintf(format, args...))
}

// fleet are a world's nodes by their numbers, from 1.
type fleet []*instance

// living are those whose instance is not terminated.
func (f fleet) living() iter.Seq[*instance] {
	return func(yield func(*instance) bool) {
		for _, n := range f[1:] {
			if !n.Gone && !yield(n) {
				return
			}
		}
	}
}

// behind names a daemon that has not said yet that its clock shows the last jump; "" is none. Nothing may happen before: what a daemon
// began at the old time would have lasted for the whole jump at once.
func (f fleet) behind(offset time.Duration) string {
	for n := range f.living() {
		if n.Runs() && !n.life.ended && n.report != nil && n.report.Offset != offset {
			return n.Name()
		}
	}
	return ""
}

// busy names what still has something to do; "" is nothing.
func (f fleet) busy(now time.Duration) string {
	for n := range f.living() {
		if why := n.busy(now); why != "" {
			return n.Name() + ": " + why
		}
	}
	return ""
}

// look is when what is busy may have come to rest unreported: a change of a kernel that needed no reaction.
func (f fleet) look() time.Duration {
	d := lookEvery
	for _, n := range f[1:] {
		if left := time.Until(n.stirred); left > 0 {
			d = min(d, left)
		}
		if !n.doubt.since.IsZero() {
			d = min(d, doubtPause)
		}
	}
	return d
}

// next is the earliest instant that a daemon waits for.
func (f fleet) next() time.Duration {
	at := never
	for n := range f.living() {
		if n.life != nil && n.report != nil && n.report.Next >= 0 {
			at = min(at, n.report.Next)
		}
	}
	return at
}

// compareAgain looks once more at the kernels that are doubted.
func (f fleet) compareAgain(now time.Duration) {
	for n := range f.living() {
		if !n.doubt.since.IsZero() && time.Since(n.compared) >= doubtPause && n.works(now) == "" {
			n.compare()
		}
	}
}

func (f fleet) doubted() bool {
	for n := range f.living() {
		if !n.doubt.since.IsZero() {
			return true
		}
	}
	return false
}
