package vpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Packet is what tcpdump in the router would show.
type Packet struct {
	At   time.Time
	MAC  string // of the ENI that it came from or goes to; empty for lo, and for strangers on the segment
	Sent bool   // by the router; else received by it
	Data []byte // from the Ethernet header on, at most snapLength bytes
}

// snapLength is the most that Capture keeps of a packet.
const snapLength = 512

// captured is how many packets wait for a slow reader; after them, the kernel's socket buffer, then packets are lost.
const captured = 256

// Capture yields the packets that the router sends and receives from now on, until ctx ends; then the channel is closed. The
// interface is "any", or the MAC of an ENI that is plugged in or has joined the segment.
func (f *Network) Capture(ctx context.Context, iface string) (<-chan Packet, error) {
	out, err := f.openCapture(ctx, iface)
	if err != nil {
		return nil, fmt.Errorf("vpc: capture on %s: %w", iface, err)
	}
	return out, nil
}

func (f *Network) openCapture(ctx context.Context, iface string) (<-chan Packet, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, errClosed
	}
	iface, index, err := f.captureIndex(iface)
	if err != nil {
		return nil, err
	}
	var s *packetSocket
	err = Do(f.ns, func() (err error) {
		s, err = openPackets(unix.SOCK_RAW, unix.ETH_P_ALL)
		return err
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := f.within(ctx)
	stop := context.AfterFunc(ctx, func() { _ = s.close() })
	out := make(chan Packet, captured)
	f.captures.Go(func() {
		defer close(out)
		f.capture(ctx, s, index, iface, out)
		stop()
		cancel()
		_ = s.close()
	})
	return out, nil
}

// captureIndex is the ENI's MAC and link, or 0 for all.
func (f *Network) captureIndex(iface string) (mac string, index int32, err error) {
	if iface == "any" {
		return "", 0, nil
	}
	hardware, err := parseMAC(iface)
	if err != nil {
		return "", 0, err
	}
	e := f.enis[hardware.String()]
	if e == nil || e.index == 0 {
		return "", 0, errors.New(`no such ENI is plugged in or has joined the segment; expected its MAC or "any"`)
	}
	return e.mac, e.index, nil
}

func (f *Network) capture(ctx context.Context, s *packetSocket, index int32, mac string, out chan<- Packet) {
	b := make([]byte, snapLength)
	for {
		n, from, err := s.read(b)
		if err != nil {
			return // closed
		}
		if index != 0 && from.Ifindex != int(index) || from.Pkttype == unix.PACKET_OTHERHOST { // flooded by a bridge, not the router's
			continue
		}
		p := Packet{At: time.Now(), Sent: from.Pkttype == unix.PACKET_OUTGOING, Data: append([]byte(nil), b[:n]...)}
		if p.MAC = f.arp.macOf(from.Ifindex, p); f.segment != nil && index == f.segment.index && p.MAC != mac {
			continue // another machine's on the segment
		}
		select {
		case out <- p:
		case <-ctx.Done():
			return
		}
	}
}
