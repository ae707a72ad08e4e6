package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/interference"
)

// loopback is lo's index in every namespace (the kernel's LOOPBACK_IFINDEX).
const loopback = 1

// cables is the group of the router's ends ("enil"), so that all of them go in one request.
const cables = 0x656e696c

// rtnl is a routing socket inside one namespace.
type rtnl struct {
	nl    *netlink.Handle
	ns    *os.File
	table int // of the routes that it makes
}

func dialRTNL(ns *os.File) (*rtnl, error) {
	r := &rtnl{ns: ns, table: unix.RT_TABLE_MAIN}
	err := control(ns, func(fd int) (err error) {
		r.nl, err = netlink.NewHandleAt(netns.NsHandle(fd), unix.NETLINK_ROUTE)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("routing socket: %w", err)
	}
	return r, nil
}

func (r *rtnl) close() { r.nl.Close() }

// at is a link as requests name it.
func at(index int32) *netlink.Device {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: int(index)}}
}

func (r *rtnl) up(index int32) error { return r.nl.LinkSetUp(at(index)) }

func (r *rtnl) down(index int32) error { return r.nl.LinkSetDown(at(index)) }

// end is one end of a cable.
type end struct {
	name string
	mac  []byte
	mtu  int
}

// cable makes a veth pair: near, up, with that index in this namespace; far, down, in the namespace node.
func (r *rtnl) cable(index int32, near, far end, node int) error {
	v := netlink.NewVeth(netlink.NewLinkAttrs())
	v.Index, v.Name, v.HardwareAddr, v.MTU, v.Flags, v.Group = int(index), near.name, near.mac, near.mtu, net.FlagUp, cables
	v.NumTxQueues, v.NumRxQueues = 1, 1 // of both ends; the default is one for each CPU that the machine could have
	v.PeerName, v.PeerHardwareAddr, v.PeerMTU, v.PeerNamespace = far.name, far.mac, uint32(far.mtu), netlink.NsFd(node)
	return r.nl.LinkAdd(v)
}

// remove removes a link; one that is gone is fine.
func (r *rtnl) remove(index int32) error { return gone(r.nl.LinkDel(at(index))) }

// removeCables removes all of them at once: the kernel waits for its readers once, not once for each. The library removes one.
func (r *rtnl) removeCables() error {
	return gone(Do(r.ns, func() error {
		m := nl.NewNetlinkRequest(unix.RTM_DELLINK, unix.NLM_F_ACK)
		m.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		m.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(cables)))
		_, err := m.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}))
}

// exists tells whether the link is there: the kernel removes it with the namespace of its other end.
func (r *rtnl) exists(index int32) (bool, error) {
	_, err := r.nl.LinkByIndex(int(index))
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return false, nil
	}
	return err == nil, err
}

// links are the namespace's.
func (r *rtnl) links() ([]netlink.Link, error) { return interference.Retried(r.nl.LinkList) }

// addresses of a link, IPv4.
func (r *rtnl) addresses(index int32) (out []netip.Addr, err error) {
	list, err := interference.Retried(func() ([]netlink.Addr, error) { return r.nl.AddrList(at(index), unix.AF_INET) })
	for _, a := range list {
		if a, ok := netip.AddrFromSlice(a.IP.To4()); ok {
			out = append(out, a)
		}
	}
	return out, err
}

// address puts a/32 on the loopback.
func (r *rtnl) address(a netip.Addr) error {
	return r.nl.AddrAdd(at(loopback), &netlink.Addr{IPNet: ipNet(a, 32)})
}

// unaddress takes it away; one that is gone is fine.
func (r *rtnl) unaddress(a netip.Addr) error {
	err := r.nl.AddrDel(at(loopback), &netlink.Addr{IPNet: ipNet(a, 32)})
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}
}

// blackhole swallows what no other route takes.
func (r *rtnl) blackhole() error {
	return r.nl.RouteAdd(&netlink.Route{Table: r.table, Dst: ipNet(netip.IPv4Unspecified(), 0), Type: unix.RTN_BLACKHOLE, Protocol: unix.RTPROT_STATIC})
}

// to is the route of one address to a link.
func (r *rtnl) to(a netip.Addr, index int32) *netlink.Route {
	return &netlink.Route{Table: r.table, Dst: ipNet(a, 32), LinkIndex: int(index), Scope: unix.RT_SCOPE_LINK, Protocol: unix.RTPROT_STATIC}
}

// route sends a to the link, whichever had it before. The router's own packets to it come from source.
func (r *rtnl) route(a netip.Addr, index int32, source netip.Addr) error {
	to := r.to(a, index)
	to.Src = source.AsSlice()
	return r.nl.RouteReplace(to)
}

func (r *rtnl) unroute(a netip.Addr, index int32) error { return gone(r.nl.RouteDel(r.to(a, index))) }

// routes of the table.
func (r *rtnl) routes() ([]netlink.Route, error) {
	return interference.Retried(func() ([]netlink.Route, error) {
		return r.nl.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: r.table}, netlink.RT_FILTER_TABLE)
	})
}

// rule makes all packets ask the table first.
func (r *rtnl) rule() error { return r.nl.RuleAdd(r.first()) }

// unrule removes the rule; one that is gone is fine.
func (r *rtnl) unrule() error { return gone(r.nl.RuleDel(r.first())) }

func (r *rtnl) first() *netlink.Rule {
	rule := netlink.NewRule()
	rule.Table, rule.Priority = r.table, rulePriority
	return rule
}

// flush removes all routes of the table.
func (r *rtnl) flush() error {
	return Do(r.ns, func() error {
		_, err := interference.FlushRoutes(r.table)
		return err
	})
}

// neighbour says once and for all which MAC has a.
func (r *rtnl) neighbour(a netip.Addr, index int32, mac []byte) error {
	return r.nl.NeighSet(&netlink.Neigh{LinkIndex: int(index), Family: unix.AF_INET, State: unix.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac})
}

func (r *rtnl) forget(a netip.Addr, index int32) error {
	return gone(r.nl.NeighDel(&netlink.Neigh{LinkIndex: int(index), Family: unix.AF_INET, IP: a.AsSlice()}))
}

// gone turns "it is not there" (link, route, neighbour) into success.
func gone(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
