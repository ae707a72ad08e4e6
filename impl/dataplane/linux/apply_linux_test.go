package linux

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// TestPodAndBack: a pod comes and goes, twice, and nothing is left.
func TestPodAndBack(t *testing.T) {
	forEachKernel(t, func(t *testing.T, o Options) {
		k := openNew(t, o)
		s := newSpace(t)
		w := spec(1, s.inode)
		for range 2 {
			p := s.pod(t)
			apply(t, k, dataplane.PodPlan(w), p)
			o := observe(t, k)
			ix := o.Index()
			if repair := dataplane.RepairPod(w, ix); !repair.Empty() {
				t.Errorf("just made, and already to be repaired:\n%s", repair)
			}
			if l := ix.LinkByAlias(w.Alias); l == nil || !l.Up || l.MTU != w.MTU || l.MAC != dataplane.VethMAC(w.Alias) || !l.PeerLive || l.Proxy[0] != dataplane.Gateway() {
				t.Errorf("the link is %+v", l)
			}
			if done, err := k.Apply(dataplane.PodPlan(w), p); done != 0 || err == nil || err.Kind != dataplane.Exists {
				t.Errorf("the same again: %d, %v", done, err)
			}
			apply(t, k, dataplane.PodRemoval(w), nil)
			apply(t, k, dataplane.PodRemoval(w), nil)
			if o = observe(t, k); len(o.Links)+len(o.Routes)+len(o.Rules) > 0 {
				t.Errorf("left: %+v", o)
			}
		}
	})
}

// TestHeldNamespace: the removal takes the address from a namespace that somebody keeps alive.
func TestHeldNamespace(t *testing.T) {
	k, s, _, w := withOpenPod(t, Options{})
	apply(t, k, dataplane.PodRemoval(w), nil)
	s.run(t, func() error {
		if links, err := netlink.LinkList(); err != nil || len(links) != 1 {
			return fmt.Errorf("%d links, %v; expected lo alone", len(links), err)
		}
		return nil
	})
}

