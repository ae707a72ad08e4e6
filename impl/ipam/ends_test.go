package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// These ask how a cool-down, a GC, a drain and the node's rest end, and what keeps them from it.

// TestWhenACoolDownEnds: when its time is over, nothing runs, conntrack has forgotten it and the kernel shows no
// use. What nobody had is set aside as soon as the kernel shows a use.
func TestWhenACoolDownEnds(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what  string
		used  bool
		spoil func(n *Node, a *address)
		state State
		stays bool // it is still thought of
	}{
		{"it is over", false, func(*Node, *address) {}, Free, false},
		{"it is not", false, func(_ *Node, a *address) { a.ReleasedAt++ }, Cooling, true},
		{"something of it is in the kernel", false, func(_ *Node, a *address) { a.Cooling = inKernel }, Cooling,
			true},
		{"its flows are not forgotten", false, func(_ *Node, a *address) { a.Cooling = remembered }, Cooling, true},
		{"something runs", false, func(_ *Node, a *address) { a.Op = releasing }, Cooling, true},
		{"it has changed since", false, func(_ *Node, a *address) { a.Tag = 6 }, Cooling, true},
		{"on no ENI", false, func(n *Node, a *address) { n.pool.place(0, -1); a.ENIID = "" }, 0, false},
		{"on an ENI that EC2 has not listed yet", false, func(n *Node, _ *address) {
			n.pool.place(0, -1)
			n.Surveyed = false
		}, Cooling, true},
		{"in use", true, func(*Node, *address) {}, Quarantined, false},
		{"in use, by a witness that does not count", true, func(n *Node, _ *address) { n.Witness.Kernel = false },
			Free, false},
		{"in use, and the policy has no veto", true,
			func(n *Node, _ *address) {
				n.policy.Veto = func(string) bool { return false }
			},
			Free, false},
		{"in use, and it was nobody's", true, func(_ *Node, a *address) { a.Att = Attachment{}; a.ReleasedAt++ },
			Quarantined, false},
		{"the same, and the policy has no veto", true, func(n *Node, a *address) {
			a.Att = Attachment{}
			a.ReleasedAt++
			n.policy.Veto = func(string) bool { return false }
		}, Cooling, true},
		{"the same, and something is in the kernel", true, func(_ *Node, a *address) {
			a.Att = Attachment{}
			a.ReleasedAt++
			a.Cooling = inKernel
		}, Cooling, true},
		{"the same, and it has changed since", true, func(_ *Node, a *address) {
			a.Att = Attachment{}
			a.ReleasedAt++
			a.Tag = 6
		}, Cooling, true},
		{"the same, by a witness that does not count", true, func(n *Node, a *address) {
			a.Att = Attachment{}
			a.ReleasedAt++
			n.Witness.Kernel = false
		}, Cooling, true},
		{"in use, and it was somebody's", true, func(_ *Node, a *address) { a.ReleasedAt++ }, Cooling, true},
		{"somebody's by now", false, func(n *Node, _ *address) { n.pool.become(0, Assigned) }, Assigned, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.Set.CoolDown, n.Witness.Kernel, n.Surveyed = time.Minute, true, true
		n.Set.Runtime = false
		for i := range int32(2) { // the second one is over in any case
			assign(n, i, string(rune('a'+i)))
			n.pool.rest(now-time.Minute, i, true)
			n.pool.unkey(i)
			n.pool.Addrs[i].Cooling, n.pool.Addrs[i].Tag = forgotten, 5
		}
		a := &n.pool.Addrs[0]
		c.spoil(n, a)
		var links []dataplane.Link
		if c.used {
			links = append(links, dataplane.Link{Name: "theirs", Veth: true, PeerLive: true,
				PeerAddresses: []netip.Addr{a.IP}})
		}
		n.pods.coolDowns(now, indexOf(links...), 5)
		if a.State != c.state || slices.Contains(n.pool.Cooling, 0) != c.stays {
			t.Errorf("%s: it is %v, and is thought of: %v", c.what, a.State, n.pool.Cooling)
		}
		if n.pool.Addrs[1].State != Free || slices.Contains(n.pool.Cooling, 1) {
			t.Errorf("%s: the next one is %v", c.what, n.pool.Addrs[1].State)
		}
	}
}

