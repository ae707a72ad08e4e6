package linux

import (
	"golang.org/x/sys/unix"
)

// skipStatistics leaves out what makes a link's message four times as long (RTEXT_FILTER_SKIP_STATS).
const skipStatistics = 1 << 3

const vethKind = "veth"

// devconfRPFilter is IPV4_DEVCONF_RP_FILTER (linux/ip.h). In a dump the values begin at 1; in a request
// each is an attribute of that number.
const devconfRPFilter = 8

// linkView is one RTM_NEWLINK, as parts of the message.
type linkView struct {
	index             int
	flags             uint32
	mtu, rpFilter     int
	group             uint32
	peer              int // index of a veth's other end, in its namespace
	netnsid           int // of that namespace, as this one numbers them; -1 when it is this one, or gone
	name, alias, kind []byte
	mac               []byte
}

func (v *linkView) up() bool       { return v.flags&unix.IFF_UP != 0 }
func (v *linkView) veth() bool     { return string(v.kind) == vethKind }
func (v *linkView) loopback() bool { return v.flags&unix.IFF_LOOPBACK != 0 }

// parse reads struct ifinfomsg and what follows it.
func (v *linkView) parse(body []byte) bool {
	if len(body) < unix.SizeofIfInfomsg {
		return false
	}
	*v = linkView{index: int(native.Uint32(body[4:])), flags: native.Uint32(body[8:]), netnsid: -1}
	for c := (cursor{rest: body[unix.SizeofIfInfomsg:]}); c.next(); {
		switch c.kind {
		case unix.IFLA_IFNAME:
			v.name = c.text()
		case unix.IFLA_IFALIAS:
			v.alias = c.text()
		case unix.IFLA_ADDRESS:
			v.mac = c.value
		case unix.IFLA_MTU:
			v.mtu = int(c.u32())
		case unix.IFLA_GROUP:
			v.group = c.u32()
		case unix.IFLA_LINK:
			v.peer = int(c.u32())
		case unix.IFLA_LINK_NETNSID:
			v.netnsid = int(int32(c.u32()))
		case unix.IFLA_LINKINFO:
			v.kind = kindOfLink(c.value)
		case unix.IFLA_AF_SPEC:
			v.rpFilter = reversePathFilter(c.value)
		}
	}
	return true
}

func kindOfLink(info []byte) []byte {
	for c := (cursor{rest: info}); c.next(); {
		if c.kind == unix.IFLA_INFO_KIND {
			return c.text()
		}
	}
	return nil
}

// reversePathFilter digs the value out of IFLA_AF_SPEC, AF_INET, IFLA_INET_CONF.
func reversePathFilter(spec []byte) int {
	for family := (cursor{rest: spec}); family.next(); {
		if family.kind != unix.AF_INET {
			continue
		}
		for conf := (cursor{rest: family.value}); conf.next(); {
			if conf.kind == unix.IFLA_INET_CONF && len(conf.value) >= 4*devconfRPFilter {
				return int(native.Uint32(conf.value[4*(devconfRPFilter-1):]))
			}
		}
	}
	return 0
}

// device is a link as the operations of one plan know it.
type device struct {
	index, peer, netnsid int
	name, alias, kind    string
	mac                  macText
	up, loopback         bool
	mtu                  int
}

func (v *linkView) device() device {
	return device{index: v.index, peer: v.peer, netnsid: v.netnsid, name: string(v.name), alias: string(v.alias), kind: string(v.kind),
		mac: textOfMAC(v.mac), up: v.up(), loopback: v.loopback(), mtu: v.mtu}
}

// macText is a MAC as plans write it: lower case, with colons; empty (zero) for links without.
type macText [17]byte

func textOfMAC(b []byte) (text macText) {
	if len(b) != 6 {
		return text
	}
	const digits = "0123456789abcdef"
	for i, octet := range b {
		if i > 0 {
			text[3*i-1] = ':'
		}
		text[3*i], text[3*i+1] = digits[octet>>4], digits[octet&15]
	}
	return text
}

