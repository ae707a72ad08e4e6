package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// What each of these functions leaves alone, and what it does for what comes behind that.

// TestAnENIThatCameIntoServiceIsCountedAtOnce: what more is wanted, or too much, is thought of in that moment, and
// nothing of how it was made is left.
func TestAnENIThatCameIntoServiceIsCountedAtOnce(t *testing.T) {
	n := quiet(t)
	ip := netip.MustParseAddr("10.0.0.20")
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Addresses: []netip.Addr{ip}}, Stage: Configured,
		mutation: mutation{Doing: AttachENI, Tries: 2, Prefixed: true}})
	n.pool.Warm.At = never
	n.driver.ready(time.Minute, ix)
	if n.pool.Warm.At != time.Minute {
		t.Errorf("what is wanted is thought of at %v", n.pool.Warm.At)
	}
	e := &n.ENIs[ix]
	if e.Stage != Ready || e.Doing != 0 || e.Tries != 0 || e.Prefixed || len(e.Addresses) != 0 ||
		noted(n, ENIMade) != 1 {
		t.Errorf("it is %+v", e)
	}
	if a, known := n.pool.byAddress[ip]; !known || n.pool.Addrs[a].ENI != ix {
		t.Errorf("its address is in the books: %v", known)
	}
}

// TestAPlanOfAnENIThatFailed is tried again, and the ENI is no further for it; a link that is not there needs no
// plan to undo it.
func TestAPlanOfAnENIThatFailed(t *testing.T) {
	noLink, other := &dataplane.Error{Kind: dataplane.NoLink}, &dataplane.Error{Kind: dataplane.Exists}
	for _, c := range []struct {
		what    string
		stage   Stage
		err     *dataplane.Error
		then    Stage
		linked  bool
		unwired bool
	}{
		{"it is set up", Attached, nil, Configured, true, false},
		{"it is not", Attached, other, Attached, true, false},
		{"it has no link", Attached, noLink, Attached, false, false},
		{"it is repaired", Ready, nil, Ready, true, false},
		{"it is not repaired", Ready, other, Ready, true, false},
		{"its link is gone", Ready, noLink, Ready, false, false},
		{"it cannot be taken down", Draining, other, Draining, true, false},
		{"there is nothing to take down", Draining, noLink, Draining, false, true},
	} {
		n := quiet(t)
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: c.stage, Linked: true,
			mutation: mutation{Wait: applying, Tries: 1, Next: never}})
		n.driver.eniApplied(time.Minute, ix, Applied{Err: c.err})
		e := &n.ENIs[ix]
		if e.Stage != c.then || e.Linked != c.linked || e.Unwired != c.unwired || e.Wait != idle {
			t.Errorf("%s: it is %v, linked %v, unwired %v, waits for %v", c.what, e.Stage, e.Linked, e.Unwired, e.Wait)
		}
		switch failed := c.err != nil; {
		case failed && (e.Tries != 2 || e.Next <= time.Minute || e.Next == never):
			t.Errorf("%s: tried %d times, again at %v", c.what, e.Tries, e.Next)
		case !failed && e.Next != time.Minute:
			t.Errorf("%s: it goes on at %v", c.what, e.Next)
		}
	}
	n := quiet(t)
	ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, mutation: mutation{Wait: applying}})
	if n.driver.eniApplied(time.Minute, ix, Applied{Err: other}); n.ENIs[ix].Linked {
		t.Error("a plan that fails is taken for a link")
	}
}

// TestARecalledPodIsKnownByWhatRecalledIt: whether the runtime has listed it is that source's word, not what the
// address was before; why it was set aside is over.
func TestARecalledPodIsKnownByWhatRecalledIt(t *testing.T) {
	for _, seen := range []bool{false, true} {
		n := quiet(t, "10.0.0.20")
		a := &n.pool.Addrs[0]
		n.pool.become(0, Quarantined)
		a.Evidence, a.SeenCRI = "why", !seen
		r := Row{Address: a.IP, State: Assigned, Att: Attachment{network, "c1", "eth0"}, SeenCRI: seen, Veth: "eni1"}
		n.recovery.recalled(time.Minute, &r, indexOf())
		if a.State != Assigned || a.Att != r.Att || a.SeenCRI != seen || a.Evidence != "" {
			t.Errorf("listed %v: %v of %v, listed %v, set aside for %q", seen, a.State, a.Att, a.SeenCRI, a.Evidence)
		}
	}
}

