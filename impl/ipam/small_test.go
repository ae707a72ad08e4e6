package ipam

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestAnAttachmentsName has all three parts of its key, for logs and errors.
func TestAnAttachmentsName(t *testing.T) {
	a := Attachment{"aws-cni", "c1", "eth0"}
	if got := a.String(); got != "aws-cni/c1/eth0" {
		t.Errorf("found %q", got)
	}
}

// TestLimitsHaveBounds: what EC2 or metadata says of a type is a number like any other.
func TestLimitsHaveBounds(t *testing.T) {
	for in, want := range map[Limits]Limits{
		{ENIs: -1, Addresses: -1}:           {},
		{ENIs: 1 << 30, Addresses: 1 << 30}: {ENIs: mostENIs, Addresses: mostAddresses},
		{ENIs: 3, Addresses: 10}:            {ENIs: 3, Addresses: 10},
	} {
		if got := in.bounded(); got != want {
			t.Errorf("%+v: %+v, expected %+v", in, got, want)
		}
	}
}

// TestASaveOfNoRowIsRefused: when it ends, it would be about a row that is not there.
func TestASaveOfNoRowIsRefused(t *testing.T) {
	for ix, good := range map[int32]bool{-1: false, 0: true, 1: false} {
		for _, kind := range []saveKind{saveIntent, saveRelease} {
			n := newborn(t)
			n.ENIs, n.Addrs = make([]eni, 1), []address{{IP: netip.MustParseAddr("10.0.0.1"), ENI: -1, State: Cooling}}
			n.Count[Cooling] = 1
			n.Lanes[RunStore].Waits = []saveWait{{Kind: kind, Ix: ix}}
			if err := n.valid(); (err == nil) != good {
				t.Errorf("a save of kind %d about number %d of 1: %v", kind, ix, err)
			}
		}
	}
}

// TestOfEqualSubnetsTheFirstIsTaken, so that a node's ENIs are where they were at its last start.
func TestOfEqualSubnetsTheFirstIsTaken(t *testing.T) {
	sn := newSubnets(Subnet{ID: "a", Free: 50}, Subnet{ID: "b", Free: 60, Role: "1"}, Subnet{ID: "c", Free: 60, Role: "1"})
	if s, ok := sn.place(0); !ok || s.ID != "b" {
		t.Errorf("found %q, %v", s.ID, ok)
	}
}

// TestAnAnswerEndsTheTroubleOfNone: once EC2 says which subnets there are, it is not said any more that it does not.
func TestAnAnswerEndsTheTroubleOfNone(t *testing.T) {
	sn := newSubnets()
	for _, no := range []Seen{{What: LookSubnets, Err: "down"}, {What: LookSubnets, Err: "denied", Denied: true}, {What: LookSubnets, Err: "clock", Refused: true}} {
		sn.seen(0, &no, false, 0, 0)
		if sn.problem(true) == "" {
			t.Errorf("%s: there is no problem", no.Err)
		}
		sn.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "a", Free: 9}}}, true, 0, 0)
		if why := sn.problem(true); why != "" || sn.Undescribed || sn.Refused {
			t.Errorf("%s, then an answer: %q, undescribed %v, refused %v", no.Err, why, sn.Undescribed, sn.Refused)
		}
	}
}

// TestTwoSandboxesOfOneAddress: the runtime tells of one that is about to end beside the one that has it now. There is one row.
func TestTwoSandboxesOfOneAddress(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.20")
	o := &dataplane.Observation{Links: []dataplane.Link{{Name: "eni1", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{ip}}}}
	r := unionOfWitnesses(&Sources{Network: "aws-cni", Kernel: o.Index(), Runtime: true, Sandboxes: []Sandbox{{ID: "c1", Address: ip}, {ID: "c2", Address: ip}}})
	if len(r.Rows) != 1 || r.Rows[0].Att.ContainerID != "c1" {
		t.Errorf("found %+v", r.Rows)
	}
}

