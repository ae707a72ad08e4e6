package vpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

const (
	macA = "02:00:00:00:00:0a"
	macB = "02:00:00:00:00:0b"
	macC = "02:00:00:00:00:0c"
	sn1  = "10.0.1.0/24"
	sn2  = "10.0.2.0/24"
)

// two are two instances; the first has a second ENI in the other subnet.
func two(t testing.TB) (f *Network, a, b *instance) {
	f = newNetwork(t)
	a, b = newInstance(t, f), newInstance(t, f)
	a.eth(0, macA, sn1, "10.0.1.10", "10.0.1.11")
	a.eth(1, macC, sn2, "10.0.2.10", "10.0.2.11")
	b.eth(0, macB, sn1, "10.0.1.20", "10.0.1.21")
	return f, a, b
}

func TestReach(t *testing.T) {
	f, a, b := two(t)
	for _, c := range []struct {
		name     string
		from     *instance
		src, dst string
		want     bool
	}{
		{"same subnet", a, "10.0.1.10", "10.0.1.20", true},
		{"secondary to secondary", a, "10.0.1.11", "10.0.1.21", true},
		{"from the second ENI", a, "10.0.2.10", "10.0.1.20", true},
		{"secondary of the second ENI", a, "10.0.2.11", "10.0.1.21", true},
		{"to the second ENI", b, "10.0.1.20", "10.0.2.11", true},
		{"the internet", b, "10.0.1.21", "198.51.100.1", true},
		{"unassigned", b, "10.0.1.20", "10.0.1.99", false},
		{"the gateway does not answer pings", b, "10.0.1.20", "10.0.1.1", false},
		{"the VPC where there is nothing", b, "10.0.1.20", "10.0.77.1", false},
	} {
		wait := patience
		if !c.want {
			wait = calm
		}
		if got := c.from.ping(c.src, c.dst, wait); got != c.want {
			t.Errorf("%s: %s pings %s: answered=%v, expected %v", c.name, c.src, c.dst, got, c.want)
		}
	}
	addrs := []netip.Addr{ip("10.0.1.10"), ip("10.0.1.99"), ip("10.0.2.11"), ip("10.0.1.1"), ip("10.0.1.21"), ip("10.0.1.10"), f.Witness(), {}}
	want := []bool{true, false, true, false, true, true, true, false}
	for i, got := range pings(f.Ping, addrs, want) {
		if got != want[i] {
			t.Errorf("Ping: %v answered=%v, expected %v", addrs[i], got, want[i])
		}
	}
}

// receives says whether a packet with the mark leaves the router for an interface within the patience after send.
func receives(t *testing.T, f *Network, mac string, mark []byte, patience time.Duration, send func()) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	packets := must.Get(f.Capture(ctx, mac))(t)
	send()
	for p := range packets {
		if p.Sent && bytes.Contains(p.Data, mark) {
			return true
		}
	}
	return false
}

// TestSourceCheck: and the same packets pass when the router does not check, so it is the check that drops them.
func TestSourceCheck(t *testing.T) {
	f, a, b := two(t)
	a.addAddress("eth0", "10.0.1.20", 32)
	b.addAddress("eth0", "10.0.1.99", 32)
	spoofs := []struct {
		name   string
		from   *instance
		device string
		src    string
	}{
		{"the second ENI's address by the primary", a, "eth0", "10.0.2.10"},
		{"the primary's address by the second ENI", a, "eth1", "10.0.1.10"},
		{"another instance's address", a, "eth0", "10.0.1.20"},
		{"an address that nobody has", b, "eth0", "10.0.1.99"},
		{"an address outside", b, "eth0", "192.0.2.1"},
		{"the internet's", b, "eth0", "198.51.100.1"},
		{"the witness", b, "eth0", "10.0.255.254"},
	}
	arrived := func(n int, patience time.Duration) bool {
		s, mark := spoofs[n], fmt.Appendf(nil, "spoof %d", n)
		return receives(t, f, macC, mark, patience, func() { s.from.spoof(s.device, s.src, "10.0.2.11", mark) })
	}
	for n, s := range spoofs {
		if arrived(n, calm/2) {
			t.Errorf("%s (%s by %s) was delivered", s.name, s.src, s.device)
		}
	}
	must.Do(t, Do(f.ns, func() error {
		for _, name := range []string{"all", "e1", "e2", "e3"} {
			if err := write("/proc/sys/net/ipv4/conf/"+name+"/rp_filter", "0"); err != nil {
				return err
			}
		}
		return nil
	}))
	for n, s := range spoofs[:5] { // the kernel never takes its own addresses from outside
		if !arrived(n, patience) {
			t.Errorf("without the check, %s (%s by %s) was not delivered either: the test shows nothing", s.name, s.src, s.device)
		}
	}
}

