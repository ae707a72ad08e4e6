package vpc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
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

// host is what a VPC must leave alone in the namespace of the process: links, addresses, routes, neighbours, settings.
func host() string {
	var b strings.Builder
	b.WriteString(tables())
	for _, s := range settings {
		v, _ := os.ReadFile("/proc/sys/net/" + s.path)
		fmt.Fprintf(&b, "%s=%s", s.path, v)
	}
	return b.String()
}

// tables are links, addresses, routes and rules of the calling thread's namespace.
func tables() string {
	var b strings.Builder
	for _, d := range []struct {
		kind, size int
	}{{unix.RTM_GETLINK, unix.SizeofIfInfomsg}, {unix.RTM_GETADDR, unix.SizeofIfAddrmsg}, {unix.RTM_GETROUTE, unix.SizeofRtMsg}, {unix.RTM_GETRULE, unix.SizeofRtMsg}} {
		dump := nl.NewNetlinkRequest(d.kind, unix.NLM_F_DUMP)
		dump.AddRawData(make([]byte, d.size))
		answers, err := dump.Execute(unix.NETLINK_ROUTE, 0)
		if err != nil {
			return err.Error()
		}
		for _, a := range answers {
			n := d.size
			if d.kind != unix.RTM_GETLINK && d.kind != unix.RTM_GETADDR { // links have counters, addresses have ages
				n = len(a)
			}
			fmt.Fprintf(&b, "%d %x\n", d.kind, a[:n])
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
	must.Do(t, ns.Close())
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func config() Config {
	return Config{VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		Subnets: []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("10.0.2.0/24")}}
}

func newNetwork(t testing.TB) *Network {
	t.Helper()
	needRoot(t)
	f := must.Get(New(config()))(t)
	t.Cleanup(func() { must.Do(t, f.Close()) })
	return f
}

// instance is a namespace that is configured as EC2 instances are.
type instance struct {
	t    testing.TB
	f    *Network
	ns   *os.File
	rtnl *rtnl
}

func newInstance(t testing.TB, f *Network) *instance {
	t.Helper()
	ns := must.Get(NewNamespace())(t)
	r := must.Get(dialRTNL(ns))(t)
	must.Do(t, Do(ns, func() error { return write("/proc/sys/net/ipv4/conf/all/rp_filter", "0") }))
	i := &instance{t, f, ns, r}
	t.Cleanup(i.close)
	return i
}

func (i *instance) close() {
	i.rtnl.close()
	_ = i.ns.Close()
}

// eth plugs an ENI in, assigns its addresses (the first is its primary) and configures the link as a node would: addresses, a table of
// its own whose default is the subnet's gateway, and a rule for each address. Device 0 has its default route in main.
func (i *instance) eth(device int, mac string, subnet string, addrs ...string) {
	i.t.Helper()
	must.Do(i.t, i.f.Plug(i.ns, fmt.Sprintf("eth%d", device), mac, 9001))
	for _, a := range addrs {
		must.Do(i.t, i.f.Assign(mac, ip(a)))
	}
	i.configure(device, netip.MustParsePrefix(subnet), addrs...)
}

func (i *instance) configure(device int, subnet netip.Prefix, addrs ...string) {
	i.t.Helper()
	index := i.index(fmt.Sprintf("eth%d", device))
	must.Do(i.t, i.rtnl.up(index))
	table := unix.RT_TABLE_MAIN
	if device > 0 {
		table = 100 + device
	}
	for n, a := range addrs {
		bits := 32
		if n == 0 && device == 0 {
			bits = subnet.Bits()
		}
		i.addAddress(fmt.Sprintf("eth%d", device), a, bits)
		if device > 0 {
			rule := netlink.NewRule()
			rule.Table, rule.Src = table, ipNet(ip(a), 32)
			must.Do(i.t, i.rtnl.nl.RuleAdd(rule))
		}
	}
	gw := gateway(subnet)
	must.Do(i.t, i.rtnl.nl.RouteAdd(&netlink.Route{Table: table, LinkIndex: int(index), Dst: ipNet(gw, 32), Scope: unix.RT_SCOPE_LINK}))
	must.Do(i.t, i.rtnl.nl.RouteAdd(&netlink.Route{Table: table, LinkIndex: int(index), Gw: gw.AsSlice()}))
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
	l, err := i.rtnl.nl.LinkByName(name)
	if _, missing := errors.AsType[netlink.LinkNotFoundError](err); missing {
		return 0
	}
	must.Do(i.t, err)
	return int32(l.Attrs().Index)
}

// ping tells whether to answers a ping from that address of the instance.
func (i *instance) ping(from, to string, patience time.Duration) bool {
	i.t.Helper()
	p := must.Get(newProbe(i.ns, ip(from)))(i.t)
	defer p.close()
	return p.ping([]netip.Addr{ip(to)}, patience)[0]
}