// TestWhatADetachedENIHasTooMuch: nothing where no pod needs it, for such a one is deleted when EC2 does not attach it; single addresses first,
// then whole prefixes.
func TestWhatADetachedENIHasTooMuch(t *testing.T) {
	single := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 1, n}) }
	for _, c := range []struct {
		name    string
		carries bool
		v       ENI
		want    int
		whole   bool
	}{
		{"as many as may be", true, ENI{Addresses: []netip.Addr{single(1), single(2)}}, 0, false},
		{"two too many", true, ENI{Addresses: []netip.Addr{single(1), single(2), single(3), single(4)}}, 2, false},
		{"no pod has one", false, ENI{Addresses: []netip.Addr{single(1), single(2), single(3), single(4)}}, 0, false},
		{"a prefix too many", true, ENI{Addresses: []netip.Addr{single(1)}, Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/28"),
			netip.MustParsePrefix("10.0.2.16/28")}}, 1, false},
		{"prefixes alone", true, ENI{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.2.0/28"), netip.MustParsePrefix("10.0.2.16/28"),
			netip.MustParsePrefix("10.0.2.32/28")}}, prefixSize, true},
	} {
		n := newborn(t)
		n.Inst.Limits.Addresses = 3
		n.enis.newENI(eni{ENI: c.v, Stage: Created})
		for _, p := range c.v.Prefixes {
			for ip := range addressesOf(p) {
				n.pool.adopt(0, ip, 0, true)
				n.pool.free(n.pool.byAddress[ip])
			}
		}
		if c.carries {
			pod := netip.MustParseAddr("10.0.9.9")
			n.pool.adopt(0, pod, 0, false)
			n.pool.free(n.pool.byAddress[pod])
			n.pool.become(n.pool.byAddress[pod], Assigned)
		}
		if got := n.driver.surplus(0); len(got) != c.want || n.ENIs[0].Prefixed != c.whole {
			t.Errorf("%s: %v, whole prefixes %v; expected %d, %v", c.name, got, n.ENIs[0].Prefixed, c.want, c.whole)
		}
	}
}

// TestADepartureIsNotListed before metadata has listed it again.
func TestADepartureIsNotListed(t *testing.T) {
	n := newborn(t)
	ip := netip.MustParseAddr("10.0.0.20")
	n.evidence.depart(time.Minute, ip)
	if n.evidence.listed(ip) {
		t.Error("it was given back, and metadata has not been heard since")
	}
	n.evidence.hearsay(2*time.Minute, ip, "")
	if !n.evidence.listed(ip) {
		t.Error("metadata has listed it")
	}
}

// TestWhatAMissingENIBecomes: one with pods on it or made by this node is attached again, another one is forgotten.
func TestWhatAMissingENIBecomes(t *testing.T) {
	for _, c := range []struct {
		name, owner string
		pods        bool
		want        Stage
	}{{"ours", "i-1", false, Created}, {"pods live on it", "", true, Created}, {"neither", "", false, 0}} {
		n := newborn(t)
		n.Inst.ID = "i-1"
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
		ip := netip.MustParseAddr("10.0.0.20")
		n.pool.adopt(0, ip, ix, false)
		n.pool.free(n.pool.byAddress[ip])
		if c.pods {
			n.pool.become(n.pool.byAddress[ip], Assigned)
		}
		n.survey.missing(time.Minute, ix, &ENI{ID: "eni-1", Status: "available", Owner: c.owner})
		if got := n.ENIs[ix].Stage; got != c.want {
			t.Errorf("%s: %v, expected %v", c.name, got, c.want)
		}
		if noted(n, ENIMissing) != 1 || (noted(n, Restored) == 1) != (c.want == Created) {
			t.Errorf("%s: told that it is missing %d times, and that it is attached again %d times", c.name,
				noted(n, ENIMissing), noted(n, Restored))
		}
	}
}

