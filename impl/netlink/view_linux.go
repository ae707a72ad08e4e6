package netlink

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// skipStatistics leaves out what makes a link's message four times as long (RTEXT_FILTER_SKIP_STATS).
const skipStatistics = 1 << 3

// VethKind is the kind of a link that is one end of a pair.
const VethKind = "veth"

// DevconfRPFilter is IPV4_DEVCONF_RP_FILTER (linux/ip.h). In a dump the values begin at 1; in a request
// each is an attribute of that number.
const DevconfRPFilter = 8

// Link is one RTM_NEWLINK, as parts of the message.
type Link struct {
	Index             int
	Flags             uint32
	MTU, RPFilter     int
	Group             uint32
	Peer              int  // index of a veth's other end, in its namespace
	NetNSID           int  // of that namespace, as this one numbers them; -1 when it is this one, or gone
	Crosses           bool // that namespace is another one, or was
	Name, Alias, Kind []byte
	MAC               []byte
}

// Up says whether the link is configured to be up.
func (v *Link) Up() bool { return v.Flags&unix.IFF_UP != 0 }

// Veth says whether it is one end of a pair.
func (v *Link) Veth() bool { return string(v.Kind) == VethKind }

// Loopback says whether it is lo.
func (v *Link) Loopback() bool { return v.Flags&unix.IFF_LOOPBACK != 0 }

// Parse reads struct ifinfomsg and what follows it.
func (v *Link) Parse(body []byte) bool {
	if len(body) < unix.SizeofIfInfomsg {
		return false
	}
	*v = Link{Index: int(Native.Uint32(body[4:])), Flags: Native.Uint32(body[8:]), NetNSID: -1}
	for c := Attributes(body[unix.SizeofIfInfomsg:]); c.Next(); {
		switch c.Kind {
		case unix.IFLA_IFNAME:
			v.Name = c.Text()
		case unix.IFLA_IFALIAS:
			v.Alias = c.Text()
		case unix.IFLA_ADDRESS:
			v.MAC = c.Value
		case unix.IFLA_MTU:
			v.MTU = int(c.U32())
		case unix.IFLA_GROUP:
			v.Group = c.U32()
		case unix.IFLA_LINK:
			v.Peer = int(c.U32())
		case unix.IFLA_LINK_NETNSID:
			v.NetNSID, v.Crosses = int(int32(c.U32())), true
		case unix.IFLA_LINKINFO:
			v.Kind = kindOfLink(c.Value)
		case unix.IFLA_AF_SPEC:
			v.RPFilter = reversePathFilter(c.Value)
		}
	}
	return true
}

func kindOfLink(info []byte) []byte {
	for c := Attributes(info); c.Next(); {
		if c.Kind == unix.IFLA_INFO_KIND {
			return c.Text()
		}
	}
	return nil
}

// reversePathFilter digs the value out of IFLA_AF_SPEC, AF_INET, IFLA_INET_CONF.
func reversePathFilter(spec []byte) int {
	for family := Attributes(spec); family.Next(); {
		if family.Kind != unix.AF_INET {
			continue
		}
		for conf := Attributes(family.Value); conf.Next(); {
			if conf.Kind == unix.IFLA_INET_CONF && len(conf.Value) >= 4*DevconfRPFilter {
				return int(Native.Uint32(conf.Value[4*(DevconfRPFilter-1):]))
			}
		}
	}
	return 0
}

// AskLinks asks for all links.
func (r *Request) AskLinks() *Request {
	r.Reset().Link(unix.RTM_GETLINK, unix.NLM_F_DUMP, 0, 0, 0)
	r.U32(unix.IFLA_EXT_MASK, skipStatistics)
	return r
}

// AskLink asks for one link: by its index, or, where that is 0, by its name.
func (r *Request) AskLink(index int, name string) *Request {
	r.Reset().Link(unix.RTM_GETLINK, 0, index, 0, 0)
	if index == 0 {
		r.Text(unix.IFLA_IFNAME, name)
	}
	r.U32(unix.IFLA_EXT_MASK, skipStatistics)
	return r
}

// ParseAddress reads an RTM_NEWADDR of any family: struct ifaddrmsg, IFA_LOCAL, or IFA_ADDRESS where that is missing.
func ParseAddress(body []byte) (index int, p netip.Prefix, ok bool) {
	if len(body) < unix.SizeofIfAddrmsg {
		return 0, p, false
	}
	var local, address netip.Addr
	for c := Attributes(body[unix.SizeofIfAddrmsg:]); c.Next(); {
		switch c.Kind {
		case unix.IFA_LOCAL:
			local, _ = netip.AddrFromSlice(c.Value)
		case unix.IFA_ADDRESS:
			address, _ = netip.AddrFromSlice(c.Value)
		}
	}
	if !local.IsValid() {
		local = address
	}
	p = netip.PrefixFrom(local, int(body[1]))
	return int(Native.Uint32(body[4:])), p, p.IsValid()
}
