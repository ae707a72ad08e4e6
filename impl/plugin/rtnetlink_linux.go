package plugin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// rtnetlink is a socket for the few questions that the plugin has. A library for all of rtnetlink costs more to start than
// the plugin's whole run.
type rtnetlink struct {
	fd  int
	seq uint32
	buf []byte
}

// routePatience bounds one answer of the kernel.
const routePatience = 2 * time.Second

// dialRoute opens a socket in the namespace of the calling thread.
func dialRoute() (*rtnetlink, error) {
	fd, err := routeSocket()
	if err != nil {
		return nil, err
	}
	tv := unix.NsecToTimeval(routePatience.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("setsockopt", err)
	}
	return &rtnetlink{fd: fd, buf: make([]byte, 32<<10)}, nil
}

func routeSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return -1, os.NewSyscallError("rtnetlink socket", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError("rtnetlink bind", err)
	}
	return fd, nil
}

func (s *rtnetlink) Close() error { return unix.Close(s.fd) }

// linkByName is the link of that name, nil when there is none.
func (s *rtnetlink) linkByName(name string) (*link, error) {
	body := make([]byte, unix.SizeofIfInfomsg)
	return s.oneLink(appendAttr(body, unix.IFLA_IFNAME, append([]byte(name), 0)))
}

// linkByIndex is the link of that index, nil when there is none.
func (s *rtnetlink) linkByIndex(index int) (*link, error) {
	if index <= 0 {
		return nil, nil
	}
	body := make([]byte, unix.SizeofIfInfomsg)
	binary.NativeEndian.PutUint32(body[4:], uint32(index))
	return s.oneLink(body)
}

// skipStats leaves counters out of an answer (RTEXT_FILTER_SKIP_STATS, linux/rtnetlink.h).
const skipStats = 1 << 3

func (s *rtnetlink) oneLink(body []byte) (*link, error) {
	body = appendAttr(body, unix.IFLA_EXT_MASK, binary.NativeEndian.AppendUint32(nil, skipStats))
	var out *link
	err := s.do(unix.RTM_GETLINK, 0, body, func(m *syscall.NetlinkMessage) error {
		if m.Header.Type == unix.RTM_NEWLINK {
			out = parseLink(m)
		}
		return nil
	})
	if errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	return out, err
}

// addresses are those of a link.
func (s *rtnetlink) addresses(index int) (out []netip.Prefix, err error) {
	err = s.dump(unix.RTM_GETADDR, make([]byte, unix.SizeofIfAddrmsg), func(m *syscall.NetlinkMessage) error {
		if p, of, ok := parseAddress(m); ok && of == index {
			out = append(out, p)
		}
		return nil
	}, func() { out = nil })
	return out, err
}

// routes are those of all tables and families.
func (s *rtnetlink) routes() (out []route, err error) {
	err = s.dump(unix.RTM_GETROUTE, make([]byte, unix.SizeofRtMsg), func(m *syscall.NetlinkMessage) error {
		if r, ok := parseRoute(m); ok {
			out = append(out, r)
		}
		return nil
	}, func() { out = nil })
	return out, err
}

// errTorn is a dump during which the kernel's tables changed (NLM_F_DUMP_INTR).
var errTorn = errors.New("the kernel's answer was interrupted by a change")

// dump asks again when the answer was torn.
func (s *rtnetlink) dump(kind uint16, body []byte, each func(*syscall.NetlinkMessage) error, again func()) error {
	var err error
	for range 4 {
		if err = s.do(kind, unix.NLM_F_DUMP, body, each); err != errTorn {
			return err
		}
		again()
	}
	return err
}

