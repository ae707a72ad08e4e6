package virtual

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
)

// Digest is what a settled world has come to, without the names that depend on when things happened: what I9 promises to be the
// same whether or not a daemon crashed on the way.
//
// Two things may depend on the moment of a crash for good, and are judged by what the warm targets promise (I11) instead:
//
//   - ENIs. The two seconds without a daemon make kubelet's retries arrive in other groups, so pods come to sit on other ENIs. An
//     ENI that carries a pod cannot be given back, however few would do; upstream has the same. I11 says that no idle one stays
//     that the targets do not ask for, I12 that all of them are in the node's books, I5 that none is leaked.
//   - With WARM_ENI_TARGET alone, free addresses and thereby their total: whole ENIs are taken and given back, and an ENI too many
//     is kept until a whole one above the target is free (upstream's hysteresis, which I11 knows). With prefixes likewise: one of
//     which a pod has an address stays, and pods come to sit on others.
//
// CrashReport.Shifted counts the forks that made use of it.
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

	byAddress bool // WARM_IP_TARGET or MINIMUM_IP_TARGET say how many addresses there are, one by one
}

// digest is taken once the world has settled.
func (w *World) digest() Digest {
	d := Digest{Nodes: make([]NodeDigest, len(w.nodes)-1)}
	for i, n := range w.nodes[1:] {
		if !n.Gone { // with all that it had
			n.digest(&d.Nodes[i])
		}
	}
	for _, l := range w.Kube.Workloads() {
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
	for _, p := range w.Kube.Pods(workload) {
		if p.Node <= 0 || p.Node >= len(w.nodes) || p.Phase != kube.Running || p.Deleting || !w.nodes[p.Node].reaches(p.UID) {
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

// digest fills in what a node has come to.
func (n *node) digest(o *NodeDigest) {
	o.DELs = len(n.intents)
	v, ok := n.View()
	if !ok {
		return
	}
	o.Available, o.Assigned, o.Quarantined, o.Intents = v.Free+v.Cooling, v.Assigned, v.Quarantined, v.Intents
	o.byAddress = (n.Settings.WarmIPTarget > 0 || n.Settings.MinimumIPTarget > 0) && !v.Prefixes.On
	o.Total = o.Available + o.Assigned + o.Quarantined - v.Taken
	for j := range v.ENIs {
		if v.ENIs[j].Stage == ipam.Ready {
			o.ENIs++
		}
	}
}

// reaches says whether a packet from the VPC gets to a pod and back.
func (n *node) reaches(uid string) bool {
	id, _ := n.CRI.SandboxOf(uid)
	for t := range n.CRI.Sandboxes() {
		if t.ID == id && t.Address.IsValid() {
			return n.fault(t.Address, t.Netns) == ""
		}
	}
	return false
}

// shifted says whether another digest has other ENIs, or as many addresses as other ENIs carry.
func (d *Digest) shifted(o Digest) bool {
	for i := range d.Nodes {
		if a, b := &d.Nodes[i], &o.Nodes[i]; a.ENIs != b.ENIs || a.Total != b.Total {
			return true
		}
	}
	return false
}

// diff says where another digest differs in what a crash must not change; "" is nowhere.
func (d *Digest) diff(o Digest) string {
	for i := range d.Nodes {
		if what := d.Nodes[i].diff(&o.Nodes[i]); what != "" {
			return fmt.Sprintf("node-%d %s as without a crash", i+1, what)
		}
	}
	return ""
}

// many is a noun's plural.
func many(noun string) string {
	if strings.HasSuffix(noun, "s") {
		return noun + "es"
	}
	return noun + "s"
}

// pods are names for people.
func pods(names []string) string {
	if len(names) == 0 {
		return "no pod"
	}
	return strings.Join(names, ", ")
}

func (d *NodeDigest) diff(o *NodeDigest) string {
	if !slices.Equal(d.Served, o.Served) {
		return fmt.Sprintf("serves %s: expected %s", pods(o.Served), pods(d.Served))
	}
	count := func(noun, what string, want, have int) string {
		switch {
		case want == have:
			return ""
		case have != 1:
			noun = many(noun)
		}
		return fmt.Sprintf("has settled with %d %s%s: expected %d", have, noun, what, want)
	}
	available := ""
	if d.byAddress {
		available = count("address", " free or cooling", d.Available, o.Available)
	}
	return cmp.Or(count("address", " assigned", d.Assigned, o.Assigned), count("address", " quarantined", d.Quarantined, o.Quarantined), available,
		count("open intent", "", d.Intents, o.Intents), count("DEL intent", " on disk", d.DELs, o.DELs))
}
