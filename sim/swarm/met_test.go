package swarm_test

import (
	"slices"
	"testing"

	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/virtual"
)

// TestVerbsMeetDaemonsInConditions: a verb is counted with the condition in which it found a daemon, one that missed is not, and a batch says what it lacks.
func TestVerbsMeetDaemonsInConditions(t *testing.T) {
	o, err := swarm.Play("met.scn", `cluster nodes=1 type=m5.large subnet=10.0.0.0/24 runtime=containerd
start pods web 3 on node-1
at 1m node-1 hold
at 2m imds silent for=30s
maybe at 130s node-1 kill
at 3m node-1 unhold
finally converges within 20m
`, 1, nil)
	if err != nil || o.Broken != nil {
		t.Fatal(err, o)
	}
	want := []swarm.Met{{Verb: "node hold", Daemon: virtual.Serving}, {Verb: "imds silent", Daemon: virtual.Down}, {Verb: "node unhold", Daemon: virtual.Down}}
	for _, m := range want {
		if !o.Met[m] {
			t.Errorf("%v did not meet", m)
		}
	}
	if len(o.Met) != len(want) {
		t.Errorf("met %v, expected %v", o.Met, want)
	}
	tally := swarm.NewTally(nil)
	tally.Add(1, o)
	if unmet := tally.Unmet(); slices.Contains(unmet, want[0]) || !slices.Contains(unmet, swarm.Met{Verb: "node hold", Daemon: virtual.Down}) {
		t.Errorf("unmet: %v", unmet)
	}
}
