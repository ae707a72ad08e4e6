package ipam_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// has says whether the node counts an ENI among its own.
func (w *world) has(id string) bool {
	return slices.ContainsFunc(w.seenView().ENIs, func(e ipam.ViewENI) bool { return e.ID == id })
}

// TestUntaggedENIsAreLeftAlone where MANAGE_UNTAGGED_ENI is false: an ENI is the node's that a VPC CNI of it has
// made.
func TestUntaggedENIsAreLeftAlone(t *testing.T) {
	for owner, ours := range map[string]bool{instance: true, "": false, "i-2": false} {
		w := newWorld(t, ipam.Sound())
		w.limits.ENIs, w.set.LeaveUntagged = 6, true
		w.attachForeign("eni-7", 3)
		w.eni("eni-7").Owner = owner
		w.start()
		w.live(15 * time.Minute)
		if w.has("eni-7") != ours {
			t.Errorf("made by %q, and it is the node's: %v", owner, !ours)
		}
	}
}

// TestMetadataAloneForgetsSlowly: where EC2 is not asked, an ENI that metadata does not list is not gone for that,
// until it is not listed for longer than metadata may be behind.
func TestMetadataAloneForgetsSlowly(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.ENIs, w.set.IMDSOnly = 6, true
	w.attachForeign("eni-7", 3)
	w.eni("eni-7").DOT = true // metadata would not say
	w.step(ipam.Start{Boot: "b", Rebooted: true, Booted: w.now, Seed: 9, Daemon: self, Version: w.version,
		Wall: bootWall, Settings: w.set}) // the first of the boot believes what is there
	w.live(time.Minute)
	if !w.has("eni-7") {
		t.Fatal("eni-7 is not the node's: the test shows nothing")
	}
	w.gone("eni-7")
	w.live(8 * time.Minute)
	if !w.has("eni-7") {
		t.Error("metadata has not listed it for eight minutes, and it is forgotten")
	}
	w.live(5 * time.Minute)
	if w.has("eni-7") {
		t.Error("metadata has not listed it for thirteen minutes, and it is still the node's")
	}
	w.tidy()
}

// TestAStoppingNodeSaysSo, and one that is told not to ask EC2 any more waits for no word of it.
func TestAStoppingNodeSaysSo(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.deaf = true
	w.start()
	w.live(10 * time.Second)
	if v := w.seenView(); v.Surveyed || v.Stopping || !v.Serving {
		t.Errorf("EC2 is silent: %+v", v)
	}
	w.reset(func(s *ipam.Settings) { s.IMDSOnly = true })
	if v := w.seenView(); !v.Surveyed {
		t.Errorf("EC2 is not to be asked, and waited for: %+v", v)
	}
	w.step(ipam.Stop{})
	if v := w.seenView(); v.Serving || !v.Stopping {
		t.Errorf("after a stop: %+v", v)
	}
}

// TestWhenAddressesOfUnknownPastAreFree: at once after a reboot, which ended all pods long ago; not where records may
// have been lost that would say what rests, for as long as an address rests.
func TestWhenAddressesOfUnknownPastAreFree(t *testing.T) {
	for _, c := range []struct {
		rebooted bool
		unread   string
		free     bool
	}{{true, "", true}, {true, "damaged", false}, {false, "", false}} {
		w := newWorld(t, ipam.Sound())
		w.now, w.set.NoProvisioning = time.Hour, true
		w.enis[0].Addresses = w.fresh(3)
		w.step(ipam.Start{Boot: "b", Rebooted: c.rebooted, Booted: time.Second, Unread: c.unread, Seed: 9, Daemon: self,
			Version: w.version, Wall: bootWall, Cluster: w.cluster, Settings: w.set})
		w.live(20 * time.Second)
		if free := w.seenView().Free > 0; free != c.free {
			t.Errorf("%+v: free after twenty seconds: %v", c, free)
		}
		w.live(5 * time.Minute)
		if w.seenView().Free == 0 {
			t.Errorf("%+v: none is free after five minutes", c)
		}
	}
}

// TestAMACIsOnRecordBeforeTheLinkIsOurs: once it has our alias nobody can tell that another CNI made it.
func TestAMACIsOnRecordBeforeTheLinkIsOurs(t *testing.T) {
	const theirs = "0a:11:22:33:44:55"
	w, _ := manned(t)
	w.live(time.Minute)
	veth := w.kernel.VethOf("c1")
	w.kernel.SetLinkMAC(veth, theirs)
	w.kernel.SetLinkAlias(veth, "")
	var key ipam.Key
	for k, r := range w.rows { // as another CNI's record is read
		if r.Att == att("c1") {
			r.Netns, r.Veth, r.MAC = 0, "", ""
			w.rows[k], key = r, k
		}
	}
	adopted := false
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			a, ok := e.(*ipam.Apply)
			if !ok || !slices.ContainsFunc(a.Plan.Ops, func(o dataplane.Op) bool { return o.Kind == dataplane.AdoptLink }) {
				continue
			}
			if adopted = true; w.rows[key].MAC != theirs {
				t.Errorf("the link gets our alias, and on record is %+v", w.rows[key])
			}
		}
	}
	w.start()
	for range 500 { // whatever is not a disk is faster than that
		switch at, _ := w.node.Next(); {
		case len(w.flight) > 0:
			w.step(w.outcome(w.take(0)))
		case len(w.saves[0]) > 0:
			w.save(ipam.RunStore, 1)
		case len(w.saves[1]) > 0:
			w.save(ipam.LibStore, 1)
		case !adopted:
			w.pass(max(at-w.now, 0))
		}
	}
	if !adopted {
		t.Error("the link was not adopted")
	}
}

