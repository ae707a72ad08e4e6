package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// How the node's ENIs, their slots and what is said of them go on, one turn at a time.

// TestWhatIsOnItsWayToAnENI: what it is asked for with; until it is in service also what EC2 lists on it, less what
// pods have of that; and what is being assigned.
func TestWhatIsOnItsWayToAnENI(t *testing.T) {
	ips := slices.Collect(addressesOf(netip.MustParsePrefix("10.0.0.16/28")))
	lists := func(n int) ENI { return ENI{Addresses: ips[:n]} }
	has := func(free, assigned int) (h [Quarantined + 1]int) {
		h[Free], h[Assigned] = free, assigned
		return h
	}
	for _, c := range []struct {
		what string
		e    eni
		want int
	}{
		{"intended", eni{Stage: Intended, mutation: mutation{Count: 3}}, 3},
		{"intended with prefixes", eni{Stage: Intended, mutation: mutation{Count: 3, Prefixed: true}}, 3 * prefixSize},
		{"asked for", eni{Stage: Intended, mutation: mutation{Doing: CreateENI, Count: 3}}, 3},
		{"asked for otherwise", eni{Stage: Intended, mutation: mutation{Doing: AssignIPs, Count: 3}}, 3},
		{"made", eni{Stage: Created, ENI: lists(4)}, 4},
		{"attached again", eni{Stage: Created, ENI: lists(6), Has: has(2, 3)}, 3},
		{"attached again, and EC2 lists less", eni{Stage: Attached, ENI: lists(3), Has: has(2, 4)}, 2},
		{"attached, and assigned to", eni{Stage: Attached, ENI: lists(4), mutation: mutation{Doing: AssignIPs, Count: 2}},
			6},
		{"attached, and modified", eni{Stage: Attached, ENI: lists(4), mutation: mutation{Doing: ModifyENI, Count: 2}}, 4},
		{"in service", eni{Stage: Ready, ENI: lists(4), Has: has(4, 0)}, 0},
		{"in service, and assigned to", eni{Stage: Ready, mutation: mutation{Doing: AssignIPs, Count: 2}}, 2},
		{"prefixes are assigned", eni{Stage: Ready, mutation: mutation{Doing: AssignIPs, Count: 2, Prefixed: true}},
			2 * prefixSize},
	} {
		if got := c.e.coming(); got != c.want {
			t.Errorf("%s: %d come, expected %d", c.what, got, c.want)
		}
	}
}

// TestWhenAddressesAreOnTheirWay: pods that wait are told so.
func TestWhenAddressesAreOnTheirWay(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		want  bool
	}{
		{"at rest", func(*Node) {}, false},
		{"EC2 has not said what is attached", func(n *Node) { n.Surveyed = false }, true},
		{"nor is it asked", func(n *Node) { n.Surveyed, n.Deaf = false, true }, false},
		{"it does not say", func(n *Node) { n.Surveyed, n.evidence.Looks[LookAttached].Fails = false, 3 }, false},
		{"it may say yet", func(n *Node) { n.Surveyed, n.evidence.Looks[LookAttached].Fails = false, 2 }, true},
		{"EC2 is asked whose an ENI is", func(n *Node) { n.evidence.Others = []other{{ID: "eni-9"}} }, true},
		{"EC2 is asked for the subnets", func(n *Node) { n.subnets.Awaited = true }, true},
		{"an ENI is on its way", func(n *Node) { n.ENIs[1].Stage = Attached }, true},
		{"another's is", func(n *Node) { n.ENIs[1].Stage, n.ENIs[1].Foreign = Attached, true }, false},
		{"an ENI drains", func(n *Node) { n.ENIs[1].Stage = Draining }, false},
		{"EC2 assigns", func(n *Node) { n.ENIs[1].Doing = AssignIPs }, true},
		{"EC2 unassigns", func(n *Node) { n.ENIs[1].Doing = UnassignIPs }, false},
		{"it was being assigned to, and drains", func(n *Node) {
			n.ENIs[1].Stage, n.ENIs[1].Doing = Draining, AssignIPs
		}, false},
		{"an empty slot", func(n *Node) { n.ENIs[1] = eni{mutation: mutation{Doing: AssignIPs}} }, false},
		{"a new address is inspected", func(n *Node) {
			n.pool.adopt(0, netip.MustParseAddr("10.0.0.30"), 0, false)
		}, true},
		{"a pod's cools", func(n *Node) { n.pool.rest(0, assigned(n, 0), true) }, false},
		{"it cools no more", func(n *Node) { n.pool.Cooling = []int32{0} }, false},
		{"a pod's cools, and then a new one", func(n *Node) {
			n.pool.rest(0, assigned(n, 0), true)
			n.pool.adopt(0, netip.MustParseAddr("10.0.0.30"), 0, false)
		}, true},
	} {
		n := quiet(t, "10.0.0.20")
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Linked: true})
		n.Surveyed, n.pool.Cooling = true, nil
		if c.spoil(n); n.pool.growing() != c.want {
			t.Errorf("%s: %v", c.what, n.pool.growing())
		}
	}
}

