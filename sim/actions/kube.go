package actions

import (
	"time"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// API is what verbs of the API server work on: the model, and the nodes that pods may be placed on.
type API struct {
	Model *kube.Cluster
	Now   time.Duration
	Nodes []int
	// HoldFlows opens flows to all pods. Only worlds that host the models have it: others skip the verb.
	HoldFlows func() sim.Strike
}

// apiVerbs are the verbs of the API server, the same wherever it is the model.
var apiVerbs = map[verb]func(*API, *sim.Act) sim.Strike{
	{scn.Kube, "create"}: func(k *API, a *sim.Act) sim.Strike {
		s := kube.Spec{Name: a.Text("name"), Replicas: a.Int("count"), Nodes: k.Nodes}
		if only := a.Int("node"); only > 0 {
			s.Nodes = []int{only}
		}
		if a.Text("kind") == "statefulset" {
			s.Kind = kube.StatefulSet
		}
		if err := k.Model.CreateWorkload(k.Now, s); err != nil {
			return sim.Miss("%v", err)
		}
		return sim.Hit("%s", Some(s.Replicas, "pod", "is wanted", "are wanted"))
	},
	{scn.Kube, "scale"}: func(k *API, a *sim.Act) sim.Strike {
		name, want := a.Text("name"), a.Int("count")
		had, ok := k.Model.Replicas(name)
		switch {
		case !ok:
			return sim.Miss("there is no workload %s", name)
		case had == want:
			return sim.Miss("workload %s has %s already", name, Count(had, "replica"))
		}
		k.Model.Scale(k.Now, name, want)
		return sim.Hit("%s, after %d", Some(want, "pod", "is wanted", "are wanted"), had)
	},
	{scn.Kube, "roll"}: func(k *API, a *sim.Act) sim.Strike {
		n := k.Model.Roll(k.Now, a.Text("name"), a.Int("count"))
		if n == 0 {
			return sim.Miss("workload %s has no pod that is not being deleted", a.Text("name"))
		}
		return sim.Hit("%s", Some(n, "pod", "is deleted", "are deleted"))
	},
	{scn.Kube, "hold-flows"}: func(k *API, _ *sim.Act) sim.Strike { return k.HoldFlows() },
	{scn.Pod, "delete"}: func(k *API, a *sim.Act) sim.Strike {
		if !k.Model.DeletePod(k.Now, a.Subject.Pod, 0) {
			return sim.Miss("there is no pod %s that is not being deleted", a.Subject.Pod)
		}
		return sim.Hit("the pod is being deleted")
	},
	{scn.Pod, "force-delete"}: func(k *API, a *sim.Act) sim.Strike {
		if !k.Model.ForceDelete(k.Now, a.Subject.Pod) {
			return sim.Miss("there is no pod %s", a.Subject.Pod)
		}
		return sim.Hit("the pod's object is gone")
	},
}

// Do carries out a verb of the API server. false: it is none.
func (k *API) Do(a *sim.Act) (sim.Strike, bool) {
	do := apiVerbs[verb{a.Subject.Kind, a.Verb}]
	if do == nil {
		return sim.Miss("no world knows the verb"), false
	}
	return do(k, a), true
}

// mostPods bounds how many pods Pending names.
const mostPods = 3

// Pending are the pods that do not run, or are being deleted: the API server's side of what is under way. Nobody acts on those of a node
// that is gone.
func Pending(c *kube.Cluster, gone func(node int) bool) (out []string) {
	n := 0
	for _, l := range c.Workloads() {
		for _, p := range c.Pods(l) {
			if p.Phase == kube.Running && !p.Deleting || gone(p.Node) {
				continue
			}
			if n++; n <= mostPods {
				what := " has not started"
				if p.Deleting {
					what = " is being deleted"
				}
				out = append(out, "pod "+p.Name+what)
			}
		}
	}
	if n > mostPods {
		out = append(out, "and "+Count(n-mostPods, "pod")+" more")
	}
	return out
}
