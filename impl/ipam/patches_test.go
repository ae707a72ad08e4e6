package ipam_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// Each of these notices a change of one line that nothing else here noticed: testdata/patches has them.

// withhold answers everything truly but looks at one source, until nothing else is outstanding, and returns the look.
func (w *world) withhold(what ipam.What) *ipam.Look {
	w.t.Helper()
	for range 10_000 {
		held, next := (*ipam.Look)(nil), -1
		for i, e := range w.flight {
			if l, ok := e.(*ipam.Look); ok && l.What == what {
				held = l
			} else if next < 0 {
				next = i
			}
		}
		switch {
		case len(w.saves[0]) > 0:
			w.save(ipam.RunStore, len(w.saves[0]))
		case len(w.saves[1]) > 0:
			w.save(ipam.LibStore, len(w.saves[1]))
		case next >= 0:
			w.step(w.outcome(w.take(next)))
		default:
			return held
		}
	}
	w.t.Fatal("the node never comes to rest")
	return nil
}

// withholdFor is withhold for a while.
func (w *world) withholdFor(d time.Duration, what ipam.What) {
	w.t.Helper()
	for end := w.now + d; ; {
		w.withhold(what)
		at, ok := w.node.Next()
		if !ok || at > end {
			w.now = max(w.now, end)
			return
		}
		w.pass(max(at-w.now, 0))
	}
}

func (w *world) seenView() (v ipam.View) { w.node.View(&v); return v }

// TestRecoveryWaitsForTheRuntime: of a pod of another CNI's only the runtime can say whose it is.
func TestRecoveryWaitsForTheRuntime(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	clear(w.rows)
	w.kernel.SetLinkAlias(dataplane.HostVethName("eni", "default", "web-1"), "")
	w.start()
	w.withholdFor(3*time.Second, ipam.LookRuntime)
	if w.seenView().Serving {
		t.Fatal("the runtime has not answered, and the daemon serves")
	}
	w.live(5 * time.Second)
	if r, ok := w.node.Find(b.att); !ok || r.Address != a {
		t.Errorf("the pod that the runtime lists is %+v", r)
	}
}

// TestNothingIsGivenBackOnAnUnbelievedRuntime: the list lacks the daemon's own sandbox; an ENI too many is not even drained.
func TestNothingIsGivenBackOnAnUnbelievedRuntime(t *testing.T) {
	w := grown(t, ipam.Sound())
	for range 100 {
		l := w.withhold(ipam.LookRuntime)
		if l != nil {
			in := w.look(l)
			in.Sandboxes = in.Sandboxes[1:]
			for i, e := range w.flight {
				if e == ipam.Effect(l) {
					w.take(i)
					break
				}
			}
			w.step(in)
			continue
		}
		at, ok := w.node.Next()
		if !ok || at > 10*time.Minute {
			break
		}
		w.pass(max(at-w.now, 0))
	}
	if w.now < 3*time.Minute || w.marks[ipam.ENIDrained] != 0 || w.eni("eni-1") == nil {
		t.Errorf("at %v the ENI was drained %d times, or is gone", w.now, w.marks[ipam.ENIDrained])
	}
}

// TestNoENIBeforeTheSurvey: before EC2 has said which ENIs are attached, metadata may lack one.
func TestNoENIBeforeTheSurvey(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmENITarget = 2
	made := func() int { return len(w.enis) - 1 }
	w.start()
	w.withholdFor(20*time.Second, ipam.LookAttached)
	if !w.seenView().Serving || made() != 0 {
		t.Fatalf("serving %t; %d ENIs were made, and EC2 has not said which are attached", w.seenView().Serving, made())
	}
	w.live(30 * time.Second)
	if made() == 0 {
		t.Error("EC2 has answered, and no ENI is made")
	}
}

// TestARebootEndsWhatTheRecordsSpeakOf: the pods of the records are gone with the tmpfs that should have had them.
func TestARebootEndsWhatTheRecordsSpeakOf(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	rows := w.stored()
	w.kernel.CloseNamespace(b.netns)
	w.boxes = nil
	w.flight, w.saves = nil, [2][]*ipam.Save{}
	w.node = must.Get(ipam.New(w.policy))(t)
	w.contract.Reset()
	w.step(ipam.Start{Boot: "another", Seed: 9, Daemon: self, Version: w.version, Wall: bootWall, Cluster: "c", Settings: w.set, Rows: rows, Rebooted: true})
	w.live(2 * time.Second)
	if r, ok := w.node.Find(att("c1")); ok {
		t.Errorf("after a reboot %v is still %+v", a, r)
	}
}

