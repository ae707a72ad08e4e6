package ipam

import (
	"net/netip"
	"testing"
	"time"
)

// TestWhatIsKeptOfAnotherInstancesRecords: of their ENIs those that something is under way for, whose outcome is
// awaited, and those that an intent speaks of; of their addresses what a pod has.
func TestWhatIsKeptOfAnotherInstancesRecords(t *testing.T) {
	for _, c := range []struct {
		name string
		eni  mutation
		kept bool
	}{
		{"at rest", mutation{}, false},
		{"its link is being set up", mutation{Wait: applying}, true},
		{"an intent", mutation{Stored: true}, true},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.pool.become(0, Assigned)
		n.ENIs[0].mutation = c.eni
		n.survey.disbelieve(time.Minute, "i-2")
		if _, known := n.enis.eniByID("eni-0"); known != c.kept {
			t.Errorf("%s: the ENI is kept: %v", c.name, known)
		}
		_, pods := n.pool.byAddress[netip.MustParseAddr("10.0.0.20")]
		_, free := n.pool.byAddress[netip.MustParseAddr("10.0.0.21")]
		if !pods || free != c.kept {
			t.Errorf("%s: the pod's address is kept: %v, the free one: %v", c.name, pods, free)
		}
	}
}

// TestABusyENIThatIsNotOursIsAskedAboutLater: EC2's answer may be of before what is under way, and the next one of the
// same moment says no more.
func TestABusyENIThatIsNotOursIsAskedAboutLater(t *testing.T) {
	n := freeOn(t)
	n.ENIs[0].Wait, n.evidence.Looks[LookENI].Want = applying, never
	n.survey.notOurs(time.Minute, &ENI{ID: "eni-0"}, LookAttached)
	if at := n.evidence.Looks[LookENI].Want; !n.ENIs[0].Asking || at != time.Minute+askPause {
		t.Errorf("asked about: %v, at %v; expected %v", n.ENIs[0].Asking, at, time.Minute+askPause)
	}
}

// TestAUseOfWhatIsGivenBackIsSeen: a sandbox claims one of the addresses that are about to go, by itself or of a
// prefix. All of them stay.
func TestAUseOfWhatIsGivenBackIsSeen(t *testing.T) {
	for _, prefixed := range []bool{false, true} {
		for claimed, goes := range map[string]bool{"10.0.0.18": false, "10.0.9.9": true} {
			n := freeOn(t)
			for ip := range addressesOf(netip.MustParsePrefix("10.0.0.16/28")) {
				n.pool.adopt(0, ip, 0, prefixed)
				n.pool.free(n.pool.byAddress[ip])
			}
			n.warm.giveBack(time.Minute, 0, prefixSize, prefixed)
			listed := map[string]*Sandbox{"c1": {ID: "c1", Ready: true, Address: netip.MustParseAddr(claimed)}}
			n.driver.drainsRuntime(time.Minute, listed, n.Steps)
			if e := &n.ENIs[0]; e.Trimming != goes || e.RuntimeOK != goes {
				t.Errorf("of a prefix %v, a sandbox claims %s: they go: %v, and the runtime agrees: %v",
					prefixed, claimed, e.Trimming, e.RuntimeOK)
			}
		}
	}
}