// TestThePrimaryENIIsKeptFromPods with custom networking alone: no pod is counted on it.
func TestThePrimaryENIIsKeptFromPods(t *testing.T) {
	for _, c := range []struct {
		custom, there bool
		want          int
	}{{true, true, 1}, {false, true, 0}, {true, false, 0}, {false, false, 0}} {
		n := quiet(t)
		n.Set.CustomNetwork = c.custom
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
		if !c.there { // it is not in service yet
			n.ENIs[0].Stage = Created
		}
		if got := n.enis.kept(); got != c.want {
			t.Errorf("custom networking %v, in service %v: %d are kept from pods", c.custom, c.there, got)
		}
		if got := n.enis.hasAttached() - n.enis.bearers(); got != c.want {
			t.Errorf("custom networking %v, in service %v: %d are not counted", c.custom, c.there, got)
		}
	}
}

// TestWhatWasGivenBackIsOnRecordForATime: it is written again when that failed, and dropped when it is old.
func TestWhatWasGivenBackIsOnRecordForATime(t *testing.T) {
	n := quiet(t)
	ip := netip.MustParseAddr("10.0.0.99")
	n.evidence.depart(time.Minute, ip)
	n.evidence.departENI(time.Minute, "eni-9") // has no row
	n.ledger.put[RunStore] = nil
	n.driver.recordTaken(0)
	if p := n.ledger.put[RunStore]; len(p) != 1 || p[0].Address != ip || p[0].State != Departed ||
		p[0].ReleasedAt != time.Minute {
		t.Errorf("written again are %+v", p)
	}
	n.survey.forgetDepartures(time.Minute + rememberedFor)
	if k := n.ledger.drop[RunStore]; len(k) != 1 || k[0].Address != ip {
		t.Errorf("dropped are %+v", k)
	}
}

// TestAPrefixThatNobodyUses has no address that a pod has, that cools, or that another ENI carries.
func TestAPrefixThatNobodyUses(t *testing.T) {
	prefix := netip.MustParsePrefix("10.0.0.16/28")
	for _, c := range []struct {
		what  string
		spoil func(n *Node, ix int32)
		want  bool
	}{
		{"all are free", func(*Node, int32) {}, true},
		{"a pod has one", func(n *Node, ix int32) { n.pool.become(ix, Assigned) }, false},
		{"one is elsewhere", func(n *Node, ix int32) { n.pool.place(ix, 1) }, false},
		{"a pod has one elsewhere", func(n *Node, ix int32) {
			n.pool.become(ix, Assigned)
			n.pool.place(ix, 1)
		}, false},
		{"one is not in the books", func(n *Node, ix int32) { n.pool.forget(ix) }, true},
	} {
		n := quiet(t)
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready})
		ix := ofPrefix(&n.pool, prefix.String())
		c.spoil(n, ix[7])
		if got := n.pool.idle(prefix, 0); got != c.want {
			t.Errorf("%s: nobody uses the prefix: %v", c.what, got)
		}
	}
}

// TestTheLinkOfANewENIIsLookedForAtOnce.
func TestTheLinkOfANewENIIsLookedForAtOnce(t *testing.T) {
	n := quiet(t)
	n.survey.adoptENI(time.Minute, &ENI{ID: "eni-1", Device: 1})
	if at := n.Looks[LookKernel].Want; at != time.Minute {
		t.Errorf("the kernel is looked at at %v", at)
	}
}