// TestErrorsHaveKindAndCause: each kind of error, and that its text says what was found.
func TestErrorsHaveKindAndCause(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	s, other := newSpace(t), newSpace(t)
	p := s.pod(t)
	w := spec(1, s.inode)
	apply(t, k, dataplane.PodPlan(w), p)
	second := spec(2, s.inode)
	gone := spec(3, 1)
	prefix := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	for _, c := range []struct {
		name string
		op   dataplane.Op
		pod  *Pod
		kind dataplane.ErrorKind
	}{
		{"the name lives", dataplane.Op{Kind: dataplane.CreateVeth, Link: w.HostVeth, Alias: second.Alias, Name: "eth1", Netns: s.inode}, p, dataplane.Exists},
		{"the alias lives", dataplane.Op{Kind: dataplane.CreateVeth, Link: "eniother", Alias: w.Alias, Name: "eth1", Netns: s.inode}, p, dataplane.Exists},
		{"the pod has an eth0", dataplane.Op{Kind: dataplane.CreateVeth, Link: "eniother", Alias: second.Alias, Name: "eth0", Netns: s.inode}, p, dataplane.Exists},
		{"no namespace", dataplane.Op{Kind: dataplane.CreateVeth, Link: "eniother", Alias: second.Alias, Name: "eth0", Netns: s.inode}, nil, dataplane.NoNamespace},
		{"another namespace", dataplane.PodPlan(gone).Ops[0], p, dataplane.NoNamespace},
		{"an address in another namespace", dataplane.Op{Kind: dataplane.PodAddress, Alias: w.Alias, Netns: other.inode, Addr: w.Address}, other.pod(t), dataplane.NoNamespace},
		{"an address for another namespace", dataplane.Op{Kind: dataplane.PodAddress, Alias: w.Alias, Netns: other.inode, Addr: w.Address}, p, dataplane.NoNamespace},
		{"an address without its namespace", dataplane.Op{Kind: dataplane.PodAddress, Alias: w.Alias, Netns: s.inode, Addr: w.Address}, nil, dataplane.NoNamespace},
		{"a MAC for nobody", dataplane.Op{Kind: dataplane.SetMAC, Alias: second.Alias, MAC: "malformed"}, nil, dataplane.NoLink},
		{"an alias of nobody", dataplane.Op{Kind: dataplane.LinkUp, Alias: second.Alias}, nil, dataplane.NoLink},
		{"a MAC of nobody", dataplane.Op{Kind: dataplane.ENIUp, MAC: secondaryMAC}, nil, dataplane.NoLink},
		{"a link that is down", dataplane.Op{Kind: dataplane.EnsureRoute, MAC: primaryMAC, Table: 2, Dst: prefix("10.0.10.1/32")}, nil, dataplane.LinkDown},
		{"a gateway by a link that is down", dataplane.Op{Kind: dataplane.EnsureRoute, MAC: primaryMAC, Table: 2, Dst: prefix("0.0.0.0/0"), Via: dataplane.Gateway()}, nil, dataplane.LinkDown},
		{"a gateway elsewhere", dataplane.Op{Kind: dataplane.EnsureRoute, Alias: w.Alias, Table: 2, Dst: prefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.9.9.9")}, nil, dataplane.Unreachable},
		{"a name of 16 characters", dataplane.Op{Kind: dataplane.CreateVeth, Link: "0123456789abcdef", Alias: second.Alias, Name: "eth1", Netns: s.inode}, p, dataplane.Invalid},
		{"a kind of tomorrow", dataplane.Op{Kind: 250}, nil, dataplane.Invalid},
		{"IPv6", dataplane.Op{Kind: dataplane.EnsureRule, Priority: 512, Table: 254, Addr: netip.MustParseAddr("fd00::1")}, nil, dataplane.Invalid},
		{"an MTU past the link's", dataplane.Op{Kind: dataplane.ENIUp, MAC: primaryMAC, MTU: 1 << 20}, nil, dataplane.Invalid},
		{"a sysctl that climbs", dataplane.Op{Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "../all/rp_filter", Value: "0"}, nil, dataplane.Invalid},
		{"a CIDR that is none", dataplane.Op{Kind: dataplane.HostNAT, MAC: primaryMAC, Addr: w.Address, Name: "10.0.0.0/64"}, nil, dataplane.Invalid},
	} {
		done, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{c.op}}, c.pod)
		if done != 0 || err == nil || err.Kind != c.kind || !strings.Contains(err.Text, c.op.Kind.String()) {
			t.Errorf("%s: done %d, %v; expected %q", c.name, done, err, c.kind)
		}
		if err != nil && (strings.Contains(err.Error(), "not found") || strings.Contains(err.Error(), "no such file")) {
			t.Errorf("%s: go-cni swallows this text: %v", c.name, err)
		}
	}
}

// TestSysctl: by netlink, and by /proc/sys in the right namespace only.
func TestSysctl(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	arp := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "arp_notify", Value: "1"}}}
	apply(t, k, dataplane.InitPlan(hostSpec(true, true)), nil)
	apply(t, k, arp, nil)
	if o := observe(t, k); o.Links[0].RPFilter != 2 {
		t.Errorf("rp_filter is %d", o.Links[0].RPFilter)
	}
	for key, want := range map[string]string{"rp_filter": "2", "arp_notify": "1"} {
		if have, err := os.ReadFile("/proc/sys/net/ipv4/conf/eth0/" + key); err != nil || strings.TrimSpace(string(have)) != want {
			t.Errorf("%s is %q, %v; expected %s", key, have, err, want)
		}
	}
	must.Do(t, newSpace(t).in(func() error {
		if _, err := k.Apply(arp, nil); err == nil || err.Kind != dataplane.Other {
			return fmt.Errorf("from a thread in another namespace: %v", err)
		}
		return nil
	}))
}

// TestStrangersRule: a rule of the same priority and address with one selector more is not ours to remove or to report.
func TestStrangersRule(t *testing.T) {
	k := openNew(t, Options{})
	r := netlink.NewRule()
	r.Priority, r.Table, r.Family, r.IifName = dataplane.PriorityFromPod, 7, unix.AF_INET, "eth9"
	r.Src = &net.IPNet{IP: net.IPv4(10, 0, 10, 21), Mask: net.CIDRMask(32, 32)}
	must.Do(t, netlink.RuleAdd(r))
	if o := observe(t, k); len(o.Rules) != 0 {
		t.Errorf("observed as %+v, without its selector", o.Rules)
	}
	apply(t, k, dataplane.PodRemoval(spec(1, 1)), nil)
	list := must.Get(netlink.RuleList(unix.AF_INET))(t)
	if len(list) != 4 {
		t.Errorf("%d rules are left, expected the kernel's three and the stranger's", len(list))
	}
}

