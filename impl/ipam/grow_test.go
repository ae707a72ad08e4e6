package ipam

import (
	"net/netip"
	"slices"
	"testing"
)

// TestWhatGrowthAsksFor: addresses for an ENI that has room, and further ENIs for what has no place then. What is busy
// keeps its room for what is wanted.
func TestWhatGrowthAsksFor(t *testing.T) {
	fill := func(n *Node, on int32, count int) {
		for i := range count {
			ip := netip.AddrFrom4([4]byte{10, 0, byte(on + 1), byte(10 + i)})
			n.pool.adopt(0, ip, on, false)
			n.pool.free(n.pool.byAddress[ip])
		}
	}
	does := func(m mutation) func(*Node) {
		return func(n *Node) { m.Next = never; n.ENIs[0].mutation = m }
	}
	for _, c := range []struct {
		what  string
		more  int
		whole bool
		spoil func(n *Node)
		doing Action
		count int
		made  []int // what further ENIs are asked for with
	}{
		{what: "nothing"},
		{what: "two", more: 2, doing: AssignIPs, count: 2},
		{what: "two, of whole ENIs", more: 2, whole: true, doing: AssignIPs, count: 3},
		{what: "what fits", more: 3, doing: AssignIPs, count: 3},
		{what: "more than fits", more: 5, doing: AssignIPs, count: 3, made: []int{2}},
		{what: "more than fits, of whole ENIs", more: 5, whole: true, doing: AssignIPs, count: 3, made: []int{3}},
		{what: "another full one", more: 6, doing: AssignIPs, count: 3, made: []int{3}},
		{what: "two more", more: 7, doing: AssignIPs, count: 3, made: []int{3, 1}},
		{what: "far more", more: 30, doing: AssignIPs, count: 3, made: []int{3, 3, 3, 3}},
		{what: "far more, and one is under way", more: 30, spoil: func(n *Node) {
			ips := slices.Collect(addressesOf(netip.MustParsePrefix("10.0.9.0/28")))
			n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Addresses: ips[:3]}, Stage: Created})
		}, doing: AssignIPs, count: 3, made: []int{3, 3, 3}},
		{what: "far more, and another is in service", more: 30, spoil: func(n *Node) {
			fill(n, n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Linked: true}), 3)
		}, doing: AssignIPs, count: 3, made: []int{3, 3, 3, 3}},
		{what: "far more than the instance carries", more: 30, spoil: func(n *Node) { n.Inst.Limits.ENIs = 3 },
			doing: AssignIPs, count: 3, made: []int{3, 3}},
		{what: "one with pods has no place", more: 5, spoil: func(n *Node) {
			ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created, mutation: mutation{Barred: attachTries}})
			fill(n, ix, 3)
			assign(n, n.pool.byAddress[netip.MustParseAddr("10.0.2.10")], "c1")
		}, doing: AssignIPs, count: 3},
		{what: "it is full", more: 2, spoil: func(n *Node) { fill(n, 0, 3) }, made: []int{2}},
		{what: "EC2 is asked about it", more: 5, spoil: func(n *Node) { n.ENIs[0].Asking = true }, made: []int{2}},
		{what: "its groups change", more: 5, spoil: does(mutation{Doing: GroupENI}), doing: GroupENI, made: []int{2}},
		{what: "EC2 has refused one", more: 5, spoil: does(mutation{Doing: AssignIPs, Count: 1}), doing: AssignIPs,
			count: 3, made: []int{3}},
		{what: "EC2 has refused one, and one is wanted", more: 1, spoil: does(mutation{Doing: AssignIPs, Count: 1}),
			doing: AssignIPs, count: 2},
		{what: "EC2 assigns one", more: 5, spoil: does(mutation{Doing: AssignIPs, Count: 1, Wait: calling}),
			doing: AssignIPs, count: 1, made: []int{3}},
		{what: "one is in doubt", more: 5, spoil: does(mutation{Doing: AssignIPs, Count: 1, Lost: true}),
			doing: AssignIPs, count: 1, made: []int{3}},
		{what: "less is asked for at once", more: 5, spoil: func(n *Node) { n.pool.Warm.Ask = 1 }, doing: AssignIPs,
			count: 1, made: []int{1}},
	} {
		n := quiet(t)
		n.Surveyed, n.Set.Discovery = true, false
		n.Inst = Instance{ID: "i-1", Subnet: "a", Limits: Limits{ENIs: 9, Addresses: 4}}
		n.ENIs[0].Subnet, n.ENIs[0].CIDR = "a", netip.MustParsePrefix("10.0.0.0/16")
		if c.spoil != nil {
			c.spoil(n)
		}
		before := len(n.ENIs)
		n.warm.grow(0, c.more, c.whole)
		if e := &n.ENIs[0]; e.Doing != c.doing || e.Count != c.count {
			t.Errorf("%s: it does %v, with %d; expected %v with %d", c.what, e.Doing, e.Count, c.doing, c.count)
		}
		var made []int
		for _, e := range n.ENIs[before:] {
			made = append(made, e.Count)
			if e.Stage != Intended || e.Subnet != "a" || e.CIDR != n.ENIs[0].CIDR {
				t.Errorf("%s: an ENI is made in %q, %v", c.what, e.Subnet, e.CIDR)
			}
		}
		if !slices.Equal(made, c.made) {
			t.Errorf("%s: further ENIs are made with %v, expected %v", c.what, made, c.made)
		}
	}
}

