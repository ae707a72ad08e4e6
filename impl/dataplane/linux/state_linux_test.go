package linux

import (
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// TestOpenWithoutDescriptors: whichever socket is one too many, Open says so and leaves none behind.
func TestOpenWithoutDescriptors(t *testing.T) {
	enterNew(t)
	descriptors := func() (n int) {
		list := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(list)
	}
	var was unix.Rlimit
	must.Do(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &was))
	t.Cleanup(func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &was) })
	before, refused := descriptors(), 0
	for limit := uint64(before); ; limit++ {
		must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: was.Max}))
		k, err := Open(Options{})
		must.Do(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &was))
		if err == nil {
			must.Do(t, k.Close())
		} else if refused++; !errors.Is(err, unix.EMFILE) {
			t.Errorf("with %d descriptors: %v", limit, err)
		}
		if after := descriptors(); after != before {
			t.Fatalf("with %d descriptors (%v), %d stay open of %d", limit, err, after-before, limit)
		}
		if err == nil {
			break
		}
	}
	if refused < lanes+deletions {
		t.Errorf("Open failed %d times only", refused)
	}
}

// TestWhatCannotBeReadIsSaid: an observation that lacks a list is not complete, says which list, and has the others.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, natOp(true, true), nil)
	deaf := rtnl.Adopt(-1, podBuffer)
	for _, c := range []struct {
		what  string
		where **rtnl.Socket
	}{{"links", &k.seen.s}, {"nftables", &k.seen.nft}} {
		was := *c.where
		*c.where = deaf
		o, err := k.Observe()
		*c.where = was
		if err == nil || o.Complete || !strings.Contains(err.Error(), c.what) {
			t.Errorf("%s cannot be read: complete %v, %v", c.what, o.Complete, err)
		}
		if c.what == "nftables" && (o.NAT.Present || len(o.Links) != 1) {
			t.Errorf("%+v, %+v", o.NAT, o.Links)
		}
		if o = observe(t, k); !o.Complete || !o.NAT.Present || len(o.Links) != 1 {
			t.Errorf("and once it can: %+v", o)
		}
	}
	was := k.tables
	k.tables = deaf
	_, err := k.Apply(acceptOp("eni"), nil)
	_, nat := k.Apply(natOp(true, true), nil)
	k.tables = was
	if err == nil || nat == nil {
		t.Errorf("nothing can be written: %v, %v", err, nat)
	}
}

// TestAPlanSaysHowFarItGot: the operations before the one that fails are done, those behind it are not, and the error
// names it.
func TestAPlanSaysHowFarItGot(t *testing.T) {
	k := openNew(t, Options{})
	rule := dataplane.Op{Kind: dataplane.EnsureRule, Priority: dataplane.PriorityFromPod, Table: 7,
		Addr: netip.MustParseAddr("10.0.10.21")}
	flush := dataplane.Op{Kind: dataplane.FlushConntrack, Addr: rule.Addr}
	nobody := dataplane.Op{Kind: dataplane.LinkUp, Alias: spec(1, 1).Alias}
	behind := rule
	behind.Addr = rule.Addr.Next()
	done, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{flush, rule, nobody, behind}}, nil)
	if done != 2 || err == nil || err.Op != 2 || err.Kind != dataplane.NoLink {
		t.Errorf("done %d, %+v; expected that the third fails", done, err)
	}
	if o := observe(t, k); len(o.Rules) != 1 || o.Rules[0].From.Addr() != rule.Addr {
		t.Errorf("the rules are %+v", o.Rules)
	}
	if done, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{flush, flush}}, nil); done != 2 || err != nil {
		t.Errorf("flushes alone: done %d, %v", done, err)
	}
	if done, err := k.Apply(dataplane.Plan{}, nil); done != 0 || err != nil {
		t.Errorf("nothing: done %d, %v", done, err)
	}
}

// TestThePodsEndOfAnEarlierPlan: a plan that has not made the pair finds its other end by the pod's namespace, and
// writes there and nowhere else.
func TestThePodsEndOfAnEarlierPlan(t *testing.T) {
	k := openNew(t, Options{})
	first, second := newSpace(t), newSpace(t)
	w, other := spec(1, first.inode), spec(2, second.inode)
	other.IfName = "net1"
	apply(t, k, dataplane.PodPlan(w), first.pod(t))
	apply(t, k, dataplane.PodPlan(other), second.pod(t))
	extra := netip.MustParseAddr("10.0.10.99")
	add := dataplane.Op{Kind: dataplane.PodAddress, Alias: other.Alias, Netns: second.inode, Addr: extra}
	apply(t, k, one(add), second.pod(t))
	apply(t, k, one(add), second.pod(t)) // it is there
	add.Netns = first.inode              // of the other link
	if done, err := k.Apply(one(add), first.pod(t)); done != 0 || err == nil || err.Kind != dataplane.NoNamespace {
		t.Errorf("another pod's link: done %d, %v", done, err)
	}
	o := observe(t, k)
	for _, l := range o.Links {
		want := []netip.Addr{w.Address}
		if l.Alias == other.Alias {
			want = []netip.Addr{other.Address, extra}
		}
		if slices.SortFunc(l.PeerAddresses, netip.Addr.Compare); !slices.Equal(l.PeerAddresses, want) {
			t.Errorf("behind %s are %v, expected %v", l.Name, l.PeerAddresses, want)
		}
	}
}

