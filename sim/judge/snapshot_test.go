package judge

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// healthy is a node with two ENIs of three secondaries, two pods, and WARM_ENI_TARGET=1.
func healthy() *Snapshot {
	a := func(s string) netip.Addr { return netip.MustParseAddr("10.0.10." + s) }
	settings := ipam.Defaults()
	return &Snapshot{Node: 1, Up: true,
		View: &ipam.View{Serving: true, Free: 4, Assigned: 2, ENIs: []ipam.ViewENI{
			{ID: "eni-0", Device: 0, Stage: ipam.Ready, Total: 3, Available: 1, InUse: 2},
			{ID: "eni-1", Device: 1, Stage: ipam.Ready, Total: 3, Available: 3}}},
		Rows: []ipam.Row{{Address: addr1, State: ipam.Assigned, Att: web, ENI: "eni-0"}, {Address: addr2, State: ipam.Assigned, Att: api, ENI: "eni-0"}},
		Cloud: []CloudENI{
			{ID: "eni-0", Attached: true, Primary: a("10"), Secondaries: []netip.Addr{addr1, addr2, a("13")}},
			{ID: "eni-1", Attached: true, Primary: a("20"), Secondaries: []netip.Addr{a("21"), a("22"), a("23")}}},
		Pods:     []PodSnapshot{{Att: web, Name: "default/web", Address: addr1, Ours: true}, {Att: api, Name: "default/api", Address: addr2, Ours: true}},
		Settings: settings, Limits: ipam.Limits{ENIs: 3, Addresses: 4}, Subnets: []CloudSubnet{{Free: 100, Suits: true}}}
}

func TestSettle(t *testing.T) {
	theirs := CloudENI{ID: "eni-9", Attached: true, NotOurs: true, Secondaries: []netip.Addr{netip.MustParseAddr("10.0.10.99")}}
	for _, x := range []struct {
		name   string
		change func(c *Snapshot)
		broken string
	}{
		{"healthy", func(c *Snapshot) {}, ""},
		{"I5 a leak", func(c *Snapshot) { c.Leaks = []string{"rule 1536 from 10.0.10.99", "eni-9"} }, "I5 I5"},
		{"a dead daemon has not settled", func(c *Snapshot) { c.Up, c.Leaks = false, []string{"eni-9"} }, ""},
		{"I5 a leak of the cloud's", func(c *Snapshot) { *c = Snapshot{Leaks: []string{"eni-9"}} }, "I5"},
		{"I5 a row without a pod", func(c *Snapshot) { c.Pods = c.Pods[:1] }, "I5"},
		{"I5 a leak that somebody still acts on", func(c *Snapshot) { c.Leaks, c.View.Intents = []string{"eni-9"}, 1 }, ""},
		{"I12 books that are still written", func(c *Snapshot) { c.View.Free -= 2; c.View.Cooling = 1 }, ""},

		{"I12 an address nobody counts", func(c *Snapshot) { c.View.Free-- }, "I12"},
		{"I12 an address counted twice", func(c *Snapshot) { c.View.Quarantined++ }, "I12"},
		{"I12 a quarantined address that EC2 took back", func(c *Snapshot) { c.View.Quarantined++; c.View.Taken++ }, ""},
		{"I12 every state counts", func(c *Snapshot) {
			c.Settings.WarmENITarget, c.View.ENIs[1].InUse = 0, 2
			c.View.Free, c.View.Quarantined = 2, 2
		}, ""},
		{"I12 a cooling row is no assigned one", func(c *Snapshot) {
			c.Rows = append(c.Rows, ipam.Row{Address: netip.MustParseAddr("10.9.9.9"), State: ipam.Cooling})
		}, ""},
		{"a node that is not known", func(c *Snapshot) { c.Node = 3 }, ""},
		{"I12 covered by an intent", func(c *Snapshot) {
			c.Cloud = append(c.Cloud, CloudENI{ID: "eni-2", Secondaries: []netip.Addr{netip.MustParseAddr("10.0.10.31")}})
			c.View.Covered = 1
		}, ""},
		{"I12 an ENI nobody covers", func(c *Snapshot) {
			c.Cloud = append(c.Cloud, CloudENI{ID: "eni-2", Secondaries: []netip.Addr{netip.MustParseAddr("10.0.10.31")}})
		}, "I12"},
		{"I12 a row on no ENI", func(c *Snapshot) { c.Rows[0].Address = netip.MustParseAddr("10.9.9.9") }, "I12"},
		{"I12 an ENI that is not ours", func(c *Snapshot) { c.Cloud = append(c.Cloud, theirs) }, ""},
		{"I12 a row on an ENI that was ours", func(c *Snapshot) {
			c.Cloud[0].NotOurs, c.View.Free = true, 3
		}, ""},
		{"I12 an ENI that is not ours, counted", func(c *Snapshot) { c.Cloud, c.View.Free = append(c.Cloud, theirs), 5 }, "I12"},
		{"I11 an ENI that is not ours has the last device index", func(c *Snapshot) {
			c.Cloud, c.View.Free, c.View.Quarantined = append(c.Cloud, theirs), 1, 3
		}, ""},
		{"I12 a row not counted", func(c *Snapshot) { c.View.Assigned, c.View.Free = 1, 5 }, "I12"},
		{"I12 a dead daemon is not judged", func(c *Snapshot) { c.Up = false; c.View.Free = 0 }, ""},
		{"I12 without a view not judged", func(c *Snapshot) { c.View = nil }, ""},
	} {
		a, c := started(Config{}), healthy()
		x.change(c)
		a.Settle(time.Minute, c)
		if got := verdict(a); got != x.broken {
			t.Errorf("%s: expected %q broken, found %v", x.name, x.broken, a.Violations())
		}
		if v, _ := a.Unsettled(time.Minute, c); len(v) != len(a.Violations()) {
			t.Errorf("%s: Unsettled says %v, Settle recorded %v", x.name, v, a.Violations())
		}
	}
}

