package netns

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/fakes/kube/apiserver"
	kubeserver "github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/sim/machine"
)

// bell is closed and exchanged when what the API server shows has changed. The loop rings it; servers ask for it.
type bell struct {
	shown uint64 // the loop's: a digest of what was there when it rang last

	mu sync.Mutex
	ch chan struct{}
}

func (b *bell) changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// ring wakes the watches, if something has changed. Where there are none, as for our own daemon, nothing is looked at.
func (b *bell) ring(shown func() uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		return
	}
	if now := shown(); now != b.shown {
		b.shown = now
		close(b.ch)
		b.ch = nil
	}
}

// shown is a digest of what the API server shows: the model counts its own changes, the rest is the machines'.
func (c *wholeCluster) shown() uint64 {
	w := c.w
	h := fnv.New64a()
	put := func(v uint64) {
		for ; v > 0; v >>= 8 {
			_, _ = h.Write([]byte{byte(v)})
		}
		_, _ = h.Write([]byte{0})
	}
	put(w.Kube.Changes())
	for _, n := range w.nodes[1:] {
		put(uint64(n.Settings.MaxPods) << 1)
		if n.Gone {
			put(uint64(n.No))
		}
	}
	return h.Sum64()
}

// nodeInfo is a node's object; the loop asks for it.
func (n *instance) nodeInfo() kubeserver.NodeInfo {
	w := n.w
	in, _ := w.EC2.InstanceOf(n.Instance)
	labels, annotations, _ := w.Kube.Marks(int(n.No))
	return kubeserver.NodeInfo{Labels: labels, Annotations: annotations, UID: n.Name(), MaxPods: n.Settings.MaxPods, Cordoned: w.Kube.Cordoned(int(n.No)), Address: in.PrimaryAddress,
		Instance: string(in.ID), Type: in.Type, Zone: in.Zone}
}

// kubeBackend is the API server.
type kubeBackend struct{ *backend }

// read looks at the models, for who reaches the API server.
func (b kubeBackend) read(look func()) (err error) {
	ok := b.n.w.mail.Ask(func() {
		if look(); b.n.w.Kube.Away(b.n.w.now()) {
			err = errAway
		}
	})
	if !ok {
		err = machine.ErrClosed
	}
	return err
}

func (b kubeBackend) Pods(_ context.Context, name string) (pods []kube.Pod, err error) {
	err = b.read(func() {
		if name == b.n.Name() {
			pods = append(pods, b.n.w.Kube.ListPods(int(b.n.No))...)
		}
	})
	return pods, err
}

func (b kubeBackend) Node(_ context.Context, name string) (info kubeserver.NodeInfo, ok bool, err error) {
	err = b.read(func() { info, ok = b.n.nodeInfo(), name == b.n.Name() && !b.n.Gone })
	return info, ok, err
}

// ENIConfig is asked for with the node object, before an ENI is made.
func (b kubeBackend) ENIConfig(_ context.Context, name string) (e kube.ENIConfig, ok bool, err error) {
	err = b.read(func() { e, _, ok = b.n.w.Kube.ENIConfig(name) })
	return e, ok, err
}

// errAway ends a connection without an answer.
var errAway = errors.New("the API server is away")

// Changed never comes: what a verb changes of a node object under a daemon that runs are labels and annotations, and a daemon reads them when it
// needs them. One that starts reads it anew.
func (b kubeBackend) Changed() <-chan struct{} { return nil }

// capacious is nodeInfo with as many pods as EKS lets a node of that type have, where no number was given: a kubelet
// always says a number.
func (n *instance) capacious() kubeserver.NodeInfo {
	info := n.nodeInfo()
	if limits, ok := ec2.LimitsOf(info.Type); ok && info.MaxPods == 0 {
		info.MaxPods = limits.ENIs*(limits.IPv4PerENI-1) + 2 // two are of the host's network
	}
	return info
}

