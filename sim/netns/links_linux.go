package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/vpc"
)

// addLoopback gives a namespace's loopback an address; one that it has is fine.
func addLoopback(ns *os.File, a netip.Addr) error {
	return vpc.Do(ns, func() error {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: netlink.NewIPNet(a.AsSlice())})
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give lo the address %v: %w", a, err)
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
