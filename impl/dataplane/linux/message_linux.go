package linux

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

var native = binary.NativeEndian

// request is one or more netlink messages under construction (netlink(7)). It is reused: reset keeps
// the memory.
type request struct {
	b  []byte
	at int // where the last message begins
	n  int // messages
}

func (r *request) reset() *request {
	r.b, r.at, r.n = r.b[:0], 0, 0
	return r
}

// message begins another message; the fixed part of its type follows.
func (r *request) message(kind, flags uint16) {
	r.finish()
	r.at = len(r.b)
	r.n++
	r.b = append(r.b, make([]byte, unix.NLMSG_HDRLEN)...)
	native.PutUint16(r.b[r.at+4:], kind)
	native.PutUint16(r.b[r.at+6:], flags|unix.NLM_F_REQUEST)
}

// finish writes the length of the last message.
func (r *request) finish() {
	if r.n > 0 {
		native.PutUint32(r.b[r.at:], uint32(len(r.b)-r.at))
	}
}

// number gives the messages their sequence numbers, from first.
func (r *request) number(first uint32) {
	r.finish()
	for at := 0; at < len(r.b); at += int(native.Uint32(r.b[at:])) {
		native.PutUint32(r.b[at+8:], first)
		first++
	}
}

func (r *request) raw(b ...byte) { r.b = append(r.b, b...) }

// link is struct ifinfomsg (rtnetlink(7)).
func (r *request) link(kind, flags uint16, index int, set, change uint32) {
	r.message(kind, flags)
	r.raw(unix.AF_UNSPEC, 0, 0, 0)
	r.b = native.AppendUint32(r.b, uint32(index))
	r.b = native.AppendUint32(r.b, set)
	r.b = native.AppendUint32(r.b, change)
}

// address is struct ifaddrmsg.
func (r *request) address(kind, flags uint16, bits int, index int) {
	r.message(kind, flags)
	r.raw(unix.AF_INET, byte(bits), 0, unix.RT_SCOPE_UNIVERSE)
	r.b = native.AppendUint32(r.b, uint32(index))
}

// route is struct rtmsg; the table is an attribute, for the field is 8 bits wide.
func (r *request) route(kind, flags uint16, bits int, protocol, scope, typ byte) {
	r.message(kind, flags)
	r.raw(unix.AF_INET, byte(bits), 0, 0, unix.RT_TABLE_UNSPEC, protocol, scope, typ, 0, 0, 0, 0)
}

// neighbour is struct ndmsg.
func (r *request) neighbour(kind, flags uint16, index int, state uint16, ntf byte) {
	r.message(kind, flags)
	r.raw(unix.AF_INET, 0, 0, 0)
	r.b = native.AppendUint32(r.b, uint32(index))
	r.b = native.AppendUint16(r.b, state)
	r.raw(ntf, 0)
}

// netfilter is struct nfgenmsg (linux/netfilter/nfnetlink.h).
func (r *request) netfilter(kind, flags uint16, family byte, resource uint16) {
	r.message(kind, flags)
	r.raw(family, unix.NFNETLINK_V0)
	r.b = binary.BigEndian.AppendUint16(r.b, resource)
}

const attributeHeader = 4

// begin opens an attribute whose end is not known yet; end closes it. An attribute's length does not
// count the padding behind it.
func (r *request) begin(kind uint16) (at int) {
	at = len(r.b)
	r.b = append(r.b, 0, 0, 0, 0)
	native.PutUint16(r.b[at+2:], kind)
	return at
}

func (r *request) end(at int) {
	native.PutUint16(r.b[at:], uint16(len(r.b)-at))
	for len(r.b)&3 != 0 {
		r.b = append(r.b, 0)
	}
}

// nest opens an attribute of attributes.
func (r *request) nest(kind uint16) (at int) { return r.begin(kind | unix.NLA_F_NESTED) }

func (r *request) bytes(kind uint16, value []byte) {
	at := r.begin(kind)
	r.b = append(r.b, value...)
	r.end(at)
}

// text is a NUL-terminated string.
func (r *request) text(kind uint16, value string) {
	at := r.begin(kind)
	r.b = append(r.b, value...)
	r.b = append(r.b, 0)
	r.end(at)
}

func (r *request) u8(kind uint16, value byte) {
	at := r.begin(kind)
	r.b = append(r.b, value)
	r.end(at)
}

func (r *request) u32(kind uint16, value uint32) {
	at := r.begin(kind)
	r.b = native.AppendUint32(r.b, value)
	r.end(at)
}

// be32 is a number in network order, as everything of netfilter is.
func (r *request) be32(kind uint16, value uint32) {
	at := r.begin(kind)
	r.b = binary.BigEndian.AppendUint32(r.b, value)
	r.end(at)
}

// ip is an IPv4 address; the caller has checked that it is one.
func (r *request) ip(kind uint16, a netip.Addr) {
	four := a.As4()
	r.bytes(kind, four[:])
}

// cursor goes through a list of attributes. A list that is cut short ends there: the kernel writes none.
type cursor struct {
	rest  []byte
	kind  uint16
	value []byte
}

func (c *cursor) next() bool {
	if len(c.rest) < attributeHeader {
		return false
	}
	size := int(native.Uint16(c.rest))
	if size < attributeHeader || size > len(c.rest) {
		return false
	}
	c.kind = native.Uint16(c.rest[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
	c.value = c.rest[attributeHeader:size]
	c.rest = c.rest[min((size+3)&^3, len(c.rest)):]
	return true
}

func (c *cursor) u8() byte {
	if len(c.value) < 1 {
		return 0
	}
	return c.value[0]
}

func (c *cursor) u32() uint32 {
	if len(c.value) < 4 {
		return 0
	}
	return native.Uint32(c.value)
}

func (c *cursor) be32() uint32 {
	if len(c.value) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(c.value)
}

// ip is an IPv4 address; any other length is the invalid one.
func (c *cursor) ip() netip.Addr {
	if len(c.value) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(c.value))
}

// text is a string without its NUL.
func (c *cursor) text() []byte {
	if n := len(c.value); n > 0 && c.value[n-1] == 0 {
		return c.value[:n-1]
	}
	return c.value
}
