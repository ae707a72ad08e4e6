package ipam_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// walker asks for anything at any time, and answers late, wrongly, twice or never.
type walker struct {
	*world
	r      stream
	old    []ipam.Input // outcomes that were given, to be repeated
	views  [][]cloudENI // what metadata may still show
	early  map[ipam.ID]ipam.Seen
	landed []*ipam.Call // lost calls that may land yet
	open   []ipam.Req
	lies   bool
	moves  int
}

const boxesOfWalk = 24

// everyMoves the books are checked.
const everyMoves = 8

func newWalker(t testing.TB, seed uint64) *walker {
	w := &walker{world: newWorld(t, ipam.Sound()), r: stream(seed), lies: true, early: map[ipam.ID]ipam.Seen{}}
	w.set.API = true
	w.set.CoolDown = 5 * time.Second
	w.limits.Prefixes, w.groups = true, []string{"sg-1"}
	for i := range boxesOfWalk {
		w.pod("c"+strconv.Itoa(i), "web-"+strconv.Itoa(i%6))
	}
	w.start()
	return w
}

func pick[T any](r *stream, list []T) (x T) {
	if len(list) == 0 {
		return x
	}
	return list[r.below(len(list))]
}

// do is one step of the walk.
func (w *walker) do() {
	w.moves++
	switch k := w.r.below(1000); {
	case k < 250:
		w.answer()
	case k < 400:
		w.saved()
	case k < 600:
		w.request()
	case k < 800:
		w.wait()
	case k < 900:
		w.disturb()
	case k < 940:
		w.repeat()
	case k < 960:
		w.step(nil)
	case k < 970:
		w.step(ipam.Seen{})
	case k < 975:
		w.settings()
	case k < 976 && w.r.one(2):
		w.crash()
	case k < 977 && w.r.one(8):
		w.step(ipam.Stop{})
		w.crash()
	case k < 980:
		w.survive()
	}
}

func (w *walker) wait() {
	d := time.Duration(w.r.below(1000)) * time.Millisecond
	if w.r.one(50) {
		d *= 200
	}
	w.pass(d)
}

// request is any verb for any attachment.
func (w *walker) request() {
	b := &w.boxes[w.r.below(len(w.boxes))]
	req := w.req()
	if w.r.one(100) && len(w.open) > 0 {
		req = pick(&w.r, w.open) // a number that may be taken
	}
	if w.open = append(w.open, req); len(w.open) > 64 {
		w.open = w.open[1:]
	}
	var deadline time.Duration
	if w.r.one(4) {
		deadline = w.now + time.Duration(w.r.below(20_000)-100)*time.Millisecond
	}
	netns, version := b.netns, 0
	if w.r.one(50) {
		netns = uint64(w.r.below(3))
	}
	if w.r.one(20) {
		version = w.r.below(5)
	}
	switch k := w.r.below(100); {
	case k < 50:
		b.ready = true
		w.step(ipam.Add{Req: req, Att: b.att, Pod: b.pod, Netns: netns, Deadline: deadline, Version: version, Tries: w.r.below(5) / 4})
	case k < 85:
		b.ready = false
		w.step(ipam.Del{Req: req, Att: b.att, Pod: b.pod, Netns: netns, Deadline: deadline, Version: version, Intent: w.r.one(4)})
	case k < 90:
		w.step(ipam.Check{Req: req, Att: b.att, Netns: netns, Deadline: deadline})
	case k < 93:
		w.step(w.gc(req, deadline))
	default:
		gone := pick(&w.r, w.open)
		w.open = slices.DeleteFunc(w.open, func(r ipam.Req) bool { return r == gone }) // its number is not used again
		w.step(ipam.Gone{Req: gone})
	}
}

func (w *walker) gc(req ipam.Req, deadline time.Duration) ipam.GC {
	in := ipam.GC{Req: req, Network: "aws-cni", Deadline: deadline, Absent: w.r.one(5)}
	for i := range w.boxes {
		if w.boxes[i].ready && !w.r.one(10) {
			in.Valid = append(in.Valid, w.boxes[i].att)
		}
	}
	return in
}

// answer gives one outstanding effect its outcome, and that may be any.
func (w *walker) answer() {
	if len(w.flight) == 0 {
		return
	}
	e := w.take(w.r.below(len(w.flight)))
	if w.r.one(40) && w.lies {
		w.landed = append(w.landed, lostCall(e)...)
		if c, ok := e.(*ipam.Call); ok {
			w.give(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Lost}})
			return
		}
	}
	switch e := e.(type) {
	case *ipam.Look:
		w.give(w.glance(e))
	case *ipam.Call:
		w.give(w.cloud(e))
	case *ipam.Apply:
		w.give(w.apply(e))
	}
}

