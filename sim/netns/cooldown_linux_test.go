package netns_test

import (
	"testing"

	"github.com/enilab/enilab/sim/runner"
)

// TestNoCoolDown: without a cool-down the daemon wants the flows of an address forgotten in the very step in which it hears that the pod's veth
// is gone; the judge hears of both at once, and takes them in that order.
func TestNoCoolDown(t *testing.T) {
	if testing.Short() {
		t.Skip("starts 24 pods")
	}
	judged(t, parts(t), `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  WARM_IP_TARGET=2 IP_COOLDOWN_PERIOD=0
start   pods web 12 on node-1
always  "no address is reused before its cool-down"
at 1m   kube scale web 0
at 80s  kube scale web 12
at 4m   expect kube pods.unready == 0
finally converges within 5m
`, runner.Held)
}
