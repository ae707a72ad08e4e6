package netns

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/vpc"
)

// deathTrap kills a daemon when it makes an EC2 request.
type deathTrap struct {
	node   *instance
	action ec2.Action
	after  bool
	id     int // of the action that set it
}

// trapped springs a trap that waits for this request.
func (w *World) trapped(n *instance, a ec2.Action, after bool) bool {
	for i, t := range w.armed {
		if t.node == n && (t.action == a || t.action == ec2.AnyAction) && t.after == after {
			w.armed = append(w.armed[:i:i], w.armed[i+1:]...)
			w.met(t.id, actions.Sprung(a, after))
			w.kill(n)
			return true
		}
	}
	return false
}

// arrive is a request that has left its node. answer is called once, with nil when the answer never comes.
func (w *World) arrive(n *instance, r ec2.Request, answer func(*ec2.Response)) {
	r.Caller = n.inst
	if w.trapped(n, r.Action, false) {
		answer(nil)
		return
	}
	release := n.keep()
	there, back := w.cloud.Travel(&r)
	w.after(there, func() {
		w.witness.Asked(w.cloud, n.no, &r)
		resp := w.cloud.Serve(w.now(), &r)
		w.witness.Served(w.cloud, n.no, &r, &resp)
		if resp.Code == "" && !n.dying && w.trapped(n, r.Action, true) {
			answer(nil)
			return
		}
		if resp.Lost {
			back = sdkTimeout
		}
		w.after(back, func() {
			release()
			if resp.Lost {
				answer(nil)
				return
			}
			answer(&resp)
		})
	})
}

// cloudEvent is something that happened at EC2: cables and routes come and go, and I4 is judged.
func (w *World) cloudEvent(e *ec2.Event) {
	n := w.byInst[e.Instance]
	if n != nil {
		n.dirty = true
		w.witness.Happened(w.cloud, n.no, e, n.livePod)
	}
	switch e.Kind {
	case ec2.ENICreated:
		w.assignAll(e.ENI)
	case ec2.AddressAssigned:
		w.fail(w.fabric.Assign(w.cloud.MAC(e.ENI), e.Address))
	case ec2.AddressUnassigned:
		w.fail(w.fabric.Unassign(e.Address))
	case ec2.ENIAttached:
		w.assignAll(e.ENI)
	case ec2.ENIDetachStarted:
		w.detaching(e.ENI)
	case ec2.LinkPlugged:
		w.plug(n, e.MAC)
	case ec2.LinkUnplugged:
		w.unplug(n, e.MAC)
	case ec2.InstanceTerminated:
		w.terminated(n)
	}
}

// assignAll routes an ENI's addresses to it.
func (w *World) assignAll(id ec2.ENIID) {
	e, ok := w.cloud.ENI(id)
	if !ok || !judge.Here(w.cloud, &e) {
		return
	}
	for _, a := range addressesOf(&e) {
		w.fail(w.fabric.Assign(e.MAC, a))
	}
}

// detaching: traffic ends here, long before the link is gone.
func (w *World) detaching(id ec2.ENIID) {
	v, ok := w.cloud.ENI(id)
	if !ok {
		return
	}
	for _, a := range addressesOf(&v) {
		w.fail(w.fabric.Unassign(a))
	}
}

// addressesOf are an ENI's; that of an Elastic Fabric Adapter has none.
func addressesOf(e *ec2.ENI) []netip.Addr {
	if !e.Primary.IsValid() {
		return nil
	}
	return append([]netip.Addr{e.Primary}, e.Secondaries...)
}

// MTUs in bytes: what a VPC carries, and what a driver starts with.
const (
	jumboMTU = 9001
	bootMTU  = 1500
)

func (w *World) plug(n *instance, mac string) {
	if n == nil || n.gone || n.links[mac] != "" {
		return
	}
	name := n.freeName()
	n.links[mac] = name
	n.mirror.Plug(mac)
	w.fail(w.fabric.Plug(n.box.Netns(), name, mac, jumboMTU))
	w.fail(vpc.SetMTU(n.box.Netns(), name, bootMTU))
	n.stir()
}

// freeName is the first ethN that no link has.
func (n *instance) freeName() string {
	taken := map[string]bool{}
	for _, name := range n.links {
		taken[name] = true
	}
	for i := 0; ; i++ {
		if name := fmt.Sprintf("eth%d", i); !taken[name] {
			return name
		}
	}
}

func (w *World) unplug(n *instance, mac string) {
	if n == nil {
		return
	}
	delete(n.links, mac)
	n.mirror.Unplug(mac)
	w.fail(w.fabric.Unplug(mac))
	n.stir()
}

// stir: the laboratory has changed the node's kernel, and the daemon will hear of it.
func (n *instance) stir() {
	n.dirty = true
	n.stirred = time.Now().Add(slowed(kernelTime))
}

// livePod names a pod whose containers run and that has the address; "" is none.
func (n *instance) livePod(a netip.Addr) string {
	for t := range n.cri.Sandboxes() {
		if t.Running && t.Address == a && t.Netns != 0 {
			return t.Name
		}
	}
	return ""
}

func (w *World) terminated(n *instance) {
	if n == nil || n.gone {
		return
	}
	w.met(n.endedBy, "EC2 has terminated the instance")
	w.tell(n, "the instance is terminated")
	if n.life != nil {
		w.witness.Died(n.life.Life)
		w.witness.Torn(n.life.Life)
		n.life = nil
	}
	n.gone = true
	w.fail(n.close(false))
}

// kubeEvent goes from the API server to the node's kubelet.
func (w *World) kubeEvent(e kube.Event) {
	if e.Node <= 0 || e.Node >= len(w.nodes) || w.nodes[e.Node].gone {
		return
	}
	kind := cri.PodBound
	switch e.Kind {
	case kube.PodDeleted:
		kind = cri.PodDeleted
	case kube.PodForceRemoved:
		kind = cri.PodForceRemoved
	}
	w.kubelet(w.nodes[e.Node], &cri.Input{Kind: kind, UID: e.UID, Namespace: e.Namespace, Name: e.Name, HostNetwork: e.HostNetwork, Grace: e.Grace})
}
