package ipam_test

import (
	"bytes"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// Each of these notices changes of the core that nothing else here noticed: docs/mutation.md has them.

// TestACIDRThatTheVPCGetsIsNotSNATedTo: the host's rules know it with metadata's answer, and keep it when metadata forgets it.
func TestACIDRThatTheVPCGetsIsNotSNATedTo(t *testing.T) {
	w := ready(t, ipam.Sound())
	in := w.look(w.untilLook(ipam.LookIMDS))
	in.IMDS.Instance.VPC = append(in.IMDS.Instance.VPC, netip.MustParsePrefix("100.64.0.0/16"))
	applied := ""
	for _, e := range w.step(in) {
		if p, ok := e.(*ipam.Apply); ok && p.Lane.Kind == ipam.HostLane {
			applied += p.Plan.String()
		}
	}
	if !strings.Contains(applied, `name="10.0.0.0/16 100.64.0.0/16"`) {
		t.Errorf("metadata names another CIDR, and what is applied to the host is\n%s", applied)
	}
	w.live(10 * time.Minute) // metadata names the first one alone
	o := w.kernel.Observe()
	host := dataplane.HostSpec{PrimaryMAC: primaryMAC, NodeAddress: addr("10.0.0.4"), NodePort: true, MTU: w.set.MTU,
		VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16"), netip.MustParsePrefix("100.64.0.0/16")}}
	if left := dataplane.RepairHost(host, o.Index()); !left.Empty() {
		t.Errorf("the host lacks\n%v", left)
	}
}

// TestAnInputStaysTheCallers: what the caller does with it afterwards is nothing to the node, also with metadata's first word after a silence.
func TestAnInputStaysTheCallers(t *testing.T) {
	w := silenced(t, nil)
	look := w.untilLook(ipam.LookIMDS)
	w.silent = false
	in := w.look(look)
	w.step(in)
	before := must.Get(w.node.Encode())(t)
	in.IMDS.Instance.VPC[0] = netip.MustParsePrefix("192.168.0.0/16")
	for i := range in.IMDS.ENIs {
		for k := range in.IMDS.ENIs[i].Addresses {
			in.IMDS.ENIs[i].Addresses[k] = addr("192.168.0.1")
		}
	}
	if !bytes.Equal(before, must.Get(w.node.Encode())(t)) {
		t.Error("the node changed with the caller's slice")
	}
}

// TestAnAddressThatIsGoneIsToldOnce: one that EC2 took back while it cooled is no longer looked for on its ENI.
func TestAnAddressThatIsGoneIsToldOnce(t *testing.T) {
	w, a := lostWhileItCools(t, 40*time.Minute)
	w.live(30 * time.Minute)
	if n := w.marks[ipam.AddressMissing]; n != 1 {
		t.Errorf("that %v is missing is told %d times", a, n)
	}
	if err := w.node.Sane(); err != nil {
		t.Error(err)
	}
}

// TestADetachThatTakesItsTimeIsWaitedFor: an ENI with pods that somebody detaches is attached again when EC2 has let go of it, and not before.
func TestADetachThatTakesItsTimeIsWaitedFor(t *testing.T) {
	w, _, _ := withSecond(t)
	attached := 0
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok && c.Action == ipam.AttachENI {
				attached++
			}
		}
	}
	v := w.eni("eni-1")
	w.kernel.Unplug(v.MAC)
	v.Status = "detaching"
	w.live(10 * time.Minute)
	if attached > 0 {
		t.Errorf("EC2 was asked %d times to attach what it detaches", attached)
	}
	w.eni("eni-1").stranded()
	w.live(5 * time.Minute)
	if v := w.eni("eni-1"); attached == 0 || v.Status != "in-use" {
		t.Errorf("its pods wait: EC2 was asked %d times, and the ENI is %s", attached, v.Status)
	}
}

