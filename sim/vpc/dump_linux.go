package vpc

import (
	"encoding/binary"
	"errors"
	"net/netip"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// link is one of the namespace's.
type link struct {
	index int32
	kind  uint16 // of hardware, unix.ARPHRD_ETHER
	flags uint32
	name  string
	mac   []byte
}

func (r *rtnl) links() ([]link, error) {
	answers, err := r.dump(unix.RTM_GETLINK, make([]byte, unix.SizeofIfInfomsg))
	if err != nil {
		return nil, err
	}
	var out []link
	for _, b := range answers {
		if len(b) < unix.SizeofIfInfomsg {
			return nil, errShort
		}
		l := link{kind: binary.NativeEndian.Uint16(b[2:]), index: int32(binary.NativeEndian.Uint32(b[4:])), flags: binary.NativeEndian.Uint32(b[8:])}
		d, err := netlink.NewAttributeDecoder(b[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, err
		}
		for d.Next() {
			switch d.Type() {
			case unix.IFLA_IFNAME:
				l.name = d.String()
			case unix.IFLA_ADDRESS:
				l.mac = d.Bytes()
			}
		}
		if err := d.Err(); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// addresses of a link, IPv4.
func (r *rtnl) addresses(index int32) ([]netip.Addr, error) {
	head := make([]byte, unix.SizeofIfAddrmsg)
	head[0] = unix.AF_INET
	answers, err := r.dump(unix.RTM_GETADDR, head)
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, b := range answers {
		if len(b) < unix.SizeofIfAddrmsg {
			return nil, errShort
		}
		if binary.NativeEndian.Uint32(b[4:]) != uint32(index) {
			continue
		}
		d, err := netlink.NewAttributeDecoder(b[unix.SizeofIfAddrmsg:])
		if err != nil {
			return nil, err
		}
		for d.Next() {
			if a, ok := netip.AddrFromSlice(d.Bytes()); ok && d.Type() == unix.IFA_LOCAL {
				out = append(out, a)
			}
		}
		if err := d.Err(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// routes of the table, as the kernel tells them.
func (r *rtnl) routes() ([][]byte, error) {
	head := make([]byte, unix.SizeofRtMsg)
	head[0] = unix.AF_INET
	answers, err := r.dump(unix.RTM_GETROUTE, head)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, b := range answers {
		if len(b) < unix.SizeofRtMsg {
			return nil, errShort
		}
		if b[4] == r.table { // others that do not fit into a byte are RT_TABLE_COMPAT
			out = append(out, b)
		}
	}
	return out, nil
}

// errShort is a kernel that breaks its own rules.
var errShort = errors.New("an answer of the kernel is too short")

func (r *rtnl) dump(kind uint16, head []byte) ([][]byte, error) {
	answers, err := r.conn.Execute(netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | netlink.Dump}, Data: head})
	if err != nil {
		return nil, err
	}
	out := make([][]byte, len(answers))
	for i, a := range answers {
		out[i] = a.Data
	}
	return out, nil
}
