package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/sim/interference"
)

// network is the node's network namespace, as its machine and third parties see it. What changes it does not use what
// the daemon uses.
type network struct {
	nl  *netlink.Handle
	eye *linux.Kernel // observes, never applies
}

// open opens the namespace of the calling thread, which is the node's.
func (k *network) open() (err error) {
	if k.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	if k.eye, err = linux.Open(linux.Options{}); err != nil {
		return fmt.Errorf("open the kernel: %w", err)
	}
	return nil
}

func (k *network) observe(none) (dataplane.Observation, error) { return k.eye.Observe() }

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
func (k *network) find(name string) (netlink.Link, error) {
	link, err := k.nl.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	return link, nil
}

func (k *network) configurePrimary(a addressArgs) error {
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

func (*network) addThirdParty(none) ([]string, error) { return interference.AddThirdParty() }

func (*network) thirdParty(none) (map[string]string, error) { return interference.ThirdParty() }

// knows says whether there is a pod's namespace: one that is gone has nothing to change.
func (h *helper) knows(inode uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pods[inode] != nil
}

func (h *helper) interfere(a kernel.Accident) (count int, err error) {
	if !a.What.Inside() {
		return interference.Do(a)
	}
	if !h.knows(a.Netns) {
		return 0, nil
	}
	err = h.within(a.Netns, func() (err error) { count, err = interference.Do(a); return err })
	return count, err
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
