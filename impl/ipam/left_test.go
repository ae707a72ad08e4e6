package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestNothingToGiveBackLeavesAnENIAtRest: a prefix goes as a whole or not at all, and where none goes the ENI does
// not count in prefixes from then on.
func TestNothingToGiveBackLeavesAnENIAtRest(t *testing.T) {
	for most, goes := range map[int]bool{prefixSize - 1: false, prefixSize: true} {
		n := freeOn(t)
		ofPrefix(&n.pool, "10.0.0.16/28")
		n.warm.giveBack(time.Minute, 0, most, true)
		e := &n.ENIs[0]
		if e.Trimming != goes || e.Prefixed != goes || (len(e.Before) == prefixSize) != goes {
			t.Errorf("of %d: it gives back: %v, prefixes: %v, %v", most, e.Trimming, e.Prefixed, e.Before)
		}
	}
}

// TestWhatARefutedRowCooledForIsForgotten: whatever takes its slot is thought of once.
func TestWhatARefutedRowCooledForIsForgotten(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21")
	n.pool.Cooling = nil
	for i := range int32(2) {
		assign(n, i, string(rune('a'+i)))
		n.pool.rest(0, i, true)
	}
	p := *n.policy
	p.Recall = func(s *Sources) Recollection {
		return Recollection{Rows: s.Checkpoint[1:], Refuted: []netip.Addr{s.Checkpoint[0].Address}}
	}
	n.policy = &p
	n.recovery.recall(time.Minute, indexOf())
	n.pool.adopt(time.Minute, netip.MustParseAddr("10.0.0.22"), 0, false)
	if c := n.pool.Cooling; !slices.Equal(c, []int32{1, 0}) {
		t.Errorf("addresses %v cool; expected that of the second row, and the new one", c)
	}
}

// TestAnAddressThatStaysOnItsENIStillGoes: that a source lists it there, where it has been, takes nothing back.
func TestAnAddressThatStaysOnItsENIStillGoes(t *testing.T) {
	for _, moves := range []bool{false, true} {
		n := freeOn(t, "10.0.0.20")
		on := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
		a := &n.pool.Addrs[0]
		a.Leaving, a.Missing = true, 1
		if !moves {
			on = a.ENI
		}
		n.pool.place(0, on)
		if a.ENI != on || a.Leaving == moves || (a.Missing == 0) != moves {
			t.Errorf("it moves: %v; it is on ENI %d, about to go: %v, missed %d times", moves, a.ENI, a.Leaving, a.Missing)
		}
	}
}

// TestEachQuarantineIsJudgedByEachLook: that one needs a further look keeps none behind it from having this one.
func TestEachQuarantineIsJudgedByEachLook(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21")
	for i := range int32(2) {
		n.pool.become(i, Assigned)
		n.pool.quarantine(i, "why")
	}
	for n.pool.Count[Quarantined] == 2 && n.pool.Addrs[0].Clean < 9 {
		n.pods.unquarantine(time.Hour, indexOf(), n.Steps)
		if a, b := &n.pool.Addrs[0], &n.pool.Addrs[1]; a.Clean != b.Clean || a.State != b.State {
			t.Fatalf("the first is %v after %d clean looks, the second %v after %d", a.State, a.Clean, b.State, b.Clean)
		}
	}
	if n.pool.Count[Cooling] != 2 {
		t.Errorf("%d of 2 cool", n.pool.Count[Cooling])
	}
}

// TestWhichLinkTheRecordsNameForAnAddress: that of its pod, and no other.
func TestWhichLinkTheRecordsNameForAnAddress(t *testing.T) {
	n := freeOn(t, "10.0.0.20", "10.0.0.21")
	assign(n, 0, "c1")
	n.pool.Addrs[0].Veth, n.pool.Addrs[1].Veth = "eni1", "eni2"
	for _, c := range []struct {
		link, ip string
		want     bool
	}{
		{"eni1", "10.0.0.20", true},
		{"eni9", "10.0.0.20", false}, // another link
		{"eni2", "10.0.0.21", false}, // nobody's
		{"eni1", "10.0.9.9", false},  // on no record
	} {
		if got := n.pool.named(c.link, netip.MustParseAddr(c.ip)); got != c.want {
			t.Errorf("%s of %s: named %v", c.ip, c.link, got)
		}
	}
}

// TestThePrimaryENICountsWherePodsMayBeOnIt: with custom networking none ever is.
func TestThePrimaryENICountsWherePodsMayBeOnIt(t *testing.T) {
	for custom, want := range map[bool]int{false: 3, true: 2} {
		n := poolOf(t, "pf", "pf", "pf")
		n.Set.CustomNetwork = custom
		if got := n.enis.bearers(); got != want {
			t.Errorf("custom networking %v: %d ENIs are for pods, expected %d", custom, got, want)
		}
	}
}

// TestTheEndOfAWalkIsFollowedByALook where pods wait for what EC2 has just given and only the walk kept from them.
func TestTheEndOfAWalkIsFollowedByALook(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what  string
		spoil func(n *Node, a *address)
		looks bool
	}{
		{"a pod waits for a new one", func(*Node, *address) {}, true},
		{"it was an attachment's", func(_ *Node, a *address) { a.Att.ContainerID = "c1" }, false},
		{"it has not cooled", func(_ *Node, a *address) { a.ReleasedAt++ }, false},
		{"no pod waits", func(n *Node, _ *address) { n.requests.Waiting = nil }, false},
		{"the first walk of a life", func(n *Node, _ *address) { n.requests.Waiting, n.Flows.Ended = nil, false }, true},
	} {
		n := freeOn(t)
		n.pool.adopt(0, netip.MustParseAddr("10.0.0.20"), 0, false)
		a := &n.pool.Addrs[0]
		a.ReleasedAt, a.Cooling, n.Flows.Ended = now-n.pool.coolDown(), forgetting, true
		n.requests.Waiting = []Add{{Req: 1, Att: Attachment{network, "c9", "eth0"}}}
		n.evidence.Looks[LookKernel].Want = never
		c.spoil(n, a)
		n.pool.flowsApplied(now, Applied{})
		if looks := n.evidence.Looks[LookKernel].Want == now; looks != c.looks {
			t.Errorf("%s: the kernel is looked at: %v", c.what, looks)
		}
	}
}

// TestHowLongADELWaitsForADaemonThatRecovers: so long, and not longer than its caller; one that the plugin left as an
// intent has no caller that waits.
func TestHowLongADELWaitsForADaemonThatRecovers(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what     string
		phase    phase
		deadline time.Duration
		intent   bool
		want     time.Duration
	}{
		{"with no deadline", recovering, 0, false, now + delPatience},
		{"with a late one", recovering, now + time.Minute, false, now + delPatience},
		{"with an early one", recovering, now + time.Second, false, now + time.Second - replyMargin},
		{"of an intent", recovering, now + time.Minute, true, now + time.Minute - replyMargin},
		{"of a daemon that serves", serving, now + time.Minute, false, now + time.Minute - replyMargin},
	} {
		n := freeOn(t, "10.0.0.20")
		n.Phase, n.Version = c.phase, Version
		att := assign(n, 0, "c1")
		n.pods.del(now, Del{Req: 1, Att: att, Deadline: c.deadline, Intent: c.intent, Version: Version})
		if n.due != c.want {
			t.Errorf("%s: it is answered at %v at the latest, expected %v", c.what, n.due, c.want)
		}
	}
}
