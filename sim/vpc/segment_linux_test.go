package vpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

func TestSegmentReach(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, c := range []struct {
		name     string
		from     *instance
		src, dst string
		want     bool
	}{
		{"joined to joined", s.a, "10.0.1.10", "10.0.1.20", true},
		{"secondary to secondary", s.a, "10.0.1.11", "10.0.1.21", true},
		{"joined to a cable of its subnet", s.a, "10.0.1.10", "10.0.1.30", true},
		{"joined to a cable of the other", s.b, "10.0.1.21", "10.0.2.11", true},
		{"a cable to joined", s.a, "10.0.2.10", "10.0.1.20", true},
		{"a cable of the subnet to joined", s.b, "10.0.1.30", "10.0.1.11", true},
		{"the internet", s.a, "10.0.1.11", "198.51.100.1", true},
		{"joined to the host", s.a, "10.0.1.10", host1, true},
		{"a cable to the host", s.b, "10.0.1.30", host1, true},
		{"the host to joined, which ignores ARP", s.h, host1, "10.0.1.20", true},
		{"the host to a secondary", s.h, host1, "10.0.1.11", true},
		{"the host to a cable", s.h, host1, "10.0.1.30", true},
		{"unassigned", s.a, "10.0.1.10", "10.0.1.99", false},
		{"unassigned, by a cable", s.b, "10.0.1.30", "10.0.1.99", false},
		{"the gateway does not answer pings", s.a, "10.0.1.10", "10.0.1.1", false},
		{"the gateway by a cable", s.b, "10.0.1.30", "10.0.1.1", false},
		{"the VPC where there is nothing", s.b, "10.0.1.20", "10.0.77.1", false},
		{"the host has the VPC's default route for nobody", s.a, "10.0.1.10", "192.0.2.1", false},
	} {
		wait := patience
		if !c.want {
			wait = calm
		}
		if got := c.from.ping(c.src, c.dst, wait); got != c.want {
			t.Errorf("%s: %s pings %s: answered=%v, expected %v", c.name, c.src, c.dst, got, c.want)
		}
	}
	addrs := []netip.Addr{ip("10.0.1.10"), ip("10.0.1.99"), ip("10.0.1.21"), ip("10.0.2.11"), ip("10.0.1.1"), ip("10.0.1.30"), s.f.Witness()}
	want := []bool{true, false, true, true, false, true, true}
	if got := pings(s.f.Ping, addrs, want); !slices.Equal(got, want) {
		t.Errorf("Ping of %v: %v, expected %v", addrs, got, want)
	}
	if s.f.Namespace() != s.router.ns {
		t.Error("Namespace is not the borrowed one")
	}
	c := must.Get(s.f.Dial(t.Context(), s.f.InternetAddr()))(t)
	must.Do(t, c.Close())
}

// TestStranger: the router asks who it is with an address that a stranger, which checks strictly, has a route to.
func TestStranger(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	must.Do(t, s.router.rtnl.forget(ip(host1), s.f.segment.index))
	must.Do(t, Do(s.h.ns, func() error { return write(sysctls+"ipv4/conf/all/rp_filter", "1") }))
	s.f.Ping([]netip.Addr{ip(host1)}, calm) // it has no route for the answer
	if got := s.router.neighbour(host1); got != macH {
		t.Errorf("the router's neighbour %s is %q, expected %s", host1, got, macH)
	}
	if !s.b.ping("10.0.1.30", host1, patience) {
		t.Error("a cable does not reach it")
	}
}

// TestHairpin: what goes between two machines on the segment goes by the router, which tells nobody of a shorter way; and so does what the host
// sends.
func TestHairpin(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, c := range []struct {
		from     *instance
		src, dst string
		want     []string
	}{
		{s.a, "10.0.1.11", "10.0.1.20", []string{macA + " received 8", macB + " sent 8", macB + " received 0", macA + " sent 0"}},
		{s.h, host1, "10.0.1.20", []string{" received 8", macB + " sent 8"}},
		{s.a, "10.0.1.10", "10.0.77.1", []string{macA + " received 8"}}, // and vanishes
	} {
		if got := s.throughRouter(c.from, c.src, c.dst, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: the router saw %q, expected %q", c.src, c.dst, got, c.want)
		}
	}
}