// TestWhichAddressesArePrimary: the instance's, and that of each ENI. Their rules are the node's.
func TestWhichAddressesArePrimary(t *testing.T) {
	n := quiet(t, "10.0.0.20")
	n.Inst.Address = netip.MustParseAddr("10.0.0.4")
	n.ENIs[0].Primary = netip.MustParseAddr("10.0.0.5")
	n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Primary: netip.MustParseAddr("10.0.0.6")}, Stage: Draining})
	n.ENIs = append(n.ENIs, eni{ENI: ENI{Primary: netip.MustParseAddr("10.0.0.7")}})
	for ip, want := range map[string]bool{"10.0.0.4": true, "10.0.0.5": true, "10.0.0.6": true, "10.0.0.7": false,
		"10.0.0.20": false} {
		if got := n.enis.isPrimary(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
}

// TestWhenAnotherSubnetMayHelp: where this one is full, and where an ENI cannot be made in it.
func TestWhenAnotherSubnetMayHelp(t *testing.T) {
	for _, c := range []struct {
		class        Class
		made, filled bool // a further ENI, and one that is there
	}{{SubnetFull, true, true}, {Denied, true, false}, {NotFound, true, false}, {Invalid, true, false},
		{Limit, false, false}, {Throttled, false, false}, {Unavailable, false, false}, {InUse, false, false},
		{OK, false, false}} {
		p := Sound()
		if made, filled := p.Switches(CreateENI, c.class), p.Switches(AssignIPs, c.class); made != c.made ||
			filled != c.filled {
			t.Errorf("%v: %v and %v, expected %v and %v", c.class, made, filled, c.made, c.filled)
		}
	}
}

// TestTheSlotOfAPrefixIsUsedAgain, also the first one.
func TestTheSlotOfAPrefixIsUsedAgain(t *testing.T) {
	for gone := range 2 {
		p := newPool()
		lists := [][]int32{ofPrefix(p, "10.0.0.16/28"), ofPrefix(p, "10.0.0.32/28")}
		for _, i := range lists[gone] {
			p.forget(i)
		}
		for i, ix := range ofPrefix(p, "10.0.0.48/28") {
			if b := p.blockOf(&p.Addrs[ix]); b != &p.blocks[gone] || i == 15 && b.Has[Free] != prefixSize {
				t.Fatalf("slot %d is empty, and the block of address %d is %+v", gone, i, *b)
			}
		}
		if e := &p.enis.ENIs[0]; len(p.blocks) != 2 || e.blocks != 2 || e.whole != 2 || e.blocked.addresses != 32 {
			t.Errorf("slot %d: %d blocks, of the ENI %+v", gone, len(p.blocks), e.blocked)
		}
	}
}

// TestAPrefixThatMovesIsCountedOnBothENIs, until all its addresses are on one.
func TestAPrefixThatMovesIsCountedOnBothENIs(t *testing.T) {
	p := newPool()
	on := p.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready})
	for i, ix := range ofPrefix(p, "10.0.0.16/28") {
		p.place(ix, on)
		from, to := &p.enis.ENIs[0].blocked, &p.enis.ENIs[on].blocked
		if from.addresses != 15-i || to.addresses != i+1 || to.blocks != 1 || (from.blocks == 1) != (i < 15) {
			t.Fatalf("%d have moved: %+v and %+v", i+1, *from, *to)
		}
	}
}

