package e2e

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kills is how often the daemon is killed.
const kills = 8

// killLoop kills the daemon while a Deployment is rolled out, each time as soon as another one serves. Its pod is deleted as well: for a
// container that ends again and again kubelet waits longer and longer.
var killLoop = incident{
	name: "kill-loop",
	text: "the daemon is killed again and again during a rolling deployment: which goes on, and the node stays Ready",
	env:  map[string]string{"WARM_ENI_TARGET": "1"},
	run: func(ctx context.Context, s *scene) error {
		const replicas = 6
		if err := s.deployRolling(ctx, "web", replicas); err != nil {
			return err
		}
		if _, err := s.ready(ctx, "web", replicas); err != nil {
			return err
		}
		since, err := s.nodeReady(ctx)
		if err != nil {
			return err
		}
		for i := range kills {
			if i%4 == 0 {
				if err := s.rollOut(ctx, "web", fmt.Sprint(i)); err != nil {
					return err
				}
			}
			if err := s.killDaemon(); err != nil {
				return err
			}
			if err := s.deleteDaemon(ctx); err != nil {
				return err
			}
			if err := s.serves(ctx); err != nil {
				return err
			}
		}
		if err := s.rolledOut(ctx, "web"); err != nil {
			return err
		}
		if _, err := s.ready(ctx, "web", replicas); err != nil {
			return err
		}
		now, err := s.nodeReady(ctx)
		if err == nil && now != since {
			err = fmt.Errorf("%s has been Ready since %v, expected since %v", s.node.Name, now, since)
		}
		return err
	},
}

// deployRolling makes a Deployment whose pods are replaced one by one.
func (s *scene) deployRolling(ctx context.Context, name string, replicas int32) error {
	one := intstr.FromInt32(1)
	_, err := s.Client().AppsV1().Deployments(s.name).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(name)},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &one, MaxUnavailable: &one}},
			Template: podTemplate(name, s.changes()...)},
	}, metav1.CreateOptions{})
	return err
}

// rollOut replaces all pods of a Deployment.
func (s *scene) rollOut(ctx context.Context, name, version string) error {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"enilab.io/version":%q}}}}}`, version)
	_, err := s.Client().AppsV1().Deployments(s.name).Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

func (s *scene) rolledOut(ctx context.Context, name string) error {
	return awaited(ctx, startLimit, "the rollout of "+name, func(ctx context.Context) (string, error) {
		d, err := s.Client().AppsV1().Deployments(s.name).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		u, want := &d.Status, *d.Spec.Replicas
		if u.ObservedGeneration == d.Generation && u.UpdatedReplicas == want && u.Replicas == want && u.AvailableReplicas == want {
			return "", nil
		}
		return fmt.Sprintf("of %d pods %d are new, of %d that should be there, and %d available", u.Replicas, u.UpdatedReplicas, want, u.AvailableReplicas), nil
	})
}

// deleteDaemon deletes the daemon's pod and waits until the API server has another one.
func (s *scene) deleteDaemon(ctx context.Context) error {
	of := listOf(stageLabel + "=" + s.node.Name)
	pods := s.Client().CoreV1().Pods(system)
	list, err := pods.List(ctx, of)
	if err != nil {
		return err
	}
	old := map[types.UID]bool{}
	for _, p := range list.Items {
		old[p.UID] = true
		if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			return err
		}
	}
	return awaited(ctx, rollLimit, "the daemon's pod to be made again and Ready", func(ctx context.Context) (string, error) {
		list, err := pods.List(ctx, of)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if p := &list.Items[i]; !old[p.UID] && ready(p) {
				return "", nil
			}
		}
		return describePods(list.Items), nil
	})
}

// nodeReady is since when the node has been Ready.
func (s *scene) nodeReady(ctx context.Context) (since time.Time, err error) {
	n, err := s.Client().CoreV1().Nodes().Get(ctx, s.node.Name, metav1.GetOptions{})
	if err != nil {
		return since, err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, nil
		}
	}
	return since, fmt.Errorf("%s is not Ready", s.node.Name)
}
