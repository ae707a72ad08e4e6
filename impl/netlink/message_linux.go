package netlink

import (
	"encoding/binary"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Native is the byte order of everything but netfilter and addresses.
var Native = binary.NativeEndian

// Request is one or more netlink messages under construction (netlink(7)). It is reused: Reset keeps
// the memory.
type Request struct {
	B  []byte
	N  int // messages in it
	at int // where the last one begins
}

// Reset begins anew.
func (r *Request) Reset() *Request {
	r.B, r.at, r.N = r.B[:0], 0, 0
	return r
}

// Message begins another message; the fixed part of its type follows.
func (r *Request) Message(kind, flags uint16) {
	r.Finish()
	r.at = len(r.B)
	r.N++
	r.B = append(r.B, make([]byte, unix.NLMSG_HDRLEN)...)
	Native.PutUint16(r.B[r.at+4:], kind)
	Native.PutUint16(r.B[r.at+6:], flags|unix.NLM_F_REQUEST)
}

// Finish writes the length of the last message.
func (r *Request) Finish() {
	if r.N > 0 {
		Native.PutUint32(r.B[r.at:], uint32(len(r.B)-r.at))
	}
}

// number gives the messages their sequence numbers, from first.
func (r *Request) number(first uint32) {
	r.Finish()
	for at := 0; at < len(r.B); at += int(Native.Uint32(r.B[at:])) {
		Native.PutUint32(r.B[at+8:], first)
		first++
	}
}

// Raw appends bytes as they are.
func (r *Request) Raw(b ...byte) { r.B = append(r.B, b...) }

// Last is the last message, header included.
func (r *Request) Last() []byte { return r.B[r.at:] }

// Link is struct ifinfomsg (rtnetlink(7)).
func (r *Request) Link(kind, flags uint16, index int, set, change uint32) {
	r.Message(kind, flags)
	r.Raw(unix.AF_UNSPEC, 0, 0, 0)
	r.B = Native.AppendUint32(r.B, uint32(index))
	r.B = Native.AppendUint32(r.B, set)
	r.B = Native.AppendUint32(r.B, change)
}

// Address is struct ifaddrmsg.
func (r *Request) Address(kind, flags uint16, bits int, index int) {
	r.Message(kind, flags)
	r.Raw(unix.AF_INET, byte(bits), 0, unix.RT_SCOPE_UNIVERSE)
	r.B = Native.AppendUint32(r.B, uint32(index))
}

// Route is struct rtmsg; the table is an attribute, for the field is 8 bits wide.
func (r *Request) Route(kind, flags uint16, bits int, protocol, scope, typ byte) {
	r.Message(kind, flags)
	r.Raw(unix.AF_INET, byte(bits), 0, 0, unix.RT_TABLE_UNSPEC, protocol, scope, typ, 0, 0, 0, 0)
}

// Neighbour is struct ndmsg.
func (r *Request) Neighbour(kind, flags uint16, index int, state uint16, ntf byte) {
	r.Message(kind, flags)
	r.Raw(unix.AF_INET, 0, 0, 0)
	r.B = Native.AppendUint32(r.B, uint32(index))
	r.B = Native.AppendUint16(r.B, state)
	r.Raw(ntf, 0)
}

// Netfilter is struct nfgenmsg (linux/netfilter/nfnetlink.h).
func (r *Request) Netfilter(kind, flags uint16, family byte, resource uint16) {
	r.Message(kind, flags)
	r.Raw(family, unix.NFNETLINK_V0)
	r.B = binary.BigEndian.AppendUint16(r.B, resource)
}

const attributeHeader = 4

// Begin opens an attribute whose end is not known yet; End closes it. An attribute's length does not
// count the padding behind it.
func (r *Request) Begin(kind uint16) (at int) {
	at = len(r.B)
	r.B = append(r.B, 0, 0, 0, 0)
	Native.PutUint16(r.B[at+2:], kind)
	return at
}

// End closes the attribute that Begin or Nest opened there.
func (r *Request) End(at int) {
	Native.PutUint16(r.B[at:], uint16(len(r.B)-at))
	for len(r.B)&3 != 0 {
		r.B = append(r.B, 0)
	}
}

// Nest opens an attribute of attributes.
func (r *Request) Nest(kind uint16) (at int) { return r.Begin(kind | unix.NLA_F_NESTED) }

// Bytes is an attribute with that value.
func (r *Request) Bytes(kind uint16, value []byte) {
	at := r.Begin(kind)
	r.B = append(r.B, value...)
	r.End(at)
}

// Text is a NUL-terminated string.
func (r *Request) Text(kind uint16, value string) {
	at := r.Begin(kind)
	r.B = append(r.B, value...)
	r.B = append(r.B, 0)
	r.End(at)
}

// U8 is a number of one byte.
func (r *Request) U8(kind uint16, value byte) {
	at := r.Begin(kind)
	r.B = append(r.B, value)
	r.End(at)
}

// U32 is a number in the byte order of the host.
func (r *Request) U32(kind uint16, value uint32) {
	at := r.Begin(kind)
	r.B = Native.AppendUint32(r.B, value)
	r.End(at)
}

// BE32 is a number in network order, as everything of netfilter is.
func (r *Request) BE32(kind uint16, value uint32) {
	at := r.Begin(kind)
	r.B = binary.BigEndian.AppendUint32(r.B, value)
	r.End(at)
}

// IP is an IPv4 address; the caller has checked that it is one.
func (r *Request) IP(kind uint16, a netip.Addr) {
	four := a.As4()
	r.Bytes(kind, four[:])
}

// cursor goes through a list of attributes. A list that is cut short ends there: the kernel writes none.
type cursor struct {
	Kind   uint16
	Nested bool
	Value  []byte
	rest   []byte
}

// Attributes begins with the first of a list.
func Attributes(list []byte) cursor { return cursor{rest: list} }

// Next goes to the next attribute, or says that there is none.
func (c *cursor) Next() bool {
	if len(c.rest) < attributeHeader {
		return false
	}
	size := int(Native.Uint16(c.rest))
	if size < attributeHeader || size > len(c.rest) {
		return false
	}
	kind := Native.Uint16(c.rest[2:])
	c.Kind, c.Nested = kind&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER), kind&unix.NLA_F_NESTED != 0
	c.Value = c.rest[attributeHeader:size]
	c.rest = c.rest[min((size+3)&^3, len(c.rest)):]
	return true
}

// U8 is a number of one byte, 0 when the value is too short for it; so are U32 and BE32.
func (c *cursor) U8() byte {
	if len(c.Value) < 1 {
		return 0
	}
	return c.Value[0]
}

// U32 is a number in the byte order of the host.
func (c *cursor) U32() uint32 {
	if len(c.Value) < 4 {
		return 0
	}
	return Native.Uint32(c.Value)
}

// BE32 is a number in network order.
func (c *cursor) BE32() uint32 {
	if len(c.Value) < 4 {
		return 0
	}
	return binary.BigEndian.Uint32(c.Value)
}

// IP is an IPv4 address; any other length is the invalid one.
func (c *cursor) IP() netip.Addr {
	if len(c.Value) != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(c.Value))
}

// Text is a string without its NUL.
func (c *cursor) Text() []byte {
	if n := len(c.Value); n > 0 && c.Value[n-1] == 0 {
		return c.Value[:n-1]
	}
	return c.Value
}
