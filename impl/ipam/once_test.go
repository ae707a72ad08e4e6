package ipam_test

import (
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// An attachment has one address and one operation at a time, whatever comes together. The walk found each of these.

// small is a node that has room for two pods, and never more.
func small(t testing.TB) *world {
	w := newWorld(t, ipam.Sound())
	w.limits = ipam.Limits{ENIs: 1, Addresses: 3}
	w.set.CoolDown = 5 * time.Second
	w.start()
	w.live(10 * time.Second)
	return w
}

func (w *world) answered(r ipam.Req) *ipam.Reply {
	w.t.Helper()
	reply := w.replies[r]
	if reply == nil {
		w.t.Fatalf("request %d has no reply", r)
	}
	if reply.Err != nil {
		w.t.Fatalf("request %d: %v", r, reply.Err)
	}
	return reply
}

func TestTwoAddsOfOneAttachmentWait(t *testing.T) {
	w := small(t)
	first, _ := w.up("c1", "web-1")
	_, _ = w.up("c2", "web-2")
	w.del(first)
	w.calm()
	b := w.pod("c3", "web-3")
	one, two := w.add(b), w.add(b)
	w.live(10 * time.Second)
	if a, b := w.answered(one), w.answered(two); a.Address != b.Address {
		t.Errorf("one attachment has %v and %v", a.Address, b.Address)
	}
	w.tidy()
}

func (w *world) tidy() {
	w.t.Helper()
	if err := w.node.Sane(); err != nil {
		w.t.Error(err)
	}
}

func TestAddBehindAnAddThatTriesTheNextAddress(t *testing.T) {
	w := ready(t, ipam.Sound())
	b := w.pod("c1", "web-1")
	one := w.add(b)
	w.save(ipam.RunStore, 1)
	apply := w.take(len(w.flight) - 1).(*ipam.Apply)
	two := w.add(b)
	w.step(ipam.Applied{ID: apply.ID, Err: &dataplane.Error{Kind: dataplane.Exists}})
	w.calm()
	if a, b := w.answered(one), w.answered(two); a.Address != b.Address {
		t.Errorf("one attachment has %v and %v", a.Address, b.Address)
	}
	w.tidy()
}

func TestResidueOfAnAttachmentThatCameBack(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, old := w.up("c1", "web-1")
	w.down(b)
	again := w.add(b)
	w.live(29 * time.Second)
	w.kernel.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityToPod, To: prefix(old), Table: dataplane.MainTable})
	w.live(2 * time.Minute)
	if r, ok := w.node.Find(b.att); !ok || r.Address != w.answered(again).Address {
		t.Errorf("the attachment that came back has %+v", r)
	}
	w.tidy()
	var v ipam.View
	if w.node.View(&v); v.Cooling != 0 {
		t.Errorf("the old address still cools: %+v", v)
	}
}

func TestKernelNamesAnAttachmentThatHasAnotherAddress(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, here := w.up("c1", "web-1")
	_, there := w.up("c2", "web-2")
	r := w.rows[ipam.Key{Address: there}]
	r.State, r.Att = ipam.Cooling, att("c9")
	w.rows[r.Key()] = r
	w.kernel.SetLinkAlias(dataplane.HostVethName("eni", "default", "web-2"), dataplane.Alias("aws-cni", "c1", "eth0", there))
	w.start()
	w.live(time.Minute)
	if r, _ := w.node.Find(b.att); r.Address != here {
		t.Errorf("the attachment has %v, its record said %v", r.Address, here)
	}
	w.tidy()
}

func TestFailedSaveOfADisplacedIncarnation(t *testing.T) {
	w := ready(t, ipam.Sound())
	one, two := *w.pod("c1", "web-1"), *w.pod("c2", "web-1")
	w.add(&one)
	w.add(&two)
	w.save(ipam.RunStore, 1) // c1 is wired, and takes the name from c2
	seq := w.saves[0][0].Seq
	w.saves[0] = w.saves[0][1:]
	w.step(ipam.Saved{Store: ipam.RunStore, Seq: seq, Err: "disk full"})
	w.calm()
	for _, r := range w.rows {
		if r.Att == two.att {
			t.Errorf("the ADD failed, and its record stays: %+v", r)
		}
	}
}

