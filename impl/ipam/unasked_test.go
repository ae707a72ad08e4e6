package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Each of these asks one part, or a Node that serves, what no story of a whole node asks by itself.

// assign gives address ix of a Node to an attachment of that container, which nothing runs on.
func assign(n *Node, ix int32, id string) Attachment {
	att := Attachment{network, id, "eth0"}
	n.pool.become(ix, Assigned)
	n.pool.Addrs[ix].Att = att
	n.pool.key(ix)
	return att
}

// replies are those of the step so far.
func replies(n *Node) map[Req]*Reply {
	out := map[Req]*Reply{}
	for _, e := range n.out {
		if r, ok := e.(*Reply); ok {
			out[r.Req] = r
		}
	}
	return out
}

// applies are those of the step so far.
func applies(n *Node) (out []*Apply) {
	for _, e := range n.out {
		if a, ok := e.(*Apply); ok {
			out = append(out, a)
		}
	}
	return out
}

// noted counts the notes of the step so far that are of a point.
func noted(n *Node, p Point) (count int) {
	for _, e := range n.out {
		if m, ok := e.(*Note); ok && m.Point == p {
			count++
		}
	}
	return count
}

// behind is the link of a living pod that has an address, of our making.
func behind(name string, att Attachment, ip netip.Addr) dataplane.Link {
	a := alias(att, ip)
	return dataplane.Link{Name: name, Alias: a, MAC: dataplane.VethMAC(a), Veth: true, PeerLive: true,
		PeerAddresses: []netip.Addr{ip}}
}

// indexOf is a whole observation of these links.
func indexOf(links ...dataplane.Link) *dataplane.Index {
	return (&dataplane.Observation{Complete: true, Links: links}).Index()
}

// TestWhichOfTwoAddressesIsGiven: where nothing speaks for either, the one that is free longer, which comes first.
func TestWhichOfTwoAddressesIsGiven(t *testing.T) {
	for _, prefixes := range []bool{true, false} {
		p := newPool()
		p.Set.PrefixDelegation, p.Inst.Limits.Prefixes = prefixes, true
		for _, ip := range []string{"10.0.0.10", "10.0.0.11"} {
			p.adopt(0, netip.MustParseAddr(ip), 0, false)
			p.free(p.byAddress[netip.MustParseAddr(ip)])
		}
		a, b, c := ofPrefix(p, "10.0.0.16/28"), ofPrefix(p, "10.0.0.32/28"), ofPrefix(p, "10.0.0.48/28")
		p.become(c[15], Assigned)
		for _, x := range []struct {
			what    string
			a, than int32
			want    bool
		}{
			{"two by themselves", 1, 0, false},
			{"two of one prefix", a[1], a[0], false},
			{"two of prefixes that nobody uses", b[0], a[0], false},
			{"of a prefix with a pod", c[0], a[0], true},
			{"of a prefix without one", a[0], c[0], false},
			{"of a prefix, and one by itself", a[0], 0, prefixes},
			{"one by itself, and of a prefix", 0, a[0], !prefixes},
		} {
			if got := p.better(&p.Addrs[x.a], &p.Addrs[x.than]); got != x.want {
				t.Errorf("prefixes %v, %s: it is better: %v", prefixes, x.what, got)
			}
		}
		p.become(c[15], Cooling)
		if !p.better(&p.Addrs[c[0]], &p.Addrs[a[0]]) || p.better(&p.Addrs[a[0]], &p.Addrs[c[0]]) {
			t.Errorf("prefixes %v: one that cools does not count", prefixes)
		}
	}
}

// TestAnADDGoesOnWhenItsRowIsDurable: it counts as allocated from then. A Save that fails, or one of an earlier
// life of the row, makes nothing.
func TestAnADDGoesOnWhenItsRowIsDurable(t *testing.T) {
	for _, c := range []struct {
		what      string
		older, ok bool
		twice     bool
		want      op
		state     State
		allocated time.Duration
		plans     int
	}{
		{"durable", false, true, false, wiring, Assigned, 5 * time.Second, 1},
		{"durable, told twice", false, true, true, wiring, Assigned, 5 * time.Second, 1},
		{"not durable", false, false, false, noOp, Free, 0, 0},
		{"of an earlier row", true, true, false, adding, Assigned, time.Second, 0},
		{"of an earlier row, and not durable", true, false, false, adding, Assigned, time.Second, 0},
	} {
		n := freeOn(t, "10.0.0.20")
		n.Steps = 7
		att := Attachment{network, "c1", "eth0"}
		n.requests.accept(time.Second, 1, VerbAdd, att, time.Minute)
		n.pods.begin(time.Second, 0, &Add{Req: 1, Att: att, Netns: 9})
		n.requests.accept(time.Second, 2, VerbDel, att, time.Minute)
		n.requests.enqueue(queued{Del: &Del{Req: 2, Att: att}})
		a := &n.pool.Addrs[0]
		tag := a.Tag
		if c.older {
			tag--
		}
		n.pods.addSaved(5*time.Second, 0, tag, c.ok)
		if c.twice {
			n.pods.addSaved(6*time.Second, 0, tag, c.ok)
		}
		if a.Op != c.want || a.State != c.state || a.Allocated != c.allocated || len(applies(n)) != c.plans {
			t.Errorf("%s: %v runs, it is %v, allocated at %v, %d plans", c.what, a.Op, a.State, a.Allocated,
				len(applies(n)))
		}
		r := replies(n)
		if failed := c.state == Free; failed != (r[1] != nil && r[1].Err != nil && r[1].Err.Code == CodeTryAgain) ||
			failed != (r[2] != nil && r[2].Err == nil) {
			t.Errorf("%s: the ADD is told %+v, the DEL behind it %+v", c.what, r[1], r[2])
		}
	}
}

// TestTheAnswerNamesTheENIsDevice, by which the plugin knows the interface; where no ENI is known there is none to
// name.
func TestTheAnswerNamesTheENIsDevice(t *testing.T) {
	for on, device := range map[int32]int{-1: 0, 0: 2, 1: 3} {
		n := freeOn(t, "10.0.0.20")
		n.ENIs[0].Device = 2
		n.enis.newENI(eni{ENI: ENI{ID: "eni-3", Device: 3}, Stage: Ready})
		att := assign(n, 0, "c1")
		n.pool.place(0, on)
		n.pool.Addrs[0].Veth = "eni123"
		n.requests.accept(0, 1, VerbAdd, att, time.Minute)
		n.pods.replyAdd(0, 1)
		n.pods.replyAdd(0, 1) // its caller has been told
		r := replies(n)[1]
		if r == nil || len(n.out) != 1 {
			t.Fatalf("on ENI %d: %+v", on, n.out)
		}
		if r.Device != device || r.Address != n.pool.Addrs[0].IP || r.Att != att || r.Err != nil ||
			r.Verb != VerbAdd || r.Veth != "eni123" ||
			r.Table != n.pool.table(&n.pool.Addrs[0]) {
			t.Errorf("on ENI %d: %+v, expected device %d", on, r, device)
		}
	}
}

// TestAnADDThatWaitsWhileAnotherIsServed: its attachment has an address by now. It asks the kernel, or is behind
// what runs there.
func TestAnADDThatWaitsWhileAnotherIsServed(t *testing.T) {
	for _, busy := range []bool{false, true} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		att := assign(n, 0, "c1")
		if busy {
			n.pool.Addrs[0].run(repairing)
		}
		other := Attachment{network, "c2", "eth0"}
		for r, at := range []Attachment{att, other} {
			n.requests.accept(0, Req(r+1), VerbAdd, at, time.Minute)
			n.requests.Waiting = append(n.requests.Waiting, Add{Req: Req(r + 1), Att: at, Netns: 9})
		}
		n.pods.serve(0)
		if len(n.requests.Waiting) != 0 || (len(n.requests.Queued) == 1) != busy ||
			(len(n.requests.Agains) == 1) == busy {
			t.Errorf("busy %v: %d wait, %d are queued, %d look at the kernel", busy, len(n.requests.Waiting),
				len(n.requests.Queued), len(n.requests.Agains))
		}
		if a := &n.pool.Addrs[1]; a.Att != other || a.Op != adding || noted(n, AddWaited) != 1 {
			t.Errorf("busy %v: the next one has %v, %v runs", busy, a.Att, a.Op)
		}
	}
}

// TestAnOccupiedAddressIsSetAsideAndTold: the ADD goes on with another address while somebody waits for it, and not
// for ever.
func TestAnOccupiedAddressIsSetAsideAndTold(t *testing.T) {
	occupied := &dataplane.Error{Kind: dataplane.Exists}
	for _, c := range []struct {
		what  string
		err   *dataplane.Error
		gone  bool
		tries int
		told  bool // that the address is set aside
		fails bool
		then  bool
	}{
		{"occupied", occupied, false, 0, true, false, true},
		{"occupied once more", occupied, false, maxOccupied - 1, true, false, true},
		{"occupied for the last time", occupied, false, maxOccupied, false, true, false},
		{"occupied, and the caller is gone", occupied, true, 0, false, false, false},
		{"broken", &dataplane.Error{Kind: dataplane.NoLink}, false, 0, false, true, false},
		{"done, and the caller is gone", nil, true, 0, false, false, false},
	} {
		n := freeOn(t, "10.0.0.20")
		n.Steps = 7
		att := Attachment{network, "c1", "eth0"}
		n.requests.accept(0, 1, VerbAdd, att, time.Minute)
		n.pods.begin(0, 0, &Add{Req: 1, Att: att, Netns: 9, Tries: c.tries})
		a := &n.pool.Addrs[0]
		n.pods.addSaved(0, 0, a.Tag, true)
		if n.Steps = 8; c.gone {
			n.pods.gone(1)
		}
		n.pods.addApplied(0, 0, Applied{Err: c.err})
		if told := noted(n, AddressQuarantined) == 1; told != c.told {
			t.Errorf("%s: it is told: %v", c.what, told)
		}
		if a.Op != releasing || a.State != Cooling || a.Req != 0 || a.Tag != 8 {
			t.Errorf("%s: %v runs, it is %v, request %d, changed in step %d", c.what, a.Op, a.State, a.Req, a.Tag)
		}
		if (a.Then != nil) != c.then || c.then && a.Then.Tries != c.tries+1 {
			t.Errorf("%s: then comes %+v", c.what, a.Then)
		}
		if r := replies(n)[1]; (r != nil) != c.fails || c.fails && (r.Err == nil || r.Err.Code != CodeIO) {
			t.Errorf("%s: the ADD is told %+v", c.what, r)
		}
	}
}

