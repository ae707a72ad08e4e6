package ipam_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// grown is a node with a second ENI that is too much from now on.
func grown(t testing.TB, p *ipam.Policy) *world {
	w := newWorld(t, p)
	w.set.WarmENITarget = 2
	w.start()
	w.live(30 * time.Second)
	if v := w.eni("eni-1"); v == nil || len(v.Addresses) != 5 {
		t.Fatalf("the second ENI is %+v", v)
	}
	w.set.WarmENITarget = 1
	w.step(ipam.Set{Settings: w.set})
	return w
}

func TestDrain(t *testing.T) {
	w := grown(t, ipam.Sound())
	w.live(50 * time.Second)
	if w.eni("eni-1") == nil {
		t.Error("it was given back before it was too much for a minute")
	}
	w.live(time.Minute)
	if v := w.eni("eni-1"); v != nil {
		t.Errorf("the ENI is still there: %+v", v)
	}
	w.tidy()
}

// TestDrainStoppedByAUse: there is too much even without the ENI that is drained, and the runtime says that a sandbox has one
// of its addresses. It is asked again, every two minutes, and not as fast as it answers.
func TestDrainStoppedByAUse(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmENITarget = 3
	w.enis[0].Addresses = w.fresh(10)
	w.start()
	w.live(30 * time.Second)
	w.set.WarmENITarget = 1
	w.step(ipam.Set{Settings: w.set})
	b := w.pod("c1", "web-1")
	b.ready, b.addr = true, w.eni("eni-1").Addresses[2]
	w.live(5*time.Minute + 30*time.Second)
	if got := w.marks[ipam.DrainStopped]; got < 2 || got > 6 {
		t.Errorf("the drain was stopped %d times in five minutes", got)
	}
	if w.eni("eni-1") == nil {
		t.Fatal("the ENI was given back")
	}
	w.boxes = nil
	w.live(5 * time.Minute)
	if v := w.eni("eni-1"); v != nil {
		t.Errorf("the use has ended, and the ENI is still there: %+v", v)
	}
}

// shape is what a step wanted, in words: Reply "add ok 10.0.0.10", Save "run 10.0.0.10 assigned", Apply "pod create-veth", Look, Call.
func (w *world) shape(effs []ipam.Effect) string {
	var out []string
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Reply:
			s := e.Verb.String() + " ok"
			if e.Address.IsValid() {
				s += " " + e.Address.String()
			}
			if e.Err != nil {
				s = e.Verb.String() + " error " + strconv.Itoa(e.Err.Code)
			}
			out = append(out, s)
		case *ipam.Save:
			s := "save"
			for i := range e.Put {
				if e.Put[i].Intent == nil {
					s += " " + e.Put[i].Address.String() + " " + e.Put[i].State.String()
				} else {
					s += " " + e.Put[i].Intent.Doing.String()
				}
			}
			for _, k := range e.Drop {
				s += " drop " + strings.TrimPrefix(k.Address.String(), "invalid IP")
			}
			out = append(out, s)
		case *ipam.Apply:
			out = append(out, "apply "+e.Lane.String()+" "+e.Plan.Ops[0].Kind.String())
		case *ipam.Call:
			out = append(out, "call "+e.Action.String())
		}
	}
	return strings.Join(out, ", ")
}

// still is a node that serves and has as many ENIs as it may have, so that a story is about its pods.
func still(t testing.TB) *world {
	w := newWorld(t, ipam.Sound())
	w.set.MaxENI = 1
	w.start()
	w.live(10 * time.Second)
	return w
}

// then steps the node and compares what it wants.
func (w *world) then(in ipam.Input, want string) {
	w.t.Helper()
	if got := w.shape(w.step(in)); got != want {
		w.t.Errorf("at %v, %T:\n got %q\nwant %q", w.now, in, got, want)
	}
}

// durable is the outcome of all Saves of RunStore under way.
func (w *world) durable() ipam.Saved {
	k := len(w.saves[0])
	if k == 0 {
		w.t.Helper()
		w.t.Fatal("nothing is being saved")
	}
	seq := w.saves[0][k-1].Seq
	w.endure(ipam.RunStore, k)
	return ipam.Saved{Store: ipam.RunStore, Seq: seq}
}

