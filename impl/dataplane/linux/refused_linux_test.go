package linux

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// refusing applies a plan while the kernel refuses one request.
func refusing(t *testing.T, k *Kernel, f *refusal, p dataplane.Plan, pod *Pod) *dataplane.Error {
	t.Helper()
	defer speaksBy(t, k, between(t, unix.NETLINK_ROUTE, f.of))()
	_, err := k.Apply(p, pod)
	return err
}

// TestEveryRefusalIsAnError: whichever of an operation's requests the kernel refuses, the plan fails. One that is
// said to be done would not be repeated.
func TestEveryRefusalIsAnError(t *testing.T) {
	for _, floor := range []bool{false, true} {
		t.Run(fmt.Sprint("floor ", floor), func(t *testing.T) { everyRefusal(t, openNew(t, Options{Floor: floor})) })
	}
}

func everyRefusal(t *testing.T, k *Kernel) {
	s, router := newSpace(t), newSpace(t)
	p := s.pod(t)
	w, more := spec(1, s.inode), spec(2, s.inode)
	more.IfName = "net1"
	apply(t, k, dataplane.PodPlan(w), p)
	for i, name := range []string{"eth1", "eth2"} {
		plug(t, router, name, fmt.Sprintf("0a:00:00:00:02:%02x", i), "to-"+name)
		must.Do(t, netlink.LinkSetUp(must.Get(netlink.LinkByName(name))(t)))
	}
	const mac = "0a:00:00:00:02:00"
	host, subnet := netip.PrefixFrom(w.Address, 32), netip.MustParsePrefix("10.0.20.0/24")
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	eth1, eth2 := must.Get(netlink.LinkByName("eth1"))(t), must.Get(netlink.LinkByName("eth2"))(t)
	nothing := func() {}
	stranger := func(table int) func() { return func() { must.Do(t, netlink.RuleAdd(theirRule(w.Address, table))) } }
	for name, c := range map[string]struct {
		spoil func() // before each attempt, what the operation has to mend
		op    dataplane.Op
	}{
		"create":      {nothing, dataplane.PodPlan(more).Ops[0]},
		"up":          {nothing, dataplane.Op{Kind: dataplane.LinkUp, Alias: w.Alias}},
		"MAC":         {nothing, dataplane.Op{Kind: dataplane.SetMAC, Alias: w.Alias, MAC: mac}},
		"proxy":       {nothing, dataplane.Op{Kind: dataplane.ProxyNeighbour, Alias: w.Alias, Addr: w.Address}},
		"rename":      {nothing, dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "other"}},
		"add a route": {nothing, dataplane.Op{Kind: dataplane.EnsureRoute, Alias: w.Alias, Table: 7, Dst: host}},
		"add a route by nobody": {nothing, dataplane.Op{Kind: dataplane.EnsureRoute, Alias: w.Alias, Table: 7,
			Dst: subnet, Via: netip.MustParseAddr("192.0.2.1")}},
		"add a route that is second": {func() {
			for _, l := range []netlink.Link{eth2, eth1} {
				r := linkTo(l, "10.9.0.0/16")
				r.Scope, r.Protocol = netlink.SCOPE_LINK, unix.RTPROT_STATIC
				_ = netlink.RouteDel(r)
				must.Do(t, netlink.RouteAppend(r))
			}
		}, dataplane.Op{Kind: dataplane.EnsureRoute, MAC: mac, Table: dataplane.MainTable,
			Dst: netip.MustParsePrefix("10.9.0.0/16")}},
		"remove a route": {nothing, dataplane.Op{Kind: dataplane.RemoveRoute, Alias: w.Alias,
			Table: dataplane.MainTable, Dst: host}},
		"add a rule": {nothing, dataplane.Op{Kind: dataplane.EnsureRule, Addr: w.Address,
			Priority: dataplane.PriorityFromENI, Table: 9}},
		"remove a rule": {stranger(11), dataplane.Op{Kind: dataplane.RemoveRule, Addr: w.Address,
			Priority: dataplane.PriorityFromPod, Table: 11}},
		"remove stale rules": {stranger(12), dataplane.Op{Kind: dataplane.RemoveStaleRules, Addr: w.Address,
			Priority: dataplane.PriorityFromPod, Table: w.Table}},
		"ENI up": {nothing, dataplane.Op{Kind: dataplane.ENIUp, MAC: mac}},
		"ENI's address": {func() {
			for _, a := range []string{"10.0.20.8/24", "10.0.20.9/24"} {
				must.Do(t, addAddress("eth1", a))
			}
		}, dataplane.Op{Kind: dataplane.ENIAddress, MAC: mac, Addr: netip.MustParseAddr("10.0.20.10"), Dst: subnet}},
		"sysctl": {nothing, dataplane.Op{Kind: dataplane.Sysctl, MAC: mac, Name: "rp_filter", Value: "2"}},
		"adopt": {func() { must.Do(t, netlink.LinkSetAlias(l, "")) },
			dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: w.Alias, Addr: w.Address, MAC: mac}},
		"adopt what is routed nowhere": {func() {
			must.Do(t, netlink.LinkSetAlias(l, ""))
			_ = netlink.RouteDel(linkTo(l, host.String()))
		}, dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: w.Alias, Addr: w.Address}},
		"pod's end": {nothing, dataplane.Op{Kind: dataplane.PodAddress, Alias: w.Alias, Netns: s.inode,
			Addr: w.Address}},
	} {
		for at := 0; ; at++ {
			for _, r := range must.Get(netlink.RuleList(unix.AF_INET))(t) {
				if r.Priority == dataplane.PriorityFromPod {
					must.Do(t, netlink.RuleDel(&r))
				}
			}
			for _, a := range must.Get(netlink.AddrList(eth1, unix.AF_INET))(t) {
				_ = netlink.AddrDel(eth1, &a) // one may have gone with another
			}
			apply(t, k, one(dataplane.Op{Kind: dataplane.DeleteVeth, Alias: more.Alias}), nil)
			o := observe(t, k)
			apply(t, k, dataplane.RepairPod(w, o.Index()), nil)
			c.spoil()
			f := refusal{at: at, errno: unix.EPERM}
			err := refusing(t, k, &f, one(c.op), p)
			if !f.happened() {
				if name != "add a route by nobody" && err != nil {
					t.Errorf("%s: nothing is refused, and it fails: %v", name, err)
				}
				if at == 0 {
					t.Errorf("%s asks the kernel for nothing", name)
				}
				break
			}
			if err == nil {
				t.Errorf("%s: request %d is refused, and the operation is done", name, at)
			}
		}
	}
}

