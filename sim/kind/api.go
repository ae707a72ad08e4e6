package kind

import (
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/verb"
)

// api is the API server, which is a real one here: what it accepts has struck.
type api struct{ *deed }

var _ verb.API = api{}

func (k api) PutENIConfig(name string, in int, groups []string) verb.Strike {
	s, err := k.w.configs.put(k.w.now(), &sim.ENIConfig{Name: name, Subnet: in, Groups: groups})
	k.check(err)
	return s
}

func (k api) DeleteENIConfig(name string) verb.Strike {
	s, err := k.w.configs.delete(name)
	k.check(err)
	return s
}

func (k api) Mark(node int, annotation bool, key string, value *string) verb.Strike {
	s, err := k.w.configs.mark(node, annotation, key, value)
	k.check(err)
	return s
}

// Away is not done to this API server: the world skips the verb.
func (api) Away(time.Duration) verb.Strike { return cannot() }

func (k api) Create(name string, count int, kind string, node int) verb.Strike {
	if k.w.work.kinds[name] != "" {
		return verb.Miss("workload %s exists", name)
	}
	k.check(k.w.work.create(name, count, kind, k.w.members.machines(node)))
	return verb.Hit("%s", verb.Some(count, "pod", "is wanted", "are wanted"))
}

func (k api) Scale(name string, count, step int) verb.Strike {
	had := k.w.work.want[name]
	switch {
	case k.w.work.kinds[name] == "":
		return verb.Miss("there is no workload %s", name)
	case had == count:
		return verb.Miss("workload %s has %s already", name, verb.Number(had, "replica"))
	}
	count = verb.Towards(had, count, step)
	k.check(k.w.work.scale(name, count))
	return verb.Hit("%s, after %d", verb.Some(count, "pod", "is wanted", "are wanted"), had)
}

func (k api) Roll(name string, count int) verb.Strike {
	n := min(len(k.w.work.wanted(name)), count)
	if n == 0 {
		return verb.Miss("workload %s has no pod that is not being deleted", name)
	}
	k.check(k.w.work.roll(name, count))
	return verb.Hit("%s", verb.Some(n, "pod", "is deleted", "are deleted"))
}

func (k api) Delete(name string, force bool) verb.Strike {
	p, ok := k.w.pods.find(name)
	if !ok {
		return actions.NoPod(name, false)
	}
	if p.deleting && !force {
		return verb.Miss("pod %s is being deleted already", p.name)
	}
	k.check(k.w.work.delete(p, force))
	return verb.Hit("the API server has done it")
}