// TestAPodThatOnlyTheKernelKnows is found whichever pods' links are listed before its own.
func TestAPodThatOnlyTheKernelKnows(t *testing.T) {
	for _, link := range []string{"a-first", "z-last"} {
		w := ready(t, ipam.Sound())
		w.up("c1", "web-1")
		a := w.free()[0]
		plan := dataplane.PodPlan(dataplane.PodSpec{Alias: dataplane.Alias("aws-cni", "c9", "eth0", a), HostVeth: link, Netns: w.kernel.NewNamespace(),
			Address: a, Table: dataplane.MainTable})
		w.apply(plan.Ops...)
		w.step(ipam.Seen{What: ipam.LookKernel})
		w.live(10 * time.Second)
		if r, ok := w.node.Find(att("c9")); !ok || r.State != ipam.Assigned || r.Address != a {
			t.Errorf("behind %s: the record is %+v, %v", link, r, ok)
		}
	}
}

// TestSomebodysENIThatIsGoneIsForgotten: by EC2's word, or where nobody asks EC2 when metadata has not listed it for ten minutes.
func TestSomebodysENIThatIsGoneIsForgotten(t *testing.T) {
	for _, alone := range []bool{false, true} {
		w := newWorld(t, ipam.Sound())
		w.limits.ENIs = 6
		w.set.IMDSOnly = alone
		w.start()
		w.live(time.Minute)
		w.attachForeign("eni-7", 4)
		w.eni("eni-7").NoManage = "true"
		w.live(15 * time.Minute)
		if v := w.seenView(); len(v.Others) != 1 || v.Others[0].ID != "eni-7" {
			t.Fatalf("by metadata alone %v: somebody's ENIs are %+v", alone, v.Others)
		}
		w.gone("eni-7")
		w.live(5 * time.Minute)
		if v := w.seenView(); alone != (len(v.Others) == 1) {
			t.Errorf("by metadata alone %v: after five minutes somebody's ENIs are %+v", alone, v.Others)
		}
		w.live(15 * time.Minute)
		if v := w.seenView(); len(v.Others) != 0 {
			t.Errorf("by metadata alone %v: somebody's ENIs are still %+v", alone, v.Others)
		}
	}
}

// TestSomebodysENIOfAnotherInstance: EC2 says that it is attached elsewhere by now, and it is nothing to this node any more.
func TestSomebodysENIOfAnotherInstance(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.ENIs = 6
	w.start()
	w.live(time.Minute)
	w.attachForeign("eni-7", 4)
	w.eni("eni-7").NoManage = "true"
	w.live(15 * time.Minute)
	v := w.eni("eni-7")
	w.kernel.Unplug(v.MAC)
	v.Instance, v.Status = "i-2", "available" // so that this instance's metadata does not list it
	w.live(10 * time.Minute)
	if v := w.seenView(); len(v.Others) != 0 {
		t.Errorf("somebody's ENIs are %+v", v.Others)
	}
}

// TestFourENIsAreMadeAtOnce, however the demand grows while EC2 takes its time.
func TestFourENIsAreMadeAtOnce(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits = ipam.Limits{ENIs: 15, Addresses: 6}
	w.start()
	w.live(20 * time.Second)
	under := func() (n int) {
		for _, e := range w.flight {
			if c, ok := e.(*ipam.Call); ok && c.Action == ipam.CreateENI {
				n++
			}
		}
		return n
	}
	most := 0
	for want := 10; want <= 50; want += 10 {
		w.set.WarmIPTarget = want
		w.step(ipam.Set{Settings: w.set})
		for end := w.now + 20*time.Second; w.now < end; w.pass(100 * time.Millisecond) {
			for i := 0; i < len(w.flight); i++ {
				if c, ok := w.flight[i].(*ipam.Call); !ok || c.Action != ipam.CreateENI {
					w.step(w.outcome(w.take(i)))
					i = -1
				}
			}
			for s := range w.saves {
				if len(w.saves[s]) > 0 {
					w.save(ipam.Store(s), len(w.saves[s]))
				}
			}
			most = max(most, under())
		}
	}
	if most != 4 {
		t.Errorf("up to %d ENIs were made at once, expected 4", most)
	}
}