// TestAGCTakesTwoRounds: an answer of kernel and of runtime each, asked for since the round began.
func TestAGCTakesTwoRounds(t *testing.T) {
	const now = time.Hour
	n := freeOn(t, "10.0.0.20")
	assign(n, 0, "c1")
	a := &n.pool.Addrs[0]
	a.Lists, a.testimony.SeenCRI, a.Absent, a.Dead = 7, true, 2, 2
	n.Set.Runtime, n.Steps = true, 9
	a.Lists = 7
	n.pods.collected(now, LookKernel, 9) // none runs
	n.pods.gc(now, GC{Req: 1, Network: network})
	n.pods.gc(now, GC{Req: 2, Network: network})
	if r := replies(n); r[1] != nil || r[2] == nil || r[2].Err == nil || r[2].Err.Code != CodeTryAgain ||
		a.Lists != 0 {
		t.Errorf("told are %+v; not listed %d times", r, a.Lists)
	}
	if n.Looks[LookKernel].Want != now || n.Looks[LookRuntime].Want != now {
		t.Errorf("looked at at %v and %v", n.Looks[LookKernel].Want, n.Looks[LookRuntime].Want)
	}
	for i, s := range []struct {
		w      What
		asked  uint64
		rounds int
	}{
		{LookKernel, 8, 0}, {LookRuntime, 8, 0}, {LookRuntime, 9, 0}, {LookRuntime, 9, 0}, {LookKernel, 9, 1},
		{LookKernel, 9, 1}, {LookRuntime, 9, 1}, {LookKernel, 10, 1}, {LookKernel, 10, 1},
	} {
		n.pods.collected(now, s.w, s.asked)
		if c := n.requests.Collecting; c.Rounds != s.rounds || a.Lists != s.rounds || c.Req != 1 {
			t.Errorf("answer %d: %d rounds, not listed %d times, for %d", i, c.Rounds, a.Lists, c.Req)
		}
	}
	n.pods.collected(now, LookRuntime, 10)
	if r := replies(n)[1]; r == nil || r.Err != nil || a.State != Cooling || n.requests.Collecting.Req != 0 ||
		noted(n, GCReleased) != 1 {
		t.Errorf("told is %+v, it is %v, and GC %d runs", r, a.State, n.requests.Collecting.Req)
	}
	n = freeOn(t)
	n.Phase = recovering
	n.pods.gc(now, GC{Req: 1, Network: network})
	if r := replies(n)[1]; r == nil || r.Err == nil || r.Err.Code != CodeTryAgain || n.requests.Collecting.Req != 0 {
		t.Errorf("it recovers, and told is %+v", r)
	}
}

