package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// newPool is a pool beside one ENI in service.
func newPool() *pool {
	l := &life{policy: Sound(), Set: Defaults(), Phase: serving}
	lg := &ledger{life: l}
	ev := &evidence{life: l, ledger: lg}
	es := &enis{life: l, ledger: lg, evidence: ev}
	es.newENI(eni{ENI: ENI{ID: "eni-0"}, Stage: Ready})
	es.subnets = &subnets{life: l, evidence: ev}
	p := &pool{life: l, ledger: lg, requests: &requests{life: l}, evidence: ev, enis: es}
	p.RetryAt, p.CoolAt = never, never
	p.index(0)
	return p
}

// TestTheAddressThatIsFreeTheLongestIsGiven: none that is about to go, that EC2's last answer lacked, or whose ENI
// drains.
func TestTheAddressThatIsFreeTheLongestIsGiven(t *testing.T) {
	p := newPool()
	var ix []int32
	for i := range 4 {
		ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})
		p.adopt(0, ip, 0, false)
		ix = append(ix, p.byAddress[ip])
	}
	for _, i := range []int{2, 0, 3, 1} {
		p.free(ix[i])
	}
	p.Addrs[ix[2]].Leaving, p.Addrs[ix[0]].Missing = true, 1
	if got, ok := p.pick(); !ok || got != ix[3] {
		t.Errorf("address %d is given, %t; expected %d", got, ok, ix[3])
	}
	p.enis.ENIs[0].Stage = Draining
	if got, ok := p.pick(); ok {
		t.Errorf("address %d of an ENI that drains is given", got)
	}
}

// TestAddressesAreCountedByState: of the node and of the ENI that carries them, through all that happens to one.
func TestAddressesAreCountedByState(t *testing.T) {
	p := newPool()
	p.adopt(0, netip.MustParseAddr("10.0.0.10"), 0, false)
	expect := func(when string, s State, onENI bool) {
		t.Helper()
		want := [Quarantined + 1]int{}
		if s != 0 {
			want[s] = 1
		}
		if p.Count != want {
			t.Errorf("%s: %v, expected one %v", when, p.Count, s)
		}
		if !onENI {
			want = [Quarantined + 1]int{}
		}
		if has := p.enis.ENIs[0].Has; has != want {
			t.Errorf("%s: the ENI has %v, expected %v", when, has, want)
		}
	}
	expect("adopted", Cooling, true)
	p.free(0)
	expect("freed", Free, true)
	p.become(0, Assigned)
	expect("given", Assigned, true)
	p.place(0, -1)
	expect("taken off its ENI", Assigned, false)
	p.quarantine(0, "why")
	expect("set aside", Quarantined, false)
	p.place(0, 0)
	expect("back on its ENI", Quarantined, true)
	p.rest(0, 0, true)
	expect("cooling", Cooling, true)
	p.forget(0)
	expect("forgotten", 0, false)
	if len(p.Holes) != 1 || len(p.byAddress) != 0 {
		t.Errorf("holes %v, addresses %v", p.Holes, p.byAddress)
	}
}

// TestBothAttachmentsOfAContainerAreFound: one in the index by container, the other beside it, whichever goes first.
func TestBothAttachmentsOfAContainerAreFound(t *testing.T) {
	for first := range int32(2) {
		p := newPool()
		for i, name := range []string{"eth0", "eth1"} {
			p.adopt(0, netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)}), 0, false)
			p.Addrs[i].Att = Attachment{"n", "c", name}
			p.key(int32(i))
		}
		p.unkey(first)
		for i := range int32(2) {
			if ix, ok := p.rowOf(p.Addrs[i].Att); ok != (i != first) || ok && ix != i {
				t.Errorf("%d has gone: %v is found at %d, %t", first, p.Addrs[i].Att, ix, ok)
			}
		}
	}
}

// TestAnAddressCoolsUntilItsFlowsAreForgotten: the walk is due before it has cooled, a look at the kernel after both.
func TestAnAddressCoolsUntilItsFlowsAreForgotten(t *testing.T) {
	p := newPool()
	p.adopt(0, netip.MustParseAddr("10.0.0.10"), 0, false)
	p.free(0)
	p.Flows.At = never
	p.become(0, Assigned)
	p.rest(0, 0, true)
	cool := p.coolDown()
	if p.Flows.At != cool-flowLead || p.nextCool(0) != never {
		t.Fatalf("the walk is due at %v, the cool-down ends at %v", p.Flows.At, p.nextCool(0))
	}
	p.forgetFlows(p.Flows.At)
	if p.Addrs[0].Cooling != forgetting || !p.Flows.Busy {
		t.Fatalf("it is %v", p.Addrs[0].Cooling)
	}
	p.flowsApplied(cool, Applied{})
	if p.Addrs[0].Cooling != forgotten || p.nextCool(cool) != cool+coolBatch || p.CoolAt > cool+time.Second {
		t.Errorf("it is %v, and is looked at %v", p.Addrs[0].Cooling, p.nextCool(cool))
	}
}

