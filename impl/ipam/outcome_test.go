package ipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// TestWhatEC2sAnswerBegins: each call that EC2 has accepted takes the ENI to its next stage, or to rest.
func TestWhatEC2sAnswerBegins(t *testing.T) {
	const now = time.Hour
	ip, prefix := netip.MustParseAddr("10.0.0.20"), netip.MustParsePrefix("10.0.0.32/28")
	for _, c := range []struct {
		what  string
		stage Stage
		doing Action
		r     Result
		want  Stage
		next  time.Duration
		then  Action
		good  func(n *Node, e *eni) bool
	}{
		{"attached", Created, AttachENI, Result{Attachment: "a-1"}, Attached, now, AttachENI,
			func(n *Node, e *eni) bool {
				return e.Attachment == "a-1" && e.Barred == 0 && !n.pool.Warm.Probe && n.pool.Warm.Most == 0
			}},
		{"to go with the instance", Attached, ModifyENI, Result{}, Attached, now, ModifyENI,
			func(_ *Node, e *eni) bool { return e.DOT }},
		{"more for one on its way", Attached, AssignIPs, Result{Addresses: []netip.Addr{ip},
			Prefixes: []netip.Prefix{prefix}},
			Attached, now, ModifyENI, func(n *Node, e *eni) bool {
				return slices.Equal(e.Addresses, []netip.Addr{netip.MustParseAddr("10.0.0.9"), ip}) &&
					slices.Equal(e.Prefixes, []netip.Prefix{prefix}) && len(n.pool.byAddress) == 0 &&
					n.pool.Warm.Fails == 0 && n.pool.Warm.Ask == 4 && !n.pool.Warm.Bare && e.Stored
			}},
		{"more for one in service", Ready, AssignIPs, Result{Addresses: []netip.Addr{ip},
			Prefixes: []netip.Prefix{prefix}},
			Ready, never, 0, func(n *Node, e *eni) bool {
				i, known := n.pool.byAddress[ip]
				return known && !n.pool.Addrs[i].Prefixed && n.pool.Addrs[i].Given == now &&
					len(n.pool.byAddress) == 17 &&
					n.pool.Warm.Fails == 0 && n.pool.Warm.Ask == 4 && !n.pool.Warm.Bare && !e.Stored
			}},
		{"addresses alone", Ready, AssignIPs, Result{Addresses: []netip.Addr{ip}}, Ready, never, 0,
			func(n *Node, _ *eni) bool { return n.pool.Warm.Bare }},
		{"other groups", Ready, GroupENI, Result{}, Ready, never, 0, func(n *Node, e *eni) bool {
			return slices.Equal(e.Groups, []string{"sg-2"}) && e.GroupsAt == 0 && e.GivenAt == now && e.Give == nil &&
				noted(n, GroupsChanged) == 1 && !e.Stored
		}},
		{"less for one in service", Ready, UnassignIPs, Result{}, Ready, never, 0, func(n *Node, e *eni) bool {
			return e.Wait == storing && e.Stored && len(e.Before) == 0 && e.has("10.0.0.9") && n.departed("10.0.0.9")
		}},
		{"less for one that is to be attached", Created, UnassignIPs, Result{}, Created, now, UnassignIPs,
			func(n *Node, e *eni) bool {
				return e.Wait == idle && e.Before == nil && !e.has("10.0.0.9") && n.departed("10.0.0.9") &&
					e.Barred == 0
			}},
		{"detached", Draining, DetachENI, Result{}, Detached, now + detachPause, DetachENI,
			func(*Node, *eni) bool { return true }},
		{"deleted", Tombstoned, DeleteENI, Result{}, 0, never, 0,
			func(n *Node, _ *eni) bool { return noted(n, ENIDeleted) == 1 && n.ledger.drop[LibStore] != nil }},
	} {
		n := newborn(t)
		n.Inst.Limits = Limits{ENIs: 4, Addresses: 15}
		n.pool.Warm.growth = growth{Fails: 3, GrowAt: 2 * now, Ask: 2, bareness: bareness{Bare: true}}
		n.pool.Warm.ceiling = ceiling{Most: 1, Probe: true}
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.9")},
			Groups: []string{"sg-1"}},
			Token: "t", Stage: c.stage, Since: time.Second, GroupsAt: 2 * now, mutation: mutation{Doing: c.doing,
				Count: 1, Barred: 2,
				Stored: true, Before: []netip.Addr{netip.MustParseAddr("10.0.0.9")}, Give: []string{"sg-2"},
				Next: never}})
		n.driver.done(now, ix, &c.r)
		e := &n.ENIs[ix]
		if e.Stage != c.want || e.Stage != 0 && (e.Next != c.next && e.Wait == idle || e.Doing != c.then ||
			e.Since != now) {
			t.Errorf("%s: it is %v since %v, goes on at %v, doing %v; expected %v, %v, %v", c.what, e.Stage,
				e.Since, e.Next,
				e.Doing, c.want, c.next, c.then)
		}
		if !c.good(n, e) {
			t.Errorf("%s: %+v, and growth %+v", c.what, e, n.pool.Warm)
		}
	}
}

// has says whether an ENI on its way carries an address.
func (e *eni) has(ip string) bool { return slices.Contains(e.Addresses, netip.MustParseAddr(ip)) }

// departed says whether an address is remembered as given back.
func (n *Node) departed(ip string) bool {
	return slices.ContainsFunc(n.evidence.Departures,
		func(d departed) bool { return d.IP == netip.MustParseAddr(ip) })
}

// TestWhatANewENIIs: what EC2 says of it, and what it was asked for where the answer lacks that. One that the sweep
// or metadata has shown before is there already.
func TestWhatANewENIIs(t *testing.T) {
	const now = time.Hour
	ours, theirs := netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("10.0.1.0/24")
	prefix := netip.MustParsePrefix("10.0.0.32/28")
	for _, c := range []struct {
		what  string
		said  ENI
		known bool
		want  ENI
	}{
		{"all is said", ENI{ID: "eni-1", Subnet: "b", CIDR: theirs, Groups: []string{"sg-2"},
			Prefixes: []netip.Prefix{prefix},
			DOT:      true, Device: 3}, false,
			ENI{ID: "eni-1", Subnet: "b", CIDR: theirs, Groups: []string{"sg-2"}, Prefixes: []netip.Prefix{prefix}}},
		{"nothing is said", ENI{ID: "eni-1"}, false, ENI{ID: "eni-1", Subnet: "a", CIDR: ours,
			Groups: []string{"sg-1"}}},
		{"it is known", ENI{ID: "eni-1"}, true, ENI{}},
	} {
		n := newborn(t)
		n.evidence.Others = []other{{ID: "eni-1"}, {ID: "eni-9"}}
		n.Inst.Limits = Limits{ENIs: 4, Addresses: 15}
		n.pool.Warm.growth = growth{Fails: 3, GrowAt: 2 * now, Ask: 2, bareness: bareness{Bare: true}}
		ix := n.enis.newENI(eni{ENI: ENI{Subnet: "a", CIDR: ours, Groups: []string{"sg-1"}}, Token: "t",
			Stage:    Intended,
			mutation: mutation{Doing: CreateENI, Stored: true, Next: never}})
		if c.known {
			n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready})
		}
		n.driver.done(now, ix, &Result{ENI: c.said})
		e := &n.ENIs[ix]
		if c.known {
			if e.Stage != 0 || len(n.ledger.drop[LibStore]) != 1 || n.pool.Warm.Fails != 3 {
				t.Errorf("%s: it is %v, and growth %+v", c.what, e.Stage, n.pool.Warm.growth)
			}
			continue
		}
		if e.Stage != Created || e.Since != now || e.Next != now || !e.Stored || e.Token != "t" {
			t.Errorf("%s: it is %v since %v, goes on at %v", c.what, e.Stage, e.Since, e.Next)
		}
		if e.ID != c.want.ID || e.Subnet != c.want.Subnet || e.CIDR != c.want.CIDR || !slices.Equal(e.Groups,
			c.want.Groups) ||
			!slices.Equal(e.Prefixes, c.want.Prefixes) || e.DOT || e.Device != 0 {
			t.Errorf("%s: %+v, expected %+v", c.what, e.ENI, c.want)
		}
		if o := n.evidence.Others; len(o) != 1 || o[0].ID != "eni-9" {
			t.Errorf("%s: others' are %+v", c.what, o)
		}
		if w := n.pool.Warm; w.Fails != 0 || w.GrowAt != 0 || w.Ask != 4 || w.Bare != (len(c.said.Prefixes) == 0) {
			t.Errorf("%s: growth is %+v", c.what, w.growth)
		}
	}
}

