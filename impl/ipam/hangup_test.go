package ipam_test

import (
	"encoding/json"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// TestWhoHangsUpTakesNobodyAlong: of two that wait for the same the second one's caller hangs up. The first one is
// answered, the second one is not, and nothing is kept for it; whatever they wait for.
func TestWhoHangsUpTakesNobodyAlong(t *testing.T) {
	full := func(t *testing.T) *world { // no address is free
		w := small(t)
		w.up("c1", "web-1")
		w.up("c2", "web-2")
		return w
	}
	cooling := func(t *testing.T) *world {
		w := full(t)
		w.down(&w.boxes[0])
		w.down(&w.boxes[1])
		return w
	}
	for what, c := range map[string]struct {
		begin func(t *testing.T) *world
		ask   func(w *world, id string) ipam.Req
	}{
		"an address": {cooling, func(w *world, id string) ipam.Req { return w.add(w.pod(id, "new-"+id)) }},
		"the start": {func(t *testing.T) *world {
			w := newWorld(t, ipam.Sound())
			w.start()
			return w
		}, func(w *world, id string) ipam.Req { return w.add(w.pod(id, "new-"+id)) }},
		"a CHECK": {full, func(w *world, id string) ipam.Req {
			r := w.req()
			w.step(ipam.Check{Req: r, Att: att(map[string]string{"a": "c1", "b": "c2"}[id])})
			return r
		}},
		"an ADD again": {full, func(w *world, id string) ipam.Req {
			return w.add(&w.boxes[map[string]int{"a": 0, "b": 1}[id]])
		}},
	} {
		t.Run(what, func(t *testing.T) {
			w := c.begin(t)
			first, second := c.ask(w, "a"), c.ask(w, "b")
			w.step(ipam.Gone{Req: second})
			w.live(20 * time.Second)
			w.answered(first)
			if r := w.replies[second]; r != nil {
				t.Errorf("nobody hears the answer %+v", r)
			}
			if _, kept := w.node.Find(att("b")); kept {
				t.Error("an address is kept for a caller that is gone")
			}
			w.tidy()
		})
	}
}

// TestARequestIsAnsweredOnce: a number that is taken, and one that is none, are nobody's.
func TestARequestIsAnsweredOnce(t *testing.T) {
	w := ready(t, ipam.Sound())
	one, two := w.pod("c1", "web-1"), *w.pod("c2", "web-2")
	r := w.add(one)
	w.step(ipam.Add{Req: r, Att: two.att, Pod: two.pod, Netns: two.netns})
	w.step(ipam.Add{Att: two.att, Pod: two.pod, Netns: two.netns})
	w.live(5 * time.Second)
	w.answered(r)
	if row, ok := w.node.Find(two.att); ok {
		t.Errorf("whom nobody asked for has %+v", row)
	}
}

// TestADELEndsWhatWaits of its attachment and of no other.
func TestADELEndsWhatWaits(t *testing.T) {
	w := small(t)
	for _, id := range []string{"c1", "c2"} { // both addresses cool
		b, _ := w.up(id, id)
		w.down(b)
	}
	a, b := *w.pod("a", "new-a"), *w.pod("b", "new-b")
	waits, other := w.add(&a), w.add(&b)
	behind := w.add(&a)
	end := w.del(&a)
	w.calm()
	w.answered(end)
	for _, r := range []ipam.Req{waits, behind} {
		if got := w.replies[r]; got == nil || got.Err == nil || got.Err.Code != ipam.CodeTryAgain {
			t.Errorf("request %d waits for an address that nobody wants any more: %+v", r, got)
		}
	}
	w.live(20 * time.Second)
	if got := w.answered(other); !got.Address.IsValid() {
		t.Errorf("the other one is answered %+v", got)
	}
	w.tidy()
}

// TestStopAnswersWhoWaits: for an address, behind another request and for a look at the kernel; and who comes later.
func TestStopAnswersWhoWaits(t *testing.T) {
	w := small(t)
	w.up("c1", "web-1")
	gone, _ := w.up("c2", "web-2")
	w.down(gone)
	a := *w.pod("a", "new-a")
	waits, again := w.add(&a), w.add(&w.boxes[0])
	behind := w.add(&a)
	w.step(ipam.Stop{})
	late := w.add(w.pod("late", "late"))
	for what, r := range map[string]ipam.Req{"for an address": waits, "behind it": behind, "for the kernel": again,
		"later": late} {
		if got := w.replies[r]; got == nil || got.Err == nil || got.Err.Code != ipam.CodeTryAgain ||
			!strings.Contains(got.Err.Text, "stopping") {
			t.Errorf("who waits %s is told %+v", what, got)
		}
	}
}

// TestTheLongestAttachment: an alias is what the kernel takes of it, and one byte more is refused before anything is
// done.
func TestTheLongestAttachment(t *testing.T) {
	w := ready(t, ipam.Sound())
	widest := dataplane.Alias("aws-cni", "", "eth0", netip.MustParseAddr("255.255.255.255"))
	id := strings.Repeat("x", dataplane.MaxAlias-len(widest))
	w.up(id, "web-1")
	b := w.pod(id+"x", "web-2")
	r := w.add(b)
	w.live(time.Second)
	if got := w.replies[r]; got == nil || got.Err == nil || got.Err.Code != ipam.CodeConfig {
		t.Errorf("an attachment whose alias has %d bytes: %+v", dataplane.MaxAlias+1, got)
	}
	if _, ok := w.node.Find(b.att); ok {
		t.Error("it has an address")
	}
}

// TestNeighbouringVersionsAreServed, also by a daemon that does not say its own: it is the present one.
func TestNeighbouringVersionsAreServed(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.version = 0
	w.start()
	w.live(10 * time.Second)
	for plugin, served := range map[int]bool{0: true, ipam.Version: true, ipam.Version + 1: true, ipam.Version - 1: true,
		ipam.Version + 2: false} {
		b := w.pod("c"+string(rune('a'+plugin)), "web")
		r := w.req()
		w.step(ipam.Add{Req: r, Att: b.att, Pod: b.pod, Netns: b.netns, Version: plugin})
		w.live(time.Second)
		if got := w.replies[r]; got == nil || (got.Err == nil) != served || !served && got.Err.Code != ipam.CodeVersion {
			t.Errorf("a plugin of version %d: %+v", plugin, got)
		}
	}
}

// TestNameOfTheENIConfig: who says it from outside the cluster goes before the annotation, that before the label, and
// an empty value is a value.
func TestNameOfTheENIConfig(t *testing.T) {
	s := ipam.Settings{ConfigAnnotation: "annotation", ConfigLabel: "label"}
	const external = "vpc.amazonaws.com/externalEniConfig"
	for _, c := range []struct {
		labels, annotations map[string]string
		want                string
	}{
		{nil, nil, "default"},
		{map[string]string{"label": "l"}, nil, "l"},
		{map[string]string{"label": "l"}, map[string]string{"annotation": "a"}, "a"},
		{map[string]string{"label": "l", external: "e"}, map[string]string{"annotation": "a"}, "e"},
		{map[string]string{"label": "l", external: ""}, map[string]string{"annotation": "a"}, ""},
		{map[string]string{"label": "l"}, map[string]string{"annotation": ""}, ""},
		{map[string]string{"label": ""}, map[string]string{"label": "a"}, ""},
	} {
		if got := s.ConfigName(c.labels, c.annotations); got != c.want {
			t.Errorf("labels %v, annotations %v: %q, expected %q", c.labels, c.annotations, got, c.want)
		}
	}
}

// TestAPodBehindAnotherIsNotOverlooked: what cools in an earlier place of the books does not hide that a later one's
// pod is gone for good.
func TestAPodBehindAnotherIsNotOverlooked(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.Runtime, w.set.CoolDown = false, 10*time.Hour
	w.start()
	w.live(10 * time.Second)
	first, _ := w.up("c1", "web-1")
	second, a := w.up("c2", "web-2")
	w.down(first)
	w.kernel.CloseNamespace(second.netns)
	w.live(30 * time.Minute)
	if s := w.state(a); s != ipam.Cooling {
		t.Errorf("the namespace of %v ended half an hour ago, nobody sent a DEL, and it is %v", a, s)
	}
}

// TestAnIncompleteListOfPodsIsNoHint: the API server's list broke off, and no pod is gone for that.
func TestAnIncompleteListOfPodsIsNoHint(t *testing.T) {
	for _, complete := range []bool{false, true} {
		w := newWorld(t, ipam.Sound())
		w.set.API = true
		w.start()
		w.live(10 * time.Second)
		w.up("c1", "web-1")
		w.live(time.Minute)
		l := w.untilLook(ipam.LookPods)
		looks := 0
		for _, e := range w.step(ipam.Seen{ID: l.ID, What: l.What, Complete: complete}) {
			if l, ok := e.(*ipam.Look); ok && (l.What == ipam.LookRuntime || l.What == ipam.LookKernel) {
				looks++
			}
		}
		if complete != (looks > 0) {
			t.Errorf("a list without the pod, complete %v: %d looks at runtime and kernel", complete, looks)
		}
	}
}

// TestWithheldAddressesAreCounted, for an operator reads how many.
func TestWithheldAddressesAreCounted(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	w.live(time.Minute)
	w.deleted(b)
	w.step(ipam.Applied{ID: w.untilWalk().ID, Err: &dataplane.Error{Text: "out of memory"}})
	if why := w.reasons(); !strings.Contains(why, " 1 address") {
		t.Errorf("reasons: %q", why)
	}
}

// TestARefusedAssignmentAsksForAllOnce: EC2 throttles, more is wanted meanwhile, and the next request is for all of
// it.
func TestARefusedAssignmentAsksForAllOnce(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.Addresses = 10
	w.set.WarmIPTarget = 2
	w.start()
	c := w.untilCall(ipam.AssignIPs)
	if c.Count != 2 {
		t.Fatalf("the first request is for %d", c.Count)
	}
	w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Throttled}})
	w.set.WarmIPTarget = 6
	w.step(ipam.Set{Settings: w.set})
	if c = w.untilCall(ipam.AssignIPs); c.Count != 6 {
		t.Errorf("six addresses are missing, and EC2 is asked for %d", c.Count)
	}
}

