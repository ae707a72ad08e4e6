package linux

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// Each of these notices changes that nothing else here noticed: docs/mutation.md has them.

// TestWhatStandsOnAnENIIsNotTheENI: a link that somebody put on top of it has its MAC, and may be the older one. The plan and the observation choose
// the same link.
func TestWhatStandsOnAnENIIsNotTheENI(t *testing.T) {
	k := openNew(t, Options{})
	hw, _ := parseMAC(primaryMAC)
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = "stacked", hw[:], 1400
	must.Do(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.ENIUp, MAC: primaryMAC, MTU: 1450}}}, nil)
	p := natOp(true, true)
	apply(t, k, p, nil)
	o := observe(t, k)
	for _, l := range o.Links {
		if want := map[string]int{"stacked": 1400, "eth0": 1450}[l.Name]; l.MTU != want {
			t.Errorf("%s has MTU %d, expected %d", l.Name, l.MTU, want)
		}
	}
	if o.NAT != p.Ops[0].NAT() {
		t.Errorf("observed %+v\nexpected %+v", o.NAT, p.Ops[0].NAT())
	}
}

// TestNATOfALinkThatWasRenamed: rules that name a link by the name that it had are none.
func TestNATOfALinkThatWasRenamed(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, natOp(true, true), nil)
	l := must.Get(netlink.LinkByName("eth0"))(t)
	must.Do(t, netlink.LinkSetDown(l))
	must.Do(t, netlink.LinkSetName(l, "ens5"))
	if nat := observe(t, k).NAT; nat.Present {
		t.Errorf("the link is ens5 by now, and observed is %+v", nat)
	}
}

// TestSourcePortsAreRandom, as with AWS_VPC_K8S_CNI_RANDOMIZESNAT=prng: else two pods that pick one port race for it, and who guesses ports is helped.
func TestSourcePortsAreRandom(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, natOp(true, false), nil)
	c := &nftables.Conn{}
	chains := must.Get(c.ListChains())(t)
	found := 0
	for _, chain := range chains {
		rules := must.Get(c.GetRules(chain.Table, chain))(t)
		for _, r := range rules {
			for _, e := range r.Exprs {
				if n, ok := e.(*expr.NAT); ok {
					if found++; !n.FullyRandom {
						t.Errorf("the ports of %+v are not random", n)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Error("nothing is SNATed")
	}
}

// TestAnAddressThatIsRightIsLeftAlone: what others have said of it stays, and nobody hears of a change.
func TestAnAddressThatIsRightIsLeftAlone(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth1", secondaryMAC, "r1")
	l := must.Get(netlink.LinkByName("eth1"))(t)
	_, subnet, err := net.ParseCIDR("10.0.20.0/24")
	must.Do(t, err)
	must.Do(t, netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 0, 20, 10), Mask: subnet.Mask}, Label: "eth1:x"}))
	op := dataplane.Op{Kind: dataplane.ENIAddress, MAC: secondaryMAC, Addr: netip.MustParseAddr("10.0.20.10"), Dst: netip.MustParsePrefix("10.0.20.0/24")}
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{op}}, nil)
	list := must.Get(netlink.AddrList(l, unix.AF_INET))(t)
	if len(list) != 1 || list[0].Label != "eth1:x" {
		t.Errorf("the addresses are %v", list)
	}
}

// TestRenamedLinkKeepsRoutesThroughThePod: what is reached by way of the pod comes back after the way to the pod itself, on a kernel that takes the
// link down for its new name.
func TestRenamedLinkKeepsRoutesThroughThePod(t *testing.T) {
	k, _, _, w := withOpenPod(t, Options{Floor: true})
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	_, dst, err := net.ParseCIDR("10.0.1.0/24") // which the kernel lists first
	must.Do(t, err)
	must.Do(t, netlink.RouteAdd(&netlink.Route{Dst: dst, Gw: w.Address.AsSlice(), LinkIndex: l.Attrs().Index}))
	before := observe(t, k).Routes
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RenameLink, Alias: w.Alias, Name: "eniother"}}}, nil)
	after := observe(t, k).Routes
	for i := range before {
		before[i].Link = "eniother"
	}
	if len(before) != 2 || !slices.Equal(before, after) {
		t.Errorf("the routes are %+v, they were %+v", after, before)
	}
}

