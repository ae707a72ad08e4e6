package ipam

import (
	"strings"
	"testing"
	"time"
)

// newSubnets are those of a node whose own subnet is a; EC2 has said them at the instant 0.
func newSubnets(list ...Subnet) *subnets {
	l := &life{policy: Sound(), Set: Defaults(), Phase: serving, Inst: Instance{Subnet: "a"}}
	sn := &subnets{life: l, evidence: &evidence{life: l, ledger: &ledger{life: l}}}
	for i := range sn.evidence.Looks {
		sn.evidence.Looks[i].Want = never
	}
	sn.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: list}, true, 0, 0)
	return sn
}

// TestWhichSubnetsAreForPods: as amazon-vpc-cni-k8s 1.23.0 reads their tags, for ENIs that are to be made and for those that are there.
func TestWhichSubnetsAreForPods(t *testing.T) {
	for _, c := range []struct {
		role        string
		others      bool
		own, wanted bool // the node's own, and another one, are for new ENIs
		excluded    bool
	}{
		{"", false, true, false, false}, {"", true, true, false, false}, {"1", false, true, true, false}, {"1", true, false, false, true},
		{"yes", false, true, true, false}, {"0", false, false, false, true}, {"0", true, false, false, true},
	} {
		sn := newSubnets(Subnet{ID: "a", Role: c.role, Others: c.others}, Subnet{ID: "b", Role: c.role, Others: c.others})
		if own, other := sn.suits(&sn.Candidates[0]), sn.suits(&sn.Candidates[1]); own != c.own || other != c.wanted {
			t.Errorf("role %q, others %v: %v and %v, expected %v and %v", c.role, c.others, own, other, c.own, c.wanted)
		}
		if sn.excluded("a") != c.excluded || sn.excluded("b") != c.excluded || sn.excluded("unknown") {
			t.Errorf("role %q, others %v: excluded is %v", c.role, c.others, sn.excluded("b"))
		}
		sn.Set.Discovery = false
		if sn.excluded("a") {
			t.Error("without discovery tags say nothing")
		}
	}
}

// TestTheEmptiestComesFirst: by EC2's count less what has been asked for since, then the next one when EC2 has refused, until each has.
func TestTheEmptiestComesFirst(t *testing.T) {
	sn := newSubnets(Subnet{ID: "a", Free: 50}, Subnet{ID: "b", Free: 60, Role: "1"}, Subnet{ID: "c", Free: 90}, Subnet{ID: "d", Free: 0, Role: "1"})
	expect := func(id string) {
		t.Helper()
		if s, ok := sn.place(0); s.ID != id || ok != (id != "") {
			t.Errorf("%q, %v: expected %q", s.ID, ok, id)
		}
	}
	expect("b")
	sn.takes("b", 15)
	expect("a")
	sn.takes("b", -15)
	if sn.tryAnother("b", AssignIPs, refusal{Class: Limit, Count: 3}) || sn.tryAnother("c", AssignIPs, refusal{Class: NotFound, Count: 3}) || !sn.tryAnother("b", AssignIPs, refusal{Class: SubnetFull, Count: 3}) {
		t.Error("another subnet helps against a full one alone")
	}
	expect("a")
	if !sn.exhausted("b") || !sn.exhausted("d") || sn.exhausted("a") {
		t.Error("b has refused, and d has nothing")
	}
	if !sn.tryAnother("a", CreateENI, refusal{Class: Denied, Count: 4}) {
		t.Error("a role may make no ENI in one subnet, and in another")
	}
	expect("")
	if last, any := sn.forgive(); !any || last != (refusal{Class: Denied, Count: 4}) {
		t.Errorf("%v, %v", last, any)
	}
	expect("b")
	sn.tryAnother("b", CreateENI, refusal{Class: SubnetFull, Count: 4})
	sn.seen(time.Minute, &Seen{Subnets: []Subnet{{ID: "a", Free: 9}, {ID: "b", Free: 12, Role: "1"}}}, true, sn.Steps+1, time.Minute)
	expect("b") // EC2 has been asked since
	alone := newSubnets(Subnet{ID: "a", Free: 0}, Subnet{ID: "b", Free: 9})
	if alone.tryAnother("a", CreateENI, refusal{Class: SubnetFull, Count: 4}) || alone.exhausted("a") {
		t.Error("there is no other: it is asked again as ever")
	}
}

