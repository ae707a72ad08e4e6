package netns_test

import (
	"testing"
	"time"
)

// TestSteadyAtOnce: what is expected of a cluster at rest is measured then, and what the script says next comes when it says so.
func TestSteadyAtOnce(t *testing.T) {
	w := open(t, `# Nothing happens.
cluster nodes=1 type=m5.large subnet=10.0.41.0/24 runtime=containerd
start   pods web 2 on node-1
at 1h   expect kube pods.ready == 2
`)
	const then = 10 * time.Minute
	w.Until(then, nil)
	w.Steady()
	if late := w.Now() - then; late > time.Second {
		t.Errorf("a cluster at rest was waited for until %v later", late)
	}
}