// throughRouter is what the router sees of one ping: n packets, and all that come before those of another ping, which is sent after them.
func (s *shared) throughRouter(from *instance, src, dst string, n int) (seen []string) {
	ctx, cancel := context.WithTimeout(s.wire.t.Context(), patience)
	defer cancel()
	packets := must.Get(s.f.Capture(ctx, "any"))(s.wire.t)
	from.ping(src, dst, firstRepeat/2) // is sent once
	for p := range packets {
		if binary.BigEndian.Uint16(p.Data[12:]) != unix.ETH_P_IP || p.Data[23] != unix.IPPROTO_ICMP {
			continue
		}
		if p.MAC == macD {
			return seen
		}
		seen = append(seen, fmt.Sprintf("%s %s %d", p.MAC, map[bool]string{true: "sent", false: "received"}[p.Sent], p.Data[34]))
		if len(seen) == n {
			s.b.ping("10.0.1.30", "198.51.100.1", patience) // by macD
		}
	}
	return append(seen, "and no end")
}

// TestSegmentCapture: a capture of one machine shows no other's packets.
func TestSegmentCapture(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	packets := must.Get(s.f.Capture(t.Context(), strings.ToUpper(macB)))(t)
	for _, src := range []string{"10.0.2.10", "10.0.1.10"} {
		if !s.a.ping(src, "10.0.1.30", patience) {
			t.Errorf("%s: no answer", src)
		}
	}
	if !s.a.ping("10.0.1.10", "10.0.1.20", patience) {
		t.Error("no answer")
	}
	for seen := 0; seen < 2; {
		p := <-packets
		if p.MAC != macB {
			t.Errorf("a packet of %q was captured", p.MAC)
		}
		if binary.BigEndian.Uint16(p.Data[12:]) == unix.ETH_P_IP && p.Data[23] == unix.IPPROTO_ICMP {
			seen++
		}
	}
}

// TestSegmentSourceCheck: and the same packets pass without the check, so it is the check that drops them.
func TestSegmentSourceCheck(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	spoofs := []struct {
		name   string
		from   *instance
		device string
		src    string
		passes bool // by rp_filter
	}{
		{"another machine's primary", s.a, "eth0", "10.0.1.20", true},
		{"another machine's secondary", s.a, "eth0", "10.0.1.21", true},
		{"the host's", s.a, "eth0", host1, true},
		{"of the machine's own other ENI", s.a, "eth0", "10.0.2.10", false},
		{"by the other ENI", s.a, "eth1", "10.0.1.10", false},
		{"the host's by a cable", s.a, "eth1", host1, false},
		{"nobody's", s.a, "eth0", "10.0.1.99", false},
		{"nobody's, by nobody", s.h, "eth0", "10.0.1.99", false},
		{"an address outside", s.a, "eth0", "192.0.2.1", false},
		{"the router's", s.a, "eth0", "10.0.1.1", false},
		{"the witness", s.a, "eth0", "10.0.255.254", false},
		{"none", s.a, "eth0", "0.0.0.0", false},
	}
	round := 0
	arrived := func(n int, patience time.Duration) bool {
		round++
		c, mark := spoofs[n], fmt.Appendf(nil, "spoof %d", round)
		return receives(t, s.f, macD, mark, patience, func() { c.from.spoof(c.device, c.src, "10.0.1.30", mark) })
	}
	for n, c := range spoofs {
		if arrived(n, calm/2) {
			t.Errorf("%s (%s by %s) was delivered", c.name, c.src, c.device)
		}
	}
	spoofs = append(spoofs, spoofs[0])
	honest := len(spoofs) - 1
	for _, src := range []string{"10.0.1.10", "10.0.1.11"} {
		spoofs[honest].src = src
		if !arrived(honest, patience) {
			t.Errorf("its own address %s was dropped", src)
		}
	}
	must.Do(t, s.f.Unassign(ip("10.0.1.11")))
	if arrived(honest, calm/2) {
		t.Error("an address that was unassigned was delivered")
	}
	must.Do(t, s.f.filter.close())
	for n, c := range spoofs[:honest] {
		if c.passes && !arrived(n, patience) {
			t.Errorf("without the check, %s (%s by %s) was not delivered either: the test shows nothing", c.name, c.src, c.device)
		}
	}
}