// TestAnENIWithoutAPlace is one that EC2 has refused to attach as often as that is tried.
func TestAnENIWithoutAPlace(t *testing.T) {
	for _, barred := range []int{attachTries - 1, attachTries} {
		n := newborn(t)
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created, mutation: mutation{Barred: barred}})
		ip := netip.MustParseAddr("10.0.0.20")
		n.pool.adopt(0, ip, ix, false)
		n.pool.free(n.pool.byAddress[ip])
		n.pool.become(n.pool.byAddress[ip], Assigned)
		if got := n.enis.unplaced() != nil; got != (barred == attachTries) {
			t.Errorf("refused %d times: %v", barred, got)
		}
		if e := &n.ENIs[ix]; barred == attachTries { // another one goes: there may be a place now
			e.Next = never
			gone := n.enis.newENI(eni{ENI: ENI{ID: "eni-2"}, Stage: Tombstoned})
			n.driver.finish(time.Minute, gone)
			if n.ENIs[ix].Next != time.Minute {
				t.Errorf("another ENI is gone, and it is tried again at %v", n.ENIs[ix].Next)
			}
		}
	}
}

// TestAllENIsHaveTheirGroupsAskedFor: those of each that EC2 has not told of yet, whichever comes first.
func TestAllENIsHaveTheirGroupsAskedFor(t *testing.T) {
	n := newborn(t)
	n.life.Phase, n.life.Surveyed, n.enis.Grouped = serving, true, []string{"sg-now"}
	n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
	n.enis.newENI(eni{ENI: ENI{ID: "eni-2", Device: 2, Groups: []string{"sg-now"}}, Stage: Ready})
	n.enis.newENI(eni{ENI: ENI{ID: "eni-3", Device: 3, Groups: []string{"sg-old"}}, Stage: Ready})
	n.enis.newENI(eni{ENI: ENI{ID: "eni-4", Device: 4}, Stage: Ready})
	n.driver.regroup(time.Minute)
	if e := n.ENIs; !e[0].Asking || e[1].Doing != 0 || e[2].Doing != GroupENI || !e[3].Asking {
		t.Errorf("asked %v and %v, the others do %v and %v", e[0].Asking, e[3].Asking, e[1].Doing, e[2].Doing)
	}
}

// TestWhoUsesALeak: it is an attachment's, or of what was set aside, and not of what is free or cools.
func TestWhoUsesALeak(t *testing.T) {
	for state, used := range map[State]bool{Free: false, Assigned: true, Cooling: false, Quarantined: true} {
		p := newPool()
		ip := netip.MustParseAddr("10.0.0.20")
		p.adopt(0, ip, 0, false) // it cools
		if ix := p.byAddress[ip]; state != Cooling {
			p.free(ix)
			if state != Free {
				p.become(ix, state)
			}
		}
		if got := p.uses(&ENI{Addresses: []netip.Addr{ip}}); got != used {
			t.Errorf("%v: %v", state, got)
		}
	}
}

// TestAPrefixIsOneBlock, the first one too.
func TestAPrefixIsOneBlock(t *testing.T) {
	p := newPool()
	ofPrefix(p, "10.0.0.16/28")
	ofPrefix(p, "10.0.0.32/28")
	if len(p.blocks) != 2 || slices.ContainsFunc(p.blocks, func(b block) bool { return b.Has[Free] != prefixSize }) {
		t.Errorf("found %+v", p.blocks)
	}
}

// TestAnAnswerAboutAnothersENIEndsTheQuestion.
func TestAnAnswerAboutAnothersENIEndsTheQuestion(t *testing.T) {
	n := newborn(t)
	n.Inst.ID = "i-1"
	n.evidence.Others = []other{{ID: "eni-9", Asking: true}}
	n.survey.resolveOther(time.Minute, &n.evidence.Others[0], &ENI{ID: "eni-9", Instance: "i-1", Status: "detaching"})
	if ids := n.enis.doubtful(); len(ids) != 0 {
		t.Errorf("EC2 is asked about %s again", strings.Join(ids, ", "))
	}
}