// spoof sends a UDP packet with any source to the router's MAC.
func (i *instance) spoof(device, src, dst string, data []byte) {
	i.t.Helper()
	b := []byte{0x45, 0, 0, byte(28 + len(data)), 0, 1, 0, 0, 64, unix.IPPROTO_UDP, 0, 0}
	b = append(append(b, ip(src).AsSlice()...), ip(dst).AsSlice()...)
	binary.BigEndian.PutUint16(b[10:], checksum(b))
	b = append(append(b, 0x11, 0x11, 0x22, 0x22, 0, byte(8+len(data)), 0, 0), data...)
	var s *packetSocket
	must.Do(i.t, Do(i.ns, func() (err error) {
		s, err = openPackets(unix.SOCK_DGRAM, unix.ETH_P_IP)
		return err
	}))
	to := unix.SockaddrLinklayer{Protocol: bigEndian16(unix.ETH_P_IP), Ifindex: int(i.index(device)), Halen: 6}
	copy(to.Addr[:], i.router(device))
	must.Do(i.t, errors.Join(s.write(b, &to), s.close()))
}

func TestAddressesMove(t *testing.T) {
	f, a, b := two(t)
	check := func(step string, want ...string) {
		t.Helper()
		all := []string{"10.0.1.10", "10.0.1.11", "10.0.1.20", "10.0.1.21", "10.0.2.10", "10.0.2.11"}
		addrs, answer := make([]netip.Addr, len(all)), make([]bool, len(all))
		for i, s := range all {
			addrs[i], answer[i] = ip(s), slices.Contains(want, s)
		}
		for i, got := range pings(f.Ping, addrs, answer) {
			if got != answer[i] {
				t.Errorf("%s: %s answered=%v", step, all[i], got)
			}
		}
	}
	must.Do(t, f.Unassign(ip("10.0.1.11")))
	must.Do(t, f.Unassign(ip("10.0.1.11")))
	must.Do(t, f.Unassign(ip("10.0.1.77")))
	check("unassigned", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.2.10", "10.0.2.11")

	must.Do(t, f.Unplug(macC))
	must.Do(t, f.Unplug(macC))
	must.Do(t, f.Unplug("02:00:00:00:77:77"))
	if a.index("eth1") != 0 {
		t.Error("eth1 is still there after Unplug")
	}
	check("unplugged", "10.0.1.10", "10.0.1.20", "10.0.1.21")

	must.Do(t, f.Plug(b.ns, "eth1", strings.ToUpper(macC), 1500))
	b.configure(1, netip.MustParsePrefix(sn2), "10.0.2.10", "10.0.2.11")
	check("plugged elsewhere", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.2.10", "10.0.2.11")

	// b's 10.0.1.21 becomes a's: it answers once a has it.
	must.Do(t, f.Assign(macA, ip("10.0.1.21")))
	check("reassigned, not configured", "10.0.1.10", "10.0.1.20", "10.0.2.10", "10.0.2.11")
	a.addAddress("eth0", "10.0.1.21", 32)
	check("reassigned", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.2.10", "10.0.2.11")
	must.Do(t, f.Assign("02:00:00:00:77:77", ip("10.0.1.21"))) // not plugged
	check("reassigned to an ENI without a cable", "10.0.1.10", "10.0.1.20", "10.0.2.10", "10.0.2.11")
	if n := len(f.enis); n != 4 {
		t.Errorf("%d ENIs are known, expected 4", n)
	}
	must.Do(t, f.Unassign(ip("10.0.1.21")))
	if n := len(f.enis); n != 3 {
		t.Errorf("%d ENIs are known, expected 3: one without cable and address is forgotten", n)
	}
}

func TestPlug(t *testing.T) {
	f := newNetwork(t)
	node := newInstance(t, f)
	must.Do(t, f.Plug(node.ns, "eth5", macA, 9001))
	var link *net.Interface
	var addrs []net.Addr
	must.Do(t, Do(node.ns, func() (err error) {
		if link, err = net.InterfaceByName("eth5"); err == nil {
			addrs, err = link.Addrs()
		}
		return err
	}))
	if link.HardwareAddr.String() != macA || link.MTU != 9001 || link.Flags&net.FlagUp != 0 || len(addrs) > 0 {
		t.Errorf("found %v with %v; expected MAC %s, MTU 9001, down, no address", link, addrs, macA)
	}
	must.Do(t, f.Assign(macA, ip("10.0.1.10")))
	for want, err := range map[string]error{
		"plugged in already":      f.Plug(node.ns, "eth6", macA, 9001),
		"a link of that name":     f.Plug(node.ns, "eth5", macB, 9001),
		"nil file":                f.Plug(nil, "eth6", macB, 9001),
		"the name has":            f.Plug(node.ns, "a-name-that-is-too-long", macB, 9001),
		"MTU 1":                   f.Plug(node.ns, "eth6", macB, 1),
		"unicast MAC":             f.Plug(node.ns, "eth6", "01:00:00:00:00:01", 9001),
		"invalid MAC":             f.Plug(node.ns, "eth6", "x", 9001),
		"address x":               f.Unplug("x"),
		"none of the subnets":     f.Assign(macA, ip("10.0.3.3")),
		"none of the subnets [10": f.Assign(macA, netip.Addr{}),
		"gateway":                 f.Assign(macA, ip("10.0.2.1")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	if len(f.enis) != 1 {
		t.Errorf("%d ENIs are known, expected 1: refused calls leave nothing", len(f.enis))
	}
}

// TestNodeDies: the cable goes with the node's namespace, the ENI stays and can be plugged elsewhere.
func TestNodeDies(t *testing.T) {
	f := newNetwork(t)
	node := must.Get(NewNamespace())(t)
	must.Do(t, f.Plug(node, "eth0", macA, 9001))
	must.Do(t, f.Assign(macA, ip("10.0.1.10")))
	must.Do(t, node.Close())
	f.mu.Lock()
	index := f.enis[macA].index
	f.mu.Unlock()
	eventually(t, "the cable goes with the namespace", func() bool {
		there := must.Get(f.rtnl.exists(index))(t)
		return !there
	})
	must.Do(t, f.Assign(macA, ip("10.0.1.11")))
	must.Do(t, f.Unassign(ip("10.0.1.10")))
	again := newInstance(t, f)
	must.Do(t, f.Plug(again.ns, "eth0", macA, 9001))
	again.configure(0, netip.MustParsePrefix(sn1), "10.0.1.11")
	if !f.Ping([]netip.Addr{ip("10.0.1.11")}, patience)[0] {
		t.Error("the ENI does not answer in its next node")
	}
}

// eventually polls: what it waits for has no event.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.After(patience)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited %v: %s", patience, what)
		}
	}
}

func TestTCP(t *testing.T) {
	f, a, b := two(t)
	for _, src := range []string{"10.0.1.10", "10.0.1.11", "10.0.2.11"} {
		must.Do(t, Do(a.ns, func() error {
			c, err := (&net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: ip(src).AsSlice()}}).Dial("tcp4", f.InternetAddr().String())
			if err != nil {
				return err
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n") // what the peer says does not matter
			if got, err := io.ReadAll(c); err != nil || string(got) != src {
				t.Errorf("the internet sees %q, %v; expected %s", got, err, src)
			}
			return nil
		}))
	}
	var l net.Listener
	must.Do(t, Do(b.ns, func() (err error) {
		l, err = net.Listen("tcp4", "10.0.1.21:8080")
		return err
	}))
	peer := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			peer <- c.RemoteAddr().(*net.TCPAddr).IP.String()
			_ = c.Close()
		}
	}()
	c := must.Get(f.Dial(t.Context(), netip.MustParseAddrPort("10.0.1.21:8080")))(t)
	if got := <-peer; got != f.Witness().String() {
		t.Errorf("the pod sees %s, expected the witness %v", got, f.Witness())
	}
	must.Do(t, errors.Join(c.Close(), l.Close()))
	if _, err := f.Dial(t.Context(), netip.MustParseAddrPort("10.0.1.99:80")); err == nil {
		t.Error("Dial of an address that nobody has succeeded")
	}
}

