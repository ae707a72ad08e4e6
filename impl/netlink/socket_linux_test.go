package netlink

import (
	"errors"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// scripted is a socket whose other end plays the kernel.
func scripted(t *testing.T) (s *Socket, kernel int) {
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return Adopt(fds[0], 256), fds[1]
}

// answer is one message of a dump with sequence number 1.
func answer(t *testing.T, kernel int, kind, flags uint16, body ...byte) {
	var r Request
	r.Message(kind, flags)
	r.Raw(body...)
	r.number(1)
	must.Get(unix.Write(kernel, r.B))(t)
}

// TestIncompleteDumpIsAnError: whatever makes a list incomplete is an error, and the whole list is read all the same.
func TestIncompleteDumpIsAnError(t *testing.T) {
	negative := func(errno unix.Errno) []byte { return Native.AppendUint32(nil, uint32(-int32(errno))) }
	for _, c := range []struct {
		name   string
		script func(t *testing.T, kernel int)
		want   error
	}{
		{"complete", func(t *testing.T, k int) { answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0) }, nil},
		{"DUMP_INTR in an element", func(t *testing.T, k int) {
			answer(t, k, unix.RTM_NEWLINK, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR, 0)
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0)
		}, ErrInterrupted},
		{"DUMP_INTR in DONE", func(t *testing.T, k int) {
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR, 0, 0, 0, 0)
		}, ErrInterrupted},
		{"an errno in DONE", func(t *testing.T, k int) {
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, negative(unix.ENOMEM)...)
		}, &Refusal{Errno: unix.ENOMEM}},
		{"refused", func(t *testing.T, k int) { answer(t, k, unix.NLMSG_ERROR, 0, negative(unix.EPERM)...) }, &Refusal{Errno: unix.EPERM}},
		{"overrun", func(t *testing.T, k int) {
			answer(t, k, unix.NLMSG_OVERRUN, unix.NLM_F_MULTI)
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0)
		}, unix.ENOBUFS},
		{"larger than the buffer", func(t *testing.T, k int) {
			answer(t, k, unix.RTM_NEWLINK, unix.NLM_F_MULTI, make([]byte, 1000)...)
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0)
		}, unix.EMSGSIZE},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, kernel := scripted(t)
			answer(t, kernel, unix.RTM_NEWLINK, unix.NLM_F_MULTI, 0)
			c.script(t, kernel)
			elements := 0
			err := s.Dump((&Request{}).AskLinks(), func([]byte) { elements++ })
			if elements == 0 || !same(err, c.want) {
				t.Errorf("%d elements, %v; expected %v", elements, err, c.want)
			}
			if _, err := s.ReceiveNow(); err != unix.EAGAIN {
				t.Errorf("something was left: %v", err)
			}
		})
	}
}

func same(have, want error) bool {
	if w, ok := want.(*Refusal); ok {
		return Is(have, w.Errno)
	}
	return errors.Is(have, want)
}

// TestOnlyTheKernelSpeaks: a process may send to our socket, and is not listened to.
func TestOnlyTheKernelSpeaks(t *testing.T) {
	enterNew(t)
	open := func() *Socket {
		s := must.Get(Open(unix.NETLINK_ROUTE, 4096))(t)
		t.Cleanup(s.Close)
		return s
	}
	ours, stranger := open(), open()
	must.Do(t, unix.Sendto(stranger.fd, make([]byte, unix.NLMSG_HDRLEN), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: ours.Port}))
	if b, err := ours.ReceiveNow(); err != unix.EAGAIN {
		t.Errorf("a process was heard: %x, %v", b, err)
	}
}

// TestBufferGrows: what was too large is not too large the next time.
func TestBufferGrows(t *testing.T) {
	s, kernel := scripted(t)
	for _, want := range []error{unix.EMSGSIZE, nil} {
		must.Get(unix.Write(kernel, make([]byte, 1000)))(t)
		if b, err := s.ReceiveNow(); err != want && !(want == nil && len(b) == 1000) {
			t.Errorf("%d bytes, %v; expected %v", len(b), err, want)
		}
	}
}