func lostCall(e ipam.Effect) []*ipam.Call {
	if c, ok := e.(*ipam.Call); ok {
		return []*ipam.Call{c}
	}
	return nil
}

func (w *walker) give(in ipam.Input) {
	if len(w.old) < 64 {
		w.old = append(w.old, in)
	} else {
		w.old[w.r.below(64)] = in
	}
	w.step(in)
}

func (w *walker) apply(e *ipam.Apply) ipam.Applied {
	if !w.r.one(12) {
		return w.outcome(e).(ipam.Applied)
	}
	part := w.r.below(len(e.Plan.Ops) + 1)
	done, err := w.kernel.Apply(e.Plan, 0, part)
	if err == nil {
		err = &dataplane.Error{Kind: dataplane.ErrorKind(w.r.below(8)), Op: done, Text: "walk"}
	}
	return ipam.Applied{ID: e.ID, Done: done, Err: err}
}

func (w *walker) cloud(c *ipam.Call) ipam.Called {
	w.remember()
	switch w.r.below(12) {
	case 0: // it happens, and nobody hears of it
		w.call(c)
		class := [...]ipam.Class{ipam.Lost, ipam.Unavailable, ipam.Throttled}[w.r.below(3)]
		return ipam.Called{ID: c.ID, Result: ipam.Result{Class: class}}
	case 1: // nothing happens
		class := ipam.Class(1 + w.r.below(9))
		return ipam.Called{ID: c.ID, Result: ipam.Result{Class: class, Code: class.String()}}
	}
	return ipam.Called{ID: c.ID, Result: w.call(c)}
}

// remember keeps a view of the cloud that metadata may show later.
func (w *walker) remember() {
	view := make([]cloudENI, len(w.enis))
	for i := range w.enis {
		view[i] = cloudENI{ENI: w.enis[i].copy()}
	}
	if len(w.views) < 4 {
		w.views = append(w.views, view)
	} else {
		w.views[w.r.below(4)] = view
	}
}

// glance answers a Look: late, in part, with an error, or with what used to be.
func (w *walker) glance(e *ipam.Look) ipam.Seen {
	in, ok := w.early[e.ID]
	delete(w.early, e.ID)
	if !ok {
		if w.r.one(20) && e.What == ipam.LookKernel {
			w.kernel.InterruptDumps(1)
		}
		in = w.look(e)
	}
	switch k := w.r.below(60); {
	case k == 0:
		in.Complete, in.Err = false, "walk"
	case k == 1:
		return ipam.Seen{ID: e.ID, What: e.What, Complete: w.r.one(2)}
	case k == 2:
		if in.What = ipam.What(w.r.below(9)); in.What != e.What {
			w.flight = append(w.flight, e) // that was no outcome of it
		}
	case k < 8 && in.Kernel != nil: // contradictory: something is not there
		drop(&w.r, &in.Kernel.Links)
		drop(&w.r, &in.Kernel.Rules)
		drop(&w.r, &in.Kernel.Routes)
	case k < 8 && in.IMDS != nil:
		w.lag(in.IMDS)
	case k < 8 && e.What == ipam.LookRuntime:
		drop(&w.r, &in.Sandboxes)
	case k < 8:
		drop(&w.r, &in.ENIs)
		drop(&w.r, &in.Pods)
	}
	return in
}

func drop[T any](r *stream, list *[]T) {
	for range r.below(3) {
		if n := len(*list); n > 0 {
			i := r.below(n)
			*list = slices.Delete(slices.Clone(*list), i, i+1)
		}
	}
}

// lag makes metadata show what used to be, or leave leaves out.
func (w *walker) lag(m *ipam.IMDS) {
	if v := pick(&w.r, w.views); v != nil && w.r.one(2) {
		m.ENIs = nil
		for i := range v {
			if v[i].Status == "in-use" {
				m.ENIs = append(m.ENIs, v[i].copy())
			}
		}
	}
	for i := range m.ENIs {
		if w.r.one(4) {
			m.ENIs[i].Partial = true
		}
		if w.r.one(6) {
			drop(&w.r, &m.ENIs[i].Addresses)
		}
	}
}

func (w *walker) saved() {
	s := ipam.Store(w.r.below(2))
	n := len(w.saves[s])
	switch {
	case w.r.one(100): // of something that was not asked for, or long ago
		w.step(ipam.Saved{Store: ipam.Store(w.r.below(4)), Seq: uint64(w.r.below(3))})
	case n == 0:
	case w.r.one(15):
		k := 1 + w.r.below(n)
		seq := w.saves[s][k-1].Seq
		w.saves[s] = w.saves[s][k:]
		w.step(ipam.Saved{Store: s, Seq: seq, Err: "disk full"})
	default:
		w.save(s, 1+w.r.below(n))
	}
}

