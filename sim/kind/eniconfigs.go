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
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/verb"
)

// eniConfigs are the ENIConfigs of the cluster, and what nodes say of theirs. The API server has them; the book has what the scenario did to
// them and when, for the judge.
type eniConfigs struct {
	j       *journal
	c       *cluster.Cluster
	members members
	book    *kube.Cluster // guarded by the journal's mu
}

// begin defines the resource, and makes the scenario's.
func (c *eniConfigs) begin(list []sim.ENIConfig) error {
	if err := c.c.Apply(c.j.ctx, deploy.ENIConfigs); err != nil {
		return err
	}
	for i := range list {
		if _, err := c.put(0, &list[i]); err != nil { // no daemon has seen another one
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
	c.c.Cloud(func(now time.Duration, m *ec2.Cloud) { object = actions.ENIConfig(m, now, e) })
	c.j.mu.Lock()
	changed := c.book.PutENIConfig(since, object)
	c.j.mu.Unlock()
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
	return actions.ENIConfigPut(&object, true), c.j.persist("the API server", func(ctx context.Context) error {
		return c.c.Client().Discovery().RESTClient().Patch(types.ApplyPatchType).AbsPath(eniConfigPath(object.Name)).
			Param("fieldManager", "enilab").Param("force", "true").Body(text).Do(ctx).Error()
	})
}

func (c *eniConfigs) delete(name string) (verb.Strike, error) {
	c.j.mu.Lock()
	was := c.book.DeleteENIConfig(c.c.Now(), name)
	c.j.mu.Unlock()
	if !was {
		return actions.ENIConfigDeleted(name, false), nil
	}
	return actions.ENIConfigDeleted(name, true), c.j.persist("the API server", func(ctx context.Context) error {
		err := c.c.Client().Discovery().RESTClient().Delete().AbsPath(eniConfigPath(name)).Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// mark sets a label or an annotation of a node, or takes it away when the value is nil.
func (c *eniConfigs) mark(node int, annotation bool, key string, value *string) (verb.Strike, error) {
	c.j.mu.Lock()
	s := actions.Mark(c.book, c.c.Now(), node, annotation, key, value)
	c.j.mu.Unlock()
	kind := "labels"
	if annotation {
		kind = "annotations"
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{kind: map[string]any{key: value}}})
	if err != nil || s.Fate != verb.Struck {
		return s, err
	}
	return s, c.j.persist("the API server", func(ctx context.Context) error {
		_, err := c.c.Client().CoreV1().Nodes().Patch(ctx, c.members[node].node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}
