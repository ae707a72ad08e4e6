package netlink

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// bytesOf lays numbers out one behind the other, each as wide as its type.
func bytesOf(numbers ...any) (b []byte) {
	for _, n := range numbers {
		switch n := n.(type) {
		case byte:
			b = append(b, n)
		case uint16:
			b = Native.AppendUint16(b, n)
		case uint32:
			b = Native.AppendUint32(b, n)
		case []byte:
			b = append(b, n...)
		}
	}
	return b
}

// TestMessagesAreLaidOutAsTheKernelReadsThem: one behind the other in one request, each with its length and the next
// number.
func TestMessagesAreLaidOutAsTheKernelReadsThem(t *testing.T) {
	var r Request
	r.Message(1, 2)
	r.Raw(3)
	r.Reset()
	if r.N != 0 || len(r.B) != 0 || len(r.Last()) != 0 {
		t.Fatalf("after Reset: %d messages in %x", r.N, r.B)
	}
	const kind, flags = uint16(0x1234), uint16(0x300)
	header := func(size, seq uint32) []byte { return bytesOf(size, kind, flags|unix.NLM_F_REQUEST, seq, uint32(0)) }
	var want [][]byte
	add := func(body []byte) {
		want = append(want, append(header(uint32(16+len(body)), uint32(40+len(want))), body...))
	}
	r.Link(kind, flags, 7, 8, 9)
	add(bytesOf(uint32(0), uint32(7), uint32(8), uint32(9)))
	r.Address(kind, flags, 24, 7)
	add(bytesOf(byte(unix.AF_INET), byte(24), byte(0), byte(0), uint32(7)))
	r.Route(kind, flags, 32, 3, 4, 5)
	add(bytesOf(byte(unix.AF_INET), byte(32), byte(0), byte(0), byte(0), byte(3), byte(4), byte(5), uint32(0)))
	r.Neighbour(kind, flags, 7, 0x80, 2)
	add(bytesOf(byte(unix.AF_INET), byte(0), byte(0), byte(0), uint32(7), uint16(0x80), byte(2), byte(0)))
	r.Netfilter(kind, flags, 2, 10)
	add(bytesOf(byte(2), byte(0), byte(0), byte(10))) // the resource in network order
	r.number(40)
	if r.N != len(want) || !bytes.Equal(r.B, bytes.Join(want, nil)) {
		t.Errorf("%d messages: %x, expected %x", r.N, r.B, want)
	}
	if last := want[len(want)-1]; !bytes.Equal(r.Last(), last) {
		t.Errorf("the last one is %x, expected %x", r.Last(), last)
	}
}

// TestListThatIsCutShortEndsThere, and what is read of it does not reach behind it.
func TestListThatIsCutShortEndsThere(t *testing.T) {
	whole := bytesOf(uint16(5), uint16(1), byte('a'), byte(0), byte(0), byte(0))
	for _, c := range []struct {
		list []byte
		want string // the values
	}{
		{nil, ""}, {whole[:3], ""}, {whole[:4], ""}, {whole[:5], "a."}, {whole, "a."},
		{append(bytes.Clone(whole), whole[:4]...), "a."},
		{append(bytes.Clone(whole), bytesOf(uint16(4), uint16(2))...), "a.."},
		{bytesOf(uint16(3), uint16(1), uint32(0)), ""}, {bytesOf(uint16(0), uint16(1)),
			""}, {bytesOf(uint16(9), uint16(1), uint32(0)), ""},
	} {
		have, n := "", 0
		for a := Attributes(c.list[:len(c.list):len(c.list)]); a.Next() && n < 9; n++ {
			have += string(a.Value) + "."
		}
		if have != c.want {
			t.Errorf("%x: %q, expected %q", c.list, have, c.want)
		}
	}
}

