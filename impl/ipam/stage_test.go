package ipam_test

import (
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// stranded is what EC2 says of an ENI that somebody has detached.
func (v *cloudENI) stranded() { v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, "" }

// gone deletes an ENI behind the node's back.
func (w *world) gone(id string) {
	w.kernel.Unplug(w.eni(id).MAC)
	w.call(&ipam.Call{Action: ipam.DetachENI, ENI: id, Attachment: w.eni(id).Attachment})
	w.call(&ipam.Call{Action: ipam.DeleteENI, ENI: id})
}

// TestAnENIThatWasJustDetachedIsDeleted: EC2 shows a state of before it was made, which may be long after it was wanted.
func TestAnENIThatWasJustDetachedIsDeleted(t *testing.T) {
	w := grown(t, ipam.Sound())
	c := w.untilCall(ipam.DetachENI)
	w.live(5 * time.Minute)
	w.step(w.outcome(c))
	for range 5 {
		look := w.untilLook(ipam.LookENI)
		w.step(ipam.Seen{ID: look.ID, What: look.What, Complete: true})
	}
	if d := w.untilCall(ipam.DeleteENI); d.ENI != c.ENI {
		t.Errorf("%s is deleted, expected %s", d.ENI, c.ENI)
	}
}

// TestStages: each row of the table of stages has a story in which an ENI takes it. That none takes another is checked at every step of
// every test (world.moved).
func TestStages(t *testing.T) {
	second := func() *world { // wants a second ENI
		w := newWorld(t, ipam.Sound())
		w.set.WarmENITarget = 2
		w.start()
		return w
	}
	detaching := func() (*world, *ipam.Call) {
		w := grown(t, ipam.Sound())
		return w, w.untilCall(ipam.DetachENI)
	}
	deleting := func() (*world, *cloudENI) { // of which EC2's answer is lost
		w := grown(t, ipam.Sound())
		c := w.untilCall(ipam.DeleteENI)
		w.lose(c, false)
		return w, w.eni(c.ENI)
	}
	stopping := func(say func(*ipam.Seen)) *world { // with a link just set up, and EC2's word on its ENI under way
		w := second()
		c := w.untilCall(ipam.AttachENI)
		w.step(w.outcome(c))
		mac := w.eni(c.ENI).MAC
		w.kernel.Unplug(mac) // so that its link is late, and EC2 is asked
		l := w.untilLook(ipam.LookENI)
		seen := w.look(l)
		w.kernel.Plug(mac)
		w.step(ipam.Seen{What: ipam.LookKernel})
		plan := w.until("the ENI's plan", func(e ipam.Effect) bool {
			a, ok := e.(*ipam.Apply)
			return ok && a.Lane.ENI == c.ENI
		})
		w.step(ipam.Stop{})
		w.step(w.outcome(plan))
		say(&seen)
		w.step(seen)
		return w
	}
	stories := []struct {
		name string
		tell func() *world
		want []move
	}{
		{"an ENI is made, serves and goes", func() *world {
			w := grown(t, ipam.Sound())
			w.live(2 * time.Minute)
			return w
		}, []move{{0, ipam.Ready}, {0, ipam.Intended}, {ipam.Intended, ipam.Created}, {ipam.Created, ipam.Attached}, {ipam.Attached, ipam.Configured},
			{ipam.Configured, ipam.Ready}, {ipam.Ready, ipam.Draining}, {ipam.Draining, ipam.Detached}, {ipam.Detached, ipam.Tombstoned}, {ipam.Tombstoned, 0}}},
		{"EC2 makes none", func() *world {
			w := second()
			c := w.untilCall(ipam.CreateENI)
			w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.SubnetFull}})
			return w
		}, []move{{ipam.Intended, 0}}},
		{"a daemon finds one attached", func() *world {
			w := grown(t, ipam.Sound())
			w.start()
			w.live(time.Minute)
			return w
		}, []move{{0, ipam.Attached}}},
		{"a daemon takes one on record for set up", func() *world {
			p := ipam.Sound()
			p.Serves = func(bool) bool { return true }
			w := grown(t, p)
			w.kernel.Unplug(w.eni("eni-1").MAC)
			w.silent = true
			w.start()
			w.live(time.Minute)
			return w
		}, []move{{ipam.Attached, ipam.Ready}}},
		{"a daemon dies while one is attached", func() *world {
			w := second()
			w.untilCall(ipam.AttachENI)
			w.start()
			w.live(time.Minute)
			return w
		}, []move{{0, ipam.Created}}},
		{"a daemon dies while one is detached, then while it is deleted", func() *world {
			w, _ := detaching()
			w.start()
			w.untilCall(ipam.DeleteENI)
			w.start()
			w.live(time.Minute)
			return w
		}, []move{{0, ipam.Draining}, {0, ipam.Tombstoned}}},
		{"EC2 refuses to attach it, again and again", func() *world {
			w := second()
			w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-8", Instance: instance, Device: 1, Status: "attaching"}},
				cloudENI{ENI: ipam.ENI{ID: "eni-9", Instance: instance, Device: 2, Status: "attaching"}})
			w.live(2 * time.Minute)
			return w
		}, []move{{ipam.Created, ipam.Tombstoned}}},
		{"a stranger deletes it before it is attached", func() *world {
			w := second()
			c := w.untilCall(ipam.AttachENI)
			w.gone(c.ENI)
			w.step(w.outcome(c))
			w.live(10 * time.Minute)
			return w
		}, []move{{ipam.Created, 0}}},
		{"a stranger detaches it before it is set up", func() *world {
			w := second()
			c := w.untilCall(ipam.ModifyENI)
			w.eni(c.ENI).stranded()
			w.lose(c, false)
			w.live(time.Minute)
			return w
		}, []move{{ipam.Attached, ipam.Created}}},
		{"a stranger deletes it before it is set up", func() *world {
			w := second()
			c := w.untilCall(ipam.ModifyENI)
			w.gone(c.ENI)
			w.lose(c, false)
			w.live(10 * time.Minute)
			return w
		}, []move{{ipam.Attached, 0}}},
		{"a stranger detaches it, and the daemon is ending", func() *world {
			return stopping(func(s *ipam.Seen) { s.ENIs[0].Status, s.ENIs[0].Instance = "available", "" })
		}, []move{{ipam.Configured, ipam.Created}}},
		{"another instance has it, and the daemon is ending", func() *world {
			return stopping(func(s *ipam.Seen) { s.ENIs[0].Instance = "i-other" })
		}, []move{{ipam.Configured, 0}}},
		{"a stranger detaches it under pods", func() *world {
			w, v := cable(t)
			v.stranded()
			w.live(time.Minute)
			return w
		}, []move{{ipam.Ready, ipam.Created}}},
		{"a stranger deletes it in service", func() *world {
			w := second()
			w.live(30 * time.Second)
			w.gone("eni-1")
			w.live(5 * time.Minute)
			return w
		}, []move{{ipam.Ready, 0}}},
		{"a sandbox claims an address while it drains", func() *world {
			w := grown(t, ipam.Sound())
			b := w.pod("c1", "web-1")
			b.ready, b.addr = true, w.eni("eni-1").Addresses[2]
			w.live(2 * time.Minute)
			return w
		}, []move{{ipam.Draining, ipam.Ready}}},
		{"a stranger detaches it first", func() *world {
			w, c := detaching()
			w.eni(c.ENI).stranded()
			w.lose(c, false)
			w.live(time.Minute)
			return w
		}, []move{{ipam.Draining, ipam.Tombstoned}}},
		{"a stranger deletes it while it drains", func() *world {
			w, c := detaching()
			w.gone(c.ENI)
			w.lose(c, false)
			w.live(5 * time.Minute)
			return w
		}, []move{{ipam.Draining, 0}}},
		{"the detach did not happen", func() *world {
			w, c := detaching()
			w.step(ipam.Called{ID: c.ID})
			w.live(5 * time.Minute)
			return w
		}, []move{{ipam.Detached, ipam.Draining}}},
		{"a stranger deletes it once it is detached", func() *world {
			w, c := detaching()
			w.step(w.outcome(c))
			w.gone(c.ENI)
			w.live(5 * time.Minute)
			return w
		}, []move{{ipam.Detached, 0}}},
		{"a stranger is detaching it when it is deleted", func() *world {
			w, v := deleting()
			v.Status, v.Instance = "detaching", instance
			w.live(time.Minute)
			return w
		}, []move{{ipam.Tombstoned, ipam.Detached}}},
		{"a stranger has attached it when it is deleted", func() *world {
			w, v := deleting()
			w.call(&ipam.Call{Action: ipam.AttachENI, ENI: v.ID, Device: 2})
			w.live(5 * time.Minute)
			if w.eni("eni-1") != nil {
				t.Errorf("what was to be deleted, and was attached once more, stays: %+v", w.eni("eni-1"))
			}
			return w
		}, []move{{ipam.Tombstoned, ipam.Draining}}},
	}
	told := map[move]bool{}
	for _, s := range stories {
		w := s.tell()
		for _, m := range s.want {
			if told[m] = true; w.stages[m] == 0 {
				t.Errorf("%s: no ENI went from %q to %q; there were %v", s.name, m.from, m.to, w.stages)
			}
		}
		w.tidy()
	}
	for from, row := range ipam.Follows() {
		for _, to := range row {
			if !told[move{ipam.Stage(from), to}] {
				t.Errorf("the table of stages has %q after %q, and no story", to, ipam.Stage(from))
			}
		}
	}
}

// TestInUseAfterADetachIsNoTrouble: EC2 calls an ENI in use for a while after it has detached it. That is no impaired node; for minutes it is one.
func TestInUseAfterADetachIsNoTrouble(t *testing.T) {
	w := grown(t, ipam.Sound())
	refused := func() string {
		c := w.untilCall(ipam.DeleteENI)
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.InUse, Code: "InvalidParameterValue"}})
		v := ipam.View{}
		w.node.View(&v)
		return strings.Join(v.Reasons, "; ")
	}
	for try := range 4 {
		if why := refused(); why != "" {
			t.Errorf("after refusal %d the node is impaired: %s", try+1, why)
		}
	}
	for try := 0; ; try++ {
		if why := refused(); strings.Contains(why, "EC2 refuses DeleteNetworkInterface: InvalidParameterValue") {
			break
		} else if try == 3 {
			t.Fatalf("after 8 refusals the node says %q", why)
		}
	}
	w.live(10 * time.Minute)
	v := ipam.View{}
	if w.node.View(&v); len(v.Reasons) > 0 {
		t.Errorf("EC2 deletes it, and the node is impaired: %q", v.Reasons)
	}
}
