package virtual

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
)

// Digest is what a settled world has come to, without the names that depend on when things happened: what I9 promises to be the
// same whether or not a daemon crashed on the way.
type Digest struct{ Nodes []NodeDigest }

// NodeDigest is one node's part.
type NodeDigest struct {
	Served      []string // pods that run and that a packet reaches, sorted: a StatefulSet's by name, a Deployment's as "web (17)", for its replacements have generated names
	ENIs        int      // in service
	Available   int      // addresses that are free or will be when they have cooled
	Assigned    int
	Quarantined int
	Total       int
	Intents     int // open ones
	DELs        int // left on disk by plugins that found no daemon
}

// digest is taken once the world has settled.
func (w *World) digest() Digest {
	d := Digest{Nodes: make([]NodeDigest, len(w.nodes)-1)}
	for i, n := range w.nodes[1:] {
		if n.gone { // with all that it had
			continue
		}
		o := &d.Nodes[i]
		o.DELs = len(n.intents)
		if n.core == nil {
			continue
		}
		n.core.View(&w.view)
		v := &w.view
		o.Available, o.Assigned, o.Quarantined, o.Intents = v.Free+v.Cooling, v.Assigned, v.Quarantined, v.Intents
		o.Total = o.Available + o.Assigned + o.Quarantined
		for j := range v.ENIs {
			if v.ENIs[j].Stage == ipam.Ready {
				o.ENIs++
			}
		}
	}
	for _, l := range w.kube.Workloads() {
		w.served(&d, l)
	}
	for i := range d.Nodes {
		slices.Sort(d.Nodes[i].Served)
	}
	return d
}

// served adds the pods of a workload that are served.
func (w *World) served(d *Digest, workload string) {
	count := make([]int, len(d.Nodes))
	for _, p := range w.kube.Pods(workload) {
		if p.Node <= 0 || p.Node >= len(w.nodes) || p.Phase != kube.Running || p.Deleting || !w.reachable(&p) {
			continue
		}
		if p.Name == workload+"-"+strconv.Itoa(p.Ordinal) {
			o := &d.Nodes[p.Node-1]
			o.Served = append(o.Served, p.Name)
		} else {
			count[p.Node-1]++
		}
	}
	for i, c := range count {
		if c > 0 {
			d.Nodes[i].Served = append(d.Nodes[i].Served, workload+" ("+strconv.Itoa(c)+")")
		}
	}
}

// reachable says whether a packet from the VPC gets to a pod and back.
func (w *World) reachable(p *kube.Pod) bool {
	n := w.nodes[p.Node]
	id, _ := n.cri.SandboxOf(p.UID)
	for t := range n.cri.Sandboxes() {
		if t.ID == id && t.Address.IsValid() {
			why, _ := w.fault(n, t.Address, t.Netns)
			return why == ""
		}
	}
	return false
}

// diff says where another digest differs; "" is nowhere.
func (d *Digest) diff(o Digest) string {
	for i := range d.Nodes {
		a, b := &d.Nodes[i], &o.Nodes[i]
		if !slices.Equal(a.Served, b.Served) {
			return fmt.Sprintf("node-%d serves %v: expected %v as without a crash", i+1, b.Served, a.Served)
		}
		for _, f := range []struct {
			name       string
			want, have int
		}{{"ENIs", a.ENIs, b.ENIs}, {"addresses assigned", a.Assigned, b.Assigned}, {"addresses quarantined", a.Quarantined, b.Quarantined},
			{"addresses free or cooling", a.Available, b.Available}, {"addresses in all", a.Total, b.Total},
			{"open intents", 0, b.Intents}, {"DEL intents on disk", 0, b.DELs}} {
			if f.want != f.have {
				return fmt.Sprintf("node-%d has settled with %d %s: expected %d as without a crash", i+1, f.have, f.name, f.want)
			}
		}
	}
	return ""
}
