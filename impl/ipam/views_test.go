package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// What views of the cloud, of the kernel and of the API server make of what the node knows already.

// TestWhatAViewSaysOfAnENIAtWork: where the kernel alone works on it, EC2's word on it counts; else nothing but where
// pods' addresses are.
func TestWhatAViewSaysOfAnENIAtWork(t *testing.T) {
	for _, c := range []struct {
		what                string
		e                   eni
		by                  What
		learns, hears, puts bool // takes EC2's word; takes that it is there; places a pod's address
	}{
		{"the kernel sets it up", eni{Stage: Attached, mutation: mutation{Wait: applying}}, LookAttached, true, false,
			false},
		{"and metadata lists it", eni{Stage: Attached, mutation: mutation{Wait: applying}}, LookIMDS, false, false, true},
		{"with an intent on record", eni{Stage: Attached, mutation: mutation{Wait: applying, Stored: true}}, LookAttached,
			false, false, true},
		{"EC2 is called", eni{Stage: Attached, mutation: mutation{Wait: calling}}, LookAttached, false, false, true},
		{"the kernel repairs it", eni{Stage: Ready, mutation: mutation{Wait: applying}}, LookAttached, false, false, true},
		{"it is in service", eni{Stage: Ready}, LookAttached, false, true, true},
		{"it has changed since", eni{Stage: Ready, Tag: 6}, LookAttached, false, false, true},
		{"it has changed before", eni{Stage: Ready, Tag: 5}, LookAttached, false, true, true},
		{"an intent is on record", eni{Stage: Draining, mutation: mutation{Stored: true}}, LookAttached, false, false,
			true},
		{"it is in service, and an intent is on record", eni{Stage: Ready, mutation: mutation{Stored: true}},
			LookAttached, false, true, true},
		{"metadata lists one without a link", eni{Stage: Ready, ENI: ENI{Device: 1}}, LookIMDS, false, false, true},
		{"metadata lists one with a link", eni{Stage: Ready, ENI: ENI{Device: 1}, Linked: true}, LookIMDS, false, true,
			true},
		{"EC2 lists one without a link", eni{Stage: Ready, ENI: ENI{Device: 1}}, LookAttached, false, true, true},
	} {
		n := quiet(t)
		n.Inst.ID, n.Surveyed = "i-1", true
		c.e.ID, c.e.ByIMDS, c.e.ByEC2, c.e.Next = "eni-1", 1, 1, never
		ix := n.enis.newENI(c.e)
		n.ENIs[ix].Tag = c.e.Tag
		ip := netip.MustParseAddr("10.0.0.20")
		n.pool.adopt(0, ip, 0, false)
		n.pool.free(0)
		assign(n, 0, "c1")
		n.pool.place(0, -1)
		n.pool.Addrs[0].Tag = 0
		v := ENI{ID: "eni-1", Device: c.e.Device, Attachment: "a-1", Instance: "i-1", Owner: "i-1", Status: "in-use",
			Addresses: []netip.Addr{ip}}
		n.survey.adoptENIs(consistency, c.by, []ENI{v}, 5)
		e := &n.ENIs[ix]
		if learns := e.Attachment == "a-1"; learns != c.learns {
			t.Errorf("%s: EC2's word counts: %v", c.what, learns)
		}
		if hears, puts := e.ByEC2 == 0, n.pool.Addrs[0].ENI == ix; hears != c.hears || puts != c.puts {
			t.Errorf("%s: it is taken as there: %v; a pod's address is placed: %v", c.what, hears, puts)
		}
	}
}

