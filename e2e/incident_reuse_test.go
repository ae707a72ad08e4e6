package e2e

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// nameReuse is scenarios/statefulset-name-reuse.scn.
var nameReuse = incident{
	name: "statefulset-name-reuse",
	text: "a StatefulSet's pod is made again while its old sandbox lives: both keep what they have, and late DELs are the old one's",
	env:  map[string]string{"WARM_ENI_TARGET": "0", "WARM_IP_TARGET": "2"},
	run: func(ctx context.Context, s *scene) error {
		old, err := s.startStateful(ctx, "etcd")
		if err != nil {
			return err
		}
		hung, err := s.pause(ctx, old)
		if err != nil {
			return err
		}
		if err := s.deleteByForce(ctx, old.Name); err != nil {
			return err
		}
		second, err := s.next(ctx, old)
		if err != nil {
			return err
		}
		if second.Status.PodIP == old.Status.PodIP {
			return fmt.Errorf("pod %s was made twice with %s, and nobody noticed", old.Name, old.Status.PodIP)
		}
		if err := s.churn(ctx, 8, 4); err != nil {
			return err
		}
		if err := s.crash(ctx); err != nil { // recovery has to tell them apart
			return err
		}
		if err := s.churn(ctx, 4, 4); err != nil {
			return err
		}
		if err := hung.resume(); err != nil {
			return err
		}
		if err := hung.ended(ctx); err != nil {
			return err
		}
		if err := s.stopAgain(ctx, hung.sandbox, 3); err != nil {
			return err
		}
		return s.allAnswer(ctx)
	},
}

// startStateful makes a StatefulSet of one pod, and waits until it is Ready.
func (s *scene) startStateful(ctx context.Context, name string) (*corev1.Pod, error) {
	if err := s.createStateful(ctx, name); err != nil {
		return nil, err
	}
	pods, err := s.ready(ctx, name, 1)
	if err != nil {
		return nil, err
	}
	return &pods[0], nil
}

// next waits for the next incarnation of a StatefulSet's pod.
func (s *scene) next(ctx context.Context, p *corev1.Pod) (*corev1.Pod, error) {
	var out *corev1.Pod
	err := awaited(ctx, startLimit, "pod "+p.Name+" to be made again and Ready", func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, s.name, p.Labels[appLabel])
		if err != nil {
			return "", err
		}
		for i := range pods {
			if q := &pods[i]; q.Name == p.Name && q.UID != p.UID && ready(q) {
				out = q
				return "", nil
			}
		}
		return describePods(pods), nil
	})
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	return out, nil
}

// stopAgain repeats StopPodSandbox, as kubelet does for as long as it is not sure: each is a DEL more.
func (s *scene) stopAgain(ctx context.Context, sandbox string, times int) error {
	conn, err := grpc.NewClient("unix://"+s.path("/run/containerd/containerd.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	for range times {
		if _, err := cri.NewRuntimeServiceClient(conn).StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: sandbox}); err != nil {
			return err
		}
	}
	return nil
}
