package kind

import (
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/vpc"
)

// Measure reads a metric, now.
func (w *World) Measure(s scn.Subject, metric string) (v int64, ok bool) {
	switch s.Kind {
	case scn.Node:
		return w.members[s.Node].measure(metric)
	case scn.AllNodes:
		var sum int64
		for _, m := range w.members.living() {
			v, ok := m.measure(metric)
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
		if strings.HasPrefix(metric, "flows.") {
			return w.measureFlows(metric)
		}
		return w.measureKube(metric), true
	case scn.EC2:
		w.c.Cloud(func(_ time.Duration, m *ec2.Cloud) { v, ok = w.ledger.measure(m, metric) })
		return v, ok
	}
	return 0, false
}

func (m *member) measure(metric string) (v int64, ok bool) {
	w := m.w
	switch metric {
	case "pods.ready":
		return m.running()
	case "pods.reachable":
		return m.reachable()
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
func (m *member) running() (int64, bool) {
	list, err := m.runtime.sandboxes(m.w.ctx)
	if err != nil {
		return 0, false
	}
	pods := map[string]bool{}
	for i := range list {
		if s := &list[i]; s.runs() {
			pods[s.UID] = true
		}
	}
	return int64(len(pods)), true
}

// reachable counts the pods of a node that run and answer.
func (m *member) reachable() (count int64, ok bool) {
	list, err := m.runtime.sandboxes(m.w.ctx)
	if err != nil {
		return 0, false
	}
	list = slices.DeleteFunc(list, func(s sandbox) bool { return !s.runs() || !s.Address.IsValid() })
	for i, answered := range ping(m.w.c.Network(), addressesOf(list), m.silent) {
		count += actions.Flag(answered && owns(m.node, &list[i]))
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

func (w *World) measurePod(name, metric string) (int64, bool) {
	p, ok := w.pods.find(name)
	if !ok {
		return 0, true // neither ready nor reachable
	}
	if metric == "ready" {
		return actions.Flag(p.ready), true
	}
	m := w.members.on(p.node)
	if m == nil {
		return 0, true
	}
	list, err := m.runtime.sandboxes(w.ctx)
	if err != nil {
		return 0, false
	}
	for _, s := range slices.Backward(list) {
		if s.UID == p.uid && s.Address.IsValid() {
			return actions.Flag(ping(w.c.Network(), []netip.Addr{s.Address}, nil)[0] && owns(m.node, &s)), true
		}
	}
	return 0, true
}

// measurePairs counts the pairs of pods that are tried, or those whose pings stay without an answer.
func (w *World) measurePairs(metric string) (int64, bool) {
	var places []models.Place
	for _, m := range w.members.living() {
		list, err := m.runtime.sandboxes(w.ctx)
		if err != nil {
			return 0, false
		}
		for i := range list {
			s := &list[i]
			if !s.runs() || !s.Address.IsValid() {
				continue
			}
			p := models.Place{Node: m.no, Address: s.Address}
			p.Pod.Name, p.Pod.ID = s.Pod, m.node.Root()+s.Netns // where its namespace is
			w.c.Cloud(func(_ time.Duration, c *ec2.Cloud) {
				eni, _ := c.HasAddress(m.node.Instance, s.Address)
				p.ENI = string(eni)
			})
			places = append(places, p)
		}
	}
	pairs := models.Pairs(places)
	if metric == "pairs.tried" {
		return int64(len(pairs)), true
	}
	var apart int64
	for i := range pairs {
		if !answers(w.c.Network(), &pairs[i]) {
			apart++
		}
	}
	return apart, true
}

// answers says whether a pod answers another one's ping.
func answers(n *vpc.Network, p *models.Pair) bool {
	ns, err := os.Open(p.From.Pod.ID)
	if err != nil {
		return false
	}
	defer ns.Close()
	answered, err := n.PingFrom(ns, []netip.Addr{p.To.Address}, doubtPatience)
	return err == nil && answered[0]
}
