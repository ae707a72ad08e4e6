package vpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// state is what a VPC must leave in a borrowed namespace: links, addresses, routes, rules, neighbours that somebody set, every setting of
// IPv4 and IPv6, nftables.
func (i *instance) state() []string {
	i.t.Helper()
	neighbours := must.Get(i.rtnl.nl.NeighList(0, unix.AF_INET))(i.t)
	var out []string
	for _, n := range neighbours {
		if n.State&unix.NUD_NOARP == 0 { // broadcast and multicast
			out = append(out, fmt.Sprintf("neighbour %v %#x", n.String(), n.State))
		}
	}
	must.Do(i.t, Do(i.ns, func() error {
		out = append(out, strings.Split(tables(), "\n")...)
		err := filepath.WalkDir(sysctls, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.Contains(path, "/ipv") || filepath.Base(path) == "flush" {
				return err
			}
			v, err := os.ReadFile(path)
			if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EIO) { // stable_secret without a secret
				return err
			}
			out = append(out, path+"="+strings.TrimSpace(string(v)))
			return nil
		})
		if err != nil {
			return err
		}
		c, err := nftables.New()
		if err != nil {
			return err
		}
		list, err := c.ListTables()
		for _, t := range list {
			out = append(out, fmt.Sprintf("nftables %d %s", t.Family, t.Name))
		}
		return err
	}))
	return out
}

// difference of two states.
func difference(before, after []string) (out []string) {
	for _, s := range before {
		if !slices.Contains(after, s) {
			out = append(out, "- "+s)
		}
	}
	for _, s := range after {
		if !slices.Contains(before, s) {
			out = append(out, "+ "+s)
		}
	}
	return out
}

// odd is a router's namespace with all settings as a VPC does not want them, and somebody's nftables.
func (w *wire) odd() *instance {
	w.t.Helper()
	r := w.routerSpace()
	must.Do(w.t, Do(r.ns, func() error {
		var errs []error
		for path, value := range map[string]string{"ip_forward": "0", "conf/all/rp_filter": "2", "conf/default/rp_filter": "0", "conf/eth0/rp_filter": "2",
			"conf/eth0/proxy_arp": "1", "conf/eth0/accept_local": "1", "conf/lo/rp_filter": "0", "conf/all/arp_ignore": "1", "conf/eth0/send_redirects": "1",
			"conf/all/accept_redirects": "1", "conf/eth0/forwarding": "1", "tcp_fin_timeout": "77"} {
			errs = append(errs, write(sysctls+"ipv4/"+path, value))
		}
		c, err := nftables.New()
		if err == nil {
			c.AddTable(&nftables.Table{Name: "somebody", Family: nftables.TableFamilyIPv4})
			err = c.Flush()
		}
		return errors.Join(append(errs, err)...)
	}))
	return r
}

// TestGivenBack: a borrowed namespace is what it was, after a life full of everything, and can be borrowed again.
func TestGivenBack(t *testing.T) {
	w := newWire(t)
	r, h := w.odd(), w.host()
	a := w.machine(macA, "10.0.1.10")
	before := r.state()
	files := descriptors(t)
	for round := range 2 {
		f := must.Get(New(sharedConfig(r.ns)))(t)
		if _, err := New(sharedConfig(r.ns)); err == nil || !strings.Contains(err.Error(), "a VPC is at work there already") {
			t.Errorf("a second VPC in one namespace: error %v", err)
		}
		h.f = f
		must.Do(t, f.Join(macA))
		must.Do(t, f.Join(macB))
		for i := range 20 {
			must.Do(t, f.Assign([]string{macA, macB, macC}[i%3], netip.AddrFrom4([4]byte{10, 0, 1, byte(10 + i)})))
		}
		cable := newInstance(t, f)
		cable.eth(0, macC, sn2, "10.0.2.10")
		if !f.Ping([]netip.Addr{ip("10.0.1.10"), ip("10.0.2.10")}, patience)[0] || !h.ping(host1, "10.0.1.10", patience) {
			t.Errorf("round %d: no answer", round)
		}
		c := must.Get(f.Dial(t.Context(), f.InternetAddr()))(t)
		if len(difference(before, r.state())) < 40 {
			t.Error("the VPC changed nothing: the test shows nothing")
		}
		must.Do(t, f.Close())
		must.Do(t, f.Close())
		_ = c.Close()
		if cable.index("eth0") != 0 {
			t.Error("the cable is still there after Close")
		}
		for _, d := range difference(before, r.state()) {
			t.Errorf("round %d: %s", round, d)
		}
		cable.close()
	}
	eventually(t, "descriptors are closed", func() bool { return descriptors(t) <= files })
	a.arp("eth0", "10.0.1.10", "10.0.1.1", 0) // the file is still open
}

// TestNotBorrowed: what is refused is not touched.
func TestNotBorrowed(t *testing.T) {
	w := newWire(t)
	r := w.odd()
	blackhole := &netlink.Route{Table: loanTable, Dst: ipNet(netip.IPv4Unspecified(), 0), Type: unix.RTN_BLACKHOLE}
	must.Do(t, r.rtnl.nl.RouteAdd(blackhole))
	before := r.state()
	refused := func(c Config, want string) {
		t.Helper()
		f, err := New(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
		if err == nil {
			must.Do(t, f.Close())
		}
		for _, d := range difference(before, r.state()) {
			t.Errorf("%s: %s", want, d)
		}
	}
	c := sharedConfig(r.ns)
	refused(c, "routing table 233 has 1 routes")
	must.Do(t, r.rtnl.nl.RouteDel(blackhole))
	before = r.state()
	c.Segment = "eth7"
	refused(c, "no such link")
	c.Segment = "lo"
	refused(c, "expected an Ethernet link that is up")
	c = sharedConfig(r.ns)
	c.Subnets, c.Strangers = c.Subnets[1:], nil
	refused(c, "expected the gateway")
	must.Do(t, Do(r.ns, func() error {
		c, err := nftables.New()
		if err != nil {
			return err
		}
		c.AddTable(&nftables.Table{Name: filterTable, Family: nftables.TableFamilyIPv4})
		return c.Flush()
	}))
	before = r.state()
	refused(sharedConfig(r.ns), "nftables")
}

// TestBorrowedAlone: a borrowed namespace without a segment, whose link has an index where cables would have theirs.
func TestBorrowedAlone(t *testing.T) {
	needRoot(t)
	r := newInstance(t, nil)
	must.Do(t, r.rtnl.down(loopback))
	must.Do(t, r.rtnl.bridge(firstCable+1))
	before := r.state()
	c := config()
	c.Namespace = r.ns
	f := must.Get(New(c))(t)
	node := newInstance(t, f)
	node.eth(0, macA, sn1, "10.0.1.10")
	if !node.ping("10.0.1.10", "198.51.100.1", patience) {
		t.Error("no answer")
	}
	if err := f.Join(macB); err == nil || !strings.Contains(err.Error(), "no segment") {
		t.Errorf("join: error %v", err)
	}
	must.Do(t, f.Leave(macA))
	must.Do(t, f.Close())
	for _, d := range difference(before, r.state()) {
		t.Error(d)
	}
}