// TestWhatEC2sAnswerToACallMeans: the pace, what is told, the tries in a row, and when the ENI goes on.
func TestWhatEC2sAnswerToACallMeans(t *testing.T) {
	const now, gap = time.Hour, 10 * time.Second
	for _, c := range []struct {
		what    string
		class   Class
		doing   Action
		tries   int
		want    int // tries afterwards
		point   Point
		warn    bool
		trouble bool
		lost    bool
		gap     time.Duration
	}{
		{"accepted", OK, ModifyENI, 3, 0, 0, false, false, false, gap - gapStep},
		{"no answer", Lost, ModifyENI, 3, 3, CallLost, true, true, true, gap},
		{"throttled", Throttled, ModifyENI, 3, 4, CallThrottled, false, true, false, 2 * gap},
		{"refused", Invalid, ModifyENI, 3, 4, CallRefused, true, true, true, gap},
		{"refused for who asks", Denied, ModifyENI, 0, 1, CallRefused, true, true, false, gap},
		{"in use just after its detach", InUse, DeleteENI, deleteTries - 1, deleteTries, CallRefused, false, false,
			false, gap},
		{"in use for long", InUse, DeleteENI, deleteTries, deleteTries + 1, CallRefused, true, true, true, gap},
		{"invalid, at once", Invalid, DeleteENI, 0, 1, CallRefused, true, true, false, gap},
		{"an attach that meets another", InUse, AttachENI, 0, 1, CallRefused, true, true, true, gap},
	} {
		n := newborn(t)
		n.Steps, n.driver.Pace.Gap = 9, gap
		n.Troubles[troubleEC2] = "of before"
		stage := Attached
		if c.doing == DeleteENI {
			stage = Tombstoned
		} else if c.doing == AttachENI {
			stage = Created
		}
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: stage, Tag: 1,
			mutation: mutation{Doing: c.doing, Wait: calling, Tries: c.tries, Next: never}})
		n.ENIs[ix].Tag = 1
		id := n.ledger.await(eniCall, ix)
		n.driver.called(now, Called{ID: id + 1, Result: Result{Class: c.class}})
		if e := &n.ENIs[ix]; e.Wait != calling || e.Tag != 1 || e.Tries != c.tries {
			t.Errorf("%s: the answer to another call counts", c.what)
		}
		n.driver.called(now, Called{ID: id, Result: Result{Class: c.class, Code: "Code"}})
		e := &n.ENIs[ix]
		if e.Wait != idle || e.Tag != 9 || e.Tries != c.want || e.Lost != c.lost || n.driver.Pace.Gap != c.gap {
			t.Errorf("%s: it waits for %d since step %d, %d tries, in doubt %v, gap %v", c.what, e.Wait, e.Tag,
				e.Tries, e.Lost,
				n.driver.Pace.Gap)
		}
		if again := e.Next > now; e.Next == never || again != (c.class != OK && c.class != Lost) {
			t.Errorf("%s: it goes on at %v", c.what, e.Next)
		}
		if c.point != 0 {
			i := slices.IndexFunc(n.out, func(x Effect) bool { m, ok := x.(*Note); return ok && m.Point == c.point })
			if i < 0 || n.out[i].(*Note).Warn != c.warn || n.out[i].(*Note).ENI != "eni-1" {
				t.Errorf("%s: told is %+v", c.what, n.out)
			}
		} else if len(n.out) > 0 {
			t.Errorf("%s: told is %+v", c.what, n.out)
		}
		want := c.trouble
		if got := n.Troubles[troubleEC2]; want != (got != "" && got != "of before") || c.class == OK && got != "" ||
			want && !strings.Contains(got, c.doing.String()) {
			t.Errorf("%s: the trouble is %q", c.what, got)
		}
	}
	n := newborn(t) // an ENI that is gone, or that something else is done to by now
	for _, e := range []eni{{mutation: mutation{Wait: calling}}, {Stage: Ready, mutation: mutation{Doing: GroupENI,
		Wait: storing, Next: never}}} {
		n.ENIs = []eni{e}
		n.driver.called(now, Called{ID: n.ledger.await(eniCall, 0)})
		if got := &n.ENIs[0]; got.Stage != e.Stage || got.Doing != e.Doing || got.Wait != e.Wait || got.Since != 0 {
			t.Errorf("it was %+v, and is %+v", e.mutation, got.mutation)
		}
	}
}

// TestWhatEC2SaysOfAnENIOnItsWayIn decides how it goes on.
func TestWhatEC2SaysOfAnENIOnItsWayIn(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what   string
		stage  Stage
		since  time.Duration
		status string
		linked bool
		next   time.Duration
		want   Stage
		begun  time.Duration
		then   time.Duration
		asked  time.Duration
	}{
		{"attached", Created, now - time.Minute, "in-use", false, never, Attached, now, now, now + detachPause},
		{"attached, with a link", Created, now - time.Minute, "in-use", true, never, Attached, now, now, never},
		{"as it is known", Attached, now - time.Minute, "in-use", false, never, Attached, now - time.Minute, now,
			now + 15*time.Second},
		{"set up", Configured, now - time.Minute, "in-use", true, never, Configured, now - time.Minute, now, never},
		{"detached", Attached, now - time.Minute, "available", false, never, Created, now - time.Minute, now, never},
		{"detached, and a pause is on", Created, now - time.Minute, "available", false, now + time.Minute, Created,
			now - time.Minute, now + time.Minute, never},
		{"detached, and a pause is over", Created, now - time.Minute, "available", false, now - time.Second, Created,
			now - time.Minute, now, never},
		{"it is being detached", Created, now - time.Minute, "detaching", false, never, Created, now - time.Minute,
			never,
			now + detachPause},
		{"another instance's", Created, now - time.Minute, "elsewhere", false, never, 0, 0, never, never},
	} {
		for doing, then := range map[Action]Action{AssignIPs: ModifyENI, AttachENI: AttachENI} {
			n := newborn(t)
			n.Inst.ID = "i-1"
			ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: c.stage, Since: c.since,
				Linked:   c.linked,
				Trimming: true, presence: presence{ByEC2: 1},
				mutation: mutation{Doing: doing, Lost: true, Barred: 2, Next: c.next}})
			n.survey.resolveRising(now, ix, &ENI{ID: "eni-1", Status: c.status}, c.status == "in-use")
			e := &n.ENIs[ix]
			if e.Stage != c.want || n.Looks[LookENI].Want != c.asked {
				t.Errorf("%s: it is %v, asked about at %v; expected %v, %v", c.what, e.Stage, n.Looks[LookENI].Want,
					c.want, c.asked)
			}
			if c.want == 0 {
				continue
			}
			if e.Since != c.begun || e.Next != c.then || e.Lost || e.Trimming || e.ByEC2 != 0 || e.Doing != then ||
				(e.Barred == 0) != (c.status == "in-use") || e.Asking != (c.asked != never) {
				t.Errorf("%s: since %v, goes on at %v, doing %v; expected %v, %v, %v: %+v", c.what, e.Since, e.Next,
					e.Doing,
					c.begun, c.then, then, e.mutation)
			}
		}
	}
}

