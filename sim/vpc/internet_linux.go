package vpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// service is the internet: it tells each peer who it is.
type service struct {
	listener net.Listener
	conns    connections
	running  sync.WaitGroup
}

// patience of the service with one peer; a connection that is pulled apart takes no longer.
const servicePatience = 5 * time.Second

// acceptPause keeps a process without free descriptors from spinning.
const acceptPause = 5 * time.Millisecond

// maxPeers is how many connections the service holds; more are accepted and reset.
const maxPeers = 1024

// serve listens in the calling thread's namespace.
func serve(a netip.AddrPort) (*service, error) {
	l, err := plainTCP().Listen(context.Background(), "tcp4", a.String())
	if err != nil {
		return nil, err
	}
	s := &service{listener: l}
	s.running.Go(s.run)
	return s, nil
}

// plainTCP is TCP: Go's listeners offer Multipath TCP otherwise.
func plainTCP() *net.ListenConfig {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return &c
}

func (s *service) run() {
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(acceptPause) // the peer of that one connection is gone, or the process has too many files
			continue
		}
		conn := s.conns.add(c.(*net.TCPConn))
		if conn == nil {
			continue
		}
		s.running.Go(func() { answer(conn) })
	}
}

// answer writes the peer's address and waits for the peer to have read it: closing at once with unread bytes would reset the connection.
func answer(c *connection) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(servicePatience))
	peer := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
	if _, err := io.WriteString(c, peer.String()); err == nil && c.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(c, 1<<20))
	}
}

func (s *service) close() error {
	err := s.listener.Close()
	s.conns.close()
	s.running.Wait()
	return err
}

// Dial opens a TCP connection from Witness. Close of the Network resets it.
func (f *Network) Dial(ctx context.Context, a netip.AddrPort) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: f.witness.AsSlice()}}
	d.SetMultipathTCP(false)
	ctx, cancel := f.within(ctx)
	defer cancel()
	f.awake(a.Addr())
	var c net.Conn
	err := Do(f.ns, func() (err error) {
		c, err = d.DialContext(ctx, "tcp4", a.String())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vpc: dial %v from the VPC's router: %w", a, err)
	}
	conn := f.dialled.add(c.(*net.TCPConn))
	if conn == nil {
		return nil, fmt.Errorf("vpc: dial %v: the VPC is closed, or %d connections are open", a, maxPeers)
	}
	return conn, nil
}

// awake lets the cable to an address send at once, as the ARP responder does: a SYN that is dropped is sent again after a second.
func (f *Network) awake(a netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.owners[a]; e != nil && e.index != 0 && !f.closed {
		f.arp.awake(int(e.index))
	}
}

// connection is a TCP connection that the Network resets when it is closed: a socket keeps its namespace alive.
type connection struct {
	*net.TCPConn
	set *connections
}

// Close closes the connection.
func (c *connection) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.TCPConn.Close()
}

// connections are open ones. The zero value is ready.
type connections struct {
	mu     sync.Mutex
	closed bool
	open   map[*connection]bool
}

// add keeps c, or resets it and returns nil if there are too many or no more are wanted.
func (s *connections) add(c *net.TCPConn) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.open) >= maxPeers {
		reset(c)
		return nil
	}
	if s.open == nil {
		s.open = map[*connection]bool{}
	}
	conn := &connection{TCPConn: c, set: s}
	s.open[conn] = true
	return conn
}

func (s *connections) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		reset(c.TCPConn)
	}
	s.open = nil
}

// reset closes c without waiting for the peer: a socket that lingers would keep the namespace alive.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
