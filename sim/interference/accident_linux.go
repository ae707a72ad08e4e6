package interference

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
)

// dumpTries bounds how often a dump is repeated that a change interrupted.
const dumpTries = 10

// Retried is a dump that no change has interrupted.
func Retried[T any](dump func() (T, error)) (out T, err error) {
	for range dumpTries {
		if out, err = dump(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return out, err
		}
	}
	return out, fmt.Errorf("interrupted %d times: %w", dumpTries, err)
}

// Do has an accident happen in the network namespace of the calling thread, and says how many things there were to
// change.
func Do(a kernel.Accident) (int, error) {
	switch a.What {
	case kernel.FlushRules:
		return FlushRules()
	case kernel.FlushRoutes:
		return FlushRoutes(a.Table)
	case kernel.FlushNAT:
		return counted(FlushNAT())
	case kernel.DropARP:
		return DropARP()
	case kernel.DropForward:
		return counted(DropForward())
	case kernel.LoseGateway:
		return counted(LoseNeighbour(dataplane.Gateway()))
	case kernel.ChangeMAC:
		return counted(ChangeMAC(a.Link, a.MAC))
	case kernel.LoseAlias:
		return counted(LoseAlias(a.Link))
	case kernel.AddAddresses:
		return AddAddresses(dataplane.PodInterface, a.Addresses)
	}
	return 0, fmt.Errorf("nobody does %q to a real kernel", a.What)
}

func counted(had bool, err error) (int, error) {
	if had {
		return 1, err
	}
	return 0, err
}

// FlushRules removes all ip rules but the kernel's own three, and says how many.
func FlushRules() (int, error) {
	return flush(unix.RTM_GETRULE, unix.RTM_DELRULE, nl.NewIfInfomsg(unix.AF_INET), func(m []byte) bool {
		return len(m) < unix.SizeofRtMsg || byteOf(m[unix.SizeofRtMsg:], unix.FRA_PROTOCOL) == unix.RTPROT_KERNEL
	})
}

// FlushRoutes removes all routes of a table, and says how many.
func FlushRoutes(table int) (int, error) {
	return FlushTables(func(t uint32) bool { return t == uint32(table) })
}

// FlushTables removes all routes of the tables that mine names.
func FlushTables(mine func(table uint32) bool) (int, error) {
	header := &nl.RtMsg{RtMsg: unix.RtMsg{Family: unix.AF_INET}}
	return flush(unix.RTM_GETROUTE, unix.RTM_DELROUTE, header, func(m []byte) bool {
		return len(m) < unix.SizeofRtMsg || !mine(tableOf(m))
	})
}

// flush removes what a dump shows and keep does not want, by sending the dump's own messages back, as iproute2's flush does.
func flush(dump, remove int, header nl.NetlinkRequestData, keep func(msg []byte) bool) (gone int, err error) {
	messages, err := Retried(func() ([][]byte, error) {
		r := nl.NewNetlinkRequest(dump, unix.NLM_F_DUMP)
		r.AddData(header)
		return r.Execute(unix.NETLINK_ROUTE, 0)
	})
	if err != nil {
		return 0, fmt.Errorf("list: %w", err)
	}
	for _, m := range messages {
		if keep(m) {
			continue
		}
		r := nl.NewNetlinkRequest(remove, unix.NLM_F_ACK)
		r.AddRawData(m)
		_, err := r.Execute(unix.NETLINK_ROUTE, 0)
		if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOENT) { // gone with another
			return gone, fmt.Errorf("remove: %w", err)
		}
		if err == nil {
			gone++
		}
	}
	return gone, nil
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

// FlushNAT is "nft flush ruleset". It says whether there were tables.
func FlushNAT() (had bool, err error) {
	c, err := nftables.New()
	if err != nil {
		return false, err
	}
	tables, err := c.ListTables()
	if err != nil && !NoNFTables(err) {
		return false, fmt.Errorf("list the tables of nftables: %w", err)
	}
	c.FlushRuleset()
	if err := c.Flush(); err != nil && !NoNFTables(err) {
		return false, fmt.Errorf("flush nftables: %w", err)
	}
	return len(tables) > 0, nil
}

