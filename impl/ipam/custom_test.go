package ipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// newCustom are the subnets of a node with custom networking, whose zone EC2 says to have a and b.
func newCustom() *subnets {
	sn := newSubnets(Subnet{ID: "a", Free: 50}, Subnet{ID: "b", Free: 5, Role: "0"})
	sn.Set.CustomNetwork = true
	sn.Inst.Zone = "zone-1"
	return sn
}

// says gives the API server's word, asked for at an instant.
func (sn *subnets) says(at time.Duration, c ENIConfig) {
	sn.seenConfig(&Seen{What: LookConfig, Complete: true, Config: &c}, true, at)
}

// TestAnENIConfigSaysTheSubnet: no ENI is made where it does not, and the node says why; tags of subnets and their room say nothing.
func TestAnENIConfigSaysTheSubnet(t *testing.T) {
	for _, c := range []struct {
		config ENIConfig
		at, is string // where an ENI is made; part of why none is
	}{
		{ENIConfig{Name: "z", Subnet: "b"}, "b", ""},
		{ENIConfig{Name: "z", Subnet: "a"}, "a", ""},
		{ENIConfig{Name: "z", Missing: true}, "", `no ENIConfig "z"`},
		{ENIConfig{Name: "z"}, "", "ENIConfig z names no subnet"},
		{ENIConfig{Name: "z", Subnet: "c"}, "", "ENIConfig z names c, which is no subnet of zone zone-1"},
	} {
		sn := newCustom()
		if s, ok := sn.place(0); ok || sn.unusable(true) != "" {
			t.Errorf("before the API server has said anything: %+v, %q", s, sn.unusable(true))
		}
		sn.says(0, c.config)
		s, ok := sn.place(0)
		if s.ID != c.at || ok != (c.at != "") {
			t.Errorf("%+v: %q, %v: expected %q", c.config, s.ID, ok, c.at)
		}
		if why := sn.unusable(false); (why == "") != ok || !strings.Contains(why, c.is) || sn.problem(false) != why {
			t.Errorf("%+v: %q, expected %q", c.config, why, c.is)
		}
		if sn.excluded("b") || sn.exhausted("b") || sn.tryAnother("b", CreateENI, refusal{Class: SubnetFull}) {
			t.Error("what subnet discovery goes by counts")
		}
	}
	// where EC2 does not say which subnets there are, the ENIConfig is believed
	sn := newCustom()
	sn.Candidates, sn.CandidatesKnown = nil, false
	sn.says(0, ENIConfig{Name: "z", Subnet: "c"})
	if s, ok := sn.place(0); s.ID != "c" || !ok || sn.unusable(true) != "" {
		t.Errorf("%q, %v, %q", s.ID, ok, sn.unusable(true))
	}
}

// TestTheAPIServerIsAway: what it has said stays, and who has heard nothing waits.
func TestTheAPIServerIsAway(t *testing.T) {
	away := &Seen{What: LookConfig, Err: "refused"}
	sn := newCustom()
	if sn.fresh(0) || !sn.expects() {
		t.Error("nothing is known, and the first word is not expected")
	}
	if sn.evidence.Looks[LookConfig].Want != 0 {
		t.Error("the API server is not asked")
	}
	sn.evidence.Looks[LookConfig].Fails = 1
	sn.seenConfig(away, false, 0)
	if sn.fresh(0) || sn.expects() || !strings.Contains(sn.unusable(false), "refused") {
		t.Errorf("a node that has heard nothing: %q", sn.unusable(false))
	}
	sn.evidence.Looks[LookConfig].Fails = 0
	sn.says(time.Second, ENIConfig{Name: "z", Subnet: "b"})
	if !sn.fresh(time.Second+freshConfig-1) || sn.fresh(time.Second+freshConfig) {
		t.Errorf("a word is fresh for %v", freshConfig)
	}
	sn.evidence.Looks[LookConfig].Fails = 1
	sn.seenConfig(away, false, time.Minute)
	if _, ok := sn.place(0); !ok || !sn.fresh(55*time.Second) || sn.unusable(false) != "" || !strings.Contains(sn.unusable(true), "refused") {
		t.Errorf("a node that has heard it: %v, %q", ok, sn.unusable(true))
	}
}

// TestWhoseGroups: an ENIConfig's, or else the primary ENI's; never more than EC2 takes.
func TestWhoseGroups(t *testing.T) {
	sn, primary := newCustom(), []string{"sg-p"}
	sn.says(0, ENIConfig{Name: "z", Subnet: "b"})
	if g := sn.groups(primary); !slices.Equal(g, primary) {
		t.Errorf("of an ENIConfig without groups: %v", g)
	}
	sn.says(0, ENIConfig{Name: "z", Subnet: "b", Groups: slices.Repeat([]string{"sg-1"}, 100)})
	if g := sn.groups(primary); len(g) != mostGroups || g[0] != "sg-1" {
		t.Errorf("%v", g)
	}
	if sn.Set.CustomNetwork = false; !slices.Equal(sn.groups(primary), primary) {
		t.Error("without custom networking an ENIConfig counts")
	}
	changes := 0
	for _, e := range sn.out {
		if n, ok := e.(*Note); ok && n.Point == ConfigChanged {
			changes++
		}
	}
	if changes != 1 {
		t.Errorf("%d changes were noted, expected 1: the first word is none", changes)
	}
}

