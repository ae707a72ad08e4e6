package e2e

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/enilab/enilab/e2e/calls"
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