// TestAnIntentOutlivesTheRecordOfWhatItTook: the two are in two files, and a daemon that finds neither gives a pod what metadata still lists.
func TestAnIntentOutlivesTheRecordOfWhatItTook(t *testing.T) {
	n := newborn(t)
	ip := netip.MustParseAddr("10.0.0.20")
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Token: "t", Stage: Ready,
		mutation: mutation{Doing: UnassignIPs, Before: []netip.Addr{ip}, Stored: true}})
	n.pool.adopt(0, ip, ix, false)
	n.driver.unassigned(time.Minute, ix)
	e := &n.ENIs[ix]
	if !e.Stored || e.Wait != storing {
		t.Fatalf("the intent is on record: %v, and waits for %v", e.Stored, e.Wait)
	}
	if n.driver.takenSaved(time.Minute, ix, e.Tag, true); e.Stored || e.Wait != idle {
		t.Errorf("the record is durable, and the intent is on record: %v, and waits for %v", e.Stored, e.Wait)
	}
}

// TestFactsBesideAnIntent: of the ENIs on record those are taken into service of which no intent speaks, whichever comes first.
func TestFactsBesideAnIntent(t *testing.T) {
	n := newborn(t)
	n.Inst.Limits = Limits{ENIs: 3, Addresses: 10}
	n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Token: "t", Stage: Draining})
	n.ledger.Facts = &Facts{ENIs: []ENI{{ID: "eni-1", Device: 1}, {ID: "eni-2", Device: 2, MAC: "02:00:00:00:00:02"}}}
	n.survey.believe(0, (&dataplane.Observation{Links: []dataplane.Link{{Name: "eth2", MAC: "02:00:00:00:00:02"}}}).Index())
	if _, ok := n.enis.eniByID("eni-2"); !ok || len(n.ENIs) != 2 {
		t.Errorf("found %+v", n.ENIs)
	}
}

// TestMetadataPlacesAPodsAddressAlone, and only one that is on no ENI: of all others it says no more than that it lists them.
func TestMetadataPlacesAPodsAddressAlone(t *testing.T) {
	for _, c := range []struct {
		name  string
		on    int32 // before; -1 is no ENI
		state State
		at    time.Duration
		want  int32
	}{
		{"a pod's on no ENI", -1, Assigned, consistency, 0},
		{"one that a pod has just got on an ENI that no source has named yet", -1, Assigned, consistency - 1, -1},
		{"a pod's on another ENI", 1, Assigned, consistency, 1},
		{"a cooling one on no ENI", -1, Cooling, consistency, -1},
	} {
		n := newborn(t)
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready})
		n.enis.newENI(eni{ENI: ENI{ID: "eni-2", Device: 1}, Stage: Ready})
		ip := netip.MustParseAddr("10.0.0.20")
		n.pool.adopt(0, ip, 1, false)
		ix := n.pool.byAddress[ip]
		if c.state == Assigned {
			n.pool.free(ix)
			n.pool.become(ix, Assigned)
		}
		n.pool.place(ix, c.on)
		n.survey.adoptAddresses(c.at, LookIMDS, 0, &ENI{ID: "eni-1", Addresses: []netip.Addr{ip}})
		if got := n.pool.Addrs[ix].ENI; got != c.want {
			t.Errorf("%s: it is on ENI %d, expected %d", c.name, got, c.want)
		}
	}
}

// TestAPrefixThatStaysIsGiven: EC2 has not heard of the end of a prefix, and a pod has got one of its addresses meanwhile. The fifteen others are for
// pods again.
func TestAPrefixThatStaysIsGiven(t *testing.T) {
	n := newborn(t)
	prefix := netip.MustParsePrefix("10.0.0.16/28")
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Prefixes: []netip.Prefix{prefix}}, Stage: Ready, Trimming: true,
		mutation: mutation{Doing: UnassignIPs, Prefixed: true, Lost: true, Before: slices.Collect(addressesOf(prefix))}})
	for ip := range addressesOf(prefix) {
		n.pool.adopt(0, ip, ix, true)
		i := n.pool.byAddress[ip]
		n.pool.free(i)
		if n.pool.Addrs[i].Leaving = true; ip == prefix.Addr() {
			n.pool.Addrs[i].Leaving = false
			n.pool.become(i, Assigned)
		}
	}
	n.survey.resolveUnassign(time.Minute, ix, &ENI{ID: "eni-1", Prefixes: []netip.Prefix{prefix}})
	if i := slices.IndexFunc(n.pool.Addrs, func(a address) bool { return a.Leaving }); i >= 0 || n.ENIs[ix].Lost {
		t.Errorf("%v is about to go, and the call is in doubt: %v", n.pool.Addrs[max(i, 0)].IP, n.ENIs[ix].Lost)
	}
}

