package e2e

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forceDelete is scenarios/force-delete.scn. The node has five addresses and no more, so that what is free is soon given away, and
// again and again.
var forceDelete = incident{
	name: "force-delete",
	text: "a pod is force-deleted whose sandbox cannot be stopped: nobody is given its address until it is",
	env:  map[string]string{"MAX_ENI": "1", "WARM_ENI_TARGET": "0"},
	run: func(ctx context.Context, s *scene) error {
		app, err := s.start(ctx, "app", 1)
		if err != nil {
			return err
		}
		if _, err := s.start(ctx, "web", 1); err != nil {
			return err
		}
		hung, err := s.pause(ctx, &app[0])
		if err != nil {
			return err
		}
		if err := s.deleteByForce(ctx, app[0].Name); err != nil {
			return err
		}
		if err := s.churn(ctx, 12, 3); err != nil { // every address is used up and comes again
			return err
		}
		if err := s.pass(ctx, 6*time.Minute); err != nil { // Terway's cleaner comes every five
			return err
		}
		if err := s.churn(ctx, 12, 3); err != nil {
			return err
		}
		if err := s.crash(ctx); err != nil { // recovery, too, has to know it
			return err
		}
		if err := s.exhaust(ctx); err != nil {
			return err
		}
		if err := hung.resume(); err != nil {
			return err
		}
		return hung.ended(ctx)
	},
}

// exhaust makes a pod more than there are addresses: it has to wait, and gets what another one has given up.
func (s *scene) exhaust(ctx context.Context) error {
	if _, err := s.start(ctx, "full", 3); err != nil {
		return err
	}
	if err := s.create(ctx, "late", "late-0"); err != nil {
		return err
	}
	if err := s.refused(ctx, "late-0"); err != nil {
		return err
	}
	if err := s.delete(ctx, "full"); err != nil {
		return err
	}
	if _, err := s.ready(ctx, "late", 1); err != nil {
		return err
	}
	return s.delete(ctx, "late")
}

// refused waits until kubelet says that a pod got no address.
func (s *scene) refused(ctx context.Context, pod string) error {
	return awaited(ctx, startLimit, "kubelet to say that "+pod+" got no address", func(ctx context.Context) (string, error) {
		events, err := s.Client().CoreV1().Events(s.name).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
		if err != nil {
			return "", err
		}
		said := "it says nothing"
		for _, e := range events.Items {
			if e.Reason == "FailedCreatePodSandBox" {
				if said = e.Message; strings.Contains(said, "no address") {
					return "", nil
				}
			}
		}
		return said, nil
	})
}
