package calls

import (
	"context"
	"errors"
)

// Life is something that happens to pods.
type Life struct {
	Name     string // also of its golden file
	Says     string // what happens
	Disturbs bool   // kubelet, the runtime or the machine is restarted: it must be alone on its node
	Slow     bool   // it takes minutes, since a deadline of kubelet's does
	run      func(context.Context, *stage) error
}

// Lives are all there are.
func Lives() []Life {
	again := Fault{Times: 1, Error: "try again later", Code: 11}
	return []Life{
		{Name: "pod", Says: "a pod starts, runs and is deleted", run: pod},
		{Name: "add-fails", Says: "three ADDs fail, the fourth does not", run: func(ctx context.Context, s *stage) error {
			return s.troubled(ctx, s.fault("web-0", "ADD", Fault{Times: 3, Error: again.Error, Code: again.Code}))
		}},
		{Name: "add-and-del-fail", Says: "an ADD fails, and so does the DEL after it", run: func(ctx context.Context, s *stage) error {
			return s.troubled(ctx, s.fault("web-0", "ADD", again), s.fault("web-0", "DEL", again))
		}},
		{Name: "del-fails", Says: "two DELs fail while the pod is being deleted", run: func(ctx context.Context, s *stage) error {
			return s.troubled(ctx, s.fault("web-0", "DEL", Fault{Times: 2, Error: again.Error, Code: again.Code}))
		}},
		{Name: "image-missing", Says: "a pod whose image cannot be pulled", run: imageMissing},
		{Name: "delete-in-add", Says: "a pod is deleted while its ADD is under way", run: deleteInADD},
		{Name: "force-delete", Says: "a pod is force-deleted, and made again before its processes have ended", run: forceDelete},
		{Name: "statefulset-roll", Says: "a StatefulSet of two is rolled", run: statefulSetRoll},
		{Name: "runtime-restart-in-add", Says: "containerd is restarted while ADD's answer is awaited", Disturbs: true, run: inADD("systemctl", "restart", "containerd")},
		{Name: "runtime-crash-in-add", Says: "containerd is killed while ADD's answer is awaited", Disturbs: true, run: inADD("systemctl", "kill", "--kill-whom=main", "-s", "KILL", "containerd")},
		{Name: "kubelet-restart-in-add", Says: "kubelet is restarted while ADD's answer is awaited", Disturbs: true, run: inADD("systemctl", "restart", "kubelet")},
		{Name: "runtime-restart-in-del", Says: "containerd is restarted while DEL is under way", Disturbs: true, run: inDEL("systemctl", "restart", "containerd")},
		{Name: "runtime-crash-in-del", Says: "containerd is killed while DEL is under way", Disturbs: true, run: inDEL("systemctl", "kill", "--kill-whom=main", "-s", "KILL", "containerd")},
		{Name: "kubelet-restart-in-del", Says: "kubelet is restarted while DEL is under way", Disturbs: true, run: inDEL("systemctl", "restart", "kubelet")},
		{Name: "node-restart", Says: "the machine is restarted under a running pod", Disturbs: true, run: nodeRestart},
		{Name: "node-restart-add-fails", Says: "the machine is restarted under a running pod, and then two ADDs fail", Disturbs: true,
			run: func(ctx context.Context, s *stage) error {
				return s.nodeRestarts(ctx, s.fault("web-0", "ADD", Fault{Times: 2, Error: again.Error, Code: again.Code}))
			}},
		{Name: "add-deadline", Says: "ADD takes longer than kubelet's four minutes", Slow: true, run: addDeadline},
	}
}

