package linux

import (
	"errors"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answerTimeout bounds how long an answer may take that the kernel owes us. It gives one within the
// sendmsg; this is for a kernel that is broken.
const answerTimeout = 10 * time.Second

// errInterrupted is a dump during which the list changed (NLM_F_DUMP_INTR): it may lack anything.
var errInterrupted = errors.New("the list changed while it was read")

// refusal is the kernel's no, in its own words where it had any.
type refusal struct {
	errno unix.Errno
	text  string
}

func (e *refusal) Error() string {
	text := e.errno.Error()
	switch e.errno { // the C library's texts for these are words that go-cni swallows
	case unix.ENOENT, unix.ESRCH:
		text = "absent"
	case unix.EEXIST:
		text = "exists"
	}
	if e.text != "" {
		text += ": " + strings.ReplaceAll(e.text, "not found", "missing")
	}
	return text
}

// is says whether an error is the kernel's no with that number.
func is(err error, errno unix.Errno) bool {
	r, ok := err.(*refusal)
	return ok && r.errno == errno
}

// socket is one netlink socket, for one goroutine at a time.
type socket struct {
	fd   int
	port uint32
	seq  uint32
	buf  []byte
	own  bool // close it
}

// openSocket makes a netlink socket in the namespace of the calling thread.
func openSocket(protocol, buffer int, groups ...int) (*socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, err
	}
	s := &socket{fd: fd, buf: make([]byte, buffer), own: true}
	if err = s.prepare(groups); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *socket) prepare(groups []int) error {
	if err := s.options(); err != nil {
		return err
	}
	if err := unix.Bind(s.fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for _, g := range groups {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g); err != nil {
			return err
		}
	}
	return s.readPort()
}

// options asks for the kernel's own words (EXT_ACK), short acknowledgements (CAP_ACK) and dumps that
// refuse what they do not understand instead of ignoring it (GET_STRICT_CHK, which IFA_TARGET_NETNSID
// needs).
func (s *socket) options() error {
	for _, o := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK, unix.NETLINK_GET_STRICT_CHK} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, o, 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *socket) readPort() error {
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	if n, ok := name.(*unix.SockaddrNetlink); ok {
		s.port = n.Pid
	}
	return nil
}

// room is how much the kernel may queue. Without the capability to go past the system's limit, it is that.
func (s *socket) room(size int) error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size); err == nil {
		return nil
	}
	return unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

func (s *socket) close() {
	if s != nil && s.own {
		unix.Close(s.fd)
	}
}

// send writes all messages in one call and returns the first one's sequence number.
func (s *socket) send(r *request) (first uint32, err error) {
	first = s.seq + 1
	s.seq += uint32(r.n)
	r.number(first)
	for {
		n, err := unix.Write(s.fd, r.b)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n != len(r.b) {
			err = unix.EMSGSIZE
		}
		return first, err
	}
}

// receive is one datagram from the kernel. It waits at most answerTimeout, unless there is one already.
func (s *socket) receive() ([]byte, error) {
	for {
		b, err := s.receiveNow()
		if err != unix.EAGAIN {
			return b, err
		}
		if err = wait(s.fd, answerTimeout); err != nil {
			return nil, err
		}
	}
}

// receiveNow is receive without waiting: EAGAIN when there is nothing. It uses the system call itself, for
// unix.Recvfrom allocates the sender's address every time.
func (s *socket) receiveNow() ([]byte, error) {
	for {
		var from unix.RawSockaddrNetlink
		size := uint32(unsafe.Sizeof(from))
		n, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(s.buf))), uintptr(len(s.buf)),
			unix.MSG_DONTWAIT|unix.MSG_TRUNC, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)))
		switch {
		case errno == unix.EINTR || errno == 0 && from.Pid != 0: // another process's, not the kernel's
			continue
		case errno != 0:
			return nil, errno
		case int(n) > len(s.buf):
			s.buf = make([]byte, n) // for the next time: a link may have hundreds of virtual functions
			return nil, unix.EMSGSIZE
		}
		return s.buf[:n], nil
	}
}

// wait is until there is something to receive.
func wait(fd int, timeout time.Duration) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(timeout/time.Millisecond))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return err
		case n == 0:
			return unix.ETIMEDOUT
		}
		return nil
	}
}