// TestAnAddressIsGoneWhenEC2HasSaidSoTwice: and an answer that may be of before it was given to the node, or to a
// pod, means nothing.
func TestAnAddressIsGoneWhenEC2HasSaidSoTwice(t *testing.T) {
	const now = time.Hour
	soon := now + askPause
	for _, c := range []struct {
		name           string
		state          State
		a              address // of it: Allocated, Given, Missing and ByIMDS
		carried        bool    // EC2 lists it
		missing        int     // afterwards; -1 it is gone
		asks, rethinks time.Duration
	}{
		{"once", Free, address{ByIMDS: 1}, false, 1, soon, never},
		{"twice", Free, address{ByIMDS: 1, Missing: 1}, false, -1, never, never},
		{"twice, of a pod", Assigned, address{ByIMDS: 1, Missing: 1, Allocated: now - consistency}, false, -1, never,
			never},
		{"twice, of a new pod", Assigned, address{ByIMDS: 1, Missing: 1, Allocated: now - consistency + 1}, false, 2,
			soon, never},
		{"twice, of a new pod that went", Cooling, address{ByIMDS: 1, Missing: 1, Allocated: now - 1}, false, -1,
			never, never},
		{"once, just given", Free, address{ByIMDS: 1, Given: now - 1}, false, 1, soon, never},
		{"twice, just given", Free, address{ByIMDS: 1, Missing: 1, Given: now - 1}, false, 2, now - 1 + consistency,
			never},
		{"twice, nearly old", Free, address{ByIMDS: 1, Missing: 1, Given: now - consistency + 1}, false, 2, soon,
			never},
		{"twice, old", Free, address{ByIMDS: 1, Missing: 1, Given: now - consistency}, false, -1, never, never},
		{"metadata lists it again", Free, address{Missing: 1}, false, 1, never, never},
		{"metadata has never left it out", Free, address{}, false, 0, never, never},
		{"EC2 lists it again", Free, address{ByIMDS: 1, Missing: 1}, true, 0, never, now},
		{"both list it again", Free, address{Missing: 1}, true, 0, never, now},
		{"EC2 has always listed it", Free, address{ByIMDS: 1}, true, 0, never, never},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23")
		elsewhere, listed, it, last := &n.pool.Addrs[0], &n.pool.Addrs[1], &n.pool.Addrs[2], &n.pool.Addrs[3]
		n.pool.place(0, n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Linked: true}))
		elsewhere.ByIMDS, elsewhere.Missing, listed.ByIMDS, last.ByIMDS = 1, 1, 1, 1
		if c.state != Free {
			n.pool.become(2, Assigned)
		}
		if c.state == Cooling {
			n.pool.rest(now, 2, true)
		}
		it.Allocated, it.Given, it.Missing, it.ByIMDS = c.a.Allocated, c.a.Given, c.a.Missing, c.a.ByIMDS
		v := ENI{ID: "eni-0", Addresses: []netip.Addr{listed.IP, last.IP}}
		if c.carried {
			v.Addresses = append(v.Addresses, it.IP)
		}
		n.survey.missingAddresses(now, 0, &v)
		missing := it.Missing
		if it.State == 0 || it.ENI < 0 {
			missing = -1
		}
		if asks := n.evidence.Looks[LookENI].Want; missing != c.missing || asks != c.asks ||
			n.pool.Warm.At != c.rethinks {
			t.Errorf("%s: missing in %d answers, asked about again at %v, the pool thinks again at %v; expected %d, %v, %v",
				c.name, missing, asks, n.pool.Warm.At, c.missing, c.asks, c.rethinks)
		}
		if c.carried && it.ByIMDS != 0 || listed.ByIMDS+last.ByIMDS != 0 || elsewhere.ByIMDS != 1 ||
			elsewhere.Missing != 1 {
			t.Errorf("%s: it %+v, one that is listed %+v, another ENI's %+v", c.name, *it, *listed, *elsewhere)
		}
	}
}

