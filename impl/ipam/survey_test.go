package ipam

import (
	"net/netip"
	"testing"
	"time"
)

// TestWhatIsKeptOfAnotherInstancesRecords: of their ENIs those that something is under way for, whose outcome is
// awaited, and those that an intent speaks of; of their addresses what a pod has.
func TestWhatIsKeptOfAnotherInstancesRecords(t *testing.T) {
	for _, c := range []struct {
		name string
		eni  mutation
		kept bool
	}{
		{"at rest", mutation{}, false},
		{"its link is being set up", mutation{Wait: applying}, true},
		{"an intent", mutation{Stored: true}, true},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.pool.become(0, Assigned)
		n.ENIs[0].mutation = c.eni
		n.survey.disbelieve(time.Minute, "i-2")
		if _, known := n.enis.eniByID("eni-0"); known != c.kept {
			t.Errorf("%s: the ENI is kept: %v", c.name, known)
		}
		_, pods := n.pool.byAddress[netip.MustParseAddr("10.0.0.20")]
		_, free := n.pool.byAddress[netip.MustParseAddr("10.0.0.21")]
		if !pods || free != c.kept {
			t.Errorf("%s: the pod's address is kept: %v, the free one: %v", c.name, pods, free)
		}
	}
}

// TestABusyENIThatIsNotOursIsAskedAboutLater: EC2's answer may be of before what is under way, and the next one of the
// same moment says no more.
func TestABusyENIThatIsNotOursIsAskedAboutLater(t *testing.T) {
	n := freeOn(t)
	n.ENIs[0].Wait, n.evidence.Looks[LookENI].Want = applying, never
	n.survey.notOurs(time.Minute, &ENI{ID: "eni-0"}, LookAttached)
	if at := n.evidence.Looks[LookENI].Want; !n.ENIs[0].Asking || at != time.Minute+askPause {
		t.Errorf("asked about: %v, at %v; expected %v", n.ENIs[0].Asking, at, time.Minute+askPause)
	}
}

// TestAUseOfWhatIsGivenBackIsSeen: a sandbox claims one of the addresses that are about to go, by itself or of a
// prefix. All of them stay.
func TestAUseOfWhatIsGivenBackIsSeen(t *testing.T) {
	for _, prefixed := range []bool{false, true} {
		for claimed, goes := range map[string]bool{"10.0.0.18": false, "10.0.9.9": true} {
			n := freeOn(t)
			for ip := range addressesOf(netip.MustParsePrefix("10.0.0.16/28")) {
				n.pool.adopt(0, ip, 0, prefixed)
				n.pool.free(n.pool.byAddress[ip])
			}
			n.warm.giveBack(time.Minute, 0, prefixSize, prefixed)
			listed := map[string]*Sandbox{"c1": {ID: "c1", Ready: true, Address: netip.MustParseAddr(claimed)}}
			n.driver.drainsRuntime(time.Minute, listed, n.Steps)
			if e := &n.ENIs[0]; e.Trimming != goes || e.RuntimeOK != goes {
				t.Errorf("of a prefix %v, a sandbox claims %s: they go: %v, and the runtime agrees: %v",
					prefixed, claimed, e.Trimming, e.RuntimeOK)
			}
		}
	}
}
