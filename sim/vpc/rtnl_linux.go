package vpc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// loopback is lo's index in every namespace (the kernel's LOOPBACK_IFINDEX).
const loopback = 1

// cables is the group of the router's ends ("enil"), so that all of them go in one request.
const cables = 0x656e696c

// rtnl is a routing socket inside one namespace.
type rtnl struct {
	conn  *netlink.Conn
	table byte // of the routes that it makes
}

func dialRTNL(ns *os.File) (*rtnl, error) {
	var c *netlink.Conn
	err := control(ns, func(fd int) (err error) {
		c, err = netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{NetNS: fd})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("routing socket: %w", err)
	}
	return &rtnl{c, unix.RT_TABLE_MAIN}, nil
}

func (r *rtnl) close() error { return r.conn.Close() }

// do sends one request and waits for its acknowledgement.
func (r *rtnl) do(kind uint16, flags netlink.HeaderFlags, head []byte, attrs func(*netlink.AttributeEncoder)) error {
	body, err := encode(head, attrs)
	if err != nil {
		return err
	}
	_, err = r.conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | netlink.Acknowledge | flags}, Data: body,
	})
	return err
}

func encode(head []byte, attrs func(*netlink.AttributeEncoder)) ([]byte, error) {
	if attrs == nil {
		return head, nil
	}
	e := netlink.NewAttributeEncoder()
	attrs(e)
	body, err := e.Encode()
	return append(head, body...), err
}

// linkHead is struct ifinfomsg (rtnetlink(7)); flags are set and the only ones that change.
func linkHead(index int32, flags uint32) []byte {
	b := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint32(b[8:], flags)
	binary.NativeEndian.PutUint32(b[12:], flags)
	return b
}

func (r *rtnl) up(index int32) error {
	return r.do(unix.RTM_NEWLINK, 0, linkHead(index, unix.IFF_UP), nil)
}

func (r *rtnl) down(index int32) error {
	head := linkHead(index, unix.IFF_UP)
	binary.NativeEndian.PutUint32(head[8:], 0)
	return r.do(unix.RTM_NEWLINK, 0, head, nil)
}

// vethPeer is VETH_INFO_PEER (linux/veth.h).
const vethPeer = 1

// end is one end of a cable.
type end struct {
	name string
	mac  []byte
	mtu  int
}

func (d end) encode(e *netlink.AttributeEncoder) {
	e.String(unix.IFLA_IFNAME, d.name)
	e.Bytes(unix.IFLA_ADDRESS, d.mac)
	e.Uint32(unix.IFLA_MTU, uint32(d.mtu))
	e.Uint32(unix.IFLA_NUM_TX_QUEUES, 1) // the default is one for each CPU that the machine could have
	e.Uint32(unix.IFLA_NUM_RX_QUEUES, 1)
}

// cable makes a veth pair: near, up, with that index in this namespace; far, down, in the namespace node.
func (r *rtnl) cable(index int32, near, far end, node int) error {
	return r.do(unix.RTM_NEWLINK, netlink.Create|netlink.Excl, linkHead(index, unix.IFF_UP), func(e *netlink.AttributeEncoder) {
		near.encode(e)
		e.Uint32(unix.IFLA_GROUP, cables)
		e.Nested(unix.IFLA_LINKINFO, func(e *netlink.AttributeEncoder) error {
			e.String(unix.IFLA_INFO_KIND, "veth")
			e.Nested(unix.IFLA_INFO_DATA, func(e *netlink.AttributeEncoder) error {
				e.Do(vethPeer, func() ([]byte, error) {
					return encode(linkHead(0, 0), func(e *netlink.AttributeEncoder) {
						far.encode(e)
						e.Uint32(unix.IFLA_NET_NS_FD, uint32(node))
					})
				})
				return nil
			})
			return nil
		})
	})
}

// remove removes a link; one that is gone is fine.
func (r *rtnl) remove(index int32) error {
	return gone(r.do(unix.RTM_DELLINK, 0, linkHead(index, 0), nil))
}

// removeCables removes all of them at once: the kernel waits for its readers once, not once for each.
func (r *rtnl) removeCables() error {
	return gone(r.do(unix.RTM_DELLINK, 0, linkHead(0, 0), func(e *netlink.AttributeEncoder) { e.Uint32(unix.IFLA_GROUP, cables) }))
}

// exists tells whether the link is there: the kernel removes it with the namespace of its other end.
func (r *rtnl) exists(index int32) (bool, error) {
	_, err := r.conn.Execute(netlink.Message{ // the link is the acknowledgement
		Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request}, Data: linkHead(index, 0),
	})
	if errors.Is(err, unix.ENODEV) {
		return false, nil
	}
	return err == nil, err
}

// address puts a/32 on the loopback.
func (r *rtnl) address(a netip.Addr) error {
	return r.loopbackAddress(unix.RTM_NEWADDR, netlink.Create|netlink.Excl, a)
}