// TestGCSparesWhatIsNewerThanItsList: an attachment that was made after the caller had made its list is not meant by it: nobody is even asked about it.
func TestGCSparesWhatIsNewerThanItsList(t *testing.T) {
	p := ipam.Sound()
	p.Collect = func(a ipam.Absentee) bool { return a.KernelLive || a.Lists > 1 } // all that it is asked about, after two looks
	w := ready(t, p)
	old, _ := w.up("c0", "web-0")
	gone := old.att
	w.live(time.Second)
	gc := ipam.GC{Req: w.req(), Network: "aws-cni"}
	w.step(gc)
	w.up("c1", "web-1")
	w.live(10 * time.Second)
	w.answered(gc.Req)
	if _, ok := w.node.Find(att("c1")); !ok {
		t.Error("GC released what is newer than its list")
	}
	if _, ok := w.node.Find(gone); ok {
		t.Error("GC released nothing")
	}
}

// TestDelEndsAWaitingAdd: its caller is dead, or is told now, and the next address is another pod's.
func TestDelEndsAWaitingAdd(t *testing.T) {
	w := small(t)
	first, _ := w.up("c1", "web-1")
	gone := *first
	w.up("c2", "web-2")
	w.down(&gone)
	b := w.pod("c3", "web-3")
	add := w.add(b)
	if w.replies[add] != nil {
		t.Fatalf("the ADD does not wait: %+v", w.replies[add])
	}
	w.answered(w.del(b))
	if r := w.replies[add]; r == nil || r.Err == nil || r.Err.Code != ipam.CodeTryAgain {
		t.Errorf("after the DEL the ADD that waited has the answer %+v", r)
	}
}

// TestAQuarantinedAddressKeepsItsRules: what is in use by who knows whom goes on working.
func TestAQuarantinedAddressKeepsItsRules(t *testing.T) {
	w, a := quarantined(t)
	w.kernel.AddForeignRule(dataplane.Rule{Priority: dataplane.PriorityToPod, To: prefix(a), Table: dataplane.MainTable})
	w.kernel.SetLinkAlias("veth9", "gone")
	w.kernel.Apply(dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.DeleteVeth, Alias: "gone"}}}, 0, 1)
	removed := w.marks[ipam.ResidueRemoved]
	early := false
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if p, ok := e.(*ipam.Apply); ok && p.Lane.Kind == ipam.HostLane && w.marks[ipam.QuarantineEnded] == 0 {
				early = true
			}
		}
	}
	w.live(5 * time.Minute)
	if early {
		t.Error("rules of an address were taken away while it was set aside")
	}
	if w.marks[ipam.QuarantineEnded] != 1 || w.marks[ipam.ResidueRemoved] == removed {
		t.Errorf("the quarantine ended %d times, and what it had protected is still there", w.marks[ipam.QuarantineEnded])
	}
}

// quarantined is a node that has set an address aside: a stranger uses it.
func quarantined(t *testing.T) (*world, netip.Addr) {
	t.Helper()
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.down(b)
	b.ready = false
	w.stranger(a)
	w.live(5 * time.Minute)
	if w.seenView().Quarantined != 1 {
		t.Fatalf("the address of the stranger is not set aside: %+v", w.seenView())
	}
	return w, a
}

// stranger puts an address into a namespace of somebody else's, behind a link without an alias.
func (w *world) stranger(a interface{ String() string }) {
	w.t.Helper()
	plan := dataplane.PodPlan(dataplane.PodSpec{Alias: "not-ours", HostVeth: "veth9", Netns: w.kernel.NewNamespace(), Address: addr(a.String()), Table: dataplane.MainTable})
	if _, err := w.kernel.Apply(plan, 0, len(plan.Ops)); err != nil {
		w.t.Fatal(err)
	}
	w.kernel.SetLinkAlias("veth9", "")
}

