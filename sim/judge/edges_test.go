package judge

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// verdict of an auditor: the invariants that it saw broken, in order, as "I4 I7".
func verdict(a *Auditor) string {
	var s []string
	for _, v := range a.Violations() {
		s = append(s, v.Invariant.String())
	}
	return strings.Join(s, " ")
}

// started has two nodes whose daemons run with a cool-down of 30 s.
func started(cfg Config) *Auditor {
	cfg.Nodes = 2
	a := New(cfg)
	for node := 1; node <= 2; node++ {
		a.Started(0, node)
		a.Input(0, node, ipam.Start{Settings: ipam.Defaults()})
	}
	return a
}

const sec = time.Second

func TestEdges(t *testing.T) {
	restart := func(a *Auditor, at time.Duration) {
		a.Died(at, 1)
		a.Started(at, 1)
		a.Input(at, 1, ipam.Start{Settings: ipam.Defaults()})
	}
	set := func(a *Auditor, at, coolDown time.Duration) {
		s := ipam.Defaults()
		s.CoolDown = coolDown
		a.Input(at, 1, ipam.Set{Settings: s})
	}
	flush := func(a *Auditor, at time.Duration, id ipam.ID, addr netip.Addr, err *dataplane.Error) {
		a.Effects(at, 1, []ipam.Effect{&ipam.Apply{ID: id, Lane: ipam.Lane{Kind: ipam.FlowLane},
			Plan: dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack, Addr: addr}}}}})
		a.Input(at, 1, ipam.Applied{ID: id, Done: 1, Err: err})
	}
	// walked is an address that web had and gave up at 10 s; used is one whose flows were forgotten then.
	walked := func(a *Auditor) {
		a.Configured(1*sec, 1, addr1, web, 1, "")
		a.Given(1*sec, 1, web, addr1, "")
		a.Released(10*sec, 1, web, addr1)
	}
	used := func(a *Auditor) {
		walked(a)
		flush(a, 10*sec, 1, addr1, nil)
	}
	for _, x := range []struct {
		name   string
		cfg    Config
		edges  func(a *Auditor)
		broken string
	}{
		{"I1 one namespace", Config{}, func(a *Auditor) { a.Configured(0, 1, addr1, web, 1, "") }, ""},
		{"I1 two namespaces", Config{}, func(a *Auditor) { a.Configured(0, 1, addr1, web, 2, "default/api on node-2") }, "I1"},
		{"I2 nobody uses it", Config{}, func(a *Auditor) { a.Given(0, 1, web, addr1, "") }, ""},
		{"I2 somebody uses it", Config{}, func(a *Auditor) { a.Given(0, 1, web, addr1, "veth eni0123") }, "I2"},
		{"I4 an idle eni", Config{}, func(a *Auditor) { a.ENIFreed(0, 1, "eni-1", true, 0, "") }, ""},
		{"I4 an eni in use", Config{}, func(a *Auditor) { a.ENIFreed(0, 1, "eni-1", true, 3, "default/web-1") }, "I4"},
		{"I4 an eni in use, by a stranger", Config{}, func(a *Auditor) { a.ENIFreed(0, 1, "eni-1", false, 3, "default/web-1") }, ""},
		{"I14 an ENI of its own", Config{}, func(a *Auditor) { a.Touched(0, 1, "configures the link of", "eni-1", "") }, ""},
		{"I14 somebody else's", Config{}, func(a *Auditor) { a.Touched(0, 1, "configures the link of", "eni-1", "its kind is trunk") }, "I14"},
		{"I4 an idle address", Config{}, func(a *Auditor) { a.AddressUnassigned(0, 1, addr1, true, "") }, ""},
		{"I4 an address in use", Config{}, func(a *Auditor) { a.AddressUnassigned(0, 1, addr1, true, "default/web-1") }, "I4"},
		{"I4 an address in use, by a stranger", Config{}, func(a *Auditor) { a.AddressUnassigned(0, 1, addr1, false, "default/web-1") }, ""},

		{"I7 reuse in time", Config{}, func(a *Auditor) { used(a); a.Given(40*sec, 1, api, addr1, "") }, ""},
		{"I7 reuse too early", Config{}, func(a *Auditor) { used(a); a.Given(40*sec-1, 1, api, addr1, "") }, "I7"},
		{"I7 reported once for one pod", Config{}, func(a *Auditor) {
			used(a)
			a.Configured(39*sec, 1, addr1, api, 1, "")
			a.Given(39*sec, 1, api, addr1, "")
		}, "I7"},
		{"I7 configured too early, never answered", Config{}, func(a *Auditor) { used(a); a.Configured(39*sec, 1, addr1, api, 1, "") }, "I7"},
		{"I7 across a restart", Config{}, func(a *Auditor) { used(a); restart(a, 11*sec); a.Given(12*sec, 1, api, addr1, "") }, "I7"},
		{"I7 released while the daemon was down", Config{}, func(a *Auditor) {
			a.Given(1*sec, 1, web, addr1, "")
			a.Died(2*sec, 1)
			a.Released(3*sec, 1, web, addr1)
			restart(a, 4*sec)
			a.Given(5*sec, 1, api, addr1, "")
		}, "I7"},
		{"I7 another node", Config{}, func(a *Auditor) { used(a); a.Given(11*sec, 2, api, addr1, "") }, ""},
		{"I7 another address", Config{}, func(a *Auditor) { used(a); a.Given(11*sec, 1, api, addr2, "") }, ""},
		{"I7 gone to EC2 and back", Config{}, func(a *Auditor) {
			used(a)
			a.AddressUnassigned(40*sec, 1, addr1, true, "")
			a.Given(41*sec, 1, api, addr1, "")
		}, ""},
		{"I7 given back too early", Config{}, func(a *Auditor) { used(a); a.AddressUnassigned(40*sec-1, 1, addr1, true, "") }, "I7"},
		{"I7 taken by a stranger", Config{}, func(a *Auditor) { used(a); a.AddressUnassigned(11*sec, 1, addr1, false, "") }, ""},
		{"I7 the same attachment", Config{}, func(a *Auditor) { used(a); a.Given(11*sec, 1, web, addr1, "") }, ""},
		{"I7 a repeated DEL changes nothing", Config{}, func(a *Auditor) {
			used(a)
			a.Released(35*sec, 1, web, addr1)
			a.Given(40*sec, 1, api, addr1, "")
			a.Released(41*sec, 1, web, addr1)
			a.Given(42*sec, 1, api, addr1, "")
		}, ""},
		{"I7 taken over without a release", Config{}, func(a *Auditor) {
			a.Given(1*sec, 1, web, addr1, "")
			a.Given(2*sec, 1, api, addr1, "")
			a.Released(10*sec, 1, api, addr1)
			a.Given(11*sec, 1, web, addr1, "")
		}, "I7"},
		{"I7 released before the auditor knew it", Config{}, func(a *Auditor) {
			a.Released(1*sec, 1, web, addr1)
			a.Given(2*sec, 1, api, addr1, "")
		}, "I7"},
		{"I7 a shorter cool-down", Config{}, func(a *Auditor) { used(a); set(a, 11*sec, 5*sec); a.Given(15*sec, 1, api, addr1, "") }, ""},
		{"I7 a shorter cool-down, too early", Config{}, func(a *Auditor) { used(a); set(a, 11*sec, 5*sec); a.Given(14*sec, 1, api, addr1, "") }, "I7"},
		{"I7 a longer cool-down is for later releases", Config{}, func(a *Auditor) { used(a); set(a, 11*sec, 60*sec); a.Given(41*sec, 1, api, addr1, "") }, ""},
		{"I7 a longer cool-down", Config{}, func(a *Auditor) { set(a, 0, 60*sec); used(a); a.Given(69*sec, 1, api, addr1, "") }, "I7"},
		{"I7 tolerance", Config{Bounds: Bounds{CoolDown: sec}}, func(a *Auditor) { used(a); a.Given(39*sec, 1, api, addr1, "") }, ""},

		{"I7 flows not forgotten", Config{}, func(a *Auditor) { walked(a); a.Given(41*sec, 1, api, addr1, "") }, "I7"},
		{"I7 flows of another address forgotten", Config{}, func(a *Auditor) { walked(a); flush(a, 40*sec, 1, addr2, nil); a.Given(41*sec, 1, api, addr1, "") }, "I7"},
		{"I7 flows forgotten before the release", Config{}, func(a *Auditor) { flush(a, 0, 1, addr1, nil); walked(a); a.Given(41*sec, 1, api, addr1, "") }, "I7"},
		{"I7 flows not forgotten, for the kernel refused", Config{}, func(a *Auditor) {
			walked(a)
			flush(a, 40*sec, 1, addr1, &dataplane.Error{Text: "out of memory"})
			a.Given(41*sec, 1, api, addr1, "")
		}, "I7"},
		{"I7 flows forgotten by an earlier daemon", Config{}, func(a *Auditor) { used(a); restart(a, 20*sec); a.Given(41*sec, 1, api, addr1, "") }, "I7"},
		{"I7 flows forgotten by an earlier daemon, which saw it cool", Config{}, func(a *Auditor) { used(a); restart(a, 40*sec); a.Given(41*sec, 1, api, addr1, "") }, ""},
		{"I7 flows forgotten anew", Config{}, func(a *Auditor) {
			used(a)
			restart(a, 20*sec)
			flush(a, 25*sec, 1, addr1, nil)
			a.Given(41*sec, 1, api, addr1, "")
		}, ""},
		{"I7 flows not forgotten, but a reboot", Config{}, func(a *Auditor) {
			walked(a)
			a.Died(20*sec, 1)
			a.Started(20*sec, 1)
			a.Input(20*sec, 1, ipam.Start{Settings: ipam.Defaults(), Rebooted: true})
			restart(a, 30*sec)
			a.Given(41*sec, 1, api, addr1, "")
		}, ""},

		{"I7 flows of an earlier holder are there", Config{}, func(a *Auditor) { a.Inherited(1*sec, 1, web, addr1) }, "I7"},

		{"I8 no budget", Config{}, func(a *Auditor) { a.EC2Call(0, 1); a.EC2Call(0, 2) }, ""},
		{"I8 within", Config{Budget: 2}, func(a *Auditor) { a.EC2Call(0, 1); a.EC2Call(0, 2) }, ""},
		{"I8 beyond, said once", Config{Budget: 1}, func(a *Auditor) { a.EC2Call(0, 1); a.EC2Call(0, 2); a.EC2Call(0, 1) }, "I8"},

		{"I6 an error for a time", Config{}, func(a *Auditor) { a.DelResult(0, 1, web, false, "try again") }, ""},
		{"I6 words that go-cni swallows", Config{}, func(a *Auditor) { a.DelResult(0, 1, web, false, "netns not found") }, "I6"},
		{"I6 other words that go-cni swallows", Config{}, func(a *Auditor) { a.DelResult(0, 1, web, false, "open /run/x: no such file or directory") }, "I6"},
		{"I6 success", Config{}, func(a *Auditor) { a.DelResult(0, 1, web, true, "not found") }, ""},

		{"I13 in order", Config{}, func(a *Auditor) { a.Input(sec, 1, nil); a.Effects(sec, 1, []ipam.Effect{&ipam.Look{ID: 1}}) }, ""},
		{"I13 per node", Config{}, func(a *Auditor) {
			a.Effects(sec, 1, []ipam.Effect{&ipam.Look{ID: 1}})
			a.Effects(sec, 2, []ipam.Effect{&ipam.Look{ID: 1}})
		}, ""},
		{"I13 broken", Config{}, func(a *Auditor) { a.Effects(sec, 1, []ipam.Effect{added(1, web, addr1)}) }, "I13"},
		{"I13 no reply", Config{}, func(a *Auditor) { a.Input(0, 1, del(1, web)); a.Input(30*sec+1, 1, nil) }, "I13"},
		{"I13 no reply, tolerance", Config{Bounds: Bounds{Reply: sec}}, func(a *Auditor) { a.Input(0, 1, del(1, web)); a.Input(31*sec, 1, nil) }, ""},
		{"I13 a new life begins anew", Config{}, func(a *Auditor) {
			a.Input(0, 1, del(1, web))
			a.Effects(0, 1, []ipam.Effect{&ipam.Look{ID: 1}, put(1, assigned(addr1, web))})
			restart(a, sec)
			a.Effects(sec, 1, []ipam.Effect{&ipam.Look{ID: 1}, put(1, assigned(addr1, api))})
			a.Input(time.Hour, 1, nil)
		}, ""},
		{"I13 before its start", Config{}, func(a *Auditor) {
			a.Died(0, 1)
			a.Started(0, 1)
			a.Effects(0, 1, []ipam.Effect{&ipam.Look{ID: 1}})
		}, "I13"},
		{"I13 effects of the dead", Config{}, func(a *Auditor) {
			a.Died(sec, 1)
			a.Input(sec, 1, ipam.Stop{})
			a.Effects(sec, 1, nil)
			a.Effects(sec, 1, []ipam.Effect{&ipam.Look{ID: 1}})
		}, "I13"},
	} {
		a := started(x.cfg)
		x.edges(a)
		if got := verdict(a); got != x.broken {
			t.Errorf("%s: expected %q broken, found %v", x.name, x.broken, a.Violations())
		}
	}
}

