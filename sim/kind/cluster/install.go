package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/enilab/enilab/impl/deploy"
)

// Environment is what aws-node is told on a kind cluster, beside what it is told on EKS.
func Environment() map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL_EC2": EC2Endpoint, "AWS_REGION": "us-west-2"}
}

// Manifests are enilab's for this cluster.
func (c *Cluster) Manifests(o deploy.Options) ([]byte, error) {
	env := Environment()
	env["CLUSTER_NAME"] = c.cfg.Name
	for k, v := range o.Env {
		env[k] = v
	}
	o.Env = env
	o.PullPolicy = cmp.Or(o.PullPolicy, "Never")
	return deploy.Manifests(o)
}

// Install applies enilab's manifests and waits until every node runs the new aws-node and is Ready. The image has to be there already,
// see LoadImage.
func (c *Cluster) Install(ctx context.Context, o deploy.Options) error {
	raw, err := c.Manifests(o)
	if err != nil {
		return err
	}
	if err := c.Apply(ctx, raw); err != nil {
		return err
	}
	if err := c.RolledOut(ctx); err != nil {
		return err
	}
	return c.Ready(ctx)
}

// Apply applies YAML documents, as kubectl apply --server-side does.
func (c *Cluster) Apply(ctx context.Context, raw []byte) error {
	client, err := dynamic.NewForConfig(c.rest)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(c.client.Discovery())
	if err != nil {
		return fmt.Errorf("ask the API server what it serves: %w", err)
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := d.Decode(&o.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("apply: %w", err)
		}
		if len(o.Object) == 0 {
			continue
		}
		kind := o.GroupVersionKind()
		m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, o.GetName(), err)
		}
		to := dynamic.ResourceInterface(client.Resource(m.Resource))
		if m.Scope.Name() == "namespace" {
			to = client.Resource(m.Resource).Namespace(cmp.Or(o.GetNamespace(), "default"))
		}
		data, err := o.MarshalJSON()
		if err != nil {
			return err
		}
		if _, err := to.Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "enilab", Force: &yes}); err != nil {
			return fmt.Errorf("apply %s %s: %w", kind.Kind, o.GetName(), err)
		}
	}
}

var yes = true

// RolledOut waits until every node runs the aws-node that was applied last.
func (c *Cluster) RolledOut(ctx context.Context) error {
	return c.Await(ctx, "aws-node to be rolled out", func() (string, error) {
		d, err := c.client.AppsV1().DaemonSets("kube-system").Get(ctx, "aws-node", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		s := &d.Status
		if s.ObservedGeneration == d.Generation && s.DesiredNumberScheduled == int32(len(c.nodes)) &&
			s.UpdatedNumberScheduled == s.DesiredNumberScheduled && s.NumberAvailable == s.DesiredNumberScheduled {
			return "", nil
		}
		return fmt.Sprintf("%d of %d are updated and %d available", s.UpdatedNumberScheduled, s.DesiredNumberScheduled, s.NumberAvailable), nil
	})
}

// Ready waits until every node is.
func (c *Cluster) Ready(ctx context.Context) error {
	return c.Await(ctx, "every node to be Ready", func() (string, error) {
		list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		if len(list.Items) != len(c.nodes) {
			return fmt.Sprintf("%d of %d have joined", len(list.Items), len(c.nodes)), nil
		}
		for i := range list.Items {
			if why := unready(&list.Items[i]); why != "" {
				return list.Items[i].Name + ": " + why, nil
			}
		}
		return "", nil
	})
}

func unready(n *corev1.Node) string {
	for _, cond := range n.Status.Conditions {
		if cond.Type == corev1.NodeReady {
			if cond.Status == corev1.ConditionTrue {
				return ""
			}
			return cond.Message
		}
	}
	return "kubelet has not reported yet"
}

// PollPeriod is how often the API server is asked about what is waited for.
const PollPeriod = 250 * time.Millisecond

// What an idle machine has in two minutes is not there in twenty: something is wrong, and what is left says where. Who waits hears of that each
// half minute.
const (
	awaitLimit = 20 * time.Minute
	tellPeriod = 30 * time.Second
)

// Await asks until there is nothing left to wait for; a passing error of the API server is waited out too.
func (c *Cluster) Await(ctx context.Context, what string, ask func() (left string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, awaitLimit)
	defer cancel()
	for told := time.Now(); ; {
		left, err := ask()
		if err == nil && left == "" {
			return nil
		}
		if err != nil {
			left = err.Error()
		}
		if err := c.Err(); err != nil {
			return err
		}
		if time.Since(told) >= tellPeriod {
			told = time.Now()
			c.cfg.Log("still waiting for " + what + ": " + left)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %s: %w", what, left, ctx.Err())
		case <-time.After(PollPeriod):
		}
	}
}
