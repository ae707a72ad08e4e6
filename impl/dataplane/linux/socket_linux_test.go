package linux

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

// scripted is a socket whose other end plays the kernel.
func scripted(t *testing.T) (s *socket, kernel int) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	return &socket{fd: fds[0], buf: make([]byte, 256)}, fds[1]
}

// answer is one message of a dump with sequence number 1.
func answer(t *testing.T, kernel int, kind, flags uint16, body ...byte) {
	var r request
	r.message(kind, flags)
	r.raw(body...)
	r.number(1)
	_, err := unix.Write(kernel, r.b)
	must(t, err)
}

// TestDumps: whatever makes a list incomplete is an error, and the whole list is read all the same.
func TestDumps(t *testing.T) {
	negative := func(errno unix.Errno) []byte { return native.AppendUint32(nil, uint32(-int32(errno))) }
	for _, c := range []struct {
		name   string
		script func(t *testing.T, kernel int)
		want   error
	}{
		{"complete", func(t *testing.T, k int) { answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0) }, nil},
		{"DUMP_INTR in an element", func(t *testing.T, k int) {
			answer(t, k, unix.RTM_NEWLINK, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR, 0)
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, 0, 0, 0, 0)
		}, errInterrupted},
		{"DUMP_INTR in DONE", func(t *testing.T, k int) {
			answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR, 0, 0, 0, 0)
		}, errInterrupted},
		{"an errno in DONE", func(t *testing.T, k int) { answer(t, k, unix.NLMSG_DONE, unix.NLM_F_MULTI, negative(unix.ENOMEM)...) }, &refusal{errno: unix.ENOMEM}},
		{"refused", func(t *testing.T, k int) { answer(t, k, unix.NLMSG_ERROR, 0, negative(unix.EPERM)...) }, &refusal{errno: unix.EPERM}},
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
			err := s.dump((&request{}).askLinks(), func([]byte) { elements++ })
			if elements == 0 || !same(err, c.want) {
				t.Errorf("%d elements, %v; expected %v", elements, err, c.want)
			}
			if _, err := s.receiveNow(); err != unix.EAGAIN {
				t.Errorf("something was left: %v", err)
			}
		})
	}
}

func same(have, want error) bool {
	if w, ok := want.(*refusal); ok {
		return is(have, w.errno)
	}
	return errors.Is(have, want)
}

// TestEndingNamespaces: while namespaces end, every observation is complete, and none says that one lives after its
// veth is gone or takes an ended one for an error.
func TestEndingNamespaces(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	const pods = 8
	var spaces []*space
	for i := range pods {
		s := newSpace(t)
		spaces = append(spaces, s)
		p := s.pod(t)
		apply(t, k, dataplane.PodPlan(spec(i, s.inode)), p)
		must(t, p.Close())
	}
	for _, s := range spaces {
		must(t, s.netns.Close())
	}
	for left := pods; left > 0; {
		left = len(observe(t, k).Links)
	}
}