// TestENIsThatMetadataDoesNotList: EC2 is asked about those in service, and of one that is listed and whose link is
// missing less and less often.
func TestENIsThatMetadataDoesNotList(t *testing.T) {
	const now = time.Hour
	mine, others := []ENI{{ID: "eni-1", MAC: "m1"}}, []ENI{{ID: "eni-9", MAC: "m9"}}
	linked := func(*Node, *eni) {}
	for _, c := range []struct {
		name       string
		view       []ENI
		but        func(n *Node, e *eni)
		unlisted   int           // in so many views, by now; it was in three
		asks, imds time.Duration // about it; metadata is read again
	}{
		{"listed", mine, linked, 0, never, never},
		{"listed by its ID", []ENI{{ID: "eni-1"}}, linked, 0, never, never},
		{"listed by its MAC", []ENI{{MAC: "m1"}}, linked, 0, never, never},
		{"not listed", others, linked, 4, now, never},
		{"its link is being set up", others, func(_ *Node, e *eni) { e.Stage = Configured }, 3, never, never},
		{"it drains", others, func(_ *Node, e *eni) { e.Stage = Draining }, 3, never, never},
		{"EC2 is called", others, func(_ *Node, e *eni) { e.Wait = calling }, 3, never, never},
		{"it has changed since", others, func(n *Node, e *eni) { e.Tag = n.Steps + 1 }, 3, never, never},
		{"it has changed in that step", others, func(n *Node, e *eni) { e.Tag = n.Steps }, 4, now, never},
		{"no link since a moment ago", mine, func(_ *Node, e *eni) { e.Linked, e.CutAt = false, now-cutPatience+1 },
			0, never, now + linkPause},
		{"no link for a while", mine, func(_ *Node, e *eni) { e.Linked, e.CutAt = false, now-cutPatience }, 0,
			now + cutPatience/4, now + linkPause},
		{"no link for long", mine, func(_ *Node, e *eni) { e.Linked, e.CutAt = false, now-8*time.Minute }, 0,
			now + 2*time.Minute, now + linkPause},
		{"no link, and it is asked about already", mine, func(_ *Node, e *eni) {
			e.Linked, e.CutAt, e.Asking = false,
				now-cutPatience, true
		},
			0, never, now + linkPause},
		{"not listed for long", others, func(_ *Node, e *eni) { e.Linked, e.Unlisted = false, now-lasting }, 4, now,
			now + linkPause},
		{"not listed for a while, with metadata alone", others, func(n *Node, e *eni) {
			n.Set.IMDSOnly, e.Linked, e.Unlisted = true, false, now-lasting+1
		}, 4, now, now + linkPause},
		{"not listed for long, with metadata alone", others, func(n *Node, e *eni) {
			n.Set.IMDSOnly, e.Linked, e.Unlisted = true, false, now-lasting
		}, -1, never, now + linkPause},
		{"not listed for long, and its link is there", others, func(n *Node, e *eni) {
			n.Set.IMDSOnly,
				e.Unlisted = true, now-lasting
		}, 4, now, never},
	} {
		n := newborn(t)
		n.Phase, n.Steps = serving, 7
		n.enis.newENI(eni{ENI: ENI{ID: "eni-0"}, Stage: Created})
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1}, Stage: Ready, Linked: true,
			presence: presence{ByIMDS: 3}})
		last := n.enis.newENI(eni{ENI: ENI{ID: "eni-2", MAC: "m2", Device: 2}, Stage: Ready, Linked: true,
			presence: presence{ByIMDS: 1}})
		c.but(n, &n.ENIs[ix])
		n.survey.absentENIs(now, append([]ENI{{ID: "eni-2", MAC: "m2"}}, c.view...), 7)
		unlisted := n.ENIs[ix].ByIMDS
		if n.ENIs[ix].Stage == 0 {
			unlisted = -1
		}
		asks, imds := n.evidence.Looks[LookENI].Want, n.evidence.Looks[LookIMDS].Want
		if unlisted != c.unlisted || asks != c.asks || imds != c.imds || n.ENIs[last].ByIMDS != 0 {
			t.Errorf("%s: unlisted %d times, EC2 is asked at %v, metadata at %v; expected %d, %v, %v; another one, listed: %d times",
				c.name, unlisted, asks, imds, c.unlisted, c.asks, c.imds, n.ENIs[last].ByIMDS)
		}
	}
}

