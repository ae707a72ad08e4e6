package kube

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

func names(pods []Pod) []string {
	var out []string
	for _, p := range pods {
		out = append(out, p.Name)
	}
	return out
}

func mustCreate(t *testing.T, c *Cluster, s Spec) {
	t.Helper()
	must.Do(t, c.CreateWorkload(0, s))
}

func TestPlacementIsRoundRobin(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 7, Nodes: []int{2, 0, 5}})
	var at []int
	for _, e := range c.Events() {
		if e.Kind != PodBound || e.Namespace != "default" || len(e.UID) != 36 {
			t.Errorf("%+v", e)
		}
		at = append(at, e.Node)
	}
	if !slices.Equal(at, []int{2, 0, 5, 2, 0, 5, 2}) {
		t.Errorf("placed on %v", at)
	}
	if len(c.ListPods(2)) != 3 || len(c.ListPods(0)) != 2 || len(c.ListPods(1)) != 0 || len(c.ListPods(99)) != 0 || len(c.ListPods(-1)) != 0 {
		t.Errorf("the lists of nodes 2 and 0 are %v, %v", c.ListPods(2), c.ListPods(0))
	}
	if len(c.Events()) != 0 {
		t.Errorf("events were not drained")
	}
}

func TestDeploymentReplacesAtOnce(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 2, Nodes: []int{0}})
	c.Events()
	old, _ := c.Find("web-0")
	if !c.DeletePod(time.Second, "web-0", 5*time.Second) || c.DeletePod(time.Second, old.Name, 0) {
		t.Fatal("the first deletion counts, the second does not")
	}
	ev := c.Events()
	if len(ev) != 2 || ev[0].Kind != PodDeleted || ev[0].UID != old.UID || ev[0].Grace != 5*time.Second || ev[1].Kind != PodBound || ev[1].Name == old.Name {
		t.Fatalf("%+v", ev)
	}
	if c.Len() != 3 {
		t.Errorf("%d objects, expected the old one to stay until its kubelet is done", c.Len())
	}
	c.PodGone(2*time.Second, old.UID)
	c.PodGone(2*time.Second, old.UID)
	if _, ok := c.Get(old.UID); ok || c.Len() != 2 || len(c.Events()) != 0 {
		t.Errorf("after PodGone: %d objects", c.Len())
	}
	if p, _ := c.Get(ev[1].UID); p.Created != time.Second {
		t.Errorf("created at %v", p.Created)
	}
}

// Seed 003: the name comes back, on the same node, only when the old object is gone.
func TestStatefulSetUsesTheNameAgain(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "etcd1", Namespace: "lijiaob", Kind: StatefulSet, Replicas: 1, Nodes: []int{3}})
	old, ok := c.Find("lijiaob/etcd1-0")
	if _, there := c.Find("etcd1-0"); !ok || there {
		t.Fatal("a name without a namespace is of the default namespace")
	}
	c.Events()
	c.DeletePod(time.Second, "lijiaob/etcd1-0", 0)
	if ev := c.Events(); len(ev) != 1 || ev[0].Kind != PodDeleted || ev[0].Grace != defaultGrace {
		t.Fatalf("%+v", ev)
	}
	c.PodGone(3*time.Second, old.UID)
	fresh, _ := c.Find("lijiaob/etcd1-0")
	if fresh.UID == old.UID || fresh.Name != "etcd1-0" || fresh.Node != 3 || fresh.Created != 3*time.Second {
		t.Errorf("%+v", fresh)
	}
}

func TestForceDeleteLeavesTheSandboxToKubelet(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "db", Kind: StatefulSet, Replicas: 2, Nodes: []int{0, 1}})
	c.Events()
	old, _ := c.Find("db-1")
	c.DeletePod(time.Second, "db-1", 0) // hangs in Terminating
	c.Events()
	if !c.ForceDelete(2*time.Second, "db-1") {
		t.Fatal("refused")
	}
	ev := c.Events()
	if len(ev) != 2 || ev[0].Kind != PodForceRemoved || ev[0].UID != old.UID || ev[0].Node != 1 || ev[1].Kind != PodBound || ev[1].Name != "db-1" {
		t.Fatalf("%+v", ev)
	}
	for _, p := range append(c.ListPods(0), c.ListPods(1)...) {
		if p.UID == old.UID {
			t.Errorf("the object is still listed")
		}
	}
	c.PodGone(time.Minute, old.UID) // kubelet's late word is stale news
	c.PodStarted(time.Minute, old.UID, netip.MustParseAddr("10.0.0.9"))
	if len(c.Events()) != 0 || c.Len() != 2 {
		t.Errorf("stale news had an effect")
	}
	if c.ForceDelete(0, "nothing") || c.DeletePod(0, "", 0) || c.ForceDelete(0, "db-9") {
		t.Errorf("a pod that is not was deleted")
	}
}