// TestAnADDIsAnsweredOnceItsPodIsWired, and what waits for its attachment or for a link of its name goes on.
func TestAnADDIsAnsweredOnceItsPodIsWired(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21")
	var atts []Attachment
	for i, id := range []string{"c1", "c2"} { // of one pod: one name
		att := Attachment{network, id, "eth0"}
		atts = append(atts, att)
		n.requests.accept(0, Req(i+1), VerbAdd, att, time.Minute)
		n.pods.begin(0, int32(i), &Add{Req: Req(i + 1), Att: att, Pod: Pod{Namespace: "default", Name: "web"},
			Netns: 9})
		n.pods.addSaved(0, int32(i), n.pool.Addrs[i].Tag, true)
	}
	if n.pool.Addrs[1].Op != held {
		t.Fatalf("the second one: %v runs", n.pool.Addrs[1].Op)
	}
	n.requests.accept(0, 3, VerbDel, atts[0], time.Minute)
	n.requests.enqueue(queued{Del: &Del{Req: 3, Att: atts[0]}})
	n.pods.addApplied(0, 0, Applied{})
	if r := replies(n)[1]; r == nil || r.Err != nil || r.Address != n.pool.Addrs[0].IP {
		t.Errorf("the ADD is told %+v", r)
	}
	if a := &n.pool.Addrs[0]; a.Op != releasing || a.Req != 3 || a.Then != nil {
		t.Errorf("the DEL behind it: %v runs for %d, then %+v", a.Op, a.Req, a.Then)
	}
	if n.pool.Addrs[1].Op != wiring {
		t.Errorf("the second one: %v runs", n.pool.Addrs[1].Op)
	}
	n.Steps = 8
	n.pods.addApplied(0, 1, Applied{})
	if a := &n.pool.Addrs[1]; a.Op != noOp || a.Req != 0 || a.Then != nil || a.State != Assigned || a.Tag != 8 {
		t.Errorf("the second one: %v runs for %d, then %+v; it is %v, changed in step %d", a.Op, a.Req, a.Then,
			a.State, a.Tag)
	}
}

// TestARowThatIsKeyedTwiceIsFoundOnce: when it goes, nothing leads to it.
func TestARowThatIsKeyedTwiceIsFoundOnce(t *testing.T) {
	p := newPool()
	for i, name := range []string{"eth0", "eth1"} {
		p.adopt(0, netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + i)}), 0, false)
		p.Addrs[i].Att = Attachment{"n", "c", name}
		p.key(int32(i))
	}
	p.unkey(0) // the other one may have its place from now on
	p.key(1)
	p.unkey(1)
	if ix, ok := p.rowOf(p.Addrs[1].Att); ok {
		t.Errorf("%v is found at %d", p.Addrs[1].Att, ix)
	}
	p.key(0) // and another attachment of the container is found beside it
	p.Addrs[1].Att.IfName = "eth2"
	p.key(1)
	for i := range int32(2) {
		if ix, ok := p.rowOf(p.Addrs[i].Att); !ok || ix != i {
			t.Errorf("%v is found at %d, %v", p.Addrs[i].Att, ix, ok)
		}
	}
}

// TestAnAddressThatIsHeldBackIsThoughtOf when that ends; what an attachment had, or has, is not held back.
func TestAnAddressThatIsHeldBackIsThoughtOf(t *testing.T) {
	const until = 10 * time.Minute
	for _, c := range []struct {
		what  string
		spoil func(p *pool)
		held  bool
	}{
		{"a new one", func(*pool) {}, true},
		{"it was an attachment's", func(p *pool) { p.Addrs[0].Att.ContainerID = "c1" }, false},
		{"it is free", func(p *pool) { p.free(0) }, false},
	} {
		p := newPool()
		p.adopt(0, netip.MustParseAddr("10.0.0.10"), 0, false)
		c.spoil(p)
		before := p.Addrs[0].ReleasedAt
		p.Flows.At, p.CoolAt = never, never
		p.hold(0, until)
		want, at := before, never
		if c.held {
			want, at = until-p.coolDown(), until-flowLead
		}
		if got := p.Addrs[0].ReleasedAt; got != want || p.Flows.At != at {
			t.Errorf("%s: it rests from %v on, and is thought of at %v; expected %v and %v", c.what, got, p.Flows.At,
				want, at)
		}
	}
}

// TestTheEndOfAnAllocationBeginsItsCoolDown, also of what was set aside. What cools already goes on with that.
func TestTheEndOfAnAllocationBeginsItsCoolDown(t *testing.T) {
	for state, since := range map[State]time.Duration{Assigned: time.Minute, Quarantined: time.Minute,
		Cooling: 2 * time.Second} {
		n := freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		a := &n.pool.Addrs[0]
		switch state {
		case Quarantined:
			n.pool.quarantine(0, "why")
		case Cooling:
			n.pool.rest(2*time.Second, 0, false)
		}
		a.Then, a.Tries, a.Retry, a.Clean = &Add{}, 3, time.Second, 2
		n.Steps = 7
		before := len(n.ledger.put[RunStore])
		n.pods.release(time.Minute, 0)
		if a.State != Cooling || a.ReleasedAt != since || a.Op != releasing || !slices.Contains(n.pool.Cooling, 0) {
			t.Errorf("%v: it is %v since %v, %v runs", state, a.State, a.ReleasedAt, a.Op)
		}
		if a.Then != nil || a.Tries != 0 || a.Retry != never || a.Clean != 0 || a.Evidence != "" || a.Tag != 7 {
			t.Errorf("%v: something of before is left: %+v", state, a)
		}
		w := n.Lanes[RunStore].Waits
		if len(w) != 1 || w[0].Kind != saveRelease || w[0].Tag != 7 || len(n.ledger.put[RunStore]) != before+1 {
			t.Errorf("%v: it waits for %+v", state, w)
		}
	}
}

// TestWhatIsNotKnownOfALostCall: a creation may land yet, and of an unassignment EC2 may go on listing what has gone.
func TestWhatIsNotKnownOfALostCall(t *testing.T) {
	for _, c := range []struct {
		doing             Action
		before            time.Duration
		open, doubt, wall time.Duration
	}{
		{doing: CreateENI, open: time.Minute + landing},
		{doing: UnassignIPs, doubt: time.Minute + consistency},
		{doing: UnassignIPs, before: time.Hour, doubt: time.Hour},
		{doing: AssignIPs},
		{doing: AttachENI, before: time.Second, doubt: time.Second},
	} {
		e := eni{mutation: mutation{Doing: c.doing}, Doubt: c.before}
		if e.lose(time.Minute); !e.Lost || e.Open != c.open || e.Doubt != c.doubt {
			t.Errorf("%v, in doubt until %v: lost %v, open until %v, in doubt until %v", c.doing, c.before, e.Lost,
				e.Open, e.Doubt)
		}
	}
}

// TestWhatAnAnswerLeavesInDoubt: a failure may come after the deed, and what EC2 lists may be of before it; what is throttled is
// only to be asked about; and neither doubt shortens an older one.
func TestWhatAnAnswerLeavesInDoubt(t *testing.T) {
	forgets := Sound()
	forgets.Lost = func(Action) Doubt { return Forget }
	for _, c := range []struct {
		policy        *Policy
		doing         Action
		class         Class
		before, doubt time.Duration
	}{
		{Sound(), UnassignIPs, Unavailable, 0, time.Minute + consistency},
		{Sound(), UnassignIPs, Unavailable, time.Hour, time.Hour},
		{Sound(), UnassignIPs, Throttled, 0, time.Minute},
		{Sound(), UnassignIPs, Throttled, time.Hour, time.Hour},
		{Sound(), UnassignIPs, Denied, 0, 0},
		{Sound(), UnassignIPs, OK, 0, 0},
		{Sound(), AssignIPs, Unavailable, 0, 0},
		{Sound(), DetachENI, Throttled, 0, 0},
		{forgets, UnassignIPs, Unavailable, 0, 0},
		{forgets, UnassignIPs, Throttled, 0, 0},
	} {
		n := newborn(t)
		n.driver.policy = c.policy
		e := eni{mutation: mutation{Doing: c.doing}, Doubt: c.before}
		if n.driver.doubts(time.Minute, &e, c.class); e.Doubt != c.doubt || e.Lost {
			t.Errorf("%v, %v, in doubt until %v: in doubt until %v, lost %v", c.doing, c.class, c.before, e.Doubt, e.Lost)
		}
	}
}

// TestAListOfBefore: EC2's own answer has assigned an address to an ENI, and a list that has it where it was may be of before, for a while
// (swarm, seed 4260528); one that names no ENI, or of which nothing was said lately, is where a list has it.
func TestAListOfBefore(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.20")
	for _, c := range []struct {
		what       string
		eni        int32 // before; -1 is no ENI
		named      string
		given, got time.Duration // by EC2; by a pod, 0: no pod has it
		now        time.Duration
		want       int32
	}{
		{"assigned to another a moment ago", 1, "eni-1", time.Minute, 0, time.Minute + consistency - 1, 1},
		{"assigned to another, long ago", 1, "eni-1", time.Minute, 0, time.Minute + consistency, 0},
		{"on another, for who knows how long", 1, "eni-1", 0, 0, 1, 0},
		{"a pod has got it there a moment ago", 1, "eni-1", 0, time.Minute, time.Minute + consistency - 1, 1},
		{"a pod has got it there, long ago", 1, "eni-1", 0, time.Minute, time.Minute + consistency, 0},
		{"assigned to this one", 0, "eni-0", time.Minute, 0, time.Minute + 1, 0},
		{"assigned a moment ago, to an ENI that nobody has named to this daemon", -1, "eni-1", time.Minute, 0, time.Minute + 1, -1},
		{"assigned a moment ago, and taken away from there", -1, "", time.Minute, 0, time.Minute + 1, 0},
	} {
		n := newborn(t)
		n.Inst.ID = "i-1"
		for i, id := range []string{"eni-0", "eni-1"} {
			n.enis.newENI(eni{ENI: ENI{ID: id, Device: i}, Stage: Ready, Linked: true})
		}
		n.pool.adopt(0, ip, 1, false)
		i := n.pool.byAddress[ip]
		if c.got > 0 {
			n.pool.free(i)
			assign(n, i, "c1")
		}
		n.pool.Addrs[i].Given, n.pool.Addrs[i].Allocated = c.given, c.got
		list := &ENI{ID: "eni-0", Instance: "i-1", Owner: "i-1", Status: "in-use", Addresses: []netip.Addr{ip}}
		for by, takes := range map[string]func(){
			"one ENI":  func() { n.survey.resolve(c.now, 0, list) },
			"all ENIs": func() { n.survey.adoptAddresses(c.now, LookAttached, 0, list) },
		} {
			n.pool.place(i, c.eni)
			n.pool.Addrs[i].ENIID = c.named
			if takes(); n.pool.Addrs[i].ENI != c.want {
				t.Errorf("%s, in an answer about %s: on ENI %d, expected %d", c.what, by, n.pool.Addrs[i].ENI, c.want)
			}
		}
	}
}