// TestUnderWay: what somebody acts on is named and breaks nothing; what has been so since before the faults ended is what nobody acts on.
func TestUnderWay(t *testing.T) {
	for _, x := range []struct {
		name         string
		change       func(c *Snapshot)
		stuck, fresh string // broken when it began before the faults ended, and after that
		says         string
	}{
		{"an intent", func(c *Snapshot) { c.View.Intents = 2 }, "I5", "", "node-1: 2 EC2 intents are open"},
		{"a cooling address", func(c *Snapshot) { c.View.Free--; c.View.Cooling = 1 }, "I5", "", "node-1: 1 address cools down"},
		{"a DEL", func(c *Snapshot) { c.PendingDELs = 1 }, "I6", "", "node-1: 1 DEL still has to be repeated"},
		{"an ADD", func(c *Snapshot) { c.View.Waiting = 3 }, "", "", "node-1: 3 ADDs wait for an address"},
		{"no daemon", func(c *Snapshot) { c.Up = false }, "", "", "node-1: no daemon runs"},
		{"a daemon that starts", func(c *Snapshot) { c.View.Serving = false }, "", "", "node-1: the daemon does not serve yet"},
	} {
		for _, began := range []time.Duration{time.Second, time.Hour} {
			a, c := started(Config{}), healthy()
			a.Judge(0, healthy())
			x.change(c)
			a.Judge(began, c)
			a.FaultsEnded(time.Minute)
			underWay := a.Settle(2*time.Hour, c)
			want, says := x.stuck, ""
			if began > time.Minute || want == "" {
				want, says = x.fresh, x.says
			}
			if got := verdict(a); got != want || strings.Join(underWay, "; ") != says {
				t.Errorf("%s since %v: expected %q broken and %q under way, found %v and %q", x.name, began, want, says, a.Violations(), underWay)
			}
		}
	}
}

