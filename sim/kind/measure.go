package kind

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
)

// Measure reads a metric, now.
func (w *World) Measure(s scn.Subject, metric string) (v int64, ok bool) {
	switch s.Kind {
	case scn.Node:
		return w.measureNode(w.members[s.Node], metric)
	case scn.AllNodes:
		var sum int64
		for _, m := range living(w.members) {
			v, ok := w.measureNode(m, metric)
			if !ok {
				return 0, false
			}
			sum += v
		}
		return sum, true
	case scn.Pod:
		return w.measurePod(s.Pod, metric)
	case scn.Kube:
		if strings.HasPrefix(metric, "pairs.") {
			return w.measurePairs(metric)
		}
		return w.measureKube(metric), true
	case scn.EC2:
		w.c.Cloud(func(_ time.Duration, m *ec2.Cloud) { v, ok = w.measureEC2(m, metric) })
		return v, ok
	}
	return 0, false
}

func (w *World) measureNode(m *member, metric string) (v int64, ok bool) {
	switch metric {
	case "pods.ready":
		return w.running(m)
	case "pods.reachable":
		return w.reachable(m)
	case "plugin.version":
		n, err := m.spoken()
		return int64(n), err == nil
	}
	w.c.Cloud(func(_ time.Duration, c *ec2.Cloud) { v, ok = actions.MeasureInstance(c, m.node.Instance, metric) })
	if ok {
		return v, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, ok := actions.MeasureDaemon(w.audit, int(m.no), metric); ok {
		return v, true
	}
	if m.life == nil {
		return 0, metric == "serving"
	}
	var view ipam.View
	m.life.Node().View(&view)
	return actions.MeasureView(&view, metric)
}

// running counts the pods of a node that kubelet sees run: those with a container that runs, whatever the API server knows of them.
func (w *World) running(m *member) (int64, bool) {
	list, err := m.runtime.sandboxes(w.ctx)
	if err != nil {
		return 0, false
	}
	pods := map[string]bool{}
	for i := range list {
		if s := &list[i]; s.Namespace == namespaceOfPods && s.Ready && s.Running {
			pods[s.UID] = true
		}
	}
	return int64(len(pods)), true
}

// reachable counts the pods of a node that run and answer.
func (w *World) reachable(m *member) (count int64, ok bool) {
	list, err := m.runtime.sandboxes(w.ctx)
	if err != nil {
		return 0, false
	}
	list = slices.DeleteFunc(list, func(s sandbox) bool {
		return s.Namespace != namespaceOfPods || !s.Ready || !s.Running || !s.Address.IsValid()
	})
	for i, answered := range w.ping(addresses(list), m.silent) {
		count += actions.Flag(answered && m.node.owns(&list[i]))
	}
	return count, true
}

func (w *World) measureKube(metric string) (n int64) {
	if metric == "pods.made" {
		return w.pods.made()
	}
	for _, p := range w.pods.all() {
		ready := p.running && !p.deleting
		if metric == "pods.total" || ready == (metric == "pods.ready") {
			n++
		}
	}
	return n
}

// measureEC2 leaves out what is the machines' that are no nodes of the scenario.
func (w *World) measureEC2(m *ec2.Cloud, metric string) (int64, bool) {
	v, ok := actions.MeasureEC2(m, w.ledger(m), metric)
	if metric == "enis.total" {
		for _, e := range w.endpoints {
			if e.member == nil {
				v -= int64(len(m.AttachedENIs(e.node.Instance)))
			}
		}
	}
	return v, ok
}

func (w *World) measurePod(name, metric string) (int64, bool) {
	p, ok := w.pods.find(name)
	if !ok {
		return 0, true // neither ready nor reachable
	}
	if metric == "ready" {
		return actions.Flag(p.ready), true
	}
	m := w.on(p.node)
	if m == nil {
		return 0, true
	}
	list, err := m.runtime.sandboxes(w.ctx)
	if err != nil {
		return 0, false
	}
	for _, s := range slices.Backward(list) {
		if s.UID == p.uid && s.Address.IsValid() {
			return actions.Flag(w.ping([]netip.Addr{s.Address}, nil)[0] && m.node.owns(&s)), true
		}
	}
	return 0, true
}