// TestAnOldUnassignmentSparesWhatIsUsed: its intent's drop never became durable, and meanwhile a pod has got one of
// the addresses and another one cools. Both stay.
func TestAnOldUnassignmentSparesWhatIsUsed(t *testing.T) {
	for _, cools := range []bool{false, true} {
		w := ready(t, ipam.Sound())
		w.set.CoolDown = time.Hour
		w.step(ipam.Set{Settings: w.set})
		b, a := w.up("c1", "web-1")
		if cools {
			w.down(b)
			b.ready = false
		}
		v := *w.eni("eni-0")
		stale := ipam.Row{Intent: &ipam.Intent{Token: "enilab-old", Stage: ipam.Ready, Doing: ipam.UnassignIPs,
			Before: []netip.Addr{a}, ENI: ipam.ENI{ID: v.ID, MAC: v.MAC, Primary: v.Primary, Attachment: v.Attachment, Instance: v.Instance}}}
		w.rows[stale.Key()] = stale
		w.start()
		w.live(15 * time.Minute)
		if !slices.Contains(w.eni("eni-0").Addresses, a) {
			t.Errorf("cools %v: %v was given back to EC2", cools, a)
		}
		if s := w.state(a); !cools && s != ipam.Assigned || cools && s != ipam.Cooling {
			t.Errorf("cools %v: %v is %v", cools, a, s)
		}
		if n := w.seenView().Intents; n != 0 {
			t.Errorf("%d intents are left", n)
		}
	}
}