func TestScale(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "db", Kind: StatefulSet, Replicas: 3, Nodes: []int{0}})
	mustCreate(t, c, Spec{Name: "web", Replicas: 3, Nodes: []int{0}})
	c.Events()
	c.Scale(0, "db", 1)
	first := c.Pods("web")[0].Name
	c.Scale(0, "web", 1)
	var gone []string
	for _, e := range c.Events() {
		gone = append(gone, fmt.Sprint(e.Kind, " ", e.Name))
		c.PodGone(0, e.UID)
	}
	if len(gone) != 4 || gone[0] != "PodDeleted db-2" || gone[1] != "PodDeleted db-1" || c.Len() != 2 {
		t.Errorf("%v, %d left", gone, c.Len())
	}
	if got := names(c.Pods("web")); len(got) != 1 || got[0] != first {
		t.Errorf("the oldest web pod should stay: %v", got)
	}
	c.Scale(0, "db", 4)
	if got := names(c.Pods("db")); !slices.Equal(got, []string{"db-0", "db-1", "db-2", "db-3"}) {
		t.Errorf("%v", got)
	}
	if c.Scale(0, "nothing", 3) || !c.Scale(0, "db", -1) {
		t.Errorf("Scale of nothing, or to less than nothing")
	}
}

// Scaling up again while an ordinal's old object is still there waits for it.
func TestScaleWaitsForTheOldObject(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "db", Kind: StatefulSet, Replicas: 2, Nodes: []int{0}})
	old, _ := c.Find("db-1")
	c.Scale(0, "db", 1)
	c.Scale(0, "db", 2)
	c.Events()
	if got := names(c.Pods("db")); len(got) != 2 {
		t.Errorf("%v", got)
	}
	c.PodGone(0, old.UID)
	if p, ok := c.Find("db-1"); !ok || p.UID == old.UID {
		t.Errorf("db-1 did not come back")
	}
}

// A StatefulSet that shrinks while its lowest pod is going still gives the higher one up: the lower one comes back.
func TestScaleDownWhileALowOrdinalGoes(t *testing.T) {
	c := New(1)
	must.Do(t, c.CreateWorkload(0, Spec{Name: "db", Kind: StatefulSet, Replicas: 1, Nodes: []int{1}}))
	first := c.Pods("db")[0].UID
	for _, replicas := range []int{0, 2, 1} {
		c.Scale(0, "db", replicas)
	}
	c.PodGone(0, first)
	for _, p := range c.Pods("db") {
		if p.Deleting {
			c.PodGone(0, p.UID)
		}
	}
	if left := c.Pods("db"); len(left) != 1 || left[0].Name != "db-0" || left[0].Deleting {
		t.Errorf("expected db-0 alone, found %+v", left)
	}
}

func TestRollTakesTheOldest(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 4, Nodes: []int{0, 1}})
	before := slices.Clone(c.Pods("web"))
	c.Events()
	if n := c.Roll(0, "web", 3); n != 3 {
		t.Fatalf("rolled %d", n)
	}
	for i, e := range c.Events()[:3] {
		if e.Kind != PodDeleted || e.UID != before[i].UID {
			t.Errorf("%d: %+v", i, e)
		}
		c.PodGone(0, e.UID)
	}
	if got := c.Pods("web"); len(got) != 4 || got[0].UID != before[3].UID {
		t.Errorf("%+v", got)
	}
	if c.Roll(0, "web", 100) != 4 || c.Roll(0, "nothing", 1) != 0 {
		t.Errorf("Roll takes what there is")
	}
}

