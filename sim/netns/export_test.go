package netns

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/vpc"
)

// Spot is where a pod is.
type Spot struct {
	Pod       string
	Node      int
	Inode     uint64 // of its network namespace
	Address   netip.Addr
	MAC       string // of the ENI that has the address
	Secondary bool   // that ENI
}

// Network is the VPC.
func (w *World) Network() *vpc.Network { return w.network }

// Primary is the primary ENI of a node: its MAC and the node's own address.
func (w *World) Primary(i int) (mac string, a netip.Addr) {
	in, _ := w.EC2.InstanceOf(w.nodes[i].Instance)
	return in.PrimaryMAC, in.PrimaryAddress
}

// Pods are the pods that run, by name.
func (w *World) Pods() []Spot {
	var out []Spot
	for _, n := range w.nodes[1:] {
		for t := range n.CRI.Sandboxes() {
			id, ok := w.EC2.HasAddress(n.Instance, t.Address)
			if !ok || !t.Running {
				continue
			}
			mac := w.EC2.MAC(id)
			out = append(out, Spot{Pod: t.Name, Node: int(n.No), Inode: t.Netns, Address: t.Address, MAC: mac, Secondary: mac != n.mac})
		}
	}
	slices.SortFunc(out, func(a, b Spot) int { return strings.Compare(a.Pod, b.Pod) })
	return out
}

// Instance is a node's.
func (w *World) Instance(i int) ec2.InstanceID { return w.nodes[i].Instance }