// TestWhatEC2IsAskedFor: the groups of a new ENI are those of its intent, or the primary's where that has none;
// addresses go by themselves, or as prefixes.
func TestWhatEC2IsAskedFor(t *testing.T) {
	ips := slices.Collect(addressesOf(netip.MustParsePrefix("10.0.0.16/28")))
	for _, c := range []struct {
		what                        string
		e                           eni
		groups                      []string
		count, prefixCount          int
		addresses, prefixes, create int
	}{
		{"a creation", eni{ENI: ENI{Groups: []string{"sg-1"}}, mutation: mutation{Doing: CreateENI, Count: 3}},
			[]string{"sg-1"}, 3, 0, 0, 0, 5},
		{"a creation without groups", eni{mutation: mutation{Doing: CreateENI, Count: 3, Prefixed: true}},
			[]string{"sg-now"}, 0, 3, 0, 0, 5},
		{"other groups", eni{ENI: ENI{Groups: []string{"sg-1"}}, mutation: mutation{Doing: GroupENI}},
			[]string{"sg-now"}, 0, 0, 0, 0, 0},
		{"addresses go", eni{mutation: mutation{Doing: UnassignIPs, Before: ips[:2]}}, nil, 0, 0, 2, 0, 0},
		{"a prefix goes", eni{mutation: mutation{Doing: UnassignIPs, Before: ips, Prefixed: true}}, nil, 0, 0, 0, 1,
			0},
		{"addresses", eni{mutation: mutation{Doing: AssignIPs, Count: 2}}, nil, 2, 0, 0, 0, 0},
	} {
		n := newborn(t)
		n.Inst.ID, n.Cluster, n.enis.Grouped = "i-1", "c", []string{"sg-now"}
		c.e.Wall, c.e.Token, c.e.ID, c.e.Stage, c.e.Subnet, c.e.Device, c.e.Attachment = 5, "t", "eni-1", Ready,
			"subnet-1", 3, "a"
		n.driver.call(time.Minute, n.enis.newENI(c.e))
		got, ok := n.out[len(n.out)-1].(*Call)
		if !ok || n.ENIs[0].Wait != calling || got.Action != c.e.Doing || got.Token != "t" || got.ENI != "eni-1" ||
			got.Subnet != "subnet-1" ||
			got.Device != 3 || got.Attachment != "a" {
			t.Fatalf("%s: %+v", c.what, n.out)
		}
		if !slices.Equal(got.Groups, c.groups) || got.Count != c.count || got.PrefixCount != c.prefixCount ||
			len(got.Addresses) != c.addresses ||
			len(got.Prefixes) != c.prefixes || int(got.Created) != c.create ||
			(got.Owner == "i-1") != (c.create > 0) || (got.Cluster == "c") != (c.create > 0) {
			t.Errorf("%s: %+v", c.what, got)
		}
		if n.driver.Pace.Spent != 1 {
			t.Errorf("%s: %d calls are counted", c.what, n.driver.Pace.Spent)
		}
		if give := n.ENIs[0].Give; c.e.Doing == GroupENI && !slices.Equal(give, c.groups) {
			t.Errorf("%s: it is noted as %v", c.what, give)
		}
	}
}

// TestAnENIThatRecordsNameIsLookedFor: what became of its attach is in doubt, and what pods have is on it. Other
// addresses wait for EC2 to list it.
func TestAnENIThatRecordsNameIsLookedFor(t *testing.T) {
	for _, c := range []struct {
		what         string
		id           string
		state        State
		known, other bool
		asks         Doubt
		made, placed bool
	}{
		{what: "a pod's", id: "eni-9", state: Assigned, asks: Ask, made: true, placed: true},
		{what: "a cooling one", id: "eni-9", state: Cooling, asks: Ask, made: true},
		{what: "a pod's, and the ENI is known", id: "eni-9", state: Assigned, known: true, asks: Ask, placed: true},
		{what: "a pod's, and the ENI is somebody's", id: "eni-9", state: Assigned, other: true, asks: Ask},
		{what: "a pod's on no ENI", state: Assigned, asks: Ask},
		{what: "a pod's, and nothing is asked", id: "eni-9", state: Assigned, asks: Repeat},
	} {
		n := freeOn(t, "10.0.0.20")
		p := Sound()
		p.Lost = func(Action) Doubt { return c.asks }
		n.policy = p
		n.Inst.ID = "i-1"
		assign(n, 0, "c1")
		n.pool.place(0, -1)
		if n.pool.Addrs[0].ENIID = c.id; c.state == Cooling {
			n.pool.rest(0, 0, true)
		}
		if c.known {
			n.enis.newENI(eni{ENI: ENI{ID: "eni-9", Device: 1}, Stage: Ready})
		}
		if c.other {
			n.evidence.Others = []other{{ID: "eni-9"}}
		}
		before := len(n.ENIs)
		n.survey.reclaim(time.Minute)
		if made := len(n.ENIs) > before; made != c.made || n.pool.Addrs[0].ENI >= 0 != c.placed {
			t.Errorf("%s: looked for %v, it is on ENI %d", c.what, made, n.pool.Addrs[0].ENI)
		}
		if on := n.pool.Addrs[0].ENI; c.placed && n.ENIs[on].ID != c.id { // its pod would be wired to another one
			t.Errorf("%s: it is on %s", c.what, n.ENIs[on].ID)
		}
		if !c.made {
			continue
		}
		if e := n.ENIs[before]; e.ID != "eni-9" || e.Owner != "i-1" || e.Stage != Created || e.Doing != AttachENI ||
			!e.Lost ||
			e.Next != time.Minute || e.Since != time.Minute {
			t.Errorf("%s: %+v", c.what, e)
		}
	}
}

// TestEachCHECKIsAnsweredByALookThatIsNewEnough, whichever comes first.
func TestEachCHECKIsAnsweredByALookThatIsNewEnough(t *testing.T) {
	n := freeOn(t, "10.0.0.20")
	att := Attachment{network, "c1", "eth0"}
	for r, tag := range []uint64{9, 5, 6} {
		n.requests.accept(0, Req(r+1), VerbCheck, att, time.Minute)
		n.requests.Checks = append(n.requests.Checks, checking{Check{Req: Req(r + 1), Att: att}, tag})
	}
	n.pods.answerChecks(indexOf(), 6)
	r := replies(n)
	if r[1] != nil || r[2] == nil || r[3] == nil || r[2].Err == nil || r[2].Err.Code != CodeDrifted {
		t.Errorf("told are %+v", r)
	}
	if c := n.requests.Checks; len(c) != 1 || c[0].Req != 1 {
		t.Errorf("waiting are %+v", c)
	}
}

// TestACHECKComparesAnAttachmentWithTheKernel: its record, its namespace, its address there, and what leads to it.
func TestACHECKComparesAnAttachmentWithTheKernel(t *testing.T) {
	for _, c := range []struct {
		what        string
		has, asks   uint64 // namespaces
		state       State
		wired, used bool
		good        bool
	}{
		{"as ADD left it", 7, 7, Assigned, true, true, true},
		{"no namespace is named", 7, 0, Assigned, true, true, true},
		{"no namespace is on record", 0, 7, Assigned, true, true, true},
		{"another namespace", 7, 8, Assigned, true, true, false},
		{"it is set aside", 7, 7, Quarantined, true, true, false},
		{"it is in no namespace", 7, 7, Assigned, true, false, false},
		{"nothing leads to it", 7, 7, Assigned, false, true, false},
	} {
		n := freeOn(t, "10.0.0.20")
		att := assign(n, 0, "c1")
		a := &n.pool.Addrs[0]
		if a.Netns, a.Veth = c.has, "eni1"; c.state == Quarantined {
			n.pool.quarantine(0, "why")
		}
		l := behind("eni1", att, a.IP)
		o := dataplane.Observation{Complete: true}
		if l.Up, l.MTU, l.Proxy = true, n.Set.MTU, []netip.Addr{dataplane.Gateway()}; !c.used {
			l.PeerLive, l.PeerAddresses = false, nil
		}
		to := netip.PrefixFrom(a.IP, 32)
		if o.Links = []dataplane.Link{l}; c.wired {
			o.Routes = []dataplane.Route{{Table: dataplane.MainTable, Dst: to, Link: "eni1"}}
			o.Rules = []dataplane.Rule{{Priority: dataplane.PriorityToPod, To: to, Table: dataplane.MainTable}}
		}
		if why := n.pods.drifted(checking{Check: Check{Att: att, Netns: c.asks}}, o.Index()); (why == "") != c.good {
			t.Errorf("%s: %q", c.what, why)
		}
	}
}

