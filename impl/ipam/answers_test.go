package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// What the parts answer on and on: to callers, to records that have become durable, and to what the sources say.

// quiet is a Node that serves, has these addresses free on its primary ENI, and asks no source anything.
func quiet(t *testing.T, list ...string) *Node {
	t.Helper()
	n := freeOn(t, list...)
	n.Set = Defaults()
	hush(&n.evidence)
	n.out = nil
	return n
}

// hush forgets which sources are to be asked.
func hush(ev *evidence) {
	for i := range ev.Looks {
		ev.Looks[i].Want = never
	}
}

// warned counts the notes of the step so far that are of a point and warn.
func warned(n *Node, p Point) (count int) {
	for _, e := range n.out {
		if m, ok := e.(*Note); ok && m.Point == p && m.Warn {
			count++
		}
	}
	return count
}

// TestARecoveredRowGoesOnOnceItIsDurable: with what waits for its attachment, and for the one that had it before. A
// Save that fails, or one of an earlier life of the row, ends nothing.
func TestARecoveredRowGoesOnOnceItIsDurable(t *testing.T) {
	for _, c := range []struct {
		what  string
		tag   uint64
		fails bool
		saved bool
		tries int
		retry time.Duration
	}{
		{"durable", 7, false, true, 0, never},
		{"an earlier one is", 6, false, false, 3, never},
		{"it fails", 7, true, false, 4, time.Minute + 8*removalPause},
	} {
		n := quiet(t, "10.0.0.20")
		n.Steps = 7
		att, was := assign(n, 0, "c1"), Attachment{network, "c0", "eth0"}
		a := &n.pool.Addrs[0]
		a.Was, a.Tries, a.Tag = was, 3, 7
		n.pods.record(0)
		for r, of := range []Attachment{att, was} {
			n.requests.accept(0, Req(r+1), VerbDel, of, time.Hour)
			n.requests.enqueue(queued{Del: &Del{Req: Req(r + 1), Att: of}})
		}
		n.pods.recordSaved(time.Minute, 0, c.tag, !c.fails)
		if a.Tries != c.tries || a.Retry != c.retry || (a.Was == Attachment{}) != c.saved {
			t.Errorf("%s: it is tried for the %d. time at %v, and was %v's", c.what, a.Tries, a.Retry, a.Was)
		}
		want := never
		if c.saved {
			want = time.Minute
		}
		if at := n.evidence.Looks[LookKernel].Want; (at != never) != c.saved || c.saved && at > want+coolBatch {
			t.Errorf("%s: the kernel is looked at at %v", c.what, at)
		}
		r := replies(n)[2]
		if (a.Op == releasing && a.Req == 1) != c.saved || (a.Op == recording) == c.saved ||
			(r != nil && r.Err == nil) != c.saved {
			t.Errorf("%s: %v runs for %d, the DEL of before is told %+v", c.what, a.Op, a.Req, r)
		}
	}
	n := quiet(t, "10.0.0.20")
	assign(n, 0, "c1")
	a := &n.pool.Addrs[0]
	a.run(repairing)
	n.pods.recordSaved(time.Minute, 0, a.Tag, true)
	if a.Op != repairing || n.evidence.Looks[LookKernel].Want != never {
		t.Errorf("a record that is not awaited: %v runs", a.Op)
	}
	a.Op = noOp
	n.pods.record(0)
	n.pods.recordSaved(time.Minute, 0, a.Tag, true)
	if at := n.evidence.Looks[LookKernel].Want; a.Op != noOp || at != time.Minute+coolBatch {
		t.Errorf("nothing waits: %v runs, the kernel is looked at at %v", a.Op, at)
	}
}

// TestRequestsWhoseTimeIsUpAreAnswered, whichever comes first; the others wait on. An ADD that timed out is told of.
func TestRequestsWhoseTimeIsUpAreAnswered(t *testing.T) {
	n := quiet(t)
	for i, c := range []struct {
		verb Verb
		at   time.Duration
	}{{VerbAdd, time.Hour}, {VerbAdd, time.Minute}, {VerbDel, time.Minute}, {VerbAdd, time.Minute},
		{VerbAdd, 2 * time.Minute}} {
		att := Attachment{network, string(rune('a' + i)), "eth0"}
		n.requests.accept(0, Req(i+1), c.verb, att, c.at)
		if c.verb == VerbAdd {
			n.requests.Waiting = append(n.requests.Waiting, Add{Req: Req(i + 1), Att: att})
		}
	}
	for _, c := range []struct {
		now             time.Duration
		answered, waits int
		timedOut        int
		first, last     bool // whether the first and the last one are answered
	}{
		{time.Minute - replyMargin - 1, 0, 4, 0, false, false},
		{time.Minute - replyMargin, 3, 2, 2, false, false},
		{2*time.Minute - replyMargin, 4, 1, 3, false, true},
		{time.Hour, 5, 0, 4, true, true},
	} {
		n.pods.expire(c.now)
		r := replies(n)
		if len(r) != c.answered || len(n.requests.Waiting) != c.waits || noted(n, AddTimedOut) != c.timedOut ||
			(r[1] != nil) != c.first || (r[5] != nil) != c.last || len(n.requests.Open) != 5-c.answered {
			t.Errorf("at %v: %d are answered, %d wait, %d ADDs are told of", c.now, len(r), len(n.requests.Waiting),
				noted(n, AddTimedOut))
		}
		for _, one := range r {
			if one.Err == nil || one.Err.Code != CodeTryAgain {
				t.Errorf("at %v request %d is told %v", c.now, one.Req, one.Err)
			}
		}
	}
}

