package netns_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/netns"
)

// detached is a third party that detaches an ENI with pods on it.
const detached = `# A stranger detaches an ENI that pods live on.
cluster nodes=1 type=m5.large subnet=10.0.40.0/24 runtime=containerd
config  MAX_ENI=2                                  # 9 pods an ENI
start   pods web 14 on node-1
always  "every assigned address is on an attached eni"
always  "every live pod is reachable"
`

// pingIn bounds an answer to a ping, in real time.
const pingIn = 2 * time.Second

// answering says which pods answer a ping from the router.
func answering(w *netns.World, pods []netns.Spot) map[string]bool {
	var asked []netip.Addr
	for _, p := range pods {
		asked = append(asked, p.Address)
	}
	out := map[string]bool{}
	for i, ok := range w.Network().Ping(asked, pingIn) {
		out[pods[i].Pod] = ok
	}
	return out
}

// expectAnswers holds what pods do against what they should do.
func expectAnswers(t *testing.T, w *netns.World, when string, pods []netns.Spot, want func(netns.Spot) bool) {
	t.Helper()
	got := answering(w, pods)
	for _, p := range pods {
		if got[p.Pod] != want(p) {
			t.Errorf("%s: %s (%v on a %s ENI) answers: %v, expected %v", when, p.Pod, p.Address, eni(p.Secondary), got[p.Pod], want(p))
		}
	}
}

func all(netns.Spot) bool { return true }

// broken are the invariants that were violated.
func broken(v *sim.Verdict) map[judge.ID]bool {
	out := map[judge.ID]bool{}
	for _, b := range v.Violations {
		out[b.Invariant] = true
	}
	return out
}

// While EC2 is down nothing can be repaired: the pods are out of reach, and the auditors say so. Afterwards it is.
func TestDetachedWhileEC2IsDown(t *testing.T) {
	if testing.Short() {
		t.Skip("plays a quarter of an hour")
	}
	w, r := begin(t, detached+`
at 1m   ec2 down for=7m
at 1m1s ec2 detach node=1 device=1
at 12m  expect node-1 pods.ready == 14
`)
	r.To(30*time.Second, nil)
	pods := w.Pods()
	expectAnswers(t, w, "before", pods, all)
	r.To(2*time.Minute, nil)
	expectAnswers(t, w, "detached", pods, func(p netns.Spot) bool { return !p.Secondary })
	v := r.Finish(nil)
	if b := broken(v); len(b) != 2 || !b[judge.I3] || !b[judge.I10] {
		t.Errorf("expected violations of I3 and I10 alone, found %v", v.Violations)
	}
	expectAnswers(t, w, "once EC2 is back", pods, all)
}

// Otherwise the daemon attaches it again, in time.
func TestDetachedIsAttachedAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("plays ten minutes")
	}
	w, r := begin(t, detached+`
at 1m   ec2 detach node=1 device=1
at 5m   expect node-1 pods.ready == 14
reaches eni-restored
`)
	r.To(30*time.Second, nil)
	pods := w.Pods()
	if v := r.Finish(nil); !v.Held() {
		t.Errorf("expected that everything holds, found %+v\n%s", v, w.Story())
	}
	expectAnswers(t, w, "attached again", pods, all)
}