// repeat gives an outcome twice, or one that nobody asked for.
func (w *walker) repeat() {
	in := pick(&w.r, w.old)
	if w.r.one(3) {
		id := ipam.ID(w.r.below(1 << 20))
		switch w.r.below(3) {
		case 0:
			in = ipam.Called{ID: id, Result: ipam.Result{Class: ipam.Class(w.r.below(12))}}
		case 1:
			in = ipam.Applied{ID: id}
		case 2:
			in = ipam.Seen{ID: id, What: ipam.What(w.r.below(9)), Complete: true}
		}
	}
	if id := outcomeID(in); w.awaited(id) {
		return // that would be the one outcome of another effect, and its own would come second
	}
	w.step(in)
}

func outcomeID(in ipam.Input) ipam.ID {
	switch in := in.(type) {
	case ipam.Called:
		return in.ID
	case ipam.Applied:
		return in.ID
	case ipam.Seen:
		return in.ID
	}
	return 0
}

// awaited says whether an effect of that ID awaits its outcome; wrong kinds are still tried, now and then.
func (w *walker) awaited(id ipam.ID) bool {
	for _, e := range w.flight {
		switch e := e.(type) {
		case *ipam.Look:
			if e.ID == id {
				return true
			}
		case *ipam.Call:
			if e.ID == id {
				return true
			}
		case *ipam.Apply:
			if e.ID == id {
				return true
			}
		}
	}
	return false
}

// disturb is what happens without the node.
func (w *walker) disturb() {
	b := &w.boxes[w.r.below(len(w.boxes))]
	switch w.r.below(14) {
	case 0: // an answer is on its way
		for _, e := range w.flight {
			if l, ok := e.(*ipam.Look); ok && w.early[l.ID].ID == 0 {
				w.early[l.ID] = w.look(l)
				return
			}
		}
	case 1, 2: // a namespace ends, and its sandbox comes back with another one
		b.ready = false
		w.kernel.CloseNamespace(b.netns)
		b.netns = w.kernel.NewNamespace()
	case 3:
		if len(w.landed) > 0 {
			w.remember()
			i := w.r.below(len(w.landed))
			w.call(w.landed[i])
			w.landed = slices.Delete(w.landed, i, i+1)
		}
	case 4:
		w.kernel.FlushRules(512)
	case 5:
		w.kernel.LinkDown("eni" + strconv.Itoa(w.r.below(4)))
	case 6:
		w.kernel.FlushNAT()
	case 7: // a third party detaches
		if v := &w.enis[w.r.below(len(w.enis))]; w.r.one(10) && v.Device != 0 && v.Status == "in-use" {
			w.remember()
			w.call(&ipam.Call{Action: ipam.DetachENI, ENI: v.ID, Attachment: v.Attachment})
		}
	case 8: // a third party assigns or takes away
		v := &w.enis[w.r.below(len(w.enis))]
		switch {
		case !w.r.one(10):
		case w.r.one(2) && len(v.Addresses) < w.limits.Addresses-1:
			v.Addresses = append(v.Addresses, w.fresh(1)...)
		default:
			v.Addresses = slices.Clone(v.Addresses)
			drop(&w.r, &v.Addresses)
		}
	case 9:
		w.full = w.r.one(4)
	case 10:
		b.ready = !b.ready
	case 11:
		b.addr = netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + w.r.below(20))})
	case 12:
		w.bare = w.r.one(4)
	case 13:
		w.groups = []string{"sg-1", "sg-2"}[:1+w.r.below(2)]
	}
}

func (w *walker) settings() {
	w.set.WarmENITarget, w.set.WarmIPTarget, w.set.MinimumIPTarget = w.r.below(3), 0, 0
	if w.r.one(2) {
		w.set.WarmIPTarget, w.set.MinimumIPTarget = w.r.below(5), w.r.below(8)
	}
	w.set.Runtime = !w.r.one(5)
	w.set.Cordoned = w.r.one(10)
	w.set.NoProvisioning = w.r.one(10)
	w.set.IMDSOnly = w.r.one(10)
	w.set.MaxENI = w.r.below(4)
	w.set.MaxPods = w.r.below(3) * 8
	w.set.PrefixDelegation, w.set.WarmPrefixTarget = w.r.one(3), w.r.below(3)
	w.step(ipam.Set{Settings: w.set})
}

