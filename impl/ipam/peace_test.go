package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestWhatTheKernelsNextWordIsOfUseTo: an observation that is the same again is passed over only where nothing is
// under way that it could move.
func TestWhatTheKernelsNextWordIsOfUseTo(t *testing.T) {
	for _, c := range []struct {
		name string
		but  func(n *Node)
		want bool
	}{
		{"at rest", func(*Node) {}, true},
		{"it recovers", func(n *Node) { n.Phase = recovering }, false},
		{"it stops", func(n *Node) { n.Phase = stopping }, false},
		{"the host is not set up", func(n *Node) { n.host.Done = false }, false},
		{"the host is being put right", func(n *Node) { n.host.Busy = true }, false},
		{"an address cools", func(n *Node) { n.pool.become(1, Assigned); n.pool.rest(0, 1, true) }, false},
		{"an address is set aside", func(n *Node) { n.pool.become(1, Quarantined) }, false},
		{"a CHECK waits", func(n *Node) { n.requests.Checks = append(n.requests.Checks, checking{}) }, false},
		{"an ADD waits to be answered again", func(n *Node) {
			n.requests.Agains = append(n.requests.Agains,
				again{})
		}, false},
		{"a GC runs", func(n *Node) { n.requests.Collecting.Req = 1 }, false},
		{"an empty slot", func(n *Node) { n.enis.vacate(0) }, true},
		{"an ENI is on its way", func(n *Node) { n.ENIs[0].Stage = Configured }, false},
		{"an ENI goes", func(n *Node) { n.ENIs[0].Stage = Draining }, false},
		{"an ENI's link is put right", func(n *Node) { n.ENIs[0].Wait = applying }, false},
		{"an ENI gets addresses", func(n *Node) { n.ENIs[0].Doing = AssignIPs }, false},
		{"an ENI gives addresses back", func(n *Node) { n.ENIs[0].Trimming = true }, false},
		{"metadata does not list an ENI", func(n *Node) { n.ENIs[0].ByIMDS = 1 }, false},
		{"an ENI has no link", func(n *Node) { n.ENIs[0].Linked = false }, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.pool.become(0, Assigned)
		n.host.Done, n.ENIs[0].Linked = true, true
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Linked: true})
		if c.but(n); n.atPeace() != c.want {
			t.Errorf("%s: at peace %v", c.name, !c.want)
		}
	}
}

// TestAPodThatTheRuntimeDoesNotListIsLookedFor: the kernel is read at once, and what it says counts though it is what
// it said before.
func TestAPodThatTheRuntimeDoesNotListIsLookedFor(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		name    string
		listed  string
		whole   bool
		phase   phase
		calm    bool
		kernel  time.Duration
		trouble bool
	}{
		{"listed", "c1", true, serving, true, never, false},
		{"not listed", "c2", true, serving, false, now, false},
		{"not listed in what was cut short", "c2", false, serving, true, never, true},
		{"not listed, and it recovers", "c2", true, recovering, true, never, false},
		{"not listed in what was cut short, and it recovers", "c2", false, recovering, true, never, true},
	} {
		n := freeOn(t, "10.0.0.20")
		n.pool.become(0, Assigned)
		n.pool.Addrs[0].Att, n.Set.Runtime, n.Phase = Attachment{network, "c1", "eth0"}, true, c.phase
		n.evidence.calm = true
		n.Troubles[troubleRuntime] = "before"
		if c.trouble {
			n.Troubles[troubleRuntime] = ""
		}
		n.seenRuntime(now, &Seen{What: LookRuntime, Sandboxes: []Sandbox{{ID: c.listed, Ready: true}}}, c.whole,
			n.Steps)
		kernel, runtime := n.evidence.Looks[LookKernel].Want, n.evidence.Looks[LookRuntime].Want
		if n.evidence.calm != c.calm || kernel != c.kernel || (runtime == now+runtimePeriod/2) == c.calm {
			t.Errorf("%s: calm %v, the kernel is read at %v, the runtime asked at %v; expected %v, %v", c.name,
				n.evidence.calm, kernel, runtime, c.calm, c.kernel)
		}
		if told := noted(n, RuntimeListRefused); (n.Troubles[troubleRuntime] != "") != c.trouble ||
			told > 0 != c.trouble {
			t.Errorf("%s: told %d times, %q", c.name, told, n.Troubles[troubleRuntime])
		}
		if kept := len(n.recovery.Listed) == 1; kept != (c.phase == recovering) || n.recovery.Answered != kept ||
			n.recovery.ListedOK != (kept && c.whole) {
			t.Errorf("%s: recovery has %+v, whole %v, answered %v", c.name, n.recovery.Listed, n.recovery.ListedOK,
				n.recovery.Answered)
		}
	}
}

