package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/sim/interference"
)

// kernel is the node's network namespace, as its machine and strangers see it. What changes it does not use what the daemon uses.
type kernel struct {
	nl  *netlink.Handle
	eye *linux.Kernel // observes, never applies
}

// open opens the namespace of the calling thread, which is the node's.
func (k *kernel) open() (err error) {
	if k.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	if k.eye, err = linux.Open(linux.Options{}); err != nil {
		return fmt.Errorf("open the kernel: %w", err)
	}
	return nil
}

func (k *kernel) observe(none) (dataplane.Observation, error) { return k.eye.Observe() }

// linkUp sets a link of the handle's namespace up.
func linkUp(h *netlink.Handle, name string) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set %s up: %w", name, err)
	}
	return nil
}

// find is a link, nil when there is none of that name.
func (k *kernel) find(name string) (netlink.Link, error) {
	link, err := k.nl.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	return link, nil
}

func (k *kernel) configurePrimary(a addressArgs) error {
	link, err := k.find(a.Name)
	if err != nil {
		return err
	}
	if link == nil {
		return fmt.Errorf("the node has no link %s", a.Name)
	}
	if !a.Address.Addr().Is4() || !a.Gateway.Is4() {
		return fmt.Errorf("address %v and gateway %v have to be IPv4", a.Address, a.Gateway)
	}
	if err := k.nl.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", a.Name, err)
	}
	ip := &net.IPNet{IP: a.Address.Addr().AsSlice(), Mask: net.CIDRMask(a.Address.Bits(), 32)}
	if err := k.nl.AddrReplace(link, &netlink.Addr{IPNet: ip}); err != nil {
		return fmt.Errorf("address %v of %s: %w", a.Address, a.Name, err)
	}
	everywhere := &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}
	err = k.nl.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: everywhere, Gw: a.Gateway.AsSlice()})
	if err != nil {
		return fmt.Errorf("default route by %v of %s: %w", a.Gateway, a.Name, err)
	}
	return nil
}

func (*kernel) flushRules(none) (int, error) { return interference.FlushRules() }

func (*kernel) flushRoutes(table int) (int, error) { return interference.FlushRoutes(table) }

func (*kernel) addThirdParty(none) ([]string, error) { return interference.AddThirdParty() }

func (*kernel) thirdParty(none) (map[string]string, error) { return interference.ThirdParty() }

func (*kernel) flushNAT(none) (bool, error) { return interference.FlushNAT() }

func (*kernel) changeMAC(a macArgs) (bool, error) { return interference.ChangeMAC(a.Link, a.MAC) }

func (*kernel) loseAlias(name string) (bool, error) { return interference.LoseAlias(name) }

// knows says whether there is a pod's namespace: one that is gone has nothing to change.
func (h *helper) knows(inode uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pods[inode] != nil
}

func (h *helper) addAddresses(a addArgs) (count int, err error) {
	if !h.knows(a.Inode) {
		return 0, nil
	}
	err = h.within(a.Inode, func() (err error) { count, err = interference.AddAddresses(dataplane.PodInterface, a.List); return err })
	return count, err
}

func (h *helper) loseGateway(inode uint64) (had bool, err error) {
	if !h.knows(inode) {
		return false, nil
	}
	err = h.within(inode, func() (err error) { had, err = interference.LoseNeighbour(dataplane.Gateway()); return err })
	return had, err
}

func (*helper) loseRecords(none) (had bool, err error) {
	err = os.Remove(Records)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (*helper) writeFile(a fileArgs) error {
	if err := os.MkdirAll(path.Dir(a.Path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(a.Path, a.Data, 0o600)
}

func (*helper) readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxBytes {
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", name, info.Size(), maxBytes)
	}
	return os.ReadFile(name)
}
