//go:build !linux

package server

import "net"

// setHops does nothing: only Linux is known here.
func setHops(net.Conn, int) {}
