package linux

import (
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// answering is a socket whose other end is a function: it gets one message at a time, header included, and gives the
// datagrams of the answer, which get the message's number.
func answering(t *testing.T, answer func(message []byte) [][]byte) *rtnl.Socket {
	t.Helper()
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, requestBuffer)
		for {
			n, err := unix.Read(fds[1], b)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 || err != nil { // the test is over
				return
			}
			for at := 0; at < n; at += int(rtnl.Native.Uint32(b[at:])) {
				message := b[at : at+int(rtnl.Native.Uint32(b[at:]))]
				for _, datagram := range answer(message) {
					number(datagram, rtnl.Native.Uint32(message[8:]))
					_, _ = unix.Write(fds[1], datagram)
				}
			}
		}
	}()
	t.Cleanup(func() {
		unix.Close(fds[0])
		<-done
		unix.Close(fds[1])
	})
	s := rtnl.Adopt(fds[0], requestBuffer)
	s.Timeout = 5 * time.Second // of a test that fails
	return s
}

// number gives all messages of a datagram that sequence number.
func number(datagram []byte, seq uint32) {
	for at := 0; at+unix.NLMSG_HDRLEN <= len(datagram); at += (int(rtnl.Native.Uint32(datagram[at:])) + 3) &^ 3 {
		rtnl.Native.PutUint32(datagram[at+8:], seq)
	}
}

// kindOfMessage is which request a message is.
func kindOfMessage(message []byte) uint16 { return rtnl.Native.Uint16(message[4:]) }

// datagram is one of these messages.
func datagram(messages ...func(*rtnl.Request)) []byte {
	var r rtnl.Request
	for _, m := range messages {
		m(&r)
	}
	r.Finish()
	return r.B
}

// verdict is the kernel's acknowledgement (0), or its no.
func verdict(errno unix.Errno) func(*rtnl.Request) {
	return func(r *rtnl.Request) {
		r.Message(unix.NLMSG_ERROR, 0)
		r.Raw(rtnl.Native.AppendUint32(nil, uint32(-int32(errno)))...)
		r.Raw(make([]byte, unix.NLMSG_HDRLEN)...)
	}
}

// listed ends a list.
func listed(r *rtnl.Request) {
	r.Message(unix.NLMSG_DONE, unix.NLM_F_MULTI)
	r.Raw(0, 0, 0, 0)
}

// between is a socket to the kernel of this thread's namespace. Each message goes on to it unless refuse, which gets
// it first and may do anything meanwhile, says a number other than 0.
func between(t *testing.T, protocol int, refuse func(message []byte) unix.Errno) *rtnl.Socket {
	t.Helper()
	fd := must.Get(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol))(t)
	t.Cleanup(func() { unix.Close(fd) })
	must.Do(t, rtnl.Adopt(fd, podBuffer).Options())
	must.Do(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}))
	return answering(t, func(message []byte) (answer [][]byte) {
		if errno := refuse(message); errno != 0 {
			return [][]byte{datagram(verdict(errno))}
		}
		if _, err := unix.Write(fd, message); err != nil {
			t.Errorf("a request cannot go on to the kernel: %v", err)
			return nil
		}
		b := make([]byte, requestBuffer)
		for {
			n, err := unix.Read(fd, b)
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				t.Errorf("the kernel does not answer: %v", err)
				return answer
			}
			answer = append(answer, slices.Clone(b[:n]))
			if isLast(b[:n], rtnl.Native.Uint16(message[6:])) {
				return answer
			}
		}
	})
}

// isLast says whether a datagram ends the answer to a request with those flags.
func isLast(datagram []byte, flags uint16) bool {
	for h, rest, ok := rtnl.Split(datagram); ok; h, rest, ok = rtnl.Split(rest) {
		if h.Kind == unix.NLMSG_ERROR || h.Kind == unix.NLMSG_DONE {
			return true
		}
	}
	return flags&(unix.NLM_F_ACK|unix.NLM_F_DUMP) == 0
}

// refusal refuses one request: the one of that kind, or of any kind (0), before which at others came.
type refusal struct {
	kind  uint16
	at    int
	errno unix.Errno

	lock    sync.Mutex
	refused bool
}

func (f *refusal) of(message []byte) unix.Errno {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.kind != 0 && f.kind != kindOfMessage(message) || f.refused {
		return 0
	}
	if f.at--; f.at >= 0 {
		return 0
	}
	f.refused = true
	return f.errno
}

// happened says whether the request came.
func (f *refusal) happened() bool {
	f.lock.Lock()
	defer f.lock.Unlock()
	return f.refused
}

// speaksBy makes the kernel's plans use that socket until the function that it returns is called.
func speaksBy(t *testing.T, k *Kernel, s *rtnl.Socket) (restore func()) {
	t.Helper()
	var usual []*lane
	for range cap(k.lanes) {
		usual = append(usual, <-k.lanes)
	}
	k.lanes <- &lane{s: s}
	return func() {
		<-k.lanes
		for _, l := range usual {
			k.lanes <- l
		}
	}
}
