package ipam_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// occasions are what has a node ask EC2 for each kind of mutation, with pods on it. Each ends where EC2 is asked.
var occasions = map[ipam.Action]func(w *world) *ipam.Call{
	ipam.AssignIPs: func(w *world) *ipam.Call {
		w.reset(func(s *ipam.Settings) { s.MinimumIPTarget, s.WarmIPTarget = 5, 1 })
		return w.untilCall(ipam.AssignIPs)
	},
	ipam.CreateENI:   func(w *world) *ipam.Call { return w.further().untilCall(ipam.CreateENI) },
	ipam.AttachENI:   func(w *world) *ipam.Call { return w.further().untilCall(ipam.AttachENI) },
	ipam.ModifyENI:   func(w *world) *ipam.Call { return w.further().untilCall(ipam.ModifyENI) },
	ipam.UnassignIPs: func(w *world) *ipam.Call { w.reset(warmIPs(1)); return w.untilCall(ipam.UnassignIPs) },
	ipam.DetachENI:   func(w *world) *ipam.Call { return w.fewer().untilCall(ipam.DetachENI) },
	ipam.DeleteENI:   func(w *world) *ipam.Call { return w.fewer().untilCall(ipam.DeleteENI) },
	ipam.GroupENI: func(w *world) *ipam.Call {
		w.further().live(time.Minute)
		w.groups = []string{"sg-2"}
		return w.untilCall(ipam.GroupENI)
	},
}

func warmIPs(target int) func(*ipam.Settings) {
	return func(s *ipam.Settings) { s.WarmIPTarget, s.MinimumIPTarget = target, 0 }
}

// further has the node want another ENI.
func (w *world) further() *world { w.reset(warmIPs(6)); return w }

// fewer has it want one ENI less, which is there by then.
func (w *world) fewer() *world {
	w.further().live(time.Minute)
	w.reset(warmIPs(1))
	return w
}

// manned is a node with three warm addresses and two pods.
func manned(t *testing.T) (w *world, pods map[ipam.Attachment]netip.Addr) {
	w = newWorld(t, ipam.Sound())
	w.groups = []string{"sg-1"}
	w.set.WarmIPTarget = 2
	w.start()
	w.live(10 * time.Second)
	pods = map[ipam.Attachment]netip.Addr{}
	for _, id := range []string{"c1", "c2"} {
		b, a := w.up(id, id)
		pods[b.att] = a
		w.live(10 * time.Second)
	}
	return w, pods
}

// whole checks that the node has what it wants, that EC2 has nothing else of it, and that pods have what they had.
func (w *world) converged(what string, pods map[ipam.Attachment]netip.Addr) {
	w.t.Helper()
	w.tidy()
	v := w.seenView()
	if v.Intents != 0 || len(v.Reasons) > 0 || !v.Serving {
		w.t.Errorf("%s: %d intents are open, reasons %q", what, v.Intents, v.Reasons)
	}
	for k := range w.rows {
		if k.Token != "" {
			w.t.Errorf("%s: an intent stays on record: %+v", what, w.rows[k].Intent)
		}
	}
	if want := max(w.set.WarmIPTarget, w.set.MinimumIPTarget-len(pods)); v.Free != want {
		w.t.Errorf("%s: %d addresses are free, expected %d", what, v.Free, want)
	}
	if len(v.ENIs) != len(w.enis) {
		w.t.Errorf("%s: the node has %d ENIs, and EC2 has %d of it: %+v", what, len(v.ENIs), len(w.enis), w.enis)
	}
	have := map[netip.Addr]bool{}
	for i := range w.enis {
		e := &w.enis[i]
		if e.Status != "in-use" || !e.DOT || e.Device != 0 && !slices.Equal(e.Groups, w.groups) {
			w.t.Errorf("%s: %s is %+v", what, e.ID, e.ENI)
		}
		for _, a := range e.Addresses {
			if have[a] = true; w.state(a) == 0 {
				w.t.Errorf("%s: %s has %v, which the node does not know", what, e.ID, a)
			}
		}
	}
	w.node.Rows(func(r ipam.Row) {
		if !have[r.Address] && r.State != ipam.Departed {
			w.t.Errorf("%s: the node has %v, which is on no ENI: %v", what, r.Address, r.State)
		}
	})
	for att, a := range pods {
		if r, ok := w.node.Find(att); !ok || r.Address != a || r.State != ipam.Assigned {
			w.t.Errorf("%s: %v had %v and has %+v", what, att, a, r)
		}
	}
}