// TestWhatWaitsBehindARequestThatTimedOutGoesOn.
func TestWhatWaitsBehindARequestThatTimedOutGoesOn(t *testing.T) {
	n := quiet(t)
	att := Attachment{network, "c1", "eth0"}
	n.requests.accept(0, 1, VerbDel, att, time.Hour)
	n.requests.enqueue(queued{Del: &Del{Req: 1, Att: att}})
	for r := range Req(3) {
		n.requests.accept(0, r+2, VerbAdd, att, time.Minute)
		n.requests.Waiting = append(n.requests.Waiting, Add{Req: r + 2, Att: att})
		att.ContainerID += "'"
	}
	n.pods.expire(time.Minute)
	r := replies(n)
	if len(r) != 4 || r[1] == nil || r[1].Err != nil {
		t.Errorf("told are %+v", r)
	}
	for i := Req(2); i < 5; i++ {
		if r[i] == nil || r[i].Err == nil {
			t.Errorf("the ADD %d is told %+v", i, r[i])
		}
	}
}

// TestWhatIsQueuedWaitsForRecovery, which goes on with all of it.
func TestWhatIsQueuedWaitsForRecovery(t *testing.T) {
	for phase, goes := range map[phase]bool{recovering: false, serving: true} {
		n := quiet(t)
		n.Phase = phase
		att := Attachment{network, "c1", "eth0"}
		n.requests.accept(0, 1, VerbDel, att, time.Hour)
		n.requests.enqueue(queued{Del: &Del{Req: 1, Att: att}})
		if n.pods.runQueued(0, att); (replies(n)[1] != nil) != goes || (len(n.requests.Queued) == 0) != goes {
			t.Errorf("phase %d: told are %+v", phase, replies(n))
		}
	}
}

// TestALinkWithoutAliasIsTakenOver: by its name, and with the MAC that the pod knows where nothing says another. That
// becomes durable before it is ours, once.
func TestALinkWithoutAliasIsTakenOver(t *testing.T) {
	own := dataplane.VethMAC(alias(Attachment{network, "c1", "eth0"}, netip.MustParseAddr("10.0.0.20")))
	for _, c := range []struct {
		what      string
		a         address // its Netns, Veth and MAC
		l         dataplane.Link
		recording bool
		news      bool
		mac       string
		told      bool
	}{
		{what: "of another CNI", l: dataplane.Link{Name: "eni1", MAC: "m1"}, news: true, mac: "m1", told: true},
		{what: "of another CNI, and its row is being recorded", l: dataplane.Link{Name: "eni1", MAC: "m1"},
			recording: true, news: true, mac: "m1", told: true},
		{what: "of another CNI, by its name", a: address{Veth: "eni1"}, l: dataplane.Link{Name: "eni1", MAC: "m1"},
			news: true, mac: "m1", told: true},
		{what: "its MAC is known", a: address{MAC: "m1"}, l: dataplane.Link{Name: "eni1", MAC: "m2"}, news: true,
			mac: "m1"},
		{what: "all is known", a: address{Veth: "eni1", MAC: "m1"}, l: dataplane.Link{Name: "eni1", MAC: "m2"},
			mac: "m1"},
		{what: "we made it", a: address{Netns: 9}, l: dataplane.Link{Name: "eni1", MAC: "m1"}, news: true},
		{what: "we made it, and it is known", a: address{Netns: 9, Veth: "eni1"},
			l: dataplane.Link{Name: "eni1", MAC: "m1"}},
		{what: "the kernel says that its MAC is right", l: dataplane.Link{Name: "eni1", MAC: "m1", Adopted: true},
			news: true, mac: "m1"},
		{what: "its MAC is the alias's", l: dataplane.Link{Name: "eni1", MAC: own}, news: true, mac: own},
	} {
		n := quiet(t, "10.0.0.20")
		assign(n, 0, "c1")
		a := &n.pool.Addrs[0]
		if a.Netns, a.Veth, a.MAC = c.a.Netns, c.a.Veth, c.a.MAC; c.recording {
			n.pods.record(0)
		}
		rows, waits := len(n.ledger.put[RunStore]), len(n.Lanes[RunStore].Waits)
		if got := n.pods.takeOver(0, &c.l); got != c.news || a.Veth != "eni1" || a.MAC != c.mac {
			t.Errorf("%s: news %v, it is %q with MAC %q", c.what, got, a.Veth, a.MAC)
		}
		put, waiting := len(n.ledger.put[RunStore])-rows, len(n.Lanes[RunStore].Waits)-waits
		if (put == 1) != c.news || (waiting == 1) != (c.news && !c.recording) ||
			(a.Op == recording) != (c.news || c.recording) {
			t.Errorf("%s: %d rows are written, %d are waited for, %v runs", c.what, put, waiting, a.Op)
		}
		if (noted(n, MACUnrecorded) == 1) != c.told || warned(n, MACUnrecorded) != 0 {
			t.Errorf("%s: told %d times", c.what, noted(n, MACUnrecorded))
		}
	}
}

