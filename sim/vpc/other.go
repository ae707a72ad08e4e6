//go:build !linux

package vpc

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"time"
)

// errLinux is every answer of this package elsewhere.
var errLinux = errors.New("vpc: network namespaces need Linux")

// Network is a running VPC; there is none on this system.
type Network struct{ config Config }

// Packet is what tcpdump in the router would show.
type Packet struct {
	At   time.Time
	MAC  string
	Sent bool
	Data []byte
}

// New fails on this system.
func New(c Config) (*Network, error) {
	if _, err := c.checked(); err != nil {
		return nil, err
	}
	return nil, errLinux
}

// Do fails on this system.
func Do(*os.File, func() error) error { return errLinux }

// NewNamespace fails on this system.
func NewNamespace() (*os.File, error) { return nil, errLinux }

// SetMTU fails on this system.
func SetMTU(*os.File, string, int) error { return errLinux }

// Redirect fails on this system.
func Redirect(*os.File, netip.AddrPort, netip.AddrPort) error { return errLinux }

// Close does nothing.
func (f *Network) Close() error { return nil }

// Namespace is nil.
func (f *Network) Namespace() *os.File { return nil }

// Plug fails on this system.
func (f *Network) Plug(*os.File, string, string, int) error { return errLinux }

// Unplug fails on this system.
func (f *Network) Unplug(string) error { return errLinux }

// Join fails on this system.
func (f *Network) Join(string) error { return errLinux }

// Leave fails on this system.
func (f *Network) Leave(string) error { return errLinux }

// Assign fails on this system.
func (f *Network) Assign(string, netip.Addr) error { return errLinux }

// Unassign fails on this system.
func (f *Network) Unassign(netip.Addr) error { return errLinux }

// Ping fails: there is no VPC.
func (f *Network) Ping(addrs []netip.Addr, _ time.Duration) []bool { return make([]bool, len(addrs)) }

// PingFrom fails on this system.
func (f *Network) PingFrom(*os.File, []netip.Addr, time.Duration) ([]bool, error) {
	return nil, errLinux
}

// Dial fails on this system.
func (f *Network) Dial(context.Context, netip.AddrPort) (net.Conn, error) { return nil, errLinux }

// Capture fails on this system.
func (f *Network) Capture(context.Context, string) (<-chan Packet, error) { return nil, errLinux }

// Witness is the address that Ping and Dial would come from.
func (f *Network) Witness() netip.Addr { return f.config.witness() }

// InternetAddr is the service outside the VPC.
func (f *Network) InternetAddr() netip.AddrPort {
	return netip.AddrPortFrom(f.config.Internet, internetPort)
}

// Tap keeps packets.
type Tap struct{}

// OpenTap fails on this system.
func OpenTap(*os.File) (*Tap, error) { return nil, errLinux }

// Write fails on this system.
func (*Tap) Write(io.Writer) error { return errLinux }
