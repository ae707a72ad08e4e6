package kind

import (
	"context"
	"encoding/json"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/deploy"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/verb"
)

// eniConfigs are the ENIConfigs of the cluster, and what nodes say of theirs. The API server has them; the book has what the scenario did to
// them and when, for the judge.
type eniConfigs struct {
	w    *World
	book *kube.Cluster // guarded by World.mu
}

// begin defines the resource, and makes the scenario's.
func (c *eniConfigs) begin() error {
	if err := c.w.c.Apply(c.w.ctx, deploy.ENIConfigs); err != nil {
		return err
	}
	for i := range c.w.scenario.ENIConfigs {
		if _, err := c.put(0, &c.w.scenario.ENIConfigs[i]); err != nil { // no daemon has seen another one
			return err
		}
	}
	return nil
}

// eniConfigPath is an ENIConfig's at the API server.
func eniConfigPath(name string) string {
	return "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/" + name
}

// put makes or changes an ENIConfig. since says from when on daemons may know; 0 is always.
func (c *eniConfigs) put(since time.Duration, e *sim.ENIConfig) (verb.Strike, error) {
	var object kube.ENIConfig
	c.w.c.Cloud(func(now time.Duration, m *ec2.Cloud) { object = actions.ENIConfig(m, now, e) })
	c.w.mu.Lock()
	changed := c.book.PutENIConfig(since, object)
	c.w.mu.Unlock()
	if !changed {
		return actions.ENIConfigPut(&object, false), nil
	}
	spec := map[string]any{"subnet": object.Subnet}
	if len(object.Groups) > 0 {
		spec["securityGroups"] = object.Groups
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig",
		"metadata": map[string]any{"name": object.Name}, "spec": spec})
	if err != nil {
		return verb.Strike{}, err
	}
	// Of a resource that was defined just now the API server knows nothing yet, which persist waits out.
	return actions.ENIConfigPut(&object, true), c.w.persist("the API server", func(ctx context.Context) error {
		return c.w.c.Client().Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(eniConfigPath(object.Name)).
			Param("fieldManager", "enilab").Param("force", "true").Body(text).Do(ctx).Error()
	})
}

func (c *eniConfigs) delete(name string) (verb.Strike, error) {
	c.w.mu.Lock()
	was := c.book.DeleteENIConfig(c.w.now(), name)
	c.w.mu.Unlock()
	if !was {
		return actions.ENIConfigDeleted(name, false), nil
	}
	return actions.ENIConfigDeleted(name, true), c.w.persist("the API server", func(ctx context.Context) error {
		err := c.w.c.Client().Discovery().RESTClient().Delete().AbsPath(eniConfigPath(name)).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// mark sets a label or an annotation of a node, or takes it away when the value is nil.
func (c *eniConfigs) mark(node int, annotation bool, key string, value *string) (verb.Strike, error) {
	c.w.mu.Lock()
	s := actions.Mark(c.book, c.w.now(), node, annotation, key, value)
	c.w.mu.Unlock()
	kind := "labels"
	if annotation {
		kind = "annotations"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{kind: map[string]any{key: value}}})
	if err != nil || s.Fate != verb.Struck {
		return s, err
	}
	return s, c.w.persist("the API server", func(ctx context.Context) error {
		_, err := c.w.c.Client().CoreV1().Nodes().Patch(ctx, c.w.members[node].node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

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