// TestPodsWaitBesideENIsThatAreShutOut: STATUS and the ADD's error name them, and nobody has to guess from tags why a node with free slots gives
// nothing.
func TestPodsWaitBesideENIsThatAreShutOut(t *testing.T) {
	n := newborn(t)
	n.life.Phase, n.life.Surveyed, n.life.Set = serving, true, Defaults()
	n.Inst.Subnet = "subnet-1"
	n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "subnet-1", Free: 9}, {ID: "subnet-2", Free: 9, Role: "0"}}}, true, 0, 0)
	n.enis.newENI(eni{ENI: ENI{ID: "eni-0", Subnet: "subnet-1"}, Stage: Ready})
	n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Subnet: "subnet-2"}, Stage: Ready})
	const says = "no pod gets an address of eni-1 in subnet-2"
	if text := strings.Join(n.reasons(nil), "\n"); strings.Contains(text, says) {
		t.Errorf("no pod waits, and the reasons are %s", text)
	}
	add := Add{Pod: Pod{Name: "web"}}
	n.requests.Waiting = []Add{add}
	if text := strings.Join(n.reasons(nil), "\n"); !strings.Contains(text, says) {
		t.Errorf("the reasons are %s", text)
	}
	if text := n.pods.noAddress(0, &add); !strings.Contains(text, says) {
		t.Errorf("the ADD's error is %s", text)
	}
}

// TestNoENIForAPrefixThatAnENIWillHaveRoomFor: single addresses that nobody has go, and single addresses that an earlier daemon has asked for may not be
// there. EC2 is asked which, and where it does not answer an ENI is made after all. (Swarm, seeds 2269831 and 2325727.)
func TestNoENIForAPrefixThatAnENIWillHaveRoomFor(t *testing.T) {
	for _, c := range []struct {
		name           string
		assigned, free int // single addresses of the ENI, which has three slots
		lost           int // that an earlier daemon has asked for
		fails          int
		makes          bool
	}{
		{"pods have all three", 3, 0, 0, 0, true},
		{"nobody has two of three", 1, 2, 0, 0, false},
		{"two are in doubt", 1, 0, 2, 0, false},
		{"two are in doubt, and EC2 does not say", 1, 0, 2, 3, true},
	} {
		n := newborn(t)
		n.life.Phase, n.life.Surveyed, n.life.Set = serving, true, Defaults()
		n.Set.PrefixDelegation, n.Set.WarmIPTarget = true, 2
		n.Inst = Instance{ID: "i-1", Subnet: "subnet-1", Limits: Limits{ENIs: 3, Addresses: 4, Prefixes: true}}
		n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "subnet-1", Free: 200}}}, true, 0, 0)
		e := eni{ENI: ENI{ID: "eni-0", Subnet: "subnet-1"}, Stage: Ready}
		if c.lost > 0 {
			e.Doing, e.Count, e.Lost = AssignIPs, c.lost, true
			n.evidence.Looks[LookENI].Fails = c.fails
		}
		n.enis.newENI(e)
		for i := range c.assigned + c.free {
			ip := netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)})
			n.pool.adopt(0, ip, 0, false)
			if n.pool.free(n.pool.byAddress[ip]); i < c.assigned {
				n.pool.become(n.pool.byAddress[ip], Assigned)
			}
		}
		n.warm.grow(0, 2, false)
		if made := len(n.ENIs) > 1; made != c.makes {
			t.Errorf("%s: an ENI is made: %v", c.name, made)
		}
	}
}

