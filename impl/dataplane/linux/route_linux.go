package linux

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

// ensureRoute is the message that adds a route, or makes it the first of its destination.
func ensureRoute(r *netlink.Request, op *dataplane.Op, index, table int) {
	scope := byte(unix.RT_SCOPE_UNIVERSE)
	if !op.Via.IsValid() {
		scope = unix.RT_SCOPE_LINK
	}
	r.Route(unix.RTM_NEWROUTE, unix.NLM_F_CREATE|unix.NLM_F_REPLACE|unix.NLM_F_ACK, op.Dst.Bits(), unix.RTPROT_STATIC, scope, unix.RTN_UNICAST)
	r.IP(unix.RTA_DST, op.Dst.Masked().Addr())
	r.U32(unix.RTA_OIF, uint32(index))
	r.U32(unix.RTA_TABLE, uint32(table))
	if op.Via.IsValid() {
		r.IP(unix.RTA_GATEWAY, op.Via)
	}
}

func (a *applier) ensureRoute(op *dataplane.Op) error {
	if !op.Dst.IsValid() || op.Table <= 0 {
		return failed(dataplane.Invalid, "a route needs a destination and a table")
	}
	d, err := a.device(op.Alias, op.MAC, op.Link)
	if err != nil {
		return err
	}
	ensureRoute(a.r.Reset(), op, d.index, op.Table)
	err = a.s.Do(a.r)
	if netlink.Is(err, unix.EEXIST) { // it is there, behind another of the same destination: it has to come first
		if err = a.deleteRoutes(op.Table, op.Dst, d.index, 0); err == nil {
			ensureRoute(a.r.Reset(), op, d.index, op.Table)
			err = a.s.Do(a.r)
		}
	}
	if netlink.Is(err, unix.ENETUNREACH) || netlink.Is(err, unix.EINVAL) && op.Via.IsValid() {
		return a.whyUnreachable(d.index, err)
	}
	return err
}

// whyUnreachable tells a link that is down, whose routes are gone, from a gateway that is elsewhere. A
// gateway that is an address of the host itself is refused with EINVAL.
func (a *applier) whyUnreachable(index int, why error) error {
	d, err := byIndex(a.s, a.r, index)
	switch {
	case err != nil:
		return err
	case d.index == 0:
		return errNoLink
	case !d.up:
		return failed(dataplane.LinkDown, "the link is down")
	}
	return failed(dataplane.Unreachable, "no route of the link covers the gateway: "+why.Error())
}

// sameDestination bounds how many routes of one table and destination are removed.
const sameDestination = 64