// TestWhichDaemonIsTheFirstOfItsBoot: after a reboot, or beside another CNI's records. Facts are a daemon's of this
// boot; lost records say nothing.
func TestWhichDaemonIsTheFirstOfItsBoot(t *testing.T) {
	pods, intent := Row{Address: netip.MustParseAddr("10.0.0.20"), State: Assigned}, Row{Intent: &Intent{Token: "t"}}
	odd := intent
	odd.Address = pods.Address
	facts := Row{Address: netip.MustParseAddr("10.0.0.4"), State: Departed, Node: &Facts{}}
	for _, c := range []struct {
		what string
		in   Start
		want bool
	}{
		{"nothing", Start{}, false},
		{"another CNI's records", Start{Rows: []Row{pods}}, true},
		{"records beside a damaged file", Start{Rows: []Row{pods}, Unread: "damaged"}, false},
		{"intents alone", Start{Rows: []Row{intent}}, false},
		{"intents with an address", Start{Rows: []Row{odd}}, false},
		{"a row of nothing", Start{Rows: []Row{{}}}, false},
		{"intents, then pods", Start{Rows: []Row{pods, intent}}, true},
		{"facts", Start{Rows: []Row{pods, facts}}, false},
		{"a reboot", Start{Rebooted: true}, true},
		{"a reboot, and facts of before", Start{Rebooted: true, Rows: []Row{facts, pods}}, true},
		{"a reboot, and a damaged file", Start{Rebooted: true, Unread: "damaged"}, true},
	} {
		if got := firstOfBoot(&c.in); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestWhatTheRuntimesListSaysOfAPod: that it lists it and has done so, that it ended, or how often it did not list
// it.
func TestWhatTheRuntimesListSaysOfAPod(t *testing.T) {
	ready, ended := &Sandbox{ID: "c1", Ready: true}, &Sandbox{ID: "c1"}
	old := testimony{Listed: true, Absent: 4, Ended: 4}
	for _, c := range []struct {
		what    string
		list    *Sandbox
		spoil   func(n *Node)
		want    testimony
		missing bool
	}{
		{"ready", ready, func(*Node) {}, testimony{SeenCRI: true, Listed: true}, false},
		{"ended", ended, func(*Node) {}, testimony{SeenCRI: true, Listed: true, Ended: 5}, false},
		{"not listed", nil, func(*Node) {}, testimony{Absent: 5}, true},
		{"something runs", nil, func(n *Node) { n.pool.Addrs[0].run(repairing) }, old, false},
		{"it has changed since", nil, func(n *Node) { n.pool.Addrs[0].Tag = 9 }, old, false},
		{"it is set aside", nil, func(n *Node) { n.pool.quarantine(0, "why") }, old, false},
	} {
		n := freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		n.pool.Addrs[0].testimony = old
		c.spoil(n)
		listed := map[string]*Sandbox{"c2": {ID: "c2"}}
		if c.list != nil {
			listed["c1"] = c.list
		}
		if missing := n.pods.heard(listed, 5); missing != c.missing || n.pool.Addrs[0].testimony != c.want {
			t.Errorf("%s: %+v, missing %v", c.what, n.pool.Addrs[0].testimony, missing)
		}
	}
}

// TestWhichAnswersAreWhole: one that says so and holds what was asked for, and the runtime's only with the daemon's
// own sandbox.
func TestWhichAnswersAreWhole(t *testing.T) {
	some := &dataplane.Observation{}
	for _, c := range []struct {
		what string
		in   Seen
		want bool
	}{
		{"metadata", Seen{What: LookIMDS, Complete: true, IMDS: &IMDS{}}, true},
		{"metadata in part", Seen{What: LookIMDS, IMDS: &IMDS{}}, false},
		{"nothing of metadata", Seen{What: LookIMDS, Complete: true}, false},
		{"the kernel", Seen{What: LookKernel, Complete: true, Kernel: &dataplane.Observation{Complete: true}}, true},
		{"the kernel, cut short", Seen{What: LookKernel, Complete: true, Kernel: some}, false},
		{"the kernel, and an error", Seen{What: LookKernel, Kernel: &dataplane.Observation{Complete: true}}, false},
		{"nothing of the kernel", Seen{What: LookKernel, Complete: true}, false},
		{"the ENIConfig", Seen{What: LookConfig, Complete: true, Config: &ENIConfig{}}, true},
		{"the ENIConfig in part", Seen{What: LookConfig, Config: &ENIConfig{}}, false},
		{"no ENIConfig", Seen{What: LookConfig, Complete: true}, false},
		{"EC2", Seen{What: LookENI, Complete: true}, true},
		{"EC2 in part", Seen{What: LookENI}, false},
		{"the runtime", Seen{What: LookRuntime, Complete: true,
			Sandboxes: []Sandbox{{ID: "c1"}, {ID: "self"}, {ID: "c2"}}}, true},
		{"another runtime", Seen{What: LookRuntime, Complete: true, Sandboxes: []Sandbox{{ID: "c1"}}}, false},
		{"the runtime in part", Seen{What: LookRuntime, Sandboxes: []Sandbox{{ID: "self"}}}, false},
	} {
		n := newborn(t)
		n.Set, n.Daemon = Defaults(), "self"
		n.Set.CustomNetwork = true
		if got := n.evidence.whole(&c.in); got != c.want {
			t.Errorf("%s: whole %v", c.what, got)
		}
	}
	n := newborn(t)
	if n.Set = Defaults(); !n.evidence.whole(&Seen{What: LookRuntime, Complete: true}) {
		t.Error("a daemon in no sandbox does not believe the runtime")
	}
}

// TestAnENIThatMetadataDoesNotListIsAskedAbout, unless something is under way for it or it has changed since. One
// that is listed and has no link for long is asked about less and less often.
func TestAnENIThatMetadataDoesNotListIsAskedAbout(t *testing.T) {
	const now = time.Hour
	ready := eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1}, Stage: Ready, Linked: true}
	with := func(f func(e *eni)) eni { e := ready; f(&e); return e }
	for _, c := range []struct {
		what   string
		e      eni
		view   []ENI
		byIMDS int
		asked  time.Duration // never: not
		again  bool          // metadata is looked at again soon
	}{
		{"not listed", ready, nil, 1, now, false},
		{"not listed again", with(func(e *eni) { e.ByIMDS = 1 }), []ENI{{ID: "eni-2", MAC: "m2"}}, 2, now, false},
		{"listed", with(func(e *eni) { e.ByIMDS = 1 }), []ENI{{ID: "eni-2"}, {ID: "eni-1"}}, 0, never, false},
		{"its MAC is listed", with(func(e *eni) { e.ByIMDS = 1 }), []ENI{{MAC: "m1"}}, 0, never, false},
		{"it drains", with(func(e *eni) { e.Stage = Draining }), nil, 0, never, false},
		{"EC2 is being called", with(func(e *eni) { e.Wait = calling }), nil, 0, never, false},
		{"it has changed since", with(func(e *eni) { e.Tag = 9 }), nil, 0, never, false},
		{"without a link", with(func(e *eni) { e.Linked, e.CutAt = false, now-time.Second }), []ENI{{ID: "eni-1"}},
			0, never, true},
		{"without a link for long", with(func(e *eni) { e.Linked, e.CutAt = false, now-cutPatience }),
			[]ENI{{ID: "eni-1"}}, 0, now + cutPatience/4, true},
		{"neither listed nor linked", with(func(e *eni) { e.Linked, e.CutAt = false, now-time.Second }), nil, 1, now,
			true},
	} {
		n := newborn(t)
		n.enis.newENI(c.e)
		n.ENIs[0].Tag = c.e.Tag
		n.survey.absentENIs(now, c.view, 5)
		e := &n.ENIs[0]
		if e.ByIMDS != c.byIMDS || e.Asking != (c.asked != never) || n.Looks[LookENI].Want != c.asked {
			t.Errorf("%s: %d times, asked about %v at %v; expected %d and %v", c.what, e.ByIMDS, e.Asking,
				n.Looks[LookENI].Want, c.byIMDS, c.asked)
		}
		if again := n.Looks[LookIMDS].Want == now+linkPause; again != c.again {
			t.Errorf("%s: metadata is looked at at %v", c.what, n.Looks[LookIMDS].Want)
		}
	}
}