// TestTheTableOfAnAddressIsThatOfADeviceThatSomebodyHasSeen: an ENI that only the records name may be at any (swarm, seed 2811074).
func TestTheTableOfAnAddressIsThatOfADeviceThatSomebodyHasSeen(t *testing.T) {
	n := newborn(t)
	for _, c := range []struct {
		eni  eni
		want int
	}{
		{eni{Stage: Ready}, dataplane.MainTable}, // the primary one
		{eni{Stage: Attached}, dataplane.MainTable},
		{eni{Stage: Ready, ENI: ENI{Device: 2}}, dataplane.TableOf(2)},
		{eni{Stage: Created, ENI: ENI{Device: 2}}, dataplane.TableOf(2)}, // a third party has detached it
		{eni{Stage: Created, mutation: mutation{Doing: AttachENI, Lost: true}}, dataplane.UnknownTable},
	} {
		if got := n.pool.table(&address{ENI: n.enis.newENI(c.eni)}); got != c.want {
			t.Errorf("%v at device %d: table %d, expected %d", c.eni.Stage, c.eni.Device, got, c.want)
		}
	}
	if got := n.pool.table(&address{ENI: -1}); got != dataplane.UnknownTable {
		t.Errorf("on no ENI that is known: table %d", got)
	}
}

// TestAnAddAgainWaitsForItsENIsDevice: before, nobody can say whether the kernel has the rule that leads to its table.
func TestAnAddAgainWaitsForItsENIsDevice(t *testing.T) {
	n := newborn(t)
	on := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created, mutation: mutation{Doing: AttachENI, Lost: true}})
	ip := netip.MustParseAddr("10.0.0.20")
	n.pool.adopt(0, ip, on, false)
	ix := n.pool.byAddress[ip]
	n.pool.free(ix)
	n.pool.become(ix, Assigned)
	n.requests.accept(0, 7, VerbAdd, Attachment{ContainerID: "c"}, time.Minute)
	n.pods.answerAgain(ix, 7, (&dataplane.Observation{Complete: true}).Index())
	if r, ok := n.out[len(n.out)-1].(*Reply); !ok || r.Err == nil || r.Err.Code != CodeTryAgain {
		t.Errorf("the answer is %+v", n.out[len(n.out)-1])
	}
}

// TestWhichAddressesAreGiven: nothing that may go, that nobody reaches, or that is not for pods. It is passed over
// for the next one.
func TestWhichAddressesAreGiven(t *testing.T) {
	first := netip.MustParseAddr("10.0.0.10")
	for _, c := range []struct {
		name  string
		but   func(p *pool, a *address, e *eni)
		given bool
	}{
		{"free", func(*pool, *address, *eni) {}, true},
		{"metadata lacks it", func(_ *pool, a *address, _ *eni) { a.ByIMDS = 1 }, true},
		{"metadata alone lacks it", func(p *pool, a *address, _ *eni) { p.Set.IMDSOnly, a.ByIMDS = true, 1 }, false},
		{"metadata alone lists it", func(p *pool, _ *address, _ *eni) { p.Set.IMDSOnly = true }, true},
		{"EC2 lacks it", func(_ *pool, a *address, _ *eni) { a.Missing = 1 }, false},
		{"it is about to go", func(_ *pool, a *address, _ *eni) { a.Leaving = true }, false},
		{"on no ENI", func(p *pool, _ *address, _ *eni) { p.place(0, -1) }, false},
		{"its ENI is not ready", func(_ *pool, _ *address, e *eni) { e.Stage = Configured }, false},
		{"its ENI drains", func(_ *pool, _ *address, e *eni) { e.Stage = Draining }, false},
		{"EC2 is asked to take it", func(_ *pool, _ *address, e *eni) {
			e.Trimming, e.Before = true,
				[]netip.Addr{first}
		}, false},
		{"EC2 is asked to take another", func(_ *pool, _ *address, e *eni) {
			e.Trimming, e.Before = true,
				[]netip.Addr{{}}
		}, true},
		{"its ENI has no link", func(_ *pool, _ *address, e *eni) { e.Linked = false }, false},
		{"its ENI is not for pods", func(p *pool, _ *address, e *eni) {
			p.enis.subnets.Candidates = []candidate{{Subnet: Subnet{ID: "subnet-9", Role: "0"}}}
		}, false},
	} {
		p := newPool()
		p.adopt(0, first, p.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Subnet: "subnet-9"}, Stage: Ready,
			Linked: true}), false)
		p.adopt(0, netip.MustParseAddr("10.0.0.11"), 0, false)
		p.adopt(0, netip.MustParseAddr("10.0.0.12"), 0, false)
		for _, i := range []int32{2, 0, 1} {
			p.free(i)
		}
		p.become(2, Assigned) // it stays in the queue
		c.but(p, &p.Addrs[0], &p.enis.ENIs[1])
		given := map[int32]bool{}
		for range 3 {
			if ix, ok := p.pick(); ok {
				if given[ix] = true; (ix == 0) != (c.given && len(given) == 1) {
					t.Errorf("%s: address %d is given as number %d", c.name, ix, len(given))
				}
			}
		}
		if given[2] || !given[1] || given[0] != c.given {
			t.Errorf("%s: given are %v", c.name, given)
		}
	}
}

