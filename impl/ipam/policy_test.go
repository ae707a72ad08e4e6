package ipam

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// TestEveryDecisionIsTaken: neither a new Node nor a decoded one has a policy that leaves a decision out, and the error names it.
func TestEveryDecisionIsTaken(t *testing.T) {
	state := must.Get(newborn(t).Encode())(t)
	refused := func(t *testing.T, p *Policy, names string) {
		t.Helper()
		if _, err := New(p); err == nil || !strings.HasSuffix(err.Error(), names) {
			t.Errorf("New: %v", err)
		}
		if _, err := Decode(state, p); err == nil || !strings.HasSuffix(err.Error(), names) {
			t.Errorf("Decode: %v", err)
		}
	}
	refused(t, nil, "no policy")
	fields := reflect.TypeFor[Policy]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			p := Sound()
			reflect.ValueOf(p).Elem().Field(i).SetZero()
			refused(t, p, "lacks "+fields.Field(i).Name)
		})
	}
}

// Each table turns one fact of a decision at a time.

// decision is a row of the tables whose decision needs nothing but the facts.
type decision[T any] struct {
	name string
	in   T
	want bool
}

func decides[T any](t *testing.T, judge func(T) bool, rows []decision[T]) {
	t.Helper()
	for _, c := range rows {
		if got := judge(c.in); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestWholeAnswer(t *testing.T) {
	decides(t, wholeAnswer, []decision[Answer]{
		{"a source that ends early", Answer{What: LookKernel}, false},
		{"a whole one", Answer{What: LookKernel, Complete: true, Sandboxed: true}, true},
		{"a runtime that lists us", Answer{What: LookRuntime, Complete: true, HoldsSelf: true, Sandboxed: true}, true},
		{"another runtime (seeds/000)", Answer{What: LookRuntime, Complete: true, Sandboxed: true}, false},
		{"a runtime, and we run outside any", Answer{What: LookRuntime, Complete: true}, true},
		{"a runtime that lists us and ends early", Answer{What: LookRuntime, HoldsSelf: true, Sandboxed: true}, false},
	})
}

func TestTwiceByEC2(t *testing.T) {
	decides(t, twiceByEC2, []decision[Absence]{
		{"metadata once, EC2 twice, no link", Absence{ByIMDS: 1, ByEC2: 2}, true},
		{"metadata still lists it", Absence{ByEC2: 2}, false},
		{"EC2 once", Absence{ByIMDS: 9, ByEC2: 1}, false},
		{"its link is there", Absence{ByIMDS: 1, ByEC2: 2, Linked: true}, false},
		{"EC2 may answer with what was before", Absence{ByIMDS: 1, ByEC2: 2, Young: true}, false},
		{"metadata alone", Absence{ByIMDS: 9}, false},
		{"metadata alone, which EC2 is not asked about, for long", Absence{ByIMDS: 9, Lasting: true}, true},
		{"the same, and its link is there", Absence{ByIMDS: 9, Lasting: true, Linked: true}, false},
	})
}

func TestNotSomebodyElses(t *testing.T) {
	decides(t, notSomebodyElses, []decision[Claim]{
		{"nothing is known", Claim{Untagged: true}, false},
		{"nothing is known, but our records name it", Claim{Recorded: true}, true},
		{"untagged", Claim{Read: true, Untagged: true}, true},
		{"untagged, and those are left alone", Claim{Read: true}, false},
		{"untagged, those are left alone, and our records name it", Claim{Read: true, Recorded: true}, false},
		{"made by this instance's CNI", Claim{Read: true, Made: true}, true},
		{"no_manage is another word than true", Claim{Read: true, Named: true}, true},
		{"no_manage", Claim{Read: true, Kept: true, Made: true, Named: true, Untagged: true, Recorded: true}, false},
		{"the primary one, whatever its tags", Claim{Primary: true, Read: true, Kept: true}, true},
		{"the primary one", Claim{Primary: true}, true},
	})
}

func TestProvenUnused(t *testing.T) {
	all := Evidence{KernelAsked: true, RuntimeAsked: true, KernelAnswer: true, RuntimeAnswer: true}
	for _, c := range []struct {
		name string
		turn func(*Evidence)
		want bool
	}{
		{"both say so", func(*Evidence) {}, true},
		{"an address is used", func(e *Evidence) { e.Uses = 1 }, false},
		{"the kernel is silent", func(e *Evidence) { e.KernelAnswer = false }, false},
		{"the runtime is silent", func(e *Evidence) { e.RuntimeAnswer = false }, false},
		{"no runtime is configured", func(e *Evidence) { e.RuntimeAsked, e.RuntimeAnswer = false, false }, true},
		{"the kernel may not testify", func(e *Evidence) { e.KernelAsked, e.KernelAnswer = false, false }, true},
	} {
		e := all
		c.turn(&e)
		if got := provenUnused(e); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestNeighbourVersions(t *testing.T) {
	for _, c := range []struct {
		plugin, daemon int
		want           bool
	}{{2, 2, true}, {1, 2, true}, {3, 2, true}, {4, 2, false}, {1, 3, false}, {0, 2, true}, {2, 4, false}} {
		for v := VerbAdd; v <= VerbGC; v++ {
			if got := neighbourVersions(v, c.plugin, c.daemon); got != c.want {
				t.Errorf("%v of plugin %d with daemon %d: %t", v, c.plugin, c.daemon, got)
			}
		}
	}
}

func TestRuntimeAndKernelAgree(t *testing.T) {
	gone := Absentee{Runtime: true, Ever: true, Absences: 2, KernelAbsent: 1}
	ended := Absentee{Runtime: true, Ever: true, Listed: true, Ended: 2, KernelAbsent: 2, Age: unseenGrace}
	bare := Absentee{KernelAbsent: 2, Age: unseenGrace}
	for _, c := range []struct {
		name string
		base Absentee
		turn func(*Absentee)
		want bool
	}{
		{"both agree", gone, func(*Absentee) {}, true},
		{"the kernel has it", gone, func(a *Absentee) { a.KernelLive = true }, false},
		{"the kernel was not asked", gone, func(a *Absentee) { a.KernelAbsent = 0 }, false},
		{"listed", gone, func(a *Absentee) { a.Listed = true }, false},
		{"listed as ended", ended, func(*Absentee) {}, true},
		{"listed as ended once", ended, func(a *Absentee) { a.Ended = 1 }, false},
		{"listed as ended, its namespace lives", ended, func(a *Absentee) { a.KernelLive = true }, false},
		{"listed as ended, one observation", ended, func(a *Absentee) { a.KernelAbsent = 1 }, false},
		{"listed as ended, young", ended, func(a *Absentee) { a.Age = unseenGrace - 1 }, false},
		{"listed as ended, the runtime's word alone", ended, func(a *Absentee) { a.KernelAbsent = 0 }, false},
		{"absent once", gone, func(a *Absentee) { a.Absences = 1 }, false},
		{"never seen and young", gone, func(a *Absentee) { a.Ever, a.Age = false, unseenGrace-1 }, false},
		{"never seen for four minutes", gone, func(a *Absentee) { a.Ever, a.Age = false, 4*time.Minute }, false},
		{"never seen and old", gone, func(a *Absentee) { a.Ever, a.Age = false, unseenGrace }, true},
		{"no runtime", bare, func(*Absentee) {}, true},
		{"no runtime, one observation", bare, func(a *Absentee) { a.KernelAbsent = 1 }, false},
		{"no runtime, young", bare, func(a *Absentee) { a.Age = unseenGrace - 1 }, false},
		{"the API server's word is no proof", Absentee{Runtime: true, PodGone: true, Age: time.Hour}, func(*Absentee) {}, false},
	} {
		a := c.base
		c.turn(&a)
		if got := runtimeAndKernelAgree(a); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestRuntimeAndKernelAgreeTwice(t *testing.T) {
	gone := Absentee{Runtime: true, Lists: 2, KernelAbsent: 2, Absences: 2}
	for _, c := range []struct {
		name string
		turn func(*Absentee)
		want bool
	}{
		{"all agree twice", func(*Absentee) {}, true},
		{"one list", func(a *Absentee) { a.Lists = 1 }, false},
		{"the kernel has it", func(a *Absentee) { a.KernelLive = true }, false},
		{"one observation", func(a *Absentee) { a.KernelAbsent = 1 }, false},
		{"the runtime lists it", func(a *Absentee) { a.Listed = true }, false},
		{"the runtime lacked it once", func(a *Absentee) { a.Absences = 1 }, false},
		{"no runtime", func(a *Absentee) { a.Runtime, a.Absences = false, 0 }, true},
	} {
		a := gone
		c.turn(&a)
		if got := runtimeAndKernelAgreeTwice(a); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestExactAttachment(t *testing.T) {
	has, pod := Attachment{"aws-cni", "c1", "eth0"}, Pod{"default", "web-0", "u"}
	for _, c := range []struct {
		att  Attachment
		want bool
	}{
		{has, true},
		{Attachment{"aws-cni", "c2", "eth0"}, false}, // the pod's next sandbox (seeds/003)
		{Attachment{"aws-cni", "c1", "eth1"}, false},
		{Attachment{"other", "c1", "eth0"}, false},
	} {
		if got := exactAttachment(&Del{Att: c.att, Pod: pod}, has, pod); got != c.want {
			t.Errorf("%v: %t", c.att, got)
		}
	}
}

func TestSmallDecisions(t *testing.T) {
	if !anyUse("a veth") {
		t.Error("a use is no veto")
	}
	if got := configuredCoolDown(Settings{CoolDown: 7 * time.Second}); got != 7*time.Second {
		t.Errorf("cool-down %v", got)
	}
	for cool, want := range map[time.Duration]time.Duration{time.Second: consistency, time.Hour: time.Hour} {
		if got := coolDownOrConsistency(Settings{CoolDown: cool}, false); got != want {
			t.Errorf("what EC2 alone lists rests for %v, expected %v", got, want)
		}
	}
	if got := coolDownOrConsistency(Settings{CoolDown: time.Second}, true); got != time.Second {
		t.Errorf("what another source lists as well rests for %v", got)
	}
	if linkIsThere(false) || !linkIsThere(true) {
		t.Error("an ENI on record is there if its link is")
	}
	if err := unknownIsDone(Attachment{}); err != nil {
		t.Errorf("a DEL of something unknown failed: %v", err)
	}
	if olderIsRenamed(&Row{}, &Row{}) != Rename || olderIsRenamed(&Row{}, nil) != Rename {
		t.Error("an older incarnation loses its link")
	}
	for a := CreateENI; a <= UnassignIPs; a++ {
		if !everyMutation(a) {
			t.Errorf("%v needs no intent", a)
		}
		want := Ask
		if a == CreateENI { // the only one with a client token
			want = Repeat
		}
		if got := lookOrRepeat(a); got != want {
			t.Errorf("%v, lost: %v", a, got)
		}
	}
}

func TestProvenLeak(t *testing.T) {
	decides(t, provenLeak, []decision[Leak]{
		{"our own, old enough", Leak{Ours: true, Age: ownLeakAge}, true},
		{"our own, young", Leak{Ours: true, Age: ownLeakAge - 1, Seen: time.Hour}, false},
		{"our own without a time", Leak{Ours: true, Age: -1, Seen: time.Hour}, false},
		{"our own, and pods have its addresses", Leak{Ours: true, Age: ownLeakAge, Seen: time.Hour, Used: true}, false},
		{"a dead instance's, available for long", Leak{Near: true, Age: otherLeakAge, Seen: otherLeakAge, Gone: 2}, true},
		{"a dead instance's by one answer", Leak{Near: true, Age: otherLeakAge, Seen: otherLeakAge, Gone: 1}, false},
		{"a living instance's, available for days", Leak{Near: true, Age: 1000 * time.Hour, Seen: 1000 * time.Hour}, false},
		{"a dead instance's, old, and available since a moment ago", Leak{Near: true, Age: 1000 * time.Hour, Seen: otherLeakAge - 1, Gone: 2}, false},
		{"a dead instance's of another cluster", Leak{Age: otherLeakAge, Seen: otherLeakAge, Gone: 2}, false},
		{"a dead instance's, by its time of this moment", Leak{Near: true, Seen: otherLeakAge, Gone: 2}, true},
		{"a dead instance's, and pods have its addresses", Leak{Near: true, Seen: otherLeakAge, Gone: 2, Used: true},
			false},
		{"a dead instance's, and somebody keeps it", Leak{Near: true, Seen: otherLeakAge, Gone: 2, Kept: true}, false},
		{"our own, and somebody keeps it", Leak{Ours: true, Age: ownLeakAge, Kept: true}, false},
		{"our own, young, as available as a dead instance's", Leak{Ours: true, Near: true, Seen: otherLeakAge,
			Gone: 2}, false},
		{"a dead instance's without a time", Leak{Near: true, Age: -1, Seen: time.Hour, Gone: 2}, false},
	})
}

func TestWarmTargets(t *testing.T) {
	enis := func(n int) Settings { return Settings{WarmENITarget: n} }
	ips := func(warm, least int) Settings {
		return Settings{WarmENITarget: 1, WarmIPTarget: warm, MinimumIPTarget: least}
	}
	for _, c := range []struct {
		name string
		in   Supply
		want Want
	}{
		{"an empty node", Supply{Settings: enis(1), PerENI: 14}, Want{More: 14, Whole: true}},
		{"one whole ENI free", Supply{Settings: enis(1), PerENI: 14, Free: 14}, Want{Whole: true}},
		{"one address taken", Supply{Settings: enis(1), PerENI: 14, Free: 13, Assigned: 1}, Want{More: 1, Whole: true}},
		{"growth under way counts", Supply{Settings: enis(1), PerENI: 14, Free: 13, Coming: 14}, Want{Whole: true}},
		{"who waits takes from it", Supply{Settings: enis(1), PerENI: 14, Free: 14, Waiting: 3}, Want{More: 3, Whole: true}},
		{"no target, and somebody waits", Supply{Settings: enis(0), PerENI: 14, Waiting: 2}, Want{More: 2, Whole: true}},
		{"no target, nobody waits", Supply{Settings: enis(0), PerENI: 14}, Want{Whole: true}},
		{"less than one ENI too many", Supply{Settings: enis(1), PerENI: 14, Free: 27}, Want{Whole: true}},
		{"one ENI too many", Supply{Settings: enis(1), PerENI: 14, Free: 28}, Want{Whole: true, Less: 14}},
		{"too many, and somebody waits", Supply{Settings: enis(1), PerENI: 14, Free: 28, Waiting: 1}, Want{Whole: true}},
		{"too many, and more come", Supply{Settings: enis(1), PerENI: 14, Free: 28, Coming: 1}, Want{Whole: true}},
		{"cooling is not available", Supply{Settings: enis(1), PerENI: 14, Free: 10, Cooling: 4}, Want{More: 4, Whole: true}},
		{"max pods bounds growth", Supply{Settings: Settings{WarmENITarget: 1, MaxPods: 17}, PerENI: 14, Free: 4, Assigned: 10}, Want{More: 3, Whole: true}},
		{"max pods reached", Supply{Settings: Settings{WarmENITarget: 1, MaxPods: 10}, PerENI: 14, Assigned: 10, Free: 2}, Want{Whole: true}},

		{"two warm", Supply{Settings: ips(2, 0), PerENI: 14}, Want{More: 2}},
		{"two warm beside the pods", Supply{Settings: ips(2, 0), PerENI: 14, Assigned: 5, Free: 1}, Want{More: 1}},
		{"two warm, one waits", Supply{Settings: ips(2, 0), PerENI: 14, Assigned: 5, Free: 2, Waiting: 1}, Want{More: 1}},
		{"the floor", Supply{Settings: ips(2, 10), PerENI: 14, Assigned: 1, Free: 2}, Want{More: 7}},
		{"the floor alone", Supply{Settings: ips(0, 10), PerENI: 14, Free: 10}, Want{}},
		{"above the floor", Supply{Settings: ips(2, 10), PerENI: 14, Assigned: 9, Free: 2}, Want{}},
		{"too many", Supply{Settings: ips(2, 0), PerENI: 14, Assigned: 5, Free: 9}, Want{Less: 7}},
		{"too many, and the floor", Supply{Settings: ips(2, 12), PerENI: 14, Assigned: 5, Free: 9}, Want{Less: 2}},
		{"too many, and more come", Supply{Settings: ips(2, 0), PerENI: 14, Assigned: 5, Free: 9, Coming: 1}, Want{}},
		{"max pods", Supply{Settings: Settings{WarmIPTarget: 9, MaxPods: 8}, PerENI: 14, Assigned: 5, Free: 1}, Want{More: 2}},
	} {
		if got := warmTargets(c.in); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestNoMoreThanPodsMayRun: what is there, and what comes, is of it.
func TestNoMoreThanPodsMayRun(t *testing.T) {
	for _, c := range []struct {
		s          Supply
		more, want int
	}{
		{Supply{Settings: Settings{MaxPods: 0}, Assigned: 5}, 9, 9},
		{Supply{Settings: Settings{MaxPods: 20}}, 9, 9},
		{Supply{Settings: Settings{MaxPods: 20}, Assigned: 8, Free: 4, Coming: 2}, 9, 6},
		{Supply{Settings: Settings{MaxPods: 20}, Assigned: 8, Free: 4, Coming: 2, Cooling: 3, Quarantined: 3,
			Waiting: 3}, 9, 6},
		{Supply{Settings: Settings{MaxPods: 20}, Assigned: 8, Free: 4, Coming: 9}, 9, 0},
		{Supply{Settings: Settings{MaxPods: 20}, Assigned: 8}, 0, 0},
	} {
		if got := limitToPods(c.s, c.more); got != c.want {
			t.Errorf("%+v: %d of %d, expected %d", c.s, got, c.more, c.want)
		}
	}
}

func TestByHalfTheTarget(t *testing.T) {
	ips := func(warm, least int) Settings { return Settings{WarmIPTarget: warm, MinimumIPTarget: least} }
	short := Supply{Settings: ips(5, 0), PerENI: 49, Room: 700, Near: 30, Assigned: 20, Free: 3}
	for _, c := range []struct {
		name string
		more int
		turn func(*Supply)
		want time.Duration
	}{
		{"two of five are missing", 2, func(*Supply) {}, topUpWithin},
		{"three of five", 3, func(*Supply) {}, 0},
		{"three of six", 3, func(s *Supply) { s.Settings.WarmIPTarget = 6 }, 0},
		{"one of one", 1, func(s *Supply) { s.Settings.WarmIPTarget = 1 }, 0},
		{"only a further ENI has room", 1, func(s *Supply) { s.Near = 0 }, 0},
		{"who waits takes the last", 2, func(s *Supply) { s.Waiting = 3 }, 0},
		{"who waits leaves one", 2, func(s *Supply) { s.Waiting = 2 }, topUpWithin},
		{"what comes is for who waits", 2, func(s *Supply) { s.Waiting, s.Coming = 3, 1 }, topUpWithin},
		{"none is free, as max pods has it", 2, func(s *Supply) { s.Free = 0 }, 0},
		{"below the floor", 2, func(s *Supply) { s.Settings.MinimumIPTarget = 24 }, 0},
		{"at the floor", 2, func(s *Supply) { s.Settings.MinimumIPTarget = 23 }, topUpWithin},
		{"what comes is above the floor", 2, func(s *Supply) { s.Settings.MinimumIPTarget, s.Coming = 24, 1 }, topUpWithin},
		{"the floor alone", 1, func(s *Supply) { s.Settings = ips(0, 20) }, 0},
		{"whole ENIs", 1, func(s *Supply) { s.Settings = Settings{WarmENITarget: 1} }, 0},
		{"prefixes", 2, func(s *Supply) { s.Prefixes.On = true }, 0},
		{"prefixes, and the subnet has none", 2, func(s *Supply) {
			s.Prefixes = Delegation{On: true, Bare: true}
		}, topUpWithin},
		{"no target but a prefix's, and the subnet has none", 7, func(s *Supply) {
			s.Prefixes, s.Settings = Delegation{On: true, Bare: true}, Settings{WarmPrefixTarget: 1}
		}, topUpWithin},
		{"the same, half of it", 8, func(s *Supply) {
			s.Prefixes, s.Settings = Delegation{On: true, Bare: true}, Settings{WarmPrefixTarget: 1}
		}, 0},
		{"the floor alone, and the subnet has none", 7, func(s *Supply) {
			s.Prefixes, s.Settings = Delegation{On: true, Bare: true}, Settings{WarmPrefixTarget: 1, MinimumIPTarget: 20}
		}, 0},
	} {
		s := short
		c.turn(&s)
		if got := byHalfTheTarget(s, c.more); got != c.want {
			t.Errorf("%s: EC2 is asked after %v, expected %v", c.name, got, c.want)
		}
	}
}

func TestExponentialJitter(t *testing.T) {
	for _, c := range []struct {
		tries       int
		least, most time.Duration
	}{
		{0, 500 * time.Millisecond, 1500 * time.Millisecond},
		{1, 500 * time.Millisecond, 1500 * time.Millisecond},
		{2, time.Second, 3 * time.Second},
		{7, 32 * time.Second, 96 * time.Second},
		{1000, 32 * time.Second, 96 * time.Second},
	} {
		if p := exponentialJitter(c.tries); p.Least != c.least || p.Least+p.Jitter != c.most || p.Gap != firstGap {
			t.Errorf("try %d: %+v, expected %v to %v", c.tries, p, c.least, c.most)
		}
	}
}

func TestUnionOfWitnesses(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.11")
	one, two := Attachment{"aws-cni", "c1", "eth0"}, Attachment{"aws-cni", "c2", "eth0"}
	link := func(name string, att Attachment, ip netip.Addr, live bool) dataplane.Link {
		return dataplane.Link{Name: name, Alias: alias(att, ip), Veth: true, PeerLive: live, PeerAddresses: []netip.Addr{ip}}
	}
	adopted := link("eni1", one, a, true)
	adopted.Adopted, adopted.MAC = true, "0a:00:00:00:00:01"
	bare := dataplane.Link{Name: "eni9", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{b}}
	row := func(att Attachment, ip netip.Addr, s State) Row { return Row{Address: ip, State: s, Att: att} }
	box := Sandbox{ID: "c2", Pod: Pod{Name: "web"}, Ready: true, Address: b}
	for _, c := range []struct {
		name    string
		rows    []Row
		links   []dataplane.Link
		boxes   []Sandbox
		partial bool // the runtime's list
		want    []Row
	}{
		{name: "nobody knows anything"},
		{name: "the checkpoint alone", rows: []Row{row(one, a, Assigned)}, want: []Row{row(one, a, Assigned)}},
		{name: "the kernel alone", links: []dataplane.Link{link("eni1", one, a, true)}, want: []Row{{Address: a, State: Assigned, Att: one, Veth: "eni1", MAC: dataplane.VethMAC(alias(one, a))}}},
		{name: "the kernel alone, another CNI's link", links: []dataplane.Link{adopted}, want: []Row{{Address: a, State: Assigned, Att: one, Veth: "eni1", MAC: adopted.MAC}}},
		{name: "a link without a namespace", links: []dataplane.Link{link("eni1", one, a, false)}},
		{name: "both, the same", rows: []Row{row(one, a, Assigned)}, links: []dataplane.Link{link("eni1", one, a, true)}, want: []Row{row(one, a, Assigned)}},
		{name: "a removal that was cut short", rows: []Row{row(one, a, Cooling)}, links: []dataplane.Link{link("eni1", one, a, true)}, want: []Row{row(one, a, Cooling)}},
		{name: "the kernel gives the address to another", rows: []Row{row(one, a, Assigned)}, links: []dataplane.Link{link("eni2", two, a, true)},
			want: []Row{{Address: a, State: Assigned, Att: two, Veth: "eni2", MAC: dataplane.VethMAC(alias(two, a))}}},
		{name: "both live", rows: []Row{row(one, a, Assigned)}, links: []dataplane.Link{link("eni1", one, a, true), link("eni2", two, a, true)}, want: []Row{row(one, a, Assigned)}},
		{name: "the kernel alone, twice", links: []dataplane.Link{link("eni1", one, a, true), link("eni2", two, a,
			true)},
			want: []Row{{Address: a, State: Assigned, Att: one, Veth: "eni1", MAC: dataplane.VethMAC(alias(one, a))}}},
		{name: "the kernel alone, then another", links: []dataplane.Link{link("eni0", one, b, false), link("eni1",
			one, a, true), link("eni2", two, b, true)},
			want: []Row{{Address: a, State: Assigned, Att: one, Veth: "eni1", MAC: dataplane.VethMAC(alias(one, a))},
				{Address: b, State: Assigned, Att: two, Veth: "eni2", MAC: dataplane.VethMAC(alias(two, b))}}},
		{name: "our alias on what is no veth", links: []dataplane.Link{{Name: "eth1", Alias: alias(one, a),
			PeerLive: true}}},
		{name: "the kernel and the runtime", links: []dataplane.Link{link("eni2", two, b, true)},
			boxes: []Sandbox{box},
			want:  []Row{{Address: b, State: Assigned, Att: two, Veth: "eni2", MAC: dataplane.VethMAC(alias(two, b))}}},
		{name: "the records and the runtime", rows: []Row{row(two, b, Assigned)}, links: []dataplane.Link{bare},
			boxes: []Sandbox{box},
			want:  []Row{row(two, b, Assigned)}},
		{name: "the runtime twice", links: []dataplane.Link{bare}, boxes: []Sandbox{box, {ID: "c1", Address: b}},
			want: []Row{{Address: b, State: Assigned, Att: two, Pod: box.Pod, SeenCRI: true, Veth: "eni9"}}},
		{name: "set aside, and the runtime knows whose it is", rows: []Row{row(Attachment{}, b, Quarantined)},
			links: []dataplane.Link{bare},
			boxes: []Sandbox{{ID: "c0"}, box}, want: []Row{{Address: b, State: Assigned, Att: two, Pod: box.Pod,
				SeenCRI: true, Veth: "eni9"}}},
		{name: "the runtime, behind one that nobody has", links: []dataplane.Link{bare}, boxes: []Sandbox{{ID: "c0",
			Address: a}, box},
			want: []Row{{Address: b, State: Assigned, Att: two, Pod: box.Pod, SeenCRI: true, Veth: "eni9"}}},
		{name: "two set aside", rows: []Row{row(Attachment{}, a, Quarantined), row(Attachment{}, b, Quarantined)},
			links: []dataplane.Link{{Name: "eni8", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{a}}, bare},
			boxes: []Sandbox{{ID: "c1", Address: a}, box},
			want: []Row{{Address: a, State: Assigned, Att: one, SeenCRI: true, Veth: "eni8"},
				{Address: b, State: Assigned, Att: two, Pod: box.Pod, SeenCRI: true, Veth: "eni9"}}},
		{name: "a pod's, set aside", rows: []Row{row(one, b, Quarantined)}, links: []dataplane.Link{bare},
			boxes: []Sandbox{box},
			want:  []Row{row(one, b, Quarantined)}},
		{name: "the runtime and a namespace", links: []dataplane.Link{bare}, boxes: []Sandbox{box},
			want: []Row{{Address: b, State: Assigned, Att: two, Pod: box.Pod, SeenCRI: true, Veth: "eni9"}}},
		{name: "the runtime's list is not whole", links: []dataplane.Link{bare}, boxes: []Sandbox{box}, partial: true},
		{name: "the runtime alone", boxes: []Sandbox{box}},
		{name: "the host's own address", links: []dataplane.Link{{Name: "eth0", Addresses: []netip.Prefix{netip.PrefixFrom(b, 24)}}}, boxes: []Sandbox{box}},
	} {
		o := dataplane.Observation{Links: c.links, Complete: true}
		got := unionOfWitnesses(&Sources{Network: "aws-cni", Checkpoint: c.rows, Kernel: o.Index(), Sandboxes: c.boxes, Runtime: !c.partial})
		if !slices.Equal(got.Rows, c.want) || len(got.Refuted) > 0 || got.Witnesses != (Witnesses{true, true}) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
	}
}