// notDurable is their failure.
func (w *world) notDurable() ipam.Saved {
	seq := w.saves[0][len(w.saves[0])-1].Seq
	w.saves[0] = nil
	return ipam.Saved{Store: ipam.RunStore, Seq: seq, Err: "disk full"}
}

// ran is the true outcome of the Apply that was wanted last.
func (w *world) ran() ipam.Input {
	for i := len(w.flight) - 1; i >= 0; i-- {
		if _, ok := w.flight[i].(*ipam.Apply); ok {
			return w.outcome(w.take(i))
		}
	}
	w.t.Helper()
	w.t.Fatal("no plan is being applied")
	return nil
}

func (w *world) adding(b *box) ipam.Add {
	return ipam.Add{Req: w.req(), Att: b.att, Pod: b.pod, Netns: b.netns}
}

func (w *world) deleting(b *box) ipam.Del {
	return ipam.Del{Req: w.req(), Att: b.att, Pod: b.pod, Netns: b.netns}
}

func TestAddAndDel(t *testing.T) {
	w := still(t)
	b := w.pod("c1", "web-1")
	w.then(w.adding(b), "save 10.0.0.10 assigned")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 create-veth")
	w.then(w.ran(), "ADD ok 10.0.0.10")

	w.then(w.adding(b), "") // again: kubelet and runtime repeat after a crash
	w.then(w.outcome(w.take(0)), "ADD ok 10.0.0.10")
	elsewhere := w.adding(b)
	elsewhere.Netns++
	w.then(elsewhere, "ADD error 100")

	w.then(w.deleting(b), "save 10.0.0.10 cooling")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
	w.then(w.ran(), "DEL ok")
	w.then(w.deleting(b), "DEL ok")                    // again: containerd sends at least two
	w.then(w.deleting(w.pod("c9", "web-1")), "DEL ok") // never seen, and a pod of that name
	w.then(w.adding(b), "save 10.0.0.11 assigned")     // the longest free one, not the one that cools
}

func TestAddBehindDel(t *testing.T) {
	w := still(t)
	b, _ := w.up("c1", "web-1")
	w.then(w.deleting(b), "save 10.0.0.10 cooling")
	w.then(w.adding(b), "")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
	w.then(w.ran(), "DEL ok, save 10.0.0.11 assigned")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 create-veth")
	w.then(w.ran(), "ADD ok 10.0.0.11")
}

func TestDelBehindAdd(t *testing.T) {
	w := still(t)
	b := w.pod("c1", "web-1")
	w.then(w.adding(b), "save 10.0.0.10 assigned")
	w.then(w.deleting(b), "")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 create-veth")
	w.then(w.ran(), "ADD ok 10.0.0.10, save 10.0.0.10 cooling")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
	w.then(w.ran(), "DEL ok")
}

func TestDelIsRetried(t *testing.T) {
	w := still(t)
	b, _ := w.up("c1", "web-1")
	w.then(w.deleting(b), "save 10.0.0.10 cooling")
	w.then(w.notDurable(), "DEL error 11")
	w.now += time.Second
	w.then(nil, "save 10.0.0.10 cooling")
	w.then(w.deleting(b), "") // the runtime's own retry waits for ours
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
	failed := w.until("the removal", func(e ipam.Effect) bool { a, ok := e.(*ipam.Apply); return ok && a.Lane.Kind == ipam.PodLane }).(*ipam.Apply)
	w.then(ipam.Applied{ID: failed.ID, Err: &dataplane.Error{Text: "ENOBUFS"}}, "")
	w.now += 2 * time.Second
	w.then(nil, "save 10.0.0.10 cooling")
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
	w.then(w.ran(), "DEL ok")
	if w.kernel.Holders(addr("10.0.0.10")) != 0 {
		t.Error("the address is still in a namespace")
	}
}