// TestMACTwiceInAPlan: the second one is compared with what the first one wrote.
func TestMACTwiceInAPlan(t *testing.T) {
	k, w := withPod(t)
	own := dataplane.VethMAC(w.Alias)
	set := func(mac string) dataplane.Op { return dataplane.Op{Kind: dataplane.SetMAC, Alias: w.Alias, MAC: mac} }
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{set(primaryMAC), set(own)}}, nil)
	if l := observe(t, k).Links[0]; l.MAC != own {
		t.Errorf("the MAC is %s, expected %s", l.MAC, own)
	}
	apply(t, k, one(set(strings.ToUpper(secondaryMAC))), nil)
	if l := observe(t, k).Links[0]; l.MAC != secondaryMAC {
		t.Errorf("the MAC is %s, expected %s", l.MAC, secondaryMAC)
	}
}

// TestTheOnlyAddressOfAnENI: whatever a link has, also what a crash halfway left, it has the wanted address
// afterwards and no other.
func TestTheOnlyAddressOfAnENI(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth1", secondaryMAC, "r1")
	l := must.Get(netlink.LinkByName("eth1"))(t)
	addr := netip.MustParseAddr("10.0.20.10")
	for _, have := range [][]string{{}, {"10.0.20.10/32"}, {"10.0.20.9/24", "10.0.20.10/32"}, {"10.0.20.10/24", "10.0.20.9/24"},
		{"10.0.20.9/24", "10.0.20.8/24", "192.0.2.1/32"}, {"10.0.20.10/16"}} {
		for _, dst := range []string{"10.0.20.0/24", "10.0.20.10/32"} {
			list := must.Get(netlink.AddrList(l, unix.AF_INET))(t)
			for i := range list {
				_ = netlink.AddrDel(l, &list[i]) // one may have gone with another
			}
			for _, a := range have {
				must.Do(t, addAddress("eth1", a))
			}
			subnet := netip.MustParsePrefix(dst)
			apply(t, k, one(dataplane.Op{Kind: dataplane.ENIAddress, MAC: secondaryMAC, Addr: addr, Dst: subnet}), nil)
			want, left := netip.PrefixFrom(addr, subnet.Bits()), observe(t, k).Links[0].Addresses
			if !slices.Equal(left, []netip.Prefix{want}) {
				t.Errorf("with %v and %s: %v, expected %v alone", have, dst, left, want)
			}
		}
	}
}

// TestProxiesOfOneLink: all of them are observed.
func TestProxiesOfOneLink(t *testing.T) {
	k, w := withPod(t)
	want := []netip.Addr{dataplane.Gateway(), netip.MustParseAddr("169.254.1.2"), netip.MustParseAddr("169.254.1.3")}
	for _, a := range want {
		apply(t, k, one(dataplane.Op{Kind: dataplane.ProxyNeighbour, Alias: w.Alias, Addr: a}), nil)
	}
	have := observe(t, k).Links[0].Proxy
	if slices.SortFunc(have, netip.Addr.Compare); !slices.Equal(have, want) {
		t.Errorf("observed %v, expected %v", have, want)
	}
}

// TestShortMessages: of what a kernel cut short nothing is made up.
func TestShortMessages(t *testing.T) {
	var r rtnl.Request
	r.Message(unix.RTM_NEWROUTE, 0)
	via := netip.MustParseAddr("10.0.20.1")
	ensureRoute(&r, &dataplane.Op{Dst: netip.MustParsePrefix("10.0.10.0/24"), Via: via}, 7, 9)
	body := r.Last()[unix.NLMSG_HDRLEN:]
	var v routeView
	if !v.parse(body) || v.index != 7 || v.table != 9 || v.bits != 24 || v.via != via || !v.observed() {
		t.Errorf("read as %+v", v)
	}
	for n := range unix.SizeofRtMsg {
		if v.parse(body[:n]) {
			t.Errorf("%d bytes are a route: %+v", n, v)
		}
	}
	hop := rtnl.Native.AppendUint32([]byte{16, 0, 0, 0}, 5)
	hop = append(hop, 8, 0, unix.RTA_GATEWAY, 0, 10, 0, 0, 1)
	next := rtnl.Native.AppendUint32([]byte{16, 0, 0, 0}, 6)
	next = append(next, 8, 0, unix.RTA_GATEWAY, 0, 10, 0, 0, 2)
	for n := range len(hop) + 1 {
		v = routeView{}
		v.firstHop(hop[:n])
		if (v.index == 5) != (n >= unix.SizeofRtNexthop) || v.via.IsValid() != (n == len(hop)) {
			t.Errorf("%d bytes of a hop are read as %+v", n, v)
		}
	}
	v = routeView{}
	if v.firstHop(append(hop, next...)); v.index != 5 || v.via != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("the first of two hops is read as %+v", v)
	}
	if a := otherFamily([]byte{unix.AF_INET6}); a.IsValid() {
		t.Errorf("a gateway is read: %v", a)
	}
	for n := range ruleHeader {
		if (&rule{}).parse(append([]byte{unix.AF_INET}, make([]byte, ruleHeader)...)[:n]) {
			t.Errorf("%d bytes are a rule", n)
		}
	}
}

// TestALoopbackBehindALinkIsNoUse: every pod has one, and all have the same.
func TestALoopbackBehindALinkIsNoUse(t *testing.T) {
	k, s, _, w := withOpenPod(t, Options{})
	s.run(t, func() error {
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo) // which gives it 127.0.0.1
	})
	if have := observe(t, k).Links[0].PeerAddresses; !slices.Equal(have, []netip.Addr{w.Address}) {
		t.Errorf("behind the link are %v, expected %v", have, w.Address)
	}
}
