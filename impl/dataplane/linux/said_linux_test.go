package linux

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// What a kernel says here is written by the test, so these need neither root nor a namespace, but for the last one.

// TestProxyMessages: of the table of neighbours only an IPv4 proxy entry with its address is one.
func TestProxyMessages(t *testing.T) {
	addr := dataplane.Gateway()
	body := func(family, flags byte, address ...byte) []byte {
		var r rtnl.Request
		r.Neighbour(unix.RTM_NEWNEIGH, 0, 7, unix.NUD_PERMANENT, flags)
		r.Bytes(unix.NDA_LLADDR, []byte{2, 0, 0, 0, 0, 1})
		r.Bytes(unix.NDA_DST, address)
		b := r.B[unix.NLMSG_HDRLEN:]
		b[0] = family
		return b
	}
	proxy := body(unix.AF_INET, unix.NTF_PROXY, addr.AsSlice()...)
	if index, have, ok := parseProxy(proxy); !ok || index != 7 || have != addr {
		t.Errorf("a proxy entry is read as %v on link %d, %v", have, index, ok)
	}
	for name, b := range map[string][]byte{
		"an entry of IPv6":             body(unix.AF_INET6, unix.NTF_PROXY, addr.AsSlice()...),
		"a neighbour":                  body(unix.AF_INET, 0, addr.AsSlice()...),
		"a router":                     body(unix.AF_INET, unix.NTF_ROUTER, addr.AsSlice()...),
		"a neighbour of IPv6":          body(unix.AF_INET6, 0, addr.AsSlice()...),
		"an entry of half an address":  body(unix.AF_INET, unix.NTF_PROXY, 169, 254),
		"an entry that is cut short":   proxy[:unix.SizeofNdMsg-1],
		"an entry without its address": proxy[:unix.SizeofNdMsg],
	} {
		if _, have, ok := parseProxy(b); ok {
			t.Errorf("%s is read as proxy of %v", name, have)
		}
	}
}

// seesLinks is an observer whose kernel gives these lists, one for each dump.
func seesLinks(t *testing.T, lists ...[]byte) *observer {
	return &observer{s: answering(t, func([]byte) [][]byte {
		if len(lists) == 0 {
			return [][]byte{datagram(verdict(unix.EIO))}
		}
		list := lists[0]
		lists = lists[1:]
		return [][]byte{list}
	})}
}

// link is an RTM_NEWLINK; netnsid -1 is not said.
func link(index int, name, kind string, netnsid int) func(*rtnl.Request) {
	return func(r *rtnl.Request) {
		r.Link(unix.RTM_NEWLINK, 0, index, 0, 0)
		r.Text(unix.IFLA_IFNAME, name)
		if netnsid >= 0 {
			r.U32(unix.IFLA_LINK_NETNSID, uint32(netnsid))
		}
		info := r.Nest(unix.IFLA_LINKINFO)
		r.Text(unix.IFLA_INFO_KIND, kind)
		r.End(info)
	}
}

// TestWhatLivesBehindALink: a namespace that pods may be in is only behind a veth, and only while the kernel has a
// number for it. A link that is listed twice, since it changed meanwhile, is one.
func TestWhatLivesBehindALink(t *testing.T) {
	o := seesLinks(t, datagram(link(5, "pod", "veth", 0), link(6, "ended", "veth", -1), link(7, "vlan", "vlan", 3),
		link(8, "bridge", "bridge", -1), link(5, "pod", "veth", 0), listed))
	var out dataplane.Observation
	must.Do(t, o.links(&out))
	var have []string
	for _, l := range out.Links {
		have = append(have, fmt.Sprintf("%d %s %v %v", l.Index, l.Name, l.Veth, l.PeerLive))
	}
	want := []string{"5 pod true true", "6 ended true false", "7 vlan false false", "8 bridge false false"}
	if !slices.Equal(have, want) || len(o.extra) != len(want) {
		t.Errorf("observed %q, expected %q; beside them %+v", have, want, o.extra)
	}
}

