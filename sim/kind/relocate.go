package kind

import (
	"fmt"
	"net/netip"
	"strings"
)

// relocate gives a scenario's VPC and subnet other addresses when this machine uses theirs: how large a subnet is matters to a scenario, and
// not what it is called.
func relocate(vpc, subnet netip.Prefix, used []netip.Prefix) (netip.Prefix, netip.Prefix, error) {
	if _, taken := overlap(subnet, used); !taken {
		return vpc, subnet, nil
	}
	for _, s := range candidates {
		other := netip.MustParsePrefix(s)
		if _, taken := overlap(other, used); !taken {
			return other, netip.PrefixFrom(other.Addr(), max(subnet.Bits(), other.Bits())), nil
		}
	}
	return vpc, subnet, lacking("this machine uses the scenario's subnet %v, and all of %s: remove a Docker network", subnet, strings.Join(candidates, ", "))
}

// relocated are the scenario's VPC and subnet on this machine.
func (w *World) relocated() (netip.Prefix, netip.Prefix, error) {
	s := w.scenario
	used, err := usedPrefixes(w.ctx)
	if err != nil {
		return s.VPC, s.Subnet, fmt.Errorf("which addresses does this machine use: %w", err)
	}
	vpc, subnet, err := relocate(s.VPC, s.Subnet, used)
	if subnet != s.Subnet {
		w.log("this machine uses %v: the subnet is %v", s.Subnet, subnet)
	}
	return vpc, subnet, err
}