// TestValuesOfAnotherLength: a number that is too short is 0, an address of another family none, a text ends with its
// NUL or without.
func TestValuesOfAnotherLength(t *testing.T) {
	for n := range 6 {
		c := cursor{Value: bytes.Repeat([]byte{1}, n)}
		number := uint32(0)
		if n >= 4 {
			number = 0x01010101
		}
		if c.U32() != number || c.BE32() != number || c.IP().IsValid() != (n == 4) || (c.U8() == 1) != (n > 0) ||
			len(c.Text()) != n {
			t.Errorf("%d bytes: %x %x %v %d %q", n, c.U32(), c.BE32(), c.IP(), c.U8(), c.Text())
		}
	}
	for _, text := range []string{"\x00", "a\x00b\x00"} {
		if c := (cursor{Value: []byte(text)}); string(c.Text()) != text[:len(text)-1] {
			t.Errorf("%q is %q", text, c.Text())
		}
	}
	c := cursor{Value: binary.BigEndian.AppendUint32(nil, 0x0a000102)}
	if c.BE32() != 0x0a000102 || c.IP() != netip.MustParseAddr("10.0.1.2") {
		t.Errorf("in network order: %x, %v", c.BE32(), c.IP())
	}
}

// TestDatagramIsSplitAtItsMessages: one that is cut short ends it.
func TestDatagramIsSplitAtItsMessages(t *testing.T) {
	message := func(size uint32, body ...byte) []byte {
		return append(bytesOf(size, uint16(2), uint16(3), uint32(4), uint32(5)), body...)
	}
	odd := message(17, 'a', 0, 0, 0)
	for _, c := range []struct {
		datagram []byte
		want     string
	}{
		{message(16)[:15], ""}, {message(16), "."}, {message(15), ""}, {message(0), ""}, {message(17), ""},
		{odd[:17], "a."}, {odd, "a."}, {append(bytes.Clone(odd), message(18, 'b', 'c')...),
			"a.bc."}, {append(bytes.Clone(odd), 16, 0), "a."},
	} {
		have, n := "", 0
		for h, rest, ok := Split(c.datagram[:len(c.datagram):len(c.datagram)]); ok && n < 9; h, rest, ok = Split(rest) {
			n++
			if h.Kind != 2 || h.flags != 3 || h.seq != 4 || h.Port != 5 {
				t.Errorf("%x: %+v", c.datagram, h)
			}
			have += string(h.Body) + "."
		}
		if have != c.want {
			t.Errorf("%x: %q, expected %q", c.datagram, have, c.want)
		}
	}
}

// TestRefusalsReadAsErrors that go-cni takes for none, and their number is theirs alone.
func TestRefusalsReadAsErrors(t *testing.T) {
	for _, c := range []struct {
		err  Refusal
		want string
	}{
		{Refusal{Errno: unix.ENOENT}, "absent"}, {Refusal{Errno: unix.ESRCH}, "absent"}, {Refusal{Errno: unix.EEXIST},
			"exists"},
		{Refusal{Errno: unix.EPERM}, "operation not permitted"}, {Refusal{unix.EEXIST, "link not found"},
			"exists: link missing"},
	} {
		if c.err.Error() != c.want {
			t.Errorf("%d reads %q, expected %q", c.err.Errno, c.err.Error(), c.want)
		}
	}
	if err := error(&Refusal{Errno: unix.EPERM}); !Is(err, unix.EPERM) || Is(err, unix.ENOENT) ||
		Is(unix.EPERM, unix.EPERM) || Is(nil, 0) {
		t.Error("it is another refusal")
	}
	for size, want := range map[int]unix.Errno{0: unix.EBADMSG, 3: unix.EBADMSG, 4: 0, 5: 0} {
		h := Header{Body: make([]byte, size)}
		if err := h.Verdict(); (err == nil) != (want == 0) || err != nil && !Is(err, want) {
			t.Errorf("a verdict of %d bytes is %v", size, err)
		}
	}
	var r Request
	r.Raw(bytesOf(uint32(0xffffffff), make([]byte, unix.NLMSG_HDRLEN))...)
	r.Text(unix.NLMSGERR_ATTR_MSG, "because")
	r.Text(unix.NLMSGERR_ATTR_OFFS, "elsewhere")
	for flags, want := range map[uint16]bool{unix.NLM_F_ACK_TLVS | unix.NLM_F_CAPPED: true, unix.NLM_F_ACK_TLVS: false,
		unix.NLM_F_CAPPED: false, 0: false} {
		h := Header{flags: flags, Body: r.B}
		if err := h.Verdict(); strings.HasSuffix(err.Error(), ": because") != want || !Is(err, unix.EPERM) {
			t.Errorf("flags %x: %v", flags, err)
		}
	}
}