// TestBlackhole: a route that leads to no link is nobody's, and goes with the address.
func TestBlackhole(t *testing.T) {
	k := openNew(t, Options{})
	w := spec(1, 1)
	must.Do(t, netlink.RouteAdd(&netlink.Route{Type: unix.RTN_BLACKHOLE, Dst: &net.IPNet{IP: w.Address.AsSlice(), Mask: net.CIDRMask(32, 32)}}))
	if o := observe(t, k); len(o.Routes) != 1 || o.Routes[0].Link != "" {
		t.Errorf("observed as %+v", o.Routes)
	}
	apply(t, k, dataplane.PodRemoval(w), nil)
	if o := observe(t, k); len(o.Routes) != 0 {
		t.Errorf("left: %+v", o.Routes)
	}
}

// TestRealAddressOnLoopback: lo is nobody's business, until an address on it is in use.
func TestRealAddressOnLoopback(t *testing.T) {
	k := openNew(t, Options{})
	must.Do(t, addAddress("lo", "127.0.0.53/32"))
	if o := observe(t, k); len(o.Links) != 0 {
		t.Errorf("observed: %+v", o.Links)
	}
	must.Do(t, addAddress("lo", "10.0.10.99/32"))
	o := observe(t, k)
	if evidence, used := o.Uses(netip.MustParseAddr("10.0.10.99")); !used {
		t.Errorf("an address on lo is not in use: %q, %+v", evidence, o.Links)
	}
}

// TestManyAtOnce: plans, observations and removals at the same time, each its own pod.
func TestManyAtOnce(t *testing.T) {
	k := openNew(t, Options{})
	var work sync.WaitGroup
	failures := make(chan error, 100)
	for i := range 12 {
		s := newSpace(t)
		p := s.pod(t)
		work.Add(1)
		go func() {
			defer work.Done()
			for range 3 {
				w := spec(i, s.inode)
				if _, err := k.Apply(dataplane.PodPlan(w), p); err != nil {
					failures <- err
				}
				if _, err := k.Observe(); err != nil && !errors.Is(err, rtnl.ErrInterrupted) {
					failures <- err
				}
				if _, err := k.Apply(dataplane.PodRemoval(w), nil); err != nil {
					failures <- err
				}
			}
		}()
	}
	work.Wait()
	close(failures)
	for err := range failures {
		t.Error(err)
	}
	if o := observe(t, k); len(o.Links)+len(o.Rules)+len(o.Routes) > 0 {
		t.Errorf("left: %+v", o)
	}
}