// do sends one request and reads its whole answer.
func (s *rtnetlink) do(kind uint16, flags uint16, body []byte, each func(*syscall.NetlinkMessage) error) error {
	s.seq++
	msg := make([]byte, unix.SizeofNlMsghdr, unix.SizeofNlMsghdr+len(body))
	binary.NativeEndian.PutUint32(msg[0:], uint32(cap(msg)))
	binary.NativeEndian.PutUint16(msg[4:], kind)
	binary.NativeEndian.PutUint16(msg[6:], flags|unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(msg[8:], s.seq)
	if err := unix.Sendto(s.fd, append(msg, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return os.NewSyscallError("rtnetlink send", err)
	}
	torn := false
	for {
		msgs, err := s.receive()
		if err != nil {
			return err
		}
		for i := range msgs {
			m := &msgs[i]
			if m.Header.Seq != s.seq {
				continue
			}
			torn = torn || m.Header.Flags&unix.NLM_F_DUMP_INTR != 0
			switch m.Header.Type {
			case unix.NLMSG_ERROR, unix.NLMSG_DONE:
				if errno := status(m); errno != 0 {
					return os.NewSyscallError("rtnetlink", errno)
				}
				if torn {
					return errTorn
				}
				return nil
			default:
				if err := each(m); err != nil {
					return err
				}
			}
			if flags&unix.NLM_F_DUMP == 0 {
				return nil
			}
		}
	}
}

func (s *rtnetlink) receive() ([]syscall.NetlinkMessage, error) {
	for {
		n, _, flags, _, err := unix.Recvmsg(s.fd, s.buf, nil, 0)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil, fmt.Errorf("the kernel did not answer within %v", routePatience)
		case err != nil:
			return nil, os.NewSyscallError("rtnetlink receive", err)
		case flags&unix.MSG_TRUNC != 0:
			return nil, fmt.Errorf("expected a message of at most %d bytes from the kernel, found more", len(s.buf))
		}
		return syscall.ParseNetlinkMessage(s.buf[:n])
	}
}

// status is the errno that an answer ends with; 0 when it has none.
func status(m *syscall.NetlinkMessage) syscall.Errno {
	if len(m.Data) < 4 {
		return 0
	}
	return syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
}

// appendAttr appends a struct rtattr, padded to 4 bytes.
func appendAttr(b []byte, kind uint16, value []byte) []byte {
	b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = append(b, value...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func parseLink(m *syscall.NetlinkMessage) *link {
	if len(m.Data) < unix.SizeofIfInfomsg {
		return nil
	}
	l := &link{
		index: int(int32(binary.NativeEndian.Uint32(m.Data[4:]))),
		up:    binary.NativeEndian.Uint32(m.Data[8:])&unix.IFF_UP != 0,
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return nil
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.IFLA_ADDRESS:
			if len(a.Value) == 6 {
				l.mac = net.HardwareAddr(a.Value).String()
			}
		case unix.IFLA_MTU:
			l.mtu = integer(a.Value)
		case unix.IFLA_IFALIAS:
			l.alias = text(a.Value)
		case unix.IFLA_LINK:
			l.peer = integer(a.Value)
		case unix.IFLA_LINK_NETNSID:
			l.crosses = true
		}
	}
	return l
}

func parseAddress(m *syscall.NetlinkMessage) (p netip.Prefix, index int, ok bool) {
	if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg {
		return p, 0, false
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return p, 0, false
	}
	var a netip.Addr
	for _, at := range attrs {
		switch at.Attr.Type {
		case unix.IFA_LOCAL: // the own one, where a link has two ends
			a, _ = netip.AddrFromSlice(at.Value)
		case unix.IFA_ADDRESS:
			if !a.IsValid() {
				a, _ = netip.AddrFromSlice(at.Value)
			}
		}
	}
	p = netip.PrefixFrom(a, int(m.Data[1]))
	return p, int(binary.NativeEndian.Uint32(m.Data[4:])), p.IsValid()
}

func parseRoute(m *syscall.NetlinkMessage) (r route, ok bool) {
	if m.Header.Type != unix.RTM_NEWROUTE || len(m.Data) < unix.SizeofRtMsg || m.Data[7] != unix.RTN_UNICAST {
		return r, false
	}
	attrs, err := syscall.ParseNetlinkRouteAttr(m)
	if err != nil {
		return r, false
	}
	dst := netip.IPv4Unspecified()
	if m.Data[0] == unix.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	r.table = int(m.Data[4])
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_GATEWAY:
			r.via, _ = netip.AddrFromSlice(a.Value)
		case unix.RTA_OIF:
			r.link = integer(a.Value)
		case unix.RTA_TABLE:
			r.table = integer(a.Value)
		}
	}
	r.dst = netip.PrefixFrom(dst, int(m.Data[1]))
	return r, r.dst.IsValid()
}

func integer(b []byte) int {
	if len(b) < 4 {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(b)))
}

// text is a string attribute without its NUL.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
