package netns

import (
	"net/netip"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
)

// Measure reads a metric, now.
func (w *World) Measure(s scn.Subject, metric string) (int64, bool) {
	switch s.Kind {
	case scn.Node:
		return w.measureNode(w.nodes[s.Node], metric)
	case scn.AllNodes:
		var sum int64
		for _, n := range w.nodes[1:] {
			if n.gone {
				continue
			}
			v, ok := w.measureNode(n, metric)
			if !ok {
				return 0, false
			}
			sum += v
		}
		return sum, true
	case scn.Pod:
		return w.measurePod(s.Pod, metric)
	case scn.Kube:
		return actions.MeasureKube(w.kube, metric)
	case scn.EC2:
		return actions.MeasureEC2(w.cloud, w.base, metric)
	}
	return 0, false
}

func (w *World) measureNode(n *instance, metric string) (int64, bool) {
	switch metric {
	case "pods.ready":
		return int64(n.cri.Ready()), true
	case "pods.reachable":
		return w.reachable(n), true
	}
	if v, ok := actions.MeasureCalls(w.cloud, n.inst, metric); ok {
		return v, true
	}
	if v, ok := actions.MeasureDaemon(w.audit, int(n.no), metric); ok {
		return v, true
	}
	if n.life == nil {
		return 0, metric == "serving"
	}
	n.life.Node().View(&w.view)
	return actions.MeasureView(&w.view, metric)
}

// reachable counts the pods that run and answer.
func (w *World) reachable(n *instance) (count int64) {
	var asked []netip.Addr
	for t := range n.cri.Sandboxes() {
		if t.Running && t.Address.IsValid() {
			asked = append(asked, t.Address)
		}
	}
	for _, answered := range w.reach(n, asked) {
		count += actions.Flag(answered)
	}
	return count
}

func (w *World) measurePod(name, metric string) (int64, bool) {
	p, ok := w.kube.Find(name)
	if !ok || p.Node <= 0 || p.Node >= len(w.nodes) || w.nodes[p.Node].gone {
		return 0, true // neither ready nor reachable
	}
	n := w.nodes[p.Node]
	if metric == "ready" {
		return actions.Flag(n.cri.PodReady(p.UID)), true
	}
	id, _ := n.cri.SandboxOf(p.UID)
	for t := range n.cri.Sandboxes() {
		if t.ID == id && t.Address.IsValid() {
			return actions.Flag(w.reach(n, []netip.Addr{t.Address})[0]), true
		}
	}
	return 0, true
}
