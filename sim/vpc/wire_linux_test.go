package vpc

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// wire is one Ethernet: a bridge in a namespace of its own, as Docker's is in the host's.
type wire struct {
	t     testing.TB
	rtnl  *rtnl
	ports int32
}

// bridge is its index.
const bridge = 2

func newWire(t testing.TB) *wire {
	t.Helper()
	needRoot(t)
	ns := must.Get(NewNamespace())(t)
	r := must.Get(dialRTNL(ns))(t)
	t.Cleanup(func() {
		r.close()
		_ = ns.Close()
	})
	must.Do(t, r.bridge(bridge))
	return &wire{t: t, rtnl: r}
}

func (r *rtnl) bridge(index int32) error {
	return r.nl.LinkAdd(&netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Index: int(index), Name: "bridge", TxQLen: -1, Flags: net.FlagUp}})
}

// mtu of the wire, as Docker's.
const wireMTU = 1500

// connect gives a namespace the link eth0 on the wire, down.
func (w *wire) connect(ns *os.File, mac string) {
	w.t.Helper()
	w.ports++
	index := bridge + w.ports
	hardware := must.Get(net.ParseMAC(mac))(w.t)
	near := end{name: fmt.Sprintf("port%d", w.ports), mac: []byte{2, 0, 0, 0, 1, byte(w.ports)}, mtu: wireMTU}
	must.Do(w.t, control(ns, func(fd int) error {
		return w.rtnl.cable(index, near, end{name: "eth0", mac: hardware, mtu: wireMTU}, fd)
	}))
	must.Do(w.t, w.rtnl.nl.LinkSetMasterByIndex(at(index), bridge))
}

// machine is an instance whose eth0 is on the wire, and has these addresses; it leaves ARP to the router.
func (w *wire) machine(mac string, addrs ...string) *instance {
	w.t.Helper()
	return w.machineIn(sn1, mac, addrs...)
}

func (w *wire) machineIn(subnet, mac string, addrs ...string) *instance {
	w.t.Helper()
	i := newInstance(w.t, nil)
	w.connect(i.ns, mac)
	must.Do(w.t, Do(i.ns, func() error { return write(sysctls+"ipv4/conf/eth0/arp_ignore", "8") }))
	i.configure(0, netip.MustParsePrefix(subnet), addrs...)
	return i
}

// The segment's router and the Docker host.
const (
	macR  = "02:00:00:00:00:01"
	macH  = "02:00:00:00:00:02"
	macD  = "02:00:00:00:00:0d"
	host1 = "10.0.1.62"
)

// sharedConfig is config with a segment.
func sharedConfig(router *os.File) Config {
	c := config()
	c.Namespace, c.Segment, c.Strangers = router, "eth0", []netip.Addr{ip(host1)}
	return c
}

// routerSpace is what Docker makes of a small container: eth0 with the gateway's address, a default route by the host, and forwarding.
func (w *wire) routerSpace() *instance {
	w.t.Helper()
	r := newInstance(w.t, nil)
	w.connect(r.ns, macR)
	must.Do(w.t, r.rtnl.up(r.index("eth0")))
	r.addAddress("eth0", "10.0.1.1", 24)
	must.Do(w.t, r.rtnl.nl.RouteAdd(&netlink.Route{Gw: ip(host1).AsSlice()}))
	return r
}

func (i *instance) addAddress(device, a string, bits int) {
	i.t.Helper()
	must.Do(i.t, i.rtnl.nl.AddrAdd(at(i.index(device)), &netlink.Addr{IPNet: ipNet(ip(a), bits)}))
}

// host is a stranger on the wire: it answers for itself, and knows no route but the wire.
func (w *wire) host() *instance {
	w.t.Helper()
	h := newInstance(w.t, nil)
	w.connect(h.ns, macH)
	must.Do(w.t, h.rtnl.up(h.index("eth0")))
	h.addAddress("eth0", host1, 24)
	return h
}

// shared is two machines on a segment, the second with a cable too, and a host.
type shared struct {
	f               *Network
	wire            *wire
	router, a, b, h *instance
}

func newShared(t testing.TB) *shared {
	t.Helper()
	w := newWire(t)
	s := &shared{wire: w, router: w.routerSpace(), h: w.host(), a: w.machine(macA, "10.0.1.10", "10.0.1.11"), b: w.machine(macB, "10.0.1.20", "10.0.1.21")}
	f := must.Get(New(sharedConfig(s.router.ns)))(t)
	t.Cleanup(func() { must.Do(t, f.Close()) })
	s.f = f
	for _, i := range []*instance{s.router, s.h, s.a, s.b} {
		i.f = f
	}
	must.Do(t, f.Assign(macA, ip("10.0.1.10")))
	must.Do(t, f.Join(macA))
	must.Do(t, f.Join(macB))
	for a, mac := range map[string]string{"10.0.1.11": macA, "10.0.1.20": macB, "10.0.1.21": macB} {
		must.Do(t, f.Assign(mac, ip(a)))
	}
	s.a.eth(1, macC, sn2, "10.0.2.10", "10.0.2.11")
	s.b.eth(1, macD, sn1, "10.0.1.30")
	// Links that have just come up lose packets, and a kernel asks again by ARP after a second: until all know the gateway.
	for _, i := range []*instance{s.a, s.b, s.h} {
		eventually(t, "the router answers by ARP", func() bool { return i.arp("eth0", "0.0.0.0", "10.0.1.1", calm) == macR })
	}
	return s
}

// neighbour is the MAC that the instance has for an address, or "".
func (i *instance) neighbour(a string) string {
	i.t.Helper()
	list := must.Get(i.rtnl.nl.NeighList(0, unix.AF_INET))(i.t)
	for _, n := range list {
		if n.IP.Equal(ip(a).AsSlice()) && n.State&unix.NUD_FAILED == 0 {
			return n.HardwareAddr.String()
		}
	}
	return ""
}

func (i *instance) setMTU(device string, mtu int) {
	i.t.Helper()
	must.Do(i.t, i.rtnl.nl.LinkSetMTU(at(i.index(device)), mtu))
}

// transfer sends n bytes by TCP, some of them in pieces that are larger than the wire's MTU and are not cut by the sender's link.
func transfer(from, to *instance, src, dst string, n int) error {
	var l net.Listener
	err := Do(to.ns, func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(dst, "0"))
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	got := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(patience))
			var m int64
			if m, err = io.Copy(io.Discard, c); err == nil && m != int64(n) {
				err = fmt.Errorf("%d bytes arrived, expected %d", m, n)
			}
		}
		got <- err
	}()
	return errors.Join(Do(from.ns, func() error {
		c, err := (&net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: ip(src).AsSlice()}}).Dial("tcp4", l.Addr().String())
		if err != nil {
			_ = l.Close()
			return err
		}
		defer func() { _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(patience))
		for left := n; left > 0; {
			m := min(left, 4000)
			if _, err := c.Write(make([]byte, m)); err != nil {
				return err
			}
			left -= m
		}
		return nil
	}), <-got)
}