// crash ends the daemon. Of what was in flight anything may have happened.
func (w *walker) crash() {
	for s := range w.saves {
		w.endure(ipam.Store(s), w.r.below(len(w.saves[s])+1))
	}
	for _, e := range w.flight {
		switch e := e.(type) {
		case *ipam.Call:
			if w.r.one(2) {
				w.call(e)
			} else {
				w.landed = append(w.landed, e)
			}
		case *ipam.Apply:
			w.kernel.Apply(e.Plan, 0, w.r.below(len(e.Plan.Ops)+1))
		}
	}
	if w.r.one(20) { // the records are lost
		clear(w.rows)
	}
	w.version = 1 + w.r.below(2)
	w.old, w.open = w.old[:0], w.open[:0]
	clear(w.early)
	w.now += time.Duration(w.r.below(5000)) * time.Millisecond
	w.start()
}

// sane recomputes what the node keeps twice.
func (w *walker) sane() {
	if err := w.node.Sane(); err != nil {
		w.t.Fatalf("after %d steps: %v", w.moves, err)
	}
}

// crowded says whether pods live on more ENIs than the instance carries: a third party has detached one, and another
// took its place. It waits for an index, as long as its pods live. What the runtime claims lives, whether or not that
// is true: nothing is given back under it.
func (w *walker) crowded(v *ipam.View) bool {
	carry := 1 // the primary does in any case
	for _, e := range v.ENIs {
		if e.Device != 0 && (e.InUse > 0 || w.claimed(w.eni(e.ID))) {
			carry++
		}
	}
	return carry > v.Limits.ENIs
}