// TestRequestsThatWaitAreBounded: who comes when thousands wait is told to come again.
func TestRequestsThatWaitAreBounded(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start() // and nothing is answered: it recovers
	const crowd = 4200
	for i := range crowd {
		w.step(ipam.Add{Req: w.req(), Att: att(strconv.Itoa(i)), Pod: ipam.Pod{Name: "p"}, Netns: uint64(i + 1)})
	}
	if len(w.replies) != crowd-4096 {
		t.Errorf("of %d requests %d were answered, expected all but 4096", crowd, len(w.replies))
	}
	for _, r := range w.replies {
		if r.Err == nil || r.Err.Code != ipam.CodeTryAgain {
			t.Fatalf("answered with %+v", r)
		}
	}
}

// TestDefaultsAreUpstreams: node ports are served (AWS_VPC_CNI_NODE_PORT_SUPPORT), and there are a runtime and an API server to ask.
func TestDefaultsAreUpstreams(t *testing.T) {
	if d := ipam.Defaults(); !d.NodePort || !d.Runtime || !d.API || d.ExternalSNAT || d.WarmENITarget != 1 || d.MTU != 9001 || d.VethPrefix != "eni" {
		t.Errorf("%+v", d)
	}
}

// TestARecordsLinkOfAnotherAlias: another CNI's record has no MAC, and that of a link which somebody else's alias names is not the pod's.
func TestARecordsLinkOfAnotherAlias(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	r := w.rows[ipam.Key{Address: a}]
	r.Netns, r.MAC, r.Veth = 0, "", ""
	w.rows[r.Key()] = r
	w.kernel.SetLinkAlias(w.kernel.VethOf(b.att.ContainerID), "theirs")
	w.start()
	w.live(time.Minute)
	if r := w.rows[ipam.Key{Address: a}]; r.MAC != "" {
		t.Errorf("the record says the MAC %s", r.MAC)
	}
}

// TestAMACThatNobodyRecordedIsAWarning: after the loss of all records only the pod itself knows what its neighbour entry says, and an operator has to
// hear of it.
func TestAMACThatNobodyRecordedIsAWarning(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	veth := w.kernel.VethOf(b.att.ContainerID)
	w.kernel.SetLinkMAC(veth, "0a:11:22:33:44:55")
	w.kernel.SetLinkAlias(veth, "")
	clear(w.rows)
	w.start()
	w.live(time.Minute)
	if told, warned := w.marks[ipam.MACUnrecorded], w.warned[ipam.MACUnrecorded]; told != 1 || warned != 1 {
		t.Errorf("told %d times, of which %d are warnings; expected one", told, warned)
	}
}

// TestADELBehindAnADDThatTimesOutWaitsForTheStart: nothing is taken from a pod by records alone, which nobody has compared with the kernel yet.
func TestADELBehindAnADDThatTimesOutWaitsForTheStart(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.start()
	first, second := w.req(), w.req()
	w.step(ipam.Add{Req: first, Att: b.att, Pod: b.pod, Netns: b.netns, Deadline: w.now + 3*time.Second})
	w.step(ipam.Del{Req: second, Att: b.att, Pod: b.pod, Intent: true, Deadline: w.now + time.Minute}) // one that found no daemon
	w.tap = func(in ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e.(type) {
			case *ipam.Save, *ipam.Apply:
				t.Errorf("at %v the kernel has not been seen, and %T is wanted", w.now, e)
			}
		}
	}
	w.pass(4 * time.Second) // and nothing is answered
	if r := w.replies[first]; r == nil || r.Err == nil || r.Err.Code != ipam.CodeTryAgain {
		t.Errorf("the ADD is answered %+v", r)
	}
	w.tap, b.ready = nil, false
	w.live(10 * time.Second)
	if r := w.replies[second]; r == nil || r.Err != nil || w.state(a) != ipam.Cooling {
		t.Errorf("the DEL is answered %+v, and %v is %v", r, a, w.state(a))
	}
}

