package vpc

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
	q, operation, ok := parseARP(b)
	return q, ok && operation == 1
}

// parseARP reads an ARP packet, whatever its operation. Its sender says that it has an address, and a machine that
// hears that may believe it.
func parseARP(b []byte) (q query, operation byte, ok bool) {
	if len(b) < arpSize || string(b[:7]) != "\x00\x01\x08\x00\x06\x04\x00" {
		return query{}, 0, false
	}
	copy(q.mac[:], b[8:])
	q.sender = netip.AddrFrom4([4]byte(b[14:18]))
	q.target = netip.AddrFrom4([4]byte(b[24:28]))
	return q, b[7], true
}

// announcement is a request that tells everybody who has a (RFC 5227, section 2.3).
func announcement(a netip.Addr, mac []byte) []byte {
	b := append([]byte("\x00\x01\x08\x00\x06\x04\x00\x01"), mac...)
	b = append(append(b, a.AsSlice()...), 0, 0, 0, 0, 0, 0)
	return append(b, a.AsSlice()...)
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