// TestTextsOfLinksThatAreGone are forgotten, and those of the others are what they are now.
func TestTextsOfLinksThatAreGone(t *testing.T) {
	o := seesLinks(t, datagram(link(5, "pod", "veth", 0), link(6, "other", "veth", 1), listed),
		datagram(link(6, "renamed", "veth", 1), listed), datagram(link(6, "renamed", "veth", 1), listed))
	for _, want := range []string{"pod", "renamed", "renamed"} {
		var out dataplane.Observation
		must.Do(t, o.links(&out))
		if out.Links[0].Name != want || len(o.texts) != len(out.Links) {
			t.Errorf("observed %+v, with the texts of %d links; the first is %s", out.Links, len(o.texts), want)
		}
	}
}

// TestAddressesOfLinks: one that is of no observed link is nobody's, what has no address is none, and a list that is
// read again is not added to the first.
func TestAddressesOfLinks(t *testing.T) {
	address := func(index int, four ...byte) func(*rtnl.Request) {
		return func(r *rtnl.Request) {
			r.Address(unix.RTM_NEWADDR, 0, 24, index)
			if len(four) > 0 {
				r.Bytes(unix.IFA_LOCAL, four)
			}
		}
	}
	addresses := datagram(address(5, 10, 0, 0, 1), address(5), address(9, 10, 0, 0, 2), listed)
	proxies := datagram(neighbour(5, 1), neighbour(9, 2), neighbour(5, 3), listed)
	o := seesLinks(t, datagram(link(5, "eth0", "veth", -1), listed), addresses, addresses, proxies, proxies)
	var out dataplane.Observation
	must.Do(t, o.links(&out))
	for range 2 {
		must.Do(t, o.addresses(&out))
	}
	if have := out.Links[0].Addresses; !slices.Equal(have, []netip.Prefix{netip.MustParsePrefix("10.0.0.1/24")}) {
		t.Errorf("the addresses are %v", have)
	}
	for range 2 {
		must.Do(t, o.proxies(&out))
	}
	want := []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 1, 1}), netip.AddrFrom4([4]byte{169, 254, 1, 3})}
	if have := out.Links[0].Proxy; !slices.Equal(have, want) {
		t.Errorf("the proxies are %v, expected %v", have, want)
	}
}

// neighbour is the proxy entry of 169.254.1.last.
func neighbour(index int, last byte) func(*rtnl.Request) {
	return func(r *rtnl.Request) {
		r.Neighbour(unix.RTM_NEWNEIGH, 0, index, unix.NUD_PERMANENT, unix.NTF_PROXY)
		r.Bytes(unix.NDA_DST, []byte{169, 254, 1, last})
	}
}

// TestWhatARenamedLinkKeeps: its own routes and proxies, also where a list changed while it was read. The routes
// that need no other come first; those that the kernel makes by itself are left to it.
func TestWhatARenamedLinkKeeps(t *testing.T) {
	route := func(index int, protocol byte, third byte, via ...byte) func(*rtnl.Request) {
		return func(r *rtnl.Request) {
			r.Route(unix.RTM_NEWROUTE, 0, 24, protocol, unix.RT_SCOPE_LINK, unix.RTN_UNICAST)
			r.Bytes(unix.RTA_DST, []byte{10, 0, third, 0})
			r.U32(unix.RTA_OIF, uint32(index))
			if len(via) > 0 {
				r.Bytes(unix.RTA_GATEWAY, via)
			}
		}
	}
	changed := func(r *rtnl.Request) {
		r.Message(unix.NLMSG_DONE, unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR)
		r.Raw(0, 0, 0, 0)
	}
	list := func(end func(*rtnl.Request)) []byte {
		return datagram(route(5, unix.RTPROT_STATIC, 1, 10, 0, 2, 9), route(5, unix.RTPROT_STATIC, 2),
			route(6, unix.RTPROT_STATIC, 3), route(5, unix.RTPROT_KERNEL, 4), route(5, unix.RTPROT_STATIC, 5), end)
	}
	proxies := func(end func(*rtnl.Request)) []byte {
		return datagram(neighbour(5, 1), neighbour(6, 2), neighbour(5, 3), end)
	}
	a := &applier{s: seesLinks(t, list(changed), list(listed), proxies(changed), proxies(listed)).s, r: &rtnl.Request{}}
	lost := must.Get(a.keepsakes(5))(t)
	var routes []string
	for _, body := range lost.routes {
		var v routeView
		v.parse(body)
		routes = append(routes, v.dst.String())
	}
	if want := []string{"10.0.2.0", "10.0.5.0", "10.0.1.0"}; !slices.Equal(routes, want) {
		t.Errorf("the routes are to %q, expected %q", routes, want)
	}
	want := []netip.Addr{netip.AddrFrom4([4]byte{169, 254, 1, 1}), netip.AddrFrom4([4]byte{169, 254, 1, 3})}
	if !slices.Equal(lost.proxies, want) {
		t.Errorf("the proxies are %v, expected %v", lost.proxies, want)
	}
}