// TestTheAPIServersListIsAHintToLook: at the kernel and at the runtime, for a pod that it lists no more, once.
func TestTheAPIServersListIsAHintToLook(t *testing.T) {
	for _, c := range []struct {
		what        string
		pod         Pod
		spoil       func(n *Node)
		cut         bool
		gone, looks bool
		calm        bool
	}{
		{what: "listed by its name", pod: Pod{Namespace: "default", Name: "web"}, calm: true},
		{what: "listed by its UID", pod: Pod{Namespace: "default", Name: "web", UID: "u1"}, calm: true},
		{what: "another one has its name", pod: Pod{Namespace: "default", Name: "web", UID: "u0"}, gone: true,
			looks: true},
		{what: "in another namespace", pod: Pod{Namespace: "other", Name: "web"}, gone: true, looks: true},
		{what: "not listed", pod: Pod{Namespace: "default", Name: "db"}, gone: true, looks: true},
		{what: "not listed again", pod: Pod{Namespace: "default", Name: "db"},
			spoil: func(n *Node) { n.pool.Addrs[0].PodGone = true }, gone: true, calm: true},
		{what: "listed after all", pod: Pod{Namespace: "default", Name: "web"},
			spoil: func(n *Node) { n.pool.Addrs[0].PodGone = true }},
		{what: "not listed, and it was not calm", pod: Pod{Namespace: "default", Name: "db"},
			spoil: func(n *Node) { n.pool.Addrs[0].PodGone, n.evidence.calm = true, false }, gone: true},
		{what: "of no name", pod: Pod{}, calm: true},
		{what: "it cools", pod: Pod{Namespace: "default", Name: "db"},
			spoil: func(n *Node) { n.pool.rest(0, 0, true) }, calm: true},
		{what: "the list is cut short", pod: Pod{Namespace: "default", Name: "db"}, cut: true, calm: true},
		{what: "a new daemon", pod: Pod{Namespace: "default", Name: "db"},
			spoil: func(n *Node) { n.Phase = recovering }, calm: true},
	} {
		n := quiet(t, "10.0.0.20", "10.0.0.21")
		assign(n, 0, "c1")
		n.pool.Addrs[0].Pod = c.pod
		assign(n, 1, "c2")
		n.pool.Addrs[1].Pod = Pod{Namespace: "default", Name: "web", UID: "u1"}
		if n.evidence.calm = true; c.spoil != nil {
			c.spoil(n)
		}
		hush(&n.evidence)
		n.pods.seenPods(time.Minute, &Seen{What: LookPods, Pods: []Pod{{Namespace: "default", Name: "web", UID: "u1"}}},
			!c.cut)
		looks := n.evidence.Looks
		if got := n.pool.Addrs[0].PodGone; got != c.gone || n.evidence.calm != c.calm || n.pool.Addrs[1].PodGone {
			t.Errorf("%s: gone %v, calm %v", c.what, got, n.evidence.calm)
		}
		if (looks[LookRuntime].Want == time.Minute) != c.looks || (looks[LookKernel].Want == time.Minute) != c.looks {
			t.Errorf("%s: the runtime is asked at %v, the kernel at %v", c.what, looks[LookRuntime].Want,
				looks[LookKernel].Want)
		}
	}
}