func TestSegmentARP(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	must.Do(t, s.f.Unassign(ip("10.0.1.11")))
	must.Do(t, s.f.Assign("02:00:00:00:77:77", ip("10.0.1.40"))) // neither plugged in nor joined
	for _, c := range []struct {
		name                   string
		from                   *instance
		device, sender, target string
		want                   string
	}{
		{"gateway", s.a, "eth0", "10.0.1.10", "10.0.1.1", macR},
		{"a machine", s.a, "eth0", "10.0.1.10", "10.0.1.20", macR},
		{"a cable", s.a, "eth0", "10.0.1.10", "10.0.1.30", macR},
		{"nobody", s.a, "eth0", "10.0.1.10", "10.0.1.99", ""},
		{"an ENI that is nowhere", s.a, "eth0", "10.0.1.10", "10.0.1.40", ""},
		{"another subnet", s.a, "eth0", "10.0.1.10", "10.0.2.10", ""},
		{"a stranger", s.a, "eth0", "10.0.1.10", host1, macH},
		{"itself", s.a, "eth0", "10.0.1.10", "10.0.1.10", ""},
		{"a sender that is another's", s.a, "eth0", "10.0.1.20", "10.0.1.1", ""},
		{"a sender that is the other ENI's", s.a, "eth0", "10.0.2.10", "10.0.1.1", ""},
		{"a sender that is unassigned again", s.a, "eth0", "10.0.1.11", "10.0.1.1", ""},
		{"probe of a used address", s.a, "eth0", "0.0.0.0", "10.0.1.20", macR},
		{"probe of its own", s.a, "eth0", "0.0.0.0", "10.0.1.10", ""},
		{"probe of a free address", s.a, "eth0", "0.0.0.0", "10.0.1.11", ""},
		{"the host about a machine", s.h, "eth0", host1, "10.0.1.20", macR},
		{"the host about a secondary", s.h, "eth0", host1, "10.0.1.21", macR},
		{"the host about a cable", s.h, "eth0", host1, "10.0.1.30", macR},
		{"the host about the gateway", s.h, "eth0", host1, "10.0.1.1", macR},
		{"the host about nobody", s.h, "eth0", host1, "10.0.1.11", ""},
		{"the host about itself", s.h, "eth0", host1, host1, ""},
		{"the host probes", s.h, "eth0", "0.0.0.0", "10.0.1.20", macR},
		{"a cable about a machine", s.b, "eth1", "10.0.1.30", "10.0.1.10", routerMAC().String()},
		{"a cable about the host", s.b, "eth1", "10.0.1.30", host1, routerMAC().String()},
	} {
		wait := patience
		if c.want == "" {
			wait = calm / 2
		}
		if got := c.from.arp(c.device, c.sender, c.target, wait); got != c.want {
			t.Errorf("%s: who has %s, tell %s: answer %q, expected %q", c.name, c.target, c.sender, got, c.want)
		}
	}
}

// TestContradiction: who hears a machine ask for something learns the machine's MAC; the router sees to it that it is forgotten.
func TestContradiction(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	for _, i := range []*instance{s.b, s.h} { // believe everything, at once
		must.Do(t, Do(i.ns, func() error { return write(sysctls+"ipv4/neigh/eth0/locktime", "0") }))
	}
	believes := func(i *instance, mac string) {
		t.Helper()
		eventually(t, fmt.Sprintf("the neighbour 10.0.1.10 is %s", mac), func() bool { return i.neighbour("10.0.1.10") == mac })
	}
	claim := func() { s.a.arp("eth0", "10.0.1.10", "10.0.1.99", calm/2) }
	if !s.b.ping("10.0.1.20", "10.0.1.10", patience) || !s.h.ping(host1, "10.0.1.10", patience) {
		t.Fatal("no answer")
	}
	for _, say := range []func(){claim, func() { s.a.arp("eth0", "10.0.1.10", "10.0.1.10", calm/2) }, func() { s.a.arp("eth0", "10.0.1.10", host1, patience) }} {
		say()
		believes(s.b, macR)
		believes(s.h, macR)
	}
	must.Do(t, s.f.Leave(macA))
	eventually(t, "the machine is believed when nobody contradicts", func() bool { // else the test shows nothing
		claim() // twice: what came in the same tick as another change is not believed
		return s.b.neighbour("10.0.1.10") == macA && s.h.neighbour("10.0.1.10") == macA
	})
	must.Do(t, s.f.Join(macA))
	believes(s.b, macR)
	believes(s.h, macR)
}