// TestWhatWasToBeGivenBackIsWantedAgain, unless a call may take it away yet, or it is of the other kind.
func TestWhatWasToBeGivenBackIsWantedAgain(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what  string
		more  int
		spoil func(n *Node, e *eni)
		stays bool
		made  int // ENIs made besides
	}{
		{"wanted", 2, func(*Node, *eni) {}, true, 0},
		{"more than that is wanted", 3, func(*Node, *eni) {}, true, 1},
		{"nothing is wanted", 0, func(*Node, *eni) {}, false, 0},
		{"EC2 is called", 2, func(_ *Node, e *eni) { e.Wait = calling }, false, 1},
		{"the call is lost", 2, func(_ *Node, e *eni) { e.Lost = true }, false, 1},
		{"a call may land yet", 2, func(_ *Node, e *eni) { e.Doubt = now + 1 }, false, 1},
		{"a call has landed by now", 2, func(_ *Node, e *eni) { e.Doubt, e.Since = now, now }, true, 0},
		{"it is of the other kind", 2, func(_ *Node, e *eni) { e.Prefixed = true }, false, 1},
		{"it is put off", 2, func(n *Node, _ *eni) { n.pool.Warm.GrowAt = now + 1 }, false, 0},
		{"it was put off", 2, func(n *Node, _ *eni) { n.pool.Warm.GrowAt = now }, true, 0},
		{"EC2 is asked whose an ENI is", 2, func(n *Node, _ *eni) { n.evidence.Others = []other{{ID: "eni-9"}} }, false,
			0},
	} {
		n := quiet(t)
		n.ENIs[0] = eni{ENI: ENI{ID: "eni-8"}, Stage: Tombstoned, Foreign: true}
		on := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready})
		for i := range 2 {
			n.pool.adopt(0, netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), on, false)
			n.pool.free(int32(i))
		}
		n.Surveyed, n.Inst = true, Instance{ID: "i-1", Subnet: "a", Limits: Limits{ENIs: 3, Addresses: 3}}
		n.Set.Discovery = false
		n.pool.Warm.At = never
		n.warm.giveBack(0, on, 2, false)
		e := &n.ENIs[on]
		c.spoil(n, e)
		for i := range 2 { // so that the ENI itself has no room for more
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(40 + i)})
			n.pool.adopt(0, ip, on, false)
			n.pool.free(n.pool.byAddress[ip])
		}
		n.warm.grow(now, c.more, false)
		if e = &n.ENIs[on]; e.Trimming == c.stays || len(n.ENIs)-2 != c.made {
			t.Errorf("%s: they go: %v; %d ENIs are made", c.what, e.Trimming, len(n.ENIs)-2)
		}
		p := &n.pool.Warm
		if c.stays && p.At != now || p.GrowAt > now && p.At != p.GrowAt {
			t.Errorf("%s: what is needed is thought of again at %v", c.what, p.At)
		}
	}
}

// TestWhatARefusalMakesOfGrowth: it pauses. Where a subnet is full less is asked for, and where it has no prefix
// addresses are.
func TestWhatARefusalMakesOfGrowth(t *testing.T) {
	for _, c := range []struct {
		what string
		f    refusal
		asks int
		bare bool
	}{
		{"full", refusal{Class: SubnetFull, Count: 8}, 4, false},
		{"full for one", refusal{Class: SubnetFull, Count: 1}, 9, false},
		{"no two prefixes", refusal{Class: SubnetFull, Count: 2, Prefixed: true}, 1, false},
		{"no prefix", refusal{Class: SubnetFull, Count: 1, Prefixed: true}, 0, true},
		{"prefixes are invalid", refusal{Class: Invalid, Count: 2, Prefixed: true}, 0, true},
		{"invalid", refusal{Class: Invalid, Count: 2}, 9, false},
		{"denied", refusal{Class: Denied, Count: 2, Prefixed: true}, 9, false},
	} {
		n := quiet(t)
		n.pool.Warm.At, n.pool.Warm.Ask, n.pool.Warm.Fails = never, 9, 2
		n.driver.growLater(time.Hour, c.f)
		p := &n.pool.Warm
		least := time.Hour + exponentialJitter(3).Least
		if p.Fails != 3 || p.GrowAt < least || p.GrowAt > least+exponentialJitter(3).Jitter || p.At != p.GrowAt {
			t.Errorf("%s: refused %d times, on at %v, thought of at %v", c.what, p.Fails, p.GrowAt, p.At)
		}
		if p.Ask != c.asks || p.Bare != c.bare || (warned(n, PrefixesGone) == 1) != c.bare {
			t.Errorf("%s: %d are asked for, without prefixes %v, told %d times", c.what, p.Ask, p.Bare,
				warned(n, PrefixesGone))
		}
		p.At = time.Minute
		if n.driver.growLater(time.Hour, c.f); p.At != time.Minute {
			t.Errorf("%s: it is thought of at %v, and was to be before", c.what, p.At)
		}
	}
}

