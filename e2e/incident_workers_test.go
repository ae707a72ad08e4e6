package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const system = "kube-system"

// stageLabel tells the DaemonSets of stages from the one of all nodes, and from one another.
const stageLabel = "enilab.io/stage"

// clear takes everybody off the workers: other pods, which would have addresses of a node that has few, and the DaemonSet of all nodes.
func (t *theatre) clear(ctx context.Context) error {
	var workers []string
	for _, w := range t.Workers() {
		workers = append(workers, w.Name)
		taint := corev1.Taint{Key: stageLabel, Effect: corev1.TaintEffectNoExecute}
		if err := t.taint(ctx, w.Name, func(list []corev1.Taint) []corev1.Taint { return append(list, taint) }); err != nil {
			return err
		}
	}
	sets := t.Client().AppsV1().DaemonSets(system)
	d, err := sets.Get(ctx, "aws-node", metav1.GetOptions{})
	if err != nil {
		return err
	}
	term := &d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0]
	term.MatchExpressions = append(term.MatchExpressions,
		corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: workers})
	d.ResourceVersion = "" // its controller writes its status meanwhile; nobody else writes what is said here
	if _, err := sets.Update(ctx, d, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return awaited(ctx, rollLimit, "all pods to leave the workers", func(ctx context.Context) (string, error) {
		pods, err := t.pods(ctx, "", "")
		if err != nil {
			return "", err
		}
		for i := range pods {
			p := &pods[i]
			if slices.Contains(workers, p.Spec.NodeName) && (!p.Spec.HostNetwork || strings.HasPrefix(p.Name, "aws-node")) {
				return p.Name + " is on " + p.Spec.NodeName, nil
			}
		}
		return "", nil
	})
}

// taint changes a node's taints.
func (t *theatre) taint(ctx context.Context, node string, change func([]corev1.Taint) []corev1.Taint) error {
	return awaited(ctx, rollLimit, node+" to be tainted otherwise", func(ctx context.Context) (string, error) {
		n, err := t.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		n.Spec.Taints = change(n.Spec.Taints)
		_, err = t.Client().CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return "", err // a conflict passes
	})
}

// restore removes what incidents have left in the cluster, and lets other pods come back to the workers.
func (t *theatre) restore(ctx context.Context) error {
	of := listOf(stageLabel)
	if err := t.Client().AppsV1().DaemonSets(system).DeleteCollection(ctx, metav1.DeleteOptions{}, of); err != nil {
		return err
	}
	err := awaited(ctx, rollLimit, "the incidents' namespaces and aws-node to be gone", func(ctx context.Context) (string, error) {
		pods, err := t.Client().CoreV1().Pods(system).List(ctx, of)
		if err != nil {
			return "", err
		}
		spaces, err := t.Client().CoreV1().Namespaces().List(ctx, of)
		if err != nil || len(pods.Items)+len(spaces.Items) == 0 {
			return "", err
		}
		return fmt.Sprintf("%d and %d are there", len(spaces.Items), len(pods.Items)), nil
	})
	if err != nil {
		return err
	}
	for _, w := range t.Workers() {
		// Nobody has an address here any more, and the records are of times that are yet to come.
		if err := os.Remove(filepath.Join(w.Root(), "run/aws-node/ipam.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err := t.taint(ctx, w.Name, func(list []corev1.Taint) []corev1.Taint {
			return slices.DeleteFunc(list, func(t corev1.Taint) bool { return t.Key == stageLabel })
		})
		if err != nil {
			return err
		}
	}
	return nil
}