// TestAFailedRenameLosesNothing, on a kernel that takes the link down for its new name: what cannot be read is not
// lost, and a name that is refused leaves the link as it was.
func TestAFailedRenameLosesNothing(t *testing.T) {
	k, _, _, w := withOpenPod(t, Options{Floor: true})
	second := dataplane.Op{Kind: dataplane.ProxyNeighbour, Alias: w.Alias, Addr: dataplane.Gateway().Next()}
	apply(t, k, one(second), nil)
	before := observe(t, k)
	rename := one(dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "other"})
	for name, f := range map[string]*refusal{
		"the routes are secret":    {kind: unix.RTM_GETROUTE, errno: unix.EPERM},
		"the proxies are secret":   {kind: unix.RTM_GETNEIGH, errno: unix.EPERM},
		"the link stays up":        {kind: unix.RTM_SETLINK, errno: unix.EPERM},
		"the new name is refused":  {kind: unix.RTM_SETLINK, at: 1, errno: unix.ERANGE},
		"the new name is somebody": {kind: unix.RTM_SETLINK, at: 1, errno: unix.EEXIST},
	} {
		want := &rtnl.Refusal{Errno: f.errno}
		if err := refusing(t, k, f, rename, nil); err == nil || err.Kind != kindOf(want) || !f.happened() {
			t.Errorf("%s: %v; expected %q", name, err, kindOf(want))
		}
		if after := observe(t, k); !after.Equal(&before) {
			t.Errorf("%s: observed %+v\nexpected %+v", name, after, before)
		}
	}
	there := refusal{kind: unix.RTM_NEWROUTE, errno: unix.EEXIST}
	if err := refusing(t, k, &there, rename, nil); err != nil || !there.happened() {
		t.Errorf("a route is there again by itself: %v", err)
	}
}