// TestWhatOfTheKernelIsAdopted: a living link with our alias is an allocation of an address that nobody has, or
// that was set aside for nobody, and nothing else, wherever in the list it is.
func TestWhatOfTheKernelIsAdopted(t *testing.T) {
	ip, att := netip.MustParseAddr("10.0.0.20"), Attachment{network, "c9", "eth0"}
	for _, c := range []struct {
		what  string
		spoil func(n *Node, l *dataplane.Link)
		want  bool
	}{
		{"free", func(*Node, *dataplane.Link) {}, true},
		{"set aside for nobody", func(n *Node, _ *dataplane.Link) { n.pool.quarantine(0, "why") }, true},
		{"set aside for somebody", func(n *Node, _ *dataplane.Link) {
			assign(n, 0, "c1")
			n.pool.quarantine(0, "why")
		}, false},
		{"somebody's", func(n *Node, _ *dataplane.Link) { assign(n, 0, "c1") }, false},
		{"cooling of the same", func(n *Node, _ *dataplane.Link) {
			assign(n, 0, "c9")
			n.pool.unkey(0)
			n.pool.rest(0, 0, true)
		}, false},
		{"cooling of another", func(n *Node, _ *dataplane.Link) {
			assign(n, 0, "c1")
			n.pool.unkey(0)
			n.pool.rest(0, 0, false)
		}, false},
		{"it has another address", func(n *Node, _ *dataplane.Link) { assign(n, 1, "c9") }, false},
		{"it has changed since", func(n *Node, _ *dataplane.Link) { n.pool.Addrs[0].Tag = 9 }, false},
		{"its namespace is gone", func(_ *Node, l *dataplane.Link) { l.PeerLive = false }, false},
		{"no alias", func(_ *Node, l *dataplane.Link) { l.Alias = "" }, false},
		{"somebody's alias", func(_ *Node, l *dataplane.Link) { l.Alias = "theirs" }, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22")
		n.Steps = 5
		known := behind("eni2", assign(n, 2, "c2"), netip.MustParseAddr("10.0.0.22"))
		n.pool.Addrs[2].Tag = 0
		l := behind("eni9", att, ip)
		c.spoil(n, &l)
		if n.pool.Addrs[0].Tag != 9 {
			n.pool.Addrs[0].Tag = 0
		}
		elsewhere := netip.MustParseAddr("10.0.9.9")
		n.pods.adoptLinks(indexOf(dataplane.Link{Name: "eth0"},
			behind("eni5", Attachment{network, "c5", "eth0"}, elsewhere), known,
			dataplane.Link{Name: "x", Alias: "theirs", Veth: true, PeerLive: true}, l), 5)
		a := &n.pool.Addrs[0]
		if got := noted(n, RecoveredKernel) == 1; got != c.want {
			t.Errorf("%s: it is adopted: %v", c.what, got)
		}
		if ix, ok := n.pool.rowOf(att); c.want &&
			(!ok || ix != 0 || a.State != Assigned || a.Op != recording || a.Veth != "eni9") {
			t.Errorf("%s: found at %d, %v; %v, %v runs, behind %s", c.what, ix, ok, a.State, a.Op, a.Veth)
		}
	}
}

// TestAnAnswerThatIsCutShortIsNoneOfTheKernels: what it lacks may be there.
func TestAnAnswerThatIsCutShortIsNoneOfTheKernels(t *testing.T) {
	for _, p := range []phase{recovering, serving} {
		for _, whole := range []bool{false, true} {
			n := freeOn(t, "10.0.0.20")
			n.Phase, n.host.Done = p, true
			assign(n, 0, "c1")
			n.CoolAt = 5
			n.seenKernel(time.Minute, &Seen{What: LookKernel, Err: "interrupted",
				Kernel: &dataplane.Observation{Complete: whole}}, whole, 5)
			if told := n.Troubles[troubleKernel] != ""; told == whole {
				t.Errorf("whole %v: it is told: %v", whole, told)
			}
			if read := n.evidence.Kernel != nil; read != (whole && p == recovering) {
				t.Errorf("whole %v, phase %d: recovery goes on: %v", whole, p, read)
			}
			if dead := n.pool.Addrs[0].Dead > 0; dead != (whole && p == serving) {
				t.Errorf("whole %v, phase %d: the pod is missed: %v", whole, p, dead)
			}
			if p == serving && n.CoolAt != never {
				t.Errorf("whole %v: the end of a cool-down is looked for at %v, and nothing cools", whole, n.CoolAt)
			}
		}
	}
}

// TestANewENIIsNewerThanWhatWasAsked: what comes of questions of before says nothing about it. It takes the first
// empty slot.
func TestANewENIIsNewerThanWhatWasAsked(t *testing.T) {
	n := newborn(t)
	n.Steps, n.evidence.calm = 7, true
	for want := range int32(3) {
		if ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-x"}, Stage: Ready, Tag: 1}); ix != want || n.ENIs[ix].Tag != 7 ||
			n.ENIs[ix].ID != "eni-x" {
			t.Errorf("it is at %d, changed in step %d; expected %d and 7", ix, n.ENIs[ix].Tag, want)
		}
	}
	if n.evidence.calm {
		t.Error("the same look at the kernel says nothing of it")
	}
	n.enis.vacate(1)
	if ix := n.enis.newENI(eni{Stage: Ready}); ix != 1 || len(n.ENIs) != 3 {
		t.Errorf("an empty slot is left, and it is at %d of %d", ix, len(n.ENIs))
	}
}

// TestFactsThatAreNone: each thing that a node cannot be without.
func TestFactsThatAreNone(t *testing.T) {
	for what, spoil := range map[string]func(f *Facts){
		"":                     func(*Facts) {},
		"no instance":          func(f *Facts) { f.Instance.ID = "" },
		"no MAC":               func(f *Facts) { f.Instance.PrimaryMAC = "" },
		"no address":           func(f *Facts) { f.Instance.Address = netip.Addr{} },
		"an ENI without ID":    func(f *Facts) { f.ENIs[1].ID = "" },
		"an ENI without MAC":   func(f *Facts) { f.ENIs[1].MAC = "" },
		"an ENI twice":         func(f *Facts) { f.ENIs[1].ID = f.ENIs[0].ID },
		"a device below all":   func(f *Facts) { f.ENIs[1].Device = -1 },
		"a device beyond all":  func(f *Facts) { f.ENIs[1].Device = mostENIs + 1 },
		"no subnet":            func(f *Facts) { f.ENIs[1].CIDR = netip.Prefix{} },
		"no address of an ENI": func(f *Facts) { f.ENIs[1].Primary = netip.Addr{} },
		"no primary":           func(f *Facts) { f.ENIs = f.ENIs[1:] },
		"the primary elsewhere": func(f *Facts) {
			f.ENIs[0].Device = 2
		},
		"another's MAC": func(f *Facts) { f.ENIs[0].MAC = "m9" },
	} {
		f := Facts{Instance: Instance{ID: "i-1", PrimaryMAC: "m0", Address: netip.MustParseAddr("10.0.0.4")}}
		for i, id := range []string{"eni-0", "eni-1"} {
			f.ENIs = append(f.ENIs, ENI{ID: id, MAC: "m" + id[4:], Device: i,
				CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: netip.MustParseAddr("10.0.0.4")})
		}
		if spoil(&f); f.usable() != (what == "") {
			t.Errorf("%q: believed %v", what, f.usable())
		}
	}
	if (*Facts)(nil).usable() {
		t.Error("none are believed")
	}
}

// TestHowAMissingENIIsHadAgain: at once where EC2 has it, and after its detach has ended where that is under way.
func TestHowAMissingENIIsHadAgain(t *testing.T) {
	ips := []netip.Addr{netip.MustParseAddr("10.0.0.20")}
	for status, c := range map[string]struct {
		want  Stage
		doing Action
	}{"available": {Created, 0}, "detaching": {Created, AttachENI}, "in-use": {0, 0}} {
		n := newborn(t)
		n.Inst.ID = "i-1"
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Attachment: "a"}, Stage: Ready, Linked: true,
			Trimming: true,
			presence: presence{ByIMDS: 2, ByEC2: 2},
			mutation: mutation{Doing: UnassignIPs, Before: ips, Prefixed: true, Next: never}})
		n.survey.missing(time.Minute, ix, &ENI{ID: "eni-1", Status: status, Owner: "i-1", Addresses: ips})
		if e := &n.ENIs[ix]; e.Stage != c.want || e.Doing != c.doing || e.Lost != (c.doing != 0) {
			t.Errorf("%s: it is %v, doing %v, in doubt %v", status, e.Stage, e.Doing, e.Lost)
		} else if e.Stage != 0 && (e.Next != time.Minute || e.Since != time.Minute || e.Attachment != "" ||
			e.Linked || e.Trimming || e.Prefixed ||
			e.Before != nil || e.ByIMDS != 0 || e.ByEC2 != 0 || !slices.Equal(e.Addresses, ips)) {
			t.Errorf("%s: %+v", status, e)
		}
	}
}

// TestAnENIThatIsGivenUpIsDeleted: nothing of it is in doubt any more.
func TestAnENIThatIsGivenUpIsDeleted(t *testing.T) {
	n := newborn(t)
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created, mutation: mutation{Lost: true}})
	n.driver.abandon(time.Minute, ix, "why")
	if e := &n.ENIs[ix]; e.Stage != Tombstoned || e.Since != time.Minute || e.Lost || noted(n, ENIGivenUp) != 1 {
		t.Errorf("it is %v since %v, in doubt %v, told %d times", e.Stage, e.Since, e.Lost, noted(n, ENIGivenUp))
	}
}

// TestEC2sAnswerAboutABusyENIIsAskedForAgain: it may be of before what is under way. The others of the same answer
// are heard.
func TestEC2sAnswerAboutABusyENIIsAskedForAgain(t *testing.T) {
	n := newborn(t)
	n.Inst.ID = "i-1"
	for i, id := range []string{"eni-0", "eni-1", "eni-2"} {
		n.enis.newENI(eni{ENI: ENI{ID: id, Device: i}, Stage: Ready, presence: presence{Asking: i < 2}})
	}
	n.ENIs[0].Wait = calling
	ids := []string{"eni-9", "eni-0", "eni-1", "eni-2"}
	var list []ENI
	for i, id := range []string{"eni-2", "eni-1", "eni-0"} {
		list = append(list, ENI{ID: id, Device: 2 - i, Instance: "i-1", Owner: "i-1", Status: "in-use",
			Attachment: "a-" + id})
	}
	n.survey.seenENIs(time.Minute, &Seen{ENIs: list}, false, ids)
	if n.Looks[LookENI].Want != never || !n.ENIs[1].Asking {
		t.Error("an answer that is not whole is heard")
	}
	n.survey.seenENIs(time.Minute, &Seen{ENIs: list}, true, ids)
	if at := n.Looks[LookENI].Want; at != time.Minute+askPause || !n.ENIs[0].Asking || n.ENIs[0].Attachment != "" {
		t.Errorf("it is asked about at %v, still %v", at, n.ENIs[0].Asking)
	}
	if n.ENIs[1].Asking || n.ENIs[1].Attachment != "a-eni-1" || n.ENIs[2].Attachment != "" {
		t.Errorf("the second one is asked about %v, %q; the third one %q", n.ENIs[1].Asking, n.ENIs[1].Attachment,
			n.ENIs[2].Attachment)
	}
}

// TestAPodsAddressOnNoENIIsGoneWhenEC2SaysSoTwice, and not while its allocation, or what runs on it, is newer than
// the answer.
func TestAPodsAddressOnNoENIIsGoneWhenEC2SaysSoTwice(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what   string
		spoil  func(n *Node, a *address)
		gone   bool
		missed int
		again  time.Duration
	}{
		{"once", func(*Node, *address) {}, false, 1, now + askPause},
		{"twice", func(_ *Node, a *address) { a.Missing = 1 }, true, 2, never},
		{"twice, and young", func(_ *Node, a *address) { a.Missing, a.Allocated = 1, now-time.Second }, false, 2,
			now - time.Second + consistency},
		{"twice, and no longer young", func(_ *Node, a *address) { a.Missing, a.Allocated = 1, now-consistency },
			true, 2, never},
		{"twice, and something runs", func(_ *Node, a *address) { a.Missing = 1; a.run(repairing) }, false, 1,
			now + askPause},
		{"twice, and changed since", func(_ *Node, a *address) { a.Missing, a.Tag = 1, 9 }, false, 1, now + askPause},
		{"on an ENI", func(n *Node, a *address) { a.Missing = 1; n.pool.place(0, 0) }, false, 0, never},
		{"on somebody's", func(n *Node, a *address) { a.Missing, n.evidence.Others = 1, []other{{ID: a.ENIID}} },
			false, 1, never},
		{"cooling", func(n *Node, a *address) { n.pool.rest(0, 0, true); a.Missing, a.Tag = 1, 0 }, false, 1, never},
	} {
		n := freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		a := &n.pool.Addrs[0]
		n.pool.place(0, -1)
		a.ENIID, a.Tag = "eni-9", 0
		c.spoil(n, a)
		n.survey.homeless(now, 5)
		if gone := noted(n, AddressMissing) == 1; gone != c.gone || a.Missing != c.missed ||
			n.Looks[LookAttached].Want != c.again {
			t.Errorf("%s: gone %v, missed %d times, asked again at %v; expected %v, %d and %v", c.what, gone,
				a.Missing, n.Looks[LookAttached].Want,
				c.gone, c.missed, c.again)
		}
	}
}