// TestAPlanKnowsTheRulesThatItMade: what it has read before is not all that there is.
func TestAPlanKnowsTheRulesThatItMade(t *testing.T) {
	k := openNew(t, Options{})
	rule := dataplane.Op{Kind: dataplane.EnsureRule, Priority: dataplane.PriorityFromPod, Addr: netip.MustParseAddr("10.0.10.20"), Table: 7}
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{rule}}, nil) // another pod's
	rule.Addr = rule.Addr.Next()
	var p dataplane.Plan
	for _, kind := range []dataplane.Kind{dataplane.RemoveRule, dataplane.EnsureRule, dataplane.RemoveRule, dataplane.RemoveRule} {
		rule.Kind = kind
		p.Ops = append(p.Ops, rule)
	}
	apply(t, k, p, nil)
	if rules := observe(t, k).Rules; len(rules) != 1 || rules[0].From.Addr() == rule.Addr {
		t.Errorf("left: %+v", rules)
	}
}

// TestRuleWithAnotherSelector is not ours, whatever is said after that selector.
func TestRuleWithAnotherSelector(t *testing.T) {
	ours := rule{dataplane.Rule{Priority: dataplane.PriorityFromPod, From: netip.MustParsePrefix("10.0.10.21/32"), Table: 7}, unix.RTPROT_STATIC}
	body := func(more ...func(*rtnl.Request)) []byte {
		var r rtnl.Request
		ruleMessage(r.Reset(), unix.RTM_NEWRULE, 0, &ours)
		for _, f := range more {
			f(&r)
		}
		return r.B[unix.NLMSG_HDRLEN:]
	}
	var got rule
	if !got.parse(body(func(r *rtnl.Request) { r.U8(fraL3MDev, 0) })) || got != ours {
		t.Errorf("our own is read as %+v", got)
	}
	vrf := func(r *rtnl.Request) { r.U8(fraL3MDev, 1) }
	inside := func(r *rtnl.Request) { r.Text(fraIIFName, "eth9") }
	noVRF := func(r *rtnl.Request) { r.U8(fraL3MDev, 0) }
	for name, b := range map[string][]byte{"of a VRF": body(vrf), "from a link": body(inside), "from a link, of no VRF": body(inside, noVRF)} {
		if got.parse(b) {
			t.Errorf("a rule %s is read as %+v", name, got)
		}
	}
}

// scripted is a socket that hears these messages of a kernel's, the first as the answer to its first request.
func scripted(t *testing.T, messages ...func(*rtnl.Request)) *rtnl.Socket {
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0))(t)
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	for i, m := range messages {
		var r rtnl.Request
		m(&r)
		r.Finish()
		binary.NativeEndian.PutUint32(r.B[8:], uint32(i+1))
		must.Get(unix.Write(fds[1], r.B))(t)
	}
	return rtnl.Adopt(fds[0], podBuffer)
}

// TestRosterReadsAgain: a list of links that changed while it was read is read once more.
func TestRosterReadsAgain(t *testing.T) {
	done := func(flags uint16) func(*rtnl.Request) {
		return func(r *rtnl.Request) { r.Message(unix.NLMSG_DONE, flags); r.Raw(0, 0, 0, 0) }
	}
	o := roster{told: told{queue: scripted(t), ask: scripted(t, done(unix.NLM_F_MULTI|unix.NLM_F_DUMP_INTR), done(unix.NLM_F_MULTI))}}
	if d, err := o.name("eth0"); err != nil || d.index != 0 {
		t.Errorf("the second list is whole, and the roster says %+v, %v", d, err)
	}
}

// TestAnAnswerThatIsNoLinkIsAnError, and not a link that is gone.
func TestAnAnswerThatIsNoLinkIsAnError(t *testing.T) {
	s := scripted(t, func(r *rtnl.Request) { r.Message(unix.RTM_NEWLINK, 0); r.Raw(1, 2, 3, 4) })
	if d, err := byIndex(s, &rtnl.Request{}, 7); err == nil {
		t.Errorf("it is read as %+v", d)
	}
}