func pod(ctx context.Context, s *stage) error {
	if err := s.start(ctx, "web-0", obedient); err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

// troubled is a pod's life with faults.
func (s *stage) troubled(ctx context.Context, faults ...Fault) error {
	if err := s.Faults(ctx, faults...); err != nil {
		return err
	}
	return pod(ctx, s)
}

func imageMissing(ctx context.Context, s *stage) error {
	// A registry that refuses the connection at once.
	if _, err := s.create(ctx, "web-0", obedient, "127.0.0.1:1/missing:0"); err != nil {
		return err
	}
	err := s.wait(ctx, soon, "the image's back-off", func(ctx context.Context) (bool, error) {
		var p podObject
		err := s.ask(ctx, "GET", s.pods()+"/web-0", nil, &p)
		return err == nil && len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff", err
	})
	if err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

// stalledADD makes a pod whose ADD has done its work in the real plugin and does not answer.
func (s *stage) stalledADD(ctx context.Context, stall string) (string, error) {
	if err := s.Faults(ctx, s.fault("web-0", "ADD", Fault{Times: 1, After: true, Stall: stall})); err != nil {
		return "", err
	}
	uid, err := s.create(ctx, "web-0", obedient, s.image())
	if err != nil {
		return "", err
	}
	return uid, s.called(ctx, innerDir, "ADD", "web-0", 1, true)
}

func deleteInADD(ctx context.Context, s *stage) error {
	if _, err := s.stalledADD(ctx, "1m"); err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

func forceDelete(ctx context.Context, s *stage) error {
	if err := s.start(ctx, "web-0", stubborn); err != nil {
		return err
	}
	if err := s.delete(ctx, "web-0", atOnce); err != nil {
		return err
	}
	if err := s.start(ctx, "web-0", obedient); err != nil {
		return err
	}
	if err := s.called(ctx, outerDir, "DEL", "web-0", 1, true); err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

func inADD(command ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		uid, err := s.stalledADD(ctx, "20s")
		if err != nil {
			return err
		}
		if _, err := s.Exec(ctx, nil, command...); err != nil {
			return err
		}
		if err := s.running(ctx, "web-0", uid); err != nil {
			return err
		}
		return s.remove(ctx, "web-0")
	}
}

func inDEL(command ...string) func(context.Context, *stage) error {
	return func(ctx context.Context, s *stage) error {
		if err := s.Faults(ctx, s.fault("web-0", "DEL", Fault{Times: 1, Stall: "20s"})); err != nil {
			return err
		}
		if err := s.start(ctx, "web-0", obedient); err != nil {
			return err
		}
		if err := s.delete(ctx, "web-0", nil); err != nil {
			return err
		}
		if err := s.called(ctx, outerDir, "DEL", "web-0", 1, false); err != nil {
			return err
		}
		if _, err := s.Exec(ctx, nil, command...); err != nil {
			return err
		}
		return s.podGone(ctx, "web-0")
	}
}

func nodeRestart(ctx context.Context, s *stage) error { return s.nodeRestarts(ctx) }

// nodeRestarts: the pod is the same object afterwards, in a new sandbox. The faults are there from the restart on.
func (s *stage) nodeRestarts(ctx context.Context, faults ...Fault) error {
	uid, err := s.create(ctx, "web-0", obedient, s.image())
	if err != nil {
		return err
	}
	if err := s.running(ctx, "web-0", uid); err != nil {
		return err
	}
	if err := s.Faults(ctx, faults...); err != nil {
		return err
	}
	if err := s.restart(ctx); err != nil {
		return err
	}
	adds := 2
	for _, f := range faults {
		adds += f.Times
	}
	if err := s.called(ctx, outerDir, "ADD", "web-0", adds, true); err != nil {
		return err
	}
	if err := s.running(ctx, "web-0", uid); err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

func addDeadline(ctx context.Context, s *stage) error {
	uid, err := s.stalledADD(ctx, "10m")
	if err != nil {
		return err
	}
	if err := s.wait(ctx, 6*removal/4, "the second sandbox's ADD", func(ctx context.Context) (bool, error) {
		runs, err := s.runs(ctx, outerDir)
		adds := 0
		for i := range runs {
			if runs[i].Verb == "ADD" {
				adds++
			}
		}
		return adds == 2, err
	}); err != nil {
		return err
	}
	if err := s.running(ctx, "web-0", uid); err != nil {
		return err
	}
	return s.remove(ctx, "web-0")
}

func statefulSetRoll(ctx context.Context, s *stage) error {
	const two = 2
	sets, labels := "/apis/apps/v1/namespaces/"+s.space+"/statefulsets", object{"app": "web"}
	set := sets + "/web"
	err := s.ask(ctx, "POST", sets, object{"metadata": object{"name": "web"}, "spec": object{
		"replicas": two, "serviceName": "web", "selector": object{"matchLabels": labels},
		"template": object{"metadata": object{"labels": labels}, "spec": s.spec(obedient, s.image())},
	}}, nil)
	if err != nil {
		return err
	}
	rolled := func(what string) error {
		return s.wait(ctx, removal, what, func(ctx context.Context) (bool, error) {
			var w struct {
				Metadata struct{ Generation int }
				Status   struct {
					ObservedGeneration, UpdatedReplicas, ReadyReplicas int
					CurrentRevision, UpdateRevision                    string
				}
			}
			err := s.ask(ctx, "GET", set, nil, &w)
			return err == nil && w.Status.ObservedGeneration == w.Metadata.Generation && w.Status.UpdatedReplicas == two && w.Status.ReadyReplicas == two &&
				w.Status.CurrentRevision == w.Status.UpdateRevision, err
		})
	}
	if err := rolled("two replicas"); err != nil {
		return err
	}
	patch := object{"spec": object{"template": object{"metadata": object{"annotations": object{"rolled": "yes"}}}}}
	if err := s.ask(ctx, "PATCH", set, patch, nil); err != nil {
		return err
	}
	if err := rolled("the roll"); err != nil {
		return err
	}
	if err := s.ask(ctx, "DELETE", set, nil, nil); err != nil {
		return err
	}
	return errors.Join(s.podGone(ctx, "web-0"), s.podGone(ctx, "web-1"))
}