// TestMetadatasWordIsRecorded for the next daemon, as soon as it says something new.
func TestMetadatasWordIsRecorded(t *testing.T) {
	own := netip.MustParseAddr("10.0.0.4")
	n := freeOn(t)
	n.Known, n.Inst = true, Instance{ID: "i-1", PrimaryMAC: "m0", Address: own}
	n.ENIs[0].Linked = true
	seen := Seen{What: LookIMDS, IMDS: &IMDS{Instance: n.Inst, ENIs: []ENI{{ID: "eni-0"}}}}
	for step, saves := range []int{1, 0} {
		n.ledger.put[RunStore] = nil
		n.seenIMDS(time.Minute, &seen, true, n.Steps)
		if f := n.ledger.Facts; f == nil || len(f.ENIs) != 1 || len(n.ledger.put[RunStore]) != saves {
			t.Errorf("answer %d: on record are %+v; saved: %v", step, f, n.ledger.put[RunStore])
		}
	}
}

// TestASilenceOfMetadatasIsTold, and ends with its next word.
func TestASilenceOfMetadatasIsTold(t *testing.T) {
	n := freeOn(t)
	n.seenIMDS(time.Minute, &Seen{What: LookIMDS, Err: "no route"}, false, n.Steps)
	if n.Troubles[troubleIMDS] != "instance metadata: no route" {
		t.Errorf("%q", n.Troubles[troubleIMDS])
	}
	n.seenIMDS(time.Minute, &Seen{What: LookIMDS, IMDS: &IMDS{Instance: Instance{ID: "i-1"},
		Groups: []string{"sg-1"}}}, true, n.Steps)
	if n.Troubles[troubleIMDS] != "" || len(n.Grouped) != 1 {
		t.Errorf("%q, groups %v", n.Troubles[troubleIMDS], n.Grouped)
	}
}

// TestNewSettings: what they make of use is asked for at once. With metadata alone EC2's word on what is attached
// is awaited no more, and without that what waited for EC2 goes on.
func TestNewSettings(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		name           string
		was, set       Settings
		phase          phase
		host           *host // as it is
		survey, kicked bool
		looks          []What
		applies        bool
	}{
		{"the same", Settings{API: true}, Settings{API: true}, serving, &host{Done: true}, false, false, nil, true},
		{"while the host is put right", Settings{API: true}, Settings{API: true}, serving, &host{Done: true,
			Busy: true}, false, false, nil, false},
		{"before the host is set up", Settings{API: true}, Settings{API: true}, serving, &host{}, false, false, nil,
			false},
		{"metadata alone", Settings{}, Settings{IMDSOnly: true}, serving, &host{Done: true}, true, false, nil, true},
		{"metadata alone, while it recovers", Settings{}, Settings{IMDSOnly: true}, recovering, &host{}, false,
			false, nil, false},
		{"still metadata alone, while it recovers", Settings{IMDSOnly: true}, Settings{IMDSOnly: true}, recovering,
			&host{}, false, true, nil, false},
		{"metadata alone no more", Settings{IMDSOnly: true}, Settings{}, serving, &host{Done: true}, false, true,
			[]What{LookENI, LookAttached, LookLeaked}, true},
		{"a runtime", Settings{}, Settings{Runtime: true}, serving, &host{Done: true}, false, false,
			[]What{LookRuntime}, true},
		{"prefixes", Settings{}, Settings{PrefixDelegation: true}, serving, &host{Done: true}, false, false, nil,
			true},
	} {
		n := freeOn(t)
		n.Phase, n.Set, n.Surveyed = c.phase, c.was, false
		n.host.Done, n.host.Busy, n.ENIs[0].Next = c.host.Done, c.host.Busy, never
		n.Warm.Bare = true
		n.settings(now, c.set)
		if kicked := n.ENIs[0].Next == now; n.Surveyed != c.survey || kicked != c.kicked || n.Set != c.set ||
			n.Flows.At != now {
			t.Errorf("%s: surveyed %v, its ENIs go on: %v; expected %v, %v", c.name, n.Surveyed, kicked, c.survey,
				c.kicked)
		}
		if n.Warm.Bare == (c.was.PrefixDelegation != c.set.PrefixDelegation) {
			t.Errorf("%s: that the subnet has no prefix is remembered: %v", c.name, n.Warm.Bare)
		}
		asked := 0
		for w := What(1); w < looks; w++ {
			if n.evidence.Looks[w].Want == now {
				asked++
			}
		}
		for _, w := range c.looks {
			if n.evidence.Looks[w].Want != now {
				t.Errorf("%s: %v is not asked", c.name, w)
			}
		}
		applies := false
		for _, e := range n.out {
			_, plan := e.(*Apply)
			applies = applies || plan
		}
		if asked != len(c.looks) || applies != c.applies {
			t.Errorf("%s: %d sources are asked, expected %v; the host's rules are set up: %v", c.name, asked,
				c.looks, applies)
		}
	}
}

