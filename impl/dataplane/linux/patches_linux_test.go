package linux

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// Each of these notices a change of one line that nothing else here noticed (testdata/patches, docs/mutation.md).

// TestDeletionOfWhatIsGone: a link may end by itself, with its namespace, between the look at it and its deletion.
func TestDeletionOfWhatIsGone(t *testing.T) {
	k := openNew(t, Options{})
	const nobody = 1 << 20
	if err := <-k.askDeletion(nobody); err != nil {
		t.Errorf("the deletion of a link that is gone: %v", err)
	}
}

// TestAPodsLinkIsNoENI: the alias says whose a link is, also when it has an ENI's MAC, and was there first.
func TestAPodsLinkIsNoENI(t *testing.T) {
	k, w := withPod(t)
	mac := dataplane.VethMAC(w.Alias)
	up := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.ENIUp, MAC: mac, MTU: 1500}}}
	if _, err := k.Apply(up, nil); err == nil || err.Kind != dataplane.NoLink {
		t.Errorf("an ENI with a pod's MAC, which is not there: %v", err)
	}
	plug(t, newSpace(t), "eth7", mac, "cable")
	apply(t, k, up, nil)
	o := observe(t, k)
	if l := o.Index().LinkByAlias(w.Alias); l == nil || l.MTU != w.MTU {
		t.Errorf("the pod's link got the ENI's MTU: %+v", l)
	}
}

// TestAHalfMadeVethIsGone: the pair is there, and the pod's end cannot be brought up. The plan says that it was not made, so nobody would look
// for it.
func TestAHalfMadeVethIsGone(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	p := s.pod(t)
	broken := rtnl.Adopt(-1, podBuffer)
	p.s = broken // whatever is asked inside the pod fails
	w := spec(1, s.inode)
	if done, err := k.Apply(dataplane.PodPlan(w), p); done != 0 || err == nil {
		t.Fatalf("done %d, %v; expected that the first operation fails", done, err)
	}
	if o := observe(t, k); len(o.Links) != 0 {
		t.Errorf("a half-made veth stays: %+v", o.Links)
	}
}

// TestInterruptedDumpIsReadAgain: a list that cannot be read is an error, and one that changed meanwhile is read
// again, not for ever.
func TestInterruptedDumpIsReadAgain(t *testing.T) {
	broken, reads := errors.New("broken"), 0
	if err := retry(func() error { reads++; return broken }); err != broken || reads != 1 {
		t.Errorf("%v after %d reads", err, reads)
	}
	reads = 0
	if err := retry(func() error { reads++; return rtnl.ErrInterrupted }); err != rtnl.ErrInterrupted || reads != interruptions {
		t.Errorf("%v after %d reads", err, reads)
	}
	reads = 0
	again := func() error {
		if reads++; reads < 3 {
			return rtnl.ErrInterrupted
		}
		return nil
	}
	if err := retry(again); err != nil || reads != 3 {
		t.Errorf("%v after %d reads", err, reads)
	}
}

// TestExpressionWithoutAttributeIsAnother: an expression that lacks an attribute is another one.
func TestExpressionWithoutAttributeIsAnother(t *testing.T) {
	attributes := func(kinds ...uint16) []byte {
		var r rtnl.Request
		r.Reset().Message(0, 0)
		for _, k := range kinds {
			r.U32(k, 7)
		}
		return r.B[unix.NLMSG_HDRLEN:]
	}
	if !holds(attributes(1, 2, 3), attributes(2, 1)) {
		t.Error("what has more, in another order, does not hold what is wanted")
	}
	if holds(attributes(1), attributes(1, 2)) {
		t.Error("what lacks an attribute holds it")
	}
}