// TestWhatAViewSaysOfAnENI: EC2's answers are learned where the kernel alone is at work on it, addresses are taken
// over where nothing is, and only who cannot be behind refutes what EC2 has said against an ENI without a link.
func TestWhatAViewSaysOfAnENI(t *testing.T) {
	for _, c := range []struct {
		name                    string
		by                      What
		e                       eni
		learned, adopted, there bool
	}{
		{"its link is being set up", LookAttached, eni{Stage: Configured, mutation: mutation{Wait: applying}}, true,
			false, false},
		{"its link is being set up, and there is an intent", LookAttached,
			eni{Stage: Configured, mutation: mutation{Wait: applying, Stored: true}}, false, false, false},
		{"its link is being set up, by its ID", LookENI, eni{Stage: Configured, mutation: mutation{Wait: applying}},
			false, false, false},
		{"its link is being set up, by metadata", LookIMDS, eni{Stage: Configured,
			mutation: mutation{Wait: applying}}, false, false, false},
		{"a link in service is being put right", LookAttached, eni{Stage: Ready, mutation: mutation{Wait: applying}},
			false, false, false},
		{"EC2 is called", LookAttached, eni{Stage: Attached, mutation: mutation{Wait: calling}}, false, false, false},
		{"it is about to be given addresses", LookAttached, eni{Stage: Ready, mutation: mutation{Doing: AssignIPs}},
			false, false, false},
		{"it has changed since", LookAttached, eni{Stage: Ready, Tag: 8}, false, false, false},
		{"it has changed in that step", LookAttached, eni{Stage: Ready, Tag: 7}, false, true, true},
		{"at rest on its way, with an intent", LookAttached, eni{Stage: Created, mutation: mutation{Stored: true}},
			false, false, false},
		{"at rest on its way", LookAttached, eni{Stage: Attached}, false, true, true},
		{"in service, with an intent", LookAttached, eni{Stage: Ready, mutation: mutation{Stored: true}}, false,
			true, true},
		{"in service, without a link", LookAttached, eni{Stage: Ready}, false, true, true},
		{"in service, by metadata", LookIMDS, eni{Stage: Ready, Linked: true}, false, false, true},
		{"in service, without a link, by metadata", LookIMDS, eni{Stage: Ready}, false, false, false},
	} {
		n := newborn(t)
		n.Phase, n.Inst.ID = serving, "i-1"
		ip, second := netip.MustParseAddr("10.0.0.20"), netip.MustParseAddr("10.0.0.30")
		c.e.ENI, c.e.presence = ENI{ID: "eni-1", MAC: "m1", Device: 1, Attachment: "old"}, presence{ByIMDS: 1,
			ByEC2: 1}
		tag := c.e.Tag
		ix := n.enis.newENI(c.e)
		n.ENIs[ix].Tag = tag
		n.enis.newENI(eni{ENI: ENI{ID: "eni-2", MAC: "m2", Device: 2}, Stage: Ready, Linked: true})
		n.survey.adoptENIs(time.Hour, c.by, []ENI{
			{ID: "eni-1", MAC: "m1", Device: 1, Attachment: "new", Instance: "i-1", Owner: "i-1", Status: "in-use",
				Addresses: []netip.Addr{ip}},
			{ID: "eni-2", MAC: "m2", Device: 2, Instance: "i-1", Owner: "i-1", Status: "in-use",
				Addresses: []netip.Addr{second}},
		}, 7)
		e := &n.ENIs[ix]
		_, adopted := n.pool.byAddress[ip]
		if learned, there := e.Attachment == "new", e.ByEC2 == 0; learned != c.learned || adopted != c.adopted ||
			there != c.there {
			t.Errorf("%s: learned %v, its address taken over %v, there again %v; expected %v, %v, %v",
				c.name, learned, adopted, there, c.learned, c.adopted, c.there)
		}
		if _, known := n.pool.byAddress[second]; known != (c.by != LookIMDS) {
			t.Errorf("%s: the address of the ENI that is listed next is taken over: %v", c.name, known)
		}
	}
}

// TestENIsThatRecordsNameAreLookedFor: once each, whatever the records say of it; what no pod has waits for EC2's
// word.
func TestENIsThatRecordsNameAreLookedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		state State
		eni   string // in the record
		other string // somebody else's
		ask   bool   // the policy looks first when an attach is in doubt
		sent  bool   // an ENI of that name is looked for
	}{
		{"a pod's", Assigned, "eni-9", "", true, true},
		{"one that cools", Cooling, "eni-9", "", true, true},
		{"it names none", Assigned, "", "", true, false},
		{"somebody else's", Assigned, "eni-9", "eni-9", true, false},
		{"in doubt it is repeated", Assigned, "eni-9", "", false, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22")
		n.Inst.ID = "i-1"
		p := *Sound()
		n.policy = &p
		if !c.ask {
			p.Lost = func(Action) Doubt { return Repeat }
		}
		if c.other != "" {
			n.evidence.Others = []other{{ID: c.other}}
		}
		for i := int32(1); i < 3; i++ {
			n.pool.become(i, Assigned)
			if c.state == Cooling {
				n.pool.rest(0, i, false)
			}
			n.pool.place(i, -1)
			n.pool.Addrs[i].ENIID = c.eni
		}
		n.survey.reclaim(time.Minute)
		ix, sent := n.enis.eniByID("eni-9")
		if sent != c.sent || len(n.ENIs) > 2 || n.pool.Addrs[0].ENI != 0 {
			t.Errorf("%s: looked for %v, expected %v: %+v", c.name, sent, c.sent, n.ENIs)
		}
		if e := n.ENIs[ix]; sent && (e.Stage != Created || e.Doing != AttachENI || !e.Lost ||
			e.Next != time.Minute || e.Owner != "i-1") {
			t.Errorf("%s: it is %+v", c.name, e)
		}
		for _, a := range n.pool.Addrs[1:] {
			if on := a.ENI >= 0; on != (sent && c.state == Assigned) {
				t.Errorf("%s: %v is on ENI %d", c.name, a.IP, a.ENI)
			}
		}
	}
}

