package netlink

import (
	"errors"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// answerTimeout is the Timeout of a new socket.
const answerTimeout = 10 * time.Second

// ErrInterrupted is a dump during which the list changed (NLM_F_DUMP_INTR): it may lack anything.
var ErrInterrupted = errors.New("the list changed while it was read")

// Refusal is the kernel's no, in its own words where it had any.
type Refusal struct {
	Errno unix.Errno
	text  string
}

func (e *Refusal) Error() string {
	text := e.Errno.Error()
	switch e.Errno { // the C library's texts for these are words that go-cni swallows
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

// Is says whether an error is the kernel's no with that number.
func Is(err error, errno unix.Errno) bool {
	r, ok := err.(*Refusal)
	return ok && r.Errno == errno
}

// Socket is one netlink socket, for one goroutine at a time.
type Socket struct {
	fd   int
	Port uint32 // what notifications name as who caused them
	// Timeout bounds how long an answer may take that the kernel owes us. It gives one within the
	// sendmsg; this is for a kernel that is broken.
	Timeout time.Duration
	seq     uint32
	buf     []byte
	own     bool // close it
}

// Adopt is a socket that the caller has opened and will close. Its options are set by Options.
func Adopt(fd, buffer int) *Socket {
	return &Socket{fd: fd, buf: make([]byte, buffer), Timeout: answerTimeout}
}

// Open makes a netlink socket in the namespace of the calling thread.
func Open(protocol, buffer int, groups ...int) (*Socket, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, err
	}
	s := Adopt(fd, buffer)
	s.own = true
	if err = s.prepare(groups); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return s, nil
}

func (s *Socket) prepare(groups []int) error {
	if err := s.Options(); err != nil {
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

// Options asks for the kernel's own words (EXT_ACK), short acknowledgements (CAP_ACK) and dumps that
// refuse what they do not understand instead of ignoring it (GET_STRICT_CHK, which IFA_TARGET_NETNSID
// needs).
func (s *Socket) Options() error {
	for _, o := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_CAP_ACK, unix.NETLINK_GET_STRICT_CHK} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_NETLINK, o, 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *Socket) readPort() error {
	name, err := unix.Getsockname(s.fd)
	if err != nil {
		return err
	}
	if n, ok := name.(*unix.SockaddrNetlink); ok {
		s.Port = n.Pid
	}
	return nil
}

// Room is how much the kernel may queue. Without the capability to go past the system's limit, it is that.
func (s *Socket) Room(size int) error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, size); err == nil {
		return nil
	}
	return unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, size)
}

// Close closes what Open has opened; a nil Socket is fine.
func (s *Socket) Close() {
	if s != nil && s.own {
		unix.Close(s.fd)
	}
}

// send writes all messages in one call and returns the first one's sequence number.
func (s *Socket) send(r *Request) (first uint32, err error) {
	first = s.seq + 1
	s.seq += uint32(r.N)
	r.number(first)
	for {
		n, err := unix.Write(s.fd, r.B)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n != len(r.B) {
			err = unix.EMSGSIZE
		}
		return first, err
	}
}

// receive is one datagram from the kernel. It waits at most Timeout, unless there is one already.
func (s *Socket) receive() ([]byte, error) {
	for {
		b, err := s.ReceiveNow()
		if err != unix.EAGAIN {
			return b, err
		}
		if err = s.Wait(s.Timeout); err != nil {
			return nil, err
		}
	}
}

// ReceiveNow is receive without waiting: EAGAIN when there is nothing. It uses the system call itself, for
// unix.Recvfrom allocates the sender's address every time.
func (s *Socket) ReceiveNow() ([]byte, error) {
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

// Wait is until there is something to receive, ETIMEDOUT when there is nothing in time.
func (s *Socket) Wait(timeout time.Duration) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, int(timeout/time.Millisecond))
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

// Header is struct nlmsghdr.
type Header struct {
	Kind, flags uint16
	seq, Port   uint32
	Body        []byte
}