func TestPingFrom(t *testing.T) {
	f, a, _ := two(t)
	from := func(addrs []netip.Addr, wait time.Duration) []bool {
		got := must.Get(f.PingFrom(a.ns, addrs, wait))(t)
		return got
	}
	want := []bool{true, false, true}
	if got := pings(from, []netip.Addr{ip("10.0.1.20"), ip("10.0.1.99"), ip("198.51.100.1")}, want); !slices.Equal(got, want) {
		t.Errorf("found %v, expected %v", got, want)
	}
}

// TestPacketsFlow: an echo request and its reply are seen on both cables, to the ENIs' MACs, and no ARP request of the router.
func TestPacketsFlow(t *testing.T) {
	f, a, _ := two(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, ok := range f.Ping([]netip.Addr{ip("10.0.1.21"), ip("10.0.2.11")}, patience) { // a new cable may lose its first packet
		if !ok {
			t.Fatal("no answer")
		}
	}
	packets := must.Get(f.Capture(ctx, "any"))(t)
	if !a.ping("10.0.2.11", "10.0.1.21", patience) {
		t.Fatal("no answer")
	}
	want := []string{macC + " received 8", macB + " sent 8", macB + " received 0", macC + " sent 0"}
	for p := range packets {
		kind := binary.BigEndian.Uint16(p.Data[12:])
		if kind == unix.ETH_P_ARP && p.Sent && p.Data[21] == 1 {
			t.Errorf("the router asked %s by ARP: % x", p.MAC, p.Data)
		}
		if kind != unix.ETH_P_IP {
			continue
		}
		text := fmt.Sprintf("%s %s %d", p.MAC, map[bool]string{true: "sent", false: "received"}[p.Sent], p.Data[34])
		if text != want[0] {
			t.Errorf("saw %q, expected %q", text, want[0])
		}
		if mac := net.HardwareAddr(p.Data[:6]).String(); p.Sent && mac != p.MAC {
			t.Errorf("the router sent to %s on the cable of %s", mac, p.MAC)
		}
		if want = want[1:]; len(want) == 0 {
			break
		}
	}
	if len(want) > 0 {
		t.Errorf("not seen: %q", want)
	}
	if _, err := f.Capture(t.Context(), "02:00:00:00:77:77"); err == nil {
		t.Error("a capture on an ENI without a cable was accepted")
	}
}