// TestAnOldDrainSparesWhatCools: a drain's intent whose drop never became durable comes back when addresses of the ENI cool. Whoever gets one of
// them from EC2 meanwhile gets what is still on its way to the pod that had it.
func TestAnOldDrainSparesWhatCools(t *testing.T) {
	w, boxes, _ := withSecond(t)
	w.set.CoolDown = 20 * time.Minute
	w.step(ipam.Set{Settings: w.set})
	v := *w.eni("eni-1")
	cooling := 0
	for _, b := range boxes {
		if slices.Contains(v.Addresses, b.addr) {
			w.down(b)
			b.ready = false
			cooling++
		}
	}
	if cooling == 0 {
		t.Fatal("no pod was on eni-1: the test shows nothing")
	}
	if !w.outlivesADrain(&v) {
		t.Errorf("eni-1 was detached while %d of its addresses cool", cooling)
	}
}

// TestEachRoundOfAGCLooksAnew: a look at the kernel that was on its way when the first round ended is of the first.
func TestEachRoundOfAGCLooksAnew(t *testing.T) {
	p := ipam.Sound()
	p.Collect = func(a ipam.Absentee) bool { return a.Lists > 1 }
	w := ready(t, p)
	w.up("c0", "web-0")
	w.live(time.Second)
	asked := func(what ipam.What) int {
		return slices.IndexFunc(w.flight, func(e ipam.Effect) bool { l, ok := e.(*ipam.Look); return ok && l.What == what })
	}
	await := func(what ipam.What) ipam.Effect {
		for asked(what) < 0 {
			at, ok := w.node.Next()
			if !ok {
				t.Fatalf("the node never looks at %v", what)
			}
			w.now = max(w.now, at)
			w.step(nil) // one step, and no more: the next one may end the round
		}
		return w.take(asked(what))
	}
	gc := ipam.GC{Req: w.req(), Network: "aws-cni"}
	w.step(gc)
	kernel, runtime := await(ipam.LookKernel), await(ipam.LookRuntime)
	w.step(w.outcome(kernel))
	w.step(ipam.Seen{What: ipam.LookKernel}) // something has happened: the kernel is looked at once more
	kernel = await(ipam.LookKernel)
	w.step(w.outcome(runtime)) // the first round ends
	w.step(w.outcome(kernel))
	w.step(w.outcome(await(ipam.LookRuntime)))
	if r := w.replies[gc.Req]; r != nil {
		t.Errorf("the second round ended without a look of its own at the kernel: %+v", r)
	}
	w.live(10 * time.Second)
	w.answered(gc.Req)
}

// TestACHECKBesideACoolDownIsAnswered: one that comes while the kernel is being looked at waits for the next look, which may show the same.
func TestACHECKBesideACoolDownIsAnswered(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.set.CoolDown = time.Hour
	w.step(ipam.Set{Settings: w.set})
	w.up("c1", "web-1")
	b, _ := w.up("c2", "web-2")
	w.down(b)
	b.ready = false
	w.live(time.Minute)
	w.step(ipam.Seen{What: ipam.LookKernel})
	early := w.untilLook(ipam.LookKernel)
	check := ipam.Check{Req: w.req(), Att: att("c1"), Netns: w.boxes[0].netns}
	w.step(check)
	w.step(w.look(early))
	w.live(5 * time.Second)
	if r := w.replies[check.Req]; r == nil || r.Err != nil {
		t.Errorf("the CHECK is answered %+v", r)
	}
}

// TestACHECKIsAnsweredByALookOfItsOwn: what was read before the CHECK came says nothing of what it asks for.
func TestACHECKIsAnsweredByALookOfItsOwn(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	w.live(time.Minute)
	w.step(ipam.Seen{What: ipam.LookKernel})
	early := w.look(w.untilLook(ipam.LookKernel))
	w.kernel.RemoveRoutes(dataplane.MainTable)
	check := ipam.Check{Req: w.req(), Att: b.att, Netns: b.netns}
	w.step(check)
	w.step(early)
	if r := w.replies[check.Req]; r != nil {
		t.Fatalf("a look of before answers it: %+v", r)
	}
	w.live(time.Second)
	if r := w.replies[check.Req]; r == nil || r.Err == nil {
		t.Errorf("the CHECK is answered %+v", r)
	}
}