// TestWhatIsKeptOfSomebodyElsesENI: what pods have, or had, until it has cooled; and what is on another ENI.
func TestWhatIsKeptOfSomebodyElsesENI(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23", "10.0.0.24")
	n.Inst.ID = "i-1"
	n.pool.place(1, n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready}))
	for _, i := range []int32{2, 3} {
		n.pool.become(i, Assigned)
		n.pool.Addrs[i].Att = Attachment{network, "c", "eth0"}
	}
	n.pool.rest(0, 3, true)
	n.pool.become(4, Quarantined)
	n.pool.rest(0, 4, true)
	n.survey.disown(time.Minute, 0, &ENI{ID: "eni-0", Instance: "i-1", NoManage: "true"})
	for i, want := range []struct {
		state State
		on    int32
	}{{0, -1}, {Free, 1}, {Assigned, -1}, {Cooling, -1}, {0, -1}} {
		if a := &n.pool.Addrs[i]; a.State != want.state || a.ENI != want.on {
			t.Errorf("address %d is %v on ENI %d, expected %v on %d", i, a.State, a.ENI, want.state, want.on)
		}
	}
	if o := n.evidence.otherByID("eni-0"); o == nil || o.Why == "" || n.ENIs[0].Stage != 0 || len(n.ENIs) != 2 {
		t.Errorf("it is %+v, and the node's are %+v", o, n.ENIs)
	}
}

// TestSomebodyElsesENIThatIsGone is nobody's any more, and nothing that this node waits for.
func TestSomebodyElsesENIThatIsGone(t *testing.T) {
	n := freeOn(t, "10.0.0.20")
	n.Inst.ID = "i-1"
	n.survey.disown(time.Minute, 0, &ENI{ID: "eni-0", Instance: "i-2", NoManage: "true"})
	if len(n.evidence.Others) != 0 || n.ENIs[0].Stage != 0 || len(n.pool.byAddress) != 0 || noted(n, ENINotOurs) != 1 {
		t.Errorf("others %+v, the node's %+v, addresses %v", n.evidence.Others, n.ENIs, n.pool.byAddress)
	}
}