// deleteRoutes removes the routes to a destination that lead to a link, or, without one, those of a type
// that have none.
func (a *applier) deleteRoutes(table int, dst netip.Prefix, index int, typ byte) error {
	for range sameDestination {
		a.r.Reset().Route(unix.RTM_DELROUTE, unix.NLM_F_ACK, dst.Bits(), unix.RTPROT_UNSPEC, unix.RT_SCOPE_NOWHERE, typ)
		a.r.IP(unix.RTA_DST, dst.Masked().Addr())
		a.r.U32(unix.RTA_TABLE, uint32(table))
		if index != 0 {
			a.r.U32(unix.RTA_OIF, uint32(index))
		}
		if err := a.s.Do(a.r); netlink.Is(err, unix.ESRCH) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// removeRoute needs no dump: the kernel compares the link itself. No route leads to a link that is gone,
// for it died with it; what may be left are those that never had one.
func (a *applier) removeRoute(op *dataplane.Op) error {
	if !op.Dst.IsValid() || op.Table <= 0 {
		return nil
	}
	d, err := a.routeDevice(op)
	if err != nil {
		return err
	}
	if d.index != 0 {
		if err = a.deleteRoutes(op.Table, op.Dst, d.index, 0); err != nil {
			return err
		}
	}
	for _, typ := range deviceless {
		if err = a.deleteRoutes(op.Table, op.Dst, 0, typ); err != nil {
			return err
		}
	}
	return nil
}

// deviceless are the types of routes that lead to no link.
var deviceless = [...]byte{unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT, unix.RTN_THROW}

// routeDevice is the link whose route may be removed, or none. A veth whose alias a third party cleared still
// counts by its name; one with another alias is another attachment's.
func (a *applier) routeDevice(op *dataplane.Op) (device, error) {
	d, err := a.device(op.Alias, op.MAC, op.Link)
	if err != errNoLink || op.Alias == "" {
		if err == errNoLink {
			err = nil
		}
		return d, err
	}
	d, err = a.k.roster.name(op.Link)
	if d.alias != "" {
		d = device{}
	}
	return d, err
}

// routeView is one RTM_NEWROUTE.
type routeView struct {
	table, index int
	bits, tos    int
	typ          byte
	protocol     byte
	dst, via     netip.Addr
}

func (v *routeView) parse(body []byte) bool {
	if len(body) < unix.SizeofRtMsg || body[0] != unix.AF_INET {
		return false
	}
	*v = routeView{bits: int(body[1]), tos: int(body[3]), table: int(body[4]), protocol: body[5], typ: body[7], dst: netip.IPv4Unspecified()}
	for c := netlink.Attributes(body[unix.SizeofRtMsg:]); c.Next(); {
		switch c.Kind {
		case unix.RTA_TABLE:
			v.table = int(c.U32())
		case unix.RTA_DST:
			v.dst = c.IP()
		case unix.RTA_OIF:
			v.index = int(c.U32())
		case unix.RTA_GATEWAY:
			v.via = c.IP()
		case unix.RTA_VIA:
			v.via = otherFamily(c.Value)
		case unix.RTA_MULTIPATH:
			v.firstHop(c.Value)
		}
	}
	return v.dst.IsValid()
}

// otherFamily is the gateway of an IPv4 route by IPv6 (struct rtvia).
func otherFamily(b []byte) netip.Addr {
	if len(b) < 2 {
		return netip.Addr{}
	}
	a, _ := netip.AddrFromSlice(b[2:])
	return a
}

// firstHop stands for all of a multipath route (struct rtnexthop): nothing we write is one.
func (v *routeView) firstHop(b []byte) {
	if len(b) < unix.SizeofRtNexthop {
		return
	}
	v.index = int(netlink.Native.Uint32(b[4:]))
	size := min(int(netlink.Native.Uint16(b)), len(b))
	for c := netlink.Attributes(b[unix.SizeofRtNexthop:max(size, unix.SizeofRtNexthop)]); c.Next(); {
		if c.Kind == unix.RTA_GATEWAY {
			v.via = c.IP()
		}
	}
}

// observed says whether an Observation has words for a route: not the local table, what the kernel
// makes of addresses, or routes for a type of service.
func (v *routeView) observed() bool {
	if v.table == unix.RT_TABLE_LOCAL || v.tos != 0 {
		return false
	}
	switch v.typ {
	case unix.RTN_UNICAST, unix.RTN_BLACKHOLE, unix.RTN_UNREACHABLE, unix.RTN_PROHIBIT, unix.RTN_THROW:
		return true
	}
	return false
}

// askRoutes asks for the routes of one table, or of all (0).
func askRoutes(r *netlink.Request, table int) *netlink.Request {
	r.Reset().Route(unix.RTM_GETROUTE, unix.NLM_F_DUMP, 0, 0, 0, 0)
	if table != 0 {
		r.U32(unix.RTA_TABLE, uint32(table))
	}
	return r
}

// routed is the link that main leads an address to by a route of its own, 0 when there is none. Of several the kernel takes the first.
func (a *applier) routed(addr netip.Addr) (index int, err error) {
	var v routeView
	err = retry(func() error {
		index = 0
		return a.s.Dump(askRoutes(a.r, unix.RT_TABLE_MAIN), func(body []byte) {
			if index == 0 && v.parse(body) && v.bits == 32 && v.dst == addr {
				index = v.index
			}
		})
	})
	return index, err
}