// TestAddressesWaitNoLongerThanTheirENI: with metadata alone, an ENI whose link comes late is taken when it has been listed for ten minutes, and its
// addresses with it.
func TestAddressesWaitNoLongerThanTheirENI(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.IMDSOnly = true
	w.attachForeign("eni-8", 2)
	w.kernel.Unplug(w.eni("eni-8").MAC)
	a := w.eni("eni-8").Addresses[0]
	w.step(ipam.Start{Boot: "b", Rebooted: true, Booted: w.now, Seed: 9, Daemon: self, Version: w.version, Wall: bootWall, Settings: w.set})
	w.live(9 * time.Minute)
	if s := w.state(a); s == ipam.Free {
		t.Errorf("after nine minutes without its ENI's link %v is %v", a, s)
	}
	w.kernel.Plug(w.eni("eni-8").MAC)
	w.live(5 * time.Minute)
	if s := w.state(a); s != ipam.Free {
		t.Errorf("after 14 minutes in metadata's list %v is %v", a, s)
	}
}

// TestADeletionOfAnENIInServiceBeginsAnew: an intent of an earlier daemon says that an ENI is to be deleted, and EC2 that it is attached. What the host
// has of it goes before it does.
func TestADeletionOfAnENIInServiceBeginsAnew(t *testing.T) {
	w, boxes, _ := withSecond(t)
	v := *w.eni("eni-1")
	for _, b := range boxes {
		if slices.Contains(v.Addresses, b.addr) {
			w.down(b)
			b.ready = false
		}
	}
	w.live(time.Minute)
	stale := ipam.Row{Intent: &ipam.Intent{Token: "enilab-old", Stage: ipam.Tombstoned, Doing: ipam.DeleteENI,
		ENI: ipam.ENI{ID: v.ID, MAC: v.MAC, Device: v.Device, Primary: v.Primary, Addresses: v.Addresses, Attachment: v.Attachment, Instance: v.Instance}}}
	w.rows[stale.Key()] = stale
	unwired, detached := false, false
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e := e.(type) {
			case *ipam.Apply:
				unwired = unwired || e.Lane.ENI == "eni-1" && slices.ContainsFunc(e.Plan.Ops, func(o dataplane.Op) bool { return o.Kind == dataplane.RemoveRule })
			case *ipam.Call:
				if e.Action == ipam.DetachENI && !detached {
					if detached = true; !unwired {
						t.Errorf("at %v eni-1 is detached, and the host's rules lead to it", w.now)
					}
				}
			}
		}
	}
	w.start()
	w.live(20 * time.Minute)
	if !detached {
		t.Error("eni-1 is not detached: the test shows nothing")
	}
}

// TestTheNameOfALinkIsLearned: a record of version 1 does not say what the pod's link is called, and a kernel whose first answer leaves the link out
// says it later. The daemon would rename the link to nothing, again and again.
func TestTheNameOfALinkIsLearned(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web")
	w.version = 1
	w.start() // what is stored from here on is of version 1
	w.live(time.Minute)
	w.start()
	look := w.untilLook(ipam.LookKernel)
	in := w.look(look)
	in.Kernel.Links = slices.DeleteFunc(in.Kernel.Links, func(l dataplane.Link) bool { return strings.Contains(l.Alias, b.att.ContainerID) })
	w.step(in)
	w.tap = func(in ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if a, ok := e.(*ipam.Apply); ok && a.Plan.Ops[0].Kind == dataplane.RenameLink {
				t.Errorf("at %v, for %T%s, the node wants%s", w.now, in, inShort(in), effectInShort(e))
			}
		}
	}
	w.live(10 * time.Minute)
	if l := w.kernel.Observe().Links; !slices.ContainsFunc(l, func(l dataplane.Link) bool { return strings.Contains(l.Alias, b.att.ContainerID) }) {
		t.Errorf("the pod's link is gone: %+v", l)
	}
}