// TestTheKernelsOwnWords: an error says what the kernel said beside its number.
func TestTheKernelsOwnWords(t *testing.T) {
	var r Request
	r.Reset().Message(unix.NLMSG_ERROR, unix.NLM_F_ACK_TLVS|unix.NLM_F_CAPPED)
	r.Raw(Native.AppendUint32(nil, uint32(0xffffffff))...) // -EPERM
	r.Raw(make([]byte, unix.NLMSG_HDRLEN)...)
	r.Text(unix.NLMSGERR_ATTR_MSG, "because of the moon")
	h := Header{Kind: unix.NLMSG_ERROR, flags: unix.NLM_F_ACK_TLVS | unix.NLM_F_CAPPED, Body: r.B[unix.NLMSG_HDRLEN:]}
	if err := h.Verdict(); err == nil || !strings.Contains(err.Error(), "because of the moon") {
		t.Errorf("%v", err)
	}
	h.flags = unix.NLM_F_ACK_TLVS // the whole request comes first: what is there are no words
	if err := h.Verdict(); err == nil || strings.Contains(err.Error(), "moon") {
		t.Errorf("%v", err)
	}
}

// TestShortConfiguration: a kernel whose list of a link's settings ends before rp_filter, or with it.
func TestShortConfiguration(t *testing.T) {
	for numbers, want := range map[int]int{1: 0, DevconfRPFilter - 1: 0, DevconfRPFilter: 2, DevconfRPFilter + 1: 2} {
		var r Request
		r.Reset().Message(0, 0)
		family := r.Nest(unix.AF_INET)
		conf := r.Nest(unix.IFLA_INET_CONF)
		for range numbers {
			r.Raw(Native.AppendUint32(nil, 2)...)
		}
		r.End(conf)
		r.End(family)
		if v := reversePathFilter(r.B[unix.NLMSG_HDRLEN:]); v != want {
			t.Errorf("of %d numbers rp_filter is %d, expected %d", numbers, v, want)
		}
	}
}

// TestAttributesAreReadAsWritten: of any length, one behind the other, and in one another.
func TestAttributesAreReadAsWritten(t *testing.T) {
	var r Request
	address := netip.MustParseAddr("10.0.10.70")
	r.Reset().Message(0, 0)
	for _, name := range []string{"", "lo", "eth0", "eni-1"} {
		nest := r.Nest(1)
		r.U8(2, 200)
		r.Text(3, name)
		r.U32(4, 1<<31)
		r.BE32(5, 1<<31)
		r.IP(6, address)
		r.Bytes(7, []byte(name))
		r.End(nest)
	}
	c := Attributes(r.B[unix.NLMSG_HDRLEN:])
	for _, name := range []string{"", "lo", "eth0", "eni-1"} {
		if !c.Next() || c.Kind != 1 || !c.Nested {
			t.Fatalf("%q: expected a nest, found kind %d", name, c.Kind)
		}
		in := Attributes(c.Value)
		for kind, right := range map[uint16]func() bool{
			2: func() bool { return in.U8() == 200 },
			3: func() bool { return string(in.Text()) == name && len(in.Value) == len(name)+1 },
			4: func() bool { return in.U32() == 1<<31 },
			5: func() bool { return in.BE32() == 1<<31 },
			6: func() bool { return in.IP() == address },
			7: func() bool { return string(in.Text()) == name && string(in.Value) == name },
		} {
			for in = Attributes(c.Value); in.Next() && in.Kind != kind; {
			}
			if in.Kind != kind || in.Nested || !right() {
				t.Errorf("%q: attribute %d is read as %x of kind %d", name, kind, in.Value, in.Kind)
			}
		}
	}
	if c.Next() {
		t.Errorf("there is one more, of kind %d", c.Kind)
	}
	if c.Value = nil; c.U8() != 0 || c.U32() != 0 || c.BE32() != 0 || c.IP().IsValid() || len(c.Text()) != 0 {
		t.Error("an empty value is something")
	}
}

