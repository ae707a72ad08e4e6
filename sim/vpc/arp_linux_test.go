package vpc

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// arp sends a request out of a device and returns the MAC that answered, or "".
func (i *instance) arp(device, sender, target string, wait time.Duration) string {
	i.t.Helper()
	var s *packetSocket
	must.Do(i.t, Do(i.ns, func() (err error) {
		s, err = openPackets(unix.SOCK_DGRAM, unix.ETH_P_ARP)
		return err
	}))
	defer func() { _ = s.close() }()
	to := unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_ARP), Ifindex: int(i.index(device)), Halen: 6, Addr: [8]byte{255, 255, 255, 255, 255, 255}}
	q := request(sender, target)
	must.Do(i.t, Do(i.ns, func() error {
		link, err := net.InterfaceByName(device)
		if err == nil {
			copy(q[8:], link.HardwareAddr)
		}
		return err
	}))
	must.Do(i.t, s.write(q, &to))
	must.Do(i.t, s.file.SetReadDeadline(time.Now().Add(wait)))
	b := make([]byte, 1500)
	for {
		n, _, err := s.read(b)
		if err != nil {
			return ""
		}
		if n >= arpSize && b[7] == 2 && string(b[14:18]) == string(ip(target).AsSlice()) {
			return net.HardwareAddr(b[8:14]).String()
		}
	}
}

func TestARP(t *testing.T) {
	f, a, _ := two(t)
	must.Do(t, f.Unassign(ip("10.0.1.11")))
	vpc := routerMAC().String()
	for _, c := range []struct{ name, device, sender, target, want string }{
		{"gateway", "eth0", "10.0.1.10", "10.0.1.1", vpc},
		{"neighbour", "eth0", "10.0.1.10", "10.0.1.20", vpc},
		{"nobody in the subnet", "eth0", "10.0.1.10", "10.0.1.99", vpc},
		{"gateway of the second ENI", "eth1", "10.0.2.10", "10.0.2.1", vpc},
		{"another subnet", "eth0", "10.0.1.10", "10.0.2.10", ""},
		{"the other ENI's gateway", "eth1", "10.0.2.10", "10.0.1.1", ""},
		{"outside the VPC", "eth0", "10.0.1.10", "198.51.100.1", ""},
		{"the witness", "eth0", "10.0.1.10", "10.0.255.254", ""},
		{"itself", "eth0", "10.0.1.10", "10.0.1.10", ""},
		{"a sender that is another's", "eth0", "10.0.1.20", "10.0.1.1", ""},
		{"a sender that is the other ENI's", "eth0", "10.0.2.10", "10.0.1.1", ""},
		{"a sender that is unassigned again", "eth0", "10.0.1.11", "10.0.1.1", ""},
		{"probe of a used address", "eth0", "0.0.0.0", "10.0.1.20", vpc},
		{"probe of its own", "eth0", "0.0.0.0", "10.0.1.10", ""},
		{"probe of a free address", "eth0", "0.0.0.0", "10.0.1.11", ""},
	} {
		wait := patience
		if c.want == "" {
			wait = calm / 2
		}
		if got := a.arp(c.device, c.sender, c.target, wait); got != c.want {
			t.Errorf("%s: who has %s, tell %s: answer %q, expected %q", c.name, c.target, c.sender, got, c.want)
		}
	}
}
