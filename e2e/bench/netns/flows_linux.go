package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"

	"github.com/enilab/enilab/sim/vpc"
)

// enterFlows enters flows of UDP between strangers into the node's conntrack, which no packet made, and says how many: the machine may take fewer
// (net.netfilter.nf_conntrack_max).
func (m *machine) enterFlows(want int) (made int, err error) {
	e := vpc.Do(m.box.Netns(), func() error {
		h, err := netlink.NewHandle(syscall.NETLINK_NETFILTER)
		if err != nil {
			return err
		}
		defer h.Close()
		to := net.IPv4(100, 127, 0, 1).To4() // the library sends as many bytes as it is given
		for ; made < want; made++ {
			from, port := net.IPv4(100, 64, byte(made>>8&31), byte(made)).To4(), uint16(1024+made%60_000)
			err := h.ConntrackCreate(netlink.ConntrackTable, netlink.FAMILY_V4, &netlink.ConntrackFlow{FamilyType: syscall.AF_INET, TimeOut: 3600,
				Forward: netlink.IPTuple{Protocol: syscall.IPPROTO_UDP, SrcIP: from, DstIP: to, SrcPort: port, DstPort: 53},
				Reverse: netlink.IPTuple{Protocol: syscall.IPPROTO_UDP, SrcIP: to, DstIP: from, SrcPort: 53, DstPort: port}})
			if errors.Is(err, syscall.ENOMEM) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("enter flow %d: %w", made, err)
			}
		}
		return nil
	})
	return made, e
}