func TestTextsNameTheSubject(t *testing.T) {
	a := started(Config{Budget: 1})
	a.Configured(0, 2, addr1, web, 2, "pod default/api on node-1")
	a.Given(1*sec, 2, web, addr1, "veth eni0123")
	a.Released(2*sec, 2, web, addr1)
	a.Given(7*sec, 2, api, addr1, "")
	a.ENIFreed(8*sec, 2, "eni-7", true, 3, "default/web-1")
	a.EC2Call(9*sec, 2)
	a.EC2Call(9*sec, 2)
	want := []string{
		"I1 at 0s on node-2: address 10.0.10.11 of aws-cni/web/eth0 on node-2 is in 2 live namespaces, expected 1: also in pod default/api on node-1",
		"I2 at 1s on node-2: address 10.0.10.11 was given to aws-cni/web/eth0 on node-2 while the kernel used it for veth eni0123: expected nobody",
		"I7 at 7s on node-2: address 10.0.10.11 was given to aws-cni/api/eth0 on node-2 5s after aws-cni/web/eth0 released it: expected a cool-down of 30s",
		"I4 at 8s on node-2: node-2 freed eni-7 with 3 live pods on it, as default/web-1: expected none",
		"I8 at 9s on node-2: EC2 call 2 of the cluster, made by node-2: the budget is 1",
	}
	var got []string
	for _, v := range a.Violations() {
		got = append(got, v.String())
	}
	if !slices.Equal(got, want) {
		t.Errorf("expected\n%s\nfound\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
	if v, ok := a.First(); !ok || v.Invariant != I1 {
		t.Errorf("expected I1 first, found %v", v)
	}
}

func TestViolationsAreBounded(t *testing.T) {
	a := New(Config{Nodes: 1})
	for range 1000 {
		a.Given(0, 1, web, addr1, "veth")
	}
	a.ENIFreed(0, 1, "eni-1", true, 1, "web")
	if len(a.Violations()) != keep+1 || a.Total(I2) != 1000 || a.Total(I4) != 1 || a.Total(99) != 0 {
		t.Errorf("expected %d kept and 1000 counted, found %d and %d", keep+1, len(a.Violations()), a.Total(I2))
	}
	if _, ok := New(Config{}).First(); ok {
		t.Error("expected no first violation of a new auditor")
	}
}

// A wrong node number is judged like any other: an edge is never lost.
func TestAnyNode(t *testing.T) {
	a := New(Config{Nodes: 1})
	for _, node := range []int{-5, 0, 3, 1 << 40} {
		a.Started(0, node)
		a.Input(0, node, ipam.Start{})
		a.Given(0, node, web, addr1, "veth")
		a.Judge(0, &Snapshot{Node: node})
		a.Settle(0, &Snapshot{Node: node})
	}
	if a.Total(I2) != 4 {
		t.Errorf("expected 4 violations, found %v", a.Violations())
	}
}

// A flow that was reset, and one that was silent for too long, break I17 and say which of the two it was.
func TestFlowCut(t *testing.T) {
	for silent, says := range map[time.Duration]string{0: "was cut (connection reset)", 31 * sec: "no answer for 31s"} {
		a := started(Config{})
		if v := verdict(a); v != "" {
			t.Fatalf("found %s before anything was cut", v)
		}
		a.FlowCut(sec, 1, web, "default/web", addr1, "connection reset", silent)
		if v := a.Violations(); verdict(a) != "I17" || !strings.Contains(v[0].Text, says) {
			t.Errorf("silent for %v: %v: expected I17, %q", silent, v, says)
		}
	}
}