// TestEachPodIsHeardOf, whatever is the case with those before it.
func TestEachPodIsHeardOf(t *testing.T) {
	n := quiet(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23")
	for i, id := range []string{"", "c1", "c2", "c3"} { // the first one stays free
		if i > 0 {
			assign(n, int32(i), id)
		}
	}
	if !n.pods.heard(map[string]*Sandbox{"c1": {ID: "c1", Ready: true}}, n.Steps) {
		t.Error("two are missing")
	}
	if a := n.pool.Addrs; !a[1].Listed || a[2].Absent != 1 || a[3].Absent != 1 {
		t.Errorf("%+v, %+v, %+v", a[1].testimony, a[2].testimony, a[3].testimony)
	}
}

// TestWhatOfTheFactsCounts: a change of any of them is put on record, so that the next daemon knows it.
func TestWhatOfTheFactsCounts(t *testing.T) {
	of := func() *Facts {
		return &Facts{Instance: Instance{ID: "i-1", VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}},
			ENIs: []ENI{{ID: "eni-1"}}, Found: []string{"eni-1"}}
	}
	if !of().equal(of()) {
		t.Error("the same facts differ")
	}
	ip := netip.MustParseAddr("10.0.0.20")
	for what, change := range map[string]func(f *Facts){
		"instance":         func(f *Facts) { f.Instance.ID = "i-2" },
		"type":             func(f *Facts) { f.Instance.Type = "m5.large" },
		"zone":             func(f *Facts) { f.Instance.Zone = "z" },
		"subnet":           func(f *Facts) { f.Instance.Subnet = "a" },
		"MAC":              func(f *Facts) { f.Instance.PrimaryMAC = "m" },
		"address":          func(f *Facts) { f.Instance.Address = ip },
		"limits":           func(f *Facts) { f.Instance.Limits.ENIs = 3 },
		"VPC":              func(f *Facts) { f.Instance.VPC = nil },
		"found":            func(f *Facts) { f.Found = nil },
		"no ENI":           func(f *Facts) { f.ENIs = nil },
		"an ENI's ID":      func(f *Facts) { f.ENIs[0].ID = "eni-2" },
		"an ENI's MAC":     func(f *Facts) { f.ENIs[0].MAC = "m" },
		"an ENI's device":  func(f *Facts) { f.ENIs[0].Device = 1 },
		"an ENI's subnet":  func(f *Facts) { f.ENIs[0].Subnet = "a" },
		"an ENI's CIDR":    func(f *Facts) { f.ENIs[0].CIDR = netip.PrefixFrom(ip, 24) },
		"an ENI's address": func(f *Facts) { f.ENIs[0].Primary = ip },
	} {
		f := of()
		if change(f); f.equal(of()) || of().equal(f) {
			t.Errorf("another %s makes no difference", what)
		}
	}
}

// TestENIsThatPodsGetNothingOfAreCleared: an ENI without pods goes, of one with pods what is free. Nothing does
// while the runtime cannot be believed: what looks free may be a pod's.
func TestENIsThatPodsGetNothingOfAreCleared(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		want  bool
	}{
		{"believed", func(*Node) {}, true},
		{"it is refused", func(n *Node) { n.Troubles[troubleRuntime] = "why" }, false},
		{"it is refused, and was never heard", func(n *Node) {
			n.Troubles[troubleRuntime], n.Witness.Runtime = "why", false
		}, true},
		{"they have just had to keep it", func(n *Node) {
			n.ENIs[0].KeptTill, n.ENIs[2].KeptTill = time.Minute+1, time.Minute+1
		}, false},
		{"they had to keep it a while ago", func(n *Node) {
			n.ENIs[0].KeptTill, n.ENIs[2].KeptTill = time.Minute, time.Minute
		}, true},
		{"none is configured", func(n *Node) { n.Troubles[troubleRuntime], n.Set.Runtime = "why", false }, true},
	} {
		n := quiet(t, "10.0.0.20", "10.0.0.21")
		n.Set.Runtime, n.Witness.Runtime, n.Set.Discovery = true, true, true
		n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "a", Role: "1"},
			{ID: "b", Role: "0"}}}, true, 0, 0)
		n.ENIs[0].Subnet = "b"
		assign(n, 0, "c1")
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1, Subnet: "a"}, Stage: Ready})
		n.enis.newENI(eni{ENI: ENI{ID: "eni-2", Device: 2, Subnet: "b"}, Stage: Ready})
		c.spoil(n)
		n.warm.clear(time.Minute)
		e := n.ENIs
		if e[0].Trimming != c.want || e[1].Trimming || (e[2].Stage == Draining) != c.want || e[1].Stage != Ready ||
			n.pool.Addrs[1].Leaving != c.want || n.pool.Addrs[0].Leaving {
			t.Errorf("%s: the primary gives back: %v; the one for pods is %v, the other %v", c.what, e[0].Trimming,
				e[1].Stage, e[2].Stage)
		}
	}
}
