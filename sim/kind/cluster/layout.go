package cluster

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
)

// segment is the link by which each container is on the Docker network.
const segment = "eth0"

// imdsAddr is the metadata's on a node, the real one.
const imdsAddr = "169.254.169.254"

// layout is who has which address. All nodes are on one Docker network, whatever subnet each is in.
type layout struct {
	vpc     []netip.Prefix
	subnets []sim.Subnet
	homes   []home       // the subnets that nodes are in
	wire    netip.Prefix // the Docker network's: all homes
	host    netip.Addr   // the Docker host's: the third address of the first home, where EC2 has the VPC's resolver
}

// home is a subnet that nodes are in.
type home struct {
	no       int // of the layout's subnets
	subnet   netip.Prefix
	router   netip.Addr   // the VPC's: the second address, as in EC2
	machines netip.Prefix // device 0 of the nodes has addresses of it, and EC2's model gives out none
}

func newHome(no int, s *sim.Subnet) home {
	h := home{no: no, subnet: s.CIDR, router: s.CIDR.Addr().Next()}
	// The second sixteenth of a large subnet is far from EC2's own addresses; a small one gives a quarter, or half of it.
	b := h.subnet.Addr().As4()
	b[3] += 32
	h.machines = netip.PrefixFrom(netip.AddrFrom4(b), 27)
	if h.subnet.Bits() >= 26 {
		b[3] -= 16
		h.machines = netip.PrefixFrom(netip.AddrFrom4(b), 28)
	}
	return h
}

// dockers is how many of a home's machine addresses Docker may give to containers that are no nodes, such as the load balancer of several control planes.
const dockers = 4

// address is that of device 0 of the n-th worker, or of a control plane: the first one is 0, and further ones, below 0, have what Docker leaves.
func (l *layout) address(n int) netip.Addr {
	a := l.homeOf(n).machines.Addr()
	for range dockers + n {
		a = a.Next()
	}
	return a
}

// homeOf is where the n-th worker is, from 1; control planes, 0 and below, are in the first home.
func (l *layout) homeOf(n int) *home {
	c := sim.Cluster{Subnets: l.subnets}
	at := c.HomeOf(max(n, 1))
	return &l.homes[max(0, slices.IndexFunc(l.homes, func(h home) bool { return n > 0 && h.no == at }))]
}

// layOut is a VPC with these subnets, the first of which nodes are in.
func layOut(vpc []netip.Prefix, subnets []sim.Subnet) layout {
	l := layout{vpc: vpc, subnets: subnets}
	for i := range subnets {
		if s := &subnets[i]; i == 0 || s.Nodes {
			l.homes = append(l.homes, newHome(i, s))
		}
	}
	l.host = l.homes[0].router.Next()
	l.wire = l.homes[0].subnet
	for _, h := range l.homes[1:] {
		for !l.wire.Contains(h.subnet.Addr()) || l.wire.Bits() > h.subnet.Bits() {
			l.wire = netip.PrefixFrom(l.wire.Addr(), l.wire.Bits()-1).Masked()
		}
	}
	return l
}

// launched says which instance a node of that number is, from 0: the first control plane, the workers, then further control planes.
func launched(number, workers int) int {
	if number < 0 {
		return workers - number
	}
	return number
}

// smallestHome is how small a subnet with nodes may be: see newHome.
const smallestHome = 27

// candidates are VPCs to choose from.
var candidates = strings.Fields("10.0.0.0/16 10.96.0.0/16 10.160.0.0/16 10.224.0.0/16 172.26.0.0/16 192.168.0.0/16")

func overlap(p netip.Prefix, used []netip.Prefix) (netip.Prefix, bool) {
	for _, u := range used {
		if u.Overlaps(p) {
			return u, true
		}
	}
	return netip.Prefix{}, false
}