func TestDelsEndInSuccess(t *testing.T) {
	a := started(Config{})
	a.DelResult(0, 1, web, false, "store unreadable")
	a.DelResult(0, 1, api, false, "store unreadable")
	a.DelResult(sec, 2, web, true, "")
	a.DelResult(sec, 1, web, true, "")
	a.Settle(sec, healthy())
	if got := verdict(a); got != "I6" || !strings.Contains(a.Violations()[0].Text, api.String()) {
		t.Errorf("expected I6 for %v alone, found %v", api, a.Violations())
	}
	both := started(Config{})
	both.DelResult(0, 1, web, false, "store unreadable")
	both.DelResult(0, 1, api, false, "store unreadable")
	both.Settle(sec, healthy())
	if got := both.Violations(); len(got) != 2 || !strings.Contains(got[0].Text, api.String()) || !strings.Contains(got[1].Text, web.String()) {
		t.Errorf("expected I6 for %v, then %v, found %v", api, web, got)
	}
	b := started(Config{})
	b.DelResult(0, 1, web, false, "store unreadable")
	b.DelResult(sec, 1, web, true, "")
	b.Settle(sec, healthy())
	if got := verdict(b); got != "" {
		t.Errorf("expected nothing broken, found %v", b.Violations())
	}
}

func TestWarm(t *testing.T) {
	ips := func(warm, minimum int) func(c *Snapshot) {
		return func(c *Snapshot) { c.Settings.WarmIPTarget, c.Settings.MinimumIPTarget = warm, minimum }
	}
	with := func(changes ...func(c *Snapshot)) func(c *Snapshot) {
		return func(c *Snapshot) {
			for _, change := range changes {
				change(c)
			}
		}
	}
	one := func(c *Snapshot) { // only the primary ENI, one address free
		c.Cloud, c.View.ENIs, c.View.Free = c.Cloud[:1], c.View.ENIs[:1], 1
	}
	three := func(c *Snapshot) { // a third ENI, nothing on it
		c.Cloud = append(c.Cloud, c.Cloud[1])
		c.View.ENIs = append(c.View.ENIs, c.View.ENIs[1])
		c.View.Free = 7
	}
	for _, x := range []struct {
		name   string
		change func(c *Snapshot)
		broken bool
		band   int
	}{
		{"as wanted", func(c *Snapshot) {}, false, 0},
		{"too few", one, true, 0},
		{"too few, MAX_ENI", with(one, func(c *Snapshot) { c.Settings.MaxENI = 1 }), false, 0},
		{"too few, the instance's limit", with(one, func(c *Snapshot) { c.Limits.ENIs = 1 }), false, 0},
		{"too few, subnet empty", with(one, func(c *Snapshot) { c.Subnets[0].Free = 0 }), false, 0},
		{"too few, subnet cannot grant the step", with(one, func(c *Snapshot) { c.Subnets[0].Free = 2 }), false, 0},
		{"too few, subnet just can", with(one, func(c *Snapshot) { c.Subnets[0].Free = 3 }), true, 0},
		{"too few, cordoned", with(one, func(c *Snapshot) { c.Settings.Cordoned = true }), false, 0},
		{"too few, cordoned and managed", with(one, func(c *Snapshot) { c.Settings.Cordoned, c.Settings.ManageWhenCordon = true, true }), true, 0},
		{"too few, provisioning disabled", with(one, func(c *Snapshot) { c.Settings.NoProvisioning = true }), false, 0},
		{"too few, metadata alone", with(one, func(c *Snapshot) { c.Settings.IMDSOnly = true }), false, 0},
		{"too few, as many as pods", with(one, func(c *Snapshot) { c.Settings.MaxPods = 3 }), false, 0},
		{"too few, fewer than pods", with(one, func(c *Snapshot) { c.Settings.MaxPods = 4 }), true, 0},
		{"too few, limits unknown", with(one, func(c *Snapshot) { c.Limits = ipam.Limits{} }), false, 0},
		{"too few, MAX_ENI, room on the ENI", with(one, func(c *Snapshot) { c.Settings.MaxENI, c.Limits.Addresses = 1, 5 }), true, 0},
		{"cooling is not free", func(c *Snapshot) { c.View.Free, c.View.Cooling = 2, 2 }, true, 0},
		{"too many", three, true, 0},
		{"just too many", with(three, func(c *Snapshot) { c.View.Free = 6 }), true, 0},
		{"just not too many", with(three, func(c *Snapshot) { c.View.Free = 5 }), false, 0},
		{"too few, no secondaries", with(one, func(c *Snapshot) { c.Limits.Addresses = 1 }), false, 0},
		{"too many, tolerated", three, false, 2},
		{"too many, none idle", with(three, func(c *Snapshot) {
			for i := range c.View.ENIs {
				c.View.ENIs[i].InUse = 1
			}
		}), false, 0},
		{"too many, the idle one is the primary", with(three, func(c *Snapshot) { c.View.ENIs[1].InUse, c.View.ENIs[2].InUse, c.View.ENIs[0].InUse = 1, 1, 0 }), false, 0},
		{"too many, WARM_ENI_TARGET=0", func(c *Snapshot) { c.Settings.WarmENITarget = 0 }, true, 0},
		{"none wanted, none there", with(one, func(c *Snapshot) { c.Settings.WarmENITarget = 0 }), false, 0},

		{"exactly WARM_IP_TARGET", ips(4, 0), false, 0},
		{"fewer than WARM_IP_TARGET", ips(5, 0), true, 0},
		{"fewer than WARM_IP_TARGET, subnet empty", with(ips(5, 0), func(c *Snapshot) { c.Subnets[0].Free = 0 }), false, 0},
		{"fewer than WARM_IP_TARGET, full", with(ips(5, 0), func(c *Snapshot) { c.Limits.ENIs = 2 }), false, 0},
		{"more than WARM_IP_TARGET", ips(3, 0), true, 0},
		{"more than WARM_IP_TARGET, tolerated", ips(3, 0), false, 1},
		{"more than WARM_IP_TARGET, MINIMUM_IP_TARGET", ips(1, 6), false, 0},
		{"more than both", ips(1, 5), true, 0},
		{"fewer than MINIMUM_IP_TARGET", ips(1, 7), true, 0},
		{"MINIMUM_IP_TARGET alone", ips(0, 6), false, 0},
		{"quarantined ones are no excess", with(ips(1, 5), func(c *Snapshot) { c.View.Free, c.View.Quarantined = 3, 1 }), false, 0},
	} {
		c := healthy()
		x.change(c)
		if text := warm(c, x.band); (text != "") != x.broken {
			t.Errorf("%s: expected broken=%v, found %q", x.name, x.broken, text)
		}
	}
	a, c := started(Config{}), healthy()
	one(c)
	a.Settle(0, c)
	want := "node-1 has 1 free of 3 addresses on 1 ENI, 2 fewer than WARM_ENI_TARGET=1 MAX_ENI=0 ask for, and could have more: 3 ENIs of 3 addresses, 100 free in the subnet"
	if v, _ := a.First(); v.Invariant != I11 || v.Text != want {
		t.Errorf("expected I11 %q, found %v", want, v)
	}
}