// claimed says whether a pod has an address of an ENI, by the runtime's word or the kernel's.
func (w *walker) claimed(e *cloudENI) bool {
	if e == nil {
		return false
	}
	has := func(a netip.Addr) bool {
		return slices.Contains(e.Addresses, a) || slices.ContainsFunc(e.Prefixes, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	return slices.ContainsFunc(w.boxes, func(b box) bool { return b.ready && has(b.addr) }) ||
		slices.ContainsFunc(w.kernel.Observe().Links, func(l dataplane.Link) bool { return slices.ContainsFunc(l.PeerAddresses, has) })
}

// rest lets the world be perfect for a while; the node has to come to rest.
func (w *walker) rest() {
	w.full, w.bare = false, false
	clear(w.early)
	w.set = ipam.Defaults()
	w.step(ipam.Set{Settings: w.set})
	stops := w.marks[ipam.DrainStopped]
	w.live(15 * time.Minute)
	v := ipam.View{}
	w.node.View(&v)
	if v.Running != 0 || v.Intents != 0 && !w.crowded(&v) || v.Waiting != 0 || v.Homeless != 0 || !v.Serving && !v.Stopping {
		state, _ := w.node.Encode()
		w.t.Fatalf("after %d steps and a quarter of an hour of peace: %+v\n%s", w.moves, v, state)
	}
	if v.Stopping || w.crowded(&v) {
		return
	}
	if slices.ContainsFunc(w.enis, func(e cloudENI) bool { return e.Status != "in-use" }) {
		w.live(time.Hour) // one that no record names is swept when it is old enough
		w.node.View(&v)
	}
	if why := w.differs(&v); why != "" {
		state, _ := w.node.Encode()
		w.t.Fatalf("after %d steps and a quarter of an hour of peace %s: %+v\n%s", w.moves, why, v, state)
	}
	w.quiet(w.marks[ipam.DrainStopped] > stops)
	// An ENI may have other security groups than the primary one: by a call that was lost and landed late, or an answer of
	// long ago that a daemon believed. The next one notices.
	other := func(e cloudENI) bool { return e.Device != 0 && !slices.Equal(e.Groups, w.groups) }
	if slices.ContainsFunc(w.enis, other) {
		w.crash()
		w.live(time.Hour)
		if i := slices.IndexFunc(w.enis, other); i >= 0 {
			e := &w.enis[i]
			w.t.Fatalf("after %d steps a new daemon leaves %s groups %v, and the primary ENI has %v", w.moves, e.ID, e.Groups, w.groups)
		}
	}
}

// differs says where the books of a node at rest are not what its cloud, its store and its kernel are.
func (w *walker) differs(v *ipam.View) string {
	for i := range w.enis {
		e := &w.enis[i]
		if e.Status != "in-use" {
			if w.claimed(e) {
				continue // nothing is done under a pod
			}
			return e.ID + " is made, and nobody attaches or deletes it"
		}
		j := slices.IndexFunc(v.ENIs, func(o ipam.ViewENI) bool { return o.ID == e.ID })
		if j < 0 {
			return e.ID + " is not in the books"
		}
		has := len(e.Addresses) + 16*len(e.Prefixes) // with what EC2 took from another ENI under a pod, and gave to this one
		if o := &v.ENIs[j]; o.Device != e.Device || o.MAC != e.MAC || o.Total > has || o.Total+v.Taken < has || o.Prefixes != len(e.Prefixes) {
			return fmt.Sprintf("%s has device %d, %d addresses and %d prefixes, and is in the books as %+v", e.ID, e.Device, len(e.Addresses), len(e.Prefixes), *o)
		}
	}
	for i := range v.ENIs {
		if e := w.eni(v.ENIs[i].ID); e == nil || e.Status != "in-use" {
			return "the books have an ENI that is not attached, " + v.ENIs[i].ID
		}
		if o := &v.ENIs[i]; o.Device != 0 && o.InUse == 0 && v.Free >= 2*(w.limits.Addresses-1) && !w.claimed(w.eni(o.ID)) {
			return "nothing needs " + o.ID + ", and it stays"
		}
	}
	if len(v.ENIs) < w.limits.ENIs && v.Free < w.limits.Addresses-1 {
		return "fewer addresses are free than an ENI has, and the node may have another"
	}
	assigned, intents := 0, 0
	for _, r := range w.rows {
		switch {
		case r.Intent != nil:
			intents++
		case r.State == ipam.Assigned:
			assigned++
		}
	}
	// What could not be written, for the disk was full: an address that is set aside meanwhile, an intent that is over.
	if assigned < v.Assigned || assigned > v.Assigned+v.Quarantined || intents < v.Intents {
		return fmt.Sprintf("the store has rows of %d assigned addresses and of %d intents", assigned, intents)
	}
	rules := 0
	for _, r := range w.kernel.Observe().Rules {
		if r.Priority == dataplane.PriorityToPod {
			rules++
		}
	}
	if rules > v.Assigned+v.Quarantined { // fewer, where a pod is there by the runtime's word alone
		return fmt.Sprintf("the kernel has rules to %d addresses of pods", rules)
	}
	return ""
}

// quiet: a node at rest in a world that does not change asks EC2 for nothing, writes nothing and leaves the kernel alone.
// One that keeps an ENI which it would give back goes on trying, and writes whether it is in service.
func (w *walker) quiet(keeps bool) {
	was := w.tap
	w.tap = func(in ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e.(type) {
			case *ipam.Save:
				if keeps {
					continue
				}
			case *ipam.Call, *ipam.Apply:
			default:
				continue
			}
			w.t.Fatalf("after %d steps the node has come to rest, and then, at %v, for %T%s, wants %T%s", w.moves, w.now, in, inShort(in), e, effectInShort(e))
		}
	}
	w.live(10 * time.Minute)
	w.tap = was
}

// TestWalk steps nodes through inputs in any order. ENILAB_WALK says how many; the effect contract must hold, nothing may panic,
// and what a node keeps twice must agree.
func TestWalk(t *testing.T) {
	total := 3_000_000 // 45 s of one core
	if testing.Short() {
		total = 100_000
	}
	if s := os.Getenv("ENILAB_WALK"); s != "" {
		var err error
		if total, err = strconv.Atoi(s); err != nil {
			t.Fatalf("ENILAB_WALK=%q: expected a number of steps", s)
		}
	}
	const leg = 20_000
	began := time.Now()
	marks := map[ipam.Point]int{}
	for seed := uint64(1); int(seed-1)*leg < total; seed++ {
		walk(t, seed, min(leg, total-int(seed-1)*leg), marks)
	}
	t.Logf("%d steps, %.0f per second", total, float64(total)/time.Since(began).Seconds())
	var b bytes.Buffer
	for m := ipam.RuntimeListRefused; m <= ipam.Restored; m++ {
		fmt.Fprintf(&b, " %v=%d", m, marks[m])
	}
	t.Log("marks:", b.String())
}

func walk(t *testing.T, seed uint64, steps int, marks map[ipam.Point]int) {
	w := newWalker(t, seed)
	defer func() {
		if p := recover(); p != nil {
			t.Fatalf("seed %d, step %d: panic: %v\n%s", seed, w.moves, p, debug.Stack())
		}
		if t.Failed() {
			if testing.Verbose() {
				w.tell()
			}
			t.Logf("seed %d, step %d", seed, w.moves)
		}
	}()
	for w.moves < steps {
		w.do()
		if w.moves%everyMoves == 0 {
			w.sane()
		}
		if w.moves%5000 == 0 {
			w.rest()
		}
	}
	for m, k := range w.marks {
		marks[m] += k
	}
}
