package kernelcheck

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
)

// world is a model and a kernel to which the same is done.
type world struct {
	t    *testing.T
	fake *kernel.Kernel
	real *linux.Kernel

	router *os.File              // the namespace that all cables lead to
	pods   map[uint64]*linux.Pod // by the model's inode
	enis   map[string]string     // names of ENIs' links by the MAC they were plugged in with
	cables int

	log             []string
	plans, failures int
}

// newWorld puts the test's thread into a new namespace; it is never unlocked, so that both end with the test.
func newWorld(t *testing.T, o linux.Options) *world {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN: makes network namespaces of its own")
	}
	w := &world{t: t, fake: kernel.New(1), pods: map[uint64]*linux.Pod{}, enis: map[string]string{}}
	w.router, _ = w.namespace()
	runtime.LockOSThread()
	w.must(unix.Unshare(unix.CLONE_NEWNET))
	w.must(os.WriteFile("/proc/sys/net/ipv4/conf/default/rp_filter", []byte("1"), 0)) // the model's default
	var err error
	w.real, err = linux.Open(o)
	w.must(err)
	t.Cleanup(func() {
		for _, p := range w.pods {
			p.Close()
		}
		w.router.Close()
		w.real.Close()
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\nafter\n%s", err, w.story())
	}
}

// story is the last things that were done.
func (w *world) story() string {
	return strings.Join(w.log[max(0, len(w.log)-5):], "\n")
}

func (w *world) note(format string, args ...any) {
	w.log = append(w.log, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

// namespace makes one, with an rtnetlink socket inside.
func (w *world) namespace() (netns, rtnetlink *os.File) {
	w.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends
		done <- func() (err error) {
			if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
			if err != nil {
				return err
			}
			rtnetlink = os.NewFile(uintptr(fd), "rtnetlink")
			netns, err = os.Open("/proc/thread-self/ns/net")
			return err
		}()
	}()
	w.must(<-done)
	return netns, rtnetlink
}

func (w *world) newNamespace() uint64 {
	p, err := linux.NewPod(w.namespace())
	w.must(err)
	inode := w.fake.NewNamespace()
	w.pods[inode] = p
	w.note("new namespace %d", inode)
	return inode
}

// closeNamespace waits until the kernel has taken the namespace and its veths down, which it does in its own time.
func (w *world) closeNamespace(inode uint64) {
	p := w.pods[inode]
	if p == nil {
		return
	}
	w.note("close namespace %d", inode)
	w.fake.CloseNamespace(inode)
	delete(w.pods, inode)
	w.must(p.Close())
	want := len(w.fake.Observe().Links)
	w.until("the namespace's veths are gone", func() bool {
		o, err := w.real.Observe()
		return err == nil && len(o.Links) == want
	})
}

// until waits for something the kernel does by itself.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited 30 s until %s\nafter\n%s", what, w.story())
		}
	}
}

// apply applies a plan, which is about the model's namespaces, to both.
func (w *world) apply(p dataplane.Plan) {
	w.t.Helper()
	if p.Empty() {
		return
	}
	w.plans++
	w.note("apply\n%s", p)
	real := dataplane.Plan{Ops: append([]dataplane.Op(nil), p.Ops...)}
	var pod *linux.Pod
	for i := range real.Ops {
		op := &real.Ops[i]
		if op.Netns == 0 {
			continue
		}
		if pod = w.pods[op.Netns]; pod != nil {
			op.Netns = pod.Inode()
		} else {
			op.Netns = 1 // nobody's
		}
	}
	done, err := w.real.Apply(real, pod)
	modelled, wanted := w.fake.Apply(p, 0, len(p.Ops))
	if done != modelled || (err == nil) != (wanted == nil) || err != nil && err.Kind != wanted.Kind {
		w.t.Fatalf("the kernel did %d: %v\nthe model did %d: %v\nafter\n%s", done, err, modelled, wanted, w.story())
	}
	if err != nil {
		w.failures++
	}
}

// compare fails when the two look different.
func (w *world) compare() {
	w.t.Helper()
	have, err := w.real.Observe()
	w.must(err)
	want := w.fake.Observe()
	mask(&have)
	mask(&want)
	if !have.Equal(&want) {
		w.t.Fatalf("the kernel and the model differ:\n%s\nafter\n%s", difference(&have, &want), w.story())
	}
}

func mask(o *dataplane.Observation) {
	for i := range o.Links {
		l := &o.Links[i]
		l.Index = 0
		if strings.HasPrefix(l.Name, "eth") {
			l.Veth, l.PeerLive, l.PeerAddresses = false, false, nil
		}
	}
}

func difference(have, want *dataplane.Observation) string {
	var b strings.Builder
	only := func(who string, x, y any) {
		xs, ys := reflect.ValueOf(x), reflect.ValueOf(y)
		for i := range xs.Len() {
			found := false
			for j := range ys.Len() {
				found = found || reflect.DeepEqual(xs.Index(i).Interface(), ys.Index(j).Interface())
			}
			if !found {
				fmt.Fprintf(&b, "only %s: %+v\n", who, xs.Index(i).Interface())
			}
		}
	}
	only("kernel", have.Links, want.Links)
	only("model ", want.Links, have.Links)
	only("kernel", have.Routes, want.Routes)
	only("model ", want.Routes, have.Routes)
	only("kernel", have.Rules, want.Rules)
	only("model ", want.Rules, have.Rules)
	if have.NAT != want.NAT {
		fmt.Fprintf(&b, "kernel: %+v\nmodel:  %+v\n", have.NAT, want.NAT)
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "kernel: %+v\nmodel:  %+v\n", have, want)
	}
	return b.String()
}

