package vpc

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Ping sends an ICMP echo request from Witness to every address at once, and again to those that are silent, and tells which answered.
// It returns when all have answered, or after patience. An answer counts only if it comes from the address that was asked.
func (f *Network) Ping(addrs []netip.Addr, patience time.Duration) []bool {
	p, err := f.probes.take(f)
	if err != nil {
		return make([]bool, len(addrs))
	}
	defer f.probes.put(p)
	return p.ping(addrs, patience)
}

// PingFrom is Ping from another namespace (a node's, a pod's), with the source address that its routes choose. The socket is closed
// before it returns, so the namespace is not kept alive.
func (f *Network) PingFrom(ns *os.File, addrs []netip.Addr, patience time.Duration) ([]bool, error) {
	p, err := newProbe(ns, netip.IPv4Unspecified())
	if err != nil {
		return nil, fmt.Errorf("vpc: ping from another namespace: %w", err)
	}
	defer p.close()
	return p.ping(addrs, patience), nil
}

// maxIdle is how many sockets wait for the next Ping; as many as are likely to run at once.
const maxIdle = 4

// probes are the sockets of Ping in the router's namespace. One that is used has one user.
type probes struct {
	mu     sync.Mutex
	closed bool
	idle   []*probe
	used   map[*probe]bool
}

func (s *probes) take(f *Network) (*probe, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.used == nil {
		s.used = map[*probe]bool{}
	}
	if n := len(s.idle); n > 0 {
		p := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.used[p] = true
		return p, nil
	}
	p, err := newProbe(f.ns, f.witness)
	if err == nil {
		s.used[p] = true
	}
	return p, err
}

func (s *probes) put(p *probe) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.used, p)
	if s.closed || len(s.idle) == maxIdle {
		p.close()
		return
	}
	s.idle = append(s.idle, p)
}

// close ends every Ping.
func (s *probes) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.idle {
		p.close()
	}
	for p := range s.used {
		p.close()
	}
	s.idle = nil
}

// probe is a raw ICMP socket that sees echo replies only.
type probe struct {
	conn *net.IPConn
	in   []byte
}

// receiveBuffer holds the answers to some thousand requests that are sent before the first answer is read.
const receiveBuffer = 4 << 20

// icmpFilter is ICMP_FILTER (linux/icmp.h, raw(7)); a set bit drops that type.
const (
	icmpFilter  = 1
	onlyReplies = ^(1 << echoReply)
)

func newProbe(ns *os.File, source netip.Addr) (*probe, error) {
	var conn *net.IPConn
	err := Do(ns, func() (err error) {
		conn, err = net.ListenIP("ip4:icmp", &net.IPAddr{IP: source.AsSlice()})
		return err
	})
	if err != nil {
		return nil, err
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			_ = unix.SetsockoptInt(int(fd), unix.SOL_RAW, icmpFilter, onlyReplies)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
		})
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &probe{conn: conn, in: make([]byte, 1500)}, nil
}

func (p *probe) close() { _ = p.conn.Close() }

// ICMP (RFC 792).
const (
	echoReply   = 0
	echoRequest = 8
	echoHead    = 8
	echoSize    = echoHead + cookieSize + 4
	cookieSize  = 8
)

// The first repetition comes soon (ARP, a link that comes up), the later ones more rarely.
const (
	firstRepeat = 20 * time.Millisecond
	maxRepeat   = 250 * time.Millisecond
)

func (p *probe) ping(addrs []netip.Addr, patience time.Duration) []bool {
	var cookie [cookieSize]byte // tells this call's answers from all others'
	_, _ = rand.Read(cookie[:])
	end := time.Now().Add(patience)
	answered := make([]bool, len(addrs))
	for missing, wait := len(addrs), firstRepeat; missing > 0; wait = min(2*wait, maxRepeat) {
		for i, a := range addrs {
			if !answered[i] && a.Is4() {
				_, _ = p.conn.WriteToIP(echo(cookie[:], i), &net.IPAddr{IP: a.AsSlice()}) // an error is silence
			}
		}
		until := time.Now().Add(wait)
		if until.After(end) {
			until = end
		}
		got, err := p.collect(addrs, answered, cookie[:], missing, until)
		missing -= got
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || !time.Now().Before(end) {
			break // closed, or out of patience
		}
	}
	return answered
}

// collect reads answers until there are as many as wanted, or it is too late.
func (p *probe) collect(addrs []netip.Addr, answered []bool, cookie []byte, wanted int, until time.Time) (got int, err error) {
	if err := p.conn.SetReadDeadline(until); err != nil {
		return 0, err
	}
	for got < wanted {
		n, from, err := p.conn.ReadFromIP(p.in)
		if err != nil {
			return got, err
		}
		i, ok := parseEcho(p.in[:n], cookie)
		a, _ := netip.AddrFromSlice(from.IP)
		if ok && i < len(addrs) && !answered[i] && a.Unmap() == addrs[i] {
			answered[i] = true
			got++
		}
	}
	return got, nil
}

// echo is the i-th request of a call.
func echo(cookie []byte, i int) []byte {
	b := make([]byte, 0, echoSize)
	b = append(b, echoRequest, 0, 0, 0)
	b = append(b, cookie[:2]...) // identifier
	b = binary.BigEndian.AppendUint16(b, uint16(i))
	b = append(b, cookie...)
	b = binary.BigEndian.AppendUint32(b, uint32(i))
	binary.BigEndian.PutUint16(b[2:], checksum(b))
	return b
}

// parseEcho tells which request of the call a reply answers.
func parseEcho(b, cookie []byte) (i int, ok bool) {
	if len(b) != echoSize || b[0] != echoReply || !bytes.Equal(b[echoHead:echoHead+cookieSize], cookie) {
		return 0, false
	}
	return int(binary.BigEndian.Uint32(b[echoHead+cookieSize:])), true
}

// checksum is RFC 1071's over an even number of bytes.
func checksum(b []byte) uint16 {
	var sum uint32
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(binary.BigEndian.Uint16(b))
	}
	sum = sum>>16 + sum&0xffff
	return ^uint16(sum>>16 + sum)
}