// TestWhetherEC2sWordMakesAnENIAnothers: one that is kept for somebody, or was not made here where those are left
// alone. A foreign leak that is to be deleted is only spared if it is kept.
func TestWhetherEC2sWordMakesAnENIAnothers(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what    string
		foreign bool
		v       *ENI
		want    Stage
		next    time.Duration
	}{
		{"ours", false, &ENI{Owner: "i-1", Status: "in-use", Instance: "i-1"}, Attached, now},
		{"ours, and it is being attached", false, &ENI{Owner: "i-1", Status: "attaching", Instance: "i-1"},
			Attached, now},
		{"ours, and it is not attached", false, &ENI{Owner: "i-1", Status: "available"}, Created, now},
		{"ours, and it is with another instance", false, &ENI{Owner: "i-1", Status: "in-use", Instance: "i-2"}, 0,
			never},
		{"kept", false, &ENI{Owner: "i-1", Status: "in-use", Instance: "i-1", NoManage: "true"}, 0, never},
		{"another's", false, &ENI{Owner: "i-2", Status: "in-use", Instance: "i-1"}, 0, never},
		{"a leak", true, &ENI{Owner: "i-2", Status: "available"}, Created, now},
		{"a leak that is kept", true, &ENI{Owner: "i-2", Status: "available", NoManage: "true"}, 0, never},
		{"unknown", false, nil, Attached, never},
	} {
		n := newborn(t)
		n.Inst.ID, n.Steps, n.Set.LeaveUntagged = "i-1", 9, true
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Attached, Since: now, Foreign: c.foreign,
			mutation: mutation{Next: never}})
		n.ENIs[ix].Tag = 1
		if c.v != nil {
			c.v.ID = "eni-1"
			c.v.Device = 1
		}
		n.survey.resolve(now, ix, c.v)
		e := &n.ENIs[ix]
		if e.Stage != c.want || e.Stage != 0 && (e.Tag != 9 || e.Next != c.next) {
			t.Errorf("%s: it is %v, goes on at %v, changed in step %d; expected %v, %v", c.what, e.Stage, e.Next,
				e.Tag, c.want,
				c.next)
		}
	}
}

// TestWhereEC2SaysThatAddressesAre: what is on record and on no ENI is on the one that EC2 lists it with, unless
// that is another instance's.
func TestWhereEC2SaysThatAddressesAre(t *testing.T) {
	for instance, want := range map[string]int32{"i-1": 0, "i-2": -1} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.Inst.ID = "i-1"
		for i := range int32(2) {
			assign(n, i, string(rune('a'+i)))
			n.pool.place(i, -1)
		}
		n.survey.resolve(time.Hour, 0, &ENI{ID: "eni-0", Owner: "i-1", Instance: instance, Status: "in-use",
			Groups:    []string{"sg-1"},
			Addresses: []netip.Addr{n.pool.Addrs[0].IP, netip.MustParseAddr("10.0.0.99")}})
		if got := n.pool.Addrs[0].ENI; got != want || n.pool.Addrs[1].ENI != -1 || !slices.Equal(n.ENIs[0].Groups,
			[]string{"sg-1"}) {
			t.Errorf("%s: on ENI %d and %d, groups %v", instance, got, n.pool.Addrs[1].ENI, n.ENIs[0].Groups)
		}
	}
}

// TestAnENIThatEC2DoesNotKnowIsGone after two answers, and not while it may be too new for EC2.
func TestAnENIThatEC2DoesNotKnowIsGone(t *testing.T) {
	const now, wall = time.Hour, 1_700_003_600
	long := int64(consistency / time.Second)
	for _, c := range []struct {
		what   string
		stage  Stage
		since  time.Duration
		wall   int64
		before int
		gone   bool
	}{
		{"once", Created, 0, 0, 0, false},
		{"twice", Created, 0, 0, 1, true},
		{"twice, and EC2 made it a moment ago", Created, now - consistency + 1, 0, 1, false},
		{"twice, and EC2 made it long ago", Created, now - consistency, 0, 1, true},
		{"twice, and EC2 detached it a moment ago", Detached, now - 1, 0, 1, false},
		{"twice, and it drains", Draining, now - 1, 0, 1, true},
		{"twice, and it is to be deleted", Tombstoned, now - 1, 0, 1, true},
		{"twice, and it was wanted a moment ago", Tombstoned, 0, wall - long + 1, 1, false},
		{"twice, and it was wanted just now", Tombstoned, 0, wall, 1, false},
		{"twice, and it was wanted long ago", Tombstoned, 0, wall - long, 1, true},
		{"twice, and the clock was set back", Tombstoned, 0, wall + 1, 1, true},
	} {
		n := newborn(t)
		n.Wall = wall - int64(now/time.Second)
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: c.stage, Since: c.since,
			presence: presence{ByEC2: c.before},
			mutation: mutation{Wall: c.wall}})
		n.survey.resolveUnknown(now, ix)
		e := &n.ENIs[ix]
		if gone := e.Stage == 0; gone != c.gone || gone != (noted(n, ENIDeleted) == 1) ||
			(n.Looks[LookENI].Want == now+askPause) == gone || !gone && (!e.Asking || e.ByEC2 != c.before+1) {
			t.Errorf("%s: gone %v, asked about at %v, %+v", c.what, gone, n.Looks[LookENI].Want, e.presence)
		}
	}
}

