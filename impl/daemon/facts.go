package daemon

import (
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/kube"
)

// facts are what the API server says of the node.
type facts = kube.NodeFacts

// watchNode follows the Node object. A watch that ends is begun again; until then what was known holds.
func (d *daemon) watchNode() {
	if d.c.Pods == nil {
		return
	}
	d.go_(func() {
		err := d.c.Pods.Watch(d.ctx, func(f kube.NodeFacts) { d.post(func() { d.know(f) }) })
		if d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("the watch of the node has ended; it is begun again", "err", err)
			d.after(d.clock.Now()+watchRetry, d.watchNode)
		})
	})
}

// know tells the Node what has changed.
func (d *daemon) know(f facts) {
	if f == d.facts {
		return
	}
	d.log.Info("the node object has changed", "cordoned", f.Cordoned, "maxPods", f.MaxPods)
	d.facts = f
	s := d.c.Settings
	s.Cordoned, s.MaxPods = f.Cordoned, f.MaxPods
	d.step(ipam.Set{Settings: s})
}