// TestSegmentOfSeveralSubnets: machines of two subnets on one Ethernet, which the host sees as one network; they are in reach by their gateways alone.
func TestSegmentOfSeveralSubnets(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	s := &shared{wire: w, router: w.routerSpace(), h: w.host(), a: w.machine(macA, "10.0.1.10"), b: w.machineIn(sn2, macB, "10.0.2.20", "10.0.2.21")}
	s.router.addAddress("eth0", "10.0.2.1", 24)
	must.Do(t, s.h.rtnl.nl.RouteAdd(&netlink.Route{LinkIndex: int(s.h.index("eth0")), Dst: ipNet(ip("10.0.2.0"), 24)}))
	// What the network's own machines do to reach a host that is not in their subnet.
	must.Do(t, s.b.rtnl.nl.RouteAdd(&netlink.Route{LinkIndex: int(s.b.index("eth0")), Dst: ipNet(ip(host1), 32), Scope: netlink.SCOPE_LINK}))
	s.f = must.Get(New(sharedConfig(s.router.ns)))(t)
	t.Cleanup(func() { must.Do(t, s.f.Close()) })
	for _, i := range []*instance{s.router, s.h, s.a, s.b} {
		i.f = s.f
	}
	for a, mac := range map[string]string{"10.0.1.10": macA, "10.0.2.20": macB, "10.0.2.21": macB} {
		must.Do(t, s.f.Assign(mac, ip(a)))
	}
	must.Do(t, s.f.Join(macA))
	must.Do(t, s.f.Join(macB))
	eventually(t, "the router answers a by ARP", func() bool { return s.a.arp("eth0", "0.0.0.0", "10.0.1.1", calm) == macR })
	eventually(t, "the router answers b by ARP", func() bool { return s.b.arp("eth0", "0.0.0.0", "10.0.2.1", calm) == macR })
	for _, c := range []struct {
		from             *instance
		sender, target   string
		want, wantOfPing string
	}{
		{s.a, "10.0.1.10", "10.0.1.1", macR, ""},
		{s.b, "10.0.2.20", "10.0.2.1", macR, ""},
		{s.a, "10.0.1.10", "10.0.2.20", "", "answered"},
		{s.b, "10.0.2.21", "10.0.1.10", "", "answered"},
		{s.a, "10.0.1.10", "10.0.2.1", "", ""},
		{s.b, "10.0.2.20", host1, macH, "answered"},
		{s.h, host1, "10.0.2.21", macR, "answered"},
		{s.h, host1, "10.0.1.10", macR, "answered"},
	} {
		wait := func(yes bool) time.Duration {
			if yes {
				return patience
			}
			return calm / 2
		}
		if got := c.from.arp("eth0", c.sender, c.target, wait(c.want != "")); got != c.want {
			t.Errorf("who has %s, tell %s: answer %q, expected %q", c.target, c.sender, got, c.want)
		}
		if got := c.from.ping(c.sender, c.target, wait(c.wantOfPing != "")); got != (c.wantOfPing != "") {
			t.Errorf("%s pings %s: answered=%v", c.sender, c.target, got)
		}
	}
}