// TestADetachedENIHasItsSurplusNoMore: EC2 has taken it back, and another try to attach it begins anew.
func TestADetachedENIHasItsSurplusNoMore(t *testing.T) {
	prefixes := []netip.Prefix{netip.MustParsePrefix("10.0.2.0/28"), netip.MustParsePrefix("10.0.2.16/28")}
	singles := []netip.Addr{netip.MustParseAddr("10.0.0.20"), netip.MustParseAddr("10.0.0.21")}
	for _, prefixed := range []bool{false, true} {
		n := quiet(t)
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Addresses: singles, Prefixes: prefixes}, Stage: Created,
			mutation: mutation{Doing: UnassignIPs, Prefixed: prefixed, Barred: 3}})
		n.pool.adopt(0, singles[0], ix, false)
		n.pool.adopt(0, singles[1], ix, false)
		e := &n.ENIs[ix]
		if e.Before = singles[1:]; prefixed {
			e.Before = slices.Collect(addressesOf(prefixes[0]))
		}
		if n.driver.lightened(time.Minute, ix); e.Before != nil || e.Prefixed || e.Barred != 0 {
			t.Errorf("prefixes %v: it is still about %v, refused %d times", prefixed, e.Before, e.Barred)
		}
		want, left := singles[:1], prefixes
		if prefixed {
			want, left = singles, prefixes[1:]
		}
		if !slices.Equal(e.Addresses, want) || !slices.Equal(e.Prefixes, left) || n.pool.Count[Cooling] != len(want) {
			t.Errorf("prefixes %v: it has %v and %v, and the books %d", prefixed, e.Addresses, e.Prefixes,
				n.pool.Count[Cooling])
		}
	}
	if singles[1] != netip.MustParseAddr("10.0.0.21") || prefixes[1].Addr() != netip.MustParseAddr("10.0.2.16") {
		t.Error("what others hold has changed")
	}
}

