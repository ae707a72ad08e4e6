package server

import (
	"net"
	"syscall"
)

// setHops limits how far what leaves by a TCP connection gets: IP_TTL (ip(7)), IPV6_UNICAST_HOPS (ipv6(7)). IPv4 over a socket of
// IPv6 takes the first.
func setHops(c net.Conn, hops int) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return // closed
	}
	v4 := true
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		v4 = a.IP.To4() != nil
	}
	_ = raw.Control(func(fd uintptr) {
		if v4 {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_TTL, hops)
		} else {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, hops)
		}
	})
}