// TestADELThatWaitedForTheStartFindsAnotherCNIsLink: the record does not name it, and the daemon has seen it before it
// serves. Nothing leads to the address any more when the DEL is answered.
func TestADELThatWaitedForTheStartFindsAnotherCNIsLink(t *testing.T) {
	w, pods := manned(t)
	a := pods[att("c1")]
	w.kernel.SetLinkAlias(w.kernel.VethOf("c1"), "")
	r := w.rows[ipam.Key{Address: a}] // as another CNI's record is read
	r.Netns, r.Veth, r.MAC = 0, "", ""
	w.rows[r.Key()] = r
	w.start()
	del := w.req()
	w.step(ipam.Del{Req: del, Att: att("c1"), Intent: true, Deadline: w.now + time.Minute})
	for i := 0; w.replies[del] == nil && i < 500; i++ {
		w.onward()
	}
	w.answered(del)
	if slices.ContainsFunc(w.kernel.Observe().Routes, func(r dataplane.Route) bool { return r.Dst == prefix(a) }) {
		t.Errorf("the DEL is answered, and a route leads to %v", a)
	}
}

// TestACorruptStateIsRefused: a node that has an ENI or an address twice, or counts what it has not, is none to go on
// with.
func TestACorruptStateIsRefused(t *testing.T) {
	w, _ := manned(t)
	w.further().live(time.Minute) // a second ENI
	whole := must.Get(w.node.Encode())(t)
	type object = map[string]any
	list := func(state object, name string) []any { l, _ := state[name].([]any); return l }
	for what, spoil := range map[string]func(state object) bool{
		"an ENI twice": func(state object) bool {
			l := list(state, "ENIs")
			if len(l) < 2 {
				return false
			}
			l[1].(object)["ID"] = l[0].(object)["ID"]
			return true
		},
		"an address twice": func(state object) bool {
			l := list(state, "Addrs")
			if len(l) < 2 {
				return false
			}
			l[1].(object)["IP"] = l[0].(object)["IP"]
			return true
		},
		"an attachment twice": func(state object) bool {
			l := list(state, "Addrs")
			for _, a := range l[1:] {
				if a.(object)["Keyed"] == true && l[0].(object)["Keyed"] == true {
					a.(object)["Att"] = l[0].(object)["Att"]
					return true
				}
			}
			return false
		},
		"an address on no ENI": func(state object) bool { list(state, "Addrs")[0].(object)["ENI"] = 99; return true },
		"an allocation that cannot be found": func(state object) bool {
			list(state, "Addrs")[0].(object)["Keyed"] = false
			return true
		},
		"one more than there are": func(state object) bool {
			c := list(state, "Count")
			if len(c) == 0 {
				return false
			}
			c[len(c)-1] = 1
			return true
		},
		"": func(object) bool { return true },
	} {
		var all object
		d := json.NewDecoder(bytes.NewReader(whole))
		d.UseNumber() // some are larger than a float can tell
		must.Do(t, d.Decode(&all))
		if !spoil(all["State"].(object)) {
			t.Errorf("%s: the state has no such thing", what)
			continue
		}
		_, err := ipam.Decode(must.Get(json.Marshal(all))(t), w.policy)
		if (err == nil) != (what == "") {
			t.Errorf("a state with %q: %v", what, err)
		}
	}
}

// TestAFullNodeSaysSoAtOnce: nothing is on its way to it, so a caller waits for nothing.
func TestAFullNodeSaysSoAtOnce(t *testing.T) {
	w := small(t)
	w.up("c1", "web-1")
	w.up("c2", "web-2")
	w.live(time.Minute)
	r := w.add(w.pod("c3", "web-3"))
	w.calm()
	if got := w.replies[r]; got == nil || got.Err == nil || got.Err.Code != ipam.CodeTryAgain {
		t.Errorf("the ADD is told %+v", got)
	}
}

// TestAnADDHearsThatEC2IsSilent: what the node lacks addresses for is said to who wanted one.
func TestAnADDHearsThatEC2IsSilent(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.deaf = true
	w.start()
	w.live(time.Minute)
	b := w.pod("c1", "web-1")
	r := w.req()
	w.step(ipam.Add{Req: r, Att: b.att, Pod: b.pod, Netns: b.netns, Deadline: w.now + 5*time.Second})
	w.live(10 * time.Second)
	if got := w.replies[r]; got == nil || got.Err == nil || !strings.Contains(got.Err.Text, "EC2 does not say") {
		t.Errorf("the ADD is told %+v", got)
	}
}
