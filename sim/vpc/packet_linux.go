package vpc

import (
	"encoding/binary"
	"os"

	"golang.org/x/sys/unix"
)

// packetSocket is an AF_PACKET socket that Close interrupts.
type packetSocket struct{ file *os.File }

// openPackets opens one in the calling thread's namespace.
func openPackets(kind int, protocol uint16) (*packetSocket, error) {
	fd, err := unix.Socket(unix.AF_PACKET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(bigEndian16(protocol)))
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	return &packetSocket{os.NewFile(uintptr(fd), "packets")}, nil
}

func (s *packetSocket) close() error { return s.file.Close() }

func (s *packetSocket) read(b []byte) (n int, from *unix.SockaddrLinklayer, err error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return 0, nil, err
	}
	for from == nil {
		var sa unix.Sockaddr
		e := raw.Read(func(fd uintptr) bool {
			n, sa, err = unix.Recvfrom(int(fd), b, 0)
			return err != unix.EAGAIN && err != unix.EINTR
		})
		if e != nil {
			return 0, nil, e
		}
		if err == unix.ENETDOWN || err == unix.ENOBUFS { // events, not ends (packet(7))
			continue
		}
		if err != nil {
			return 0, nil, os.NewSyscallError("recvfrom", err)
		}
		from, _ = sa.(*unix.SockaddrLinklayer)
	}
	return n, from, nil
}

func (s *packetSocket) write(b []byte, to *unix.SockaddrLinklayer) error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { err = unix.Sendto(int(fd), b, 0, to) }); e != nil {
		return e
	}
	return os.NewSyscallError("sendto", err)
}

// bigEndian16 is htons.
func bigEndian16(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}
