package vpc

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// patience of the tests with what should come, and calm with what should not.
const (
	patience = 20 * time.Second
	calm     = 60 * time.Millisecond
)

// pings are the answers to a ping of all addresses at once. Those that should answer may take their time; what should not come is waited for calmly.
func pings(ping func([]netip.Addr, time.Duration) []bool, addrs []netip.Addr, want []bool) []bool {
	var expected []netip.Addr
	for i, a := range addrs {
		if want[i] {
			expected = append(expected, a)
		}
	}
	came := ping(expected, patience)
	got := ping(addrs, calm)
	for i := range got {
		if want[i] {
			got[i], came = came[0], came[1:]
		}
	}
	return got
}

func TestMain(m *testing.M) {
	before := host()
	code := m.Run()
	if after := host(); code == 0 && after != before {
		fmt.Printf("FAIL: the host's network is not what it was\nbefore:\n%s\nafter:\n%s\n", before, after)
		code = 1
	}
	os.Exit(code)
}

// host is what a fabric must leave alone in the namespace of the process: links, addresses, routes, neighbours, settings.
func host() string {
	var b strings.Builder
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = c.Close() }()
	b.WriteString(tables(c))
	for _, s := range settings {
		v, _ := os.ReadFile("/proc/sys/net/" + s.path)
		fmt.Fprintf(&b, "%s=%s", s.path, v)
	}
	return b.String()
}

// tables are links, addresses, routes and rules.
func tables(c *netlink.Conn) string {
	var b strings.Builder
	for _, d := range []struct {
		kind uint16
		size int
	}{{unix.RTM_GETLINK, unix.SizeofIfInfomsg}, {unix.RTM_GETADDR, unix.SizeofIfAddrmsg}, {unix.RTM_GETROUTE, unix.SizeofRtMsg}, {unix.RTM_GETRULE, unix.SizeofRtMsg}} {
		answers, err := c.Execute(netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(d.kind), Flags: netlink.Request | netlink.Dump}, Data: make([]byte, d.size)})
		if err != nil {
			return err.Error()
		}
		for _, a := range answers {
			n := d.size
			if d.kind != unix.RTM_GETLINK && d.kind != unix.RTM_GETADDR { // links have counters, addresses have ages
				n = len(a.Data)
			}
			fmt.Fprintf(&b, "%d %x\n", d.kind, a.Data[:n])
		}
	}
	return b.String()
}

// needRoot skips where no namespace can be made.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces (CAP_SYS_ADMIN, CAP_NET_ADMIN)")
	}
	ns, err := NewNamespace()
	if err != nil {
		t.Skipf("needs CAP_SYS_ADMIN and CAP_NET_ADMIN: %v", err)
	}
	must(t, ns.Close())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func config() Config {
	return Config{VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("10.0.2.0/24")}}
}

func newFabric(t testing.TB) *Fabric {
	t.Helper()
	needRoot(t)
	f, err := New(config())
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

// instance is a namespace that is configured as EC2 instances are.
type instance struct {
	t    testing.TB
	f    *Fabric
	ns   *os.File
	rtnl *rtnl
}

func newInstance(t testing.TB, f *Fabric) *instance {
	t.Helper()
	ns, err := NewNamespace()
	must(t, err)
	r, err := dialRTNL(ns)
	must(t, err)
	must(t, Do(ns, func() error { return write("/proc/sys/net/ipv4/conf/all/rp_filter", "0") }))
	i := &instance{t, f, ns, r}
	t.Cleanup(i.close)
	return i
}

func (i *instance) close() { _, _ = i.rtnl.close(), i.ns.Close() }

// eth plugs an ENI in, assigns its addresses (the first is its primary) and configures the link as a node would: addresses, a table of
// its own whose default is the subnet's gateway, and a rule for each address. Device 0 has its default route in main.
func (i *instance) eth(device int, mac string, subnet string, addrs ...string) {
	i.t.Helper()
	must(i.t, i.f.Plug(i.ns, fmt.Sprintf("eth%d", device), mac, 9001))
	for _, a := range addrs {
		must(i.t, i.f.Assign(mac, ip(a)))
	}
	i.configure(device, netip.MustParsePrefix(subnet), addrs...)
}

func (i *instance) configure(device int, subnet netip.Prefix, addrs ...string) {
	i.t.Helper()
	index := i.index(fmt.Sprintf("eth%d", device))
	must(i.t, i.rtnl.up(index))
	table := byte(unix.RT_TABLE_MAIN)
	if device > 0 {
		table = byte(100 + device)
	}
	for n, a := range addrs {
		bits := byte(32)
		if n == 0 && device == 0 {
			bits = byte(subnet.Bits())
		}
		must(i.t, i.rtnl.do(unix.RTM_NEWADDR, netlink.Create|netlink.Excl, addrHead(bits, index), func(e *netlink.AttributeEncoder) {
			e.Bytes(unix.IFA_LOCAL, ip(a).AsSlice())
		}))
		if device > 0 {
			must(i.t, i.rtnl.do(unix.RTM_NEWRULE, netlink.Create|netlink.Excl, []byte{unix.AF_INET, 0, 32, 0, table, 0, 0, unix.RTN_UNICAST, 0, 0, 0, 0}, func(e *netlink.AttributeEncoder) {
				e.Bytes(unix.RTA_SRC, ip(a).AsSlice())
			}))
		}
	}
	gw := gateway(subnet)
	for _, r := range []struct {
		bits     byte
		dst, via netip.Addr
	}{{32, gw, netip.Addr{}}, {0, netip.Addr{}, gw}} {
		scope := byte(unix.RT_SCOPE_UNIVERSE)
		if r.bits == 32 {
			scope = unix.RT_SCOPE_LINK
		}
		head := routeHead(r.bits, scope, unix.RTN_UNICAST)
		head[4] = table
		must(i.t, i.rtnl.do(unix.RTM_NEWROUTE, netlink.Create|netlink.Excl, head, func(e *netlink.AttributeEncoder) {
			if r.dst.IsValid() {
				e.Bytes(unix.RTA_DST, r.dst.AsSlice())
			}
			if r.via.IsValid() {
				e.Bytes(unix.RTA_GATEWAY, r.via.AsSlice())
			}
			e.Uint32(unix.RTA_OIF, uint32(index))
		}))
	}
}

func addrHead(bits byte, index int32) []byte {
	b := make([]byte, unix.SizeofIfAddrmsg)
	b[0], b[1], b[4] = unix.AF_INET, bits, byte(index)
	return b
}

// router's MAC as the instance sees it.
func (i *instance) router(device string) net.HardwareAddr {
	if i.f.segment != nil && device == "eth0" {
		return i.f.segment.mac
	}
	return routerMAC()
}

// index of a link of the instance; 0: there is none.
func (i *instance) index(name string) int32 {
	i.t.Helper()
	answers, err := i.rtnl.conn.Execute(netlink.Message{Header: netlink.Header{Type: unix.RTM_GETLINK, Flags: netlink.Request}, Data: withName(name)})
	if err != nil {
		must(i.t, gone(err))
		return 0
	}
	return int32(answers[0].Data[4])
}

func withName(name string) []byte {
	b, _ := encode(linkHead(0, 0), func(e *netlink.AttributeEncoder) { e.String(unix.IFLA_IFNAME, name) })
	return b
}

// ping tells whether to answers a ping from that address of the instance.
func (i *instance) ping(from, to string, patience time.Duration) bool {
	i.t.Helper()
	p, err := newProbe(i.ns, ip(from))
	must(i.t, err)
	defer p.close()
	return p.ping([]netip.Addr{ip(to)}, patience)[0]
}