// TestFlushAsksForNoMoreThanItNeeds: nothing where there are no flows, the kernel's own walk for few addresses, a
// list that the kernel filters where few of many flows are meant, and else all of them once.
func TestFlushAsksForNoMoreThanItNeeds(t *testing.T) {
	const all = 1 << 20
	a := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3"),
		netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.5")}
	each := func(what string, addrs []netip.Addr) (want []string) {
		for _, addr := range addrs {
			want = append(want, what+" from "+addr.String(), what+" to "+addr.String())
		}
		return want
	}
	for name, c := range map[string]struct {
		addrs   []netip.Addr
		flows   uint32
		filters bool // as far as we know
		refused string
		errno   unix.Errno
		want    []string // behind the count
		still   bool     // filters
		fails   bool
	}{
		"no flows":             {addrs: a, filters: true, still: true},
		"walks":                {addrs: a[:4], flows: all, filters: true, want: each("delete", a[:4]), still: true},
		"too many for walks":   {addrs: a, flows: all, filters: true, want: []string{"list", "delete one"}, still: true},
		"no walks, many flows": {addrs: a[:1], flows: fewFlows + 1, want: each("list", a[:1])},
		"no walks, few flows":  {addrs: a[:1], flows: fewFlows, want: []string{"list", "delete one"}},
		"no walks, more flows": {addrs: a[:4], flows: 4*fewFlows + 1, want: each("list", a[:4])},
		"no walks, some flows": {addrs: a[:4], flows: 4 * fewFlows, want: []string{"list", "delete one"}},
		"too many for filters": {addrs: a, flows: all, want: []string{"list", "delete one"}},
		"an older kernel": {addrs: a[:2], flows: all, filters: true, refused: "delete from 10.0.0.1",
			errno: unix.EOPNOTSUPP, want: append([]string{"delete from 10.0.0.1"}, each("list", a[:2])...)},
		"another older kernel": {addrs: a[:1], flows: 9, filters: true, refused: "delete from 10.0.0.1",
			errno: unix.EINVAL, want: []string{"delete from 10.0.0.1", "list", "delete one"}},
		"a walk that is refused": {addrs: a[:2], flows: all, filters: true, refused: "delete to 10.0.0.1",
			errno: unix.EPERM, want: each("delete", a[:1]), still: true, fails: true},
		"a list that is refused": {addrs: a[:2], flows: all, refused: "list to 10.0.0.1", errno: unix.EPERM,
			want: each("list", a[:1]), fails: true},
		"the list is refused": {addrs: a, flows: all, refused: "list", errno: unix.EPERM, want: []string{"list"},
			fails: true},
		"one that has ended": {addrs: a, flows: all, refused: "delete one", errno: unix.ENOENT,
			want: []string{"list", "delete one"}},
		"one that stays": {addrs: a, flows: all, refused: "delete one", errno: unix.EPERM,
			want: []string{"list", "delete one"}, fails: true},
		"the count is refused": {addrs: a, flows: all, refused: "count", errno: unix.EPERM, fails: true},
	} {
		asked := make(chan string, 100)
		k := &Kernel{filters: c.filters}
		k.flows = answering(t, func(message []byte) [][]byte {
			what := flowRequest(message)
			asked <- what
			switch {
			case what == c.refused:
				return [][]byte{datagram(verdict(c.errno))}
			case what == "count":
				return [][]byte{datagram(func(r *rtnl.Request) {
					r.Netfilter(conntrackStats, 0, unix.AF_UNSPEC, 0)
					r.BE32(ctaStatsEntries, c.flows)
				})}
			case what == "list":
				return [][]byte{datagram(flow("192.0.2.1", "192.0.2.2"), flow("10.0.0.1", "192.0.2.2"), listed)}
			case kindOfMessage(message) == conntrackGet:
				return [][]byte{datagram(listed)}
			}
			return [][]byte{datagram(verdict(0))}
		})
		err := k.flushConntrack(c.addrs)
		var have []string
		for len(asked) > 0 {
			have = append(have, <-asked)
		}
		if want := append([]string{"count"}, c.want...); !slices.Equal(have, want) {
			t.Errorf("%s: asked for %q, expected %q", name, have, want)
		}
		if (err != nil) != c.fails || k.filters != c.still {
			t.Errorf("%s: %v, expected an error %v; and it filters %v, expected %v", name, err, c.fails, k.filters, c.still)
		}
	}
	six := append(a[:1:1], netip.MustParseAddr("fd00::1"))
	if err := (&Kernel{}).flushConntrack(six); kindOf(err) != dataplane.Invalid {
		t.Errorf("IPv6: %v", err)
	}
}

