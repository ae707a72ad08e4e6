package virtual

import (
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// tap listens to one node's core.
type tap struct {
	world *World // a fork has another address: it is not recorded
	node  int32
	life  uint32
	begin func(*ipam.Node)
	step  func(at time.Duration, in ipam.Input, effs []ipam.Effect)
}

// Record listens to a node from now on: begin is called with its core, now and whenever another daemon's life begins, and step
// after every input of that core, with the world's time. Forks of the world are not listened to. It says whether there is such
// a node.
func (w *World) Record(node int, begin func(*ipam.Node), step func(at time.Duration, in ipam.Input, effs []ipam.Effect)) bool {
	if node < 1 || node >= len(w.nodes) {
		return false
	}
	n := w.nodes[node]
	w.tap = &tap{w, n.No, n.life, begin, step}
	if n.core != nil {
		begin(n.core)
	}
	return true
}

// stepCore steps the core, and lets the tap hear of it.
func (d *daemon) stepCore(in ipam.Input) []ipam.Effect {
	w := d.n.w
	t := w.tap
	if t == nil || t.world != w || t.node != d.n.No {
		return d.core.Step(w.now, in)
	}
	if t.life != d.life {
		t.life = d.life
		t.begin(d.core)
	}
	effs := d.core.Step(w.now, in)
	t.step(w.now, in, effs)
	return effs
}