// TestAnOlderLookSaysNothing: an observation that was asked for before the pod was wired is no witness against it (contract 8).
func TestAnOlderLookSaysNothing(t *testing.T) {
	p := ipam.Sound()
	judged := 0
	p.Gone = func(a ipam.Absentee) bool {
		if a.KernelAbsent > 0 {
			judged++
		}
		return false
	}
	w := ready(t, p)
	l := w.untilLook(ipam.LookKernel)
	before := w.look(l)
	w.up("c1", "web-1")
	w.step(before)
	if judged != 0 {
		t.Error("a pod was missed in an observation that is older than it")
	}
	w.live(time.Minute)
	if judged != 0 {
		t.Error("a living pod is missed")
	}
}

// TestAQuarantineEndsAfterTwoLooks: one may be of a moment between two.
func TestAQuarantineEndsAfterTwoLooks(t *testing.T) {
	w, _ := quarantined(t)
	w.kernel.SetLinkAlias("veth9", "gone")
	w.kernel.Apply(dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.DeleteVeth, Alias: "gone"}}}, 0, 1)
	looks := 0
	w.tap = func(in ipam.Input, _ []ipam.Effect) {
		if s, ok := in.(ipam.Seen); ok && s.What == ipam.LookKernel && s.Complete && w.marks[ipam.QuarantineEnded] == 0 {
			looks++
		}
	}
	w.live(5 * time.Minute)
	if w.marks[ipam.QuarantineEnded] != 1 || looks < 2 {
		t.Errorf("the quarantine ended %d times, after %d looks; expected once, after two", w.marks[ipam.QuarantineEnded], looks)
	}
}

// TestARestoredCoolDownIsWhole: the record of a release is older than the loss of the address, which may be the last thing that the daemon did.
// The cool-down counts from the next one's start, but not from more than ten seconds after the record.
func TestARestoredCoolDownIsWhole(t *testing.T) {
	for _, c := range []struct{ dead, counted time.Duration }{{0, 0}, {4 * time.Second, 4 * time.Second}, {9 * time.Second, 9 * time.Second}, {50 * time.Second, 10 * time.Second}} {
		t.Run(c.dead.String(), func(t *testing.T) {
			w := newWorld(t, ipam.Sound())
			w.set.CoolDown = time.Minute
			w.start()
			w.calm()
			b, a := w.up("c1", "web-1")
			w.down(b)
			released := w.rows[ipam.Key{Address: a}].ReleasedAt
			w.boxes = nil
			w.now += c.dead
			w.start()
			w.live(released + c.counted + w.set.CoolDown - 100*time.Millisecond - w.now)
			if v := w.seenView(); v.Cooling != 1 {
				t.Errorf("%v after the record the address is free: %+v", w.now-released, v)
			}
			w.live(5 * time.Second)
			if v := w.seenView(); v.Cooling != 0 {
				t.Errorf("%v after the record the address still cools: %+v", w.now-released, v)
			}
		})
	}
}

// TestSettingsReachTheHostAtOnce: what they say about SNAT does not wait for the next look at the kernel.
func TestSettingsReachTheHostAtOnce(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.set.ExternalSNAT = !w.set.ExternalSNAT
	for _, e := range w.step(ipam.Set{Settings: w.set}) {
		if a, ok := e.(*ipam.Apply); ok && a.Lane.Kind == ipam.HostLane {
			return
		}
	}
	t.Error("nothing is applied to the host")
}

// TestRecordsThatCannotBeReadAreTold: once, with what is wrong with them.
func TestRecordsThatCannotBeReadAreTold(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.step(ipam.Start{Boot: "b", Seed: 1, Daemon: self, Version: w.version, Wall: bootWall, Cluster: "c", Settings: w.set, Unread: "ipam.json: broken"})
	if w.marks[ipam.CheckpointUnread] != 1 {
		t.Errorf("told %d times", w.marks[ipam.CheckpointUnread])
	}
}

// TestDelBehindARepair: it begins when the repair has ended.
func TestDelBehindARepair(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	plan := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RemoveRule, Priority: dataplane.PriorityToPod, Addr: a, Table: dataplane.MainTable}}}
	if _, err := w.kernel.Apply(plan, 0, 1); err != nil {
		t.Fatal(err)
	}
	w.step(ipam.Seen{What: ipam.LookKernel}) // a hint
	repair := w.until("a repair", func(e ipam.Effect) bool { p, ok := e.(*ipam.Apply); return ok && p.Lane.Kind == ipam.PodLane })
	del := w.del(b)
	w.step(w.outcome(repair))
	w.calm()
	w.answered(del)
}
