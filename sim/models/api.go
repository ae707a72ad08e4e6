package models

import (
	"time"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
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

func (k api) PutENIConfig(name string, in int, groups []string) verb.Strike {
	now := k.h.World.Clock()
	object := actions.ENIConfig(k.h.EC2, now, &sim.ENIConfig{Name: name, Subnet: in, Groups: groups})
	return actions.ENIConfigPut(&object, k.h.Kube.PutENIConfig(now, object))
}

func (k api) DeleteENIConfig(name string) verb.Strike {
	return actions.ENIConfigDeleted(name, k.h.Kube.DeleteENIConfig(k.h.World.Clock(), name))
}

func (k api) Mark(node int, annotation bool, key string, value *string) verb.Strike {
	return actions.Mark(k.h.Kube, k.h.World.Clock(), node, annotation, key, value)
}

func (k api) Away(d time.Duration) verb.Strike {
	now := k.h.World.Clock()
	k.h.Kube.Part(now, now+d)
	return verb.Hit("no daemon reaches the API server for %v", d)
}

// ServerAway is what a daemon hears that does not reach the API server.
const ServerAway = "Get https://10.100.0.1:443/api/v1/nodes: dial tcp 10.100.0.1:443: connect: connection refused"