// TestGrowthGoesOnInAnotherSubnet at once, if there is one; else after a pause, with less at a time.
func TestGrowthGoesOnInAnotherSubnet(t *testing.T) {
	for _, another := range []bool{true, false} {
		n := newborn(t)
		n.Set, n.Inst.Subnet = Defaults(), "a"
		list := []Subnet{{ID: "a", Free: 9}, {ID: "b", Free: 9, Role: "1"}}
		if !another {
			list = list[:1]
		}
		n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: list}, true, 0, 0)
		n.driver.growElsewhere(time.Minute, &eni{ENI: ENI{ID: "eni-1", Subnet: "a"},
			mutation: mutation{Doing: CreateENI, Count: 5}},
			&Result{Class: SubnetFull, Code: "InsufficientFreeAddressesInSubnet"})
		p := &n.pool.Warm
		if told := noted(n, SubnetSwitched) == 1; told != another || n.subnets.exhausted("a") != another {
			t.Errorf("another %v: it is told %v, and the first one is exhausted: %v", another, told,
				n.subnets.exhausted("a"))
		}
		if another && (p.At != time.Minute || p.GrowAt != 0 || p.Ask != 0) ||
			!another && (p.GrowAt <= time.Minute || p.At != p.GrowAt || p.Ask != 3 || p.Fails != 1) {
			t.Errorf("another %v: it is thought of at %v, growth is put off until %v and asks for %d", another, p.At,
				p.GrowAt, p.Ask)
		}
	}
}

// TestWhatEC2SaysOfAnENIOnItsWayOut decides how its end goes on.
func TestWhatEC2SaysOfAnENIOnItsWayOut(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what    string
		stage   Stage
		since   time.Duration
		status  string
		foreign bool
		want    Stage
		next    time.Duration
	}{
		{"detached", Detached, now - time.Minute, "available", false, Tombstoned, now},
		{"it is being detached", Draining, now - time.Minute, "detaching", false, Detached, now + detachPause},
		{"it still is", Detached, now - 20*time.Second, "detaching", false, Detached, now + 5*time.Second},
		{"just detached, and in use by an older answer", Detached, now - consistency + 1, "in-use", false, Detached,
			now + (consistency-1)/4},
		{"in use two minutes after its detach", Detached, now - consistency, "in-use", false, Draining, now},
		{"in use, and to be deleted", Tombstoned, now, "in-use", false, Draining, now},
		{"somebody's, in use and to be deleted", Tombstoned, now, "in-use", true, Tombstoned, now},
		{"in use, and it drains", Draining, now - time.Second, "in-use", false, Draining, now},
		{"another instance's", Draining, now, "elsewhere", false, 0, never},
	} {
		n := newborn(t)
		n.Inst.ID, n.Witness.Kernel = "i-1", true
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: c.stage, Since: c.since, Foreign: c.foreign,
			Unwired:  true,
			presence: presence{ByEC2: 1}, mutation: mutation{Doing: DetachENI, Lost: true, Next: never}})
		v := &ENI{ID: "eni-1", Status: c.status}
		n.survey.resolveFalling(now, ix, v, c.status == "in-use")
		e := &n.ENIs[ix]
		if e.Stage != c.want || e.Next != c.next || e.Lost || e.ByEC2 != 0 {
			t.Errorf("%s: it is %v, goes on at %v, in doubt %v; expected %v, %v", c.what, e.Stage, e.Next, e.Lost,
				c.want, c.next)
		}
		if again := c.want == Draining && c.stage != Draining; again && (e.Doing != 0 || e.Unwired) {
			t.Errorf("%s: it is doing %v, unwired %v", c.what, e.Doing, e.Unwired)
		}
		if c.stage == Draining && c.want == Draining && (e.Since != now || n.Looks[LookKernel].Want != now) {
			t.Errorf("%s: the evidence is gathered from %v on, and the kernel looked at at %v", c.what, e.Since,
				n.Looks[LookKernel].Want)
		}
	}
}

// TestADrainWithItsEvidenceGoesOn when EC2 says that the ENI is in use: nothing is gathered anew.
func TestADrainWithItsEvidenceGoesOn(t *testing.T) {
	n := newborn(t)
	n.Inst.ID, n.Witness.Kernel = "i-1", true
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Draining, Since: time.Second,
		disuse: disuse{KernelOK: true, RuntimeOK: true}})
	n.survey.resolveFalling(time.Minute, ix, &ENI{ID: "eni-1", Status: "in-use"}, true)
	if e := &n.ENIs[ix]; e.Stage != Draining || e.Since != time.Second || !e.KernelOK || e.Next != time.Minute {
		t.Errorf("it is %v since %v, goes on at %v; the kernel has agreed: %v", e.Stage, e.Since, e.Next, e.KernelOK)
	}
}

// TestAMutationIsOnRecordBeforeItIsCalled, where the policy wants that; and waits for metadata and for the node's pace.
func TestAMutationIsOnRecordBeforeItIsCalled(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		doing Action
		wait  waitKind
		next  time.Duration
	}{
		{"at once", func(*Node) {}, AttachENI, storing, 7},
		{"without an intent", func(n *Node) {
			p := Sound()
			p.Intend = func(Action) bool { return false }
			n.policy = p
		}, AttachENI, calling, 7},
		{"the pace has it wait", func(n *Node) { n.driver.Pace.At = time.Hour }, 0, idle, time.Hour},
		{"its time has come", func(n *Node) { n.driver.Pace.At = time.Minute }, AttachENI, storing, 7},
		{"metadata is silent", func(n *Node) { n.Deaf = true }, 0, idle, never},
		{"metadata alone", func(n *Node) { n.Set.IMDSOnly = true }, 0, idle, never},
	} {
		n := newborn(t)
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created, mutation: mutation{Lost: true, Next: 7}})
		n.Steps = 9
		c.spoil(n)
		n.driver.mutate(time.Minute, ix, AttachENI)
		e, begun := &n.ENIs[ix], c.doing != 0
		if e.Doing != c.doing || e.Wait != c.wait || e.Next != c.next || e.Lost == begun || (e.Tag == 9) != begun ||
			(e.Token != "") != begun {
			t.Errorf("%s: it is doing %v, waits %d until %v, in doubt %v, changed in step %d", c.what, e.Doing, e.Wait,
				e.Next, e.Lost, e.Tag)
		}
		stored := c.wait == storing
		if w := n.Lanes[LibStore].Waits; e.Stored != stored || (len(w) == 1) != stored || stored && w[0].Tag != 9 ||
			(len(n.ledger.put[LibStore]) == 1) != stored || (len(n.out) == 1) != (c.wait == calling) {
			t.Errorf("%s: on record %v, it waits for %+v, wanted is %+v", c.what, e.Stored, w, n.out)
		}
	}
}

// TestAnENIInServiceThatEC2DoesNotHave: it is asked about again while metadata or a call in doubt is a reason to,
// and is missing after two answers.
func TestAnENIInServiceThatEC2DoesNotHave(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what   string
		said   presence
		lost   bool
		since  time.Duration
		linked bool
		gone   bool
		asked  time.Duration
	}{
		{"nothing else speaks against it", presence{}, false, 0, false, false, never},
		{"metadata does not list it", presence{ByIMDS: 1}, false, 0, false, false, now + askPause},
		{"a call is in doubt", presence{}, true, 0, false, false, now + askPause},
		{"metadata, and EC2 for the second time", presence{ByIMDS: 1, ByEC2: 1}, false, 0, false, true, never},
		{"the same, and it has a link", presence{ByIMDS: 1, ByEC2: 1}, false, 0, true, false, now + askPause},
		{"the same, and it is new", presence{ByIMDS: 1, ByEC2: 1}, false, now - consistency + 1, false, false,
			now + askPause},
		{"the same, and it is no longer new", presence{ByIMDS: 1, ByEC2: 1}, false, now - consistency, false, true,
			never},
	} {
		n := newborn(t)
		n.Inst.ID = "i-1"
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Since: c.since, Linked: c.linked,
			presence: c.said, mutation: mutation{Lost: c.lost}})
		n.survey.resolveReady(now, ix, nil, false)
		if gone := n.ENIs[ix].Stage == 0; gone != c.gone || n.Looks[LookENI].Want != c.asked {
			t.Errorf("%s: gone %v, asked about at %v; expected %v and %v", c.what, gone, n.Looks[LookENI].Want,
				c.gone, c.asked)
		}
		if e := &n.ENIs[ix]; !c.gone && e.ByEC2 != c.said.ByEC2+1 {
			t.Errorf("%s: EC2 has said so %d times", c.what, e.ByEC2)
		}
	}
}

// TestAnAssignmentInDoubtEndsWithEC2sWord: what has landed is in the books, and what is missing is thought of again.
func TestAnAssignmentInDoubtEndsWithEC2sWord(t *testing.T) {
	n := newborn(t)
	n.Inst.ID = "i-1"
	ip := netip.MustParseAddr("10.0.0.20")
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready, presence: presence{ByIMDS: 1, ByEC2: 1}, Token: "t",
		mutation: mutation{Doing: AssignIPs, Count: 2, Lost: true, Stored: true}})
	n.survey.resolveReady(time.Minute, ix, &ENI{ID: "eni-1", Addresses: []netip.Addr{ip}}, true)
	e := &n.ENIs[ix]
	if _, known := n.pool.byAddress[ip]; !known || e.Doing != 0 || e.Lost || e.Stored || e.ByIMDS != 0 ||
		e.ByEC2 != 0 {
		t.Errorf("it is known: %v; the ENI is doing %v, in doubt %v, with an intent %v", known, e.Doing, e.Lost,
			e.Stored)
	}
	if n.pool.Warm.At != time.Minute || n.Looks[LookIMDS].Want != time.Minute {
		t.Errorf("it is thought of at %v, and metadata is looked at at %v", n.pool.Warm.At, n.Looks[LookIMDS].Want)
	}
}

// TestAHintIsFollowedAfterAMoment: a burst of events is one look. Where pods wait for an ENI's link the moment
// counts from the last look.
func TestAHintIsFollowedAfterAMoment(t *testing.T) {
	const now = time.Minute
	for _, c := range []struct {
		what        string
		pods, links bool
		last, want  time.Duration
	}{
		{"nobody waits", false, true, 0, now + hintDelay},
		{"no ENI waits for a link", true, false, 0, now + hintDelay},
		{"the last look is long ago", true, true, 0, now},
		{"the last look is of just now", true, true, now - hintDelay/4, now + hintDelay - hintDelay/4},
	} {
		n := freeOn(t)
		n.Looks[LookKernel].At = c.last
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Attached, Linked: !c.links})
		if c.pods {
			n.requests.Waiting = []Add{{Req: 1}}
		}
		n.seen(now, Seen{What: LookKernel})
		if got := n.Looks[LookKernel].Want; got != c.want {
			t.Errorf("%s: the kernel is looked at at %v, expected %v", c.what, got, c.want)
		}
	}
}