// epoch is the wall clock's time at the world's beginning, in what the models date.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// WholeCluster is what an API server for others' daemons shows (apiserver.New): every node and every pod.
func (w *World) WholeCluster() apiserver.Cluster { return &w.api }

// wholeCluster is a world's.
type wholeCluster struct {
	w         *World
	bell      bell
	elsewhere *apiserver.Objects // see otherObjects
}

// Look gives all objects as they are.
func (c *wholeCluster) Look(context.Context) (out apiserver.Objects, err error) {
	if !c.w.mail.Ask(func() { out = c.objects() }) {
		return apiserver.Objects{}, machine.ErrClosed
	}
	return out, nil
}

// Changed is closed at the next change of what Look gives.
func (c *wholeCluster) Changed() <-chan struct{} { return c.bell.changed() }

func (c *wholeCluster) objects() (out apiserver.Objects) {
	w := c.w
	for n := range w.nodes.living() {
		out.Nodes = append(out.Nodes, apiserver.NodeOf(n.Name(), n.capacious(), epoch))
	}
	for _, e := range w.Kube.ENIConfigs() {
		out.Custom = append(out.Custom, apiserver.ENIConfigOf(&e))
	}
	others := c.otherObjects()
	out.Nodes = append(out.Nodes, others.Nodes...)
	out.Pods = append(out.Pods, others.Pods...)
	for _, load := range w.Kube.Workloads() {
		kind := w.Kube.KindOf(load)
		pods := w.Kube.Pods(load)
		for i := range pods {
			var name string
			var host netip.Addr
			if on := pods[i].Node; on > 0 && on < len(w.nodes) {
				in, _ := w.EC2.InstanceOf(w.nodes[on].Instance)
				name, host = w.nodes[on].Name(), in.PrimaryAddress
			}
			out.Pods = append(out.Pods, apiserver.PodOf(&pods[i], kind, name, host, epoch))
		}
	}
	return out
}

// otherNetwork has the addresses of the nodes and pods that exist only in the API server; no machine has them.
var otherNetwork = netip.MustParseAddr("100.64.0.1")

// otherObjects are the nodes and pods that the API server has beside the scenario's own, as those of a large cluster.
// They are objects and nothing else: no kubelet runs them, and they never change.
func (c *wholeCluster) otherObjects() *apiserver.Objects {
	w := c.w
	if c.elsewhere != nil {
		return c.elsewhere
	}
	out := &apiserver.Objects{}
	address := otherNetwork
	next := func() netip.Addr { address = address.Next(); return address }
	hosts := make([]netip.Addr, w.Cluster.OtherNodes)
	zone := ""
	if len(w.nodes) > 1 {
		in, _ := w.EC2.InstanceOf(w.nodes[1].Instance)
		zone = in.Zone
	}
	name := func(i int) string { return fmt.Sprintf("other-node-%d", i+1) }
	for i := range hosts {
		hosts[i] = next()
		out.Nodes = append(out.Nodes, apiserver.NodeOf(name(i), kubeserver.NodeInfo{UID: name(i), Address: hosts[i], Instance: fmt.Sprintf("i-0f%015x", i+1), Type: w.Cluster.Type, Zone: zone}, epoch))
	}
	for i := range w.Cluster.OtherPods {
		p := kube.Pod{UID: fmt.Sprintf("0000000f-0000-4000-a000-%012x", i+1), Namespace: kube.DefaultNamespace, Name: fmt.Sprintf("other-%d", i+1), Workload: fmt.Sprintf("other-%d", i/20+1),
			Node: -1, Phase: kube.Running, Address: next()}
		on, host := "", netip.Addr{}
		if len(hosts) > 0 {
			on, host = name(i%len(hosts)), hosts[i%len(hosts)]
		} else {
			p.Phase, p.Address = kube.Pending, netip.Addr{}
		}
		out.Pods = append(out.Pods, apiserver.PodOf(&p, kube.Deployment, on, host, epoch))
	}
	c.elsewhere = out
	return out
}