// TestRecoveredRowIsDurableFirst: what only the kernel knew is answered once it is recorded, also when that takes two tries.
func TestRecoveredRowIsDurableFirst(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	clear(w.rows)
	w.start()
	for len(w.saves[0]) == 0 {
		w.step(w.outcome(w.take(0)))
	}
	again := w.add(b)
	if w.replies[again] != nil {
		t.Fatal("the row is not durable, and the ADD was answered")
	}
	seq := w.saves[0][0].Seq
	w.saves[0] = nil
	w.step(ipam.Saved{Store: ipam.RunStore, Seq: seq, Err: "disk full"})
	if w.replies[again] != nil {
		t.Fatal("the Save failed, and the ADD was answered")
	}
	w.live(5 * time.Second)
	if r := w.answered(again); r.Address != a || w.rows[ipam.Key{Address: a}].Att != b.att {
		t.Errorf("the ADD got %v, the record is %+v", r.Address, w.rows[ipam.Key{Address: a}])
	}
	w.tidy()
}

// TestRuntimeClaimsAHostAddress: an address on a link of the host is no sandbox's, whatever the runtime remembers.
func TestRuntimeClaimsAHostAddress(t *testing.T) {
	w := ready(t, ipam.Sound())
	b := w.pod("c1", "host-network")
	b.ready, b.addr = true, addr("10.0.0.4")
	w.start()
	w.live(time.Minute)
	if r, ok := w.node.Find(b.att); ok {
		t.Errorf("the node's own address became an allocation: %+v", r)
	}
}

// TestForgottenDropOfAnIntent: an ENI has one intent, also when the end of the one before was never durable.
func TestForgottenDropOfAnIntent(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget = 7
	w.start()
	work := func(d time.Duration) { // in which no end of an intent becomes durable
		for end := w.now + d; w.now < end; w.pass(time.Second) {
			for len(w.flight)+len(w.saves[0])+len(w.saves[1]) > 0 {
				if s := w.saves[1]; len(s) > 0 && len(s[0].Put) == 0 {
					w.saves[1] = s[1:]
					w.step(ipam.Saved{Store: ipam.LibStore, Seq: s[0].Seq, Err: "disk full"})
				} else if len(s) > 0 {
					w.save(ipam.LibStore, 1)
				} else if len(w.saves[0]) > 0 {
					w.save(ipam.RunStore, 1)
				} else {
					w.step(w.outcome(w.take(0)))
				}
			}
		}
	}
	work(10 * time.Second)
	w.set.WarmIPTarget = 1
	w.step(ipam.Set{Settings: w.set})
	work(5 * time.Minute)
	intents := map[string]string{}
	for k, r := range w.rows {
		if k.Token == "" {
			continue
		}
		if other := intents[r.Intent.ENI.ID]; other != "" {
			t.Errorf("%s has intents %s and %s", r.Intent.ENI.ID, other, k.Token)
		}
		intents[r.Intent.ENI.ID] = k.Token
	}
	if len(intents) == 0 {
		t.Error("no intent was ever durable: the story does not happen")
	}
	w.start()
	w.live(10 * time.Minute)
	for k := range w.rows {
		if k.Token != "" {
			t.Errorf("intent %s is left", k.Token)
		}
	}
	w.tidy()
}

// TestDoubtOutlivesOneWrongAnswer: EC2 answers from a replica that does not know the ENI yet.
func TestDoubtOutlivesOneWrongAnswer(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.lose(w.untilCall(ipam.AssignIPs), false)
	l := w.untilLook(ipam.LookENI)
	w.step(ipam.Seen{ID: l.ID, What: ipam.LookENI, Complete: true})
	w.live(time.Minute)
	v := ipam.View{}
	if w.node.View(&v); v.Intents != 0 || len(w.eni("eni-0").Addresses) == 0 {
		t.Errorf("the assignment is still in doubt: %+v", v)
	}
}

