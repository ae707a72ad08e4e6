package ipam_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestCHECKFromAnotherNamespace: the attachment's address is there, and not where the caller looks. A daemon that does not know the namespace, or
// a caller that does not say it, has nothing to compare.
func TestCHECKFromAnotherNamespace(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	check := func(netns uint64) *ipam.Error {
		r := w.req()
		w.step(ipam.Check{Req: r, Att: b.att, Netns: netns})
		w.live(5 * time.Second)
		if w.replies[r] == nil {
			t.Fatalf("a CHECK from namespace %d has no reply", netns)
		}
		return w.replies[r].Err
	}
	for _, same := range []uint64{b.netns, 0} {
		if err := check(same); err != nil {
			t.Errorf("from namespace %d, the pod's is %d: %v", same, b.netns, err)
		}
	}
	if err := check(b.netns + 1); err == nil || err.Code != ipam.CodeDrifted {
		t.Errorf("from namespace %d, the pod's is %d: %v, expected code %d", b.netns+1, b.netns, err, ipam.CodeDrifted)
	}
}

// TestCoolDownCountsFromTheRemoval: a plan that takes an address out of its pod may take long, and until then the pod uses the address. What rests is
// what nobody has, so the cool-down begins when the kernel says that it is done, and not with the DEL.
func TestCoolDownCountsFromTheRemoval(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	r := w.del(b)
	removal := w.until("the pod's removal", func(e ipam.Effect) bool {
		p, ok := e.(*ipam.Apply)
		return ok && p.Lane.Kind == ipam.PodLane && p.Lane.Att == b.att
	})
	slow := w.set.CoolDown - 5*time.Second
	w.pass(slow)
	w.step(w.outcome(removal))
	w.calm()
	w.answered(r)
	b.ready = false
	removed := w.now
	w.live(w.set.CoolDown - time.Second)
	if s := w.state(a); s != ipam.Cooling {
		t.Errorf("%v is %v %v after it was taken out of its pod, and cools for %v", a, s, w.now-removed, w.set.CoolDown)
	}
	w.live(w.set.CoolDown)
	if s := w.state(a); s == ipam.Cooling {
		t.Errorf("%v cools %v after it was taken out of its pod, and cools for %v", a, w.now-removed, w.set.CoolDown)
	}
}

// state is an address's.
func (w *world) state(a netip.Addr) (s ipam.State) {
	w.node.Rows(func(r ipam.Row) {
		if r.Address == a {
			s = r.State
		}
	})
	return s
}

// TestWhatIsGivenBackIsNotFree: EC2 has been asked to take addresses back. They serve no pod, and who counted them as free would give more back than
// is too much, and ask for none where one is missing.
func TestWhatIsGivenBackIsNotFree(t *testing.T) {
	p := ipam.Sound()
	var last ipam.Supply
	demand := p.Demand
	p.Demand = func(s ipam.Supply) ipam.Want { last = s; return demand(s) }
	w := newWorld(t, p)
	w.set.MinimumIPTarget, w.set.WarmIPTarget = 5, 1
	w.start()
	w.live(2 * time.Minute)
	w.set.MinimumIPTarget = 2
	w.step(ipam.Set{Settings: w.set})
	c := w.untilCall(ipam.UnassignIPs)
	if len(c.Addresses) == 0 {
		t.Fatalf("EC2 is to take back nothing: %+v", c)
	}
	last = ipam.Supply{Free: -1}
	w.step(nil)
	if last.Free != 2 || w.seenView().Free != 2 {
		t.Errorf("%d addresses are being given back, and the node counts on %d free ones, and shows %d; expected the 2 that stay", len(c.Addresses), last.Free, w.seenView().Free)
	}
	w.step(w.outcome(c))
	w.live(5 * time.Minute)
	if free := w.seenView().Free; free != 2 {
		t.Errorf("2 addresses are wanted, and %d are free", free)
	}
}