// TestWhatEC2AssignsAfterItDeparted is held back until an unassignment of before has landed; what was the node's all
// the time is not news.
func TestWhatEC2AssignsAfterItDeparted(t *testing.T) {
	const now = time.Hour
	ip, another := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.11")
	for _, c := range []struct {
		name   string
		gone   []departed
		until  time.Duration
		pods   bool // a pod has it
		stored bool // its row is in the Save
	}{
		{"never", nil, now, false, true},
		{"a moment ago", []departed{{IP: ip, At: now - time.Second}}, now - time.Second + landing, false, true},
		{"long ago", []departed{{IP: ip, At: now - landing}}, now, false, true},
		{"twice", []departed{{IP: ip, At: now - 2*time.Second}, {IP: ip, At: now - time.Second}, {IP: ip,
			At: now - time.Minute}},
			now - time.Second + landing, false, true},
		{"another did", []departed{{IP: another, At: now - time.Second}}, now, false, true},
		{"a pod has it", nil, 0, true, false},
		{"a pod has it, and it departed", []departed{{IP: ip, At: now - time.Second}}, 0, true, true},
	} {
		p := newPool()
		if c.pods {
			p.adopt(0, ip, 0, false)
			p.free(0)
			p.become(0, Assigned)
			p.ledger.put[RunStore] = nil
		}
		p.evidence.Departures = c.gone
		p.returned(now, ip, 0, false)
		a := &p.Addrs[0]
		if a.Given != now || !c.pods && p.rested(a) != c.until || c.pods && a.State != Assigned ||
			len(p.byAddress) != 1 {
			t.Errorf("%s: %v, given at %v, and rested at %v; expected %v", c.name, a.State, a.Given, p.rested(a),
				c.until)
		}
		rows := p.ledger.put[RunStore]
		if len(rows) > 0 != c.stored || c.stored && rows[len(rows)-1].ReleasedAt != a.ReleasedAt {
			t.Errorf("%s: recorded %+v, expected %v", c.name, rows, c.stored)
		}
	}
}

// TestWhetherAddressesAreOnTheirWay, for whom it is worth to wait.
func TestWhetherAddressesAreOnTheirWay(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.10")
	cooling := func(p *pool, of Attachment) {
		p.adopt(0, ip, 0, false)
		p.Addrs[0].Att = of
	}
	for _, c := range []struct {
		name string
		but  func(p *pool)
		want bool
	}{
		{"at rest", func(*pool) {}, false},
		{"EC2 has not said what is attached", func(p *pool) { p.Surveyed = false }, true},
		{"EC2 does not say what is attached", func(p *pool) {
			p.Surveyed,
				p.evidence.Looks[LookAttached].Fails = false, 3
		}, false},
		{"EC2 has not said so in its second answer", func(p *pool) {
			p.Surveyed,
				p.evidence.Looks[LookAttached].Fails = false, 2
		}, true},
		{"metadata is silent", func(p *pool) { p.Surveyed, p.Deaf = false, true }, false},
		{"EC2 has to say whose an ENI is", func(p *pool) { p.evidence.Others = []other{{ID: "eni-9"}} }, true},
		{"somebody else's ENI", func(p *pool) { p.evidence.Others = []other{{ID: "eni-9", Why: "theirs"}} }, false},
		{"EC2 has to say which subnets there are", func(p *pool) { p.enis.subnets.Awaited = true }, true},
		{"an ENI is made", func(p *pool) { p.enis.newENI(eni{Stage: Intended}) }, true},
		{"an ENI is nearly ready", func(p *pool) { p.enis.newENI(eni{Stage: Configured}) }, true},
		{"an ENI of somebody else is deleted", func(p *pool) { p.enis.newENI(eni{Stage: Created, Foreign: true}) },
			false},
		{"an ENI goes", func(p *pool) { p.enis.newENI(eni{Stage: Draining, mutation: mutation{Doing: AssignIPs}}) },
			false},
		{"an ENI gets some", func(p *pool) { p.enis.ENIs[0].Doing = AssignIPs }, true},
		{"an ENI gives some back", func(p *pool) { p.enis.ENIs[0].Doing = UnassignIPs }, false},
		{"an empty slot", func(p *pool) {
			p.enis.ENIs = append(p.enis.ENIs,
				eni{mutation: mutation{Doing: AssignIPs}})
		}, false},
		{"one is new", func(p *pool) { cooling(p, Attachment{}) }, true},
		{"one was a pod's", func(p *pool) { cooling(p, Attachment{ContainerID: "c"}) }, false},
		{"one was new", func(p *pool) { cooling(p, Attachment{}); p.free(0) }, false},
		{"one is another pod's by now", func(p *pool) {
			cooling(p, Attachment{})
			p.become(0, Assigned)
			p.Addrs[0].Att = Attachment{ContainerID: "c"}
		}, false},
	} {
		p := newPool()
		p.Surveyed = true
		if c.but(p); p.growing() != c.want {
			t.Errorf("%s: %v", c.name, !c.want)
		}
	}
}

