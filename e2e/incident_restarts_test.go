package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/e2e/calls"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// runtimeRestart: containerd ends while enilab has done its part of an ADD, or not begun its part of a DEL, and nobody hears of it.
var runtimeRestart = incident{
	name: "runtime-restart",
	text: "containerd is restarted in the middle of ADDs and DELs: nothing is leaked",
	env:  map[string]string{"WARM_ENI_TARGET": "0", "WARM_IP_TARGET": "2"},
	run: func(ctx context.Context, s *scene) error {
		if err := s.chain(ctx); err != nil {
			return err
		}
		if _, err := s.start(ctx, "web", 2); err != nil {
			return err
		}
		if _, err := s.start(ctx, "old", 2); err != nil {
			return err
		}
		stall := func(plugin, verb, pod string) calls.Fault {
			return calls.Fault{Plugin: plugin, Verb: verb, Pod: pod, Times: 1, Stall: "2m"}
		}
		// ADD before and after enilab's part, DEL likewise.
		err := s.faults(stall(firstPlugin, "ADD", "new-0"), stall(lastPlugin, "ADD", "new-1"), stall(lastPlugin, "DEL", "old-0"), stall(firstPlugin, "DEL", "old-1"))
		if err != nil {
			return err
		}
		for i := range 2 {
			if err := s.create(ctx, "new", fmt.Sprintf("new-%d", i)); err != nil {
				return err
			}
			if err := s.Client().CoreV1().Pods(s.name).Delete(ctx, fmt.Sprintf("old-%d", i), metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
		if err := s.happened(ctx); err != nil { // have begun, all of them
			return err
		}
		if _, err := s.node.Exec(ctx, "systemctl", "restart", "containerd"); err != nil {
			return err
		}
		if err := s.faults(); err != nil { // nobody waits for what is stalled
			return err
		}
		if _, err := s.ready(ctx, "new", 2); err != nil {
			return err
		}
		return s.gone(ctx, "old")
	},
}

// nodeRestart is part of scenarios/reboot.scn: what was recorded speaks of pods that the restart has ended.
var nodeRestart = incident{
	name:     "node-restart",
	text:     "a node is restarted: its pods come back, old records are not used, and its ENIs are",
	env:      map[string]string{"WARM_ENI_TARGET": "1"},
	realtime: true,
	run: func(ctx context.Context, s *scene) error {
		const replicas = 6
		if err := s.deployRolling(ctx, "web", replicas); err != nil {
			return err
		}
		if _, err := s.ready(ctx, "web", replicas); err != nil {
			return err
		}
		if err := s.balanced(ctx, "before the restart"); err != nil {
			return err
		}
		old, err := s.view()
		if err != nil {
			return err
		}
		before, made := s.enis(), s.made()
		if err := s.restart(ctx, replicas); err != nil {
			return err
		}
		if err := s.serves(ctx); err != nil {
			return err
		}
		if _, err := s.ready(ctx, "web", replicas); err != nil {
			return err
		}
		now, err := s.view()
		if err != nil {
			return err
		}
		for _, r := range old.Rows {
			if r.State == ipam.Assigned && slices.ContainsFunc(now.Rows, func(q ipam.Row) bool { return q.Att == r.Att }) {
				return broken(judge.I5, "%v is %v's, a sandbox that the restart has ended", r.Address, r.Att)
			}
		}
		if after := s.enis(); !slices.Equal(before, after) || s.made() != made {
			return broken(judge.I5, "the node had %v, and has %v: %d were made", before, after, s.made()-made)
		}
		return nil
	},
}

// restart restarts the machine and waits until its pods run again. Meanwhile the API server says that they are Ready, for nobody tells it.
func (s *scene) restart(ctx context.Context, pods int) error {
	s.looking.Lock()
	defer s.looking.Unlock()
	defer clear(s.silent) // what was not answered before is no part of what comes
	list, err := s.pods(ctx, s.name, "")
	if err != nil {
		return err
	}
	old := map[string]bool{}
	for i := range list {
		old[container(&list[i])] = true
	}
	if err := s.node.Restart(ctx); err != nil {
		return err
	}
	return s.startedAgain(ctx, old, pods)
}

// container is a pod's that runs, as kubelet says.
func container(p *corev1.Pod) string {
	if c := p.Status.ContainerStatuses; len(c) > 0 && c[0].State.Running != nil {
		return c[0].ContainerID
	}
	return ""
}

// enis are those that are on the node, and those that EC2 still attaches: their links are there before, and that is what a daemon waits for.
func (s *scene) enis() (out []ec2.ENIID) {
	s.Cloud(func(_ time.Duration, m *ec2.Cloud) {
		for _, e := range m.AllENIs() {
			if e.Instance == s.node.Instance {
				out = append(out, e.ID)
			}
		}
	})
	return out
}

// made is how many ENIs the node has made so far.
func (s *scene) made() (n int) {
	s.Cloud(func(_ time.Duration, m *ec2.Cloud) { n = m.CallsBy(s.node.Instance, ec2.CreateNetworkInterface).OK })
	return n
}

// startedAgain waits until kubelet says that all pods have other containers. When they have started would say less: it is told in seconds, and
// pods may have started in the one in which the machine is restarted.
func (s *scene) startedAgain(ctx context.Context, old map[string]bool, count int) error {
	return awaited(ctx, startLimit, "the node's pods to start again", func(ctx context.Context) (string, error) {
		pods, err := s.pods(ctx, s.name, "")
		if err != nil {
			return "", err
		}
		again := 0
		for i := range pods {
			if c := container(&pods[i]); c != "" && !old[c] {
				again++
			}
		}
		if again != count {
			return fmt.Sprintf("%d of %d have: %s", again, count, describePods(pods)), nil
		}
		return "", nil
	})
}
