package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/vpc"
)

// addLink gives a link an address; one that it has is fine.
func addLink(ns *os.File, name string, a netip.Prefix) error {
	return vpc.Do(ns, func() error {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}})
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give %s the address %v: %w", name, a, err)
		}
		return nil
	})
}

// renameLink renames a link that is down.
func renameLink(ns *os.File, from, to string) error {
	return vpc.Do(ns, func() error {
		l, err := netlink.LinkByName(from)
		if err == nil {
			err = netlink.LinkSetName(l, to)
		}
		if err != nil {
			return fmt.Errorf("rename %s to %s: %w", from, to, err)
		}
		return nil
	})
}