func TestSegmentMoves(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	check := func(step string, want ...string) {
		t.Helper()
		all := []string{"10.0.1.10", "10.0.1.11", "10.0.1.20", "10.0.1.21", "10.0.1.30"}
		for _, a := range all {
			want := slices.Contains(want, a)
			wait := patience
			if !want {
				wait = calm / 2
			}
			if got := s.f.Ping([]netip.Addr{ip(a)}, wait)[0]; got != want {
				t.Errorf("%s: %s answered=%v", step, a, got)
			}
		}
	}
	check("joined", "10.0.1.10", "10.0.1.11", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	must.Do(t, s.f.Join(macA)) // again
	must.Do(t, s.f.Unassign(ip("10.0.1.11")))
	must.Do(t, s.f.Unassign(ip("10.0.1.11")))
	check("unassigned", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	must.Do(t, s.f.Assign(macA, ip("10.0.1.21"))) // b's
	check("reassigned, not configured", "10.0.1.10", "10.0.1.20", "10.0.1.30")
	s.a.addAddress("eth0", "10.0.1.21", 32)
	check("reassigned", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	if s.b.ping("10.0.1.21", "10.0.1.10", calm) {
		t.Error("who had the address can still send from it")
	}
	must.Do(t, s.f.Assign(macD, ip("10.0.1.21"))) // b's cable
	check("reassigned to a cable, but answered by the segment", "10.0.1.10", "10.0.1.20", "10.0.1.30")
	must.Do(t, s.f.Assign(macB, ip("10.0.1.21")))
	check("and back", "10.0.1.10", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	must.Do(t, s.f.Leave(macA))
	must.Do(t, s.f.Leave(macA))
	must.Do(t, s.f.Leave("02:00:00:00:77:77"))
	must.Do(t, s.f.Leave(macD)) // plugged in
	check("left", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	must.Do(t, s.f.Unassign(ip("10.0.1.20")))
	check("unassigned, too", "10.0.1.21", "10.0.1.30")
	must.Do(t, s.f.Assign(macA, ip("10.0.1.11")))
	must.Do(t, s.f.Join(strings.ToUpper(macA)))
	must.Do(t, s.f.Unplug(macA)) // it has no cable
	must.Do(t, s.f.Assign(macB, ip("10.0.1.20")))
	check("joined again", "10.0.1.10", "10.0.1.11", "10.0.1.20", "10.0.1.21", "10.0.1.30")
	for want, err := range map[string]error{
		"has joined the segment": s.f.Plug(s.a.ns, "eth9", macA, 1500),
		"plugged in already":     s.f.Join(macD),
		"invalid MAC":            s.f.Join("x"),
		"join x":                 s.f.Join("x"),
		"leave x":                s.f.Leave("x"),
		"the router's own":       s.f.Join(macR),
		"stranger":               s.f.Assign(macA, ip(host1)),
		"gateway":                s.f.Assign(macA, ip("10.0.1.1")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	must.Do(t, s.f.Unplug(macD))
	must.Do(t, s.f.Leave(macB))
	must.Do(t, s.f.Join(macD)) // on no machine
	must.Do(t, s.f.Leave(macD))
	must.Do(t, s.f.Plug(s.b.ns, "eth9", macB, 1500))
	check("the other way round", "10.0.1.10", "10.0.1.11")
}

// TestJumbo: a cable of 9001 bytes, a segment of 1500.
func TestJumbo(t *testing.T) {
	t.Parallel()
	s := newShared(t)
	must.Do(t, Do(s.a.ns, func() error { // UDP with DF: an ICMP error says what fits
		c, err := net.DialUDP("udp4", &net.UDPAddr{IP: ip("10.0.2.10").AsSlice()}, &net.UDPAddr{IP: ip("10.0.1.20").AsSlice(), Port: 9})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		raw, err := c.SyscallConn()
		if err != nil {
			return err
		}
		var mtu int
		set := func(fd uintptr) {
			err = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO)
		}
		if e := raw.Control(set); e != nil || err != nil {
			return fmt.Errorf("%v, %v", e, err)
		}
		eventually(t, "the path's MTU is known", func() bool {
			_, _ = c.Write(make([]byte, 8000))
			_ = raw.Control(func(fd uintptr) { mtu, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU) })
			return mtu < 9001
		})
		if mtu != wireMTU {
			t.Errorf("the path's MTU is %d, expected %d", mtu, wireMTU)
		}
		return nil
	}))
	for _, c := range []struct {
		name     string
		from, to *instance
		src, dst string
		jumbo    bool // the joined machine believes that it can send 9001 bytes
	}{
		{"cable to joined", s.a, s.b, "10.0.2.10", "10.0.1.20", false},
		{"joined to cable", s.b, s.a, "10.0.1.20", "10.0.2.10", false},
		{"joined to joined", s.b, s.a, "10.0.1.21", "10.0.1.10", false},
		{"cable to joined with a wrong MTU", s.a, s.b, "10.0.2.11", "10.0.1.20", true},
		{"joined with a wrong MTU to cable", s.b, s.a, "10.0.1.20", "10.0.2.11", true},
		{"joined with a wrong MTU to joined with a wrong MTU", s.b, s.a, "10.0.1.20", "10.0.1.10", true},
	} {
		mtu := wireMTU
		if c.jumbo {
			mtu = 9001
		}
		s.a.setMTU("eth0", mtu)
		s.b.setMTU("eth0", mtu)
		for _, n := range []int{4000, 1 << 20} { // one piece that no link cuts, unless it was told to; and many
			if err := transfer(c.from, c.to, c.src, c.dst, n); err != nil {
				t.Errorf("%s: %d bytes: %v", c.name, n, err)
			}
		}
	}
}
