package kube

import (
	"net/netip"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

func TestReadyCountsPodsThatRunAndStay(t *testing.T) {
	c := New(1)
	must.Do(t, c.CreateWorkload(0, Spec{Name: "web", Replicas: 3, Nodes: []int{1}}))
	want := func(n int, when string) {
		t.Helper()
		have := 0
		for _, p := range c.Pods("web") {
			if p.Phase == Running && !p.Deleting {
				have++
			}
		}
		if c.Ready() != n || have != n {
			t.Fatalf("%s: Ready() = %d, by counting %d, want %d", when, c.Ready(), have, n)
		}
	}
	var uids []string
	for _, p := range c.Pods("web") {
		uids = append(uids, p.UID)
	}
	for _, u := range uids {
		c.PodStarted(0, u, netip.MustParseAddr("10.0.0.9"))
	}
	c.PodStarted(0, uids[0], netip.MustParseAddr("10.0.0.9")) // repeated
	want(3, "all run")
	c.PodStopped(0, uids[0])
	c.PodStopped(0, uids[0])
	want(2, "one stopped")
	c.Roll(0, "web", 2)
	want(1, "the stopped and another one are being deleted")
	c.PodGone(0, uids[1])
	c.PodGone(0, uids[0])
	want(1, "they are gone")
	if p, ok := c.Get(uids[2]); ok {
		c.ForceDelete(0, p.Name)
	}
	want(0, "the last was forced away")
}
