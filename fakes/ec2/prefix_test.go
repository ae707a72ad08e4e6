package ec2

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// A prefix takes one place of the interface's and sixteen addresses of the subnet's, is a block on its own boundary, and goes back
// whole.
func TestPrefixes(t *testing.T) {
	w, i := launched(t)
	e := w.AttachedENIs(i)[0]
	free := w.FreeAddresses(plenty)
	p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 3})
	if len(p.Prefixes) != 3 || len(p.Assigned) != 0 {
		t.Fatalf("%+v", p)
	}
	for _, q := range p.Prefixes {
		if q != q.Masked() || q.Bits() != 28 || !cidr("10.0.0.0/24").Contains(q.Addr()) {
			t.Errorf("%v is no block of the subnet", q)
		}
		last := netip.PrefixFrom(q.Addr(), 28).Addr()
		for range 15 {
			last = last.Next()
		}
		if id, ok := w.HasAddress(i, last); !ok || id != e {
			t.Errorf("the last address of %v is not the interface's", q)
		}
	}
	if got := w.FreeAddresses(plenty); got != free-48 {
		t.Errorf("%d free, want %d", got, free-48)
	}
	if v := w.eni(e); !slices.Equal(v.Prefixes, p.Prefixes) || len(v.Secondaries) != 0 {
		t.Errorf("%+v", v)
	}
	if v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]; !slices.Equal(v.Prefixes, p.Prefixes) {
		t.Errorf("described: %v", v.Prefixes)
	}
	if v := w.view(i).ENIs[0]; !slices.Equal(v.Prefixes, p.Prefixes) || len(v.Addresses) != 1 {
		t.Errorf("metadata: %+v", v)
	}
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 6})
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1}, codeAddressLimit)
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 1}, codeAddressLimit)
	w.refused(Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{p.Prefixes[0].Addr()}}, codeValue)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Prefixes: p.Prefixes[:2]})
	if v := w.eni(e); !slices.Equal(v.Prefixes, p.Prefixes[2:]) {
		t.Errorf("left: %v", v.Prefixes)
	}
	w.wait(time.Minute)
	if got := w.FreeAddresses(plenty); got != free-16-6 {
		t.Errorf("%d free, want %d", got, free-16-6)
	}
	balance(t, w.Cloud)
}

func TestIPv6(t *testing.T) {
	w, i := launched(t)
	e := w.AttachedENIs(i)[0]
	six := w.Subnets()[0].IPv6
	a := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 3})
	p := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6PrefixCount: 2})
	if len(a.Assigned) != 3 || len(p.Prefixes) != 2 || len(a.Prefixes)+len(p.Assigned) != 0 {
		t.Fatalf("%+v %+v", a, p)
	}
	for _, x := range a.Assigned {
		if id, on, ok := w.OwnerOf(x); !six.Contains(x) || !ok || id != e || on != i {
			t.Errorf("%v of %v belongs to %s", x, six, id)
		}
	}
	for _, q := range p.Prefixes {
		if id, ok := w.HasAddress(i, q.Addr().Next()); q.Bits() != 80 || q != q.Masked() || !six.Contains(q.Addr()) || !ok || id != e {
			t.Errorf("%v of %v belongs to %s", q, six, id)
		}
	}
	v, m, d := w.eni(e), w.view(i).ENIs[0], w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]
	for name, got := range map[string][2]any{"truth": {v.IPv6, v.IPv6Prefixes}, "metadata": {m.IPv6, m.IPv6Prefixes}, "described": {d.IPv6, d.IPv6Prefixes}} {
		if !slices.Equal(got[0].([]netip.Addr), a.Assigned) || !slices.Equal(got[1].([]netip.Prefix), p.Prefixes) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if m.SubnetIPv6 != six {
		t.Errorf("metadata's subnet: %v", m.SubnetIPv6)
	}
	w.refused(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 6}, codeAddressLimit)
	w.do(Request{Action: UnassignIpv6Addresses, ENI: e, IPv6: a.Assigned[1:2], IPv6Prefixes: p.Prefixes[1:]})
	if v := w.eni(e); !slices.Equal(v.IPv6, []netip.Addr{a.Assigned[0], a.Assigned[2]}) || !slices.Equal(v.IPv6Prefixes, p.Prefixes[:1]) {
		t.Errorf("left: %v %v", v.IPv6, v.IPv6Prefixes)
	}
	w.wait(time.Minute)
	balance(t, w.Cloud)
	w.Terminate(w.now, i)
	w.wait(time.Minute)
	balance(t, w.Cloud)
	if s := &w.subnets[0].six; len(s.owner)+len(s.blocks)+len(s.held) != 0 {
		t.Errorf("what an interface had is not free after its end: %+v", s)
	}
}

