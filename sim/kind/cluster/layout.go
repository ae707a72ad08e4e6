package cluster

import (
	"encoding/binary"
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

// relocate gives a scenario's VPC and subnets other addresses when this machine uses those of its nodes: how large a subnet is matters to a scenario,
// and not what it is called. A subnet as large as its VPC is halved: who looks at the pods from outside of it is in the other half.
func relocate(vpc []netip.Prefix, subnets []sim.Subnet, used []netip.Prefix) ([]netip.Prefix, []sim.Subnet, error) {
	vpc, subnets = slices.Clone(vpc), slices.Clone(subnets)
	if vpc[0].Bits() < largestVPC {
		return vpc, subnets, Lackingf("the scenario's VPC is %v: on kind, as in EC2, it is a /%d or smaller", vpc[0], largestVPC)
	}
	if first := &subnets[0].CIDR; first.Bits() <= vpc[0].Bits() {
		*first = netip.PrefixFrom(first.Addr(), vpc[0].Bits()+1)
	}
	l := layOut(vpc, subnets)
	for _, h := range l.homes {
		if h.subnet.Bits() > smallestHome {
			return vpc, subnets, Lackingf("the scenario's subnet %v has nodes: on kind such a subnet is a /%d or larger, for their machines have addresses in it", h.subnet, smallestHome)
		}
		stray := func(r netip.Prefix) bool { return r.Overlaps(h.machines) || !r.Overlaps(h.subnet) }
		if reserved := subnets[h.no].Prefixes; slices.ContainsFunc(reserved, stray) {
			return vpc, subnets, Lackingf("the scenario reserves %v: on kind its subnet is %v, in which the machines have %v",
				reserved, h.subnet, h.machines)
		}
	}
	wire := l.wire
	if wire.Bits() < vpc[0].Bits() || !vpc[0].Contains(wire.Addr()) {
		return vpc, subnets, Lackingf("the scenario has nodes in subnets outside of its VPC's first CIDR block, %v: on kind a Docker network is all subnets with nodes", vpc[0])
	}
	if _, taken := overlap(wire, used); !taken {
		return vpc, subnets, nil
	}
	for _, s := range candidates {
		other := netip.MustParsePrefix(s)
		if _, taken := overlap(other, slices.Concat(used, vpc[1:])); taken {
			continue
		}
		for i := range subnets {
			subnet := &subnets[i]
			if !vpc[0].Contains(subnet.CIDR.Addr()) {
				continue
			}
			subnet.CIDR = moved(subnet.CIDR, other)
			subnet.Prefixes = slices.Clone(subnet.Prefixes)
			for k := range subnet.Prefixes {
				subnet.Prefixes[k] = moved(subnet.Prefixes[k], other)
			}
		}
		vpc[0] = moved(vpc[0], other)
		return vpc, subnets, nil
	}
	return vpc, subnets, Lackingf("this machine uses the scenario's subnet %v, and all of %s: remove a Docker network", wire, strings.Join(candidates, ", "))
}

// largestVPC is how large a CIDR block of a VPC may be ("VPC CIDR blocks"), and how large candidates are.
const largestVPC = 16

// moved is p with the beginning of to, which is not smaller: as many bits of it as to has.
func moved(p, to netip.Prefix) netip.Prefix {
	from, base := p.Addr().As4(), to.Addr().As4()
	host := uint32(1)<<(32-to.Bits()) - 1
	at := binary.BigEndian.Uint32(from[:])&host | binary.BigEndian.Uint32(base[:])&^host
	return netip.PrefixFrom(netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, at))), p.Bits())
}