// TestEachPodThatTheAPIServerListsNoMoreIsNoted, whatever comes before it.
func TestEachPodThatTheAPIServerListsNoMoreIsNoted(t *testing.T) {
	n := quiet(t, "10.0.0.20", "10.0.0.21", "10.0.0.22")
	assign(n, 1, "c1") // of no name
	assign(n, 2, "c2")
	n.pool.Addrs[2].Pod = Pod{Namespace: "default", Name: "web"}
	if n.pods.seenPods(0, &Seen{What: LookPods}, true); n.pool.Addrs[1].PodGone || !n.pool.Addrs[2].PodGone {
		t.Errorf("gone are %v and %v", n.pool.Addrs[1].PodGone, n.pool.Addrs[2].PodGone)
	}
}

// TestAnADDAgainIsAnsweredOnceTheKernelHasItsPod: at once where it has, after a repair that is told of where it lacks
// something.
func TestAnADDAgainIsAnsweredOnceTheKernelHasItsPod(t *testing.T) {
	for _, wired := range []bool{true, false} {
		n := quiet(t, "10.0.0.20")
		att := assign(n, 0, "c1")
		a := &n.pool.Addrs[0]
		a.Veth, a.Netns, n.Steps = "eni1", 9, 7
		n.requests.accept(0, 1, VerbAdd, att, time.Minute)
		l := behind("eni1", att, a.IP)
		l.Up, l.MTU, l.Proxy = true, n.Set.MTU, []netip.Addr{dataplane.Gateway()}
		o := dataplane.Observation{Complete: true, Links: []dataplane.Link{l}}
		if to := netip.PrefixFrom(a.IP, 32); wired {
			o.Routes = []dataplane.Route{{Table: dataplane.MainTable, Dst: to, Link: "eni1"}}
			o.Rules = []dataplane.Rule{{Priority: dataplane.PriorityToPod, To: to, Table: dataplane.MainTable}}
		}
		n.pods.answerAgain(0, 1, o.Index())
		r := replies(n)[1]
		if (r != nil && r.Err == nil && r.Address == a.IP) != wired || (a.Op == repairing) == wired {
			t.Errorf("the kernel has it: %v; told is %+v, %v runs", wired, r, a.Op)
		}
		if repairs := warned(n, DriftRepaired); (repairs == 1) == wired || len(applies(n)) != repairs {
			t.Errorf("the kernel has it: %v; %d repairs are told of, %d made", wired, repairs, len(applies(n)))
		}
		if !wired && (a.Req != 1 || a.Tag != 7) {
			t.Errorf("request %d waits for the repair, of step %d", a.Req, a.Tag)
		}
	}
}

// TestWhenAnObservationOfTheKernelMovesNothing: while the node serves and all is at rest.
func TestWhenAnObservationOfTheKernelMovesNothing(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		want  bool
	}{
		{"at rest", func(*Node) {}, true},
		{"a new daemon", func(n *Node) { n.Phase = recovering }, false},
		{"the host is not set up", func(n *Node) { n.host.Done = false }, false},
		{"the host is worked on", func(n *Node) { n.host.Busy = true }, false},
		{"the host is set up", func(n *Node) { n.host.Done, n.host.Busy = false, true }, false},
		{"one cools", func(n *Node) { n.pool.rest(0, assigned(n, 0), true) }, false},
		{"one is set aside", func(n *Node) { n.pool.quarantine(0, "why") }, false},
		{"a pod has one", func(n *Node) { assign(n, 0, "c1") }, true},
		{"a CHECK waits", func(n *Node) { n.requests.Checks = make([]checking, 1) }, false},
		{"an ADD again waits", func(n *Node) { n.requests.Agains = make([]again, 1) }, false},
		{"a GC waits", func(n *Node) { n.requests.Collecting.Req = 1 }, false},
		{"an ENI drains", func(n *Node) { n.ENIs[1].Stage = Draining }, false},
		{"an ENI is on its way", func(n *Node) { n.ENIs[1].Stage = Attached }, false},
		{"EC2 is called", func(n *Node) { n.ENIs[1].Wait = calling }, false},
		{"EC2 is to be called", func(n *Node) { n.ENIs[1].Doing = AssignIPs }, false},
		{"some are given back", func(n *Node) { n.ENIs[1].Trimming = true }, false},
		{"metadata does not list it", func(n *Node) { n.ENIs[1].ByIMDS = 1 }, false},
		{"it has no link", func(n *Node) { n.ENIs[1].Linked = false }, false},
		{"an empty slot", func(n *Node) { n.ENIs[1] = eni{} }, true},
	} {
		n := quiet(t, "10.0.0.20")
		n.ENIs[0].Linked, n.host.Done = true, true
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Ready, Linked: true})
		if c.spoil(n); n.atPeace() != c.want {
			t.Errorf("%s: at peace %v", c.what, n.atPeace())
		}
	}
}