// TestAFurtherENIIsOfItsSubnet: it has the subnet's CIDR, where EC2 says it, and what it takes is no longer counted as
// free there.
func TestAFurtherENIIsOfItsSubnet(t *testing.T) {
	own, other := netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.0.1.0/24")
	for id, free := range map[string]int{"a": 60, "b": 90} {
		n := quiet(t)
		n.Surveyed, n.Inst = true, Instance{ID: "i-1", Subnet: "a", Limits: Limits{ENIs: 2, Addresses: 4}}
		n.ENIs[0].Subnet, n.ENIs[0].CIDR, n.ENIs[0].Asking = "a", own, true
		list := []Subnet{{ID: "a", Free: 60}, {ID: "b", CIDR: other, Free: 50, Role: "1"}}
		if id == "b" {
			list[1].Free = free
		}
		n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: list}, true, 0, 0)
		n.warm.grow(0, 5, false)
		if len(n.ENIs) != 2 {
			t.Fatalf("%d ENIs", len(n.ENIs))
		}
		want := own
		if id == "b" {
			want = other
		}
		if e := &n.ENIs[1]; e.Subnet != id || e.CIDR != want || e.Count != 2 {
			t.Errorf("an ENI is made in %q, %v, with %d; expected %q", e.Subnet, e.CIDR, e.Count, id)
		}
		if got := n.subnets.candidate(id).Free; got != free-3 {
			t.Errorf("%q has %d left, expected %d", id, got, free-3)
		}
	}
}

// TestSingleAddressesLeaveTheirSlotsToPrefixes, once pods have them: not where the subnet has had no prefix, nor those
// of an ENI that is on its way.
func TestSingleAddressesLeaveTheirSlotsToPrefixes(t *testing.T) {
	for _, c := range []struct {
		what  string
		stage Stage
		bare  bool
		does  mutation
		has   int
		made  int
	}{
		{what: "in service", stage: Ready, has: 3},
		{what: "the subnet had none", stage: Ready, bare: true, has: 3, made: 1},
		{what: "on its way", stage: Attached, has: 3, made: 1},
		{what: "refused one that filled it", stage: Ready, does: mutation{Doing: AssignIPs, Count: 1, Next: never},
			has: 2},
	} {
		n := quiet(t)
		n.Surveyed, n.Set.Discovery, n.Set.PrefixDelegation = true, false, true
		n.Inst = Instance{ID: "i-1", Subnet: "a", Limits: Limits{ENIs: 9, Addresses: 4, Prefixes: true}}
		for i := range c.has {
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})
			n.pool.adopt(0, ip, 0, false)
			n.pool.free(n.pool.byAddress[ip])
		}
		e := &n.ENIs[0]
		e.Stage, n.pool.Warm.Bare, e.mutation = c.stage, c.bare, c.does
		n.warm.grow(0, 2, false)
		if made := len(n.ENIs) - 1; made != c.made || n.ENIs[0].Count != c.does.Count || n.ENIs[0].Prefixed {
			t.Errorf("%s: %d ENIs are made, and %d slots asked for", c.what, made, n.ENIs[0].Count)
		}
	}
}