// TestWhatEC2SaysOfAnENIOnItsWay: ours goes on, and is asked about until it has a link; one that is detached begins
// anew; one that another interface has is ours no more.
func TestWhatEC2SaysOfAnENIOnItsWay(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what   string
		e      eni
		status string
		ours   bool
		want   Stage
		since  time.Duration
		next   time.Duration
		asked  time.Duration // about it again
		doing  Action
	}{
		{what: "attached, by a call of ours", e: eni{Stage: Created, mutation: mutation{Doing: AttachENI, Barred: 2}},
			ours: true, want: Attached, since: now, next: now, asked: now + detachPause, doing: AttachENI},
		{what: "attached, and its link is there", e: eni{Stage: Created, Linked: true}, ours: true, want: Attached,
			since: now, next: now, asked: never},
		{what: "attached for a while without a link", e: eni{Stage: Attached, Since: now - time.Minute}, ours: true,
			want: Attached, since: now - time.Minute, next: now, asked: now + 15*time.Second},
		{what: "attached for a moment", e: eni{Stage: Attached, Since: now - 4*time.Second}, ours: true,
			want: Attached, since: now - 4*time.Second, next: now, asked: now + detachPause},
		{what: "assigned to", e: eni{Stage: Attached, Linked: true, Since: 1, mutation: mutation{Doing: AssignIPs}},
			ours: true, want: Attached, since: 1, next: now, asked: never, doing: ModifyENI},
		{what: "detached", e: eni{Stage: Attached, Since: 1, mutation: mutation{Next: never}}, status: "available",
			want: Created, since: 1, next: now, asked: never},
		{what: "not attached yet", e: eni{Stage: Created, Since: 1, mutation: mutation{Next: now + 1}},
			status: "available", want: Created, since: 1, next: now + 1, asked: never},
		{what: "not attached, and due", e: eni{Stage: Created, Since: 1, mutation: mutation{Next: 1}},
			status: "available", want: Created, since: 1, next: now, asked: never},
		{what: "being detached", e: eni{Stage: Attached, Since: 1}, status: "detaching", want: Attached, since: 1,
			asked: now + detachPause},
		{what: "another's", e: eni{Stage: Attached}, status: "in-use"},
	} {
		n := quiet(t)
		c.e.ID, c.e.Lost, c.e.Trimming, c.e.ByEC2 = "eni-1", true, true, 1
		ix := n.enis.newENI(c.e)
		n.survey.resolveRising(now, ix, &ENI{ID: "eni-1", Status: c.status}, c.ours)
		e := &n.ENIs[ix]
		if c.want == 0 {
			if e.Stage != 0 {
				t.Errorf("%s: it is %v", c.what, e.Stage)
			}
			continue
		}
		if e.Stage != c.want || e.Since != c.since || e.Next != c.next || e.Doing != c.doing {
			t.Errorf("%s: it is %v since %v, goes on at %v with %v", c.what, e.Stage, e.Since, e.Next, e.Doing)
		}
		if at := n.evidence.Looks[LookENI].Want; at != c.asked || e.Asking != (at != never) {
			t.Errorf("%s: EC2 is asked at %v, expected %v", c.what, at, c.asked)
		}
		if e.Lost || e.Trimming || e.ByEC2 != 0 || c.ours && e.Barred != 0 {
			t.Errorf("%s: lost %v, some are given back %v, missed %d times, refused %d times", c.what, e.Lost,
				e.Trimming, e.ByEC2, e.Barred)
		}
	}
}

// TestWhichENIsGiveBackPrefixes that the mode does not use: those that have one that nobody uses, and are at rest.
// The others do as they would.
func TestWhichENIsGiveBackPrefixes(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		goes  bool
	}{
		{"at rest", func(*Node) {}, true},
		{"it drains", func(n *Node) { n.ENIs[1].Stage = Draining }, false},
		{"EC2 is called", func(n *Node) { n.ENIs[1].Wait = calling }, false},
		{"some are given back already", func(n *Node) { n.ENIs[1].Trimming = true }, false},
		{"a pod has one of it", func(n *Node) { assign(n, 16, "c1") }, false},
		{"EC2 is asked about it", func(n *Node) { n.ENIs[1].Asking = true }, false},
		{"it has no link", func(n *Node) { n.ENIs[1].Linked = false }, false},
		{"it is set up", func(n *Node) {
			e := &n.ENIs[1]
			e.Stage, e.Doing, e.DOT, e.Linked = Attached, ModifyENI, true, false
		}, false},
		{"something is to be done to it", func(n *Node) { n.ENIs[1].Doing = GroupENI }, false},
		{"its intent is on record", func(n *Node) { n.ENIs[1].Stored = true }, false},
	} {
		n := quiet(t)
		n.Inst.Limits = Limits{ENIs: 4, Addresses: 5, Prefixes: true}
		n.ENIs[0].Device, n.ENIs[0].Linked, n.ENIs[0].Next = 1, true, never
		n.pool.Warm.At = never
		for i := int32(1); i < 3; i++ {
			n.enis.newENI(eni{ENI: ENI{ID: "eni-" + string(rune('0'+i)), Device: int(i) + 1}, Stage: Ready, Linked: true,
				mutation: mutation{Next: never}})
		}
		for i, p := range []string{"10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28"} {
			for ip := range addressesOf(netip.MustParsePrefix(p)) {
				n.pool.adopt(0, ip, int32(i), true)
				n.pool.free(n.pool.byAddress[ip])
			}
		}
		c.spoil(n)
		n.warm.turn(time.Minute)
		goes := 2
		if c.goes {
			goes = 3
		}
		if len(n.ENIs[1].Before) == prefixSize != c.goes || len(n.ENIs[0].Before) != prefixSize ||
			len(n.ENIs[2].Before) != prefixSize || noted(n, SlotsTurned) != goes {
			t.Errorf("%s: %d, %d and %d addresses go, told %d times", c.what, len(n.ENIs[0].Before),
				len(n.ENIs[1].Before), len(n.ENIs[2].Before), noted(n, SlotsTurned))
		}
		if w := n.pool.Warm; w.TurnAt != time.Minute+turnPause || w.At != w.TurnAt {
			t.Errorf("%s: others go at %v, thought of at %v", c.what, w.TurnAt, w.At)
		}
	}
}