// asks are the four ways to ask.
func asks(s *Socket) map[string]func(*Request) error {
	return map[string]func(*Request) error{
		"Do":       s.Do,
		"DoAll":    func(r *Request) error { return s.DoAll(r, make([]error, 1)) },
		"Get":      func(r *Request) error { _, err := s.Get(r); return err },
		"Dump":     func(r *Request) error { return s.Dump(r, func([]byte) {}) },
		"Transact": func(r *Request) error { return s.Transact(r, 0) },
	}
}

// TestRequestThatIsNotSentHasNoAnswer, also when there is something that looks like one; nor has one of which only a
// part was sent.
func TestRequestThatIsNotSentHasNoAnswer(t *testing.T) {
	for name := range asks(nil) {
		s, kernel := scripted(t)
		answer(t, kernel, unix.NLMSG_ERROR, 0, 0, 0, 0, 0)
		large := (&Request{}).AskLinks()
		large.Raw(make([]byte, 8<<20)...)
		if err := asks(s)[name](large); err != unix.EMSGSIZE {
			t.Errorf("%s: %v, expected %v", name, err, unix.EMSGSIZE)
		}
	}
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fds[1])
	s := Adopt(fds[0], 256)
	large := (&Request{}).AskLinks()
	large.Raw(make([]byte, 8<<20)...)
	if _, err := s.send(large); err != unix.EMSGSIZE {
		t.Errorf("half a request: %v", err)
	}
	unix.Close(fds[0])
	s.fd = -1
	if _, err := s.send((&Request{}).AskLinks()); err != unix.EBADF {
		t.Errorf("a socket that is closed: %v", err)
	}
}

// TestSilentKernel: an answer that does not come is an error when its time is up.
func TestSilentKernel(t *testing.T) {
	for name := range asks(nil) {
		s, kernel := scripted(t)
		s.Timeout = time.Millisecond
		if err := asks(s)[name]((&Request{}).AskLinks()); err != unix.ETIMEDOUT {
			t.Errorf("%s: %v, expected %v", name, err, unix.ETIMEDOUT)
		}
		answer(t, kernel, unix.NLMSG_NOOP, 0)
		if err := s.Wait(time.Minute); err != nil {
			t.Errorf("something is there: %v", err)
		}
	}
}

// TestAnswersAmongOthers: what is no answer is passed over, in one datagram with it or apart, and one refusal among
// several is its message's own.
func TestAnswersAmongOthers(t *testing.T) {
	refusal := bytesOf(uint32(0xffffffff)) // -EPERM
	message := func(seq uint32, kind uint16, body ...byte) []byte {
		var r Request
		r.Message(kind, unix.NLM_F_MULTI)
		r.Raw(body...)
		r.number(seq)
		return r.B
	}
	for name, apart := range map[string]bool{"in one datagram": false, "each in its own": true} {
		s, kernel := scripted(t)
		s.Timeout = 50 * time.Millisecond // nobody else will speak
		say := func(messages ...[]byte) {
			if !apart {
				messages = [][]byte{bytes.Join(messages, nil)}
			}
			for _, m := range messages {
				must.Get(unix.Write(kernel, m))(t)
			}
		}
		s.seq = 9
		say(message(9, unix.NLMSG_DONE), message(9, unix.RTM_NEWLINK, 1, 0, 0, 0), message(10, unix.NLMSG_NOOP),
			message(10, unix.RTM_NEWLINK, 2, 0, 0, 0), message(10, unix.NLMSG_DONE))
		var listed []byte
		if err := s.Dump((&Request{}).AskLinks(), func(b []byte) { listed = append(listed, b...) }); err != nil ||
			!bytes.Equal(listed, []byte{2, 0, 0, 0}) {
			t.Errorf("%s: Dump lists %x, %v", name, listed, err)
		}
		two := func() *Request {
			var r Request
			r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 1, 0, 0)
			r.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 2, 0, 0)
			return &r
		}
		say(message(13, unix.NLMSG_ERROR, refusal...), message(11, unix.RTM_NEWLINK, refusal...),
			message(11, unix.NLMSG_ERROR, refusal...), message(12, unix.NLMSG_ERROR, 0, 0, 0, 0))
		outcomes := make([]error, 2)
		if err := s.DoAll(two(), outcomes); err != nil || !Is(outcomes[0], unix.EPERM) || outcomes[1] != nil {
			t.Errorf("%s: DoAll gives %v, %v", name, outcomes, err)
		}
		say(message(15, unix.NLMSG_ERROR, refusal...), message(14, unix.RTM_NEWLINK, refusal...),
			message(13, unix.NLMSG_ERROR, 0, 0, 0, 0), message(14, unix.NLMSG_ERROR, 0, 0, 0, 0))
		if err := s.Transact(two(), 1); err != nil {
			t.Errorf("%s: Transact gives %v", name, err)
		}
		if _, err := s.ReceiveNow(); err != unix.EAGAIN {
			t.Errorf("%s: Transact ended before its last message's answer", name)
		}
		say(message(15, unix.NLMSG_ERROR, refusal...))
		if err := s.Transact(two(), 1); !Is(err, unix.EPERM) {
			t.Errorf("%s: a refused batch: %v", name, err)
		}
		say(message(17, unix.NLMSG_ERROR, refusal...))
		if body, err := s.Get((&Request{}).AskLink(1, "")); !Is(err, unix.EPERM) || body != nil {
			t.Errorf("%s: Get gives %x, %v", name, body, err)
		}
	}
}

