package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
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

// dumpTries bounds how often a dump is repeated that a change interrupted.
const dumpTries = 10

func retried[T any](dump func() (T, error)) (out T, err error) {
	for range dumpTries {
		if out, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, fmt.Errorf("interrupted %d times: %w", dumpTries, err)
}

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

// flush removes what a dump shows and keep does not want, by sending the dump's own messages back, as iproute2's flush does.
func (k *kernel) flush(dump, remove int, header nl.NetlinkRequestData, keep func(msg []byte) bool) error {
	messages, err := retried(func() ([][]byte, error) {
		r := nl.NewNetlinkRequest(dump, unix.NLM_F_DUMP)
		r.AddData(header)
		return r.Execute(unix.NETLINK_ROUTE, 0)
	})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, m := range messages {
		if keep(m) {
			continue
		}
		r := nl.NewNetlinkRequest(remove, unix.NLM_F_ACK)
		r.AddRawData(m)
		_, err := r.Execute(unix.NETLINK_ROUTE, 0)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) { // gone with another
			return fmt.Errorf("remove: %w", err)
		}
	}
	return nil
}

// flushRules keeps the kernel's own three.
func (k *kernel) flushRules(none) error {
	return k.flush(unix.RTM_GETRULE, unix.RTM_DELRULE, nl.NewIfInfomsg(unix.AF_INET), func(m []byte) bool {
		return len(m) < unix.SizeofRtMsg || byteOf(m[unix.SizeofRtMsg:], unix.FRA_PROTOCOL) == unix.RTPROT_KERNEL
	})
}

func (k *kernel) flushRoutes(table int) error {
	return k.flushTables(func(t uint32) bool { return t == uint32(table) })
}

func (k *kernel) flushTables(mine func(table uint32) bool) error {
	header := &nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET}}
	return k.flush(unix.RTM_GETROUTE, unix.RTM_DELROUTE, header, func(m []byte) bool {
		return len(m) < unix.SizeofRtMsg || !mine(tableOf(m))
	})
}

// tableOf is a route's table: eight bits of it are in the header, all of them in an attribute.
func tableOf(m []byte) uint32 {
	if a := attribute(m[unix.SizeofRtMsg:], unix.RTA_TABLE); len(a) == 4 {
		return nl.NativeEndian().Uint32(a)
	}
	return uint32(m[4])
}

func attribute(b []byte, kind uint16) []byte {
	attrs, err := nl.ParseRouteAttr(b)
	if err != nil {
		return nil
	}
	for _, a := range attrs {
		if a.Attr.Type&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER) == kind {
			return a.Value
		}
	}
	return nil
}

func byteOf(b []byte, kind uint16) byte {
	if a := attribute(b, kind); len(a) == 1 {
		return a[0]
	}
	return 0
}

func (h *helper) loseGateway(inode uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pods[inode]
	if p == nil {
		return nil
	}
	list, err := retried(func() ([]netlink.Neigh, error) { return p.nl.NeighList(0, unix.AF_INET) })
	if err != nil {
		return fmt.Errorf("neighbours of %s: %w", p.name, err)
	}
	gateway := net.IP(dataplane.Gateway().AsSlice())
	for i := range list {
		if !list[i].IP.Equal(gateway) {
			continue
		}
		if err := p.nl.NeighDel(&list[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove the neighbour %v of %s: %w", gateway, p.name, err)
		}
	}
	return nil
}

func (k *kernel) changeMAC(a macArgs) error {
	mac, err := net.ParseMAC(a.MAC)
	if err != nil {
		return err
	}
	link, err := k.find(a.Link)
	if link == nil {
		return err
	}
	if err := k.nl.LinkSetHardwareAddr(link, mac); err != nil {
		return fmt.Errorf("set the MAC of %s to %v: %w", a.Link, mac, err)
	}
	return nil
}

func (k *kernel) loseAlias(name string) error {
	link, err := k.find(name)
	if link == nil {
		return err
	}
	if err := k.nl.LinkSetAlias(link, ""); err != nil {
		return fmt.Errorf("remove the alias of %s: %w", name, err)
	}
	return nil
}

func (*helper) loseRecords(none) error {
	if err := os.Remove(Records); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
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
