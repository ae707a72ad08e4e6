package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

func newEvidence() *evidence {
	l := &life{policy: Sound()}
	ev := &evidence{life: l, ledger: &ledger{life: l}}
	for i := range ev.Looks {
		ev.Looks[i].Want = never
	}
	return ev
}

// TestALookIsWantedAtTheEarliest: who wants it later does not put it off.
func TestALookIsWantedAtTheEarliest(t *testing.T) {
	ev := newEvidence()
	ev.want(LookKernel, 5)
	ev.want(LookKernel, 9)
	ev.want(LookKernel, 7)
	if got := ev.Looks[LookKernel].Want; got != 5 {
		t.Errorf("it is wanted at %v", got)
	}
}

// TestEC2IsAskedSeldomAboutWhatItDenies: about news of metadata at once, then after pauses that double up to a bound.
func TestEC2IsAskedSeldomAboutWhatItDenies(t *testing.T) {
	ev := newEvidence()
	ip, pause := netip.MustParseAddr("10.0.0.9"), hearsayPause
	for now := time.Hour; pause < mostHearsayPause; {
		if !ev.hearsay(now, ip, "") {
			t.Fatalf("at %v EC2 is not asked", now)
		}
		if ev.hearsay(now+pause-1, ip, "") {
			t.Errorf("before %v are over EC2 is asked again", pause)
		}
		now += pause
		pause = min(2*pause, mostHearsayPause)
	}
	if len(ev.Departures) != 1 || !ev.listed(ip) || ev.Departures[0].Pause > mostHearsayPause {
		t.Errorf("%+v", ev.Departures)
	}
}

// TestWhatWasGivenBackIsStaleForAWhile: an address by its row, which the next daemon reads, an ENI by its name.
func TestWhatWasGivenBackIsStaleForAWhile(t *testing.T) {
	ev := newEvidence()
	ip := netip.MustParseAddr("10.0.0.9")
	ev.depart(0, ip)
	ev.departENI(0, "eni-1")
	for _, c := range []struct {
		now  time.Duration
		want bool
	}{{consistency - 1, true}, {consistency, false}} {
		ev.Looks[LookAttached].At = c.now
		if ev.hasDeparted(LookAttached, ip, "") != c.want || ev.hasDeparted(LookAttached, netip.Addr{}, "eni-1") != c.want {
			t.Errorf("at %v: expected %t", c.now, c.want)
		}
	}
	if ev.hasDeparted(LookAttached, netip.Addr{}, "eni-2") || len(ev.ledger.put[RunStore]) != 1 {
		t.Errorf("rows %v", ev.ledger.put[RunStore])
	}
}

// TestAnUnassignmentOfWhatCoolsByNow: EC2 lists it by an answer that may be of before the call of an earlier daemon; until that is past all of the
// intent stays, for what has cooled would be given to a pod (swarm, seed 1518825).
func TestAnUnassignmentOfWhatCoolsByNow(t *testing.T) {
	n := newborn(t)
	n.life.Phase = serving
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Doubt: time.Hour})
	free, cools := netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")
	for _, ip := range []netip.Addr{free, cools} {
		n.pool.adopt(0, ip, ix, false)
	}
	n.pool.free(n.pool.byAddress[free])
	n.pool.Addrs[n.pool.byAddress[cools]].Att = Attachment{ContainerID: "c", IfName: "eth0"}
	e := &n.enis.ENIs[ix]
	for _, now := range []time.Duration{time.Minute, time.Hour} {
		e.mutation = mutation{Doing: UnassignIPs, Before: []netip.Addr{free, cools}, Lost: true}
		e.Trimming = true
		n.survey.resolveUnassign(now, ix, &ENI{ID: "eni-1", Addresses: []netip.Addr{free, cools}})
		if waits := now < e.Doubt; e.Lost != waits || e.gives(cools) != waits || waits && e.Next != e.Doubt {
			t.Errorf("at %v: in doubt %v, of the unassignment %v, until %v", now, e.Lost, e.Before, e.Next)
		}
	}
}

// TestAddressesOfADoubtThatIsPastAreTakenBackAtOnce: EC2 is asked first where the call of an earlier daemon may have taken what it has listed
// since, and not for a later trim: it may be away.
func TestAddressesOfADoubtThatIsPastAreTakenBackAtOnce(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.8")
	for _, c := range []struct {
		since, doubt, now time.Duration
		asks, back        bool
	}{
		{time.Second, time.Minute, time.Minute - 1, false, false}, {time.Second, time.Minute, time.Minute, true, false},
		{time.Hour, time.Minute, time.Hour + 1, false, true}, {time.Second, 0, time.Minute, false, true},
	} {
		n := newborn(t)
		n.life.Phase = serving
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Trimming: true, Since: c.since, Doubt: c.doubt,
			mutation: mutation{Before: []netip.Addr{ip}, Next: never}})
		n.driver.stay(c.now, ix)
		if e := &n.enis.ENIs[ix]; e.Lost != c.asks || e.Trimming == c.back || c.asks && e.Next != c.now {
			t.Errorf("%+v: EC2 is asked: %v, at %v; it is taken back: %v", c, e.Lost, e.Next, !e.Trimming)
		}
	}
}

// TestWhichSourcesAreAsked: by the settings. EC2 and the API server are asked nothing that is of no use.
func TestWhichSourcesAreAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Settings
		not  []What // all others are
	}{
		{"the defaults", Defaults(), []What{LookConfig}},
		{"nothing", Settings{}, []What{LookRuntime, LookPods, LookSubnets, LookConfig}},
		{"custom networking", Settings{CustomNetwork: true, API: true}, []What{LookRuntime}},
		{"custom networking without an API server", Settings{CustomNetwork: true}, []What{LookRuntime, LookPods,
			LookConfig}},
		{"metadata alone", Settings{IMDSOnly: true, Runtime: true, API: true},
			[]What{LookENI, LookAttached, LookSubnets, LookConfig, LookLeaked}},
		{"metadata alone, and all that EC2 would be asked for", Settings{IMDSOnly: true, Runtime: true, API: true,
			CustomNetwork: true,
			Discovery:     true}, []What{LookENI, LookAttached, LookSubnets, LookConfig, LookLeaked}},
		{"no sweep", Settings{NoSweep: true, Runtime: true, API: true, Discovery: true}, []What{LookLeaked,
			LookConfig}},
		{"no provisioning", Settings{NoProvisioning: true, Runtime: true, API: true, Discovery: true},
			[]What{LookLeaked, LookConfig}},
	} {
		ev := newEvidence()
		ev.Set = c.set
		for w := What(1); w < looks; w++ {
			if got := ev.configured(w); got == slices.Contains(c.not, w) {
				t.Errorf("%s: %v is asked: %v", c.name, w, got)
			}
		}
	}
}