// assigned gives an address to some attachment, and returns its slot.
func assigned(n *Node, ix int32) int32 {
	assign(n, ix, "c9")
	n.pool.unkey(ix)
	return ix
}

// TestWhatADaemonBeginsWith: what its rows say of addresses, of what was given back and of the node, without what a
// reboot has ended.
func TestWhatADaemonBeginsWith(t *testing.T) {
	ip := func(last byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, last}) }
	facts := &Facts{Instance: Instance{ID: "i-1"}}
	rows := []Row{
		{Address: ip(20), State: Assigned, Att: Attachment{network, "c1", "eth0"}},
		{Address: ip(30), State: Departed, ReleasedAt: 40 * time.Second},
		{Address: ip(4), State: Departed, ReleasedAt: 30 * time.Second, Node: facts},
		{Address: netip.IPv4Unspecified(), State: Departed},
		{Intent: &Intent{Token: "t", Stage: Tombstoned, Doing: DeleteENI, ENI: ENI{ID: "eni-9"}}},
		{State: Assigned},
	}
	for _, c := range []struct {
		rebooted bool
		unread   string
		booted   time.Duration
	}{{false, "", time.Hour}, {true, "", time.Minute}, {true, "damaged", time.Hour}} {
		n := newborn(t)
		in := Start{Rebooted: c.rebooted, Unread: c.unread, Booted: time.Minute, Settings: Defaults(), Rows: rows,
			Boot: "b", Daemon: "d", Wall: 5, Cluster: "c", Seed: 9}
		n.recovery.born(time.Hour, in)
		if _, known := n.enis.eniByID("eni-9"); !known {
			t.Errorf("%+v: the intent is forgotten", c)
		}
		if n.recovery.Booted != c.booted || noted(n, CheckpointUnread) == 1 != (c.unread != "") ||
			n.Version != Version || n.Phase != recovering ||
			n.Boot != "b" || n.Daemon != "d" || n.Wall != 5 || n.Cluster != "c" || n.Unread != c.unread ||
			n.First != c.rebooted {
			t.Errorf("%+v: booted at %v, version %d, %+v", c, n.recovery.Booted, n.Version, n.life)
		}
		for _, what := range []What{LookIMDS, LookKernel, LookRuntime} {
			if n.Looks[what].Want != time.Hour {
				t.Errorf("%+v: %v is looked at at %v", c, what, n.Looks[what].Want)
			}
		}
		if at := n.Looks[LookLeaked].Want - time.Hour; at < leakedFirst || at >= 2*leakedFirst {
			t.Errorf("%+v: leaks are looked for after %v", c, at)
		}
		if _, known := n.pool.byAddress[ip(20)]; known == c.rebooted || known != (len(n.pool.byAddress) == 1) {
			t.Errorf("%+v: the pod's address is known: %v", c, known)
		}
		d := n.evidence.Departures
		if c.rebooted {
			if len(d) > 0 || n.ledger.Facts != nil || len(n.ledger.drop[RunStore]) > 0 {
				t.Errorf("%+v: %+v has departed, and the facts are %+v", c, d, n.ledger.Facts)
			}
			continue
		}
		want := departed{IP: ip(30), At: 40 * time.Second, Stored: true, Ask: 40*time.Second + consistency,
			Pause: hearsayPause}
		if len(d) != 2 || d[0] != want || d[1].IP != ip(4) || n.ledger.Facts != facts {
			t.Errorf("%+v has departed, and the facts are %+v", d, n.ledger.Facts)
		}
		if k := n.ledger.drop[RunStore]; len(k) != 1 || k[0].Address != netip.IPv4Unspecified() {
			t.Errorf("dropped is %+v", k)
		}
	}
	n := newborn(t)
	n.recovery.born(time.Hour, Start{Version: 1, Settings: Settings{}})
	if n.Version != 1 || n.Looks[LookRuntime].Want != never {
		t.Errorf("version %d, and no runtime is looked at at %v", n.Version, n.Looks[LookRuntime].Want)
	}
}

// TestWhereThereIsRoomForAPrefix: on an ENI in service alone.
func TestWhereThereIsRoomForAPrefix(t *testing.T) {
	for _, c := range []struct {
		what  string
		stage Stage
		limit int
		want  bool
	}{{"a slot is left", Ready, 4, true}, {"none is", Ready, 3, false}, {"on its way out", Draining, 4, false},
		{"on its way", Attached, 4, false}} {
		n := freeOn(t, "10.0.0.10", "10.0.0.11")
		n.Inst.Limits.Addresses = c.limit
		n.ENIs[0].Stage = c.stage
		if got := n.warm.roomy(); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if n := newborn(t); n.warm.roomy() {
		t.Error("there is room on no ENI")
	}
}

// TestEachPodsDriftIsPutRight, whichever comes first: of pods that nothing runs on, that have not changed since,
// and whose ENI is or will be known.
func TestEachPodsDriftIsPutRight(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node) // the first one
		want  bool
	}{
		{"both lack something", func(*Node) {}, true},
		{"set aside", func(n *Node) { n.pool.quarantine(0, "why"); n.pool.Addrs[0].Tag = 0 }, false},
		{"something runs", func(n *Node) { n.pool.Addrs[0].run(recording) }, false},
		{"it has changed since", func(n *Node) { n.pool.Addrs[0].Tag = 9 }, false},
		{"on no ENI", func(n *Node) { n.pool.place(0, -1); n.pool.Addrs[0].ENIID = ""; n.Surveyed = true }, false},
		{"on an ENI that EC2 has not told of", func(n *Node) {
			n.pool.place(0,
				-1)
			n.pool.Addrs[0].ENIID = "eni-9"
		}, true},
		{"on an ENI that EC2 does not have", func(n *Node) {
			n.pool.place(0,
				-1)
			n.pool.Addrs[0].ENIID = "eni-9"
			n.Surveyed = true
		}, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		var links []dataplane.Link
		for i, id := range []string{"c1", "c2"} {
			a := &n.pool.Addrs[i]
			links = append(links, behind("eni"+id, assign(n, int32(i), id), a.IP))
			a.Veth = "eni" + id
		}
		n.Steps = 12
		c.spoil(n)
		n.pods.repairPods(consistency, indexOf(links...), 5)
		if got := n.pool.Addrs[0].Op == repairing; got != c.want {
			t.Errorf("%s: the first one is put right: %v", c.what, got)
		}
		if a := &n.pool.Addrs[1]; a.Op != repairing || a.Tag != 12 || len(applies(n)) != noted(n, DriftRepaired) {
			t.Errorf("%s: the second one: %v runs, %d plans, told %d times", c.what, a.Op, len(applies(n)),
				noted(n, DriftRepaired))
		}
	}
}

// TestARefusedAssignmentAsksForWhatIsWantedByThen: as prefixes or as addresses, whatever it asked for before.
func TestARefusedAssignmentAsksForWhatIsWantedByThen(t *testing.T) {
	for _, c := range []struct {
		prefixes, before bool
		count, want      int
	}{{true, true, 1, 2}, {true, false, 2, 1}, {false, true, 1, 1}, {false, false, 1, 2}} {
		n := freeOn(t)
		n.Surveyed, n.Set = true, Defaults()
		n.Set.PrefixDelegation = c.prefixes
		n.Inst = Instance{ID: "i-1", Subnet: "subnet-1", Limits: Limits{ENIs: 1, Addresses: 10, Prefixes: true}}
		n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "subnet-1", Free: 200}}},
			true, 0, 0)
		e := &n.ENIs[0]
		e.Subnet, e.Doing, e.Count, e.Prefixed, e.Next = "subnet-1", AssignIPs, c.count, c.before, time.Hour
		n.warm.grow(0, 1, false)
		if e.Prefixed != c.prefixes || e.Count != c.want || e.Doing != AssignIPs || e.Next != time.Hour {
			t.Errorf("prefixes %v, before %v: it asks for %d, of prefixes %v, at %v; expected %d", c.prefixes,
				c.before, e.Count, e.Prefixed, e.Next, c.want)
		}
	}
}

// TestDifferentEffectsHaveDifferentFingerprints: by these a replay says that another program does something else.
func TestDifferentEffectsHaveDifferentFingerprints(t *testing.T) {
	seen := map[string]bool{}
	for _, effs := range [][]Effect{nil, {&Note{Point: AddWaited}}, {&Note{Point: AddUndone}},
		{&Note{Point: AddWaited}, &Look{ID: 1, What: LookKernel}}} {
		got, err := fingerprint(effs)
		again, _ := fingerprint(effs)
		if err != nil || len(got) != 16 || again != got || seen[got] {
			t.Errorf("%d effects: %q, then %q, %v", len(effs), got, again, err)
		}
		seen[got] = true
	}
}

// TestSinceWhenAnENIHasNoLink: since the kernel first showed none, of one in service beside the primary one.
func TestSinceWhenAnENIHasNoLink(t *testing.T) {
	e := eni{Stage: Ready, ENI: ENI{Device: 1}, Linked: true}
	for _, c := range []struct {
		at     time.Duration
		linked bool
		cut    time.Duration
		since  time.Duration
	}{{10, true, 0, 0}, {20, false, 0, 20}, {30, false, 10, 20}, {40, true, 0, 0}, {50, false, 0, 50},
		{70, false, 20, 50}} {
		if e.sees(c.at, c.linked); e.Linked != c.linked || e.CutAt != c.since || e.cutFor(c.at) != c.cut {
			t.Errorf("at %d a link %v: cut for %d, since %d", c.at, c.linked, e.cutFor(c.at), e.CutAt)
		}
	}
	for what, e := range map[string]eni{
		"the primary one":       {Stage: Ready, CutAt: 50},
		"not in service":        {Stage: Attached, ENI: ENI{Device: 1}, CutAt: 50},
		"it has a link":         {Stage: Ready, ENI: ENI{Device: 1}, CutAt: 50, Linked: true},
		"nobody has looked yet": {Stage: Ready, ENI: ENI{Device: 1}},
	} {
		if got := e.cutFor(70); got != 0 {
			t.Errorf("%s: cut for %d", what, got)
		}
	}
}

