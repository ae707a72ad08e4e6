package scripts

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Two kinds of process, by how they take SIGTERM.
const (
	obedient = `trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`
	stubborn = `trap '' TERM; while :; do sleep 1; done`
)

// grace is how long a stubborn pod lives on when it is deleted: longer than its successor needs to start.
const grace = int64(12)

func (s *stage) spec(script string) corev1.PodSpec {
	seconds, no := grace, false
	return corev1.PodSpec{
		NodeName: s.Node, TerminationGracePeriodSeconds: &seconds, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{
			Name: "main", Image: s.image(), ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", script},
		}},
	}
}

// create makes a pod.
func (s *stage) create(ctx context.Context, name, script string, change ...func(*corev1.PodSpec)) (types.UID, error) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: s.spec(script)}
	for _, f := range change {
		f(&p.Spec)
	}
	made, err := s.Client.CoreV1().Pods(s.space).Create(ctx, p, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("create pod %s: %w", name, err)
	}
	return made.UID, nil
}

// start makes a pod and waits until it runs.
func (s *stage) start(ctx context.Context, name, script string) error {
	uid, err := s.create(ctx, name, script)
	if err != nil {
		return err
	}
	return s.running(ctx, name, uid)
}

// running waits until a pod is ready.
func (s *stage) running(ctx context.Context, name string, uid types.UID) error {
	return s.wait(ctx, removal, "pod "+name+" to be ready", func(ctx context.Context) (bool, error) {
		p, err := s.Client.CoreV1().Pods(s.space).Get(ctx, name, metav1.GetOptions{})
		return err == nil && p.UID == uid && ready(p), err
	})
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// remove deletes a pod and waits until the API server has it no more.
func (s *stage) remove(ctx context.Context, name string) error {
	return errors.Join(s.ask(ctx, name, metav1.DeleteOptions{}), s.gone(ctx, name))
}

func (s *stage) ask(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := s.Client.CoreV1().Pods(s.space).Delete(ctx, name, o); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

func (s *stage) gone(ctx context.Context, name string) error {
	return s.wait(ctx, removal, "pod "+name+" to go", func(ctx context.Context) (bool, error) {
		_, err := s.Client.CoreV1().Pods(s.space).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), err
	})
}
