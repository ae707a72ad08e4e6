package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/e2e/calls"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// longCoolDown is one that can be watched: no address is free again before the last DEL has been repeated, which may take kubelet a minute.
// What is left of it then the daemon leaps over.
const longCoolDown = 3 * time.Minute

// delRetries is scenarios/del-retries.scn: DEL fails because of somebody else in the list, before or after enilab's part.
var delRetries = incident{
	name: "del-retries",
	text: "another plugin fails and stalls DELs: the runtime repeats them, they end, and nobody else is hurt",
	env:  map[string]string{"WARM_ENI_TARGET": "0", "WARM_IP_TARGET": "2", "IP_COOLDOWN_PERIOD": fmt.Sprint(int(longCoolDown / time.Second))},
	run: func(ctx context.Context, s *scene) error {
		if err := s.chain(ctx); err != nil {
			return err
		}
		old, err := s.startStateful(ctx, "etcd")
		if err != nil {
			return err
		}
		ended, err := s.start(ctx, "web", 3)
		if err != nil {
			return err
		}
		again := calls.Fault{Verb: "DEL", Times: 2, Error: "try again later", Code: 11}
		of := func(f calls.Fault, plugin, pod string) calls.Fault { f.Plugin, f.Pod = plugin, pod; return f }
		stall := calls.Fault{Verb: "DEL", Times: 1, Stall: "5s"}
		err = s.faults(of(again, firstPlugin, "etcd-0"), of(again, firstPlugin, "web-0"), of(again, lastPlugin, "web-1"),
			of(stall, firstPlugin, "web-2"), of(stall, lastPlugin, "web-2"))
		if err != nil {
			return err
		}
		if err := s.deleteByForce(ctx, old.Name); err != nil {
			return err
		}
		if err := s.delete(ctx, "web"); err != nil {
			return err
		}
		if _, err := s.next(ctx, old); err != nil {
			return err
		}
		if err := s.happened(ctx); err != nil {
			return err
		}
		return s.cooled(ctx, append(ended, *old))
	},
}

// cooled waits until the addresses of pods that have ended are all cooling, once, and then free, at the end of that.
func (s *scene) cooled(ctx context.Context, pods []corev1.Pod) error {
	released := map[netip.Addr]time.Duration{}
	err := awaited(ctx, stopLimit, "every address to cool down", func(context.Context) (string, error) {
		v, err := s.view()
		if err != nil {
			return "", err
		}
		for _, p := range pods {
			r := rowOf(v.Rows, p.Status.PodIP)
			if r == nil || r.State != ipam.Cooling {
				return fmt.Sprintf("%s of pod %s does not", p.Status.PodIP, p.Name), nil
			}
			if _, known := released[r.Address]; !known {
				released[r.Address] = r.ReleasedAt
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	for a, at := range released {
		if err := s.pass(ctx, at+longCoolDown-time.Second-s.clock.now()); err != nil {
			return err
		}
		v, err := s.view()
		if err != nil {
			return err
		}
		switch r := rowOf(v.Rows, a.String()); {
		case v.Now >= at+longCoolDown: // this machine had better things to do
		case r == nil || r.State != ipam.Cooling:
			return broken(judge.I7, "%v is free after %v, expected %v", a, v.Now-at, longCoolDown)
		case r.ReleasedAt != at:
			return fmt.Errorf("the cool-down of %v was to end at %v, and ends at %v: another DEL came and it began again", a, at+longCoolDown, r.ReleasedAt+longCoolDown)
		}
	}
	return nil
}

func rowOf(rows []ipam.Row, address string) *ipam.Row {
	for i := range rows {
		if rows[i].Address.String() == address {
			return &rows[i]
		}
	}
	return nil
}

// createStateful makes a StatefulSet of one pod.
func (s *scene) createStateful(ctx context.Context, name string) error {
	one := int32(1)
	_, err := s.Client().AppsV1().StatefulSets(s.name).Create(ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labelled(name)},
		Spec: appsv1.StatefulSetSpec{Replicas: &one, ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labelled(name)},
			Template: podTemplate(name, s.changes()...)},
	}, metav1.CreateOptions{})
	return err
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