// TestWhatAGCSpeaksOf: what its network's caller does not list, and had before its list.
func TestWhatAGCSpeaksOf(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node, a *address)
		valid []Attachment
		want  bool
	}{
		{"not listed", func(*Node, *address) {}, nil, true},
		{"listed", func(*Node, *address) {}, []Attachment{{network, "c2", "eth0"}, {network, "c1", "eth0"}}, false},
		{"another container", func(*Node, *address) {}, []Attachment{{network, "c2", "eth0"}}, true},
		{"another interface", func(*Node, *address) {}, []Attachment{{network, "c1", "eth1"}}, true},
		{"of another network", func(_ *Node, a *address) { a.Att.Network = "other" }, nil, false},
		{"allocated since", func(_ *Node, a *address) { a.Allocated = time.Hour }, nil, false},
		{"allocated just before", func(_ *Node, a *address) { a.Allocated = time.Hour - 1 }, nil, true},
		{"something runs", func(_ *Node, a *address) { a.run(repairing) }, nil, false},
		{"set aside", func(n *Node, _ *address) { n.pool.quarantine(0, "why") }, nil, false},
	} {
		n := freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		c.spoil(n, &n.pool.Addrs[0])
		n.requests.Collecting = collecting{GC: GC{Req: 1, Network: network, Valid: c.valid}, Began: time.Hour}
		if got := n.pods.unlisted(&n.pool.Addrs[0]); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestWhenNothingIsUnderWay, so that an observation of the kernel like the last one needs not be read.
func TestWhenNothingIsUnderWay(t *testing.T) {
	for what, spoil := range map[string]func(n *Node){
		"":                          func(*Node) {},
		"an empty slot":             func(n *Node) { n.ENIs[0].Stage, n.ENIs[0].Linked = 0, false },
		"it recovers":               func(n *Node) { n.Phase = recovering },
		"the host is not set up":    func(n *Node) { n.host.Done = false },
		"the host is being set up":  func(n *Node) { n.host.Busy = true },
		"an address cools":          func(n *Node) { n.pool.rest(0, assigned(n, 0), true) },
		"an address is set aside":   func(n *Node) { n.pool.quarantine(0, "why") },
		"a CHECK waits":             func(n *Node) { n.requests.Checks = make([]checking, 1) },
		"an ADD looks again":        func(n *Node) { n.requests.Agains = make([]again, 1) },
		"a GC runs":                 func(n *Node) { n.requests.Collecting.Req = 1 },
		"an ENI drains":             func(n *Node) { n.ENIs[0].Stage = Draining },
		"EC2 is called":             func(n *Node) { n.ENIs[0].Wait = calling },
		"EC2 is to be called":       func(n *Node) { n.ENIs[0].Doing = AssignIPs },
		"addresses are to go":       func(n *Node) { n.ENIs[0].Trimming = true },
		"metadata lacks an ENI":     func(n *Node) { n.ENIs[0].ByIMDS = 1 },
		"the kernel lacks its link": func(n *Node) { n.ENIs[0].Linked = false },
	} {
		n := freeOn(t, "10.0.0.20")
		n.host.Done, n.ENIs[0].Linked = true, true
		spoil(n)
		if got := n.atPeace(); got != (what == "" || what == "an empty slot") {
			t.Errorf("%q: %v", what, got)
		}
	}
}

// TestAStepThatOnlyLooks is an observation or a tick that wants no more than to look.
func TestAStepThatOnlyLooks(t *testing.T) {
	for _, c := range []struct {
		in   Input
		out  []Effect
		want bool
	}{
		{nil, nil, true},
		{Seen{}, nil, true},
		{Seen{}, []Effect{&Look{}, &Look{}}, true},
		{Seen{}, []Effect{&Look{}, &Note{}}, false},
		{nil, []Effect{&Save{}}, false},
		{Gone{}, nil, false},
	} {
		if got := onlyLooked(c.in, c.out); got != c.want {
			t.Errorf("%T, %v: %v", c.in, c.out, got)
		}
	}
}

// TestWhenAnENIOrAddressesMayGo: when every source that is asked has agreed, and nothing of it is in use.
func TestWhenAnENIOrAddressesMayGo(t *testing.T) {
	for _, c := range []struct {
		what  string
		trims bool
		spoil func(n *Node, e *eni)
		want  bool
	}{
		{"an ENI", false, func(*Node, *eni) {}, true},
		{"an ENI with a pod", false, func(n *Node, _ *eni) { assign(n, 0, "c1") }, false},
		{"an ENI with one that cools", false, func(n *Node, _ *eni) { n.pool.rest(0, assigned(n, 0), true) }, false},
		{"an ENI with one set aside", false, func(n *Node, _ *eni) { n.pool.quarantine(0, "why") }, false},
		{"the kernel has not answered", false, func(_ *Node, e *eni) { e.KernelOK = false }, false},
		{"the kernel may not testify", false, func(n *Node, e *eni) { e.KernelOK, n.Witness.Kernel = false, false },
			true},
		{"the runtime has not answered", false, func(_ *Node, e *eni) { e.RuntimeOK = false }, false},
		{"the runtime may not testify", false, func(n *Node, e *eni) {
			e.RuntimeOK, n.Witness.Runtime = false,
				false
		}, true},
		{"there is no runtime", false, func(n *Node, e *eni) { e.RuntimeOK, n.Set.Runtime = false, false }, true},
		{"an address", true, func(*Node, *eni) {}, true},
		{"an address beside a pod", true, func(n *Node, _ *eni) { assign(n, 1, "c1") }, true},
		{"a pod's address", true, func(n *Node, _ *eni) { assign(n, 0, "c1") }, false},
		{"an address that cools", true, func(n *Node, _ *eni) { n.pool.rest(0, assigned(n, 0), true) }, false},
		{"an address that is not known", true, func(n *Node, _ *eni) { n.pool.forget(0) }, true},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.Set.Runtime, n.Witness = true, Witnesses{Kernel: true, Runtime: true}
		e := &n.ENIs[0]
		e.Trimming, e.disuse, e.Before = c.trims, disuse{true, true}, []netip.Addr{n.pool.Addrs[0].IP}
		c.spoil(n, e)
		if got := n.driver.drainable(0); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestEvidenceThatTakesTooLong ends a drain; until then it is waited for.
func TestEvidenceThatTakesTooLong(t *testing.T) {
	const since = time.Hour
	for wait, stays := range map[time.Duration]bool{drainPatience - 1: false, drainPatience: true} {
		n := freeOn(t)
		n.Witness.Kernel = true
		n.ENIs[0].Stage, n.ENIs[0].Since, n.ENIs[0].Attachment, n.ENIs[0].Next = Draining, since, "a", never
		n.driver.drain(since+wait, 0)
		if e := &n.ENIs[0]; (e.Stage == Ready) != stays || !stays && e.Next != since+drainPatience {
			t.Errorf("after %v it is %v, goes on at %v", wait, e.Stage, e.Next)
		}
	}
	n := freeOn(t) // it is not known to be attached: EC2 is asked once
	n.ENIs[0].Stage = Draining
	for _, want := range []time.Duration{time.Hour, never} {
		n.Looks[LookENI].Want = never
		if n.driver.drain(time.Hour, 0); n.Looks[LookENI].Want != want || !n.ENIs[0].Asking {
			t.Errorf("EC2 is asked at %v", n.Looks[LookENI].Want)
		}
	}
}

// TestEvidenceIsGatheredAnew: what was heard before is of before.
func TestEvidenceIsGatheredAnew(t *testing.T) {
	for _, runtime := range []bool{false, true} {
		n := freeOn(t)
		n.Set.Runtime, n.Steps, n.evidence.calm, n.ENIs[0].disuse = runtime, 9, true, disuse{true, true}
		n.driver.beginDrain(time.Hour, 0)
		if e := &n.ENIs[0]; e.Stage != Draining || e.disuse != (disuse{}) || e.Tag != 9 || e.Next != time.Hour ||
			n.evidence.calm {
			t.Errorf("it is %v, %+v, since step %d; calm %v", e.Stage, e.disuse, e.Tag, n.evidence.calm)
		}
		if n.Looks[LookKernel].Want != time.Hour || (n.Looks[LookRuntime].Want == time.Hour) != runtime {
			t.Errorf("runtime %v: looked at at %v and %v", runtime, n.Looks[LookKernel].Want,
				n.Looks[LookRuntime].Want)
		}
	}
}

// TestWhatASaveOfAnENIsRecordsBegins: an intent that is durable is carried out, an unassignment that is on record
// is over, and what is not durable is tried again. A Save of before says nothing.
func TestWhatASaveOfAnENIsRecordsBegins(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what    string
		doing   Action
		unwired bool
		tag     uint64
		wait    waitKind // before
		ok      bool
		intent  waitKind // afterwards, of an intent
		taken   waitKind // afterwards, of the record of an unassignment
	}{
		{"durable", AttachENI, false, 5, storing, true, calling, idle},
		{"a detach that is durable", DetachENI, false, 5, storing, true, applying, idle},
		{"the same, and its link is bare", DetachENI, true, 5, storing, true, calling, idle},
		{"not durable", AttachENI, false, 5, storing, false, idle, idle},
		{"of before", AttachENI, false, 4, storing, true, storing, storing},
		{"not awaited", AttachENI, false, 5, applying, true, applying, applying},
	} {
		for _, taken := range []bool{false, true} {
			n := newborn(t)
			n.pool.Warm.At = never
			ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Draining, Token: "t", Unwired: c.unwired,
				Trimming: true, mutation: mutation{Doing: c.doing, Wait: c.wait, Stored: true, Extra: "x", Tries: 3,
					Count:    2,
					Prefixed: true, Lost: true, Give: []string{"sg"}, Before: make([]netip.Addr, 1), Next: 7}})
			e, want := &n.ENIs[ix], c.intent
			e.Tag = 5
			if taken {
				want = c.taken
				n.driver.takenSaved(now, ix, c.tag, c.ok)
			} else {
				n.driver.intentSaved(now, ix, c.tag, c.ok)
			}
			heard := want != c.wait
			over, again := taken && heard && c.ok, heard && !c.ok
			if e.Wait != want || (e.Next > now && e.Next != never && e.Tries == 4) != again ||
				(len(n.out) == 1) != (want == calling || heard && want == applying) {
				t.Errorf("%s, taken %v: it waits for %d, goes on at %v after %d tries: %+v", c.what, taken, e.Wait,
					e.Next, e.Tries,
					n.out)
			}
			rest := e.Doing == 0 && e.Count == 0 && e.Before == nil && e.Give == nil && !e.Prefixed &&
				!e.Trimming && !e.Lost
			if gone := !e.Stored && e.Extra == "" && len(n.ledger.drop[LibStore]) == 1; rest != over ||
				gone != over ||
				(e.Tries == 0) != over || (n.pool.Warm.At == now) != over || (e.Next == never) != over {
				t.Errorf("%s, taken %v: %+v", c.what, taken, e.mutation)
			}
		}
	}
}