// TestWhateverEC2Answers to a mutation, once or four times in a row, and whether it has happened or not where the
// answer is lost: the node gets where it wanted, leaves nothing behind, and no pod notices.
func TestWhateverEC2Answers(t *testing.T) {
	classes := []ipam.Class{ipam.Throttled, ipam.Unavailable, ipam.Denied, ipam.Limit, ipam.InUse, ipam.NotFound,
		ipam.Invalid, ipam.SubnetFull, ipam.Lost}
	for action, occasion := range occasions {
		for _, class := range classes {
			for _, times := range []int{1, 4} {
				for _, happened := range []bool{false, true} {
					if happened && class != ipam.Lost {
						continue
					}
					what := fmt.Sprintf("%v, %v %d times, happened %v", action, class, times, happened)
					w, pods := manned(t)
					c := occasion(w)
					for n := 1; ; n++ {
						if happened && n == 1 {
							w.call(c)
						}
						w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: class, Code: "Some.Code"}})
						if n == times || class == ipam.Lost && happened {
							break
						}
						again := w.nextCall(action, 10*time.Minute)
						if again == nil {
							break
						}
						c = again
					}
					w.live(2 * time.Hour)
					w.converged(what, pods)
				}
			}
		}
	}
}

// nextCall is the next mutation of that kind, if the node wants it before long; everything else is answered truly.
func (w *world) nextCall(a ipam.Action, within time.Duration) *ipam.Call {
	for end := w.now + within; ; {
		switch at, ok := w.node.Next(); {
		case len(w.saves[0]) > 0:
			w.save(ipam.RunStore, 1)
		case len(w.saves[1]) > 0:
			w.save(ipam.LibStore, 1)
		case len(w.flight) > 0:
			e := w.take(0)
			if c, ok := e.(*ipam.Call); ok && c.Action == a {
				return c
			}
			w.step(w.outcome(e))
		case !ok || at > end:
			return nil
		default:
			w.pass(max(at-w.now, 0))
		}
	}
}

// TestWhereverItDies: while EC2 is being asked for a mutation, which may have happened or not, or happens under the
// next daemon: that one gets where the first wanted.
func TestWhereverItDies(t *testing.T) {
	for action, occasion := range occasions {
		for _, when := range []string{"never", "before", "after"} {
			what := fmt.Sprintf("%v, which happens %s", action, when)
			w, pods := manned(t)
			c := occasion(w)
			if when == "before" {
				w.call(c)
			}
			w.start()
			if when == "after" {
				w.live(time.Minute)
				w.call(c)
			}
			w.live(2 * time.Hour)
			w.converged(what, pods)
		}
	}
}

// TestPausesGrow: the longer EC2 refuses addresses, the less it is asked for them.
func TestPausesGrow(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget = 3
	w.start()
	c := w.untilCall(ipam.AssignIPs)
	for n := 1; n <= 7; n++ {
		began := w.now
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.SubnetFull, Code: "Some.Code"}})
		if c = w.nextCall(ipam.AssignIPs, time.Hour); c == nil {
			t.Fatalf("after %d refusals EC2 is asked no more", n)
		}
		pause := w.policy.Backoff(n)
		if took := w.now - began; took < pause.Least || took > pause.Least+pause.Jitter+time.Second {
			t.Errorf("after %d refusals EC2 is asked after %v, expected %+v", n, took, pause)
		}
	}
}

// TestARefusedGroupAsksNobody: that the role may not change groups says nothing about the ENI; that something is not
// there does.
func TestARefusedGroupAsksNobody(t *testing.T) {
	for class, asks := range map[ipam.Class]bool{ipam.Denied: false, ipam.NotFound: true} {
		w, _ := manned(t)
		c := occasions[ipam.GroupENI](w)
		asked := false
		w.tap = func(_ ipam.Input, effs []ipam.Effect) {
			for _, e := range effs {
				l, ok := e.(*ipam.Look)
				asked = asked || ok && l.What == ipam.LookENI
			}
		}
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: class, Code: "Some.Code"}})
		if asked != asks {
			t.Errorf("%v: EC2 is asked about the ENI: %v", class, asked)
		}
	}
}

// TestATakenOverMACIsTold, and is no warning: another CNI's record says whose the link is.
func TestATakenOverMACIsTold(t *testing.T) {
	w, pods := manned(t)
	veth := w.kernel.VethOf("c1")
	w.kernel.SetLinkMAC(veth, "0a:11:22:33:44:55")
	w.kernel.SetLinkAlias(veth, "")
	for k, r := range w.rows { // as another CNI's record is read
		if r.Att == att("c1") {
			r.Netns, r.Veth, r.MAC = 0, "", ""
			w.rows[k] = r
		}
	}
	w.start()
	w.live(5 * time.Minute)
	if told, warned := w.marks[ipam.MACUnrecorded], w.warned[ipam.MACUnrecorded]; told != 1 || warned != 0 {
		t.Errorf("it is told %d times, %d of them as a warning", told, warned)
	}
	w.converged("taken over", pods)
}
