package linux

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// one is a plan of one operation.
func one(op dataplane.Op) dataplane.Plan { return dataplane.Plan{Ops: []dataplane.Op{op}} }

// refuses expects that an operation fails for that reason.
func refuses(t *testing.T, k *Kernel, what string, op dataplane.Op, pod *Pod, kind dataplane.ErrorKind) {
	t.Helper()
	if done, err := k.Apply(one(op), pod); done != 0 || err == nil || err.Kind != kind {
		t.Errorf("%s: done %d, %v; expected %q", what, done, err, kind)
	}
}

// linkTo is a prefix's route that leads to a link.
func linkTo(l netlink.Link, prefix string) *netlink.Route {
	p := netip.MustParsePrefix(prefix)
	dst := &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), 32)}
	return &netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst}
}

// TestOthersRules: a rule that has our priority and address, and a selector or an action that we never use, is not
// reported as one of ours, and survives the removal of ours beside it.
func TestOthersRules(t *testing.T) {
	k := openNew(t, Options{})
	w := spec(1, 1)
	src := &net.IPNet{IP: w.Address.AsSlice(), Mask: net.CIDRMask(32, 32)}
	mask, few := uint32(0xff), &netlink.RulePortRange{Start: 53, End: 53}
	for name, change := range map[string]func(*netlink.Rule){
		"to an interface":       func(r *netlink.Rule) { r.OifName = "eth9" },
		"of a type of service":  func(r *netlink.Rule) { r.Tos = 0x10 },
		"inverted":              func(r *netlink.Rule) { r.Invert = true },
		"that goes elsewhere":   func(r *netlink.Rule) { r.Goto = dataplane.PriorityFromPod + 1 },
		"of a realm":            func(r *netlink.Rule) { r.Flow = 1 },
		"without default route": func(r *netlink.Rule) { r.SuppressPrefixlen = 0 },
		"without a group":       func(r *netlink.Rule) { r.SuppressIfgroup = 1 },
		"of a protocol":         func(r *netlink.Rule) { r.IPProto = unix.IPPROTO_UDP },
		"from a port":           func(r *netlink.Rule) { r.Sport = few },
		"to a port":             func(r *netlink.Rule) { r.Dport = few },
		"of a user":             func(r *netlink.Rule) { r.UIDRange = netlink.NewRuleUIDRange(1, 2) },
		"of a part of a mark":   func(r *netlink.Rule) { r.Mark, r.Mask = 0x80, &mask },
		"that drops":            func(r *netlink.Rule) { r.Type = unix.FR_ACT_BLACKHOLE },
		"of the kernel's":       func(r *netlink.Rule) { r.Protocol = unix.RTPROT_KERNEL },
	} {
		r := netlink.NewRule()
		r.Priority, r.Table, r.Family, r.Src = dataplane.PriorityFromPod, 7, unix.AF_INET, src
		change(r)
		if err := netlink.RuleAdd(r); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
			t.Logf("a rule %s: this kernel has none: %v", name, err)
			continue
		} else {
			must.Do(t, err)
		}
		if o := observe(t, k); len(o.Rules) != 0 {
			t.Errorf("a rule %s is observed as %+v", name, o.Rules)
		}
		ours := dataplane.Op{Kind: dataplane.EnsureRule, Priority: dataplane.PriorityFromPod, Addr: w.Address, Table: 8}
		apply(t, k, one(ours), nil)
		apply(t, k, dataplane.PodRemoval(w), nil)
		if list, err := netlink.RuleList(unix.AF_INET); err != nil || len(list) != 4 {
			t.Errorf("beside a rule %s, %d rules are left, %v; expected it and the kernel's three", name, len(list), err)
		}
		must.Do(t, netlink.RuleDel(r))
	}
}

// TestRulesOfEveryTable: without a table all go, with one only its own, as stale all but its own.
func TestRulesOfEveryTable(t *testing.T) {
	k := openNew(t, Options{})
	rule := dataplane.Op{Priority: dataplane.PriorityFromPod, Addr: netip.MustParseAddr("10.0.10.21")}
	for _, c := range []struct {
		kind  dataplane.Kind
		table int
		left  []int
	}{
		{dataplane.RemoveRule, 0, nil},
		{dataplane.RemoveRule, 3, []int{2, 300}},
		{dataplane.RemoveStaleRules, 300, []int{300}},
	} {
		for _, rule.Table = range []int{2, 3, 300} {
			rule.Kind = dataplane.EnsureRule
			apply(t, k, one(rule), nil)
		}
		rule.Kind, rule.Table = c.kind, c.table
		apply(t, k, one(rule), nil)
		var left []int
		for _, r := range observe(t, k).Rules {
			left = append(left, r.Table)
		}
		if slices.Sort(left); !slices.Equal(left, c.left) {
			t.Errorf("%v of table %d leaves those of %v, expected %v", c.kind, c.table, left, c.left)
		}
	}
}

