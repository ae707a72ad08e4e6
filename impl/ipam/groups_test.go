package ipam

import (
	"slices"
	"testing"
	"time"
)

// TestEC2IsAskedAgainForGroups: once more when its first answer can no longer be of before the daemon's start, and only where groups are
// kept. That this second question fails is no reason to call a node impaired that EC2 has answered before.
func TestEC2IsAskedAgainForGroups(t *testing.T) {
	for _, kept := range []bool{true, false} {
		n := newborn(t)
		n.life.Phase, n.life.Inst.ID = serving, "i-1"
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Groups: []string{"sg-1"}}, Stage: Ready})
		if kept {
			n.enis.Grouped = []string{"sg-1"}
		}
		at := &n.evidence.Looks[LookAttached].Want
		*at = never
		n.survey.seenAttached(time.Second, &Seen{What: LookAttached, Err: "EC2 is down"}, false, 1)
		if r := n.reasons(nil); n.life.Surveyed || len(r) != 1 {
			t.Errorf("EC2 has not answered, found surveyed %v and %q", n.life.Surveyed, r)
		}
		n.survey.seenAttached(2*time.Second, &Seen{What: LookAttached, Complete: true}, true, 1)
		want := time.Duration(never)
		if kept {
			want = 2*time.Second + consistency
		}
		if *at != want {
			t.Errorf("groups kept %v: EC2 is asked again at %v, expected %v", kept, *at, want)
		}
		*at, n.evidence.Looks[LookAttached].At = never, want
		n.survey.seenAttached(want, &Seen{What: LookAttached, Err: "EC2 is down"}, false, 1)
		if r := n.reasons(nil); len(r) != 0 {
			t.Errorf("it was surveyed before, found %q", r)
		}
		n.survey.seenAttached(want, &Seen{What: LookAttached, Complete: true}, true, 1)
		if *at != never {
			t.Errorf("it is asked a third time, at %v", *at)
		}
	}
}

// TestThePrimaryENIGivesBackLast: of those that use as few addresses another one gives back first, wherever it is in the list, for it can be
// deleted once it is empty.
func TestThePrimaryENIGivesBackLast(t *testing.T) {
	for _, devices := range [][]int{{0, 1, 2}, {1, 0, 2}, {2, 1, 0}} {
		for _, c := range []struct {
			used []int // by device index
			want int
		}{{[]int{0, 0, 9}, 1}, {[]int{0, 9, 0}, 2}, {[]int{1, 2, 2}, 0}, {[]int{2, 2, 3}, 1}} {
			n := newborn(t)
			for _, d := range devices {
				e := eni{ENI: ENI{ID: string(rune('a' + d)), Device: d}, Stage: Ready}
				e.Has[Free], e.Has[Assigned] = 1, c.used[d]
				n.enis.newENI(e)
			}
			if ix := n.warm.leastUsed(time.Hour, false); n.enis.ENIs[ix].Device != c.want {
				t.Errorf("ENIs at %v that use %v: the one at %d gives back, expected %d", devices, c.used, n.enis.ENIs[ix].Device, c.want)
			}
		}
	}
}

// TestAnENIWithoutKnownGroupsIsAskedAbout: EC2's answers were of before it was made, and a daemon that took it over from its records would never
// know which security groups it has (swarm, seed 1053174).
func TestAnENIWithoutKnownGroupsIsAskedAbout(t *testing.T) {
	n := newborn(t)
	n.life.Phase, n.life.Inst.ID, n.life.Surveyed = serving, "i-1", true
	n.enis.Grouped = []string{"sg-1"}
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
	e := &n.enis.ENIs[ix]
	n.driver.regroup(time.Minute)
	if !e.Asking || n.evidence.Looks[LookENI].Want != time.Minute+askPause {
		t.Fatalf("EC2 is not asked: %+v, %v", e, n.evidence.Looks[LookENI].Want)
	}
	e.Asking = false // it did not answer with it
	n.driver.regroup(2 * time.Minute)
	if e.Asking {
		t.Error("EC2 is asked again after a minute")
	}
	n.driver.regroup(time.Minute + groupsPause)
	if !e.Asking {
		t.Error("EC2 is never asked again")
	}
	e.Asking = false
	e.learn(time.Minute+groupsPause, &ENI{ID: "eni-1", Device: 1, Instance: "i-1", Groups: []string{"sg-2"}})
	n.driver.regroup(2*time.Minute + groupsPause)
	if e.Doing != GroupENI || e.GroupsAt != 0 {
		t.Errorf("it has other groups, and is doing %v, not before %v", e.Doing, e.GroupsAt)
	}
}

// TestGroupsAreReadAgainOfAnENIThatIsNotInServiceYet: after a reboot its link comes later than EC2's first word, which may be of before the last
// change (swarm, seed 1172900).
func TestGroupsAreReadAgainOfAnENIThatIsNotInServiceYet(t *testing.T) {
	for stage, again := range map[Stage]bool{Configured: true, Ready: true, Draining: false} {
		n := newborn(t)
		n.life.Phase, n.life.Inst.ID = serving, "i-1"
		n.enis.Grouped = []string{"sg-1"}
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Groups: []string{"sg-1"}}, Stage: stage})
		n.survey.seenAttached(time.Minute, &Seen{What: LookAttached, Complete: true}, true, 0)
		if got := n.evidence.Looks[LookAttached].Want == time.Minute+consistency; got != again {
			t.Errorf("%v: EC2 is asked again: %v, expected %v", stage, got, again)
		}
	}
}