// TestWhatIsRememberedOfDepartures: who is asked late may still list what was given back, and what metadata lists is
// kept as long as it does.
func TestWhatIsRememberedOfDepartures(t *testing.T) {
	const now = time.Hour
	ip := netip.MustParseAddr("10.0.0.20")
	for _, c := range []struct {
		name                  string
		d                     departed
		alone, back           bool // with metadata alone; it is the node's again
		kept, stored, dropped bool
	}{
		{"long enough", departed{At: now - rememberedFor}, false, false, false, false, false},
		{"not long enough", departed{At: now - rememberedFor + 1}, false, false, true, false, false},
		{"listed", departed{At: now - rememberedFor, Listed: now}, false, false, true, false, false},
		{"listed a view ago", departed{At: now - rememberedFor, Listed: now - 1}, false, false, false, false, false},
		{"on record for long enough", departed{At: now - rememberedFor, Stored: true}, false, false, true, false,
			true},
		{"on record, not long enough", departed{At: now - rememberedFor + 1, Stored: true}, false, false, true, true,
			false},
		{"on record, and back", departed{At: now - rememberedFor, Stored: true}, false, true, true, false, false},
		{"with metadata alone", departed{At: now}, true, false, false, false, false},
		{"with metadata alone, listed", departed{At: now, Listed: now}, true, false, true, false, false},
		{"with metadata alone, on record", departed{At: now, Stored: true}, true, false, true, true, false},
	} {
		n := newborn(t)
		n.Phase, n.Set.IMDSOnly = serving, c.alone
		if c.d.IP = ip; c.back {
			n.pool.byAddress[ip] = 0
		}
		first := departed{ENI: "eni-1", At: now, Listed: now}
		n.evidence.Departures = []departed{first, c.d}
		n.survey.forgetDepartures(now)
		kept, dropped := len(n.evidence.Departures) > 1, len(n.ledger.drop[RunStore]) > 0
		stored := kept && n.evidence.Departures[1].Stored
		if kept != c.kept || stored != c.stored || dropped != c.dropped {
			t.Errorf("%s: kept %v, on record %v, its row is dropped %v; expected %v, %v, %v", c.name, kept, stored,
				dropped, c.kept, c.stored, c.dropped)
		}
	}
}

// TestWhatIsSweptByALook: what a whole answer of EC2's shows, by a node that serves. A leak that may be one is
// looked at again soon, and a neighbour's is nothing to this node.
func TestWhatIsSweptByALook(t *testing.T) {
	const now = time.Hour
	own := ENI{ID: "eni-8", Owner: "i-1", Status: "available", Created: 1}
	another := ENI{ID: "eni-7", Owner: "i-1", Status: "available", Created: 1}
	with := func(change func(v *ENI)) ENI { v := own; change(&v); return v }
	for _, c := range []struct {
		name                 string
		v                    ENI
		whole                bool
		phase                phase
		swept, seen, counted bool // seen: it is a sighting afterwards
		again                time.Duration
	}{
		{"old", own, true, serving, true, false, true, now + leakedPeriod},
		{"of an answer that was cut short", own, false, serving, false, false, false, never},
		{"by a node that recovers", own, true, recovering, false, false, false, never},
		{"by a node that stops", own, true, stopping, false, false, false, never},
		{"young", with(func(v *ENI) { v.Created = 3600 }), true, serving, false, true, true, now + leakedAgain},
		{"a neighbour's", with(func(v *ENI) { v.Owner = "i-2" }), true, serving, false, true, true,
			now + leakedPeriod},
		{"one of the cluster's", with(func(v *ENI) { v.Owner, v.Near = "i-2", true }), true, serving, false, true,
			true, now + leakedAgain},
		{"attached", with(func(v *ENI) { v.Status = "in-use" }), true, serving, false, false, true,
			now + leakedPeriod},
		{"on record", with(func(v *ENI) { v.ID = "eni-1" }), true, serving, false, false, true, now + leakedPeriod},
	} {
		n := newborn(t)
		n.Phase, n.Inst.ID = c.phase, "i-1"
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Created})
		n.survey.Sightings = []sighting{{ID: "eni-gone"}}
		n.survey.seenLeaked(now, &Seen{What: LookLeaked, ENIs: []ENI{c.v, another}}, c.whole)
		ix, swept := n.enis.eniByID("eni-8")
		if e := n.ENIs[ix]; swept && (e.Stage != Tombstoned || !e.Foreign || e.Next < now || e.Next > now+firstPause) {
			t.Errorf("%s: it is %+v", c.name, e)
		}
		if _, too := n.enis.eniByID("eni-7"); too != c.counted {
			t.Errorf("%s: the one that is listed next is swept: %v", c.name, too)
		} else if told := noted(n, ENISwept); told > 2 || (told == 2) != c.swept {
			t.Errorf("%s: told %d times", c.name, told)
		}
		seen, counted := false, true
		for _, s := range n.survey.Sightings {
			seen, counted = seen || s.ID == c.v.ID, counted && s.ID != "eni-gone"
		}
		at := n.evidence.Looks[LookLeaked].Want
		if swept != c.swept || seen != c.seen || counted != c.counted || at < c.again || c.again < never &&
			at > c.again+leakedPeriod/4 {
			t.Errorf("%s: swept %v, seen %v, the answer counts %v, EC2 is asked again at %v; expected %v, %v, %v, %v",
				c.name, swept, seen, counted, at, c.swept, c.seen, c.counted, c.again)
		}
	}
}