// TestRouteOfAnAddressIsItsOwn: the route of an address is its own, not that of another pod behind the same link.
func TestRouteOfAnAddressIsItsOwn(t *testing.T) {
	k, w := withPod(t)
	d := must.Get(k.roster.alias(w.Alias))(t)
	l := <-k.lanes
	defer func() { k.lanes <- l }()
	a := &applier{k: k, s: l.s, r: &l.r}
	for address, want := range map[netip.Addr]int{w.Address: d.index, w.Address.Next(): 0} {
		if index, err := a.routed(address); err != nil || index != want {
			t.Errorf("%v is routed to link %d, %v, want %d", address, index, err, want)
		}
	}
}

// TestAliasAndRouteAreLostTogether: the namespace behind the link says whose it is, unless the address is led elsewhere.
func TestAliasAndRouteAreLostTogether(t *testing.T) {
	k, w := withPod(t)
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RemoveRoute, Alias: w.Alias, Dst: netip.PrefixFrom(w.Address, 32), Table: dataplane.MainTable}}}, nil)
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	must.Do(t, netlink.LinkSetAlias(l, ""))

	adopt := dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: w.Alias, Addr: w.Address.Next()}
	if _, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{adopt}}, nil); err == nil || err.Kind != dataplane.NoLink {
		t.Errorf("a link is adopted for an address that is not behind it: %v", err)
	}
	o := observe(t, k)
	plan := dataplane.RepairPod(w, o.Index())
	if len(plan.Ops) < 2 || plan.Ops[0].Kind != dataplane.AdoptLink {
		t.Fatalf("the repair is\n%v", plan)
	}
	apply(t, k, plan, nil)
	o = observe(t, k)
	if left := dataplane.RepairPod(w, o.Index()); !left.Empty() {
		t.Errorf("repaired, it still lacks\n%v", left)
	}
}

// TestRemovedRouteAndBlackhole: all routes of a prefix go, the one to the link and those to nowhere.
func TestRemovedRouteAndBlackhole(t *testing.T) {
	k, w := withPod(t)
	host := netip.PrefixFrom(w.Address, 32)
	_, dst, err := net.ParseCIDR(host.String())
	must.Do(t, err)
	must.Do(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_BLACKHOLE, Priority: 77}))
	must.Do(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Type: unix.RTN_PROHIBIT, Priority: 78}))
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RemoveRoute, Alias: w.Alias, Dst: host, Table: dataplane.MainTable}}}, nil)
	for _, r := range observe(t, k).Routes {
		if r.Dst == host {
			t.Errorf("left: %+v", r)
		}
	}
}

// TestMultipathRoute: the first hop stands for all.
func TestMultipathRoute(t *testing.T) {
	k := openNew(t, Options{})
	router := newSpace(t)
	var hops []*netlink.NexthopInfo
	for i, name := range []string{"eth5", "eth6"} {
		plug(t, router, name, fmt.Sprintf("02:00:00:00:05:%02x", i), "cable"+name)
		l := must.Get(netlink.LinkByName(name))(t)
		must.Do(t, netlink.LinkSetUp(l))
		hops = append(hops, &netlink.NexthopInfo{LinkIndex: l.Attrs().Index})
	}
	_, dst, err := net.ParseCIDR("10.9.0.0/24")
	must.Do(t, err)
	must.Do(t, netlink.RouteAdd(&netlink.Route{Dst: dst, MultiPath: hops, Scope: netlink.SCOPE_LINK}))
	for _, r := range observe(t, k).Routes {
		if r.Dst.String() == dst.String() {
			if r.Link != "eth5" {
				t.Errorf("the route is %+v", r)
			}
			return
		}
	}
	t.Error("the route is not observed")
}

// TestRulesThatCannotBeRead: they are not taken for none.
func TestRulesThatCannotBeRead(t *testing.T) {
	broken := func() *rtnl.Socket { return rtnl.Adopt(-1, podBuffer) }
	a := &applier{k: &Kernel{rules: rulebook{told: told{queue: broken(), ask: broken()}}}, s: broken(), r: &rtnl.Request{}}
	if err := a.removeRules(dataplane.Rule{Priority: dataplane.PriorityToPod}, false); err == nil {
		t.Error("rules were removed that could not be read")
	}
}