func TestSaveOfAnAddFails(t *testing.T) {
	w := still(t)
	b := w.pod("c1", "web-1")
	w.then(w.adding(b), "save 10.0.0.10 assigned")
	w.then(w.notDurable(), "ADD error 11")
	if _, ok := w.node.Find(b.att); ok {
		t.Error("the allocation is still there")
	}
	w.then(w.adding(b), "save 10.0.0.11 assigned")
}

func TestDeadlineDuringSaveAndApply(t *testing.T) {
	for _, during := range []string{"save", "apply"} {
		w := still(t)
		b := w.pod("c1", "web-1")
		in := w.adding(b)
		in.Deadline = w.now + 5*time.Second
		w.then(in, "save 10.0.0.10 assigned")
		if during == "apply" {
			w.then(w.durable(), "apply pod/aws-cni/c1/eth0 create-veth")
		}
		w.now += 4500 * time.Millisecond // half a second before, so that the caller still hears it
		w.then(nil, "ADD error 11")
		if during == "save" {
			w.then(w.durable(), "save 10.0.0.10 cooling") // nothing was wired
		} else {
			w.then(w.ran(), "save 10.0.0.10 cooling")
		}
		w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
		w.then(w.ran(), "")
		if w.marks[ipam.AddUndone] != 1 || w.kernel.Holders(addr("10.0.0.10")) != 0 {
			t.Errorf("deadline during %s: the ADD was not undone: %v", during, w.marks)
		}
	}
}

func TestGoneEndsTheReplyOnly(t *testing.T) {
	w := still(t)
	in := w.adding(w.pod("c1", "web-1"))
	w.then(in, "save 10.0.0.10 assigned")
	w.then(ipam.Gone{Req: in.Req}, "")
	w.then(w.durable(), "save 10.0.0.10 cooling")
}

func TestOccupiedName(t *testing.T) {
	w := still(t)
	b := w.pod("c1", "web-1")
	w.then(w.adding(b), "save 10.0.0.10 assigned")
	first := "create-veth" // and from then on whatever has the name gives it up
	for i, next := range []string{"11", "12", "13"} {
		last := "10.0.0.1" + strconv.Itoa(i)
		w.then(w.durable(), "apply pod/aws-cni/c1/eth0 "+first)
		first = "rename-link"
		a := w.until("the plan", func(e ipam.Effect) bool { _, ok := e.(*ipam.Apply); return ok }).(*ipam.Apply)
		w.then(ipam.Applied{ID: a.ID, Err: &dataplane.Error{Kind: dataplane.Exists}}, "save "+last+" cooling")
		w.then(w.durable(), "apply pod/aws-cni/c1/eth0 delete-veth")
		w.then(w.ran(), "save 10.0.0."+next+" assigned")
	}
	w.then(w.durable(), "apply pod/aws-cni/c1/eth0 "+first)
	a := w.until("the plan", func(e ipam.Effect) bool { _, ok := e.(*ipam.Apply); return ok }).(*ipam.Apply)
	w.then(ipam.Applied{ID: a.ID, Err: &dataplane.Error{Kind: dataplane.Exists}}, "ADD error 5, save 10.0.0.13 cooling") // three tries are enough
}

func TestVersions(t *testing.T) {
	w := still(t)
	for _, c := range []struct {
		version int
		want    string
	}{{0, "DEL ok"}, {1, "DEL ok"}, {2, "DEL ok"}, {3, "DEL ok"}, {4, "DEL error 1"}} {
		in := w.deleting(&box{att: att("c1")})
		in.Version = c.version
		w.then(in, c.want)
	}
	in := w.adding(w.pod("c1", "web-1"))
	in.Version = 4
	w.then(in, "ADD error 1")
}

// TestRecoveryFromTheKernelAlone: both stores are lost; the aliases of the host veths are the exact keys.
func TestRecoveryFromTheKernelAlone(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	dead, _ := w.up("c2", "web-2")
	w.kernel.CloseNamespace(dead.netns)
	clear(w.rows)
	w.start()
	w.live(10 * time.Second)
	r, ok := w.node.Find(b.att)
	if !ok || r.Address != a || r.State != ipam.Assigned || w.rows[r.Key()].Att != b.att {
		t.Errorf("the living pod is %+v", r)
	}
	if r, ok := w.node.Find(dead.att); ok {
		t.Errorf("the dead pod is back: %+v", r)
	}
	w.then(w.deleting(b), "save "+a.String()+" cooling")
}

