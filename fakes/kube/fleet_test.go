package kube_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/internal/must"
)

// fleet joins the API server to the kubelets; plugins answer at once.
type fleet struct {
	kube  *kube.Cluster
	nodes []*cri.Node
	now   time.Duration
	inode uint64
	steps int
	queue []todo
}

type todo struct {
	node int
	in   cri.Input
}

var kinds = [...]cri.InputKind{kube.PodBound: cri.PodBound, kube.PodDeleted: cri.PodDeleted, kube.PodForceRemoved: cri.PodForceRemoved}

func newFleet(n int) *fleet {
	f := &fleet{kube: kube.New(1)}
	for i := range n {
		f.nodes = append(f.nodes, cri.New(cri.Config{}, uint64(i)))
	}
	return f
}

func (f *fleet) do(node int, a *cri.Action) {
	switch a.Kind {
	case cri.MakeNetns:
		f.inode++
		f.queue = append(f.queue, todo{node, cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: f.inode}})
	case cri.RunPlugin:
		f.queue = append(f.queue, todo{node, cri.Input{Kind: cri.PluginDone, Op: a.Op, Address: netip.AddrFrom4([4]byte{10, 0, byte(node), byte(a.Netns)})}})
	case cri.PodStarted:
		f.kube.PodStarted(f.now, a.UID, a.Address)
	case cri.PodStopped:
		f.kube.PodStopped(f.now, a.UID)
	case cri.PodGone:
		f.kube.PodGone(f.now, a.UID)
	}
}

func (f *fleet) step(node int, in *cri.Input) {
	f.steps++
	out := f.nodes[node].Step(f.now, in)
	for i := range out {
		f.do(node, &out[i])
	}
}

// drain plays everything that needs no time.
func (f *fleet) drain() {
	for {
		for _, e := range f.kube.Events() {
			f.queue = append(f.queue, todo{e.Node, cri.Input{
				Kind: kinds[e.Kind], UID: e.UID, Namespace: e.Namespace, Name: e.Name, Grace: e.Grace, HostNetwork: e.HostNetwork,
			}})
		}
		if len(f.queue) == 0 {
			return
		}
		work := f.queue
		f.queue = nil
		for i := range work {
			f.step(work[i].node, &work[i].in)
		}
	}
}

// until goes on in ticks of 50 ms, which is enough for what is asked here.
func (f *fleet) until(at time.Duration) {
	f.drain()
	for f.now < at {
		f.now += 50 * time.Millisecond
		for i, n := range f.nodes {
			if due, ok := n.Next(); ok && due <= f.now {
				f.step(i, nil)
			}
		}
		f.drain()
	}
}

func (f *fleet) ready() (n int) {
	for _, node := range f.nodes {
		n += node.Ready()
	}
	return n
}

func (f *fleet) create(t testing.TB, s kube.Spec) {
	t.Helper()
	must.Do(t, f.kube.CreateWorkload(f.now, s))
}

// A force-deleted StatefulSet pod comes back by the same name while its old sandbox still runs; a
// gracefully deleted one only after its DEL.
func TestSameNameTwice(t *testing.T) {
	f := newFleet(1)
	f.create(t, kube.Spec{Name: "etcd1", Kind: kube.StatefulSet, Replicas: 1, Nodes: []int{0}})
	alive := func() (n int) {
		for s := range f.nodes[0].Sandboxes() {
			if s.Name == "etcd1-0" && s.OwesDEL {
				n++
			}
		}
		return n
	}
	f.until(time.Second)
	f.kube.ForceDelete(f.now, "etcd1-0")
	f.until(1500 * time.Millisecond)
	if n := alive(); n != 2 {
		t.Errorf("%d sandboxes of etcd1-0 after a force delete, expected 2", n)
	}
	f.until(10 * time.Second)
	f.kube.DeletePod(f.now, "etcd1-0", 0)
	for f.now < 20*time.Second {
		f.until(f.now + 50*time.Millisecond)
		if n := alive(); n > 1 {
			t.Fatalf("%d sandboxes of etcd1-0 at %v after a graceful deletion", n, f.now)
		}
	}
	if p, ok := f.kube.Find("etcd1-0"); !ok || p.Phase != kube.Running || !f.nodes[0].PodReady(p.UID) {
		t.Errorf("%+v", p)
	}
}

// Incident 6's fleet: 500 nodes, 0 to 23,000 pods at once, then all of them again.
func TestFleet(t *testing.T) {
	f := newFleet(500)
	nodes := make([]int, len(f.nodes))
	for i := range nodes {
		nodes[i] = i
	}
	f.create(t, kube.Spec{Name: "web", Replicas: 23_000, Nodes: nodes})
	f.until(time.Second)
	if f.ready() != 23_000 {
		t.Fatalf("%d of 23,000 pods are ready", f.ready())
	}
	f.kube.Roll(f.now, "web", 23_000)
	f.until(65 * time.Second)
	if f.ready() != 23_000 || f.kube.Len() != 23_000 {
		t.Errorf("after the roll: %d ready, %d objects", f.ready(), f.kube.Len())
	}
	for _, n := range f.nodes {
		if c := n.Counts(); c.Lost != 0 || c.ADDs != 92 {
			t.Fatalf("%+v", c)
		}
	}
}
