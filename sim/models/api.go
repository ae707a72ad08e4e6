package models

import (
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim/verb"
)

// api is the API server.
type api struct{ h *Host }

var _ verb.API = api{}

func (k api) Create(name string, count int, kind string, node int) verb.Strike {
	s := kube.Spec{Name: name, Replicas: count, Nodes: k.h.living()}
	if node > 0 {
		s.Nodes = []int{node}
	}
	if kind == "statefulset" {
		s.Kind = kube.StatefulSet
	}
	if err := k.h.Kube.CreateWorkload(k.h.World.Clock(), s); err != nil {
		return verb.Miss("%v", err)
	}
	return verb.Hit("%s", verb.Some(count, "pod", "is wanted", "are wanted"))
}

func (k api) Scale(name string, count, step int) verb.Strike {
	had, ok := k.h.Kube.Replicas(name)
	switch {
	case !ok:
		return verb.Miss("there is no workload %s", name)
	case had == count:
		return verb.Miss("workload %s has %s already", name, verb.Number(had, "replica"))
	}
	count = verb.Towards(had, count, step)
	k.h.Kube.Scale(k.h.World.Clock(), name, count)
	return verb.Hit("%s, after %d", verb.Some(count, "pod", "is wanted", "are wanted"), had)
}

func (k api) Roll(name string, count int) verb.Strike {
	n := k.h.Kube.Roll(k.h.World.Clock(), name, count)
	if n == 0 {
		return verb.Miss("workload %s has no pod that is not being deleted", name)
	}
	return verb.Hit("%s", verb.Some(n, "pod", "is deleted", "are deleted"))
}

func (k api) Delete(pod string, force bool) verb.Strike {
	if force {
		if !k.h.Kube.ForceDelete(k.h.World.Clock(), pod) {
			return verb.Miss("there is no pod %s", pod)
		}
		return verb.Hit("the pod's object is gone")
	}
	if !k.h.Kube.DeletePod(k.h.World.Clock(), pod, 0) {
		return verb.Miss("there is no pod %s that is not being deleted", pod)
	}
	return verb.Hit("the pod is being deleted")
}

func (k api) PutENIConfig(name, subnet string, groups []string) verb.Strike {
	if !k.h.Kube.PutENIConfig(k.h.World.Clock(), kube.ENIConfig{Name: name, Subnet: subnet, Groups: groups}) {
		return verb.Miss("ENIConfig %s is so already", name)
	}
	if len(groups) == 0 {
		return verb.Hit("ENIConfig %s names %s", name, subnet)
	}
	return verb.Hit("ENIConfig %s names %s and %s", name, subnet, strings.Join(groups, ", "))
}

func (k api) DeleteENIConfig(name string) verb.Strike {
	if !k.h.Kube.DeleteENIConfig(k.h.World.Clock(), name) {
		return verb.Miss("there is no ENIConfig %s", name)
	}
	return verb.Hit("ENIConfig %s is gone", name)
}

func (k api) Mark(node int, annotation bool, key string, value *string) verb.Strike {
	set, what := k.h.Kube.Label, "label"
	if annotation {
		set, what = k.h.Kube.Annotate, "annotation"
	}
	switch changed := set(k.h.World.Clock(), node, key, value); {
	case !changed:
		return verb.Miss("node-%d's %s %s is so already", node, what, key)
	case value == nil:
		return verb.Hit("the %s %s is gone", what, key)
	}
	return verb.Hit("the %s %s is %s", what, key, *value)
}

func (k api) Away(d time.Duration) verb.Strike {
	now := k.h.World.Clock()
	k.h.Kube.Part(now, now+d)
	return verb.Hit("no daemon reaches the API server for %v", d)
}

// ServerAway is what a daemon hears that does not reach the API server.
const ServerAway = "Get https://10.100.0.1:443/api/v1/nodes: dial tcp 10.100.0.1:443: connect: connection refused"