func TestCordon(t *testing.T) {
	c := New(1)
	c.Cordon(0, 0, true)
	c.Cordon(0, -5, true)
	mustCreate(t, c, Spec{Name: "web", Replicas: 2, Nodes: []int{0}})
	if len(c.Events()) != 0 || !c.Cordoned(0) {
		t.Fatal("placed on a cordoned node")
	}
	p, _ := c.Find("web-0")
	if p.Node != -1 || p.Phase != Pending {
		t.Errorf("%+v", p)
	}
	if !c.ForceDelete(0, "web-0") || len(c.Events()) != 0 || c.Len() != 2 {
		t.Errorf("a waiting pod goes without a word to any kubelet, and is replaced")
	}
	c.Cordon(0, 0, false)
	if ev := c.Events(); len(ev) != 2 || ev[0].Node != 0 {
		t.Errorf("%+v", ev)
	}
	mustCreate(t, c, Spec{Name: "spread", Replicas: 2, Nodes: []int{0, 1}})
	c.Cordon(0, 1, true)
	c.Events()
	c.Roll(0, "spread", 2)
	for _, e := range c.Events() {
		if e.Kind == PodBound && e.Node != 0 {
			t.Errorf("placed on node %d", e.Node)
		}
	}
}

func TestStatus(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 1, Nodes: []int{0}})
	p, _ := c.Find("web-0")
	a := netip.MustParseAddr("10.0.10.7")
	c.PodStarted(0, p.UID, a)
	if p, _ = c.Get(p.UID); p.Phase != Running || p.Address != a {
		t.Errorf("%+v", p)
	}
	c.PodStopped(0, p.UID)
	if p, _ = c.Get(p.UID); p.Phase != Pending || p.Address != a {
		t.Errorf("%+v", p)
	}
}

func TestCreateRefuses(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 1, Nodes: []int{0}})
	for _, s := range []Spec{
		{Name: "web", Nodes: []int{0}},
		{Nodes: []int{0}},
		{Name: "x", Replicas: -1, Nodes: []int{0}},
		{Name: "x", Replicas: 1},
		{Name: "x", Replicas: 1, Nodes: []int{-1}},
		{Name: "x", Replicas: 1, Nodes: []int{nodeLimit}},
	} {
		if c.CreateWorkload(0, s) == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
	if got := c.Workloads(); !slices.Equal(got, []string{"web"}) {
		t.Errorf("%v", got)
	}
}

func TestFindNth(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 3, Nodes: []int{0}})
	second := c.Pods("web")[1]
	for name, found := range map[string]bool{
		"web-1": true, "default/web-1": true, second.Name: true, "web-3": false, "web-x": false, "web-": false,
		"other/web-1": false, "web": false, "web-9999999": false, "/": false, "-0": false,
	} {
		if p, ok := c.Find(name); ok != found || ok && p.UID != second.UID {
			t.Errorf("Find(%q) = %v, %v", name, p.Name, ok)
		}
	}
}

// play does random things and returns what could be seen.
func play(c *Cluster, seed rng, steps int) []string {
	r := seed
	var seen []string
	for i := range steps {
		now := time.Duration(i) * time.Second
		name := []string{"web", "db", "none"}[r.next()%3]
		pod := fmt.Sprint(name, "-", r.next()%6)
		switch r.next() % 9 {
		case 0:
			c.Scale(now, name, int(r.next()%8))
		case 1, 2:
			c.DeletePod(now, pod, 0)
		case 3:
			c.ForceDelete(now, pod)
		case 4:
			c.Roll(now, name, int(r.next()%4))
		case 5:
			c.Cordon(now, int(r.next()%4), r.next()%2 == 0)
		default:
			for _, p := range c.ListPods(int(r.next() % 4)) {
				if p.Deleting {
					c.PodGone(now, p.UID)
					break
				}
			}
		}
		for _, e := range c.Events() {
			seen = append(seen, fmt.Sprint(e))
		}
	}
	return seen
}

func check(t *testing.T, c *Cluster) {
	t.Helper()
	total, onNodes := 0, 0
	for _, w := range c.Workloads() {
		pods := c.Pods(w)
		total += len(pods)
		li := c.byLoad[w]
		wl := &c.workloads[li]
		deleting, waiting := 0, 0
		seen := map[string]bool{}
		for _, p := range pods {
			if p.Deleting {
				deleting++
			}
			if p.Node < 0 {
				waiting++
			}
			if seen[p.Name] {
				t.Fatalf("two objects called %s", p.Name)
			}
			seen[p.Name] = true
		}
		if len(pods) != wl.count || deleting != wl.deleting {
			t.Fatalf("%s: %d pods, %d deleting, counted %d and %d", w, len(pods), deleting, wl.count, wl.deleting)
		}
		if wl.Kind == Deployment && len(pods)-deleting != wl.Replicas {
			t.Fatalf("%s: %d live pods of %d", w, len(pods)-deleting, wl.Replicas)
		}
		onNodes -= waiting
	}
	for n := range c.nodes {
		total -= len(c.ListPods(n))
	}
	if total+onNodes != 0 || len(c.byName) != c.Len() {
		t.Fatalf("%d objects are on no list, %d names of %d", total+onNodes, len(c.byName), c.Len())
	}
}