// TestRenameOfADyingLink: an older incarnation gives its name up while its own DEL takes its link away. A link that is gone by then needs
// no name, as one that was gone before.
func TestRenameOfADyingLink(t *testing.T) {
	for _, floor := range []bool{false, true} {
		k := openNew(t, Options{Floor: floor})
		s := newSpace(t)
		p := s.pod(t)
		for i := range 60 {
			w := spec(i, s.inode)
			apply(t, k, dataplane.PodPlan(w), p)
			ended := make(chan *dataplane.Error, 1)
			go func() {
				time.Sleep(time.Duration(i*10) * time.Microsecond) // a little later each time: the moment to hit is short
				_, err := k.Apply(dataplane.PodRemoval(w), nil)
				ended <- err
			}()
			rename := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RenameLink, Alias: w.Alias, Name: fmt.Sprint("other", i)}}}
			for range 4 {
				if _, err := k.Apply(rename, nil); err != nil {
					t.Errorf("floor %v: the link went away meanwhile: %v", floor, err)
				}
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPodRefuses: files that are not what the plugin should pass.
func TestPodRefuses(t *testing.T) {
	needsKernel(t)
	a, b := newSpace(t), newSpace(t)
	pa, pb := a.pod(t), b.pod(t)
	null := must.Get(os.Open(os.DevNull))(t)
	defer null.Close()
	uts := must.Get(os.Open("/proc/self/ns/uts"))(t)
	defer uts.Close()
	for name, files := range map[string][2]*os.File{
		"nothing":                        {nil, nil},
		"a file that is no namespace":    {null, pa.rtnetlink},
		"another kind of namespace":      {uts, pa.rtnetlink},
		"a file that is no socket":       {pa.netns, null},
		"a socket in another namespace":  {pa.netns, pb.rtnetlink},
		"a namespace that is not theirs": {pb.netns, pa.rtnetlink},
	} {
		if _, err := NewPod(files[0], files[1]); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

// TestFlushForgetsFlowsOfOneAddress: the flows of an address are forgotten, whichever side it is on, and no others.
func TestFlushForgetsFlowsOfOneAddress(t *testing.T) {
	for _, filters := range []bool{true, false} {
		t.Run(fmt.Sprintf("filters=%v", filters), func(t *testing.T) {
			s := newSite(t, Options{Floor: !filters})
			for i, a := range []string{firstPod, secondPod} {
				s.serve(s.pods[i], a+":80")
			}
			s.serve(s.router, peerAddress+":80")
			for i, a := range []string{firstPod, secondPod} {
				s.sees("out", s.pods[i], "", peerAddress+":80", a)
				s.sees("in", s.router, internet, a+":80", internet)
			}
			before, err := s.k.countFlows()
			must.Do(t, err)
			apply(t, s.k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack, Addr: netip.MustParseAddr(firstPod)}}}, nil)
			after := must.Get(s.k.countFlows())(t)
			if before != 4 || after != 2 || s.k.filters != filters {
				t.Errorf("flows: %d, then %d; expected 4, then 2; filters: %v", before, after, s.k.filters)
			}
			others := dataplane.Plan{}
			for i := range 2 * walkable { // more than the kernel walks for one by one
				others.Ops = append(others.Ops, dataplane.Op{Kind: dataplane.FlushConntrack, Addr: netip.AddrFrom4([4]byte{10, 0, 99, byte(i)})})
			}
			apply(t, s.k, others, nil)
			if after, err = s.k.countFlows(); err != nil || after != 2 {
				t.Errorf("flows: %d, %v; expected those of the second pod, 2", after, err)
			}
			second := []netip.Addr{netip.MustParseAddr(secondPod)}
			must.Do(t, s.k.flushSides(second, ctaTupleOriginal)) // as on a busy node
			must.Do(t, s.k.flushSides(second, ctaTupleReply))
			if after, err = s.k.countFlows(); err != nil || after != 0 {
				t.Errorf("flows: %d, %v; expected none", after, err)
			}
			s.sees("out again", s.pods[1], "", peerAddress+":80", secondPod)
			others.Ops[walkable].Addr = second[0]
			apply(t, s.k, others, nil)
			if after, err = s.k.countFlows(); err != nil || after != 0 {
				t.Errorf("flows: %d, %v; expected none: the second pod's address was among those of one plan", after, err)
			}
			if _, err := s.k.Apply(dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack}}}, nil); err == nil {
				t.Error("the flows of no address at all were forgotten")
			}
		})
	}
}

// TestReplacedAddress: the routes of an ENI survive a change of its address.
func TestReplacedAddress(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth1", secondaryMAC, "r1")
	w := dataplane.ENISpec{MAC: secondaryMAC, Device: 1, Primary: netip.MustParseAddr("10.0.20.10"), Subnet: netip.MustParsePrefix("10.0.20.0/24"), Table: 2}
	apply(t, k, dataplane.ENIPlan(w), nil)
	w.Primary = netip.MustParseAddr("10.0.20.11")
	o := observe(t, k)
	repair := dataplane.RepairENI(w, o.Index())
	apply(t, k, repair, nil)
	if o = observe(t, k); !dataplane.RepairENI(w, o.Index()).Empty() {
		t.Errorf("after\n%sstill to be done:\n%s", repair, dataplane.RepairENI(w, o.Index()))
	}
}