// header is struct nlmsghdr.
type header struct {
	kind, flags uint16
	seq, port   uint32
	body        []byte
}

// split cuts the first message off a datagram.
func split(b []byte) (h header, rest []byte, ok bool) {
	if len(b) < unix.NLMSG_HDRLEN {
		return h, nil, false
	}
	size := int(native.Uint32(b))
	if size < unix.NLMSG_HDRLEN || size > len(b) {
		return h, nil, false
	}
	h = header{native.Uint16(b[4:]), native.Uint16(b[6:]), native.Uint32(b[8:]), native.Uint32(b[12:]), b[unix.NLMSG_HDRLEN:size]}
	return h, b[min((size+3)&^3, len(b)):], true
}

// verdict is what an NLMSG_ERROR says; nil is an acknowledgement.
func (h *header) verdict() error {
	if len(h.body) < 4 {
		return &refusal{errno: unix.EBADMSG}
	}
	errno := int32(native.Uint32(h.body))
	if errno == 0 {
		return nil
	}
	r := &refusal{errno: unix.Errno(-errno)}
	const original = 4 + unix.NLMSG_HDRLEN // the errno and our own header come first; CAP_ACK cuts the rest
	if h.flags&unix.NLM_F_ACK_TLVS != 0 && h.flags&unix.NLM_F_CAPPED != 0 && len(h.body) > original {
		for c := (cursor{rest: h.body[original:]}); c.next(); {
			if c.kind == unix.NLMSGERR_ATTR_MSG {
				r.text = string(c.text())
			}
		}
	}
	return r
}

// do sends one message that asks for an acknowledgement and waits for it.
func (s *socket) do(r *request) error {
	var outcome [1]error
	if err := s.doAll(r, outcome[:]); err != nil {
		return err
	}
	return outcome[0]
}

// doAll sends several messages, each of which asks for an acknowledgement, in one call: the kernel runs
// them one after the other, also after one that fails. err is about the socket.
func (s *socket) doAll(r *request, outcomes []error) (err error) {
	first, err := s.send(r)
	if err != nil {
		return err
	}
	for open := r.n; open > 0; {
		b, err := s.receive()
		if err != nil {
			return err
		}
		for h, rest, ok := split(b); ok; h, rest, ok = split(rest) {
			if i := h.seq - first; i < uint32(len(outcomes)) && h.kind == unix.NLMSG_ERROR {
				outcomes[i] = h.verdict()
				open--
			}
		}
	}
	return nil
}

// get sends one message that has one answer. The answer is valid until the next use of the socket.
func (s *socket) get(r *request) ([]byte, error) {
	seq, err := s.send(r)
	if err != nil {
		return nil, err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return nil, err
		}
		for h, rest, ok := split(b); ok; h, rest, ok = split(rest) {
			if h.seq != seq {
				continue
			}
			if h.kind == unix.NLMSG_ERROR {
				return nil, h.verdict()
			}
			return h.body, nil
		}
	}
}

// dump sends one message that asks for a list and calls yield with each element. It always reads to the
// end: a socket has one dump at a time. Any error means that the list is not complete.
func (s *socket) dump(r *request, yield func(body []byte)) error {
	seq, err := s.send(r)
	if err != nil {
		return err
	}
	var interrupted error
	for {
		b, err := s.receive()
		if err == unix.EMSGSIZE || err == unix.ENOBUFS {
			interrupted = err
			continue
		}
		if err != nil {
			return err
		}
		for h, rest, ok := split(b); ok; h, rest, ok = split(rest) {
			if h.seq != seq {
				continue
			}
			if h.flags&unix.NLM_F_DUMP_INTR != 0 {
				interrupted = errInterrupted
			}
			switch h.kind {
			case unix.NLMSG_DONE:
				if err := h.verdict(); len(h.body) >= 4 && err != nil {
					return err
				}
				return interrupted
			case unix.NLMSG_ERROR:
				return h.verdict()
			case unix.NLMSG_OVERRUN:
				interrupted = unix.ENOBUFS
			case unix.NLMSG_NOOP:
			default:
				yield(h.body)
			}
		}
	}
}
