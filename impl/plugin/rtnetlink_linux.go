package plugin

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// rtnetlink is a socket for the few questions that the plugin has.
type rtnetlink struct {
	s *netlink.Socket
	r netlink.Request
}

// routePatience bounds one answer of the kernel.
const routePatience = 2 * time.Second

// dialRoute opens a socket in the namespace of the calling thread.
func dialRoute() (*rtnetlink, error) {
	s, err := netlink.Open(unix.NETLINK_ROUTE, 32<<10)
	if err != nil {
		return nil, os.NewSyscallError("rtnetlink socket", err)
	}
	s.Timeout = routePatience
	return &rtnetlink{s: s}, nil
}

// routeSocket opens one that another process will use: it sets its options itself.
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

func (s *rtnetlink) Close() error {
	s.s.Close()
	return nil
}

// linkByName is the link of that name, nil when there is none.
func (s *rtnetlink) linkByName(name string) (*link, error) { return s.oneLink(0, name) }

// linkByIndex is the link of that index, nil when there is none.
func (s *rtnetlink) linkByIndex(index int) (*link, error) {
	if index <= 0 {
		return nil, nil
	}
	return s.oneLink(index, "")
}

func (s *rtnetlink) oneLink(index int, name string) (*link, error) {
	body, err := s.s.Get(s.r.AskLink(index, name))
	if netlink.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, explain(err)
	}
	var v netlink.Link
	if !v.Parse(body) {
		return nil, explain(unix.EBADMSG)
	}
	l := &link{index: v.Index, mtu: v.MTU, up: v.Up(), alias: string(v.Alias), peer: v.Peer, crosses: v.Crosses}
	if len(v.MAC) == 6 {
		l.mac = net.HardwareAddr(v.MAC).String()
	}
	return l, nil
}

// addresses are those of a link.
func (s *rtnetlink) addresses(index int) (out []netip.Prefix, err error) {
	err = s.dump(unix.RTM_GETADDR, unix.SizeofIfAddrmsg, func(body []byte) {
		if of, p, ok := netlink.ParseAddress(body); ok && of == index {
			out = append(out, p)
		}
	}, func() { out = nil })
	return out, err
}

// routes are those of all tables and families.
func (s *rtnetlink) routes() (out []route, err error) {
	err = s.dump(unix.RTM_GETROUTE, unix.SizeofRtMsg, func(body []byte) {
		if r, ok := parseRoute(body); ok {
			out = append(out, r)
		}
	}, func() { out = nil })
	return out, err
}

// dump asks for everything of a kind, with a header of that size, and again when the answer was interrupted by a change.
func (s *rtnetlink) dump(kind uint16, header int, each func(body []byte), again func()) error {
	var err error
	for range 4 {
		s.r.Reset().Message(kind, unix.NLM_F_DUMP)
		s.r.Raw(make([]byte, header)...)
		if err = s.s.Dump(&s.r, each); err != netlink.ErrInterrupted {
			break
		}
		again()
	}
	return explain(err)
}

// explain says what was asked for.
func explain(err error) error {
	switch err {
	case nil:
		return nil
	case unix.ETIMEDOUT:
		return fmt.Errorf("the kernel did not answer within %v", routePatience)
	}
	return fmt.Errorf("rtnetlink: %w", err)
}

func parseRoute(body []byte) (r route, ok bool) {
	if len(body) < unix.SizeofRtMsg || body[7] != unix.RTN_UNICAST {
		return r, false
	}
	dst := netip.IPv4Unspecified()
	if body[0] == unix.AF_INET6 {
		dst = netip.IPv6Unspecified()
	}
	r.table = int(body[4])
	for c := netlink.Attributes(body[unix.SizeofRtMsg:]); c.Next(); {
		switch c.Kind {
		case unix.RTA_DST:
			dst, _ = netip.AddrFromSlice(c.Value)
		case unix.RTA_GATEWAY:
			r.via, _ = netip.AddrFromSlice(c.Value)
		case unix.RTA_OIF:
			r.link = int(int32(c.U32()))
		case unix.RTA_TABLE:
			r.table = int(int32(c.U32()))
		}
	}
	r.dst = netip.PrefixFrom(dst, int(body[1]))
	return r, r.dst.IsValid()
}