// TestAnAddressIsGoneWhenEC2SaysSoTwice, asked because metadata does not list it, and not while EC2 may be behind.
func TestAnAddressIsGoneWhenEC2SaysSoTwice(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what            string
		byIMDS, missing int
		lists           bool
		spoil           func(n *Node, a *address)
		gone            bool
		wantIMDS        int
		want            int
		asked           time.Duration
		thought         bool // its pods are thought of
	}{
		{"metadata lists it", 0, 0, false, nil, false, 0, 0, never, false},
		{"once", 1, 0, false, nil, false, 1, 1, now + askPause, false},
		{"twice", 1, 1, false, nil, true, 0, 0, never, false},
		{"metadata lists it again", 0, 1, false, nil, false, 0, 1, never, false},
		{"EC2 lists it", 3, 0, true, nil, false, 0, 0, never, false},
		{"EC2 lists it again", 3, 2, true, nil, false, 0, 0, never, true},
		{"EC2 and metadata list it again", 0, 2, true, nil, false, 0, 0, never, true},
		{"of another ENI", 1, 1, false, func(n *Node, _ *address) {
			n.pool.place(0,
				-1)
			n.pool.Addrs[0].Missing = 1
		}, false, 1, 1,
			never, false},
		{"EC2 gave it a moment ago", 1, 0, false, func(_ *Node, a *address) { a.Given = now - time.Second }, false,
			1, 1,
			now + askPause, false},
		{"EC2 gave it a moment ago, twice", 1, 1, false, func(_ *Node, a *address) { a.Given = now - time.Second },
			false, 1, 2,
			now - time.Second + consistency, false},
		{"EC2 gave it nearly long enough ago", 1, 1, false,
			func(_ *Node, a *address) {
				a.Given = now - consistency + 1
			}, false,
			1, 2, now + askPause, false},
		{"EC2 gave it long ago", 1, 1, false, func(_ *Node, a *address) { a.Given = now - consistency }, true, 0, 0,
			never, false},
		{"a pod has it for a moment", 1, 1, false, func(n *Node, a *address) {
			assign(n, 0, "c1")
			a.Allocated = now - consistency + 1
		}, false, 1, 2, now + askPause, false},
		{"it was a pod's a moment ago", 1, 1, false, func(_ *Node, a *address) { a.Allocated = now - 1 }, true, 0,
			0, never, false},
		{"a pod has it for long", 1, 1, false, func(n *Node, a *address) {
			assign(n, 0, "c1")
			a.Allocated = now - consistency
		}, true, 1, 2, never, false},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.pool.Warm.At = never
		a, ip := &n.pool.Addrs[0], netip.MustParseAddr("10.0.0.20")
		a.ByIMDS, a.Missing = c.byIMDS, c.missing
		n.pool.Addrs[1].ByIMDS = 1 // the next one is judged by itself
		if c.spoil != nil {
			c.spoil(n, a)
		}
		v := &ENI{ID: "eni-0", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.21")}}
		if c.lists {
			v.Addresses = append(v.Addresses, ip)
		}
		n.survey.missingAddresses(now, 0, v)
		if gone := noted(n, AddressMissing) == 1; gone != c.gone || n.Looks[LookENI].Want != c.asked {
			t.Errorf("%s: gone %v, asked about at %v; expected %v, %v", c.what, gone, n.Looks[LookENI].Want, c.gone,
				c.asked)
		}
		if a.ByIMDS != c.wantIMDS || a.Missing != c.want || (n.pool.Warm.At == now) != c.thought {
			t.Errorf("%s: missed %d and %d times, expected %d and %d; thought of at %v", c.what, a.ByIMDS,
				a.Missing, c.wantIMDS,
				c.want, n.pool.Warm.At)
		}
		if n.pool.Addrs[1].ByIMDS != 0 {
			t.Errorf("%s: EC2 lists the next one, and it is missing", c.what)
		}
	}
}

// TestAnAddressOfAnEarlierDaemonIsNotYoung: no answer of EC2 gave it to this one, however new the boot is.
func TestAnAddressOfAnEarlierDaemonIsNotYoung(t *testing.T) {
	n := freeOn(t, "10.0.0.20")
	n.pool.Addrs[0].ByIMDS, n.pool.Addrs[0].Missing = 1, 1
	n.survey.missingAddresses(consistency/2, 0, &ENI{ID: "eni-0"})
	if len(n.pool.byAddress) > 0 {
		t.Errorf("EC2 has said so twice, and it is there: %+v", n.pool.Addrs[0])
	}
}

// TestWhoStaysAfterAll: an ENI that drained is in service again, and one whose addresses were to go keeps them.
// While an earlier daemon's call may land, nothing is decided.
func TestWhoStaysAfterAll(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what  string
		stage Stage
		trims bool
		since time.Duration
		doubt time.Duration
		told  bool
		want  Stage
		doing Action
		next  time.Duration
		kept  time.Duration
	}{
		{"it drains", Draining, false, time.Minute, 0, true, Ready, 0, never, now + keptPause},
		{"it drains, and a call may land", Draining, false, time.Minute, now + 1, false, Draining, DetachENI,
			now + 1, 0},
		{"it drains, and no call may land any more", Draining, false, time.Minute, now, true, Ready, 0, never, now + keptPause},
		{"addresses go", Ready, true, time.Minute, 0, true, Ready, 0, never, now + keptPause},
		{"addresses go, by an old call", Ready, true, time.Minute, time.Minute, true, Ready, 0, never, now + keptPause},
		{"addresses go, by a call since", Ready, true, time.Minute, time.Minute + 1, false, Ready, UnassignIPs, now,
			0},
		{"nothing goes", Ready, false, time.Minute, time.Minute + 1, true, Ready, 0, never, now + keptPause},
	} {
		n := freeOn(t, "10.0.0.20")
		n.Steps = 9
		n.pool.Warm.LessSince = 5
		n.pool.Addrs[0].Leaving, n.pool.FreeQueue = true, nil
		e := &n.ENIs[0]
		e.Stage, e.Trimming, e.Since, e.Doubt, e.Unwired = c.stage, c.trims, c.since, c.doubt, true
		e.Addresses, e.Prefixes = []netip.Addr{n.pool.Addrs[0].IP},
			[]netip.Prefix{netip.MustParsePrefix("10.0.0.32/28")}
		if e.Doing, e.Stored, e.Token = DetachENI, true, "t"; c.stage == Ready {
			e.Doing = 0
		}
		n.driver.stay(now, 0)
		if e.Stage != c.want || e.Doing != c.doing || e.Next != c.next || e.KeptTill != c.kept || e.Since != c.since {
			t.Errorf("%s: it is %v since %v, doing %v, goes on at %v, kept till %v", c.what, e.Stage, e.Since,
				e.Doing, e.Next, e.KeptTill)
		}
		a := &n.pool.Addrs[0]
		if told := noted(n, DrainStopped) == 1; told != c.told || a.Leaving == told || e.Unwired == told ||
			e.Stored == told ||
			(e.Tag == 9) != told || (n.pool.Warm.LessSince == 0) != told || (len(n.pool.FreeQueue) == 1) != told ||
			(e.Addresses == nil && e.Prefixes == nil) != (told && c.stage == Draining) {
			t.Errorf("%s: it is told %v, the address goes %v, %+v", c.what, told, a.Leaving, e)
		}
		if e.Lost != (c.doing == UnassignIPs) || e.Lost && e.Doubt != 0 {
			t.Errorf("%s: in doubt %v, until %v", c.what, e.Lost, e.Doubt)
		}
	}
}

// TestWhatBecomesOfAnENIThatIsAnothers: one of another instance is gone, with what nobody has. One of this instance
// is set aside, and what pods have or had of it is on no ENI from then on.
func TestWhatBecomesOfAnENIThatIsAnothers(t *testing.T) {
	for _, instance := range []string{"i-1", "i-2"} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23", "10.0.0.24")
		n.Inst.ID = "i-1"
		here := instance == "i-1"
		on := n.enis.newENI(eni{ENI: ENI{ID: "eni-9"}, Stage: Ready})
		assign(n, 1, "c1")
		assign(n, 2, "c2")
		n.pool.rest(0, 2, true)
		n.pool.unkey(2)
		assign(n, 3, "c3")
		n.pool.rest(0, 3, false)
		n.pool.Addrs[3].run(releasing)
		n.pool.place(4, on)
		n.survey.disown(time.Minute, 0, &ENI{ID: "eni-0", Instance: instance, NoManage: "true", MAC: "m", Device: 2})
		if n.ENIs[0].Stage != 0 || (noted(n, ENINotOurs) == 1) == false || (noted(n, ENIDeleted) == 1) == here {
			t.Errorf("%s: it is %v; %+v", instance, n.ENIs[0].Stage, n.out)
		}
		if o := n.evidence.otherByID("eni-0"); (o != nil) != here || here && (o.Device != 2 || o.Why == "" ||
			o.Asking) {
			t.Errorf("%s: set aside is %+v", instance, o)
		}
		if _, known := n.pool.byAddress[netip.MustParseAddr("10.0.0.20")]; known {
			t.Errorf("%s: a free address of it is known", instance)
		}
		state := Quarantined // of the pod's address
		if here {
			state = Assigned
		}
		for i, s := range []State{0, state, Cooling, Cooling, Free} {
			want := int32(-1)
			if i == 4 {
				want = on
			}
			if a := &n.pool.Addrs[i]; a.State != s || a.ENI != want {
				t.Errorf("%s: address %d is %v, on ENI %d; expected %v, %d", instance, i, a.State, a.ENI, s, want)
			}
		}
	}
}