// TestTheHostIsToldOfANewCIDR, unless it is not set up yet or a plan for it runs: that, or the next repair, has it.
func TestTheHostIsToldOfANewCIDR(t *testing.T) {
	first, second := netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("100.64.0.0/16")
	for _, c := range []struct {
		what       string
		done, busy bool
		now        []netip.Prefix
		plans      int
		knows      int
	}{
		{"a new one", true, false, []netip.Prefix{first, second}, 1, 2},
		{"the new one alone", true, false, []netip.Prefix{second}, 1, 2},
		{"the same", true, false, []netip.Prefix{first}, 0, 1},
		{"none", true, false, nil, 0, 1},
		{"not set up yet", false, false, []netip.Prefix{second}, 0, 2},
		{"a plan runs", true, true, []netip.Prefix{second}, 0, 2},
		{"a plan runs for the first time", false, true, []netip.Prefix{second}, 0, 2},
	} {
		h := newHost()
		before := []netip.Prefix{first, {}}[:1]
		h.Inst.VPC, h.Done, h.Busy = before, c.done, c.busy
		h.vpcChanged(c.now)
		if len(h.out) != c.plans || len(h.Inst.VPC) != c.knows || h.Inst.VPC[0] != first {
			t.Errorf("%s: %d plans, and it knows %v", c.what, len(h.out), h.Inst.VPC)
		}
		if before[:2][1].IsValid() {
			t.Errorf("%s: the slice that it had is written to", c.what)
		}
	}
}

// TestWhatARefusalIsAbout: what the role may do, or who asks; no other class is about either.
func TestWhatARefusalIsAbout(t *testing.T) {
	for code, denied := range map[string]bool{"UnauthorizedOperation": true, "AccessDenied": true,
		"AccessDeniedException": true, "OptInRequired": true,
		"AuthFailure": false, "RequestExpired": false, "ExpiredToken": false, "": false} {
		if d, r := Denied.Refusal(code); d != denied || r == denied {
			t.Errorf("%q: denied %v, refused %v", code, d, r)
		}
		for c := OK; c <= Unavailable; c++ {
			if d, r := c.Refusal(code); c != Denied && (d || r) {
				t.Errorf("%v, %q: denied %v, refused %v", c, code, d, r)
			}
		}
	}
}

// TestWhatALinkSaysOfAnENI: an attached one goes on once it has its link, or is asked about when that takes long.
// Of one in service that has none metadata is asked, once.
func TestWhatALinkSaysOfAnENI(t *testing.T) {
	const now = time.Hour
	attached := eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1, DOT: true}, Stage: Attached,
		Since: now - time.Second, mutation: mutation{Next: never}}
	service := eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1}, Stage: Ready, Linked: true,
		mutation: mutation{Next: never}}
	type asks struct{ goes, kernel, imds, ec2 bool }
	for _, c := range []struct {
		what   string
		e      eni
		spoil  func(e *eni)
		linked bool
		want   asks
	}{
		{"attached", attached, func(*eni) {}, true, asks{goes: true}},
		{"attached, and busy", attached, func(e *eni) { e.Wait = calling }, true, asks{}},
		{"attached, to be set to go with its instance", attached, func(e *eni) { e.DOT = false }, true, asks{}},
		{"its link is not there", attached, func(*eni) {}, false, asks{kernel: true}},
		{"its link is not there for long", attached, func(e *eni) { e.Since = now - linkPatience }, false,
			asks{kernel: true, ec2: true}},
		{"the same, and a call is in doubt", attached, func(e *eni) { e.Since, e.Lost = now-linkPatience, true },
			false, asks{}},
		{"the same, and it is busy", attached, func(e *eni) { e.Since, e.Wait = now-linkPatience, applying }, false,
			asks{}},
		{"the same, without DeleteOnTermination", attached,
			func(e *eni) { e.Since, e.DOT = now-linkPatience, false }, false, asks{}},
		{"in service", service, func(*eni) {}, true, asks{}},
		{"in service, and metadata does not list it", service, func(e *eni) { e.ByIMDS = 1 }, true, asks{}},
		{"in service without", service, func(*eni) {}, false, asks{imds: true}},
		{"in service without, and metadata has spoken", service, func(e *eni) { e.ByIMDS = 1 }, false, asks{}},
		{"the primary one without", service, func(e *eni) { e.Device = 0 }, false, asks{}},
		{"somebody's", attached, func(e *eni) { e.Foreign = true }, true, asks{}},
		{"its MAC is not known", attached, func(e *eni) { e.MAC = "" }, false, asks{}},
	} {
		n := newborn(t)
		n.enis.newENI(eni{ENI: ENI{ID: "eni-9"},
			Stage: Created}) // without a MAC yet: the next one is seen all the same
		c.spoil(&c.e)
		n.enis.newENI(c.e)
		o := indexOf()
		if c.linked {
			o = indexOf(dataplane.Link{Name: "eth1", MAC: "m1"})
		}
		n.driver.links(now, o)
		got := asks{n.ENIs[1].Next == now, n.Looks[LookKernel].Want == now+linkPause, n.Looks[LookIMDS].Want == now,
			n.ENIs[1].Asking && n.Looks[LookENI].Want == now}
		if got != c.want {
			t.Errorf("%s: %+v, expected %+v", c.what, got, c.want)
		}
	}
	n := newborn(t)
	late := attached
	late.Since, late.Asking = now-linkPatience, true
	n.enis.newENI(late)
	if n.driver.links(now, indexOf()); n.Looks[LookENI].Want != never {
		t.Errorf("EC2 is being asked, and is asked again at %v", n.Looks[LookENI].Want)
	}
}

// TestSinceWhenReleasesAreOnRecord: as the row of the node's own address says; else since the machine booted, if
// nobody has an address of it.
func TestSinceWhenReleasesAreOnRecord(t *testing.T) {
	const now, booted = time.Hour, time.Minute
	own, pods := netip.MustParseAddr("10.0.0.4"), netip.MustParseAddr("10.0.0.20")
	user := dataplane.Link{Name: "veth1", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{pods}}
	carries := []ENI{{ID: "eni-0"}, {ID: "eni-1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.19"), pods}}}
	for _, c := range []struct {
		what  string
		own   netip.Addr
		rows  []departed
		links []dataplane.Link
		cloud []ENI
		want  time.Duration
		put   int
		left  int
	}{
		{"on record", own, []departed{{IP: pods, At: 1}, {IP: own, At: 5 * time.Minute}}, nil, carries,
			5 * time.Minute, 0, 1},
		{"nobody has one", own, []departed{{IP: pods, At: 1}}, nil, carries, booted, 1, 1},
		{"somebody has one", own, nil, []dataplane.Link{user}, carries, now, 1, 0},
		{"somebody has one of a prefix", own, nil, []dataplane.Link{user},
			[]ENI{{Prefixes: []netip.Prefix{prefixOf(pods)}}}, now, 1, 0},
		{"somebody has another", own, nil, []dataplane.Link{user}, carries[:1], booted, 1, 0},
		{"its own is not known", netip.Addr{}, []departed{{ENI: "eni-9", At: 1}}, nil, carries, booted, 0, 1},
	} {
		n := newborn(t)
		n.Inst.Address, n.recovery.Booted, n.recovery.Cloud, n.evidence.Departures = c.own, booted, c.cloud, c.rows
		n.recovery.beginRecords(now, indexOf(c.links...))
		if n.ledger.Recorded != c.want || len(n.ledger.put[RunStore]) != c.put ||
			len(n.evidence.Departures) != c.left {
			t.Errorf("%s: since %v, %d rows put, %d departed; expected %v, %d, %d", c.what, n.ledger.Recorded,
				len(n.ledger.put[RunStore]),
				len(n.evidence.Departures), c.want, c.put, c.left)
		}
	}
}

// TestEachVariableSetsItsOwn setting, and no other.
func TestEachVariableSetsItsOwn(t *testing.T) {
	type put struct {
		value string
		want  Settings
	}
	all := map[string]put{
		"WARM_ENI_TARGET":                       {"2", Settings{WarmENITarget: 2}},
		"WARM_IP_TARGET":                        {"2", Settings{WarmIPTarget: 2}},
		"MINIMUM_IP_TARGET":                     {"2", Settings{MinimumIPTarget: 2}},
		"MAX_ENI":                               {"2", Settings{MaxENI: 2}},
		"ENABLE_PREFIX_DELEGATION":              {"true", Settings{PrefixDelegation: true}},
		"WARM_PREFIX_TARGET":                    {"2", Settings{WarmPrefixTarget: 2}},
		"IP_COOLDOWN_PERIOD":                    {"7", Settings{CoolDown: 7 * time.Second}},
		"AWS_VPC_K8S_CNI_EXTERNALSNAT":          {"true", Settings{ExternalSNAT: true}},
		"AWS_VPC_CNI_NODE_PORT_SUPPORT":         {"true", Settings{NodePort: true}},
		"AWS_VPC_ENI_MTU":                       {"1500", Settings{MTU: 1500}},
		"AWS_VPC_K8S_CNI_VETHPREFIX":            {"pod", Settings{VethPrefix: "pod"}},
		"DISABLE_LEAKED_ENI_CLEANUP":            {"true", Settings{NoSweep: true}},
		"DISABLE_NETWORK_RESOURCE_PROVISIONING": {"true", Settings{NoProvisioning: true}},
		"ENABLE_SUBNET_DISCOVERY":               {"true", Settings{Discovery: true}},
		"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG":    {"true", Settings{CustomNetwork: true}},
		"ENI_CONFIG_ANNOTATION_DEF":             {"a.b/c", Settings{ConfigAnnotation: "a.b/c"}},
		"ENI_CONFIG_LABEL_DEF":                  {"a.b/c", Settings{ConfigLabel: "a.b/c"}},
		"ENABLE_IMDS_ONLY_MODE":                 {"true", Settings{IMDSOnly: true}},
		"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES":     {"1,3", Settings{Excluded: 1<<1 | 1<<3}},
		"AWS_MANAGE_ENIS_NON_SCHEDULABLE":       {"true", Settings{ManageWhenCordon: true}},
		"MANAGE_UNTAGGED_ENI":                   {"false", Settings{LeaveUntagged: true}},
	}
	for _, variable := range Variables() {
		c, ok := all[variable]
		if !ok {
			t.Errorf("%s is not asked", variable)
			continue
		}
		s := Settings{}
		if err := s.Put(variable, c.value); err != nil || s != c.want {
			t.Errorf("%s=%s: %v, %+v", variable, c.value, err, s)
		}
	}
}