// Split cuts the first message off a datagram.
func Split(b []byte) (h Header, rest []byte, ok bool) {
	if len(b) < unix.NLMSG_HDRLEN {
		return h, nil, false
	}
	size := int(Native.Uint32(b))
	if size < unix.NLMSG_HDRLEN || size > len(b) {
		return h, nil, false
	}
	h = Header{Native.Uint16(b[4:]), Native.Uint16(b[6:]), Native.Uint32(b[8:]), Native.Uint32(b[12:]), b[unix.NLMSG_HDRLEN:size]}
	return h, b[min((size+3)&^3, len(b)):], true
}

// Verdict is what an NLMSG_ERROR says; nil is an acknowledgement.
func (h *Header) Verdict() error {
	if len(h.Body) < 4 {
		return &Refusal{Errno: unix.EBADMSG}
	}
	errno := int32(Native.Uint32(h.Body))
	if errno == 0 {
		return nil
	}
	r := &Refusal{Errno: unix.Errno(-errno)}
	const original = 4 + unix.NLMSG_HDRLEN // the errno and our own header come first; CAP_ACK cuts the rest
	if h.flags&unix.NLM_F_ACK_TLVS != 0 && h.flags&unix.NLM_F_CAPPED != 0 && len(h.Body) > original {
		for c := Attributes(h.Body[original:]); c.Next(); {
			if c.Kind == unix.NLMSGERR_ATTR_MSG {
				r.text = string(c.Text())
			}
		}
	}
	return r
}

// Do sends one message that asks for an acknowledgement and waits for it.
func (s *Socket) Do(r *Request) error {
	var outcome [1]error
	if err := s.DoAll(r, outcome[:]); err != nil {
		return err
	}
	return outcome[0]
}

// DoAll sends several messages, each of which asks for an acknowledgement, in one call: the kernel runs
// them one after the other, also after one that fails. err is about the socket.
func (s *Socket) DoAll(r *Request, outcomes []error) (err error) {
	first, err := s.send(r)
	if err != nil {
		return err
	}
	for open := r.N; open > 0; {
		b, err := s.receive()
		if err != nil {
			return err
		}
		for h, rest, ok := Split(b); ok; h, rest, ok = Split(rest) {
			if i := h.seq - first; i < uint32(len(outcomes)) && h.Kind == unix.NLMSG_ERROR {
				outcomes[i] = h.Verdict()
				open--
			}
		}
	}
	return nil
}

// Get sends one message that has one answer. The answer is valid until the next use of the socket.
func (s *Socket) Get(r *Request) ([]byte, error) {
	seq, err := s.send(r)
	if err != nil {
		return nil, err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return nil, err
		}
		for h, rest, ok := Split(b); ok; h, rest, ok = Split(rest) {
			if h.seq != seq {
				continue
			}
			if h.Kind == unix.NLMSG_ERROR {
				return nil, h.Verdict()
			}
			return h.Body, nil
		}
	}
}

// Dump sends one message that asks for a list and calls yield with each element. It always reads to the
// end: a socket has one dump at a time. Any error means that the list is not complete.
func (s *Socket) Dump(r *Request, yield func(body []byte)) error {
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
		for h, rest, ok := Split(b); ok; h, rest, ok = Split(rest) {
			if h.seq != seq {
				continue
			}
			if h.flags&unix.NLM_F_DUMP_INTR != 0 {
				interrupted = ErrInterrupted
			}
			switch h.Kind {
			case unix.NLMSG_DONE:
				if err := h.Verdict(); len(h.Body) >= 4 && err != nil {
					return err
				}
				return interrupted
			case unix.NLMSG_ERROR:
				return h.Verdict()
			case unix.NLMSG_OVERRUN:
				interrupted = unix.ENOBUFS
			case unix.NLMSG_NOOP:
			default:
				yield(h.Body)
			}
		}
	}
}

// Transact sends a batch whose message number last asks for an acknowledgement. A refused batch has
// changed nothing.
func (s *Socket) Transact(r *Request, last int) error {
	first, err := s.send(r)
	if err != nil {
		return err
	}
	for {
		b, err := s.receive()
		if err != nil {
			return err
		}
		for h, rest, ok := Split(b); ok; h, rest, ok = Split(rest) {
			if h.Kind != unix.NLMSG_ERROR || h.seq-first >= uint32(r.N) {
				continue
			}
			if err := h.Verdict(); err != nil || h.seq == first+uint32(last) {
				return err
			}
		}
	}
}