// TestFactsAreBounded: what a damaged record claims is not believed when it is more than a machine can have.
func TestFactsAreBounded(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.4")
	f := &Facts{Instance: Instance{ID: "i-1", PrimaryMAC: "m0", Address: ip}}
	for i := range mostENIs {
		name := strconv.Itoa(i)
		f.ENIs = append(f.ENIs, ENI{ID: name, MAC: "m" + name, Device: i, CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: ip})
		f.Found = append(f.Found, name)
	}
	if !f.usable() {
		t.Errorf("%d ENIs are not believed", mostENIs)
	}
	one := f.ENIs[1]
	one.ID = "another"
	for what, more := range map[string]Facts{
		"ENIs":      {Instance: f.Instance, ENIs: append(slices.Clone(f.ENIs), one)},
		"ENIs seen": {Instance: f.Instance, ENIs: f.ENIs, Found: append(slices.Clone(f.Found), "another")},
	} {
		if more.usable() {
			t.Errorf("%d %s are believed", mostENIs+1, what)
		}
	}
}

// TestWhoseAnENIIsSays for people why an ENI is left alone.
func TestWhoseAnENIIsSays(t *testing.T) {
	for want, v := range map[string]ENI{
		"its kind is efa":              {Kind: "efa", NoManage: "true"},
		"no_manage=true":               {Kind: ordinaryENI, NoManage: "true"},
		"MANAGE_UNTAGGED_ENI is false": {},
	} {
		if got := v.whose(); !strings.Contains(got, want) {
			t.Errorf("%+v: %q, expected %q", v, got, want)
		}
	}
}

// TestAnothersENIKeepsAllItsAddresses, not only its primary one: what the kernel has for them is no residue.
func TestAnothersENIKeepsAllItsAddresses(t *testing.T) {
	n := newborn(t)
	primary, second := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.10")
	n.evidence.setAside(&ENI{ID: "eni-9", Primary: primary, Addresses: []netip.Addr{second},
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.0.0.16/28")}}, true)
	keeps := n.evidence.Others[0].Keeps
	for _, ip := range []netip.Addr{primary, second, netip.MustParseAddr("10.0.0.31")} {
		if !slices.Contains(keeps, ip) {
			t.Errorf("%v is not kept, of %v", ip, keeps)
		}
	}
}

// TestAnUnlistedENIIsListedAgain: with metadata alone, how long another's ENI has not been listed counts from the last time that it was.
func TestAnUnlistedENIIsListedAgain(t *testing.T) {
	n := newborn(t)
	n.Set.IMDSOnly = true
	v := ENI{ID: "eni-9", MAC: "m9"}
	n.evidence.setAside(&v, true)
	since := func(now time.Duration, view ...ENI) time.Duration {
		n.evidence.absentOthers(now, view)
		return n.evidence.Others[0].Unlisted
	}
	if a, b, c, d := since(1), since(2), since(3, v), since(4); a != 1 || b != 1 || c != 0 || d != 4 {
		t.Errorf("not listed since %d, %d, %d and %d; expected 1, 1, 0, 4", a, b, c, d)
	}
}

// TestWhatWasFoundIsNotForgotten: with metadata alone, which ENIs were there at the first start of this boot is what makes them ours. A
// daemon that started later, and found none so, keeps the word of the one before.
func TestWhatWasFoundIsNotForgotten(t *testing.T) {
	for _, c := range []struct {
		now, want []string
		imdsOnly  bool
	}{{nil, []string{"eni-1"}, true}, {[]string{"eni-2"}, []string{"eni-2"}, true}, {nil, nil, false}} {
		n := newborn(t)
		n.Phase, n.Set.IMDSOnly, n.Inst.Address = serving, c.imdsOnly, netip.MustParseAddr("10.0.0.4")
		n.evidence.Found, n.ledger.Facts = c.now, &Facts{Found: []string{"eni-1"}}
		n.enis.tellNext()
		if got := n.ledger.Facts.Found; !slices.Equal(got, c.want) {
			t.Errorf("found %v by now, metadata alone %v: %v is on record, expected %v", c.now, c.imdsOnly, got, c.want)
		}
	}
}

// TestAnENIInUseIsLookedAt: EC2 says of an ENI whose detach it has confirmed that it is in use, again and again.
func TestAnENIInUseIsLookedAt(t *testing.T) {
	for tries, lost := range map[int]bool{1: false, deleteTries: false, deleteTries + 1: true} {
		n := newborn(t)
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Detached, mutation: mutation{Doing: DeleteENI, Tries: tries}})
		n.driver.refused(time.Minute, 0, &Result{Class: InUse})
		if n.ENIs[0].Lost != lost {
			t.Errorf("after %d tries EC2 is asked: %v, expected %v", tries, !lost, lost)
		}
	}
}

