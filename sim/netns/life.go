package netns

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// life is one daemon, as its recording shows it.
type life struct {
	*judge.Life
	no    int
	ended bool // it has no more to tell
}

// recordedHeader begins a life.
func (d *nodeDaemon) recordedHeader(no int, line []byte) {
	n, w := d.n, d.n.w
	if no != d.lifeNo || n.Gone {
		return
	}
	l, err := w.witness.Open(n.No, line)
	if err != nil {
		w.fail(fmt.Errorf("%s: the recording cannot be replayed: %w", n.Name(), err))
		return
	}
	d.heard(&life{Life: l, no: no})
	w.log("%s: life %d begins", n.Name(), no)
}

// recorded is one step of a daemon.
func (d *nodeDaemon) recorded(no int, line []byte) {
	l := d.life
	if l == nil || l.no != no {
		return
	}
	d.n.Changed = true
	if err := l.Step(line); err != nil {
		d.n.disagree("replay: %v", err)
		d.n.w.fail(fmt.Errorf("%s: the daemon does not decide as the core does: %w", d.n.Name(), err))
	}
}

// eyes are the world's, for its witness.
type eyes struct{ w *World }

var _ judge.Eyes = eyes{}

func (e eyes) Now() time.Duration { return e.w.now() }

// Ran: the model's kernel runs it too.
func (e eyes) Ran(l *judge.Life, a *ipam.Apply, done *ipam.Applied) {
	e.w.nodes[l.Number()].mirrored(a, done)
}

func (e eyes) Held(node int32, a netip.Addr) int {
	n := e.w.nodes[node]
	if n.Gone {
		return 0
	}
	all, err := n.box.Addresses()
	if err != nil {
		e.w.fail(err)
		return 0
	}
	count := 0
	for _, h := range all {
		if h.Addr == a {
			count++
		}
	}
	return count
}