// TestWhenSlotsOfTheOtherKindGo: prefixes in a node without the mode, and single addresses once a prefix has been had
// or their places are wanted; not while a runtime is not believed, nor soon after the last.
func TestWhenSlotsOfTheOtherKindGo(t *testing.T) {
	for _, c := range []struct {
		what             string
		mode             bool
		singles, prefix  bool
		spoil            func(n *Node)
		goesOne, goesAll bool // the single ones, the prefix
	}{
		{what: "prefixes, without the mode", singles: true, prefix: true, goesAll: true},
		{what: "none, without the mode", singles: true},
		{what: "singles beside a prefix", mode: true, singles: true, prefix: true, goesOne: true},
		{what: "singles alone, and there is room", mode: true, singles: true},
		{what: "singles alone, and there is none", mode: true, singles: true,
			spoil: func(n *Node) { n.Inst.Limits.Addresses = 2 }, goesOne: true},
		{what: "the subnet has no prefix", mode: true, singles: true, prefix: true,
			spoil: func(n *Node) { n.pool.Warm.Bare = true }},
		{what: "prefixes, without the mode, and the subnet has none", prefix: true,
			spoil: func(n *Node) { n.pool.Warm.Bare = true }, goesAll: true},
		{what: "the last went a moment ago", prefix: true,
			spoil: func(n *Node) { n.pool.Warm.TurnAt = time.Minute + 1 }},
		{what: "the last went a while ago", prefix: true,
			spoil: func(n *Node) { n.pool.Warm.TurnAt = time.Minute }, goesAll: true},
		{what: "the runtime is not believed", prefix: true, spoil: func(n *Node) {
			n.Witness.Runtime, n.Troubles[troubleRuntime] = true, "why"
		}},
	} {
		n := quiet(t)
		n.Set.PrefixDelegation, n.Inst.Limits = c.mode, Limits{ENIs: 4, Addresses: 5, Prefixes: true}
		n.ENIs[0].Next = never
		if ip := netip.MustParseAddr("10.0.0.10"); c.singles {
			n.pool.adopt(0, ip, 0, false)
			n.pool.free(n.pool.byAddress[ip])
		}
		if c.prefix {
			ofPrefix(&n.pool, "10.0.0.16/28")
		}
		if c.spoil != nil {
			c.spoil(n)
		}
		n.warm.turn(time.Minute)
		e := &n.ENIs[0]
		if one, all := len(e.Before) == 1, len(e.Before) == prefixSize; one != c.goesOne || all != c.goesAll ||
			len(e.Before) > 0 && e.Prefixed != all {
			t.Errorf("%s: %v go, prefixes %v", c.what, e.Before, e.Prefixed)
		}
	}
}