// TestGroupsAreReadAgainOfAnENIThatIsHeardOfLater: EC2's first word after a start may be of before it was made, and the next one of before its groups
// were changed (swarm, seed 1584815).
func TestGroupsAreReadAgainOfAnENIThatIsHeardOfLater(t *testing.T) {
	for what, hear := range map[string]func(n *Node, now time.Duration, ix int32, v *ENI){
		"a list": func(n *Node, now time.Duration, _ int32, v *ENI) {
			n.survey.seenAttached(now, &Seen{What: LookAttached, Complete: true, ENIs: []ENI{*v}}, true, n.Steps+1)
		},
		"an answer about it": func(n *Node, now time.Duration, ix int32, v *ENI) { n.survey.resolve(now, ix, v) },
	} {
		n := newborn(t)
		n.life.Phase, n.life.Inst.ID, n.life.Surveyed = serving, "i-1", true
		n.enis.Grouped = []string{"sg-1"}
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1}, Stage: Ready})
		v := ENI{ID: "eni-1", MAC: "m1", Device: 1, Instance: "i-1", Owner: "i-1", Status: "in-use", Groups: []string{"sg-1"}}
		for _, c := range []struct{ now, want time.Duration }{{time.Minute, time.Minute + consistency},
			{2 * time.Minute, time.Minute + consistency}, // asked for another reason, which is no answer to that
			{time.Hour, never}} {
			n.evidence.Looks[LookAttached].At, n.evidence.Looks[LookAttached].Want = c.now, never
			hear(n, c.now, ix, &v)
			if got := n.evidence.Looks[LookAttached].Want; got != c.want {
				t.Errorf("%s at %v: EC2 is asked again at %v, expected %v", what, c.now, got, c.want)
			}
		}
	}
}

// TestGroupsThatWereJustChangedAreKnown: EC2's answer is of before, and says what the primary ENI has by now (swarm, seed 1477998).
func TestGroupsThatWereJustChangedAreKnown(t *testing.T) {
	before, after := []string{"sg-1"}, []string{"sg-2"}
	e := &eni{ENI: ENI{Groups: after}, GivenAt: time.Minute}
	for now, want := range map[time.Duration][]string{time.Minute + rememberedFor - 1: after, time.Minute + rememberedFor: before} {
		e.Groups = after
		if e.learn(now, &ENI{Groups: before}); !slices.Equal(e.Groups, want) {
			t.Errorf("at %v: %v, expected %v", now, e.Groups, want)
		}
	}
}

// TestEC2sWordOnThePrimarysGroups counts where it knows no group that metadata names, from an answer of after that on; what it said when the
// daemon started may be long out of date, and a subnet that is gone says nothing about groups.
func TestEC2sWordOnThePrimarysGroups(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      Result
		groups []string // that were refused
		then   string   // by EC2's answer sg-now
	}{
		{"the group is gone", Result{Class: NotFound, Code: "InvalidGroup.NotFound"}, []string{"sg-old"}, "sg-now"},
		{"the same by its ID", Result{Class: NotFound, Code: "InvalidSecurityGroupID.NotFound"}, []string{"sg-old"}, "sg-now"},
		{"a subnet is gone", Result{Class: NotFound, Code: "InvalidSubnetID.NotFound"}, []string{"sg-old"}, "sg-old"},
		{"metadata says another one by now", Result{Class: NotFound, Code: "InvalidGroup.NotFound"}, []string{"sg-older"}, "sg-old"},
	} {
		n := newborn(t)
		n.life.Phase, n.life.Surveyed, n.enis.Grouped = serving, true, []string{"sg-old"}
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-0", Groups: []string{"sg-start"}}, Stage: Ready})
		n.driver.groupsRefused(time.Minute, &c.r, c.groups)
		if got := n.enis.primarysGroups(); !slices.Equal(got, []string{"sg-old"}) {
			t.Errorf("%s: before EC2 has answered the groups are %v", c.name, got)
		}
		if asked := n.enis.ENIs[ix].Asking; asked != (c.then == "sg-now") {
			t.Errorf("%s: EC2 is asked about the primary ENI: %v", c.name, asked)
		}
		n.enis.ENIs[ix].learn(2*time.Minute, &ENI{ID: "eni-0", Groups: []string{"sg-now"}})
		if got := n.enis.primarysGroups(); !slices.Equal(got, []string{c.then}) {
			t.Errorf("%s: the groups are %v, expected %s", c.name, got, c.then)
		}
		if n.enis.Grouped = []string{"sg-new"}; !slices.Equal(n.enis.primarysGroups(), n.enis.Grouped) {
			t.Errorf("%s: metadata says something else, and the groups are %v", c.name, n.enis.primarysGroups())
		}
	}
}

// TestARefusalThatMayHaveBeenADeed: EC2 answers 500 or RequestLimitExceeded after it has given the groups, and the primary ENI has its old ones again: which the ENI has is not
// known, and EC2 is asked. (Swarm, seed 2547249.)
func TestARefusalThatMayHaveBeenADeed(t *testing.T) {
	for class, known := range map[Class]bool{Unavailable: false, Throttled: false, Denied: true, Invalid: true} {
		n := newborn(t)
		n.life.Phase, n.life.Surveyed, n.enis.Grouped = serving, true, []string{"sg-1"}
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Groups: []string{"sg-1"}}, Stage: Ready,
			mutation: mutation{Doing: GroupENI, Give: []string{"sg-2"}, Wait: calling}})
		n.driver.called(time.Minute, Called{ID: n.ledger.await(eniCall, ix), Result: Result{Class: class, Code: "InternalError"}})
		n.driver.regroup(time.Hour)
		if e := &n.ENIs[ix]; e.Asking == known || slices.Equal(e.Groups, []string{"sg-1"}) != known {
			t.Errorf("%v: the ENI has %v, and EC2 is asked about it: %v", class, e.Groups, e.Asking)
		}
	}
}