// TestAddressInForeignNamespaceIsNotFreed: somebody else has put a cooling address into a namespace.
func TestAddressInForeignNamespaceIsNotFreed(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.step(w.deleting(b))
	w.calm()
	b.ready = false
	w.up("c2", "web-2")
	stranger := dataplane.PodPlan(dataplane.PodSpec{Alias: "not-ours", HostVeth: "veth9", Netns: w.kernel.NewNamespace(), Address: a, Table: dataplane.MainTable})
	if _, err := w.kernel.Apply(stranger, 0, len(stranger.Ops)); err != nil {
		t.Fatal(err)
	}
	w.live(5 * time.Minute)
	v := ipam.View{}
	if w.node.View(&v); v.Quarantined != 1 || w.marks[ipam.AddressVetoed] != 1 || w.rows[ipam.Key{Address: a}].State != ipam.Quarantined {
		t.Fatalf("the address of the stranger is not set aside: %+v %v", v, w.marks)
	}
	w.kernel.Apply(dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.DeleteVeth, Alias: "not-ours"}}}, 0, 1)
	w.live(5 * time.Minute)
	if w.node.View(&v); v.Quarantined+v.Cooling != 0 || w.marks[ipam.QuarantineEnded] != 1 {
		t.Errorf("the stranger is gone, and the address is not back: %+v %v", v, w.marks)
	}
}

// TestLostReplies: whatever is lost, and whether it happened or not, the node ends with the ENIs it wants and no intent.
func TestLostReplies(t *testing.T) {
	for _, a := range []ipam.Action{ipam.CreateENI, ipam.AttachENI, ipam.ModifyENI, ipam.AssignIPs, ipam.DetachENI, ipam.DeleteENI} {
		for _, happened := range []bool{false, true} {
			for _, crash := range []bool{false, true} {
				t.Run(a.String()+" happened="+strconv.FormatBool(happened)+" crash="+strconv.FormatBool(crash), func(t *testing.T) {
					w := newWorld(t, ipam.Sound())
					w.set.WarmENITarget = 2
					if a == ipam.DetachENI || a == ipam.DeleteENI {
						w = grown(t, ipam.Sound())
					} else {
						w.start()
					}
					c := w.untilCall(a)
					switch {
					case crash && happened:
						w.call(c)
						w.start()
					case crash:
						w.start()
					default:
						w.lose(c, happened)
					}
					w.live(20 * time.Minute)
					v := ipam.View{}
					w.node.View(&v)
					want := w.set.WarmENITarget
					if v.Intents != 0 || len(v.ENIs) != want || len(w.enis) != want || v.Free != 5*want {
						t.Errorf("the node has %d ENIs with %d free addresses and %d intents, EC2 has %d ENIs; expected %d: %+v", len(v.ENIs), v.Free, v.Intents, len(w.enis), want, v.ENIs)
					}
					w.tidy()
				})
			}
		}
	}
}

func TestThrottling(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	c := w.untilCall(ipam.AssignIPs)
	for i := range 5 {
		began := w.now
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Throttled}})
		c = w.untilCall(ipam.AssignIPs)
		pause := w.now - began
		if least := 500 * time.Millisecond << i; pause < least || pause > 3*least+time.Second {
			t.Errorf("try %d came after %v, expected from %v to three times that", i+2, pause, least)
		}
	}
	w.step(w.outcome(c))
	w.live(10 * time.Second)
	v := ipam.View{}
	if w.node.View(&v); v.Free != 5 || len(v.Reasons) != 0 {
		t.Errorf("EC2 answers again: %+v", v)
	}
}

