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