// TestAddedAddressesAreToldOnce, not at every look that shows them.
func TestAddedAddressesAreToldOnce(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, _ := w.up("c1", "web-1")
	w.apply(dataplane.Op{Kind: dataplane.PodAddress, Alias: aliasOf(b, b.addr), Netns: b.netns, Addr: w.free()[0]})
	for range 3 {
		w.step(ipam.Seen{What: ipam.LookKernel})
		w.live(time.Minute)
	}
	if n := w.marks[ipam.AddressesAdded]; n != 1 || !strings.Contains(w.reasons(), "beyond its own") {
		t.Errorf("it is told %d times; reasons: %q", n, w.reasons())
	}
}

// TestWrongTypesAreNotRead: whatever field of a record is of another type is an error, and not a record that lacks
// it.
func TestWrongTypesAreNotRead(t *testing.T) {
	run := must.Get(ipam.EncodeRun(0, bootWall, append(someRows(), someFacts())))(t)
	lib := must.Get(ipam.EncodeLib(0, someIntents()))(t)
	for name, c := range map[string]struct {
		file   []byte
		decode func([]byte) error
	}{
		"run": {run, func(b []byte) error { _, err := ipam.DecodeRun(0, bootWall, b); return err }},
		"lib": {lib, func(b []byte) error { _, err := ipam.DecodeLib(0, b); return err }},
	} {
		if err := c.decode(c.file); err != nil {
			t.Fatal(name, err)
		}
		var root any
		must.Do(t, json.Unmarshal(c.file, &root))
		fields := 0
		var visit func(path string, v any)
		try := func(path string, put func(any), was any) {
			wrong := any(map[string]any{"a": 1}) // of what is text, number or truth
			switch was.(type) {
			case []any, map[string]any:
				wrong = "text"
			}
			put(wrong)
			if err := c.decode(must.Get(json.Marshal(root))(t)); err == nil {
				t.Errorf("%s: %s may be %v", name, path, wrong)
			}
			put(was)
			fields++
			visit(path, was)
		}
		visit = func(path string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for _, key := range slices.Sorted(maps.Keys(v)) {
					if key == "interfacesCount" { // upstream's own, kept unread
						continue
					}
					try(path+"."+key, func(x any) { v[key] = x }, v[key])
				}
			case []any:
				for i := range v {
					try(path+"[]", func(x any) { v[i] = x }, v[i])
				}
			}
		}
		visit("", root)
		if fields < 30 {
			t.Errorf("%s: only %d fields were tried", name, fields)
		}
	}
}