func TestRandomWalkCloneAndDeterminism(t *testing.T) {
	make := func() *Cluster {
		c := New(9)
		mustCreate(t, c, Spec{Name: "web", Replicas: 5, Nodes: []int{0, 1, 2}})
		mustCreate(t, c, Spec{Name: "db", Kind: StatefulSet, Replicas: 3, Nodes: []int{1, 3}})
		return c
	}
	a, b := make(), make()
	if one := play(a, 1, 5000); !slices.Equal(one, play(b, 1, 5000)) || len(one) < 1000 {
		t.Fatalf("the same seed told two stories, or none: %d events", len(one))
	}
	check(t, a)
	for i := range 50 {
		x, y, z := a.Clone(), a.Clone(), a.Clone()
		first := play(x, rng(i), 50)
		play(y, rng(i+1000), 50)
		if !slices.Equal(first, play(z, rng(i), 50)) {
			t.Fatalf("fork %d: a clone was disturbed", i)
		}
		play(a, rng(i+2000), 20)
		check(t, a)
	}
}

func BenchmarkPodLife(b *testing.B) {
	nodes := make([]int, 500)
	for i := range nodes {
		nodes[i] = i
	}
	c := New(1)
	must.Do(b, c.CreateWorkload(0, Spec{Name: "web", Replicas: 23_000, Nodes: nodes}))
	c.Events()
	b.ReportAllocs()
	for b.Loop() {
		c.Roll(0, "web", 1)
		for _, e := range c.Events() {
			if e.Kind == PodDeleted {
				c.PodGone(0, e.UID)
			}
		}
	}
}

func BenchmarkClone23000(b *testing.B) {
	c := New(1)
	must.Do(b, c.CreateWorkload(0, Spec{Name: "web", Replicas: 23_000, Nodes: []int{0, 1, 2}}))
	b.ReportAllocs()
	for b.Loop() {
		c.Clone()
	}
}

func BenchmarkListPods(b *testing.B) {
	c := New(1)
	must.Do(b, c.CreateWorkload(0, Spec{Name: "web", Replicas: 46, Nodes: []int{0}}))
	for b.Loop() {
		c.ListPods(0)
	}
}

// TestScaleDownSparesWhoRuns: who of a burst came first does not decide who goes.
func TestScaleDownSparesWhoRuns(t *testing.T) {
	c := New(1)
	mustCreate(t, c, Spec{Name: "web", Replicas: 5, Nodes: []int{0}})
	pods := slices.Clone(c.Pods("web"))
	run := func(i int) { c.PodStarted(0, pods[i].UID, netip.MustParseAddr("10.0.0.9")) }
	stay := func(replicas int, want ...int) {
		t.Helper()
		c.Scale(0, "web", replicas)
		var have []int
		for i, p := range pods {
			if q, ok := c.Get(p.UID); ok && !q.Deleting {
				have = append(have, i)
			}
		}
		if !slices.Equal(have, want) {
			t.Errorf("of %d replicas %v stay, expected %v", replicas, have, want)
		}
	}
	run(1)
	run(2)
	run(4)
	stay(4, 0, 1, 2, 4) // of two that do not run the newer goes
	stay(2, 1, 2)       // the one that does not run goes, and of those that run the newest
	c.Cordon(0, 0, true)
	c.Scale(0, "web", 4)
	pods = slices.DeleteFunc(slices.Clone(c.Pods("web")), func(p Pod) bool { return p.Deleting })
	c.PodStopped(0, pods[0].UID)
	if len(pods) != 4 || pods[2].Node >= 0 || pods[3].Node >= 0 {
		t.Fatalf("%+v, expected two without a node", pods)
	}
	stay(3, 0, 1, 2) // of two without a node the newer goes
	stay(2, 0, 1)    // and the other before one that has a node and does not run
	stay(1, 1)
	stay(0)
}