// TestOthersRoutes: a route to a pod's address that leads elsewhere is not taken away with the pod's, and what says
// more than our words can is not reported.
func TestOthersRoutes(t *testing.T) {
	k, w := withPod(t)
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	must.Do(t, addAddress("eth0", "10.0.10.2/24"))
	l := must.Get(netlink.LinkByName("eth0"))(t)
	same, service := linkTo(l, "10.0.10.21/32"), linkTo(l, "10.0.10.21/32")
	same.Scope, same.Priority = netlink.SCOPE_LINK, 50
	service.Scope, service.Tos = netlink.SCOPE_LINK, 0x10
	six, hops := linkTo(l, "10.8.0.0/16"), linkTo(l, "10.9.0.0/16")
	six.Via = &netlink.Via{AddrFamily: unix.AF_INET6, Addr: net.ParseIP("fe80::1")}
	hops.MultiPath = []*netlink.NexthopInfo{{LinkIndex: hops.LinkIndex, Gw: net.IPv4(10, 0, 10, 1)},
		{LinkIndex: hops.LinkIndex, Gw: net.IPv4(10, 0, 10, 9)}}
	hops.LinkIndex = 0
	for _, r := range []*netlink.Route{same, service, six, hops} {
		must.Do(t, netlink.RouteAdd(r))
	}
	seen := func() (out []string) {
		for _, r := range observe(t, k).Routes {
			via := ""
			if r.Via.IsValid() {
				via = " by " + r.Via.String()
			}
			out = append(out, r.Dst.String()+via+" to "+r.Link)
		}
		slices.Sort(out)
		return out
	}
	rest := []string{"10.0.10.21/32 to eth0", "10.8.0.0/16 by fe80::1 to eth0", "10.9.0.0/16 by 10.0.10.1 to eth0"}
	own := "10.0.10.21/32 to " + w.HostVeth
	if have := seen(); !slices.Contains(have, own) || len(have) != len(rest)+2 { // and the subnet's, the kernel's own
		t.Errorf("observed: %q", have)
	}
	remove := dataplane.Op{Kind: dataplane.RemoveRoute, Alias: w.Alias, Table: dataplane.MainTable,
		Dst: netip.PrefixFrom(w.Address, 32)}
	apply(t, k, one(remove), nil)
	have := seen()
	for _, r := range rest {
		if !slices.Contains(have, r) {
			t.Errorf("%s is gone, left are %q", r, have)
		}
	}
	if slices.Contains(have, own) {
		t.Errorf("the pod's route is left: %q", have)
	}
}

// TestARouteBehindAnothersComesFirst: it is there, and packets take the other one of the same destination, until an
// operation says that it has to be there.
func TestARouteBehindAnothersComesFirst(t *testing.T) {
	k, w := withPod(t)
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	theirs := must.Get(netlink.LinkByName("eth0"))(t)
	must.Do(t, netlink.LinkSetUp(theirs))
	const prefix = "10.9.0.0/16"
	for _, l := range []netlink.Link{theirs, must.Get(netlink.LinkByName(w.HostVeth))(t)} {
		r := linkTo(l, prefix)
		r.Scope, r.Protocol = netlink.SCOPE_LINK, unix.RTPROT_STATIC
		must.Do(t, netlink.RouteAppend(r))
	}
	first := func() string {
		routes := observe(t, k).Routes
		return routes[slices.IndexFunc(routes, func(r dataplane.Route) bool { return r.Dst.String() == prefix })].Link
	}
	if l := first(); l != "eth0" {
		t.Fatalf("before, the route leads to %s", l)
	}
	apply(t, k, one(dataplane.Op{Kind: dataplane.EnsureRoute, Alias: w.Alias, Table: dataplane.MainTable,
		Dst: netip.MustParsePrefix(prefix)}), nil)
	if l := first(); l != w.HostVeth {
		t.Errorf("the route leads to %s, expected %s", l, w.HostVeth)
	}
}

