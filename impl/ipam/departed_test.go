package ipam

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
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

// TestWhatAnotherENIHasByNowStaysThere: of an unassignment whose answer was lost, EC2 lists what it has given to another
// ENI since, or made another one's own. What that ENI has is left as it is; its own address is no pod's (swarm, seed 4260528).
func TestWhatAnotherENIHasByNowStaysThere(t *testing.T) {
	n := newborn(t)
	n.life.Phase = serving
	ip, own := netip.MustParseAddr("10.0.0.8"), netip.MustParseAddr("10.0.0.9")
	of := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready,
		mutation: mutation{Doing: UnassignIPs, Before: []netip.Addr{ip, own}, Lost: true}})
	n.enis.newENI(eni{ENI: ENI{ID: "eni-2", Device: 2, Primary: own}, Stage: Ready})
	n.pool.adopt(0, own, of, false)
	n.pool.free(n.pool.byAddress[own])
	n.pool.adopt(0, ip, of+1, false)
	i := n.pool.byAddress[ip]
	n.pool.free(i)
	n.survey.resolveUnassign(time.Minute, of, &ENI{ID: "eni-1", Addresses: []netip.Addr{ip, own}})
	if _, known := n.pool.byAddress[own]; known {
		t.Error("an ENI's own address is in the books of pods' addresses")
	}
	if e, a := &n.enis.ENIs[of], &n.pool.Addrs[i]; e.Doing != 0 || e.Lost || a.Leaving || a.ENI != of+1 || a.State != Free {
		t.Errorf("the unassignment is at %v, in doubt %v; the address is on its way: %v, on ENI %d, %v", e.Doing, e.Lost,
			a.Leaving, a.ENI, a.State)
	}
}

// TestAnENIsOwnAddressIsNoPodsUse: EC2 has made what it took back the own address of an ENI, and the records do not know. Nothing is set
// aside for that; what else uses the address is.
func TestAnENIsOwnAddressIsNoPodsUse(t *testing.T) {
	ip, onLink := netip.MustParseAddr("10.0.0.20"), []netip.Prefix{netip.MustParsePrefix("10.0.0.20/24")}
	for _, c := range []struct {
		what  string
		own   netip.Addr
		link  dataplane.Link
		state State // 0: not in the books any more
	}{
		{"on its link", ip, dataplane.Link{Name: "eth1", MAC: "02:01", Addresses: onLink}, 0},
		{"on another's link", ip, dataplane.Link{Name: "eth2", MAC: "02:02", Addresses: onLink}, Quarantined},
		{"and the ENI has another", netip.MustParseAddr("10.0.0.21"),
			dataplane.Link{Name: "eth1", MAC: "02:01", Addresses: onLink}, Quarantined},
		{"in a pod", ip, behind("enia", Attachment{network, "a", "eth0"}, ip), Quarantined},
	} {
		for _, before := range []State{Cooling, Quarantined} {
			n := freeOn(t)
			n.Set.CoolDown, n.Set.Runtime, n.Witness.Kernel, n.Surveyed = time.Minute, false, true, true
			n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, MAC: "02:01", Primary: c.own}, Stage: Ready})
			if n.pool.adopt(time.Hour, ip, 0, false); before == Quarantined {
				n.pool.quarantine(0, "for a reason")
			}
			for now := time.Hour; now < 2*time.Hour; now += 10 * time.Minute {
				n.Steps++
				n.pool.Addrs[0].Cooling = forgotten // what the kernel knows of its flows
				n.pods.unquarantine(now, indexOf(c.link), n.Steps)
				n.pods.coolDowns(now, indexOf(c.link), n.Steps)
			}
			if got := n.pool.Addrs[0].State; got != c.state {
				t.Errorf("%s, before %v: it is %v, expected %v", c.what, before, got, c.state)
			}
		}
	}
}

// TestWhatARecordNamesWaitsForItsENI: EC2 may not list the ENI yet that an earlier daemon had just made, nor the addresses
// on it; what is forgotten meanwhile would be found where it was before.
func TestWhatARecordNamesWaitsForItsENI(t *testing.T) {
	ip := netip.MustParseAddr("10.0.0.20")
	for _, c := range []struct {
		now   time.Duration
		waits bool
	}{{time.Hour + consistency - 1, true}, {time.Hour + consistency, false}} {
		n := newborn(t)
		n.Phase, n.Set.CoolDown, n.Witness.Kernel = serving, time.Minute, true
		n.pool.restore(time.Hour+time.Second, &Row{Address: ip, State: Cooling, ENI: "eni-9", ReleasedAt: time.Hour - time.Minute})
		n.Surveyed = true
		n.pool.Addrs[0].Cooling = forgotten
		n.pods.coolDowns(c.now, indexOf(), n.Steps)
		if _, known := n.pool.byAddress[ip]; known != c.waits {
			t.Errorf("at %v: it is in the books: %v", c.now, known)
		}
	}
}
