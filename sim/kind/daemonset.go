package kind

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/enilab/enilab/sim/scn"
)

// The daemon's DaemonSet.
const (
	systemNamespace = "kube-system"
	daemonSet       = "aws-node"
	daemonSelector  = "k8s-app=aws-node"
)

// roll ends the daemons of some nodes; their DaemonSet makes new ones, with new settings if there are any.
func (w *World) roll(list []*member, settings []scn.Arg) error {
	if len(settings) > 0 {
		set := func(ctx context.Context) error { return w.set(ctx, settings) }
		if err := w.persist("the API server", set); err != nil {
			return err
		}
		w.mu.Lock()
		for _, m := range list {
			for _, k := range settings {
				_ = m.set.Put(k.Key, k.Value) // checked by Bind
			}
		}
		w.mu.Unlock()
	}
	for _, m := range list {
		w.tell(m, "ipamd is told to end")
		if err := w.persist("the API server", func(ctx context.Context) error { return w.deleteDaemon(ctx, m) }); err != nil {
			return err
		}
	}
	return nil
}

// set changes the environment of the DaemonSet, and waits until its controller knows: what it makes from then on has it.
func (w *World) set(ctx context.Context, keys []scn.Arg) error {
	client := w.c.Client().AppsV1().DaemonSets(systemNamespace)
	d, err := client.Get(ctx, daemonSet, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch, err := environmentPatch(d, keys)
	if err != nil {
		return err
	}
	if d, err = client.Patch(ctx, daemonSet, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return err
	}
	wanted := d.Generation
	return w.c.await(ctx, "the DaemonSet's controller to see the new environment", func() (string, error) {
		d, err := client.Get(ctx, daemonSet, metav1.GetOptions{})
		if err != nil || d.Status.ObservedGeneration >= wanted {
			return "", err
		}
		return "it has not", nil
	})
}

// environmentPatch sets variables of all containers: the init step decides by the same settings.
func environmentPatch(d *appsv1.DaemonSet, keys []scn.Arg) ([]byte, error) {
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	type container struct {
		Name string     `json:"name"`
		Env  []variable `json:"env"`
	}
	var env []variable
	for _, k := range keys {
		env = append(env, variable{k.Key, k.Value})
	}
	spec := map[string][]container{}
	for _, c := range d.Spec.Template.Spec.InitContainers {
		spec["initContainers"] = append(spec["initContainers"], container{c.Name, env})
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		spec["containers"] = append(spec["containers"], container{c.Name, env})
	}
	return json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}})
}

// deleteDaemon deletes a node's daemon, gracefully.
func (w *World) deleteDaemon(ctx context.Context, m *member) error {
	client := w.c.Client().CoreV1().Pods(systemNamespace)
	list, err := client.List(ctx, metav1.ListOptions{LabelSelector: daemonSelector, FieldSelector: "spec.nodeName=" + m.node.Name})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if err := client.Delete(ctx, list.Items[i].Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// without is a label that the DaemonSet's affinity leaves out: the node says that its network is built in.
const (
	without      = "eks.amazonaws.com/compute-type"
	withoutValue = "auto"
)

// keepDown keeps a node's daemon down: its DaemonSet leaves the node out, and what runs is killed.
func (w *World) keepDown(m *member) error {
	m.held = true
	if err := w.label(m, fmt.Sprintf("%q", withoutValue)); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kill(m)
	return nil
}

// letUp ends that.
func (w *World) letUp(m *member) error {
	if !m.held {
		return nil
	}
	m.held = false
	return w.label(m, "null")
}

func (w *World) label(m *member, value string) error {
	patch := []byte(fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, without, value))
	return w.persist("the API server", func(ctx context.Context) error {
		_, err := w.c.Client().CoreV1().Nodes().Patch(ctx, m.node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}
