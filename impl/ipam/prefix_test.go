package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// ofPrefix has a pool take a prefix of its ENI, with all sixteen addresses free, and returns their slots.
func ofPrefix(p *pool, prefix string) (ix []int32) {
	for ip := range addressesOf(netip.MustParsePrefix(prefix)) {
		p.adopt(0, ip, 0, true)
		p.free(p.byAddress[ip])
		ix = append(ix, p.byAddress[ip])
	}
	return ix
}

// TestPodsArePacked: of prefixes the one of which most is in use is filled first, so that the others become free; what cools
// counts less than what somebody has. Single addresses come last, and first where the node has no prefixes.
func TestPodsArePacked(t *testing.T) {
	p := newPool()
	p.Set.PrefixDelegation, p.Inst.Limits.Prefixes = true, true
	single := netip.MustParseAddr("10.0.0.10")
	p.adopt(0, single, 0, false)
	p.free(p.byAddress[single])
	a, b, c := ofPrefix(p, "10.0.0.16/28"), ofPrefix(p, "10.0.0.32/28"), ofPrefix(p, "10.0.0.48/28")
	for _, i := range []int32{b[3], b[7], c[0]} {
		p.become(i, Assigned)
	}
	for _, i := range a[:8] {
		p.become(i, Assigned)
		p.become(i, Cooling)
	}
	var from []netip.Prefix
	for range 14 + 15 + 8 {
		ix, ok := p.pick()
		if !ok {
			t.Fatal("no address is given")
		}
		p.become(ix, Assigned)
		if last := prefixOf(p.Addrs[ix].IP); len(from) == 0 || from[len(from)-1] != last {
			from = append(from, last)
		}
	}
	want := []netip.Prefix{prefixOf(p.Addrs[b[0]].IP), prefixOf(p.Addrs[c[0]].IP), prefixOf(p.Addrs[a[0]].IP)}
	if !slices.Equal(from, want) {
		t.Errorf("prefixes are filled in the order %v, expected %v", from, want)
	}
	if ix, ok := p.pick(); !ok || p.Addrs[ix].IP != single {
		t.Errorf("then comes %v, %t; expected %v", p.Addrs[ix].IP, ok, single)
	}
	p.Set.PrefixDelegation = false
	p.become(p.byAddress[single], Assigned)
	p.free(p.byAddress[single])
	p.free(b[0])
	if ix, ok := p.pick(); !ok || p.Addrs[ix].IP != single {
		t.Errorf("without the setting %v comes first, %t; expected %v", p.Addrs[ix].IP, ok, single)
	}
}

// TestPrefixesAreCounted: as places of an ENI, and as whole ones, through all that happens to an address of one.
func TestPrefixesAreCounted(t *testing.T) {
	p := newPool()
	p.adopt(0, netip.MustParseAddr("10.0.0.10"), 0, false)
	ix := ofPrefix(p, "10.0.0.16/28")
	ofPrefix(p, "10.0.0.32/28")
	expect := func(when string, want blocked) {
		t.Helper()
		if got := p.enis.ENIs[0].blocked; got != want {
			t.Errorf("%s: %+v, expected %+v", when, got, want)
		}
		before := p.enis.ENIs[0].blocked
		p.rebuildBlocks()
		if got := p.enis.ENIs[0].blocked; got != before {
			t.Errorf("%s: %+v, counted anew %+v", when, before, got)
		}
	}
	expect("two prefixes", blocked{blocks: 2, addresses: 32, free: 32, whole: 2})
	p.become(ix[4], Assigned)
	expect("one has a pod", blocked{blocks: 2, addresses: 32, free: 31, whole: 1})
	p.rest(0, ix[4], true)
	expect("its address cools", blocked{blocks: 2, addresses: 32, free: 31, whole: 1})
	p.free(ix[4])
	expect("it has cooled", blocked{blocks: 2, addresses: 32, free: 32, whole: 2})
	p.place(ix[4], -1)
	expect("EC2 has taken one away", blocked{blocks: 2, addresses: 31, free: 31, whole: 1})
	p.forget(ix[4])
	for _, i := range append(slices.Clone(ix[:4]), ix[5:]...) {
		p.forget(i)
	}
	expect("one prefix is gone", blocked{blocks: 1, addresses: 16, free: 16, whole: 1})
}