// TestRecordsOfOneAttachment: an old address that was set aside is no allocation beside the attachment's present one.
func TestRecordsOfOneAttachment(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second ipam.State
		want          string
	}{
		{"set aside first", ipam.Quarantined, ipam.Assigned, "10.0.0.11"},
		{"set aside second", ipam.Assigned, ipam.Quarantined, "10.0.0.10"},
		{"two allocations", ipam.Assigned, ipam.Assigned, "10.0.0.10"},
	} {
		w := newWorld(t, ipam.Sound())
		for i, s := range []ipam.State{c.first, c.second} {
			r := ipam.Row{Address: addr([]string{"10.0.0.10", "10.0.0.11"}[i]), State: s, Att: att("c1")}
			w.rows[r.Key()] = r
		}
		w.start()
		if r, _ := w.node.Find(att("c1")); r.Address != addr(c.want) {
			t.Errorf("%s: the attachment has %v, expected %s", c.name, r.Address, c.want)
		}
		w.tidy()
	}
}

// TestSourceConfiguredLater: a source that becomes configured is asked, also while a daemon recovers.
func TestSourceConfiguredLater(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.Runtime, w.set.NoSweep = false, true
	w.start()
	w.set.Runtime, w.set.NoSweep, w.set.API = true, false, true
	w.step(ipam.Set{Settings: w.set})
	asked := map[ipam.What]bool{}
	for range 100 {
		for _, e := range w.flight {
			if l, ok := e.(*ipam.Look); ok {
				asked[l.What] = true
			}
		}
		w.live(5 * time.Second)
		w.pass(time.Second)
	}
	v := ipam.View{}
	if w.node.View(&v); !v.Serving {
		t.Errorf("the node does not serve: %+v", v.Reasons)
	}
	for _, what := range []ipam.What{ipam.LookRuntime, ipam.LookLeaked, ipam.LookPods} {
		if !asked[what] {
			t.Errorf("%v was never looked at", what)
		}
	}
}

// TestUnassignOfAnEarlierDaemon: its addresses are not given away while it is in doubt, and nothing in use is ever unassigned.
func TestUnassignOfAnEarlierDaemon(t *testing.T) {
	for _, landed := range []bool{false, true} {
		w := newWorld(t, ipam.Sound())
		w.set.WarmIPTarget = 5
		w.start()
		w.live(10 * time.Second)
		w.set.WarmIPTarget = 1
		w.step(ipam.Set{Settings: w.set})
		c := w.untilCall(ipam.UnassignIPs)
		w.set.WarmIPTarget = 5 // the next daemon wants them
		w.start()
		served := w.untilLook(ipam.LookENI)
		var pods []*box
		for _, id := range []string{"c1", "c2", "c3"} {
			b := w.pod(id, "web-"+id)
			w.add(b)
			pods = append(pods, b)
		}
		if landed {
			w.call(c)
		}
		w.step(w.outcome(served))
		for range 300 {
			if w.taken == 0 {
				for _, b := range pods {
					if r, _ := w.node.Find(b.att); slices.Contains(c.Addresses, r.Address) {
						t.Fatalf("%v has %v, and %v are in doubt", b.att, r.Address, c.Addresses)
					}
				}
			}
			w.calm()
			w.pass(time.Second)
			for i := range w.boxes {
				w.boxes[i].ready = true
			}
		}
		for _, b := range pods {
			r, _ := w.node.Find(b.att)
			if r.State != ipam.Assigned {
				t.Errorf("landed %t: %v has %v (%v)", landed, b.att, r.Address, r.State)
			}
		}
		if w.marks[ipam.AddressMissing] > 0 {
			t.Errorf("landed %t: an address was taken away in use", landed)
		}
		v := ipam.View{}
		if w.node.View(&v); v.Intents != 0 || v.Assigned != 3 || v.Waiting != 0 {
			t.Errorf("landed %t: %+v", landed, v)
		}
		w.tidy()
	}
}

