package vpc

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Tap keeps the packets of all links of a network namespace but the loopback, with the kernel's own timestamps, until Write.
type Tap struct {
	socket *packetSocket
	done   chan struct{}

	packets []tapped // the reader's until done is closed
	size    int
	full    bool
}

// tapped is a packet without its Ethernet header, and the head that a pcap file has for it.
type tapped struct {
	at   time.Duration // since 1970
	size int           // on the wire
	data []byte        // with a header of LINKTYPE_LINUX_SLL2
}

const (
	tapSnap   = 2048     // bytes kept of a packet
	tapMemory = 64 << 20 // what a tap keeps at most: some hundred thousand packets
	tapBuffer = 16 << 20 // what the kernel keeps for a reader that does not run
)

// OpenTap begins to keep the packets of a namespace.
func OpenTap(ns *os.File) (*Tap, error) {
	t := &Tap{done: make(chan struct{})}
	err := Do(ns, func() (err error) {
		t.socket, err = openPackets(unix.SOCK_DGRAM, unix.ETH_P_ALL)
		return err
	})
	if err == nil {
		err = t.socket.prepareTap()
	}
	if err != nil {
		return nil, fmt.Errorf("vpc: keep packets: %w", err)
	}
	go t.read()
	return t, nil
}

// prepareTap asks for timestamps and room, and leaves the loopback out, which is the first link of any namespace.
func (s *packetSocket) prepareTap() error {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	const interfaceIndex = 0xfffff000 + 8 // SKF_AD_OFF + SKF_AD_IFINDEX
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: interfaceIndex}, {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: 1, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: tapSnap}, {Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	e := raw.Control(func(fd uintptr) {
		err = errors.Join(unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, tapBuffer),
			unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}))
	})
	return errors.Join(e, err)
}

// read keeps packets until Write wants no more, and then those that the kernel has still in its queue.
func (t *Tap) read() {
	defer close(t.done)
	b, control := make([]byte, tapSnap), make([]byte, 128)
	ended := false
	for {
		n, size, at, from, err := t.socket.receive(b, control, !ended)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			ended = true
			continue
		}
		if err != nil {
			return
		}
		if t.size += n; t.size > tapMemory {
			t.full = true
			continue
		}
		data := make([]byte, 20+n) // protocol, reserved, interface, ARP type, packet type, address length, address: draft-ietf-opsawg-pcaplinktype, 276
		binary.LittleEndian.PutUint16(data, from.Protocol)
		binary.BigEndian.PutUint32(data[4:], uint32(from.Ifindex))
		binary.BigEndian.PutUint16(data[8:], from.Hatype)
		data[10], data[11] = from.Pkttype, from.Halen
		copy(data[12:20], from.Addr[:])
		copy(data[20:], b[:n])
		t.packets = append(t.packets, tapped{at, size, data})
	}
}

// receive is read with the packet's length on the wire and its timestamp. Without wait, an empty queue is an error.
func (s *packetSocket) receive(b, control []byte, wait bool) (n, size int, at time.Duration, from *unix.SockaddrLinklayer, err error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return 0, 0, 0, nil, err
	}
	for from == nil {
		var c int
		var sa unix.Sockaddr
		once := func(fd uintptr) bool {
			size, c, _, sa, err = unix.Recvmsg(int(fd), b, control, unix.MSG_TRUNC)
			return err != unix.EAGAIN && err != unix.EINTR
		}
		var e error
		if wait {
			e = raw.Read(once)
		} else {
			e = raw.Control(func(fd uintptr) { once(fd) })
		}
		if e != nil {
			return 0, 0, 0, nil, e
		}
		if err == unix.ENETDOWN || err == unix.ENOBUFS || err == unix.EINTR { // events, not ends (packet(7), signal(7))
			continue
		}
		if err != nil {
			return 0, 0, 0, nil, os.NewSyscallError("recvmsg", err)
		}
		from, _ = sa.(*unix.SockaddrLinklayer)
		n, at = min(size, len(b)), stamp(control[:c])
	}
	return n, size, at, from, nil
}

// stamp is the kernel's timestamp among control messages.
func stamp(control []byte) time.Duration {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return 0
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= 16 {
			return time.Duration(binary.NativeEndian.Uint64(m.Data))*time.Second + time.Duration(binary.NativeEndian.Uint64(m.Data[8:]))
		}
	}
	return 0
}

// Write ends the tap and writes what it has kept as a pcap file with nanoseconds, in the order of the timestamps, that tcpdump -r reads. Links
// are told apart by their indexes. The error says also how many packets were lost.
func (t *Tap) Write(w io.Writer) error {
	if err := t.socket.file.SetReadDeadline(time.Now()); err != nil {
		return fmt.Errorf("vpc: end the tap: %w", err)
	}
	<-t.done
	lost := t.socket.lost()
	_ = t.socket.close()
	slices.SortStableFunc(t.packets, func(a, b tapped) int { return cmp.Compare(a.at, b.at) })
	out := bufio.NewWriter(w)
	words := func(list ...uint32) {
		var b [4]byte
		for _, x := range list {
			binary.LittleEndian.PutUint32(b[:], x)
			_, _ = out.Write(b[:]) // Flush tells
		}
	}
	words(0xa1b23c4d, 2|4<<16, 0, 0, tapSnap+20, 276) // magic, version 2.4, zone, accuracy, snap length, LINKTYPE_LINUX_SLL2
	for i := range t.packets {
		p := &t.packets[i]
		words(uint32(p.at/time.Second), uint32(p.at%time.Second), uint32(len(p.data)), uint32(20+p.size))
		_, _ = out.Write(p.data)
	}
	err := out.Flush()
	if lost > 0 {
		err = errors.Join(err, fmt.Errorf("%d packets were lost", lost))
	}
	if t.full {
		err = errors.Join(err, fmt.Errorf("only the first %d MB of packets were kept", tapMemory>>20))
	}
	if err != nil {
		return fmt.Errorf("vpc: write packets: %w", err)
	}
	return nil
}

// lost is how many packets the kernel had no room for.
func (s *packetSocket) lost() (n uint32) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if stats, err := unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
			n = stats.Drops
		}
	})
	return n
}