// TestTheHostsRulesArePutBack: what the kernel lacks of them, once they were there and while nothing is done about
// them.
func TestTheHostsRulesArePutBack(t *testing.T) {
	lacking := dataplane.Observation{Complete: true, Links: []dataplane.Link{{Name: "eth0", MAC: "m0", Up: true}}}
	for _, c := range []struct {
		name       string
		done, busy bool
		o          dataplane.Observation
		want       bool
	}{
		{"lacking", true, false, lacking, true},
		{"not set up yet", false, false, lacking, false},
		{"being put back", true, true, lacking, false},
		{"nothing to put back", true, false, dataplane.Observation{Complete: true}, false},
	} {
		h := newHost()
		h.Inst.PrimaryMAC, h.Set.NodePort, h.Done, h.Busy = "m0", true, c.done, c.busy
		h.repair(c.o.Index())
		applied, told := 0, 0
		for _, e := range h.out {
			switch e := e.(type) {
			case *Apply:
				if applied++; e.Lane.Kind != HostLane || len(e.Plan.Ops) == 0 {
					t.Errorf("%s: %+v", c.name, e)
				}
			case *Note:
				told++
			}
		}
		if (applied == 1) != c.want || (told == 1) != c.want || h.Busy != (c.want || c.busy) {
			t.Errorf("%s: put back %d times, told %d times, busy %v", c.name, applied, told, h.Busy)
		}
	}
}

// TestWhatMetadatasWordBegins: what it lacks is asked about, what it adds is not SNATed to, and after a silence the
// node hears it.
func TestWhatMetadatasWordBegins(t *testing.T) {
	const now = time.Hour
	n := freeOn(t)
	n.Known, n.Inst = true, Instance{ID: "i-1", Address: netip.MustParseAddr("10.0.0.4")}
	n.host.Done, n.ENIs[0].Linked, n.Grouped = true, true, []string{"sg-1"}
	n.evidence.Others, n.evidence.Departures = []other{{ID: "eni-9", MAC: "m9", Why: "theirs"}},
		[]departed{{ENI: "eni-8"}}
	in := Instance{ID: "i-1", Type: "another", Address: n.Inst.Address,
		VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}}
	n.seenIMDS(now, &Seen{What: LookIMDS, IMDS: &IMDS{Instance: in}}, true, n.Steps)
	if len(n.Inst.VPC) != 1 || n.Inst.Type != "" || len(n.evidence.Departures) != 0 || !n.ENIs[0].Asking ||
		!n.evidence.Others[0].Asking {
		t.Errorf("the instance %+v, departures %+v, ENIs %+v, others %+v", n.Inst, n.evidence.Departures, n.ENIs,
			n.evidence.Others)
	}
	if len(n.Grouped) != 1 || n.evidence.Looks[LookAttached].Want != never {
		t.Errorf("groups %v, EC2 is asked what is attached at %v", n.Grouped, n.evidence.Looks[LookAttached].Want)
	}
	n.Deaf = true
	n.seenIMDS(now, &Seen{What: LookIMDS, IMDS: &IMDS{Instance: in}}, true, n.Steps)
	if n.Deaf || n.Inst.Type != "another" || n.evidence.Looks[LookAttached].Want != now {
		t.Errorf("after a silence: deaf %v, EC2 is asked what is attached at %v", n.Deaf,
			n.evidence.Looks[LookAttached].Want)
	}
}

// TestAStartByMetadataOrByTheRecords: what is on record counts while metadata is silent, and until it is not.
func TestAStartByMetadataOrByTheRecords(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.4")
	for phase, recollects := range map[phase]bool{recovering: true, serving: false} {
		n := newborn(t)
		n.Phase, n.ledger.Facts = phase, &Facts{Instance: Instance{ID: "i-1", PrimaryMAC: "m0", Address: ip},
			ENIs: []ENI{{ID: "eni-0", MAC: "m0", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: ip}}}
		n.seenIMDS(time.Minute, &Seen{What: LookIMDS}, false, n.Steps)
		if n.Known != recollects || n.Deaf != recollects {
			t.Errorf("in phase %d: known %v, deaf %v", phase, n.Known, n.Deaf)
		}
		if phase != recovering {
			continue
		}
		heard := Instance{ID: "i-1", Type: "heard", Limits: Limits{ENIs: mostENIs + 1}, VPC: []netip.Prefix{{}}}
		n.seenIMDS(time.Minute, &Seen{What: LookIMDS, IMDS: &IMDS{Instance: heard, ENIs: []ENI{{ID: "eni-0"}}}},
			true, n.Steps)
		if heard.VPC[0] = netip.MustParsePrefix("10.0.0.0/16"); n.Deaf || n.Inst.Type != "heard" ||
			len(n.recovery.Cloud) != 1 || len(n.ENIs) != 0 {
			t.Errorf("metadata answers: deaf %v, %+v, %+v", n.Deaf, n.Inst, n.ENIs)
		}
		if n.Inst.VPC[0].IsValid() || n.Inst.Limits.ENIs != mostENIs {
			t.Errorf("the instance is the caller's, or has no bounds: %+v", n.Inst)
		}
		heard.Type = "again"
		n.seenIMDS(time.Minute, &Seen{What: LookIMDS, IMDS: &IMDS{Instance: heard}}, true, n.Steps)
		if n.Inst.Type != "heard" {
			t.Errorf("metadata answers again: %+v", n.Inst)
		}
	}
}