// TestRenameThatTheKernelRefuses: one that has to be down for it is taken down, and one that is gone needs no name.
func TestRenameThatTheKernelRefuses(t *testing.T) {
	k, w := withPod(t)
	before := observe(t, k)
	rename := one(dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "other"})
	gone := refusal{kind: unix.RTM_SETLINK, errno: unix.ENODEV}
	if err := refusing(t, k, &gone, rename, nil); err != nil || !gone.happened() {
		t.Errorf("the link is gone: %v", err)
	}
	busy := refusal{kind: unix.RTM_SETLINK, errno: unix.EBUSY}
	if err := refusing(t, k, &busy, rename, nil); err != nil || !busy.happened() {
		t.Errorf("the link is up, as before Linux 6.2: %v", err)
	}
	o := observe(t, k)
	if l := o.Index().LinkByAlias(w.Alias); l == nil || l.Name != "other" || !l.Up ||
		!slices.Equal(l.Proxy, before.Links[0].Proxy) || len(o.Routes) != len(before.Routes) {
		t.Errorf("observed %+v\nbefore it was renamed %+v", o, before)
	}
}

// TestWhatIsSoAlreadyIsNotAskedFor: neither the name that a link has, for which an older kernel would take it down, nor its MAC.
func TestWhatIsSoAlreadyIsNotAskedFor(t *testing.T) {
	k, _, _, w := withOpenPod(t, Options{Floor: true})
	for _, op := range []dataplane.Op{{Kind: dataplane.RenameLink, Alias: w.Alias, Name: w.HostVeth},
		{Kind: dataplane.SetMAC, Alias: w.Alias, MAC: dataplane.VethMAC(w.Alias)}} {
		f := refusal{kind: unix.RTM_SETLINK, errno: unix.EPERM}
		if err := refusing(t, k, &f, one(op), nil); err != nil || f.happened() {
			t.Errorf("%v: the kernel was asked: %v, and the plan says %v", op.Kind, f.happened(), err)
		}
	}
}

// TestRenameThereAndBack in one plan: the second one knows what the first one did.
func TestRenameThereAndBack(t *testing.T) {
	k, w := withPod(t)
	var p dataplane.Plan
	for _, name := range []string{"other", w.HostVeth} {
		p.Ops = append(p.Ops, dataplane.Op{Kind: dataplane.RenameLink, Alias: w.Alias, Name: name})
	}
	apply(t, k, p, nil)
	if l := observe(t, k).Links[0]; l.Name != w.HostVeth {
		t.Errorf("the link is called %s, expected %s", l.Name, w.HostVeth)
	}
}

// TestAnAdoptedLinkIsMarked where another CNI made it, and so its MAC is what the pod knows; what we made is not.
func TestAnAdoptedLinkIsMarked(t *testing.T) {
	k, w := withPod(t)
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	for _, mac := range []string{"", primaryMAC} {
		must.Do(t, netlink.LinkSetAlias(l, ""))
		adopt := dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: w.Alias, Addr: w.Address, MAC: mac}
		apply(t, k, one(adopt), nil)
		if have := observe(t, k).Links[0]; have.Alias != w.Alias || have.Adopted != (mac != "") {
			t.Errorf("adopted with the MAC %q, it is %+v", mac, have)
		}
	}
}