// TestRouteOfALinkWithoutItsAlias: a third party took the alias off. The route still goes by the link's name, but not
// once the link is another's.
func TestRouteOfALinkWithoutItsAlias(t *testing.T) {
	k, w := withPod(t)
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	remove := one(dataplane.Op{Kind: dataplane.RemoveRoute, Alias: w.Alias, Link: w.HostVeth, Table: dataplane.MainTable,
		Dst: netip.PrefixFrom(w.Address, 32)})
	must.Do(t, netlink.LinkSetAlias(l, "another's"))
	apply(t, k, remove, nil)
	if o := observe(t, k); len(o.Routes) != 1 {
		t.Errorf("the link is another's, and the routes are %+v", o.Routes)
	}
	must.Do(t, netlink.LinkSetAlias(l, ""))
	apply(t, k, remove, nil)
	if o := observe(t, k); len(o.Routes) != 0 {
		t.Errorf("the link is nobody's, and left are %+v", o.Routes)
	}
}

// TestAdoptionOfWhatIsTaken: whose alias a link has keeps it; who has it already may say so again.
func TestAdoptionOfWhatIsTaken(t *testing.T) {
	k, s, p, w := withOpenPod(t, Options{})
	other := spec(2, s.inode)
	adopt := dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: other.Alias, Addr: w.Address}
	refuses(t, k, "another's link", adopt, nil, dataplane.Exists)
	adopt.Alias = w.Alias
	apply(t, k, one(adopt), nil)
	other.IfName = "eth1"
	apply(t, k, dataplane.PodPlan(other), p)
	l := must.Get(netlink.LinkByName(other.HostVeth))(t)
	must.Do(t, netlink.LinkSetAlias(l, ""))
	adopt.Link, adopt.Addr = other.HostVeth, other.Address
	refuses(t, k, "an attachment that has a link gets a second one", adopt, nil, dataplane.Exists)
	if o := observe(t, k); o.Index().LinkByAlias(w.Alias) == nil || o.Index().LinkByAlias(w.Alias).Name != w.HostVeth {
		t.Errorf("the links are %+v", o.Links)
	}
}

// TestOnlyAVethIsAPods: a link of another kind that somebody gave a pod's alias is not brought up, renamed or deleted
// for the pod.
func TestOnlyAVethIsAPods(t *testing.T) {
	k := openNew(t, Options{})
	w := spec(1, 1)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "bridge"
	must.Do(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	l := must.Get(netlink.LinkByName("bridge"))(t)
	adopt := dataplane.Op{Kind: dataplane.AdoptLink, Link: "bridge", Alias: w.Alias, Addr: w.Address}
	refuses(t, k, "a bridge is adopted", adopt, nil, dataplane.NoLink)
	must.Do(t, netlink.LinkSetAlias(l, w.Alias))
	up := dataplane.Op{Kind: dataplane.LinkUp, Alias: w.Alias}
	refuses(t, k, "a bridge is brought up for a pod", up, nil, dataplane.NoLink)
	apply(t, k, one(dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Link: "bridge", Name: "other"}), nil)
	apply(t, k, one(dataplane.Op{Kind: dataplane.DeleteVeth, Alias: w.Alias}), nil)
	if o := observe(t, k); len(o.Links) != 1 || o.Links[0].Name != "bridge" || o.Links[0].Up {
		t.Errorf("left: %+v", o.Links)
	}
}

// TestRenameToATakenName: the other link keeps its name, and the one that has the name already needs nothing.
func TestRenameToATakenName(t *testing.T) {
	k, w := withPod(t)
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	const longest = "a23456789abcdef"
	rename := dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "eth0"}
	refuses(t, k, "another's name", rename, nil, dataplane.Exists)
	for _, rename.Name = range []string{w.HostVeth, longest} {
		apply(t, k, one(rename), nil)
	}
	if o := observe(t, k); o.Index().LinkByAlias(w.Alias).Name != longest || len(o.Routes) != 1 {
		t.Errorf("observed %+v", o)
	}
}

// TestTheOlderOfTwoENIs: where two links have an ENI's MAC, the first one is meant. lo's, which is all zeros, is
// nobody's.
func TestTheOlderOfTwoENIs(t *testing.T) {
	k := openNew(t, Options{})
	router := newSpace(t)
	for _, name := range []string{"eth0", "eth1", "eth2"} {
		plug(t, router, name, primaryMAC, "to"+name)
	}
	apply(t, k, one(dataplane.Op{Kind: dataplane.ENIUp, MAC: primaryMAC, MTU: 1400}), nil)
	for _, l := range observe(t, k).Links {
		if first := l.Name == "eth0"; l.Up != first || (l.MTU == 1400) != first {
			t.Errorf("%+v", l)
		}
	}
	zeros := dataplane.Op{Kind: dataplane.ENIUp, MAC: "00:00:00:00:00:00"}
	refuses(t, k, "lo is an ENI", zeros, nil, dataplane.NoLink)
}