func TestJudge(t *testing.T) {
	cut := func(change func(c *Snapshot)) *Snapshot {
		c := healthy()
		change(c)
		return c
	}
	well := healthy()
	detached := cut(func(c *Snapshot) { c.Cloud[0].Attached = false })
	moved := cut(func(c *Snapshot) { c.Rows[0].ENI = "eni-1" }) // the row is wrong, the address is on an attached ENI
	deaf := cut(func(c *Snapshot) { c.Pods[0].Fault = "no route to the pod" })
	foreign := cut(func(c *Snapshot) { c.Pods[0].Fault, c.Pods[0].Ours = "the pod deleted its own address", false })
	down := cut(func(c *Snapshot) { c.Up = false; c.Pods[0].Fault = "no route to the pod" })
	type at struct {
		when time.Duration
		cut  *Snapshot
	}
	for _, x := range []struct {
		name   string
		cuts   []at
		broken string
	}{
		{"well", []at{{0, well}, {time.Hour, well}}, ""},
		{"I3 within the bound", []at{{0, detached}, {5 * time.Minute, detached}, {6 * time.Minute, well}}, ""},
		{"I3 beyond the bound, both addresses", []at{{0, detached}, {5*time.Minute + 1, detached}}, "I3 I3"},
		{"I3 reported once", []at{{0, detached}, {6 * time.Minute, detached}, {7 * time.Minute, detached}}, "I3 I3"},
		{"I3 on another ENI", []at{{0, moved}, {time.Hour, moved}}, ""},
		{"I10 within the bound", []at{{0, deaf}, {90 * sec, deaf}, {91 * sec, well}}, ""},
		{"I10 beyond the bound", []at{{0, deaf}, {90*sec + 1, deaf}}, "I10"},
		{"I10 repaired between", []at{{0, deaf}, {60 * sec, well}, {80 * sec, deaf}, {160 * sec, deaf}}, ""},
		{"I10 twice", []at{{0, deaf}, {100 * sec, deaf}, {110 * sec, well}, {120 * sec, deaf}, {220 * sec, deaf}}, "I10 I10"},
		{"I10 a stranger's", []at{{0, foreign}, {time.Hour, foreign}}, ""},
		{"I10 while the daemon is down", []at{{0, down}, {time.Hour, down}, {time.Hour, deaf}, {time.Hour + 90*sec, deaf}}, ""},
		{"I10 after the daemon came back", []at{{0, down}, {time.Hour, deaf}, {time.Hour + 91*sec, deaf}}, "I10"},
		{"I10 a daemon that keeps dying", []at{{0, deaf}, {50 * sec, down}, {55 * sec, deaf}, {85 * sec, down}, {90 * sec, deaf}, {101 * sec, deaf}}, "I10"},
	} {
		a := started(Config{})
		for _, c := range x.cuts {
			a.Judge(c.when, c.cut)
		}
		if got := verdict(a); got != x.broken {
			t.Errorf("%s: expected %q broken, found %v", x.name, x.broken, a.Violations())
		}
	}
}