// TestAnothersENIIsToldOnce, and what is known of it stays when an answer says less.
func TestAnothersENIIsToldOnce(t *testing.T) {
	primary, second := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.10")
	full, bare := ENI{ID: "eni-9", MAC: "m9", Device: 3, Primary: primary, Addresses: []netip.Addr{second}},
		ENI{ID: "eni-9", MAC: "m9", Device: 4}
	moved := ENI{ID: "eni-9", MAC: "m9", Device: 4, Primary: second, Addresses: []netip.Addr{primary}}
	for _, c := range []struct {
		name  string
		alone bool // metadata alone is asked
		views []ENI
		read  []bool // EC2 says it
		told  int
		why   string // part of it
		keeps []netip.Addr
	}{
		{"EC2 says so", false, []ENI{full}, []bool{true}, 1, "is not tagged", []netip.Addr{primary, second}},
		{"EC2 says so twice", false, []ENI{full, bare}, []bool{true, true}, 1, "is not tagged", []netip.Addr{primary,
			second}},
		{"its addresses are others", false, []ENI{full, moved}, []bool{true, true}, 1, "is not tagged",
			[]netip.Addr{second, primary}},
		{"metadata shows it", false, []ENI{full}, []bool{false}, 0, "", []netip.Addr{primary, second}},
		{"metadata shows it, and EC2 says so", false, []ENI{full, bare}, []bool{false, true}, 1, "is not tagged",
			[]netip.Addr{primary, second}},
		{"EC2 says so, and metadata shows it", false, []ENI{full, bare}, []bool{true, false}, 1, "is not tagged",
			[]netip.Addr{primary, second}},
		{"metadata alone", true, []ENI{full, bare}, []bool{false, false}, 1, "ENABLE_IMDS_ONLY_MODE",
			[]netip.Addr{primary, second}},
		{"EC2 had said so before", true, []ENI{full, bare}, []bool{true, false}, 1, "is not tagged",
			[]netip.Addr{primary, second}},
	} {
		n := newborn(t)
		n.Set.IMDSOnly = c.alone
		for i := range c.views {
			n.evidence.calm = true
			n.evidence.setAside(&c.views[i], c.read[i])
			if o := n.evidence.otherByID("eni-9"); o.Device != c.views[i].Device || n.evidence.calm != (i > 0) {
				t.Errorf("%s: device %d, the kernel's next word may be passed over: %v", c.name, o.Device,
					n.evidence.calm)
			}
			n.evidence.Others[0].Asking = true
		}
		n.evidence.setAside(&c.views[len(c.views)-1], c.read[len(c.views)-1])
		o := &n.evidence.Others[0]
		if told := noted(n, ENINotOurs); told != c.told || !strings.Contains(o.Why, c.why) ||
			(o.Why == "") != (c.why == "") {
			t.Errorf("%s: told %d times, %q; expected %d, %q", c.name, told, o.Why, c.told, c.why)
		}
		if !slices.Equal(o.Keeps, c.keeps) || o.Asking == c.read[len(c.read)-1] || len(n.evidence.Others) != 1 {
			t.Errorf("%s: %+v, expected to keep %v", c.name, n.evidence.Others, c.keeps)
		}
	}
}