// TestPortOfABridge: what the kernel says of a link as a bridge's port, and that it is one no longer, is nothing
// about the link itself.
func TestPortOfABridge(t *testing.T) {
	k := openNew(t, Options{})
	watch := newWatcher(k)
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "bridge"
	must.Do(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	bridge := must.Get(netlink.LinkByName("bridge"))(t)
	l := must.Get(netlink.LinkByName("eth0"))(t)
	must.Do(t, netlink.LinkSetAlias(l, "somebody's"))
	must.Do(t, netlink.LinkSetUp(l))
	if d, err := k.roster.name("eth0"); err != nil || d.alias != "somebody's" {
		t.Fatalf("%+v, %v", d, err)
	}
	must.Get(watch.drain())(t)
	must.Do(t, netlink.LinkSetMaster(l, bridge))
	must.Do(t, netlink.LinkSetNoMaster(l))
	if d, err := k.roster.name("eth0"); err != nil || d.alias != "somebody's" {
		t.Errorf("no port any longer, and the roster has %+v, %v", d, err)
	}
	port := func(r *rtnl.Request) []byte { // as RTM_NEWLINK tells of a port
		r.Reset().Message(unix.RTM_NEWLINK, 0)
		r.Raw(unix.AF_BRIDGE, 0, 0, 0)
		r.Raw(rtnl.Native.AppendUint32(nil, uint32(l.Attrs().Index))...)
		r.Raw(make([]byte, 8)...)
		r.Text(unix.IFLA_IFNAME, "eth0")
		r.Finish()
		return r.B
	}
	clear(watch.doubt)
	h, _, ok := rtnl.Split(port(&rtnl.Request{}))
	if !ok || watch.foreign(&h) || len(watch.doubt) > 0 {
		t.Errorf("a port's notification (%v) leaves in doubt %v", ok, watch.doubt)
	}
}

// TestTwoLinksOfOneAlias: a third party copied it. With the copy's end the other one is not forgotten.
func TestTwoLinksOfOneAlias(t *testing.T) {
	k := openNew(t, Options{})
	var links []netlink.Link
	for _, name := range []string{"first", "second"} {
		must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "-peer"}))
		l := must.Get(netlink.LinkByName(name))(t)
		links = append(links, l)
	}
	if _, err := k.roster.name("first"); err != nil { // from here on it listens
		t.Fatal(err)
	}
	for _, l := range links {
		must.Do(t, netlink.LinkSetUp(l))
		must.Do(t, netlink.LinkSetAlias(l, "copied"))
	}
	must.Do(t, netlink.LinkDel(links[0]))
	if d, err := k.roster.alias("copied"); err != nil || d.name != "second" {
		t.Errorf("found %+v, %v", d, err)
	}
}

// TestANameTakenMeanwhile: a third party's link that took the name between look and creation has got our alias by the
// second message, which is taken off it again. Any other refusal is told as it is.
func TestANameTakenMeanwhile(t *testing.T) {
	k := openNew(t, Options{})
	w := spec(1, 1)
	must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: w.HostVeth}, PeerName: "peer"}))
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	must.Do(t, netlink.LinkSetUp(l)) // as the second message does
	lane := <-k.lanes
	defer func() { k.lanes <- lane }()
	a := &applier{k: k, s: lane.s, r: &lane.r}
	op := dataplane.Op{Link: w.HostVeth, Alias: w.Alias}
	for alias, want := range map[string]string{w.Alias: "", "theirs": "theirs"} {
		must.Do(t, netlink.LinkSetAlias(l, alias))
		if err := a.notCreated(&op, vethOutcome{&rtnl.Refusal{Errno: unix.EEXIST}}); kindOf(err) != dataplane.Exists {
			t.Errorf("the name is taken: %v", err)
		}
		if have, err := netlink.LinkByName(w.HostVeth); err != nil || have.Attrs().Alias != want {
			t.Errorf("their link has the alias %q, %v; expected %q", have.Attrs().Alias, err, want)
		}
	}
	no := &rtnl.Refusal{Errno: unix.ERANGE}
	if err := a.notCreated(&op, vethOutcome{no, unix.ENODEV, unix.ENODEV}); err != error(no) {
		t.Errorf("refused for another reason: %v", err)
	}
	if err := a.whyUnreachable(1<<20, no); err != errNoLink {
		t.Errorf("a route by a link that is gone: %v", err)
	}
}