// TestSweepMeetsALostCreate: the reply was lost, EC2 throttles the repeat for so long that the sweep takes the ENI for leaked,
// and then the repeat is answered. There is one such ENI, and it goes.
func TestSweepMeetsALostCreate(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmENITarget = 2
	w.start()
	w.lose(w.untilCall(ipam.CreateENI), true)
	var deletion *ipam.Call
	for deletion == nil {
		c := w.until("a mutation", func(e ipam.Effect) bool { _, ok := e.(*ipam.Call); return ok }).(*ipam.Call)
		if c.Action == ipam.DeleteENI {
			deletion = c
			break
		}
		if w.now > time.Hour {
			t.Fatal("the sweep has not found the ENI")
		}
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Throttled}})
	}
	w.step(w.outcome(w.untilCall(ipam.CreateENI)))
	w.tidy()
	w.step(w.outcome(deletion))
	w.live(10 * time.Minute)
	v := ipam.View{}
	if w.node.View(&v); v.Intents != 0 || len(v.ENIs) != 2 || len(w.enis) != 2 || v.Free != 10 {
		t.Errorf("the node has %d ENIs, %d free addresses, %d intents; EC2 has %d ENIs", len(v.ENIs), v.Free, v.Intents, len(w.enis))
	}
	w.tidy()
}

// TestSweepWithoutACluster: nobody has set CLUSTER_NAME. A node finds what it and instances that are gone have leaked, and leaves alone what is
// tagged with a living one or another cluster, or is to be left alone.
func TestSweepWithoutACluster(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.cluster = ""
	leak := func(id, owner, noManage string) {
		w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: id, MAC: "02:00:00:00:09:" + id[len(id)-2:], Subnet: "subnet-1", Status: "available", Owner: owner, OwnerGone: owner != "i-neighbour", Near: owner != "i-far", NoManage: noManage, Created: bootWall}})
	}
	leak("eni-91", instance, "")
	leak("eni-92", "i-neighbour", "")
	leak("eni-93", instance, "true")
	leak("eni-94", "i-dead", "")
	leak("eni-95", "i-dead", "true")
	leak("eni-96", "i-far", "") // another cluster's, or in another VPC
	w.start()
	w.live(3 * time.Hour)
	if w.eni("eni-91") != nil {
		t.Error("what this node has leaked is still there")
	}
	if w.eni("eni-94") != nil {
		t.Error("what an instance that is gone has leaked is still there")
	}
	for _, id := range []string{"eni-92", "eni-93", "eni-95", "eni-96"} {
		if w.eni(id) == nil {
			t.Errorf("%s was deleted: a living neighbour's, tagged no_manage, or of another cluster", id)
		}
	}
}

// TestANeighboursLeakIsLookedAtHourly: nothing here will ever be done about it. What may yet prove to be leaked is looked at every ten minutes.
func TestANeighboursLeakIsLookedAtHourly(t *testing.T) {
	for near, want := range map[bool]int{false: 4, true: 24} {
		w := newWorld(t, ipam.Sound())
		w.cluster = ""
		w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-91", MAC: "02:00:00:00:09:91", Subnet: "subnet-1", Status: "available", Owner: "i-other", Near: near, Created: bootWall}})
		looks := 0
		w.tap = func(_ ipam.Input, effs []ipam.Effect) {
			for _, e := range effs {
				if l, ok := e.(*ipam.Look); ok && l.What == ipam.LookLeaked {
					looks++
				}
			}
		}
		w.start()
		w.live(4 * time.Hour)
		if looks < want-1 || looks > want+1 {
			t.Errorf("near %v: %d looks in four hours, expected about %d", near, looks, want)
		}
	}
}

// TestTwoIntentsOfOneENI: the end of the first was never durable, the ENI was forgotten and found again.
func TestTwoIntentsOfOneENI(t *testing.T) {
	for _, turned := range []bool{false, true} {
		w := ready(t, ipam.Sound())
		v := w.eni("eni-0").copy()
		older := ipam.Row{Intent: &ipam.Intent{Token: "a", Stage: ipam.Created, Doing: ipam.AttachENI, ENI: v}}
		newer := ipam.Row{Intent: &ipam.Intent{Token: "b", Stage: ipam.Ready, Doing: ipam.AssignIPs, Count: 1, ENI: v}}
		if turned {
			older.Intent.Token, newer.Intent.Token = "b", "a"
		}
		w.rows[older.Key()], w.rows[newer.Key()] = older, newer
		w.start()
		w.tidy()
		w.live(10 * time.Minute)
		w.tidy()
		for k := range w.rows {
			if k.Token != "" {
				t.Errorf("intent %s is left", k.Token)
			}
		}
	}
}