// TestFullSubnet: a node asks for half as much until something fits (rule L), and for more again afterwards.
func TestFullSubnet(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.Addresses = 9
	w.full = true
	w.start()
	var asked []int
	for range 4 {
		c := w.untilCall(ipam.AssignIPs)
		asked = append(asked, c.Count)
		w.step(w.outcome(c))
	}
	if !slices.Equal(asked, []int{8, 4, 2, 1}) {
		t.Errorf("asked for %v addresses, expected 8, 4, 2, 1", asked)
	}
	w.full = false
	w.live(5 * time.Minute)
	v := ipam.View{}
	if w.node.View(&v); v.Free < 8 {
		t.Errorf("the subnet has room again: %+v", v)
	}
}

// TestRefusalIsOver: an earlier daemon's call assigned, so EC2 refuses to assign as much again. EC2's word about the ENI then shows that
// nothing is missing: no call follows, and what was refused is no reason any more.
func TestRefusalIsOver(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.MaxENI = 1
	w.start()
	c := w.untilCall(ipam.AssignIPs)
	w.enis[0].Addresses = w.fresh(5)
	w.step(w.outcome(c))
	w.live(45 * time.Second) // a daemon without records lets all rest first
	v := ipam.View{}
	w.node.View(&v)
	if w.marks[ipam.CallRefused] == 0 || v.Free != 5 {
		t.Fatalf("no assignment was refused, or the addresses are not there: %+v", v)
	}
	if len(v.Reasons) > 0 {
		t.Errorf("all is well, and the node says %q", v.Reasons)
	}
}

// cable is a node whose second ENI has pods and has just been detached by a third party.
func cable(t testing.TB) (*world, *cloudENI) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.live(10 * time.Second)
	for i := range 7 {
		w.up("c"+strconv.Itoa(i), "web-"+strconv.Itoa(i))
		w.live(5 * time.Second)
	}
	v := w.eni("eni-1")
	if v == nil || v.Status != "in-use" {
		t.Fatalf("the second ENI is %+v", v)
	}
	v.Status = "detaching"
	w.kernel.Unplug(v.MAC)
	w.step(ipam.Seen{What: ipam.LookKernel}) // the kernel's event
	return w, v
}

// TestSlowDetach: EC2 takes its time over a third party's detach. An ENI on which pods live is waited for, and
// attached again.
func TestSlowDetach(t *testing.T) {
	w, v := cable(t)
	w.live(20 * time.Second)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	w.live(time.Minute)
	if v := w.eni("eni-1"); v == nil || v.Status != "in-use" || w.marks[ipam.Restored] != 1 || w.marks[ipam.ENIDeleted] != 0 {
		t.Errorf("the ENI is %+v, restored %d times and given up %d times", v, w.marks[ipam.Restored], w.marks[ipam.ENIDeleted])
	}
	view := ipam.View{}
	if w.node.View(&view); view.Assigned != 7 || view.Quarantined != 0 {
		t.Errorf("seven pods live: %+v", view)
	}
}

// TestDetachBehindStaleMetadata: the link is gone and metadata still lists the ENI. It is read again soon, not a minute later.
func TestDetachBehindStaleMetadata(t *testing.T) {
	w, v := cable(t)
	v.Status = "in-use"
	w.live(20 * time.Second)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	w.live(20 * time.Second)
	if v := w.eni("eni-1"); v == nil || v.Status != "in-use" || w.marks[ipam.Restored] != 1 {
		t.Errorf("20 s after metadata has noticed, the ENI is %+v", v)
	}
}

// TestDetachIsNoticedSoon: EC2's replica lags behind metadata and says that all is well. Metadata is asked again before a minute is over.
func TestDetachIsNoticedSoon(t *testing.T) {
	w, v := cable(t)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	late := w.look(w.untilLook(ipam.LookENI))
	late.ENIs[0].Status, late.ENIs[0].Instance = "in-use", instance
	w.step(late)
	w.live(20 * time.Second)
	if v := w.eni("eni-1"); v == nil || v.Status != "in-use" || w.marks[ipam.Restored] != 1 {
		t.Errorf("20 s after a stranger's detach the ENI is %+v", v)
	}
}