// TestAnENIOfAnotherENIConfig: before it is attached it counts what the API server says now. Where nothing has been heard, an answer is waited
// for, and if there is none, what an earlier daemon has made is used.
func TestAnENIOfAnotherENIConfig(t *testing.T) {
	made := eni{ENI: ENI{Subnet: "b", Groups: []string{"sg-2", "sg-1"}}}
	for _, c := range []struct {
		config   ENIConfig
		outdated bool
	}{
		{ENIConfig{Subnet: "b", Groups: []string{"sg-1", "sg-2"}}, false},
		{ENIConfig{Subnet: "b", Groups: []string{"sg-1"}}, true},
		{ENIConfig{Subnet: "b"}, true}, // those of the primary one
		{ENIConfig{Subnet: "a", Groups: []string{"sg-1", "sg-2"}}, true},
		{ENIConfig{Missing: true}, true},
	} {
		sn := newCustom()
		if sn.heard(0, 0) || sn.outdated(&made, nil) != "" {
			t.Error("nothing has been heard yet")
		}
		sn.evidence.Looks[LookConfig].Fails = 1
		if !sn.heard(0, 0) || sn.outdated(&made, nil) != "" {
			t.Error("the API server was asked in vain")
		}
		sn.says(0, c.config)
		if got := sn.outdated(&made, []string{"sg-p"}); (got != "") != c.outdated {
			t.Errorf("%+v: outdated is %q", c.config, got)
		}
	}
	sn := newCustom()
	sn.says(0, ENIConfig{Subnet: "b", Groups: []string{"sg-1"}})
	if sn.outdated(&eni{ENI: ENI{Subnet: "b"}}, nil) != "" {
		t.Error("the groups of an ENI are not known, and it is outdated")
	}
}

// TestAnAnswerOfBeforeAnENIWasMadeIsAskedForAgain: who did not answer then may do so now. An answer that did not come since is waited for no more.
func TestAnAnswerOfBeforeAnENIWasMadeIsAskedForAgain(t *testing.T) {
	const now, made = time.Hour, time.Hour - 5*time.Minute
	for _, c := range []struct {
		name        string
		last        look
		known       time.Duration // when the last answer was asked for
		heard, asks bool
	}{
		{"fresh", look{At: made - time.Second}, now - 2*freshSubnets + 1, true, false},
		{"old", look{At: made - time.Hour}, made - time.Hour, false, true},
		{"old, of since", look{At: made + time.Second}, made + time.Second, false, true},
		{"refused before", look{At: made - time.Second, Fails: 1}, made - time.Hour, false, true},
		{"refused since", look{At: made + time.Second, Fails: 1}, made - time.Hour, true, false},
		{"on its way, refused before", look{ID: 7, At: now, Fails: 1}, made - time.Hour, false, false},
	} {
		sn := newSubnets(Subnet{ID: "a"}, Subnet{ID: "b"})
		l := &sn.evidence.Looks[LookSubnets]
		*l = c.last
		l.Want, sn.CandidatesAt = never, c.known
		if got := sn.heard(now, made); got != c.heard || (l.Want == now) != c.asks {
			t.Errorf("%s: heard is %v, and it is asked for at %v", c.name, got, l.Want)
		}
	}
}

// TestThePrimaryIsReserved: with custom networking alone, and without EC2 nobody makes another one.
func TestThePrimaryIsReserved(t *testing.T) {
	n := newborn(t)
	n.ENIs = []eni{{Stage: Ready}, {Stage: Ready, ENI: ENI{Device: 1}}, {Stage: Created}, {Stage: Ready, Foreign: true}}
	for _, c := range []struct {
		custom, alone bool
		want          []bool
	}{{false, false, []bool{false, false, false, false}}, {true, false, []bool{true, false, false, false}}, {true, true, []bool{false, false, false, false}}} {
		n.Set.CustomNetwork, n.Set.IMDSOnly = c.custom, c.alone
		for i, want := range c.want {
			if n.enis.excluded(&n.ENIs[i]) != want {
				t.Errorf("custom networking %v, alone %v: ENI %d is excluded: %v", c.custom, c.alone, i, !want)
			}
		}
	}
}

// TestTheENIConfigsSubnetIsEC2s: with what EC2 says of it, where it lists it.
func TestTheENIConfigsSubnetIsEC2s(t *testing.T) {
	listed := Subnet{ID: "a", CIDR: netip.MustParsePrefix("10.0.1.0/24"), Free: 7}
	for id, want := range map[string]Subnet{"a": listed, "c": {ID: "c"}} {
		sn := newCustom()
		sn.Candidates, sn.CandidatesKnown = []candidate{{Subnet: listed}}, id == "a"
		sn.says(0, ENIConfig{Name: "z", Subnet: id})
		if s, ok := sn.configSubnet(); s != want || !ok {
			t.Errorf("%+v, %v; expected %+v", s, ok, want)
		}
	}
	sn := newCustom()
	sn.says(0, ENIConfig{Name: "z", Subnet: "c"})
	if s, ok := sn.configSubnet(); ok || s != (Subnet{}) {
		t.Errorf("EC2 does not list it in the zone: %+v, %v", s, ok)
	}
}

// TestWhichSubnetIsNamedAsTheSource of further addresses: the ENIConfig's where it counts and names one, or else the
// node's own.
func TestWhichSubnetIsNamedAsTheSource(t *testing.T) {
	for _, c := range []struct {
		custom, alone bool
		config, want  string
	}{{true, false, "a", "a"}, {true, false, "", "own"}, {false, false, "a", "own"}, {true, true, "a", "own"}} {
		sn := newCustom()
		sn.Set.CustomNetwork, sn.Set.IMDSOnly, sn.Inst.Subnet = c.custom, c.alone, "own"
		sn.says(0, ENIConfig{Name: "z", Subnet: c.config})
		if got := sn.home(); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