// Addresses here and there leave no block for a prefix, however many are free; when those of one block are given back, and have rested,
// there is one.
func TestFragmentation(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.FreedAddress = Always(2 * time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	var scattered []netip.Addr
	for k := range 14 {
		scattered = append(scattered, netip.AddrFrom4([4]byte{10, 0, 0, byte(16*(k+1) + 7)}))
	}
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: append([]netip.Addr{ip("10.0.0.9")}, scattered...)}).ENI.ID
	if free, blocks := w.FreeAddresses(plenty), w.FreePrefixes(plenty); free != 236 || blocks != 0 {
		t.Fatalf("%d addresses and %d blocks are free", free, blocks)
	}
	one := Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1}
	w.refused(one, codeNoBlocks)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: scattered[4:5]})
	w.wait(1999 * time.Millisecond)
	w.refused(one, codeNoBlocks)
	w.wait(time.Millisecond)
	if p := w.do(one); p.Prefixes[0] != cidr("10.0.0.80/28") {
		t.Errorf("%v", p.Prefixes)
	}
	w.refused(one, codeNoBlocks)
	if w.FreePrefixes("subnet-x") != -1 {
		t.Error("an unknown subnet has prefixes")
	}
	balance(t, w.Cloud)
}

// A block that was given back is not the next one to be given away.
func TestPrefixesComeBackLate(t *testing.T) {
	w := newWorld(t)
	e := w.create(plenty, 0)
	seen := map[netip.Prefix]int{}
	for k := range 28 {
		p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1}).Prefixes
		if before, again := seen[p[0]]; again && k-before < 10 {
			t.Errorf("%v was given away again after %d others", p[0], k-before)
		}
		seen[p[0]] = k
		w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Prefixes: p})
		w.wait(time.Second)
	}
}

// Prefixes and IPv6 show as late as secondary addresses do, and a stale Describe does not know them.
func TestExtrasLag(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.IMDSAttach, cfg.Lag.IMDSPartial, cfg.Lag.IMDSAddress = Always(3*time.Second), Always(2*time.Second), Always(time.Second)
	cfg.Lag.Describe = Always(2 * time.Second)
	w := &world{Cloud: New(cfg, 5), t: t}
	i := w.launch("m5.large", plenty)
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, PrefixCount: 2, IPv6Count: 2}).ENI
	w.attach(e.ID, i, 1)
	shown := func(at time.Duration, metadata, described int) {
		t.Helper()
		w.now = at
		w.Advance(at)
		if v := w.view(i).ENIs; len(v[1].Prefixes) != metadata || len(v[1].IPv6) != metadata {
			t.Errorf("at %v: metadata shows %v %v, want %d of each", at, v[1].Prefixes, v[1].IPv6, metadata)
		}
		v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e.ID}}).ENIs[0]
		if len(v.Prefixes) != described || len(v.IPv6) != described {
			t.Errorf("at %v: described %v %v, want %d of each", at, v.Prefixes, v.IPv6, described)
		}
	}
	shown(7*time.Second, 0, 2) // complete
	shown(8*time.Second, 2, 2) // with secondaries
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, PrefixCount: 1})
	w.do(Request{Action: AssignIpv6Addresses, ENI: e.ID, IPv6Count: 1})
	shown(8*time.Second, 2, 2)
	shown(9*time.Second, 3, 2)
	shown(10*time.Second, 3, 3)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e.ID, Prefixes: e.Prefixes})
	w.do(Request{Action: UnassignIpv6Addresses, ENI: e.ID, IPv6: e.IPv6})
	shown(10*time.Second, 3, 3)
	shown(11*time.Second, 1, 3)
	shown(12*time.Second, 1, 1)
	for range 40 { // the past is dropped, however often it changes
		p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, PrefixCount: 1})
		w.wait(3 * time.Second)
		w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e.ID, Prefixes: p.Prefixes})
		w.wait(3 * time.Second)
	}
	if n := len(w.enis[w.slotOf(e.ID)].extras); n > 3 {
		t.Errorf("%d versions are kept", n)
	}
	w.do(Request{Action: DetachNetworkInterface, Attachment: w.eni(e.ID).Attachment})
	w.wait(time.Minute)
	w.do(Request{Action: DeleteNetworkInterface, ENI: e.ID})
	if v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e.ID}}).ENIs[0]; len(v.Prefixes) != 1 || len(v.IPv6) != 1 {
		t.Errorf("a replica that does not know of the deletion shows %v %v", v.Prefixes, v.IPv6)
	}
	w.wait(time.Minute)
	balance(t, w.Cloud)
}