// TestWhoseFlowsAreForgotten: of all that cool and are out of their pods, once the first of them needs it.
func TestWhoseFlowsAreForgotten(t *testing.T) {
	const now = time.Hour
	lead := func(p *pool) time.Duration { return p.coolDown() - flowLead }
	for _, c := range []struct {
		name   string
		but    func(p *pool, a *address)
		walked int                         // 2 with the one beside it, which cools for a second longer
		at     func(p *pool) time.Duration // when it is seen to next; nil is never
	}{
		{"one that needs it", func(*pool, *address) {}, 2, nil},
		{"a moment early", func(_ *pool, a *address) { a.ReleasedAt++ }, 0,
			func(*pool) time.Duration { return now + 1 }},
		{"after a walk", func(p *pool, _ *address) { p.Flows.After = now + 7 }, 0,
			func(*pool) time.Duration { return now + 7 }},
		{"long after a walk", func(p *pool, _ *address) { p.Flows.After = now }, 2, nil},
		{"not yet seen to", func(p *pool, _ *address) { p.Flows.At = now + 1 }, 0,
			func(*pool) time.Duration { return now + 1 }},
		{"during a walk", func(p *pool, _ *address) { p.Flows.Busy = true }, 0, nil},
		{"it is not out of its pod", func(_ *pool, a *address) { a.Cooling = inKernel }, 0,
			func(*pool) time.Duration { return now + time.Second }},
		{"it is being taken out again", func(_ *pool, a *address) { a.Op = releasing }, 0,
			func(*pool) time.Duration { return now + time.Second }},
		{"its flows are forgotten", func(_ *pool, a *address) { a.Cooling = forgotten }, 0,
			func(*pool) time.Duration { return now + time.Second }},
		{"it is a pod's again", func(p *pool, _ *address) { p.become(0, Assigned) }, 0,
			func(*pool) time.Duration { return now + time.Second }},
		{"nobody's flows", func(p *pool, a *address) { a.Cooling, p.Addrs[1].Cooling = inKernel, inKernel }, 0, nil},
	} {
		p := newPool()
		for i := range int32(2) {
			p.adopt(0, netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)}), 0, false)
			p.Addrs[i].ReleasedAt = now - lead(p) + time.Duration(i)*time.Second
		}
		p.Flows.At = 0
		c.but(p, &p.Addrs[0])
		busy := p.Flows.Busy
		p.forgetFlows(now)
		want, walked := never, 0
		if c.at != nil {
			want = c.at(p)
		}
		for _, e := range p.out {
			if plan, ok := e.(*Apply); ok {
				walked = len(plan.Plan.Ops)
				busy = true
				if plan.Lane.Kind != FlowLane || p.Flows.Began != now {
					t.Errorf("%s: it is %+v, begun at %v", c.name, plan, p.Flows.Began)
				}
			}
		}
		if p.Flows.At != want || walked != c.walked || p.Flows.Busy != busy {
			t.Errorf("%s: %d walked for, busy %v, seen to at %v; expected %d, %v", c.name, walked, p.Flows.Busy,
				p.Flows.At, c.walked, want)
		}
	}
}
