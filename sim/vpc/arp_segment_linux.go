package vpc

import (
	"bytes"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// hear answers what came by the segment, and contradicts it.
func (r *responder) hear(b []byte, from *unix.SockaddrLinklayer) {
	q, operation, ok := parseARP(b)
	if !ok || from.Halen != 6 || !bytes.Equal(q.mac[:], from.Addr[:6]) { // not the sender's own words
		return
	}
	if operation == 1 && r.answersShared(q) {
		r.send(from.Ifindex, q.mac, q.answer(r.segment.mac))
	}
	if from.Pkttype == unix.PACKET_BROADCAST {
		r.announce(q.sender)
	}
}

// announce tells all machines on the segment that these addresses are reached by the router, if they are. A machine that asks
// tells its own MAC to all that hear it, and a kernel that has a neighbour of that address believes it (RFC 826; Linux, arp_process): it would
// send past the router from then on, and no source check would see it. So every such claim is contradicted at once.
func (r *responder) announce(addrs ...netip.Addr) {
	if r.segment == nil {
		return
	}
	for _, a := range addrs {
		r.mu.RLock()
		told := r.leadsTo(a)
		r.mu.RUnlock()
		if told {
			r.send(int(r.segment.index), [6]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, announcement(a, r.segment.mac))
		}
	}
}

// leadsTo tells whether machines on the segment reach a by the router. An ENI that is not attached may be a machine that has not joined yet, and
// answers for itself; so does a stranger, which is never assigned.
func (r *responder) leadsTo(a netip.Addr) bool {
	subnet := r.segment.subnet(a)
	if !subnet.IsValid() {
		return false
	}
	return a == gateway(subnet) || a == r.config.witness() || r.ports[r.owners[a]] != nil
}

// answersShared decides about a request that came in by the segment. Who is unknown there (a stranger, a machine that has not joined) may
// ask everything.
func (r *responder) answersShared(q query) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !r.leadsTo(q.target) {
		return false
	}
	p := r.ports[net.HardwareAddr(q.mac[:]).String()]
	if p == nil || !p.joined {
		return true
	}
	if p.addresses[q.target] {
		return false
	}
	return q.sender.IsUnspecified() || p.addresses[q.sender] && r.segment.subnet(q.target).Contains(q.sender)
}