// flow is a flow from one address to another, without NAT.
func flow(from, to string) func(*rtnl.Request) {
	return func(r *rtnl.Request) {
		r.Netfilter(conntrackGet, 0, unix.AF_INET, 0)
		for side, source := range []string{from, to} {
			tuple := r.Nest(ctaTupleOriginal + uint16(side))
			ip := r.Nest(ctaTupleIP)
			r.IP(ctaIPv4Src, netip.MustParseAddr(source))
			r.End(ip)
			r.End(tuple)
		}
		r.BE32(ctaID, 7)
	}
}

// flowRequest is what a request to conntrack says: one that has a filter names one side of the flows.
func flowRequest(message []byte) string {
	kinds := map[uint16]string{conntrackStats: "count", conntrackGet: "list", conntrackDelete: "delete"}
	what := kinds[kindOfMessage(message)]
	attributes := message[unix.NLMSG_HDRLEN+nfgenHeader:]
	for c := rtnl.Attributes(attributes); c.Next(); {
		switch c.Kind {
		case ctaID:
			return what + " one"
		case ctaFilter:
			if from := source(attributes, ctaTupleOriginal); from.IsValid() {
				return what + " from " + from.String()
			}
			return what + " to " + source(attributes, ctaTupleReply).String()
		}
	}
	return what
}