// TestWhenTheSubnetsAreUnknown: growth waits for EC2's word, but not for a permission, nor for ever; a word that is old is asked for again.
func TestWhenTheSubnetsAreUnknown(t *testing.T) {
	sn := newSubnets()
	sn.Candidates, sn.CandidatesKnown = nil, false
	look := &sn.evidence.Looks[LookSubnets]
	if sn.known() || sn.fresh(0) || look.Want != 0 {
		t.Error("EC2 has not been asked, and nobody waits")
	}
	look.Fails, look.Want = mostSilent, 10*time.Second
	if !sn.known() || !sn.fresh(0) || look.Want != 10*time.Second {
		t.Error("EC2 has not answered for long")
	}
	look.Fails = 1
	sn.seen(0, &Seen{Denied: true, Err: "no"}, false, 1, 0)
	if !sn.known() || look.Want < deniedPause || len(sn.out) != 1 {
		t.Error("a role may not ask")
	}
	sn.seen(0, &Seen{Denied: true, Err: "no"}, false, 1, 0)
	if len(sn.out) != 1 {
		t.Error("that is told once")
	}
	if s, ok := sn.place(0); s.ID != "a" || !ok || sn.problem(true) == "" || sn.problem(false) != "" {
		t.Error("the node's own subnet it is then, and pods that wait are told")
	}
	look.Fails = mostSilent
	sn.seen(0, &Seen{Refused: true, Err: "AuthFailure"}, false, 1, 0)
	if sn.known() || sn.fresh(0) || !strings.Contains(sn.problem(true), "before it does: AuthFailure") {
		t.Error("EC2 refuses whatever this caller asks: no ENI is made before it answers")
	}
	sn.seen(0, &Seen{Subnets: []Subnet{{ID: "a"}}}, true, 1, 0)
	if look.Fails = 0; !sn.known() || !sn.fresh(0) {
		t.Error("EC2 has answered")
	}
	sn = newSubnets(Subnet{ID: "a", Role: "0"}, Subnet{ID: "b"})
	if _, ok := sn.place(0); ok || sn.problem(false) == "" {
		t.Error("none is for pods")
	}
	if !sn.fresh(freshSubnets-1) || sn.fresh(freshSubnets) || sn.evidence.Looks[LookSubnets].Want != freshSubnets {
		t.Error("after a minute EC2 is asked again")
	}
}

// TestAFullNodeAsksAboutASubnetThatIsNotForPods: every minute while pods wait, and seldom for the warm target alone, which a full node misses
// for as long as the tag is there.
func TestAFullNodeAsksAboutASubnetThatIsNotForPods(t *testing.T) {
	for _, c := range []struct {
		role   string
		waits  bool
		after  time.Duration
		asks   bool
		atMost time.Duration // when it is looked at again
	}{
		{"0", true, freshSubnets - 1, false, freshSubnets}, {"0", true, freshSubnets, true, never},
		{"0", false, freshSubnets, false, seldomSubnets}, {"0", false, seldomSubnets, true, never},
		{"1", true, seldomSubnets, false, never},
	} {
		p := newPool()
		p.Inst.Limits = Limits{ENIs: 1, Addresses: 10}
		sn := newSubnets(Subnet{ID: "a", Role: c.role}, Subnet{ID: "b", Role: "1"})
		p.enis.ENIs[0].Subnet, p.enis.subnets, p.Warm.At = "a", sn, never
		wp := &warm{life: p.life, requests: p.requests, evidence: p.evidence, subnets: sn, enis: p.enis, pool: p}
		if c.waits {
			p.requests.Waiting = append(p.requests.Waiting, Add{})
		}
		wp.seek(c.after)
		if asks := sn.evidence.Looks[LookSubnets].Want == c.after; asks != c.asks || p.Warm.At != c.atMost {
			t.Errorf("%+v: EC2 is asked: %v, the next look is at %v", c, asks, p.Warm.At)
		}
	}
}