// TestEC2IsAskedInDoubtAlone: where metadata and the records agree EC2 is asked about no ENI, however often metadata is read; and where they do not
// it is asked again after a pause, for two answers of one moment are one.
func TestEC2IsAskedInDoubtAlone(t *testing.T) {
	w := ready(t, ipam.Sound())
	w.up("c1", "web-1")
	w.live(time.Minute)
	var asked []time.Duration
	read := 0
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if l, ok := e.(*ipam.Look); ok && l.What == ipam.LookENI {
				asked = append(asked, w.now)
			} else if ok && l.What == ipam.LookIMDS {
				read++
			}
		}
	}
	w.live(time.Hour)
	if read < 10 {
		t.Fatalf("metadata was read %d times in an hour: that proves nothing", read)
	}
	if len(asked) > 0 {
		t.Errorf("nothing is in doubt, and EC2 is asked %d times in an hour, first at %v", len(asked), asked[0])
	}
	asked = nil
	e := &w.enis[0]
	gone := e.Addresses[len(e.Addresses)-1]
	e.Addresses = slices.DeleteFunc(e.Addresses, func(a netip.Addr) bool { return a == gone })
	w.live(10 * time.Minute)
	if len(asked) < 2 {
		t.Errorf("EC2 has taken %v back, and was asked %d times", gone, len(asked))
	}
	for i := 1; i < len(asked); i++ {
		if pause := asked[i] - asked[i-1]; pause < 5*time.Second {
			t.Errorf("EC2 is asked about one ENI at %v and again %v later", asked[i-1], pause)
		}
	}
}

// TestCreatedBehindAnError: EC2 answers CreateNetworkInterface with an error after it has made the interface. The intent is what finds it again: it
// stays on record, and the next try is the same request.
func TestCreatedBehindAnError(t *testing.T) {
	for code, class := range map[string]ipam.Class{"InternalError": ipam.Unavailable, "Unavailable": ipam.Unavailable, "RequestLimitExceeded": ipam.Throttled} {
		for _, crash := range []bool{false, true} {
			w := newWorld(t, ipam.Sound())
			w.set.MinimumIPTarget, w.set.WarmIPTarget = 8, 1
			w.start()
			c := w.untilCall(ipam.CreateENI)
			w.call(c)
			w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: class, Code: code}})
			w.calm()
			if r, ok := w.rows[ipam.Key{Token: c.Token}]; !ok || r.Intent == nil {
				t.Errorf("%s: EC2 may have made the interface, and its intent is no longer on record", code)
			}
			if crash {
				w.start()
			}
			if again := w.untilCall(ipam.CreateENI); again.Token != c.Token {
				t.Errorf("%s, crash %t: the next request has token %q, expected that of the first, %q", code, crash, again.Token, c.Token)
			} else {
				w.step(w.outcome(again))
			}
			w.live(10 * time.Minute)
			for _, e := range w.enis {
				if e.Status == "available" {
					t.Errorf("%s, crash %t: %s was made, and nobody has it", code, crash, e.ID)
				}
			}
		}
	}
}

// TestGivenAMomentAgo: EC2's own answer has given addresses, and its replicas, asked about them because metadata is behind, go on answering what was
// before for a minute or two. They are the node's until EC2 denies them for longer than a replica may be behind.
func TestGivenAMomentAgo(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.MinimumIPTarget, w.set.WarmIPTarget = 2, 1
	w.start()
	w.live(5 * time.Minute)
	e := &w.enis[0]
	before := slices.Clone(e.Addresses)
	w.set.MinimumIPTarget = len(before) + 2
	w.step(ipam.Set{Settings: w.set})
	w.live(5 * time.Second)
	e = &w.enis[0]
	given := e.Addresses[len(before):]
	if len(given) == 0 {
		t.Fatalf("EC2 has given nothing: %v, and %v before", e.Addresses, before)
	}
	w.full = true // what is not there is not replaced
	e.Addresses = before
	w.live(100 * time.Second)
	for _, a := range given {
		if w.state(a) != ipam.Free {
			t.Errorf("EC2 gave %v 105 s ago and answers what was before: the node does not know it any more", a)
		}
	}
	w.live(5 * time.Minute)
	for _, a := range given {
		if w.state(a) == ipam.Free {
			t.Errorf("EC2 denies %v for seven minutes, and it is free", a)
		}
	}
}

// TestInterruptedDumpsAreReadAgainSoon: links and routes change while they are listed, ten times in a row. What pods lack
// is put back as soon as a list is whole, and one that is not costs no time of the kernel's to speak of.
func TestInterruptedDumpsAreReadAgainSoon(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.live(10 * time.Second)
	w.step(ipam.Seen{What: ipam.LookKernel}) // the kernel's event
	for range 10 {
		began := w.now
		l := w.untilLook(ipam.LookKernel)
		if pause := w.now - began; pause > 5*time.Second {
			t.Fatalf("the kernel is read again after %v", pause)
		}
		in := w.look(l)
		in.Complete, in.Err = false, "NLM_F_DUMP_INTR"
		w.step(in)
	}
}
