package netlink

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// scripted is a socket whose other end plays the kernel.
func scripted(t *testing.T) (s *Socket, kernel int) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return Adopt(fds[0], 256), fds[1]
}

// answer is one message of a dump with sequence number 1.
func answer(t *testing.T, kernel int, kind, flags uint16, body ...byte) {
	var r Request
	r.Message(kind, flags)
	r.Raw(body...)
	r.number(1)
	_, err := unix.Write(kernel, r.B)
	must(t, err)
}

// TestDumps: whatever makes a list incomplete is an error, and the whole list is read all the same.
func TestDumps(t *testing.T) {
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
		s, err := Open(unix.NETLINK_ROUTE, 4096)
		must(t, err)
		t.Cleanup(s.Close)
		return s
	}
	ours, stranger := open(), open()
	must(t, unix.Sendto(stranger.fd, make([]byte, unix.NLMSG_HDRLEN), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Pid: ours.Port}))
	if b, err := ours.ReceiveNow(); err != unix.EAGAIN {
		t.Errorf("a process was heard: %x, %v", b, err)
	}
}

// TestBufferGrows: what was too large is not too large the next time.
func TestBufferGrows(t *testing.T) {
	s, kernel := scripted(t)
	for _, want := range []error{unix.EMSGSIZE, nil} {
		_, err := unix.Write(kernel, make([]byte, 1000))
		must(t, err)
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

// TestShortConfiguration: a kernel whose list of a link's settings ends before rp_filter.
func TestShortConfiguration(t *testing.T) {
	var r Request
	r.Reset().Message(0, 0)
	family := r.Nest(unix.AF_INET)
	conf := r.Nest(unix.IFLA_INET_CONF)
	r.Raw(1, 0, 0, 0)
	r.End(conf)
	r.End(family)
	if v := reversePathFilter(r.B[unix.NLMSG_HDRLEN:]); v != 0 {
		t.Errorf("rp_filter is %d", v)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enterNew moves the test to a network namespace of its own, and with it to a thread that ends with it.
func enterNew(t *testing.T) {
	if unix.Geteuid() != 0 {
		t.Skip("needs root: for a network namespace")
	}
	runtime.LockOSThread()
	must(t, unix.Unshare(unix.CLONE_NEWNET))
}