// TestWhatTheAPIServersListSays: a hint to look, of pods that have an address, by their UID where that is known.
func TestWhatTheAPIServersListSays(t *testing.T) {
	const now = time.Hour
	list := []Pod{{"default", "web", "u-1"}, {"other", "db", "u-2"}}
	for _, c := range []struct {
		what        string
		pod         Pod
		before      bool
		want, looks bool
		calm        bool
	}{
		{"listed", Pod{"default", "web", "u-1"}, false, false, false, true},
		{"listed by name", Pod{"default", "web", ""}, false, false, false, true},
		{"another of its name", Pod{"default", "web", "u-9"}, false, true, true, false},
		{"by another name", Pod{"default", "api", "u-1"}, false, false, false, true},
		{"not listed", Pod{"default", "api", ""}, false, true, true, false},
		{"of another namespace", Pod{"other", "web", ""}, false, true, true, false},
		{"not listed, as before", Pod{"default", "api", ""}, true, true, false, true},
		{"listed again", Pod{"default", "web", "u-1"}, true, false, false, false},
		{"no name is known", Pod{"default", "", "u-9"}, false, false, false, true},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		assign(n, 0, "c1")
		assign(n, 1, "c2")
		n.evidence.calm = true
		n.pool.Addrs[1].Pod = Pod{"other", "db", "u-2"}
		a := &n.pool.Addrs[0]
		a.Pod, a.PodGone = c.pod, c.before
		n.pods.seenPods(now, &Seen{Pods: list}, false)
		n.Phase = recovering
		n.pods.seenPods(now, &Seen{Pods: list}, true)
		if a.PodGone != c.before || n.Looks[LookKernel].Want != never {
			t.Errorf("%s: it is heard by an answer that is not whole, or while the daemon recovers", c.what)
		}
		n.Phase = serving
		n.pods.seenPods(now, &Seen{Pods: list}, true)
		if looks := n.Looks[LookRuntime].Want == now; a.PodGone != c.want || looks != c.looks ||
			(n.Looks[LookKernel].Want == now) != looks || n.evidence.calm != c.calm {
			t.Errorf("%s: gone %v, looked at %v, calm %v", c.what, a.PodGone, looks, n.evidence.calm)
		}
	}
	n := freeOn(t, "10.0.0.20", "10.0.0.21") // whose pod's name is known, and no pod has it any more
	n.pool.Addrs[0].Pod = Pod{"default", "api", ""}
	assign(n, 1, "c2")
	n.pool.Addrs[1].Pod = Pod{"default", "api", ""}
	n.pods.seenPods(now, &Seen{Pods: list}, true)
	if n.pool.Addrs[0].PodGone || !n.pool.Addrs[1].PodGone {
		t.Errorf("gone are %v and %v", n.pool.Addrs[0].PodGone, n.pool.Addrs[1].PodGone)
	}
}

// TestACHECKWaitsForTheKernel, and while the daemon recovers it is told so at once.
func TestACHECKWaitsForTheKernel(t *testing.T) {
	att := Attachment{network, "c1", "eth0"}
	for _, p := range []phase{recovering, serving} {
		n := freeOn(t)
		n.Phase, n.Steps = p, 9
		n.pods.check(time.Minute, Check{Req: 1, Att: att})
		n.pods.check(time.Minute, Check{Req: 1, Att: att}) // its number is taken, or is another one by now
		r, early := replies(n)[1], p == recovering
		if (r != nil) != early || early && (r.Err == nil || r.Err.Code != CodeTryAgain || r.Verb != VerbCheck ||
			r.Att != att ||
			!strings.Contains(r.Err.Text, "cni check "+att.String())) {
			t.Errorf("phase %d: told is %+v", p, r)
		}
		if c := n.requests.Checks; (len(c) == 1) == early || !early && (c[0].Tag != 9 || c[0].Req != 1 ||
			c[0].Att != att) {
			t.Errorf("phase %d: %+v wait", p, c)
		}
		if at := n.Looks[LookKernel].Want; (at == time.Minute) == early {
			t.Errorf("phase %d: the kernel is looked at at %v", p, at)
		}
	}
}

// TestWhatAMissingSandboxBegins: kernel and runtime are looked at again, and what the kernel says is read whether
// or not it is news.
func TestWhatAMissingSandboxBegins(t *testing.T) {
	const now = time.Hour
	for _, missing := range []bool{false, true} {
		n := freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		n.pool.adopt(0, netip.MustParseAddr("10.0.0.30"), 0, false)
		n.pool.quarantine(1, "why")
		n.pool.Addrs[1].Tag, n.Set.Runtime = 0, true
		n.requests.Collecting = collecting{GC: GC{Req: 3}}
		drains := n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Draining})
		n.pool.Addrs[0].Tag = 0
		n.Looks[LookKernel].At, n.Looks[LookKernel].Want, n.evidence.calm = now, never,
			true // the claim wants a look as well
		n.Troubles[troubleRuntime] = "of before"
		in := &Seen{Sandboxes: []Sandbox{{ID: "c1", Ready: true},
			{ID: "c2", Ready: true, Address: n.pool.Addrs[1].IP}}}
		if missing {
			in.Sandboxes = in.Sandboxes[1:]
		}
		n.seenRuntime(now, in, true, 5)
		want := [2]time.Duration{now + coolBatch, never}
		if missing {
			want = [2]time.Duration{now, now + runtimePeriod/2}
		}
		if got := [2]time.Duration{n.Looks[LookKernel].Want, n.Looks[LookRuntime].Want}; got != want ||
			n.evidence.calm == missing {
			t.Errorf("missing %v: looked at at %v, calm %v", missing, got, n.evidence.calm)
		}
		if n.pool.Addrs[0].Listed == missing || n.Troubles[troubleRuntime] != "" || n.recovery.Answered {
			t.Errorf("missing %v: it is listed %v; %q", missing, n.pool.Addrs[0].Listed, n.Troubles[troubleRuntime])
		}
		if claim := n.pool.Addrs[1].Claim; claim == nil || claim.ID != "c2" || !n.ENIs[drains].RuntimeOK ||
			!n.requests.Collecting.Runtime {
			t.Errorf("missing %v: who waits for the list does not hear it: claimed by %+v", missing, claim)
		}
	}
}