// TestOfAPrefixAllSixteenGo: addresses of a prefix go together.
func TestOfAPrefixAllSixteenGo(t *testing.T) {
	p := newPool()
	all := slices.Collect(addressesOf(netip.MustParsePrefix("10.0.0.16/28")))
	some := append(slices.Clone(all), netip.MustParseAddr("10.0.0.40"))
	if got := p.wholly(some); !slices.Equal(got, all) {
		t.Errorf("of %v go %v, expected %v", some, got, all)
	}
	if got := prefixesOf(some); len(got) != 2 || got[1] != netip.MustParsePrefix("10.0.0.32/28") {
		t.Errorf("%v are of %v", some, got)
	}
}

func TestWarmPrefixes(t *testing.T) {
	on := func(target int) Settings {
		return Settings{WarmENITarget: 1, PrefixDelegation: true, WarmPrefixTarget: target}
	}
	ips := func(warm, least int) Settings {
		return Settings{PrefixDelegation: true, WarmPrefixTarget: 1, WarmIPTarget: warm, MinimumIPTarget: least}
	}
	some := func(free int) Delegation { return Delegation{On: true, Free: free} }
	bare := Delegation{On: true, Bare: true}
	for _, c := range []struct {
		name string
		in   Supply
		want Want
	}{
		{"an empty node", Supply{Settings: on(1), Prefixes: some(0)}, Want{More: 16}},
		{"one is free", Supply{Settings: on(1), Prefixes: some(1), Free: 16}, Want{}},
		{"it has a pod", Supply{Settings: on(1), Prefixes: some(0), Free: 15, Assigned: 1}, Want{More: 16}},
		{"two have room for as many", Supply{Settings: on(1), Prefixes: some(0), Free: 16, Assigned: 16}, Want{}},
		{"one is under way", Supply{Settings: on(1), Prefixes: some(0), Free: 1, Coming: 16, Assigned: 15}, Want{}},
		{"pods wait", Supply{Settings: on(1), Prefixes: some(0), Waiting: 20, Assigned: 16}, Want{More: 36}},
		{"two are asked for, as none is whole", Supply{Settings: on(2), Prefixes: some(0), Free: 31, Assigned: 1}, Want{More: 32}},
		{"two are too many", Supply{Settings: on(1), Prefixes: some(3), Free: 50, Assigned: 14}, Want{Less: 32}},
		{"pods wait for what cools", Supply{Settings: on(0), Prefixes: some(2), Free: 32, Waiting: 1}, Want{}},
		{"no target keeps an address", Supply{Settings: on(0), Prefixes: some(1), Free: 16}, Want{}},
		{"no target keeps no more", Supply{Settings: on(0), Prefixes: some(2), Free: 33, Assigned: 15}, Want{Less: 32}},
		{"no target, and none is free", Supply{Settings: on(0), Prefixes: some(0), Assigned: 16}, Want{More: 16 - 15}},
		{"max pods", Supply{Settings: Settings{PrefixDelegation: true, WarmPrefixTarget: 1, MaxPods: 20}, Prefixes: some(0), Free: 4, Assigned: 12}, Want{More: 4}},
		{"none to be had", Supply{Settings: on(1), Prefixes: bare, Free: 10, Assigned: 20}, Want{More: 6}},
		{"none to be had, and too many", Supply{Settings: on(1), Prefixes: bare, Free: 40}, Want{Less: 24}},

		{"WARM_IP_TARGET", Supply{Settings: ips(5, 0), Prefixes: some(0), Free: 4, Assigned: 12}, Want{More: 1}},
		{"WARM_IP_TARGET needs the second", Supply{Settings: ips(16, 0), Prefixes: some(1), Free: 31, Assigned: 1}, Want{}},
		{"WARM_IP_TARGET needs one", Supply{Settings: ips(5, 0), Prefixes: some(2), Free: 40, Assigned: 8}, Want{Less: 32}},
		{"none is whole", Supply{Settings: ips(5, 0), Prefixes: some(0), Free: 40, Assigned: 8}, Want{}},
		{"MINIMUM_IP_TARGET", Supply{Settings: ips(0, 30), Prefixes: some(2), Free: 32}, Want{}},
	} {
		if got := warmTargets(c.in); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestIntentsOfPrefixesComeBack: so do rows of addresses that prefixes carry, and a prefix that is none is refused.
func TestIntentsOfPrefixesComeBack(t *testing.T) {
	prefix := netip.MustParsePrefix("10.0.0.16/28")
	in := Row{Intent: &Intent{Token: "t", Stage: Ready, Doing: UnassignIPs, Prefixed: true, Before: slices.Collect(addressesOf(prefix)),
		ENI: ENI{ID: "eni-0", Prefixes: []netip.Prefix{prefix}}}}
	data := must.Get(EncodeLib(0, []Row{in}))(t)
	back, err := DecodeLib(0, data)
	if err != nil || !back[0].Intent.Prefixed || !slices.Equal(back[0].Intent.Before, in.Intent.Before) ||
		!slices.Equal(back[0].Intent.ENI.Prefixes, in.Intent.ENI.Prefixes) {
		t.Errorf("%s came back as %+v, %v", data, back, err)
	}
	for _, bad := range []string{"10.0.0.17/28", "10.0.0.16/27", "fd00::/28"} {
		text := `{"version":"enilab-intents/1","record":2,"intents":[{"token":"t","eni":{"prefixes":["` + bad + `"]}}]}`
		if _, err := DecodeLib(0, []byte(text)); err == nil {
			t.Errorf("a prefix %s is read", bad)
		}
	}
	data = must.Get(EncodeRun(0, 0, []Row{{Address: prefix.Addr(), State: Assigned, Prefixed: true}}))(t)
	if rows, err := DecodeRun(0, 0, data); err != nil || !rows[0].Prefixed {
		t.Errorf("%s came back as %+v, %v", data, rows, err)
	}
}

// TestMaxPodsThatTheModeCannotCarryIsTold: with prefixes an m5.large has room for 110 pods; without, or where the subnet has none, it
// has not, and says so.
func TestMaxPodsThatTheModeCannotCarryIsTold(t *testing.T) {
	for _, c := range []struct {
		name     string
		on, kind bool // the setting, and whether the type has prefixes
		bare     bool
		maxPods  int
		told     bool
	}{
		{"prefixes", true, true, false, 110, false},
		{"more than all of them", true, true, false, 3*9*16 + hostPods + 1, true},
		{"a type without", true, false, false, 110, true},
		{"a type without, and its own number", true, false, false, 3*9 + hostPods, false},
		{"a subnet without", true, true, true, 110, true},
		{"not asked for", false, true, false, 110, false},
		{"not known", true, false, false, 0, false},
	} {
		n := newborn(t)
		n.Set = Settings{PrefixDelegation: c.on, MaxPods: c.maxPods}
		n.Inst.Limits, n.Warm.Bare = Limits{ENIs: 3, Addresses: 10, Prefixes: c.kind}, c.bare
		if got := n.warm.tooMany(); (got != "") != c.told {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// TestAnENIIsNotMadeForWhatAPrefixThatIsInDoubtMayCarry: EC2's older answers lacked two prefixes, of which pods that were just started have
// one address each. Their other 30 addresses are there, or their slots can be had.
func TestAnENIIsNotMadeForWhatAPrefixThatIsInDoubtMayCarry(t *testing.T) {
	for _, c := range []struct{ more, made int }{{7*16 + 1, 0}, {7*16 + 30, 0}, {7*16 + 31, 1}, {16*16 + 31, 2}} {
		p, wp := withPrefixesInDoubt()
		wp.grow(0, c.more, false)
		if e := &p.enis.ENIs[0]; e.Doing != AssignIPs || e.Count != 7 || len(p.enis.ENIs)-1 != c.made {
			t.Errorf("%d addresses more: %d slots and %d further ENIs are asked for, expected 7 and %d", c.more, e.Count, len(p.enis.ENIs)-1, c.made)
		}
	}
}

// withPrefixesInDoubt is a node that has one address each of two prefixes, on an ENI with room for seven more.
func withPrefixesInDoubt() (*pool, *warm) {
	p := newPool()
	p.Set.PrefixDelegation, p.Inst.Limits, p.Set.Discovery = true, Limits{Prefixes: true, Addresses: 10, ENIs: 3}, false
	for _, prefix := range []string{"10.0.0.16/28", "10.0.0.32/28"} {
		for _, i := range ofPrefix(p, prefix)[1:] {
			p.forget(i)
		}
	}
	return p, &warm{life: p.life, requests: p.requests, evidence: p.evidence, subnets: p.enis.subnets, enis: p.enis,
		pool: p}
}

// TestAnENIIsMadeWhereThePrefixThatIsInDoubtIsOfAFullSubnet: what is gone of it cannot be had there again,
// and pods would wait for nothing.
func TestAnENIIsMadeWhereThePrefixThatIsInDoubtIsOfAFullSubnet(t *testing.T) {
	for free, made := range map[int]int{0: 1, 90: 0} {
		p, wp := withPrefixesInDoubt()
		p.enis.ENIs[0].Subnet, p.Inst.Limits.Addresses = "a", 3 // no room on it
		sn := newSubnets(Subnet{ID: "a", Free: free}, Subnet{ID: "b", Free: 99, Role: "1"})
		p.enis.subnets, wp.subnets = sn, sn
		if wp.grow(0, 16, false); len(p.enis.ENIs)-1 != made {
			t.Errorf("%d addresses are free in its subnet: %d ENIs are made, expected %d",
				free, len(p.enis.ENIs)-1, made)
		}
	}
}

// TestSinglesThatGoAreNoPrefixesThatGo: beside sixteen addresses that are given back one by one, a whole prefix stays
// for pods to come.
func TestSinglesThatGoAreNoPrefixesThatGo(t *testing.T) {
	for prefixed, want := range map[bool]int{false: 1, true: 0} {
		p, wp := withPrefixesInDoubt()
		ofPrefix(p, "10.0.0.48/28")
		e := &p.enis.ENIs[0]
		e.Trimming, e.Prefixed, e.Before = true, prefixed, make([]netip.Addr, prefixSize)
		if _, whole := wp.spare(e); whole != want {
			t.Errorf("prefixes go: %v; %d prefixes are spare, expected %d", prefixed, whole, want)
		}
	}
}

// TestTheNodeWakesWhenPrefixesMayBeHadAgain, and says until then that there are none.
func TestTheNodeWakesWhenPrefixesMayBeHadAgain(t *testing.T) {
	for now, want := range map[time.Duration]time.Duration{time.Minute: bareAfter, bareAfter: never} {
		p, wp := withPrefixesInDoubt()
		p.Warm.At = never
		p.Warm.bare(0)
		if wp.tellPrefixes(now, 0); p.Warm.At != want || (p.Troubles[troublePrefixes] != "") != (want != never) {
			t.Errorf("at %v it wakes at %v, expected %v; it says %q", now, p.Warm.At, want, p.Troubles[troublePrefixes])
		}
	}
}

// TestPrefixesOfAFullSubnetStay: with the mode switched off they would go for addresses that are not to be had.
func TestPrefixesOfAFullSubnetStay(t *testing.T) {
	for free, stays := range map[int]bool{0: true, 9: false} {
		p := newPool()
		ofPrefix(p, "10.0.0.16/28")
		p.Inst.Limits = Limits{Prefixes: true, Addresses: 10, ENIs: 3}
		p.enis.ENIs[0].Subnet, p.enis.ENIs[0].Next = "a", never
		p.enis.subnets = newSubnets(Subnet{ID: "a", Free: free}, Subnet{ID: "b", Free: 9, Role: "1"})
		wp := &warm{life: p.life, requests: p.requests, evidence: p.evidence, subnets: p.enis.subnets, enis: p.enis, pool: p}
		wp.driver = &driver{life: p.life, ledger: p.ledger, evidence: p.evidence, subnets: p.enis.subnets, enis: p.enis, pool: p}
		has, _ := wp.spare(&p.enis.ENIs[0])
		wp.turn(time.Minute)
		if goes := p.enis.ENIs[0].Trimming; goes == stays || has == 16 != stays {
			t.Errorf("%d addresses are free in its subnet: a prefix goes: %v, and counts for %d", free, goes, has)
		}
	}
}