// TestWatcherOfOneLink: what of a link's changes is ours or by itself, and what leaves it in doubt.
func TestWatcherOfOneLink(t *testing.T) {
	const ours, theirs = true, false
	type told struct {
		by   bool
		link rtnl.Link
	}
	a := rtnl.Link{Index: 7, Name: []byte("ab"), MTU: 1500, NetNSID: -1}
	change := func(f func(*rtnl.Link)) rtnl.Link {
		l := a
		f(&l)
		return l
	}
	alias := func(alias string) rtnl.Link { return change(func(l *rtnl.Link) { l.Alias = []byte(alias) }) }
	larger := change(func(l *rtnl.Link) { l.MTU = 9001 })
	running := change(func(l *rtnl.Link) { l.Flags = unix.IFF_RUNNING })
	for name, c := range map[string]struct {
		told  []told
		doubt bool
	}{
		"a stranger's":                         {[]told{{theirs, a}}, true},
		"ours":                                 {[]told{{ours, a}}, false},
		"ours, again":                          {[]told{{ours, a}, {theirs, a}}, false},
		"ours, with its alias":                 {[]told{{ours, a}, {theirs, alias("c")}}, false},
		"ours, with its alias, twice":          {[]told{{ours, a}, {theirs, alias("c")}, {theirs, alias("c")}}, false},
		"ours, and another alias":              {[]told{{ours, a}, {theirs, alias("c")}, {theirs, alias("d")}}, true},
		"ours, changed before it has an alias": {[]told{{ours, a}, {theirs, larger}}, true},
		"ours, changed by us":                  {[]told{{ours, a}, {ours, larger}, {theirs, alias("c")}}, true},
		"carrier":                              {[]told{{ours, a}, {theirs, running}}, false},

		"name":      {[]told{{ours, a}, {theirs, change(func(l *rtnl.Link) { l.Name = []byte("abc") })}}, true},
		"MAC":       {[]told{{ours, a}, {theirs, change(func(l *rtnl.Link) { l.MAC = []byte{2, 0, 0, 0, 0, 1} })}}, true},
		"up":        {[]told{{ours, a}, {theirs, change(func(l *rtnl.Link) { l.Flags = unix.IFF_UP })}}, true},
		"filter":    {[]told{{ours, a}, {theirs, change(func(l *rtnl.Link) { l.RPFilter = 2 })}}, true},
		"namespace": {[]told{{ours, a}, {theirs, change(func(l *rtnl.Link) { l.NetNSID = 3 })}}, true},
	} {
		w := newWatcher(&Kernel{})
		for i, l := range c.told {
			if i == len(c.told)-1 {
				clear(w.doubt)
			}
			w.changed(&l.link, l.by)
		}
		if w.doubt[7] != c.doubt {
			t.Errorf("%s: in doubt %v, expected %v", name, w.doubt[7], c.doubt)
		}
	}
	w := newWatcher(&Kernel{})
	one, other := a, a
	one.Name, one.Alias, other.Name, other.Alias = []byte("ab"), []byte("c"), []byte("a"), []byte("bc")
	if w.look(&one) == w.look(&other) {
		t.Error("a letter goes from the name to the alias, and the link looks the same")
	}
	one, other = a, a
	one.Alias, one.MAC, other.Alias, other.MAC = []byte("cd"), []byte("e"), []byte("c"), []byte("de")
	if w.look(&one) == w.look(&other) {
		t.Error("a byte goes from the alias to the MAC, and the link looks the same")
	}
}

// TestWatcherThatMissedSomething: it is a third party's until it is known better, and no link's look is known any
// more.
func TestWatcherThatMissedSomething(t *testing.T) {
	const port = 77
	deleted := func(index int, by uint32) []byte {
		b := datagram(func(r *rtnl.Request) { r.Link(unix.RTM_DELLINK, 0, index, 0, 0) })
		rtnl.Native.PutUint32(b[12:], by)
		return b
	}
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	tell := func(b []byte) { must.Get(unix.Write(fds[1], b))(t) }
	// Room for the second and no more: the first is lost, and its reader has room for more from then on.
	k := &Kernel{ports: map[uint32]bool{port: true}, monitor: rtnl.Adopt(fds[0], unix.NLMSG_HDRLEN)}
	w := newWatcher(k)
	know := func() {
		for index := range 2 {
			w.links[index], w.fresh[index] = 1, true
		}
		w.doubt[0] = true
	}
	know()
	if foreign, err := w.drain(); foreign || err != nil || len(w.links) != 2 {
		t.Errorf("nothing came: %v, %v", foreign, err)
	}
	tell(deleted(0, port))
	if foreign, err := w.drain(); !foreign || err != nil || len(w.links)+len(w.fresh) > 0 {
		t.Errorf("what we did is lost: a stranger's act %v, %v; known are %v, fresh %v", foreign, err, w.links, w.fresh)
	}
	know()
	tell(deleted(0, port))
	if foreign, err := w.drain(); foreign || err != nil || len(w.links) != 1 || len(w.fresh) != 1 || len(w.doubt) != 0 {
		t.Errorf("what we did: a stranger's act %v, %v; known are %v, in doubt %v", foreign, err, w.links, w.doubt)
	}
	know()
	tell(deleted(0, port+1))
	tell(deleted(1, port))
	if foreign, err := w.drain(); !foreign || err != nil || len(w.links)+len(w.fresh) != 0 || !w.doubt[0] {
		t.Errorf("what a stranger did, and then we: a stranger's act %v, %v; known are %v, in doubt %v", foreign, err,
			w.links, w.doubt)
	}
	w.k.monitor = rtnl.Adopt(-1, podBuffer)
	if _, err := w.drain(); err == nil {
		t.Error("a queue that cannot be read is empty")
	}
}