// names of the model's links.
func (w *world) names() map[string]dataplane.Link {
	names := map[string]dataplane.Link{}
	o := w.fake.Observe()
	for _, l := range o.Links {
		names[l.Name] = l
	}
	return names
}

func (w *world) plug(mac string) {
	before := w.names()
	w.fake.Plug(mac)
	w.note("plug %s", mac)
	w.cable(before)
}

// cable plugs into the kernel what the model has more than before.
func (w *world) cable(before map[string]dataplane.Link) {
	for name, l := range w.names() {
		if _, known := before[name]; known {
			continue
		}
		hw, err := net.ParseMAC(l.MAC)
		w.must(err)
		w.enis[l.MAC] = name
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = name, hw
		w.cables++
		peer := fmt.Sprint("cable", w.cables)
		w.must(netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: netlink.NsFd(int(w.router.Fd()))}))
	}
}

func (w *world) plugPrimary(mac string, address netip.Prefix, gateway netip.Addr) {
	if w.enis[mac] != "" { // what a machine configures at boot
		return
	}
	before := w.names()
	w.fake.PlugPrimary(mac, address, gateway)
	w.note("plug primary %s", mac)
	w.cable(before)
	for name, l := range w.names() {
		if _, known := before[name]; known || l.MAC != mac {
			continue
		}
		dev, err := netlink.LinkByName(name)
		w.must(err)
		addr, err := netlink.ParseAddr(address.String())
		w.must(err)
		w.must(netlink.AddrAdd(dev, addr))
		w.must(netlink.LinkSetUp(dev))
		w.must(netlink.RouteReplace(&netlink.Route{LinkIndex: dev.Attrs().Index, Gw: gateway.AsSlice(), Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}}))
	}
}

func (w *world) unplug(mac string) {
	before := w.names()
	w.fake.Unplug(mac)
	delete(w.enis, mac)
	after := w.names()
	for name := range before {
		if _, left := after[name]; !left {
			w.note("unplug %s", name)
			w.stranger(name, netlink.LinkDel)
		}
	}
}

// stranger does something to a link by its name, if there is one.
func (w *world) stranger(name string, do func(netlink.Link) error) {
	if dev, err := netlink.LinkByName(name); err == nil {
		w.must(do(dev))
	}
}

func (w *world) setMAC(name, mac string) {
	w.note("set MAC of %s to %s", name, mac)
	hw, err := net.ParseMAC(mac)
	w.must(err)
	w.fake.SetLinkMAC(name, mac)
	w.stranger(name, func(l netlink.Link) error { return netlink.LinkSetHardwareAddr(l, hw) })
}

func (w *world) setAlias(name, alias string) {
	for _, l := range w.names() {
		if alias != "" && l.Alias == alias {
			return
		}
	}
	w.note("set alias of %s to %q", name, alias)
	w.fake.SetLinkAlias(name, alias)
	w.stranger(name, func(l netlink.Link) error { return netlink.LinkSetAlias(l, alias) })
}

func (w *world) linkDown(name string) {
	w.note("%s down", name)
	w.fake.LinkDown(name)
	w.stranger(name, netlink.LinkSetDown)
}

func (w *world) loseProxy(name string) {
	w.note("%s loses its proxy neighbours", name)
	w.fake.LoseProxy(name)
	w.stranger(name, func(l netlink.Link) error {
		list, err := netlink.NeighProxyList(l.Attrs().Index, unix.AF_INET)
		for i := range list {
			if err == nil {
				err = netlink.NeighDel(&list[i])
			}
		}
		return err
	})
}

func (w *world) flushRules(keep int) {
	w.note("flush rules but %d", keep)
	w.fake.FlushRules(keep)
	list, err := netlink.RuleList(unix.AF_INET)
	w.must(err)
	for i := range list {
		if list[i].Protocol != unix.RTPROT_KERNEL && list[i].Priority != keep {
			list[i].Family = unix.AF_INET
			w.must(netlink.RuleDel(&list[i]))
		}
	}
}

func (w *world) removeRoutes(table int) {
	w.note("flush table %d", table)
	w.fake.RemoveRoutes(table)
	list, err := netlink.RouteListFiltered(unix.AF_INET, &netlink.Route{Table: table}, netlink.RT_FILTER_TABLE)
	w.must(err)
	for i := range list {
		w.must(netlink.RouteDel(&list[i]))
	}
}

func (w *world) flushNAT() {
	w.note("flush ruleset")
	w.fake.FlushNAT()
	c := &nftables.Conn{}
	c.FlushRuleset()
	w.must(c.Flush())
}

func (w *world) foreignRule(r dataplane.Rule) {
	w.note("foreign rule %+v", r)
	w.fake.AddForeignRule(r)
	rule := netlink.NewRule()
	rule.Priority, rule.Table, rule.Family = r.Priority, r.Table, unix.AF_INET
	rule.Src = &net.IPNet{IP: r.From.Addr().AsSlice(), Mask: net.CIDRMask(r.From.Bits(), 32)}
	if err := netlink.RuleAdd(rule); err != nil && err != unix.EEXIST {
		w.must(err)
	}
}