// TestARuntimesListThatIsNotWhole is a trouble that is told once, and says nothing of a pod. A daemon that starts
// goes on.
func TestARuntimesListThatIsNotWhole(t *testing.T) {
	n := freeOn(t, "10.0.0.20")
	assign(n, 0, "c1")
	n.pool.Addrs[0].Tag = 0
	for range 2 {
		n.seenRuntime(time.Hour, &Seen{Err: "no answer"}, false, 5)
	}
	if noted(n, RuntimeListRefused) != 1 || !strings.Contains(n.Troubles[troubleRuntime], "no answer") ||
		n.pool.Addrs[0].Absent != 0 || n.Looks[LookKernel].Want != never {
		t.Errorf("told %d times; %q; missed %d times", noted(n, RuntimeListRefused), n.Troubles[troubleRuntime],
			n.pool.Addrs[0].Absent)
	}
	for _, whole := range []bool{false, true} {
		n = freeOn(t, "10.0.0.20")
		assign(n, 0, "c1")
		n.pool.Addrs[0].Tag, n.Phase = 0, recovering
		list := []Sandbox{{ID: "c2"}}
		n.seenRuntime(time.Hour, &Seen{Sandboxes: list}, whole, 5)
		list[0].ID = "the caller's"
		if r := &n.recovery; !r.Answered || r.ListedOK != whole || len(r.Listed) != 1 || r.Listed[0].ID != "c2" ||
			n.pool.Addrs[0].Absent != 0 || (n.Troubles[troubleRuntime] == "") != whole {
			t.Errorf("whole %v: kept is %+v, %v, %v", whole, r.Listed, r.ListedOK, r.Answered)
		}
	}
}

