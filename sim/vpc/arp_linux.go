package vpc

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// responder answers the instances' ARP requests. The kernel's proxy_arp would answer for addresses of other subnets too, which a VPC does
// not: an instance whose on-link route is too wide would work here and nowhere else.
type responder struct {
	config  Config
	segment *segment // nil: there is none
	socket  *packetSocket
	rtnl    *rtnl // the Network's
	done    chan struct{}

	mu     sync.RWMutex
	cables map[int]*port         // by index of the router's end
	ports  map[string]*port      // all attached ENIs, by MAC
	owners map[netip.Addr]string // the addresses of all ENIs, and the MAC of each
}

// port is an ENI at the other end of a cable, or on the segment.
type port struct {
	mac       string
	index     int
	joined    bool
	addresses map[netip.Addr]bool
}

// respond opens the socket in the calling thread's namespace and begins.
func respond(c Config, shared *segment, link *rtnl) (*responder, error) {
	s, err := openPackets(unix.SOCK_DGRAM, unix.ETH_P_ARP)
	if err != nil {
		return nil, err
	}
	if err := control(s.file, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1) }); err != nil {
		return nil, errors.Join(os.NewSyscallError("PACKET_QDISC_BYPASS", err), s.close())
	}
	r := &responder{config: c, segment: shared, socket: s, rtnl: link, done: make(chan struct{}),
		cables: map[int]*port{}, ports: map[string]*port{}, owners: map[netip.Addr]string{}}
	go r.run()
	return r, nil
}

func (r *responder) close() error {
	err := r.socket.close()
	<-r.done
	return err
}

func (r *responder) run() {
	defer close(r.done)
	b := make([]byte, 1<<16)
	for {
		n, from, err := r.socket.read(b)
		if err != nil {
			return // closed
		}
		switch {
		case from.Pkttype == unix.PACKET_OUTGOING || from.Pkttype == unix.PACKET_OTHERHOST: // flooded by a bridge: between two others
		case r.segment != nil && from.Ifindex == int(r.segment.index):
			r.hear(b[:n], from)
		default:
			r.asked(b[:n], from)
		}
	}
}

// asked answers what came by a cable.
func (r *responder) asked(b []byte, from *unix.SockaddrLinklayer) {
	q, ok := parseQuery(b)
	if !ok || !r.answers(from.Ifindex, q) {
		return
	}
	if from.Pkttype == unix.PACKET_BROADCAST {
		r.awake(from.Ifindex)
	}
	r.send(from.Ifindex, q.mac, q.answer(routerMAC()))
}

// send does not care about errors: a cable was just pulled; the instance asks again if it still can.
func (r *responder) send(index int, mac [6]byte, b []byte) {
	to := unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ARP), Ifindex: index, Halen: 6}
	copy(to.Addr[:], mac[:])
	_ = r.socket.write(b, &to)
}

// awake makes the router's end of a cable send. When the instance sets its end up, the kernel lets the router's end send only after a
// work item has run (linkwatch), and drops what is sent before: the first ARP reply, which the instance misses for a second. To look at a
// link settles that at once since Linux 6.9 (rtnl_getlink, linkwatch_sync_dev); before, the reply alone passes (PACKET_QDISC_BYPASS).
func (r *responder) awake(index int) {
	_, _ = r.rtnl.exists(int32(index)) // a cable that was just pulled needs nothing
}

// answers decides about a request that came in by a cable.
func (r *responder) answers(index int, q query) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	p := r.cables[index]
	if p == nil || p.addresses[q.target] {
		return false
	}
	subnet := holder(r.config.Subnets, q.target)
	if !subnet.IsValid() {
		return false
	}
	if q.sender.IsUnspecified() { // RFC 5227: is it in use?
		return r.owners[q.target] != "" && p.in(subnet)
	}
	return p.addresses[q.sender] && subnet.Contains(q.sender)
}

// in tells whether the ENI is in the subnet.
func (p *port) in(subnet netip.Prefix) bool {
	for a := range p.addresses {
		if subnet.Contains(a) {
			return true
		}
	}
	return false
}

func (r *responder) attached(e *eni) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &port{mac: e.mac, index: int(e.index), joined: e.joined, addresses: maps.Clone(e.addresses)}
	r.ports[e.mac] = p
	if !e.joined {
		r.cables[p.index] = p
	}
}

func (r *responder) detached(e *eni) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ports, e.mac)
	if !e.joined {
		delete(r.cables, int(e.index))
	}
}

func (r *responder) assigned(e *eni, a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[a] = e.mac
	if p := r.ports[e.mac]; p != nil {
		p.addresses[a] = true
	}
}

// unassigned notes that e lost a: it is free now, or another ENI's that was told so before.
func (r *responder) unassigned(e *eni, a netip.Addr, free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if free {
		delete(r.owners, a)
	}
	if p := r.ports[e.mac]; p != nil {
		delete(p.addresses, a)
	}
}

// macOf is the ENI's that a packet on a link came from or goes to, or empty.
func (r *responder) macOf(index int, p Packet) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.segment != nil && index == int(r.segment.index) && len(p.Data) >= 12 {
		address := p.Data[6:12] // the source in the Ethernet header
		if p.Sent {
			address = p.Data[:6]
		}
		if p := r.ports[net.HardwareAddr(address).String()]; p != nil && p.joined {
			return p.mac
		}
		return ""
	}
	if p := r.cables[index]; p != nil {
		return p.mac
	}
	return ""
}