// TestSweepSparesAPodsENI: the records are lost, and a third party has detached an ENI with pods while no daemon
// watched. The kernel names the pods; the ENI that has their addresses is no leak, for EC2 would give these addresses
// to somebody else.
func TestSweepSparesAPodsENI(t *testing.T) {
	w, v := cable(t)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	clear(w.rows)
	w.start()
	w.live(30 * time.Minute)
	if w.eni("eni-1") == nil {
		t.Fatal("an ENI whose addresses pods have was swept")
	}
	view := ipam.View{}
	if w.node.View(&view); view.Homeless != 0 || view.Taken != 2 {
		t.Errorf("no ENI of the node has what two pods have, as EC2 has said: %+v", view)
	}
	for i := range w.boxes {
		w.del(&w.boxes[i])
	}
	w.boxes = nil
	w.live(2 * time.Hour)
	if v := w.eni("eni-1"); v != nil {
		t.Errorf("the pods are gone, and the ENI is still there: %+v", v)
	}
}

func TestSweep(t *testing.T) {
	w := ready(t, ipam.Sound())
	wall := func(age time.Duration) int64 { return bootWall + int64((w.now-age)/time.Second) }
	leak := func(id, owner string, created int64) {
		w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: id, MAC: "02:00:00:00:" + id, Status: "available", Owner: owner, OwnerGone: owner == "i-2", Near: true, Created: created, Primary: addr("10.0.0.200")}})
	}
	leak("eni-own-old", instance, wall(10*time.Minute))
	leak("eni-own-new", instance, wall(-2*time.Hour))
	leak("eni-other-old", "i-2", wall(time.Hour))
	leak("eni-other-new", "i-2", wall(-2*time.Hour))
	leak("eni-unknown", "i-2", 0)
	leak("eni-living", "i-3", wall(time.Hour))
	w.live(90 * time.Minute)
	for id, left := range map[string]bool{"eni-own-old": false, "eni-own-new": true, "eni-other-old": false, "eni-other-new": true, "eni-unknown": true, "eni-living": true} {
		if got := w.eni(id) != nil; got != left {
			t.Errorf("%s is left: %t, expected %t", id, got, left)
		}
	}
}

// TestGCReleasesWhatIsTwiceGone: what the caller does not list is released once kernel and runtime have twice said
// that it is gone.
func TestGCReleasesWhatIsTwiceGone(t *testing.T) {
	w := ready(t, ipam.Sound())
	one, _ := w.up("c1", "web-1")
	kept := *one
	two, _ := w.up("c2", "web-2")
	gone := *two
	w.kernel.CloseNamespace(gone.netns)
	w.boxes = w.boxes[:1]
	w.live(time.Second)

	absent := ipam.GC{Req: w.req(), Network: "aws-cni", Absent: true}
	w.then(absent, "GC error 7")
	first := ipam.GC{Req: w.req(), Network: "aws-cni"} // an empty list: nothing of the caller's lives, it says
	w.then(first, "")
	second := ipam.GC{Req: w.req(), Network: "aws-cni"}
	w.then(second, "GC error 11") // one at a time
	w.live(10 * time.Second)
	w.answered(first.Req)
	if _, ok := w.node.Find(kept.att); !ok {
		t.Error("a living pod was released because a list lacked it")
	}
	if _, ok := w.node.Find(gone.att); ok {
		t.Error("a dead pod is still there")
	}
	if w.marks[ipam.GCReleased] != 1 || w.marks[ipam.GCRefused] != 2 {
		t.Errorf("released %d, refused %d; expected 1 and 2", w.marks[ipam.GCReleased], w.marks[ipam.GCRefused])
	}
}

func TestCheck(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	check := func() ipam.Req {
		r := w.req()
		w.step(ipam.Check{Req: r, Att: b.att, Netns: b.netns})
		w.live(2 * time.Second)
		return r
	}
	w.answered(check())
	w.kernel.FlushRules()
	if r := w.replies[check()]; r.Err == nil || r.Err.Code != ipam.CodeDrifted {
		t.Errorf("the rule of %v is missing, and CHECK says %+v", a, r)
	}
	w.answered(check()) // it was put back
	w.then(ipam.Stop{}, "")
	w.then(w.adding(w.pod("c2", "web-2")), "ADD error 11")
}
