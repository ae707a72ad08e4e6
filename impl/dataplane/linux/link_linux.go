package linux

import (
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// device is a link as the operations of one plan know it.
type device struct {
	index, peer, netnsid int
	name, alias, kind    string
	mac                  macText
	up, loopback         bool
}

func deviceOf(v *netlink.Link) device {
	return device{index: v.Index, peer: v.Peer, netnsid: v.NetNSID, name: string(v.Name), alias: string(v.Alias), kind: string(v.Kind),
		mac: textOfMAC(v.MAC), up: v.Up(), loopback: v.Loopback()}
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

// byIndex is that link as it is now; index 0 in the answer when there is none.
func byIndex(s *netlink.Socket, r *netlink.Request, index int) (device, error) {
	body, err := s.Get(r.AskLink(index, ""))
	if netlink.Is(err, unix.ENODEV) {
		return device{}, nil
	}
	var v netlink.Link
	if err == nil && !v.Parse(body) {
		err = unix.EBADMSG
	}
	if err != nil {
		return device{}, err
	}
	return deviceOf(&v), nil
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
	var err error
	a.last, err = a.k.roster.alias(alias)
	return a.last, err
}

// veth is byAlias for what may only be done to a veth; an error when there is none.
func (a *applier) veth(alias string) (device, error) {
	d, err := a.byAlias(alias)
	if err == nil && (d.index == 0 || d.kind != netlink.VethKind) {
		err = errNoLink
	}
	return d, err
}

// eni is the link of an ENI: it has that MAC and no alias. Others may have it too (a VLAN or a bridge
// on top of it), so one without a kind, or a veth, which is a laboratory's ENI, goes before; then the oldest.
func (a *applier) eni(mac string) (device, error) {
	stacked := func(d *device) bool { return d.kind != "" && d.kind != netlink.VethKind }
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
func (a *applier) set(index int, flags, change uint32, attributes func(r *netlink.Request)) error {
	a.r.Reset().Link(unix.RTM_SETLINK, unix.NLM_F_ACK, index, flags, change)
	if attributes != nil {
		attributes(a.r)
	}
	return a.s.Do(a.r)
}

// up brings a link up, with an MTU unless that is 0.
func (a *applier) up(index, mtu int) error {
	return a.set(index, unix.IFF_UP, unix.IFF_UP, func(r *netlink.Request) {
		if mtu != 0 {
			r.U32(unix.IFLA_MTU, uint32(mtu))
		}
	})
}