// TestOpenedSocketIsInItsGroups: it hears what it was opened for, and knows the port by which notifications name it. A group that cannot be is
// an error.
func TestOpenedSocketIsInItsGroups(t *testing.T) {
	s := must.Get(Open(unix.NETLINK_ROUTE, 4096, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_RULE))(t)
	t.Cleanup(s.Close)
	groups := must.Get(unix.GetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_LIST_MEMBERSHIPS))(t)
	if want := 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_IPV4_RULE-1); groups != want {
		t.Errorf("it is in groups %b, expected %b", groups, want)
	}
	name := must.Get(unix.Getsockname(s.fd))(t)
	if port := name.(*unix.SockaddrNetlink).Pid; port == 0 || s.Port != port {
		t.Errorf("its port is %d, expected %d", s.Port, port)
	}
	if s, err := Open(unix.NETLINK_ROUTE, 4096, 1<<20); err == nil {
		s.Close()
		t.Error("it is in a group that does not exist")
	}
}

// TestAdoptedSocketStaysOpen: who opened it closes it. A socket that was never opened needs no closing.
func TestAdoptedSocketStaysOpen(t *testing.T) {
	s, kernel := scripted(t)
	s.Close()
	answer(t, kernel, unix.RTM_NEWLINK, 0)
	if _, err := s.ReceiveNow(); err != nil {
		t.Errorf("after Close: %v", err)
	}
	(*Socket)(nil).Close()
}

// TestLateAnswersAreNobodys: what answers an earlier request, which somebody gave up, is not taken for the answer, wherever it comes.
func TestLateAnswersAreNobodys(t *testing.T) {
	refusal := Native.AppendUint32(nil, uint32(0xffffffff)) // -EPERM
	say := func(kernel int, messages ...func(*Request)) {
		var b []byte
		for _, m := range messages {
			var r Request
			m(&r)
			b = append(b, r.B...)
		}
		must.Get(unix.Write(kernel, b))(t)
	}
	message := func(seq uint32, kind uint16, body ...byte) func(*Request) {
		return func(r *Request) { r.Message(kind, 0); r.Raw(body...); r.number(seq) }
	}
	late := message(0, unix.NLMSG_ERROR, refusal...)
	for name, apart := range map[string]bool{"in one datagram": false, "each in its own": true} {
		s, kernel := scripted(t)
		s.Timeout = 50 * time.Millisecond // nobody else will speak
		script := func(messages ...func(*Request)) {
			if !apart {
				say(kernel, messages...)
				return
			}
			for _, m := range messages {
				say(kernel, m)
			}
		}
		script(late, message(1, unix.RTM_NEWLINK, 7, 0, 0, 0))
		if body, err := s.Get((&Request{}).AskLink(1, "")); err != nil || len(body) != 4 || body[0] != 7 {
			t.Errorf("%s: Get gives %x, %v", name, body, err)
		}
		var two Request
		two.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 1, 0, 0)
		two.Link(unix.RTM_SETLINK, unix.NLM_F_ACK, 2, 0, 0)
		script(late, message(3, unix.NLMSG_ERROR, refusal...), message(2, unix.NLMSG_ERROR, 0, 0, 0, 0))
		outcomes := make([]error, 2)
		if err := s.DoAll(&two, outcomes); err != nil || outcomes[0] != nil || !Is(outcomes[1], unix.EPERM) {
			t.Errorf("%s: DoAll gives %v, %v", name, outcomes, err)
		}
		script(late, message(5, unix.NLMSG_ERROR, 0, 0, 0, 0))
		if err := s.Transact(&two, 1); err != nil {
			t.Errorf("%s: Transact gives %v", name, err)
		}
	}
}

// enterNew moves the test to a network namespace of its own, and with it to a thread that ends with it.
func enterNew(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root: for a network namespace")
	}
	runtime.LockOSThread()
	must.Do(t, unix.Unshare(unix.CLONE_NEWNET))
}