// TestRosterThatCannotAsk: a link that is down is asked for each time, and what the kernel does not say is no
// answer.
func TestRosterThatCannotAsk(t *testing.T) {
	deaf := func() *rtnl.Socket { return rtnl.Adopt(-1, podBuffer) }
	better := func(*device, *device) bool { return true }
	o := roster{told: told{queue: deaf(), ask: deaf()}}
	if d, err := o.alias("alias"); err == nil {
		t.Errorf("no list: the alias is that of %+v", d)
	}
	if d, err := o.best(better); err == nil {
		t.Errorf("no list: the best is %+v", d)
	}
	o = roster{told: told{queue: scripted(t), ask: deaf(), filled: true}, links: map[int]*device{},
		byName: map[string]int{}, byAlias: map[string][]*device{}, down: map[int]bool{}}
	o.put(device{index: 7, name: "eth0", alias: "alias", up: true})
	if d, err := o.alias("alias"); err != nil || d.index != 7 {
		t.Errorf("a link that is up: %+v, %v", d, err)
	}
	o.put(device{index: 7, name: "eth0", alias: "alias"})
	if d, err := o.alias("alias"); err == nil {
		t.Errorf("a link that is down, and cannot be asked for: %+v", d)
	}
	if d, err := o.best(better); err == nil {
		t.Errorf("a link that is down, and cannot be asked for, is the best: %+v", d)
	}
}

// TestThePlanAndTheObservationMeanTheSameENI, whatever else has its MAC: one on which nothing stands, and of those
// the oldest.
func TestThePlanAndTheObservationMeanTheSameENI(t *testing.T) {
	for _, names := range [][]string{{"eth0", "eth1"}, {"eth0", "bridge"}, {"bridge", "eth0", "eth1"},
		{"bridge", "bridge2"}, {"bridge", "bridge2", "eth0"}} {
		t.Run(fmt.Sprint(names), func(t *testing.T) {
			k := openNew(t, Options{})
			router := newSpace(t)
			hw, _ := parseMAC(primaryMAC)
			for _, name := range names {
				if name[0] == 'e' {
					plug(t, router, name, primaryMAC, "to-"+name)
					continue
				}
				attrs := netlink.NewLinkAttrs()
				attrs.Name, attrs.HardwareAddr = name, hw[:]
				must.Do(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
			}
			want := names[max(0, slices.IndexFunc(names, func(name string) bool { return name[0] == 'e' }))]
			p := natOp(true, true)
			p.Ops = append(p.Ops, dataplane.Op{Kind: dataplane.ENIUp, MAC: primaryMAC})
			apply(t, k, p, nil)
			o := observe(t, k)
			for _, l := range o.Links {
				if l.Up != (l.Name == want) {
					t.Errorf("%s is up: %v; expected %s", l.Name, l.Up, want)
				}
			}
			if o.NAT != p.Ops[0].NAT() {
				t.Errorf("observed %+v\nexpected %+v", o.NAT, p.Ops[0].NAT())
			}
		})
	}
}