// TestDatagramThatFillsTheBuffer is whole.
func TestDatagramThatFillsTheBuffer(t *testing.T) {
	s, kernel := scripted(t)
	must.Get(unix.Write(kernel, make([]byte, len(s.buf))))(t)
	if b, err := s.ReceiveNow(); err != nil || len(b) != 256 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

// TestOpenedSocketHasItsOptions, has room, and is closed by Close. A protocol that does not exist, and a socket that
// is closed, are errors.
func TestOpenedSocketHasItsOptions(t *testing.T) {
	s := must.Get(Open(unix.NETLINK_ROUTE, 4096))(t)
	for _, o := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK, unix.NETLINK_GET_STRICT_CHK} {
		if v, err := unix.GetsockoptInt(s.fd, unix.SOL_NETLINK, o); err != nil || v != 1 {
			t.Errorf("option %d is %d, %v", o, v, err)
		}
	}
	size := 100 << 10
	if unix.Geteuid() == 0 {
		size = 16 << 20 // more than a process without the capability may have (net.core.rmem_max)
	}
	must.Do(t, s.Room(size))
	// socket(7): the kernel doubles it
	if v, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil || v != 2*size {
		t.Errorf("the kernel may queue %d bytes, expected %d: %v", v, 2*size, err)
	}
	s.Close()
	if _, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("after Close: %v", err)
	}
	s.fd = -1
	for name, err := range map[string]error{"Room": s.Room(4096), "Options": s.Options(), "readPort": s.readPort(),
		"prepare": s.prepare(nil), "Wait": firstOf(s.receive())} {
		if err != unix.EBADF && err != unix.ETIMEDOUT {
			t.Errorf("%s of a closed socket: %v", name, err)
		}
	}
	if _, err := Open(1000, 4096); !errors.Is(err, unix.EPROTONOSUPPORT) && !errors.Is(err, unix.EINVAL) {
		t.Errorf("a protocol that does not exist: %v", err)
	}
}

func firstOf(_ []byte, err error) error { return err }