// DropForward is "iptables -P FORWARD DROP", where iptables is the one of nftables. It says whether the policy was
// another one.
func DropForward() (changed bool, err error) {
	c, err := nftables.New()
	if err != nil {
		return false, err
	}
	t := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "filter"}
	chain, policy := bases[t.Name], nftables.ChainPolicyDrop
	chain.Table, chain.Policy = t, &policy
	was, err := c.ListChain(t, chain.Name)
	if err == nil && was.Policy != nil && *was.Policy == policy {
		return false, nil
	}
	c.AddTable(t)
	c.AddChain(&chain)
	if err := c.Flush(); err != nil {
		return false, fmt.Errorf("set the policy of %s: %w", chain.Name, err)
	}
	return true, nil
}

// NoNFTables says that the kernel has no nftables, and so no tables either.
func NoNFTables(err error) bool {
	return errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)
}

// DropARP clears the table of neighbours, as "ip neigh flush all" and "ip neigh flush proxy" do: what is permanent or
// needs no ARP stays, proxy entries go. It says how many there were.
func DropARP() (count int, err error) {
	list, err := Retried(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_INET) })
	if err != nil {
		return 0, fmt.Errorf("neighbours: %w", err)
	}
	list = slices.DeleteFunc(list,
		func(n netlink.Neigh) bool { return n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 })
	proxies, err := Retried(func() ([]netlink.Neigh, error) { return netlink.NeighProxyList(0, unix.AF_INET) })
	if err != nil {
		return 0, fmt.Errorf("proxy neighbours: %w", err)
	}
	for _, n := range append(list, proxies...) {
		if err := netlink.NeighDel(&n); err != nil && !errors.Is(err, unix.ENOENT) {
			return count, fmt.Errorf("remove the neighbour %v: %w", n.IP, err)
		}
		count++
	}
	return count, nil
}

// LoseNeighbour removes an address from the neighbours of every link. It says whether one had it.
func LoseNeighbour(a netip.Addr) (had bool, err error) {
	list, err := Retried(func() ([]netlink.Neigh, error) { return netlink.NeighList(0, unix.AF_INET) })
	if err != nil {
		return false, fmt.Errorf("neighbours: %w", err)
	}
	for i := range list {
		if !list[i].IP.Equal(net.IP(a.AsSlice())) {
			continue
		}
		if err := netlink.NeighDel(&list[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return had, fmt.Errorf("remove the neighbour %v: %w", a, err)
		}
		had = true
	}
	return had, nil
}

// ChangeMAC gives a link another MAC. It says whether there was such a link that had another one.
func ChangeMAC(name, mac string) (changed bool, err error) {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return false, err
	}
	link, err := find(name)
	if link == nil {
		return false, err
	}
	if err := netlink.LinkSetHardwareAddr(link, hw); err != nil {
		return false, fmt.Errorf("set the MAC of %s to %v: %w", name, hw, err)
	}
	return link.Attrs().HardwareAddr.String() != hw.String(), nil
}

// LoseAlias takes a link's alias away. It says whether there was such a link that had one.
func LoseAlias(name string) (had bool, err error) {
	link, err := find(name)
	if link == nil {
		return false, err
	}
	if err := netlink.LinkSetAlias(link, ""); err != nil {
		return false, fmt.Errorf("remove the alias of %s: %w", name, err)
	}
	return link.Attrs().Alias != "", nil
}

// addedLabel marks the addresses that AddAddresses has added: a laboratory has to tell them from what the CNI gave.
const addedLabel = ":added"

// Added says whether AddAddresses has added an address.
func Added(a *netlink.Addr) bool { return strings.HasSuffix(a.Label, addedLabel) }

// AddAddresses gives a link more addresses. It says how many of them it did not have.
func AddAddresses(name string, list []netip.Addr) (count int, err error) {
	link, err := find(name)
	if link == nil {
		return 0, err
	}
	for _, a := range list {
		ip := &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
		err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ip, Label: name + addedLabel})
		if errors.Is(err, unix.EEXIST) {
			continue
		}
		if err != nil {
			return count, fmt.Errorf("add %v to %s: %w", a, name, err)
		}
		count++
	}
	return count, nil
}

// find is a link, nil when there is none of that name.
func find(name string) (netlink.Link, error) {
	link, err := netlink.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("link %s: %w", name, err)
	}
	return link, nil
}