func TestBoundsAreSet(t *testing.T) {
	a := started(Config{Bounds: Bounds{Reachable: 10 * sec, Attached: 20 * sec}})
	c := healthy()
	c.Cloud[0].Attached, c.Pods[0].Fault = false, "no ARP reply"
	a.Judge(0, c)
	a.Judge(11*sec, c)
	if got := verdict(a); got != "I10" {
		t.Errorf("after 11 s: expected I10, found %v", a.Violations())
	}
	a.Judge(21*sec, c)
	if got := verdict(a); got != "I10 I3 I3" {
		t.Errorf("after 21 s: expected I3 as well, found %v", a.Violations())
	}
	row := "address 10.0.10.12 of aws-cni/api/eth0 has been on no attached ENI (its row says eni-0) for 21s on node-1: expected repair within 20s"
	if text := a.Violations()[2].Text; text != row {
		t.Errorf("expected %q, found %q", row, text)
	}
	want := "live pod default/web (aws-cni/web/eth0, address 10.0.10.11) has been unreachable (no ARP reply) for 11s on node-1: expected repair within 10s"
	if v, _ := a.First(); v.Text != want {
		t.Errorf("expected %q, found %q", want, v.Text)
	}
}

// A world that judges only what changed needs to know when to judge a node that does not.
func TestWatching(t *testing.T) {
	a := started(Config{})
	if _, ok := a.Watching(0, 1); ok {
		t.Error("expected nothing to watch on a healthy node")
	}
	c := healthy()
	c.Pods[0].Fault = "no route"
	a.Judge(10*sec, c)
	until, ok := a.Watching(20*sec, 1)
	if !ok || until != 100*sec {
		t.Errorf("expected to watch until 1m40s, found %v %v", until, ok)
	}
	a.Died(30*sec, 1)
	if _, ok := a.Watching(40*sec, 1); ok {
		t.Error("expected nothing to watch while the daemon is down")
	}
	a.Started(50*sec, 1)
	if until, _ = a.Watching(60*sec, 1); until != 120*sec {
		t.Errorf("expected to watch until 2m, as the daemon was down for 20 s; found %v", until)
	}
	a.Judge(until+1, c)
	if _, ok := a.Watching(until+1, 1); ok || verdict(a) != "I10" {
		t.Errorf("expected I10 and nothing more to watch, found %v", a.Violations())
	}
	if _, ok := a.Watching(0, 3); ok {
		t.Error("expected nothing to watch on a node that does not exist")
	}
}
