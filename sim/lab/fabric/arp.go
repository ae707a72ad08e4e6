package fabric

import (
	"encoding/binary"
	"net/netip"
)

// arpSize is an ARP packet for IPv4 over Ethernet (RFC 826).
const arpSize = 28

// query is an ARP request for IPv4 over Ethernet.
type query struct {
	mac            [6]byte // who asks
	sender, target netip.Addr
}

// parseQuery reads an ARP packet; anything but a request for IPv4 over Ethernet is not ok.
func parseQuery(b []byte) (q query, ok bool) {
	if len(b) < arpSize || string(b[:8]) != "\x00\x01\x08\x00\x06\x04\x00\x01" {
		return query{}, false
	}
	copy(q.mac[:], b[8:])
	q.sender = netip.AddrFrom4([4]byte(b[14:18]))
	q.target = netip.AddrFrom4([4]byte(b[24:28]))
	return q, true
}

// answer is the reply that says that mac has the target.
func (q query) answer(mac []byte) []byte {
	b := make([]byte, 0, arpSize)
	b = binary.BigEndian.AppendUint16(b, 1)      // Ethernet
	b = binary.BigEndian.AppendUint16(b, 0x0800) // IPv4
	b = append(b, 6, 4, 0, 2)                    // reply
	b = append(append(b, mac...), q.target.AsSlice()...)
	return append(append(b, q.mac[:]...), q.sender.AsSlice()...)
}
