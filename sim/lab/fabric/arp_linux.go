package fabric

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// responder answers the instances' ARP requests. The kernel's proxy_arp would answer for addresses of other subnets too, which a VPC does
// not: an instance whose on-link route is too wide would work here and nowhere else.
type responder struct {
	config Config
	socket *packetSocket
	rtnl   *rtnl // the Fabric's
	done   chan struct{}

	mu     sync.RWMutex
	ports  map[int]*port       // by index of the router's end of the cable
	owners map[netip.Addr]bool // the addresses of all ENIs
}

// port is the ENI at the other end of a cable.
type port struct {
	mac       string
	addresses map[netip.Addr]bool
}

// respond opens the socket in the calling thread's namespace and begins.
func respond(c Config, link *rtnl) (*responder, error) {
	s, err := openPackets(unix.SOCK_DGRAM, unix.ETH_P_ARP)
	if err != nil {
		return nil, err
	}
	if err := control(s.file, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1) }); err != nil {
		return nil, errors.Join(os.NewSyscallError("PACKET_QDISC_BYPASS", err), s.close())
	}
	r := &responder{config: c, socket: s, rtnl: link, done: make(chan struct{}), ports: map[int]*port{}, owners: map[netip.Addr]bool{}}
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
		q, ok := parseQuery(b[:n])
		if !ok || from.Pkttype == unix.PACKET_OUTGOING || !r.answers(from.Ifindex, q) {
			continue
		}
		if from.Pkttype == unix.PACKET_BROADCAST {
			r.awake(from.Ifindex)
		}
		to := unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ARP), Ifindex: from.Ifindex, Halen: 6}
		copy(to.Addr[:], q.mac[:])
		_ = r.socket.write(q.answer(routerMAC()), &to) // a cable that was just pulled; the instance asks again if it still can
	}
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
	p := r.ports[index]
	if p == nil || p.addresses[q.target] {
		return false
	}
	subnet := r.config.within(r.config.Subnets, q.target)
	if !subnet.IsValid() {
		return false
	}
	if q.sender.IsUnspecified() { // RFC 5227: is anybody using it?
		return r.owners[q.target] && p.in(subnet)
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

func (r *responder) plugged(e *eni) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ports[int(e.index)] = &port{mac: e.mac, addresses: maps.Clone(e.addresses)}
}

func (r *responder) unplugged(e *eni) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ports, int(e.index))
}

func (r *responder) assigned(e *eni, a netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[a] = true
	if p := r.ports[int(e.index)]; p != nil {
		p.addresses[a] = true
	}
}

// unassigned notes that e lost a: to nobody (free), or to an ENI that was told so before.
func (r *responder) unassigned(e *eni, a netip.Addr, free bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if free {
		delete(r.owners, a)
	}
	if p := r.ports[int(e.index)]; p != nil {
		delete(p.addresses, a)
	}
}

// macOf is the ENI's at the other end of a cable, or empty.
func (r *responder) macOf(index int) string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if p := r.ports[index]; p != nil {
		return p.mac
	}
	return ""
}