// TestAChangeOfTheENIConfigIsTold, whatever of it has changed; what was first heard, or heard again, is none.
func TestAChangeOfTheENIConfigIsTold(t *testing.T) {
	before := ENIConfig{Name: "z", Subnet: "a", Groups: []string{"sg-1", "sg-2"}}
	for _, c := range []struct {
		what string
		now  ENIConfig
		told int
	}{
		{"the same", ENIConfig{Name: "z", Subnet: "a", Groups: []string{"sg-1", "sg-2"}}, 0},
		{"another one", ENIConfig{Name: "y", Subnet: "a", Groups: []string{"sg-1", "sg-2"}}, 1},
		{"another subnet", ENIConfig{Name: "z", Subnet: "b", Groups: []string{"sg-1", "sg-2"}}, 1},
		{"other groups", ENIConfig{Name: "z", Subnet: "a", Groups: []string{"sg-1"}}, 1},
		{"it is gone", ENIConfig{Name: "z", Subnet: "a", Groups: []string{"sg-1", "sg-2"}, Missing: true}, 1},
	} {
		told := func(sn *subnets) (count int) {
			for _, e := range sn.out {
				if m, ok := e.(*Note); ok && m.Point == ConfigChanged {
					count++
				}
			}
			return count
		}
		sn := newCustom()
		if sn.says(0, before); told(sn) != 0 {
			t.Fatal("the first word is told as a change")
		}
		sn.Awaited, sn.ConfigErr = true, "why"
		if sn.says(time.Minute, c.now); told(sn) != c.told || sn.Awaited || sn.ConfigErr != "" ||
			sn.ConfigAt != time.Minute || sn.Config.Name != c.now.Name {
			t.Errorf("%s: told %d times, at %v it is %+v", c.what, told(sn), sn.ConfigAt, sn.Config)
		}
	}
	sn := newCustom()
	many := make([]string, mostGroups+1)
	if sn.says(0, ENIConfig{Name: "z", Groups: many}); len(sn.Config.Groups) != mostGroups {
		t.Errorf("%d groups are taken", len(sn.Config.Groups))
	}
}

// TestWhatRecoveryMakesOfEachAddress: a removal that was cut short is repeated, what has cooled goes on cooling, a
// pod's link is found, and what the kernel shows in use is nobody's to give.
func TestWhatRecoveryMakesOfEachAddress(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.20")
	att := Attachment{network, "c1", "eth0"}
	linked := []dataplane.Link{behind("eni1", att, ip)}
	plain := []dataplane.Link{{Name: "eni1", MAC: "m1", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{ip}}}
	host := []dataplane.Link{{Name: "eth0", Addresses: []netip.Prefix{netip.PrefixFrom(ip, 24)}}}
	other := []dataplane.Link{behind("eni1", Attachment{network, "c9", "eth0"}, ip)}
	route := []dataplane.Rule{{Priority: dataplane.PriorityToPod, To: netip.PrefixFrom(ip, 32),
		Table: dataplane.MainTable}}
	cools := func(n *Node) { assigned(n, 0); n.pool.Addrs[0].Att = att; n.pool.rest(0, 0, false) }
	pods := func(n *Node) { assign(n, 0, "c1") }
	for _, c := range []struct {
		what    string
		make    func(n *Node)
		links   []dataplane.Link
		rules   []dataplane.Rule
		state   State
		cooling cooling
		op      op
		veth    string
	}{
		{what: "a pod's that has left", make: cools, state: Cooling, cooling: remembered},
		{what: "a pod's whose link is left", make: cools, links: linked, state: Cooling, op: releasing},
		{what: "a pod's whose rule is left", make: cools, rules: route, state: Cooling, op: releasing},
		{what: "a pod's that has another one", make: func(n *Node) {
			cools(n)
			assign(n, 1, "c1")
		}, rules: route, state: Cooling, cooling: remembered},
		{what: "its removal is under way", make: func(n *Node) {
			cools(n)
			n.pool.Addrs[0].run(releasing)
		}, rules: route, state: Cooling, op: releasing},
		{what: "a pod's that cools already", make: func(n *Node) {
			cools(n)
			n.pool.Addrs[0].cool(remembered)
		}, rules: route, state: Cooling, cooling: remembered},
		{what: "a row that names no pod", make: func(n *Node) {
			n.pool.become(0, Assigned)
			n.pool.rest(0, 0, false)
		}, rules: route, state: Cooling, cooling: remembered},
		{what: "a new one", make: func(n *Node) {
			n.pool.become(0, Assigned)
			n.pool.rest(0, 0, true)
		}, state: Cooling, cooling: remembered},
		{what: "a pod's without a link", make: pods, state: Assigned},
		{what: "a pod's with its link", make: pods, links: linked, state: Assigned, veth: "eni1"},
		{what: "a pod's of another CNI", make: pods, links: plain, state: Assigned, op: recording, veth: "eni1"},
		{what: "a pod's on another's link", make: pods, links: other, state: Assigned},
		{what: "a pod's on the host", make: pods, links: host, state: Assigned},
	} {
		n := quiet(t, "10.0.0.20", "10.0.0.21")
		n.Steps, n.Witness.Kernel = 7, true
		c.make(n)
		n.pool.Addrs[0].Tag = 3
		o := &dataplane.Observation{Complete: true, Links: c.links, Rules: c.rules}
		resumes := c.op == releasing && n.pool.Addrs[0].Op == noOp
		n.recovery.settleRecall(time.Second, o.Index())
		a := &n.pool.Addrs[0]
		if a.State != c.state || a.Cooling != c.cooling || a.Op != c.op || a.Veth != c.veth {
			t.Errorf("%s: it is %v, %v, %v runs, its link is %q", c.what, a.State, a.Cooling, a.Op, a.Veth)
		}
		if (noted(n, IntentResumed) == 1) != resumes || (len(applies(n)) == 1) != resumes ||
			resumes && (!a.Keyed || a.Tag != 7) {
			t.Errorf("%s: resumed %d times, by %d plans; keyed %v, changed in step %d", c.what,
				noted(n, IntentResumed), len(applies(n)), a.Keyed, a.Tag)
		}
	}
	n := quiet(t, "10.0.0.20")
	n.Witness.Kernel = true
	n.pool.rest(0, assigned(n, 0), true)
	n.pool.Addrs[0].Att = Attachment{}
	n.pool.Addrs[0].cool(forgetting)
	n.pool.Addrs[0].cool(forgotten)
	if n.recovery.settleRecall(time.Hour, indexOf()); n.pool.Addrs[0].State != Free || len(n.pool.Cooling) != 0 {
		t.Errorf("what has long rested is %v", n.pool.Addrs[0].State)
	}
}