// A client token answers with the prefixes and IPv6 addresses of what it made, as it is, and as it last was.
func TestTokenCoversExtras(t *testing.T) {
	w := newWorld(t)
	r := Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t", PrefixCount: 2, IPv6PrefixCount: 1, IPv6Count: 0}
	made := w.do(r).ENI
	check := func() {
		t.Helper()
		if v := w.do(r).ENI; v.ID != made.ID || !slices.Equal(v.Prefixes, made.Prefixes) || !slices.Equal(v.IPv6Prefixes, made.IPv6Prefixes) {
			t.Errorf("made %+v, repeated %+v", made, v)
		}
	}
	check()
	w.do(Request{Action: DeleteNetworkInterface, ENI: made.ID})
	check()
	v := w.do(r).ENI // its slices belong to the reader
	v.Prefixes[0], v.IPv6Prefixes[0] = netip.Prefix{}, netip.Prefix{}
	check()
	balance(t, w.Cloud)
}

// Two VPCs have the same addresses, and each its own owner of them.
func TestOverlappingVPCs(t *testing.T) {
	cfg := exact(Config{
		VPCs: []VPC{{ID: "vpc-1"}, {ID: "vpc-2"}},
		Subnets: []SubnetConfig{{ID: "subnet-1", VPC: "vpc-1", CIDR: cidr("10.0.0.0/24")},
			{ID: "subnet-2", VPC: "vpc-2", CIDR: cidr("10.0.0.0/24")}},
	})
	must.Do(t, cfg.Validate())
	w := &world{Cloud: New(cfg, 1), t: t}
	i, j := w.launch("m5.large", "subnet-1"), w.launch("m5.large", "subnet-2")
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: "subnet-2", Addresses: []netip.Addr{ip("10.0.0.9")}}).ENI.ID
	a := ip("10.0.0.4") // each one's primary
	if v, _ := w.InstanceOf(j); v.PrimaryAddress != a || v.VPC != "vpc-2" {
		t.Fatalf("%+v", v)
	}
	for _, row := range []struct {
		vpc  string
		addr netip.Addr
		eni  ENIID
		on   InstanceID
	}{
		{"vpc-1", a, w.AttachedENIs(i)[0], i}, {"vpc-2", a, w.AttachedENIs(j)[0], j},
		{"vpc-1", ip("10.0.0.9"), "", ""}, {"vpc-2", ip("10.0.0.9"), e, ""},
		{"vpc-3", a, "", ""}, {"", a, "", ""}, {"vpc-1", netip.Addr{}, "", ""},
	} {
		if id, on, ok := w.OwnerIn(row.vpc, row.addr); id != row.eni || on != row.on || ok != (row.eni != "") {
			t.Errorf("%v in %s: %s on %s, %v", row.addr, row.vpc, id, on, ok)
		}
	}
	for _, x := range []InstanceID{i, j} {
		if id, ok := w.HasAddress(x, a); !ok || id != w.AttachedENIs(x)[0] {
			t.Errorf("%s: %s, %v", x, id, ok)
		}
	}
	if id, on, ok := w.OwnerOf(ip("10.0.0.9")); !ok || id != e || on != "" {
		t.Errorf("the only owner of an address: %s on %s, %v", id, on, ok)
	}
}

