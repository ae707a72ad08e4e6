package daemon

import (
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/kube"
)

// watchNode follows the Node object. A watch that ends is begun again; until then what was known holds.
func (d *daemon) watchNode() {
	if d.c.Pods == nil {
		return
	}
	d.watch(watchRetry, func() error {
		return d.c.Pods.Watch(d.ctx, func(f kube.NodeFacts) { d.post(func() { d.know(f) }) })
	}, func(err error) {
		d.log.Warn("the watch of the node has ended; it is begun again", "err", err)
	})
}

// know tells the Node what has changed.
func (d *daemon) know(f kube.NodeFacts) {
	if f == d.facts {
		return
	}
	d.log.Info("the node object has changed", "cordoned", f.Cordoned, "maxPods", f.MaxPods)
	d.facts = f
	s := d.c.Settings
	s.Cordoned, s.MaxPods = f.Cordoned, f.MaxPods
	d.step(ipam.Set{Settings: s})
}