// TestWhoseAnENIIsThatAViewShows: EC2's word, or the link that the kernel shows, makes it the node's. Metadata
// alone is a reason to ask EC2, and to read metadata again where it was cut short. None of it keeps what is listed
// next from being taken.
func TestWhoseAnENIIsThatAViewShows(t *testing.T) {
	const now = time.Hour
	v := ENI{ID: "eni-1", MAC: "m1", Device: 1, Attachment: "a", Instance: "i-1", Owner: "i-1", Status: "in-use"}
	with := func(change func(v *ENI)) ENI { one := v; change(&one); return one }
	for _, c := range []struct {
		name             string
		by               What
		v                ENI
		but              func(n *Node)
		ours, others     bool
		imds, attached   bool // asked again
		asksIMDSAt, asks time.Duration
	}{
		{"by EC2", LookAttached, v, nil, true, false, false, false, 0, 0},
		{"by EC2, held for somebody else's", LookAttached, v, func(n *Node) { n.evidence.setAside(&v, false) }, true,
			false, false, false, 0, 0},
		{"by EC2, somebody else's", LookAttached, with(func(v *ENI) { v.NoManage = "true" }), nil, false, true,
			false, false, 0, 0},
		{"by EC2, deleted meanwhile", LookAttached, v, func(n *Node) { n.evidence.departENI(now, "eni-1") }, false,
			false, false, false, 0, 0},
		{"by metadata", LookIMDS, v, nil, false, true, false, true, 0, now},
		{"by metadata, of which EC2 has said whose it is", LookIMDS, v, func(n *Node) {
			n.evidence.setAside(&v, true)
			n.pool.restore(now, &Row{Address: netip.MustParseAddr("10.0.0.20"), State: Assigned,
				Att: Attachment{network, "c1", "eth0"}, ENI: "eni-1"})
		}, false, true, false, false, 0, 0},
		{"by metadata, on record, without a link", LookIMDS, v, func(n *Node) {
			n.pool.restore(now, &Row{Address: netip.MustParseAddr("10.0.0.20"), State: Assigned,
				Att: Attachment{network, "c1", "eth0"}, ENI: "eni-1"})
		}, false, false, false, true, 0, now},
		{"by metadata, the half of it", LookIMDS, with(func(v *ENI) { v.ID, v.Partial = "", true }), nil, false,
			false, true, false, now + 2*time.Second, 0},
		{"by metadata, known, and the half of it", LookIMDS, with(func(v *ENI) { v.Partial = true }), func(n *Node) {
			n.enis.newENI(eni{ENI: v, Stage: Ready, Linked: true, presence: presence{ByIMDS: 1}})
		}, true, false, true, false, now + 2*time.Second, 0},
	} {
		n := newborn(t)
		n.Phase, n.Inst.ID = serving, "i-1"
		if c.but != nil {
			c.but(n)
		}
		n.survey.adoptENIs(now, c.by, []ENI{c.v, {ID: "eni-0", Device: 0, Instance: "i-1"}}, n.Steps)
		_, ours := n.enis.eniByID("eni-1")
		if others := n.evidence.otherByID("eni-1") != nil; ours != c.ours || others != c.others {
			t.Errorf("%s: the node's %v, somebody else's %v; expected %v, %v", c.name, ours, others, c.ours, c.others)
		}
		if _, next := n.enis.eniByID("eni-0"); !next {
			t.Errorf("%s: what is listed next is not taken", c.name)
		}
		imds, attached := never, never
		if c.imds {
			imds = c.asksIMDSAt
		}
		if c.attached {
			attached = c.asks
		}
		if at := n.evidence.Looks[LookIMDS].Want; at != imds {
			t.Errorf("%s: metadata is read again at %v, expected %v", c.name, at, imds)
		}
		if at := n.evidence.Looks[LookAttached].Want; at != attached {
			t.Errorf("%s: EC2 is asked at %v, expected %v", c.name, at, attached)
		}
	}
}