func (m *macText) is(text string) bool { return m[0] != 0 && text == string(m[:]) }

// parseMAC reads six octets in either case.
func parseMAC(text string) (mac [6]byte, ok bool) {
	if len(text) != 17 {
		return mac, false
	}
	for i := range 6 {
		hi, lo := digit(text[3*i]), digit(text[3*i+1])
		if hi < 0 || lo < 0 || i < 5 && text[3*i+2] != ':' {
			return mac, false
		}
		mac[i] = byte(hi<<4 | lo)
	}
	return mac, true
}

func digit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// askLinks asks for all links.
func (r *request) askLinks() *request {
	r.reset().link(unix.RTM_GETLINK, unix.NLM_F_DUMP, 0, 0, 0)
	r.u32(unix.IFLA_EXT_MASK, skipStatistics)
	return r
}

// byIndex is that link as it is now; index 0 in the answer when there is none.
func byIndex(s *socket, r *request, index int) (device, error) {
	r.reset().link(unix.RTM_GETLINK, 0, index, 0, 0)
	r.u32(unix.IFLA_EXT_MASK, skipStatistics)
	body, err := s.get(r)
	if is(err, unix.ENODEV) {
		return device{}, nil
	}
	var v linkView
	if err == nil && !v.parse(body) {
		err = unix.EBADMSG
	}
	if err != nil {
		return device{}, err
	}
	return v.device(), nil
}

// byAlias is the link with exactly that alias; index 0 when there is none. What an earlier operation of
// the plan found is taken for true: should it have gone since, the kernel says so.
func (a *applier) byAlias(alias string) (device, error) {
	if alias == "" {
		return device{}, nil
	}
	if a.last.index != 0 && a.last.alias == alias {
		return a.last, nil
	}
	d, err := a.k.roster.alias(alias)
	if err == nil && d.index != 0 {
		a.last = d
	}
	return d, err
}

// veth is byAlias for what may only be done to a veth; an error when there is none.
func (a *applier) veth(alias string) (device, error) {
	d, err := a.byAlias(alias)
	if err == nil && (d.index == 0 || d.kind != vethKind) {
		err = errNoLink
	}
	return d, err
}

// eni is the link of an ENI: it has that MAC and no alias. Others may have it too (a VLAN or a bridge
// on top of it), so one without a kind, or a veth, which is a laboratory's ENI, goes before; then the oldest.
func (a *applier) eni(mac string) (device, error) {
	stacked := func(d *device) bool { return d.kind != "" && d.kind != vethKind }
	d, err := a.k.roster.best(func(d, than *device) bool {
		switch {
		case !d.mac.is(mac) || d.alias != "" || d.loopback:
			return false
		case than.index == 0 || stacked(d) != stacked(than):
			return than.index == 0 || stacked(than)
		}
		return d.index < than.index
	})
	if err == nil && d.index == 0 {
		err = errNoLink
	}
	return d, err
}

// device is the link an operation names: a veth by alias, an ENI by MAC, any by name.
func (a *applier) device(alias, mac, name string) (device, error) {
	switch {
	case alias != "":
		return a.veth(alias)
	case mac != "":
		return a.eni(mac)
	}
	d, err := a.k.roster.name(name)
	if err == nil && d.index == 0 {
		err = errNoLink
	}
	return d, err
}

// set sends an RTM_SETLINK.
func (a *applier) set(index int, flags, change uint32, attributes func(r *request)) error {
	a.r.reset().link(unix.RTM_SETLINK, unix.NLM_F_ACK, index, flags, change)
	if attributes != nil {
		attributes(a.r)
	}
	return a.s.do(a.r)
}

// up brings a link up, with an MTU unless that is 0.
func (a *applier) up(index, mtu int) error {
	return a.set(index, unix.IFF_UP, unix.IFF_UP, func(r *request) {
		if mtu != 0 {
			r.u32(unix.IFLA_MTU, uint32(mtu))
		}
	})
}
