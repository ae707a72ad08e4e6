package models

import (
	"strings"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Measure reads a metric, now.
func (h *Host) Measure(s scn.Subject, metric string) (int64, bool) {
	switch s.Kind {
	case scn.Node:
		return h.MeasureNode(h.Nodes[s.Node], metric)
	case scn.AllNodes:
		var sum int64
		for _, n := range h.Nodes[1:] {
			if n.Gone {
				continue
			}
			v, ok := h.MeasureNode(n, metric)
			if !ok {
				return 0, false
			}
			sum += v
		}
		return sum, true
	case scn.Pod:
		return h.measurePod(s.Pod, metric)
	case scn.Kube:
		if strings.HasPrefix(metric, "pairs.") {
			return h.measurePairs(metric)
		}
		if strings.HasPrefix(metric, "flows.") {
			return h.measureFlows(metric)
		}
		return actions.MeasureKube(h.Kube, metric)
	case scn.EC2:
		return actions.MeasureEC2(h.EC2, h.Base, metric)
	}
	return 0, false
}

// MeasureNode reads a metric of one node.
func (h *Host) MeasureNode(n *Node, metric string) (int64, bool) {
	switch metric {
	case "pods.ready":
		return int64(n.CRI.Ready()), true
	case "pods.reachable":
		var count int64
		for _, answered := range n.Machine.Reach(n.running()) {
			count += actions.Flag(answered)
		}
		return count, true
	case "plugin.version":
		return int64(n.ran), true
	}
	if v, ok := actions.MeasureInstance(h.EC2, n.Instance, metric); ok {
		return v, true
	}
	if v, ok := actions.MeasureDaemon(h.Auditor, int(n.No), metric); ok {
		return v, true
	}
	if h.Auditor.Lacks(judge.Books) {
		return h.measureOutside(n, metric)
	}
	view, ok := n.Machine.View()
	if !ok {
		return 0, metric == "serving" && !n.Machine.Runs() // who runs and cannot be asked is not down
	}
	return actions.MeasureView(view, metric)
}

// measureOutside reads what EC2 tells of a node whose daemon's books are unknown: what it has been given. What is
// assigned stays its belief: after a loss of records a pod may live whose address it only sets aside.
func (h *Host) measureOutside(n *Node, metric string) (int64, bool) {
	var enis, total int64
	for _, e := range judge.AppendENIs(nil, h.Whose(n)) {
		if !e.NotOurs {
			enis++
			total += int64(len(e.Secondaries))
		}
	}
	switch metric {
	case "enis":
		return enis, true
	case "addresses.total":
		return total, true
	}
	return 0, false
}

func (h *Host) measurePod(name, metric string) (int64, bool) {
	p, ok := h.Kube.Find(name)
	n := h.at(p.Node)
	if !ok || n == nil || n.Gone {
		return 0, true // neither ready nor reachable
	}
	if metric == "ready" {
		return actions.Flag(n.CRI.PodReady(p.UID)), true
	}
	if s, ok := n.sandbox(p.UID); ok && s.Address.IsValid() {
		return actions.Flag(n.Machine.Reach([]cri.Truth{s})[0]), true
	}
	return 0, true
}