// TestLinkIsReadWhole: every part of it, and nothing of another family or kind.
func TestLinkIsReadWhole(t *testing.T) {
	var r Request
	r.Link(0, 0, 7, unix.IFF_UP, 0)
	bare := bytes.Clone(r.B[unix.NLMSG_HDRLEN:])
	r.Text(unix.IFLA_IFNAME, "eni1")
	r.Text(unix.IFLA_IFALIAS, "pod")
	r.Bytes(unix.IFLA_ADDRESS, []byte{2, 0, 0, 0, 0, 1})
	r.U32(unix.IFLA_MTU, 9001)
	r.U32(unix.IFLA_GROUP, 5)
	r.U32(unix.IFLA_LINK, 3)
	r.U32(unix.IFLA_LINK_NETNSID, 1<<32-1)
	info := r.Nest(unix.IFLA_LINKINFO)
	r.Text(unix.IFLA_INFO_DATA, "dummy")
	r.Text(unix.IFLA_INFO_KIND, "veth")
	r.End(info)
	spec := r.Nest(unix.IFLA_AF_SPEC)
	for _, family := range []uint16{unix.AF_INET6, unix.AF_INET} {
		nest := r.Nest(family)
		for kind := uint16(unix.IFLA_INET_CONF) + 1; kind >= unix.IFLA_INET_CONF; kind-- {
			conf := r.Nest(kind)
			for k := range uint32(DevconfRPFilter + 2) {
				r.Raw(bytesOf(100*uint32(family) + 50*uint32(kind) + k)...)
			}
			r.End(conf)
		}
		r.End(nest)
	}
	r.End(spec)
	var v Link
	if !v.Parse(r.B[unix.NLMSG_HDRLEN:]) || v.Index != 7 || !v.Up() || v.Loopback() || !v.Veth() ||
		string(v.Name) != "eni1" || string(v.Alias) != "pod" ||
		!bytes.Equal(v.MAC, []byte{2, 0, 0, 0, 0, 1}) || v.MTU != 9001 || v.Group != 5 || v.Peer != 3 || v.NetNSID != -1 ||
		!v.Crosses {
		t.Errorf("%+v", v)
	}
	// the first value is number 1
	if want := 100*unix.AF_INET + 50*unix.IFLA_INET_CONF + DevconfRPFilter - 1; v.RPFilter != want {
		t.Errorf("rp_filter is %d, expected %d", v.RPFilter, want)
	}
	if !v.Parse(bare) || v.Index != 7 || v.NetNSID != -1 || v.Crosses || v.Name != nil || v.Veth() || v.RPFilter != 0 {
		t.Errorf("without attributes: %+v", v)
	}
	if v.Parse(bare[:len(bare)-1]) {
		t.Error("half a link is one")
	}
}

// TestAddressIsTheLocalOne: IFA_ADDRESS is the other end's where there is one.
func TestAddressIsTheLocalOne(t *testing.T) {
	local, other := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	six := netip.MustParseAddr("fe80::1").As16()
	for name, c := range map[string]struct {
		fill func(*Request)
		want string
	}{
		"both":    {func(r *Request) { r.IP(unix.IFA_ADDRESS, other); r.IP(unix.IFA_LOCAL, local) }, "10.0.0.1/24"},
		"one":     {func(r *Request) { r.IP(unix.IFA_ADDRESS, other) }, "10.0.0.2/24"},
		"IPv6":    {func(r *Request) { r.Bytes(unix.IFA_ADDRESS, six[:]) }, "fe80::1/24"},
		"none":    {func(r *Request) {}, ""},
		"no bits": {func(r *Request) { r.B[unix.NLMSG_HDRLEN+1] = 33; r.IP(unix.IFA_LOCAL, local) }, ""},
	} {
		var r Request
		r.Address(0, 0, 24, 7)
		c.fill(&r)
		if index, p, ok := ParseAddress(r.B[unix.NLMSG_HDRLEN:]); index != 7 || ok != (c.want != "") || ok &&
			p.String() != c.want {
			t.Errorf("%s: %v of link %d, %v", name, p, index, ok)
		}
		if _, _, ok := ParseAddress(r.B[unix.NLMSG_HDRLEN:][:7]); ok {
			t.Errorf("%s: half a message is an address", name)
		}
	}
}

// TestLinksAreAskedForByIndexOrName, without the statistics that nobody reads.
func TestLinksAreAskedForByIndexOrName(t *testing.T) {
	for name, c := range map[string]struct {
		r     *Request
		flags uint16
		index uint32
		want  string // the name that is asked for
	}{
		"all":      {(&Request{}).AskLinks(), unix.NLM_F_DUMP, 0, ""},
		"by index": {(&Request{}).AskLink(7, "eth0"), 0, 7, ""},
		"by name":  {(&Request{}).AskLink(0, "eth0"), 0, 0, "eth0"},
	} {
		c.r.Finish()
		h, _, ok := Split(c.r.B)
		if !ok || h.Kind != unix.RTM_GETLINK || h.flags != c.flags|unix.NLM_F_REQUEST ||
			Native.Uint32(h.Body[4:]) != c.index {
			t.Errorf("%s: %+v", name, h)
			continue
		}
		asked, mask := "", uint32(0)
		for a := Attributes(h.Body[unix.SizeofIfInfomsg:]); a.Next(); {
			switch a.Kind {
			case unix.IFLA_IFNAME:
				asked = string(a.Text())
			case unix.IFLA_EXT_MASK:
				mask = a.U32()
			}
		}
		if asked != c.want || mask != skipStatistics {
			t.Errorf("%s: asks for %q, mask %x", name, asked, mask)
		}
	}
}