// unaddress takes it away; one that is gone is fine.
func (r *rtnl) unaddress(a netip.Addr) error {
	err := r.loopbackAddress(unix.RTM_DELADDR, 0, a)
	if errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}

func (r *rtnl) loopbackAddress(kind uint16, flags netlink.HeaderFlags, a netip.Addr) error {
	head := make([]byte, unix.SizeofIfAddrmsg)
	head[0], head[1] = unix.AF_INET, 32
	binary.NativeEndian.PutUint32(head[4:], loopback)
	return r.do(kind, flags, head, func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.IFA_LOCAL, a.AsSlice())
		e.Bytes(unix.IFA_ADDRESS, a.AsSlice())
	})
}

// routeHead is struct rtmsg (rtnetlink(7)).
func routeHead(bits, scope, kind byte) []byte {
	return []byte{unix.AF_INET, bits, 0, 0, unix.RT_TABLE_MAIN, unix.RTPROT_STATIC, scope, kind, 0, 0, 0, 0}
}

func (r *rtnl) routeHead(bits, scope, kind byte) []byte {
	b := routeHead(bits, scope, kind)
	b[4] = r.table
	return b
}

// blackhole swallows what no other route takes.
func (r *rtnl) blackhole() error {
	return r.do(unix.RTM_NEWROUTE, netlink.Create|netlink.Excl, r.routeHead(0, unix.RT_SCOPE_UNIVERSE, unix.RTN_BLACKHOLE), nil)
}

// route sends a to the link, whichever had it before. The router's own packets to it come from source.
func (r *rtnl) route(a netip.Addr, index int32, source netip.Addr) error {
	return r.do(unix.RTM_NEWROUTE, netlink.Create|netlink.Replace, r.routeHead(32, unix.RT_SCOPE_LINK, unix.RTN_UNICAST), func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.RTA_DST, a.AsSlice())
		e.Uint32(unix.RTA_OIF, uint32(index))
		e.Bytes(unix.RTA_PREFSRC, source.AsSlice())
	})
}

func (r *rtnl) unroute(a netip.Addr, index int32) error {
	return gone(r.do(unix.RTM_DELROUTE, 0, r.routeHead(32, unix.RT_SCOPE_LINK, unix.RTN_UNICAST), func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.RTA_DST, a.AsSlice())
		e.Uint32(unix.RTA_OIF, uint32(index))
	}))
}

// rule makes all packets ask the table first.
func (r *rtnl) rule() error { return r.changeRule(unix.RTM_NEWRULE, netlink.Create|netlink.Excl) }

// unrule removes the rule; one that is gone is fine.
func (r *rtnl) unrule() error { return gone(r.changeRule(unix.RTM_DELRULE, 0)) }

func (r *rtnl) changeRule(kind uint16, flags netlink.HeaderFlags) error {
	head := []byte{unix.AF_INET, 0, 0, 0, r.table, 0, 0, unix.FR_ACT_TO_TBL, 0, 0, 0, 0} // struct fib_rule_hdr (linux/fib_rules.h)
	return r.do(kind, flags, head, func(e *netlink.AttributeEncoder) { e.Uint32(unix.FRA_PRIORITY, rulePriority) })
}

// flush removes all routes of the table.
func (r *rtnl) flush() error {
	routes, err := r.routes()
	if err != nil {
		return err
	}
	var errs []error
	for _, route := range routes {
		errs = append(errs, gone(r.do(unix.RTM_DELROUTE, 0, route, nil)))
	}
	return errors.Join(errs...)
}

// neighbourHead is struct ndmsg (rtnetlink(7)).
func neighbourHead(index int32, state uint16) []byte {
	b := make([]byte, unix.SizeofNdMsg)
	b[0] = unix.AF_INET
	binary.NativeEndian.PutUint32(b[4:], uint32(index))
	binary.NativeEndian.PutUint16(b[8:], state)
	return b
}

// neighbour says once and for all which MAC has a.
func (r *rtnl) neighbour(a netip.Addr, index int32, mac []byte) error {
	return r.do(unix.RTM_NEWNEIGH, netlink.Create|netlink.Replace, neighbourHead(index, unix.NUD_PERMANENT), func(e *netlink.AttributeEncoder) {
		e.Bytes(unix.NDA_DST, a.AsSlice())
		e.Bytes(unix.NDA_LLADDR, mac)
	})
}

func (r *rtnl) forget(a netip.Addr, index int32) error {
	return gone(r.do(unix.RTM_DELNEIGH, 0, neighbourHead(index, 0), func(e *netlink.AttributeEncoder) { e.Bytes(unix.NDA_DST, a.AsSlice()) }))
}

// gone turns "it is not there" (link, route, neighbour) into success.
func gone(err error) error {
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
