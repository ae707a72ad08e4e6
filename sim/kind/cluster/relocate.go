package cluster

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
)

// Relocate gives a scenario's VPC and subnets other addresses when this machine uses those of its nodes: how large a subnet is matters to a scenario,
// and not what it is called. A subnet as large as its VPC is halved: who looks at the pods from outside of it is in the other half.
func Relocate(vpc []netip.Prefix, subnets []sim.Subnet, used []netip.Prefix) ([]netip.Prefix, []sim.Subnet, error) {
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