// What moves to another interface leaves the first one, tells of both, and shows late in both's metadata.
func TestReassign(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.IMDSAddress = Always(time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	i, j := w.launch("m5.large", plenty), w.launch("m5.large", plenty)
	from, to := w.AttachedENIs(i)[0], w.AttachedENIs(j)[0]
	had := w.do(Request{Action: AssignPrivateIpAddresses, ENI: from, SecondaryCount: 3}).Assigned
	kept := w.do(Request{Action: AssignPrivateIpAddresses, ENI: to, SecondaryCount: 8}).Assigned
	w.wait(time.Minute)
	w.Events()
	free := w.FreeAddresses(plenty)
	ask := []netip.Addr{kept[2], had[1]} // one that it has already does not count
	if p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: to, Addresses: ask, AllowReassignment: true, Caller: j}); !slices.Equal(p.Assigned, ask) {
		t.Errorf("assigned %v", p.Assigned)
	}
	if v := w.eni(from).Secondaries; !slices.Equal(v, []netip.Addr{had[0], had[2]}) {
		t.Errorf("left with the first: %v", v)
	}
	if v := w.eni(to).Secondaries; !slices.Equal(v, append(slices.Clone(kept), had[1])) {
		t.Errorf("the second has %v", v)
	}
	if w.FreeAddresses(plenty) != free {
		t.Error("a move changed what is free")
	}
	var kinds []EventKind
	for _, e := range w.Events() {
		kinds = append(kinds, e.Kind)
		if e.Address != had[1] || e.By != j || (e.Instance == i) != (e.Kind == AddressUnassigned) {
			t.Errorf("%+v", e)
		}
	}
	if !slices.Equal(kinds, []EventKind{AddressUnassigned, AddressAssigned}) {
		t.Errorf("events %v", kinds)
	}
	if a, b := w.view(i).ENIs[0].Addresses, w.view(j).ENIs[0].Addresses; len(a) != 4 || len(b) != 9 {
		t.Errorf("metadata at once: %v %v", a, b)
	}
	w.wait(time.Second)
	if a, b := w.view(i).ENIs[0].Addresses, w.view(j).ENIs[0].Addresses; len(a) != 3 || len(b) != 10 {
		t.Errorf("metadata later: %v %v", a, b)
	}
	balance(t, w.Cloud)
}

// Third parties take secondary and IPv6 addresses, and prefixes whole; primaries stay.
func TestThirdPartyUnassign(t *testing.T) {
	w := newWorld(t)
	v := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, PrefixCount: 2, IPv6Count: 2}).ENI
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: v.ID, SecondaryCount: 1})
	x := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, IPv6PrefixCount: 2}).ENI
	w.Events()
	for _, a := range []netip.Addr{v.Primary, w.eni(v.ID).Secondaries[0], v.Prefixes[1].Addr().Next(), v.IPv6[0],
		x.IPv6Prefixes[0].Addr().Next(), ip("2001:db8::1"), ip("10.0.0.200"), {}} {
		w.ThirdPartyUnassign(w.now, a)
	}
	got, left := w.eni(v.ID), w.eni(x.ID)
	if got.Primary != v.Primary || len(got.Secondaries) != 0 || !slices.Equal(got.Prefixes, v.Prefixes[:1]) || !slices.Equal(got.IPv6, v.IPv6[1:]) ||
		!slices.Equal(left.IPv6Prefixes, x.IPv6Prefixes[1:]) {
		t.Errorf("%+v\n%+v", got, left)
	}
	if n := len(w.Events()); n != 4 {
		t.Errorf("%d events", n)
	}
	balance(t, w.Cloud)
}

// With nearly every /80 given away as a prefix an address is still found, in one that is not; with all of them, none.
func TestIPv6NearlyFull(t *testing.T) {
	w := newWorld(t)
	e := w.create(plenty, 0)
	a := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6: []netip.Addr{ip("2001:db8:0:100:1234::5")}}).Assigned[0]
	w.fill6()
	p := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 3}).Assigned
	for _, x := range p {
		block := netip.PrefixFrom(x, 80).Masked()
		if x == a || block != cidr("2001:db8:0:100:1234::/80") && block != cidr("2001:db8:0:100::/80") && block != cidr("2001:db8:0:100:ffff::/80") {
			t.Errorf("%v lies in somebody's prefix", x)
		}
	}
	w.refused(Request{Action: AssignIpv6Addresses, ENI: e, IPv6PrefixCount: 1}, codeNoBlocks)
	w.subnets[0].six.takeBlock(0, addressThirdParty)
	w.subnets[0].six.takeBlock(1<<16-1, addressThirdParty)
	w.do(Request{Action: UnassignIpv6Addresses, ENI: e, IPv6: append(p, a)})
	w.wait(time.Minute)
	w.fill6()
	w.refused(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 1}, codeSubnetFull)
}

