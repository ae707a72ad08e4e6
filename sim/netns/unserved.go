package netns

import (
	"time"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/netns/node"
)

// unserved is a daemon that has not served within its bound (I16). Before t=0 nothing more is waited for.
func (n *instance) unserved(within time.Duration, said string) {
	w := n.w
	n.tell(n.program() + " does not serve: " + said)
	w.Auditor.Unserved(w.now(), int(n.No), within, said)
	w.doomed = w.doomed || !w.begun
}

// neverBegan is why there is no t=0: what broke before.
type neverBegan struct{ broken []judge.Violation }

func (e *neverBegan) Error() string { return e.broken[0].Text }

// Violations are those before t=0.
func (e *neverBegan) Violations() []judge.Violation { return e.broken }

// debut is what came of a node's ADDs before its first pod started.
type debut struct {
	made   bool // a pod has started
	failed int
	since  time.Duration // the first failure, in the world's time
	said   string        // the plugin's last answer
}

// A system of which no ADD has succeeded for debutBound since the first one failed starts no pod: what it waits for, such as an interface that EC2
// attaches, takes a quarter of that. A bound of its own, for the warm-up's is made for clusters that are large.
const (
	debutBound  = 2 * time.Minute
	debutFailed = 3
)

func (d *debut) added(now time.Duration, e *node.Event) {
	switch {
	case e.Code == 0:
		d.made = true
	case !d.made:
		if d.failed++; d.failed == 1 {
			d.since = now
		}
		d.said = e.Text
	}
}

// hopeless says whether no pod starts.
func (d *debut) hopeless(now time.Duration) bool {
	return !d.made && d.failed >= debutFailed && now-d.since >= slowed(debutBound)
}

// judgeDebuts ends a warm-up in which a daemon of another system answers, and starts no pod (I16).
func (w *World) judgeDebuts() {
	for n := range w.nodes.living() {
		if n.system == nil || w.doomed || !n.debut.hopeless(w.now()) {
			continue
		}
		words := ""
		if !n.unmanned() {
			words = n.lastSaid()
		}
		n.tell(n.program() + " starts no pod: " + n.debut.said)
		w.Auditor.Podless(w.now(), int(n.No), w.now()-n.debut.since, n.debut.failed, n.debut.said, words)
		w.doomed = true
	}
}