// TestWhoseResidueIsRemoved: rules of addresses that no pod has, that are no ENI's own and on nobody else's ENI.
// While the host is being set up, none is.
func TestWhoseResidueIsRemoved(t *testing.T) {
	for _, c := range []struct {
		what  string
		ip    string
		spoil func(n *Node)
		want  bool
	}{
		{"free", "10.0.0.20", func(*Node) {}, true},
		{"free, and the host is being set up", "10.0.0.20", func(n *Node) { n.host.Busy = true }, false},
		{"free, and changed since", "10.0.0.20", func(n *Node) { n.pool.Addrs[0].Tag = 6 }, false},
		{"a pod's", "10.0.0.20", func(n *Node) { assign(n, 0, "c1") }, false},
		{"set aside", "10.0.0.20", func(n *Node) { n.pool.quarantine(0, "why") }, false},
		{"cooling, and something is in the kernel", "10.0.0.20", func(n *Node) {
			n.pool.rest(0, assigned(n, 0),
				false)
		}, false},
		{"cooling", "10.0.0.20", func(n *Node) { n.pool.rest(0, assigned(n, 0), true) }, true},
		{"cooling, and something runs", "10.0.0.20", func(n *Node) {
			n.pool.rest(0, assigned(n, 0), true)
			n.pool.Addrs[0].Op = releasing
		}, false},
		{"unknown", "10.0.0.99", func(*Node) {}, true},
		{"the node's", "10.0.0.99", func(n *Node) { n.Inst.Address = netip.MustParseAddr("10.0.0.99") }, false},
		{"an ENI's own", "10.0.0.99", func(n *Node) { n.ENIs[0].Primary = netip.MustParseAddr("10.0.0.99") }, false},
		{"another's", "10.0.0.99", func(n *Node) {
			n.evidence.Others = []other{{ID: "eni-9", Keeps: []netip.Addr{netip.MustParseAddr("10.0.0.99")}}}
		}, false},
	} {
		n := freeOn(t, "10.0.0.20")
		c.spoil(n)
		if n.pool.Addrs[0].Tag != 6 {
			n.pool.Addrs[0].Tag = 5
		}
		to := netip.PrefixFrom(netip.MustParseAddr(c.ip), 32)
		o := dataplane.Observation{Complete: true,
			Rules: []dataplane.Rule{{Priority: dataplane.PriorityToPod, To: to, Table: dataplane.MainTable}}}
		n.residue(o.Index(), 5)
		if got := len(applies(n)) == 1; got != c.want || got != (noted(n, ResidueRemoved) == 1) {
			t.Errorf("%s: removed %v: %+v", c.what, got, n.out)
		}
	}
}