// TestWhoMetadataSaysThatTheInstanceIs: believed once, within bounds, and copied.
func TestWhoMetadataSaysThatTheInstanceIs(t *testing.T) {
	vpc := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}
	for _, c := range []struct {
		what        string
		phase       phase
		known, deaf bool
		want        string
		wantDeaf    bool
	}{
		{"for the first time", recovering, false, false, "i-1", false},
		{"once more", recovering, true, false, "i-0", false},
		{"after the records said it", recovering, true, true, "i-1", false},
		{"once more, to one that serves", serving, true, false, "i-0", false},
		{"late, to one that serves from its records", serving, true, true, "i-1", false},
	} {
		n := newborn(t)
		n.Phase, n.Known, n.Deaf, n.Inst = c.phase, c.known, c.deaf, Instance{ID: "i-0", VPC: vpc}
		n.enis.Grouped = []string{"sg-0"}
		in := &IMDS{Instance: Instance{ID: "i-1", VPC: slices.Clone(vpc), Limits: Limits{ENIs: 1 << 40,
			Addresses: -1}},
			ENIs: []ENI{{ID: "eni-1", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.20")}}}}
		n.seenIMDS(time.Hour, &Seen{IMDS: in}, true, 5)
		in.Instance.VPC[0], in.ENIs[0].ID, in.ENIs[0].Addresses[0] = netip.Prefix{}, "", netip.Addr{}
		if n.Inst.ID != c.want || n.Deaf != c.wantDeaf || !n.Known || !slices.Equal(n.Inst.VPC, vpc) {
			t.Errorf("%s: it is %+v, known %v, deaf %v", c.what, n.Inst, n.Known, n.Deaf)
		}
		if l := n.Inst.Limits; c.want == "i-1" && l != (Limits{ENIs: mostENIs}) {
			t.Errorf("%s: the limits are %+v", c.what, l)
		}
		if late := c.deaf && c.phase == serving; (n.Looks[LookSubnets].Want == time.Hour) != late {
			t.Errorf("%s: EC2 is asked for subnets at %v", c.what, n.Looks[LookSubnets].Want)
		}
		if early := c.phase == recovering; early && (len(n.ENIs) > 0 || len(n.evidence.Departures) > 0) {
			t.Errorf("%s: it is acted on: %+v, %+v", c.what, n.ENIs, n.evidence.Departures)
		}
		if !slices.Equal(n.enis.Grouped, []string{"sg-0"}) {
			t.Errorf("%s: it says no groups, and they are %v", c.what, n.enis.Grouped)
		}
		cloud := n.recovery.Cloud
		if kept := len(cloud) == 1 && cloud[0].ID == "eni-1" &&
			cloud[0].Addresses[0].IsValid(); kept != (c.phase == recovering) {
			t.Errorf("%s: kept is %+v", c.what, cloud)
		}
	}
}

// TestWhatMetadataIsReadFor by a daemon that serves: what is new, what is listed no more, and what the next daemon
// is told.
func TestWhatMetadataIsReadFor(t *testing.T) {
	const now = time.Hour
	n := freeOn(t, "10.0.0.20")
	n.Known, n.Inst = true, Instance{ID: "i-1", PrimaryMAC: "m0", Address: netip.MustParseAddr("10.0.0.4")}
	n.ENIs[0].MAC, n.ENIs[0].Linked, n.ENIs[0].ByIMDS = "m0", true, 1
	n.enis.newENI(eni{ENI: ENI{ID: "eni-1", MAC: "m1", Device: 1}, Stage: Ready, Linked: true})
	n.evidence.Others = []other{{ID: "eni-2", MAC: "m2"}}
	n.evidence.Departures = []departed{{IP: netip.MustParseAddr("10.0.0.99")}}
	more := netip.MustParsePrefix("10.1.0.0/16")
	n.seenIMDS(now, &Seen{IMDS: &IMDS{Instance: Instance{ID: "i-1", VPC: []netip.Prefix{more}},
		ENIs: []ENI{{ID: "eni-0", MAC: "m0"}}}}, true, 5)
	if !slices.Contains(n.Inst.VPC, more) {
		t.Error("the VPC has another CIDR, and the node does not know it")
	}
	if n.pool.Addrs[0].ByIMDS != 1 || n.ENIs[0].ByIMDS != 0 || n.ENIs[1].ByIMDS != 1 || !n.evidence.Others[0].Asking {
		t.Errorf("missing %d times is the address, the ENIs %d and %d times, another's is asked about %v",
			n.pool.Addrs[0].ByIMDS, n.ENIs[0].ByIMDS, n.ENIs[1].ByIMDS, n.evidence.Others[0].Asking)
	}
	if n.departed("10.0.0.99") {
		t.Error("what no view lists any more is remembered")
	}
	if f := n.ledger.Facts; f == nil || f.Instance.ID != "i-1" || len(f.ENIs) != 2 {
		t.Errorf("the next daemon is told %+v", f)
	}
}

// TestMetadataThatDoesNotAnswer is a trouble. A daemon that starts takes the instance for what its records say.
func TestMetadataThatDoesNotAnswer(t *testing.T) {
	facts := &Facts{Instance: Instance{ID: "i-1", PrimaryMAC: "m", Address: netip.MustParseAddr("10.0.0.4")},
		ENIs: []ENI{{ID: "eni-0", MAC: "m", Primary: netip.MustParseAddr("10.0.0.4"),
			CIDR: netip.MustParsePrefix("10.0.0.0/24")}}}
	for _, p := range []phase{recovering, serving} {
		n := newborn(t)
		n.Phase, n.ledger.Facts = p, facts
		n.seenIMDS(time.Hour, &Seen{Err: "no answer", IMDS: &IMDS{Groups: []string{"sg-9"}}}, false, 5)
		if deaf := p == recovering; n.Deaf != deaf || n.Known != deaf || (n.Inst.ID == "i-1") != deaf ||
			!strings.Contains(n.Troubles[troubleIMDS], "no answer") || n.enis.Grouped != nil {
			t.Errorf("phase %d: deaf %v, known %v, %+v; %q", p, n.Deaf, n.Known, n.Inst, n.Troubles[troubleIMDS])
		}
		n.seenIMDS(time.Hour, &Seen{IMDS: &IMDS{Groups: []string{"sg-1"}, Instance: facts.Instance}}, true, 5)
		if n.Deaf || !n.Known || n.Troubles[troubleIMDS] != "" || !slices.Equal(n.enis.Grouped, []string{"sg-1"}) {
			t.Errorf("phase %d: it has answered, and the node is deaf %v; %q, %v", p, n.Deaf,
				n.Troubles[troubleIMDS], n.enis.Grouped)
		}
	}
}

// TestWhyAnADDGetsNoAddress names its pod and its sandbox, what the addresses are used for, and the first reason.
func TestWhyAnADDGetsNoAddress(t *testing.T) {
	in := &Add{Att: Attachment{network, "c1", "eth0"}, Pod: Pod{Namespace: "default", Name: "web-7"}}
	for _, c := range []struct {
		what  string
		spoil func(n *Node)
		want  string
	}{
		{"nothing is wrong", func(*Node) {}, "the node can carry no more"},
		{"it recovers", func(n *Node) { n.Phase = recovering }, "ipamd is still recovering"},
		{"EC2 refuses", func(n *Node) {
			n.Troubles[troubleEC2], n.Troubles[troubleSurvey] = "EC2 throttles", "EC2 does not say"
		}, "EC2 throttles"},
		{"EC2 does not list", func(n *Node) { n.Troubles[troubleSurvey], n.Deaf = "EC2 does not say", true },
			"EC2 does not say"},
		{"metadata is silent", func(n *Node) {
			n.Troubles[troubleIMDS], n.Deaf, n.Set.IMDSOnly = "metadata: no answer", true, true
		}, "metadata: no answer"},
		{"metadata alone", func(n *Node) { n.Set.IMDSOnly, n.Surveyed = true, false }, "ENABLE_IMDS_ONLY_MODE"},
		{"EC2 has not listed yet", func(n *Node) {
			n.Surveyed = false
			n.enis.newENI(eni{Stage: Created})
		}, "EC2 has not said yet"},
		{"no link", func(n *Node) {
			n.ENIs[0].ID, n.ENIs[0].Device = "eni-7", 1
			n.enis.newENI(eni{Stage: Created})
		}, "eni-7 has free addresses"},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23", "10.0.0.24", "10.0.0.25", "10.0.0.26",
			"10.0.0.27", "10.0.0.28", "10.0.0.29")
		n.Surveyed = true
		for i := range 3 {
			assign(n, int32(i), string(rune('a'+i)))
		}
		n.pool.rest(0, 2, true)
		n.pool.quarantine(3, "why")
		n.pool.quarantine(4, "why")
		n.pool.quarantine(5, "why")
		n.requests.Waiting = make([]Add, 5)
		c.spoil(n)
		text := n.pods.noAddress(0, in)
		for _, want := range []string{c.want, "cni add web-7", "sandbox " + in.Att.String(), "2 assigned",
			"1 cool down",
			"3 quarantined", "5 pods wait"} {
			if !strings.Contains(text, want) && (n.Phase != recovering || strings.IndexByte("0123456789",
				want[0]) < 0) {
				t.Errorf("%s: %q is not in %q", c.what, want, text)
			}
		}
	}
}

// TestWhatASecondLookAtTheStateFinds: numbers that would be shifted by, counted down or looped to.
func TestWhatASecondLookAtTheStateFinds(t *testing.T) {
	for what, spoil := range map[string]func(n *Node){
		"":                            func(*Node) {},
		"the last phase":              func(n *Node) { n.Phase = stopping },
		"no such phase":               func(n *Node) { n.Phase = stopping + 1 },
		"deaf without facts":          func(n *Node) { n.Deaf = true },
		"too many ENIs":               func(n *Node) { n.Inst.Limits.ENIs = mostENIs + 1 },
		"as many ENIs as may be":      func(n *Node) { n.Inst.Limits.ENIs = mostENIs },
		"fewer addresses than none":   func(n *Node) { n.Inst.Limits.Addresses = -1 },
		"tries of an address below 0": func(n *Node) { n.pool.Addrs[1].Tries = -1 },
		"tries of an ENI below 0":     func(n *Node) { n.ENIs[1].Tries = -1 },
		"the last stage":              func(n *Node) { n.ENIs[1].Stage = Tombstoned },
		"no such stage":               func(n *Node) { n.ENIs[1].Stage = Tombstoned + 1 },
		"two requests":                func(n *Node) { n.requests.Open = []open{{Req: 1}, {Req: 2}} },
		"a request twice":             func(n *Node) { n.requests.Open = []open{{Req: 1}, {Req: 2}, {Req: 1}} },
		"a request of no number":      func(n *Node) { n.requests.Open = []open{{Req: 0}} },
		"failures below 0":            func(n *Node) { n.Looks[LookConfig].Fails = -1 },
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21")
		n.enis.newENI(eni{ENI: ENI{ID: "eni-1"}, Stage: Ready})
		spoil(n)
		good := what == "" || strings.HasPrefix(what, "the last") || strings.HasPrefix(what, "as many") ||
			what == "two requests"
		if err := n.consistentNumbers(); (err == nil) != good {
			t.Errorf("%q: %v", what, err)
		}
	}
}

// TestWhenAnENIIsOutdated: its subnet's tags exclude it, or the node's ENIConfig is another by now.
func TestWhenAnENIIsOutdated(t *testing.T) {
	for _, c := range []struct {
		what      string
		subnet    string
		discovers bool
		want      bool
	}{
		{"for pods", "subnet-2", true, false},
		{"not for pods", "subnet-3", true, true},
		{"the node's own, not for pods", "subnet-1", true, true},
		{"one that EC2 does not list", "subnet-9", true, false},
		{"not for pods, and nobody looks at tags", "subnet-3", false, false},
	} {
		sn := newSubnets(Subnet{ID: "subnet-1", Role: "0"}, Subnet{ID: "subnet-2", Role: "1"}, Subnet{ID: "subnet-3"})
		sn.Inst.Subnet, sn.Set.Discovery = "subnet-1", c.discovers
		if got := sn.outdated(&eni{ENI: ENI{Subnet: c.subnet}}, nil); (got != "") != c.want {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}

// TestAnENIThatEC2WasNotAskedForIsDropped, and the addresses that it was to take are its subnet's again.
func TestAnENIThatEC2WasNotAskedForIsDropped(t *testing.T) {
	for _, c := range []struct {
		what string
		e    eni
		want int // free in its subnet
	}{
		{"of addresses", eni{Stage: Intended, mutation: mutation{Count: 3}}, 104},
		{"of prefixes", eni{Stage: Intended, mutation: mutation{Count: 3, Prefixed: true}}, 149},
		{"created", eni{Stage: Created, mutation: mutation{Count: 3}}, 100},
		{"being created", eni{Stage: Intended, mutation: mutation{Doing: CreateENI, Count: 3}}, 100},
		{"on record", eni{Stage: Intended, mutation: mutation{Count: 3, Stored: true}}, 100},
	} {
		n := newborn(t)
		n.subnets.Candidates = []candidate{{Subnet: Subnet{ID: "a", Free: 100}}, {Subnet: Subnet{ID: "b", Free: 100}}}
		n.enis.newENI(eni{Stage: Ready})
		c.e.Subnet = "b"
		ix := n.enis.newENI(c.e)
		n.warm.unplan()
		if got := n.subnets.candidate("b").Free; got != c.want || (n.ENIs[ix].Stage == 0) != (c.want != 100) ||
			n.ENIs[0].Stage != Ready || n.subnets.candidate("a").Free != 100 {
			t.Errorf("%s: %d are free, expected %d; it is %v", c.what, got, c.want, n.ENIs[ix].Stage)
		}
	}
}

// TestWhenALeakIsSweptAtTheLatest: by the look that finds it leaked, after the pause by chance.
func TestWhenALeakIsSweptAtTheLatest(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		what  string
		spoil func(n *Node, v *ENI)
		want  time.Duration // never: it is not
	}{
		{"the look is due", func(*Node, *ENI) {}, now + firstPause},
		{"the look is under way", func(n *Node, _ *ENI) {
			n.Looks[LookLeaked].ID, n.Looks[LookLeaked].Want = 7, now+time.Minute
		}, now + firstPause},
		{"the look is late", func(n *Node, _ *ENI) { n.Looks[LookLeaked].Want = now - time.Minute },
			now + firstPause},
		{"the look comes", func(n *Node, _ *ENI) { n.Looks[LookLeaked].Want = now + time.Minute },
			now + time.Minute + firstPause},
		{"it is new", func(n *Node, v *ENI) { v.Created = n.wall(now) }, now + leakedAgain + firstPause},
		{"a neighbour's, gone for long", func(_ *Node, v *ENI) { v.Owner, v.Near, v.OwnerGone = "i-2", true, true },
			now + 3*leakedAgain + firstPause},
		{"a neighbour's that lives", func(_ *Node, v *ENI) { v.Owner, v.Near = "i-2", true }, never},
		{"somebody's far away", func(_ *Node, v *ENI) { v.Owner, v.OwnerGone = "i-2", true }, never},
		{"kept", func(_ *Node, v *ENI) { v.NoManage = "true" }, never},
		{"it recovers", func(n *Node, _ *ENI) { n.Phase = recovering }, never},
		{"nothing is swept", func(n *Node, _ *ENI) { n.Set.NoSweep = true }, never},
	} {
		n := freeOn(t)
		n.Inst.ID, n.Wall, n.Looks[LookLeaked].Want = "i-1", 1_700_000_000, now
		v := &ENI{ID: "eni-9", Status: "available", Owner: "i-1", Created: n.Wall}
		c.spoil(n, v)
		at, ok := n.SweptBy(now, v)
		if !ok {
			at = never
		}
		if at != c.want {
			t.Errorf("%s: swept by %v, expected %v", c.what, at, c.want)
		}
	}
}

// TestTheFirstLookForLeaksIsByChance, so that a fleet that starts together does not ask together.
func TestTheFirstLookForLeaksIsByChance(t *testing.T) {
	least, most := never, time.Duration(0)
	for seed := range uint64(32) {
		n := newborn(t)
		n.recovery.born(time.Hour, Start{Seed: seed, Settings: Defaults()})
		at := n.Looks[LookLeaked].Want - time.Hour - leakedFirst
		least, most = min(least, at), max(most, at)
		if n.Looks[LookPods].Want != time.Hour+podsPeriod || n.driver.Pace.Window != time.Hour {
			t.Errorf("pods are listed at %v, and calls counted from %v on", n.Looks[LookPods].Want,
				n.driver.Pace.Window)
		}
	}
	if least < 0 || most >= leakedFirst || most-least < leakedFirst/2 {
		t.Errorf("32 daemons look between %v and %v after %v", least, most, leakedFirst)
	}
}

// TestTheLinkOfARecoveredRowIsLearned: by its alias, whatever name the row has; one without alias is taken over if
// it is a pod's.
func TestTheLinkOfARecoveredRowIsLearned(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(l *dataplane.Link)
		want  string
	}{
		{"with our alias", func(*dataplane.Link) {}, "eni9"},
		{"without alias", func(l *dataplane.Link) { l.Alias = "" }, "eni9"},
		{"without alias, and no veth", func(l *dataplane.Link) { l.Alias, l.Veth = "", false }, "eni1"},
		{"with another's alias", func(l *dataplane.Link) { l.Alias = "theirs" }, "eni1"},
		{"with the alias of another attachment", func(l *dataplane.Link) {
			l.Alias = alias(Attachment{network, "c2", "eth0"}, l.PeerAddresses[0])
		}, "eni1"},
	} {
		n := freeOn(t, "10.0.0.20")
		att := assign(n, 0, "c1")
		n.pool.Addrs[0].Veth, n.Witness.Kernel = "eni1", true
		l := behind("eni9", att, n.pool.Addrs[0].IP)
		c.spoil(&l)
		n.recovery.settleRecall(time.Hour, indexOf(l))
		if a := &n.pool.Addrs[0]; a.Veth != c.want || a.State != Assigned ||
			(a.Op == recording) != (l.Alias == "" && l.Veth) {
			t.Errorf("%s: its link is %s, it is %v, %v runs", c.what, a.Veth, a.State, a.Op)
		}
	}
}

// TestTheQueueOfFreeAddressesIsKeptShort: what is not free any more, or is there twice, goes with the next look.
func TestTheQueueOfFreeAddressesIsKeptShort(t *testing.T) {
	for stale, want := range map[int]int{10: 12, 11: 2} { // beside two that are free, one of them twice
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22")
		assign(n, 2, "c1")
		n.pool.FreeQueue = []int32{1, 0}
		for len(n.pool.FreeQueue) < 2+stale {
			n.pool.FreeQueue = append(n.pool.FreeQueue, int32(len(n.pool.FreeQueue)%2)+1)
		}
		n.pods.coolDowns(time.Hour, indexOf(), 0)
		if q := n.pool.FreeQueue; len(q) != want || q[0] != 1 || q[1] != 0 {
			t.Errorf("%d are stale: %v", stale, q)
		}
	}
}

// TestIntentsOfOneTokenAreRefused wherever they stand; others come in one order.
func TestIntentsOfOneTokenAreRefused(t *testing.T) {
	row := func(token string) Row { return Row{Intent: &Intent{Token: token, Stage: Created, Doing: AttachENI}} }
	data := must.Get(EncodeLib(Version, []Row{row("a"), row("b"), row("c")}))(t)
	for from, good := range map[string]bool{"c,b,a": true, "a,b,a": false, "b,a,a": false, "b,c,a": true} {
		names := strings.Split(from, ",")
		text := string(data)
		for i, old := range []string{"a", "b", "c"} {
			text = strings.Replace(text, `"token":"`+old+`"`, `"token":"#`+names[i]+`"`, 1)
		}
		rows, err := DecodeLib(Version, []byte(text))
		if (err == nil) != good {
			t.Errorf("%s: %v", from, err)
		}
		if good && !slices.IsSortedFunc(rows, func(a, b Row) int {
			return strings.Compare(a.Intent.Token,
				b.Intent.Token)
		}) {
			t.Errorf("%s: %+v", from, rows)
		}
	}
}

// TestWhatCannotBeWrittenIsAnError, and its tag is named.
func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	if out, err := tagged("Odd", make(chan int)); err == nil || out != nil || !strings.Contains(err.Error(), "Odd") {
		t.Errorf("%s, %v", out, err)
	}
	if out, err := tagged("Even", 2); err != nil || string(out) != `{"Even":2}` {
		t.Errorf("%s, %v", out, err)
	}
}

// TestNamesOfNumbers: the first and the last have one, and what is beyond has none.
func TestNamesOfNumbers(t *testing.T) {
	list := []string{"a", "b"}
	for i, want := range map[int]string{-1: "?", 0: "a", 1: "b", 2: "?"} {
		if got := name(list, i); got != want {
			t.Errorf("%d is %q, expected %q", i, got, want)
		}
	}
}