// TestAVethThatIsNotFinishedIsGone: the pair is there, and its alias, or that it is up, is refused. The plan says
// why, and leaves nothing.
func TestAVethThatIsNotFinishedIsGone(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	p := s.pod(t)
	create := one(dataplane.PodPlan(spec(1, s.inode)).Ops[0])
	for at, what := range []string{"alias", "way to have no address", "state"} {
		f := refusal{kind: unix.RTM_SETLINK, at: at, errno: unix.ENETDOWN}
		if err := refusing(t, k, &f, create, p); err == nil || err.Kind != dataplane.LinkDown || !f.happened() {
			t.Errorf("its %s is refused: %v; expected %q", what, err, dataplane.LinkDown)
		}
		if o := observe(t, k); len(o.Links) != 0 {
			t.Errorf("its %s is refused, and left is %+v", what, o.Links)
		}
	}
	without := refusal{kind: unix.RTM_SETLINK, at: 1, errno: unix.EAFNOSUPPORT}
	if err := refusing(t, k, &without, create, p); err != nil || !without.happened() {
		t.Errorf("a machine without IPv6: %v", err)
	}
}

// TestAHostsEndHasNoIPv6Address: nobody asks for one, and each is three routes that the kernel walks with every link that comes up.
func TestAHostsEndHasNoIPv6Address(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	w := spec(1, s.inode)
	apply(t, k, one(dataplane.PodPlan(w).Ops[0]), s.pod(t))
	addresses := must.Get(netlink.AddrList(must.Get(netlink.LinkByName(w.HostVeth))(t), netlink.FAMILY_V6))(t)
	if len(addresses) != 0 {
		t.Errorf("it has %v", addresses)
	}
}

// TestAVethThatCannotBeTakenBack: the error says both why it was to go and why it stays.
func TestAVethThatCannotBeTakenBack(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	op := dataplane.PodPlan(spec(1, s.inode)).Ops[0]
	var usual []*lane
	for range cap(k.deletions) {
		usual = append(usual, <-k.deletions)
	}
	k.deletions <- &lane{s: rtnl.Adopt(-1, podBuffer)}
	f := refusal{kind: unix.RTM_SETLINK, errno: unix.ENETDOWN}
	a := &applier{k: k, s: between(t, unix.NETLINK_ROUTE, f.of), r: &rtnl.Request{}, pod: s.pod(t)}
	err := a.createVeth(&op)
	k.deleting.Wait()
	<-k.deletions
	for _, l := range usual {
		k.deletions <- l
	}
	var no *rtnl.Refusal
	if !errors.As(err, &no) || no.Errno != unix.ENETDOWN || !errors.Is(err, unix.EBADF) {
		t.Errorf("%v; expected both that the network is down and that the socket is broken", err)
	}
}