// TestWhenALeakIsSwept: with the next look that proves it, and a moment for the call.
func TestWhenALeakIsSwept(t *testing.T) {
	const now = time.Hour
	ours, near := ENI{ID: "eni-9", Owner: "i-1", Created: 1000}, ENI{ID: "eni-9", Owner: "i-2", Created: 1000, Near: true,
		OwnerGone: true}
	for _, c := range []struct {
		what  string
		v     ENI
		spoil func(n *Node, v *ENI)
		at    time.Duration // 0: never
	}{
		{"ours, and a look is under way", ours, func(n *Node, _ *ENI) { n.Looks[LookLeaked].ID = 1 }, now + firstPause},
		{"ours, and none is", ours, func(*Node, *ENI) {}, now + 20*time.Minute + firstPause},
		{"ours, and a look is due", ours, func(n *Node, _ *ENI) { n.Looks[LookLeaked].Want = 1 }, now + firstPause},
		{"ours, and new", ours, func(n *Node, v *ENI) {
			n.Looks[LookLeaked].Want, v.Created = 1, n.wall(now-4*time.Minute)
		}, now + leakedAgain + firstPause},
		{"ours, and just old enough", ours, func(n *Node, v *ENI) {
			n.Looks[LookLeaked].Want, v.Created = 1, n.wall(now-ownLeakAge)
		}, now + firstPause},
		{"of unknown age", ours, func(n *Node, v *ENI) { n.Looks[LookLeaked].Want, v.Created = 1, 0 }, 0},
		{"a neighbour's that is gone", near, func(n *Node, _ *ENI) { n.Looks[LookLeaked].Want = 1 },
			now + otherLeakAge + firstPause},
		{"a neighbour's that was seen before", near, func(n *Node, _ *ENI) {
			n.Looks[LookLeaked].Want = 1
			n.Sightings = []sighting{{"eni-8", now, 0}, {"eni-9", now - otherLeakAge, 1}, {"eni-7", now, 0}}
		}, now + firstPause},
		{"a neighbour's that lives", near, func(n *Node, v *ENI) { v.OwnerGone = false }, 0},
		{"a stranger's", near, func(n *Node, v *ENI) { v.Near = false }, 0},
		{"nothing is swept", ours, func(n *Node, _ *ENI) { n.Set.NoSweep = true }, 0},
		{"a new daemon", ours, func(n *Node, _ *ENI) { n.Phase = recovering }, 0},
	} {
		n := quiet(t)
		n.Inst.ID, n.Wall = "i-1", 1_000_000
		n.Looks[LookLeaked].Want = now + 20*time.Minute
		c.spoil(n, &c.v)
		if at, ok := n.SweptBy(now, &c.v); at != c.at || ok != (c.at != 0) {
			t.Errorf("%s: at %v, %v; expected %v", c.what, at, ok, c.at)
		}
		if i := slices.IndexFunc(n.Sightings, func(s sighting) bool { return s.ID == "eni-9" }); i >= 0 &&
			n.Sightings[i].Gone != 1 {
			t.Errorf("%s: the question is taken for a look", c.what)
		}
	}
}
