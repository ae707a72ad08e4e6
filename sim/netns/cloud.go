package netns

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/vpc"
)

// arrive is a request that has left its node. answer is called once, with nil when the answer never comes.
func (w *World) arrive(n *instance, r ec2.Request, answer func(*ec2.Response)) {
	r.Caller = n.Instance
	if w.Trapped(&n.Node, r.Action, false) {
		answer(nil)
		return
	}
	release := n.keep()
	there, back := w.EC2.Travel(&r)
	w.after(there, func() {
		w.witness.Asked(w.EC2, n.No, &r)
		resp := w.EC2.Serve(w.now(), &r)
		w.witness.Served(w.EC2, n.No, &r, &resp)
		if resp.Code == "" && !n.dying && w.Trapped(&n.Node, r.Action, true) {
			answer(nil)
			return
		}
		if resp.Lost {
			back = models.SDKTimeout
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

// Happened: cables and routes come and go, and I4 is judged.
func (w *World) Happened(m *models.Node, e *ec2.Event) {
	var n *instance
	if m != nil {
		n = w.nodes[m.No]
		w.witness.Happened(w.EC2, n.No, e, n.livePod)
	}
	switch e.Kind {
	case ec2.ENICreated:
		w.assignAll(e.ENI)
	case ec2.AddressAssigned:
		w.fail(w.fabric.Assign(w.EC2.MAC(e.ENI), e.Address))
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
	e, ok := w.EC2.ENI(id)
	if !ok || !judge.Here(w.EC2, &e) {
		return
	}
	for _, a := range addressesOf(&e) {
		w.fail(w.fabric.Assign(e.MAC, a))
	}
}

// detaching: traffic ends here, long before the link is gone.
func (w *World) detaching(id ec2.ENIID) {
	v, ok := w.EC2.ENI(id)
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
	if n == nil || n.Gone || n.links[mac] != "" {
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
	n.Dirty = true
	n.stirred = time.Now().Add(slowed(kernelTime))
}

// livePod names a pod whose containers run and that has the address; "" is none.
func (n *instance) livePod(a netip.Addr) string {
	for t := range n.CRI.Sandboxes() {
		if t.Running && t.Address == a && t.Netns != 0 {
			return t.Name
		}
	}
	return ""
}

func (w *World) terminated(n *instance) {
	if n == nil || n.Gone {
		return
	}
	w.Ended(&n.Node)
	w.tell(n, "the instance is terminated")
	if n.life != nil {
		w.witness.Died(n.life.Life)
		w.witness.Torn(n.life.Life)
		n.life = nil
	}
	w.fail(n.close(false))
}