// TestAVethThatSomebodyTakesAtOnce: it is not ours to go on with, nor to delete.
func TestAVethThatSomebodyTakesAtOnce(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	p := s.pod(t)
	op := dataplane.PodPlan(spec(1, s.inode)).Ops[0]
	h := must.Get(netlink.NewHandle(unix.NETLINK_ROUTE))(t)
	defer h.Close()
	for what, c := range map[string]struct {
		do   func(netlink.Link) error
		left int
	}{
		"delete it":    {h.LinkDel, 0},
		"make it mine": {func(l netlink.Link) error { return h.LinkSetAlias(l, "mine") }, 1},
	} {
		links := 0
		restore := speaksBy(t, k, between(t, unix.NETLINK_ROUTE, func(message []byte) unix.Errno {
			if kindOfMessage(message) != unix.RTM_SETLINK {
				return 0
			}
			if links++; links == 2 { // it has our alias, and is to come up
				l, err := h.LinkByName(op.Link)
				if err == nil {
					err = c.do(l)
				}
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			return 0
		}))
		_, err := k.Apply(one(op), p)
		restore()
		if err == nil || err.Kind != dataplane.Other {
			t.Errorf("%s: %v; expected %q", what, err, dataplane.Other)
		}
		o := observe(t, k)
		if len(o.Links) != c.left {
			t.Errorf("%s: left is %+v", what, o.Links)
		}
		for _, l := range o.Links {
			must.Do(t, h.LinkDel(must.Get(h.LinkByName(l.Name))(t)))
		}
	}
}

// TestANonsensicalVethNeedsNoNamespace to be refused for what it is: nothing makes it right.
func TestANonsensicalVethNeedsNoNamespace(t *testing.T) {
	k := openNew(t, Options{})
	sensible := dataplane.PodPlan(spec(1, 1)).Ops[0]
	refuses(t, k, "a veth that makes sense", sensible, nil, dataplane.NoNamespace)
	for name, change := range map[string]func(*dataplane.Op){
		"no name":                  func(o *dataplane.Op) { o.Link = "" },
		"no name in the pod":       func(o *dataplane.Op) { o.Name = "" },
		"no namespace":             func(o *dataplane.Op) { o.Netns = 0 },
		"16 characters":            func(o *dataplane.Op) { o.Link = "0123456789abcdef" },
		"16 characters in the pod": func(o *dataplane.Op) { o.Name = "0123456789abcdef" },
		"a long alias":             func(o *dataplane.Op) { o.Alias = fmt.Sprintf("%0256d", 0) },
		"half a MAC":               func(o *dataplane.Op) { o.MAC = "0a:00:00" },
	} {
		op := sensible
		change(&op)
		refuses(t, k, name, op, nil, dataplane.Invalid)
	}
	for _, change := range []func(*dataplane.Op){func(o *dataplane.Op) { o.Link = "a23456789abcdef" },
		func(o *dataplane.Op) { o.Name = "a23456789abcdef" }, func(o *dataplane.Op) { o.MAC = "" }} {
		op := sensible
		change(&op)
		refuses(t, k, fmt.Sprintf("%+v", op), op, nil, dataplane.NoNamespace)
	}
}

// TestWhateverIsNotReadIsSaid: whichever request of an observation the kernel refuses, it is not complete.
func TestWhateverIsNotReadIsSaid(t *testing.T) {
	k, _ := withPod(t)
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, natOp(true, true), nil)
	before := observe(t, k)
	for _, protocol := range []int{unix.NETLINK_ROUTE, unix.NETLINK_NETFILTER} {
		where := &k.seen.s
		if protocol == unix.NETLINK_NETFILTER {
			where = &k.seen.nft
		}
		for at := 0; ; at++ {
			f := refusal{at: at, errno: unix.EPERM}
			was := *where
			*where = between(t, protocol, f.of)
			o, err := k.Observe()
			*where = was
			if !f.happened() {
				if err != nil || !o.Equal(&before) || at < 6 {
					t.Errorf("protocol %d: %d requests, %v, observed %+v\nexpected %+v", protocol, at, err, o, before)
				}
				break
			}
			if err == nil || o.Complete {
				t.Errorf("protocol %d: request %d is refused, and the observation is complete: %v", protocol, at, err)
			}
		}
	}
}

// TestFlushesWaitForNoPlan: they take long, and neither need what plans need nor keep it from them.
func TestFlushesWaitForNoPlan(t *testing.T) {
	k := openNew(t, Options{})
	for range cap(k.lanes) {
		l := <-k.lanes
		defer func() { k.lanes <- l }()
	}
	flush := dataplane.Op{Kind: dataplane.FlushConntrack, Addr: netip.MustParseAddr("10.0.10.21")}
	type result struct {
		done int
		err  *dataplane.Error
	}
	answer := make(chan result, 1)
	go func() {
		done, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{flush, flush}}, nil)
		answer <- result{done, err}
	}()
	select {
	case r := <-answer:
		if r.done != 2 || r.err != nil {
			t.Errorf("done %d, %v", r.done, r.err)
		}
	case <-time.After(20 * time.Second):
		t.Error("waited 20 s for a flush beside plans that are not done")
	}
}

// TestWithoutProc: that the namespace cannot be told is the error, not that it is another one.
func TestWithoutProc(t *testing.T) {
	k := openNew(t, Options{})
	must.Do(t, unix.Unshare(unix.CLONE_NEWNS)) // of this thread, which ends with the test
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		t.Skipf("needs to mount: %v", err)
	}
	if err := unix.Mount("none", "/proc", "tmpfs", 0, ""); err != nil {
		t.Skipf("needs to mount: %v", err)
	}
	if err := k.writeSysctl("/proc/sys/net/ipv4/conf/lo/arp_notify", "1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a sysctl: %v", err)
	}
	if other, err := Open(Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened %v, %v", other, err)
	}
}