// The last two /80s are two, also when they are asked for at once.
func TestLastIPv6Prefixes(t *testing.T) {
	w := newWorld(t)
	e := w.create(plenty, 0)
	w.fill6()
	last := []netip.Prefix{cidr("2001:db8:0:100:1234::/80"), cidr("2001:db8:0:100:4321::/80")}
	for _, p := range last {
		low, _ := w.subnets[0].six.low(p.Addr())
		w.subnets[0].six.setBlock(blockOf(low), block6{})
	}
	w.refused(Request{Action: AssignIpv6Addresses, ENI: e, IPv6PrefixCount: 3}, codeNoBlocks)
	got := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6PrefixCount: 2}).Prefixes
	if !slices.Contains(got, last[0]) || !slices.Contains(got, last[1]) {
		t.Errorf("%v, want %v", got, last)
	}
	balance(t, w.Cloud)
}

// Two changes in a row never show out of order in metadata, however their lags are drawn; and a replica that is between them shows what
// was between them.
func TestExtrasKeepTheOrderOfChanges(t *testing.T) {
	shown := func(w *world, i InstanceID) int { return len(w.view(i).ENIs[0].IPv6) }
	inOrder(t, Request{Action: AssignIpv6Addresses, IPv6Count: 1}, shown)

	cfg := exact(testConfig())
	cfg.Lag.Describe = Always(2 * time.Second)
	w := &world{Cloud: New(cfg, 9), t: t}
	e := w.AttachedENIs(w.launch("c5.4xlarge", plenty))[0]
	for range 6 {
		w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1})
		w.wait(500 * time.Millisecond)
	}
	w.wait(750 * time.Millisecond)
	if v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]; len(v.Prefixes) != 4 {
		t.Errorf("2.25 s after the fourth prefix of six a replica that is 2 s behind shows %d", len(v.Prefixes))
	}
}

// An instance may have prefixes from its launch, as many as its interface has room for, and metadata shows them at once.
func TestLaunchWithPrefixes(t *testing.T) {
	w := newWorld(t)
	free := w.FreeAddresses(plenty)
	i := must.Get(w.Launch(w.now, LaunchSpec{Type: "m5.large", Subnet: plenty, SecondaryAddresses: 2, Prefixes: 4}))(t)
	v := w.eni(w.AttachedENIs(i)[0])
	if len(v.Prefixes) != 4 || len(v.Secondaries) != 2 || !slices.Equal(w.view(i).ENIs[0].Prefixes, v.Prefixes) {
		t.Errorf("launched with %+v", v)
	}
	for _, p := range v.Prefixes {
		if id, ok := w.HasAddress(i, p.Addr()); !ok || id != v.ID || p.Contains(v.Primary) {
			t.Errorf("%v is not the interface's, or holds its primary address", p)
		}
	}
	if got := w.FreeAddresses(plenty); got != free-1-2-4*16 {
		t.Errorf("%d free, of %d", got, free)
	}
	if _, err := w.Launch(w.now, LaunchSpec{Type: "m5.large", Subnet: plenty, SecondaryAddresses: 2, Prefixes: 8}); err == nil {
		t.Error("an interface has more prefixes than its type has room for")
	}
	balance(t, w.Cloud)
}

// TestAStaleReadOfPrefixes shows some state that was, also where the one of that instant is not kept any more: never that there was nothing.
func TestAStaleReadOfPrefixes(t *testing.T) {
	w, i := launched(t)
	e := w.AttachedENIs(i)[0]
	var first netip.Prefix
	for n := range 3 {
		p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1}).Prefixes
		if n == 0 {
			first = p[0]
		}
		w.wait(time.Minute)
	}
	for by := 10 * time.Second; by < 170*time.Second; by += 10 * time.Second {
		w.Fault(Fault{Kind: StaleReads, By: by, Times: 1})
		if v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]; !slices.Contains(v.Prefixes, first) {
			t.Errorf("%v ago the interface had %v", by, v.Prefixes)
		}
	}
}
