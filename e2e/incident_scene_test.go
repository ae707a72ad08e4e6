package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scene is one incident on a stage.
type scene struct {
	*stage
	*incident
	undo []func() error
}

// play lets one incident happen, and leaves nothing of it.
func (s *stage) play(ctx context.Context, i *incident) (err error) {
	sc := &scene{stage: s, incident: i}
	defer func() {
		err = errors.Join(err, sc.step("cleaned up", func() error { return sc.close(context.WithoutCancel(ctx)) }))
	}()
	if err := sc.step("prepared", func() error { return sc.open(ctx) }); err != nil {
		return fmt.Errorf("before anything happened: %w", err)
	}
	watched, stop := sc.watch(ctx)
	err = sc.step("happened", func() error { return i.run(watched, sc) })
	if err == nil {
		err = sc.step("balanced", func() error { return sc.balanced(watched, "with its pods") })
	}
	if broke := stop(); broke != nil { // then what the incident was waiting for did not come
		return broke
	}
	if err != nil {
		return err
	}
	return sc.step("ended", func() error {
		if err := sc.removePods(ctx); err != nil {
			return err
		}
		return sc.balanced(ctx, "without its pods")
	})
}

// coolDown is short: an incident's pods follow one another quickly.
const coolDown = "2"

// open rolls the daemon out that the incident is about, on a node that is as it should be.
func (s *scene) open(ctx context.Context) error {
	_, err := s.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: s.name, Labels: map[string]string{stageLabel: s.node.Name}}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	settings := map[string]string{"IP_COOLDOWN_PERIOD": coolDown}
	maps.Copy(settings, s.env)
	if err := s.roll(ctx, settings); err != nil {
		return err
	}
	if err := s.accountReady(ctx, s.name); err != nil {
		return err
	}
	return s.balanced(ctx, "to begin with")
}

// step says how long a part of the incident took.
func (s *scene) step(what string, do func() error) error {
	began := time.Now()
	err := do()
	say(fmt.Sprintf("%s: %s: %v", s.name, what, time.Since(began).Round(100*time.Millisecond)))
	return err
}

// later is done at the incident's end, however it ends; what was said last is done first.
func (s *scene) later(undo func() error) { s.undo = append(s.undo, undo) }

// closeLimit bounds an incident's end.
const closeLimit = 2 * time.Minute

// close ends what is left of the incident; its namespace goes in its own time.
func (s *scene) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeLimit)
	defer cancel()
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	errs = append(errs, s.removePods(ctx))
	err := s.Client().CoreV1().Namespaces().Delete(ctx, s.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	return errors.Join(append(errs, err)...)
}

// idle is what a pod of an incident does: nothing, and it ends when it is told.
func idle(spec *corev1.PodSpec) {
	no := false
	spec.AutomountServiceAccountToken, spec.EnableServiceLinks = &no, &no
	spec.Containers = []corev1.Container{{Name: "main", Image: podImage, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{"sh", "-c", "trap exit TERM; while :; do sleep 3600 & wait $!; done"}}}
}

func (s *scene) changes() []change { return []change{onNode(s.node.Name), idle} }

// start makes pods NAME-0, NAME-1, ... and waits until they are Ready.
func (s *scene) start(ctx context.Context, name string, count int) ([]corev1.Pod, error) {
	for i := range count {
		if err := s.create(ctx, name, fmt.Sprintf("%s-%d", name, i)); err != nil {
			return nil, err
		}
	}
	return s.ready(ctx, name, count)
}

func (s *scene) create(ctx context.Context, label, name string) error {
	_, err := s.Client().CoreV1().Pods(s.name).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(label)}, Spec: podSpec(s.changes()...)}, metav1.CreateOptions{})
	return err
}

// ready waits until there are so many pods of a label, all Ready.
func (s *scene) ready(ctx context.Context, label string, count int) (out []corev1.Pod, err error) {
	err = awaited(ctx, startLimit, fmt.Sprintf("%d pods %s to be Ready", count, label), func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, s.name, label)
		if err != nil {
			return "", err
		}
		good := 0
		for i := range pods {
			if ready(&pods[i]) && pods[i].DeletionTimestamp == nil {
				good++
			}
		}
		if out = pods; good != count || len(pods) != count {
			return describePods(pods), nil
		}
		return "", nil
	})
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return out, nil
}

func (s *scene) gone(ctx context.Context, label string) error {
	return awaited(ctx, stopLimit, "pods "+label+" to be gone", func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, s.name, label)
		if err != nil || len(pods) == 0 {
			return "", err
		}
		return describePods(pods), nil
	})
}

// removePods ends what the incident runs.
func (s *scene) removePods(ctx context.Context) error {
	apps := s.Client().AppsV1()
	now := metav1.DeleteOptions{}
	err := errors.Join(apps.StatefulSets(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}),
		apps.Deployments(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}),
		s.Client().CoreV1().Pods(s.name).DeleteCollection(ctx, now, metav1.ListOptions{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	return s.gone(ctx, "")
}
