package ipam

import (
	"net/netip"
	"testing"
	"time"
)

// TestDeviceNumbers: an ENI takes the lowest free device index, and the next ones in turn when EC2 refuses.
func TestDeviceNumbers(t *testing.T) {
	for _, c := range []struct {
		limit int
		taken []int
		tries int
		want  int
	}{
		{4, nil, 0, 1},
		{4, []int{1}, 0, 2},
		{4, []int{2}, 0, 1},
		{4, []int{1}, 1, 3}, // somebody else has 2
		{4, []int{1}, 2, 2}, // and round again: no instance has more devices than its limit
		{4, nil, 300, 1},
		{4, nil, 301, 2},
		{4, []int{1, 2, 3}, 5, 1},
		{0, nil, 1 << 62, 1},
	} {
		n := newborn(t)
		n.Inst.Limits.ENIs = c.limit
		ix := n.newENI(eni{Stage: Created})
		for _, d := range c.taken {
			n.newENI(eni{ENI: ENI{Device: d}, Stage: Ready})
		}
		if got := n.device(ix, c.tries); got != c.want {
			t.Errorf("limit %d, taken %v, try %d: device %d, want %d", c.limit, c.taken, c.tries, got, c.want)
		}
	}
}

// TestWhoTakesADeviceIndex: every ENI of the node's that is made, and somebody else's that is attached; not one that
// is only meant, nor a leak.
func TestWhoTakesADeviceIndex(t *testing.T) {
	for _, c := range []struct {
		name string
		e    eni
		want int
	}{
		{"made", eni{Stage: Created}, 2},
		{"attached", eni{Stage: Attached}, 2},
		{"meant", eni{Stage: Intended}, 1},
		{"an empty slot", eni{}, 1},
		{"to be deleted", eni{Stage: Tombstoned}, 2},
		{"somebody's leak", eni{Stage: Tombstoned, Foreign: true}, 1},
	} {
		n := newborn(t)
		n.Inst.Limits.ENIs = 4
		ix := n.newENI(eni{ENI: ENI{Device: 1}, Stage: Created}) // its own does not bind it
		c.e.Device = 1
		n.newENI(c.e)
		n.evidence.Others = []other{{ID: "eni-9", Device: 3}}
		if got := n.device(ix, 0); got != c.want {
			t.Errorf("%s: device %d, expected %d", c.name, got, c.want)
		}
		if got := n.device(ix, 2-c.want+1); got == 3 {
			t.Errorf("%s: device %d is somebody else's", c.name, got)
		}
	}
}

// TestARefusedAttach: what EC2 says of it decides whether the ENI is looked at, tried on, or given up.
func TestARefusedAttach(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		name   string
		class  Class
		barred int
		since  time.Duration
		pods   bool
		refuse int // counted, by now
		lost   bool
		stage  Stage
		asks   bool // what is attached
		most   int  // ENIs that the instance carries, by what is believed
	}{
		{"not allowed", Denied, 0, 0, false, 0, false, Created, false, 0},
		{"EC2 is not there", Unavailable, attachTries, 0, false, attachTries, false, Created, false, 0},
		{"unknown, just made", NotFound, 0, now - consistency + 1, false, 0, false, Created, false, 0},
		{"unknown", NotFound, 0, now - consistency, false, 0, true, Created, false, 0},
		{"in use", InUse, 0, 0, false, 1, true, Created, true, 0},
		{"in use, nearly too often", InUse, attachTries - 2, 0, false, attachTries - 1, true, Created, true, 0},
		{"in use, too often", InUse, attachTries - 1, 0, false, attachTries, false, Tombstoned, true, 1},
		{"too many", Limit, 0, 0, false, 1, false, Tombstoned, true, 1},
		{"too many, and pods have it", Limit, 0, 0, true, 1, true, Created, true, 2},
		{"in use, too often, and pods have it", InUse, attachTries - 1, 0, true, attachTries, true, Created, true, 2},
	} {
		n := freeOn(t, "10.0.0.20")
		ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: Created, Since: c.since,
			mutation: mutation{Doing: AttachENI, Barred: c.barred}})
		if c.pods {
			n.pool.become(0, Assigned)
			n.pool.place(0, ix)
		}
		asked := now - time.Second
		n.evidence.Looks[LookAttached].At = asked
		n.driver.attachRefused(now, ix, &Result{Class: c.class})
		e := &n.ENIs[ix]
		if e.Barred != c.refuse || e.Lost != c.lost || e.Stage != c.stage || n.pool.Warm.Most != c.most {
			t.Errorf("%s: refused %d times, in doubt %v, %v, the instance carries %d; expected %+v", c.name,
				e.Barred, e.Lost, e.Stage, n.pool.Warm.Most, c)
		}
		want := never
		if c.asks {
			want = asked + askPause
		}
		if at := n.evidence.Looks[LookAttached].Want; at != want {
			t.Errorf("%s: EC2 is asked what is attached at %v, expected %v", c.name, at, want)
		}
		if rethinks := n.pool.Warm.At == now; rethinks != (c.pods && c.most > 0) {
			t.Errorf("%s: the pool thinks again at %v", c.name, n.pool.Warm.At)
		}
	}
}

// TestOfTwoIntentsOfOneENIThatOfTheLaterStageCounts: the end of the other was not durable.
func TestOfTwoIntentsOfOneENIThatOfTheLaterStageCounts(t *testing.T) {
	for _, c := range []struct {
		name          string
		id            string
		first, second Stage
		enis          int
		stage         Stage
		dropped       string // the intent
	}{
		{"the second", "eni-1", Created, Draining, 1, Draining, "t1"},
		{"the first", "eni-1", Draining, Created, 1, Draining, "t2"},
		{"of the same stage", "eni-1", Created, Created, 1, Created, "t2"},
		{"two that are not made yet", "", Intended, Intended, 2, Intended, ""},
		{"one of another version's stage", "eni-1", Created, Tombstoned + 1, 1, Created, ""},
		{"one of no stage", "eni-1", Created, 0, 1, Created, ""},
	} {
		n := newborn(t)
		n.Steps = 7
		for i, stage := range []Stage{c.first, c.second} {
			n.driver.resume(time.Minute, &Intent{Token: "t" + string('1'+rune(i)), Stage: stage, ENI: ENI{ID: c.id},
				Doing: UnassignIPs, Before: []netip.Addr{netip.MustParseAddr("10.0.0.20")}})
		}
		dropped := ""
		for _, k := range n.ledger.drop[LibStore] {
			dropped += k.Token
		}
		if len(n.ENIs) != c.enis || n.ENIs[0].Stage != c.stage || dropped != c.dropped || n.ENIs[0].Token == dropped {
			t.Errorf("%s: %d ENIs, the first %v by intent %s; %q is dropped; expected %d, %v, %q",
				c.name, len(n.ENIs), n.ENIs[0].Stage, n.ENIs[0].Token, dropped, c.enis, c.stage, c.dropped)
		}
		if e := &n.ENIs[0]; !e.Trimming || !e.Stored || !e.Lost || e.Doubt != time.Minute+landing ||
			e.Open != e.Doubt || e.Next != time.Minute || e.Tag != 7 {
			t.Errorf("%s: %+v", c.name, *e)
		}
	}
}

// TestWhatAnAnswerOfEC2sMeans to a call, and what is told of it.
func TestWhatAnAnswerOfEC2sMeans(t *testing.T) {
	const now = time.Hour
	for _, c := range []struct {
		name    string
		do      Action
		result  Result
		tries   int // before
		note    Point
		warn    bool
		trouble string
		after   int // tries
		lost    bool
	}{
		{"no answer", ModifyENI, Result{Class: Lost}, 2, CallLost, true,
			"EC2 has not answered " + ModifyENI.String(), 2, true},
		{"a throttle", ModifyENI, Result{Class: Throttled}, 2, CallThrottled, false,
			"EC2 throttles " + ModifyENI.String(), 3, false},
		{"a refusal", ModifyENI, Result{Class: Denied, Code: "No"}, 2, CallRefused, true,
			"EC2 refuses " + ModifyENI.String() + ": No", 3, false},
		{"in use yet", DeleteENI, Result{Class: InUse, Code: "Yet"}, deleteTries - 1, CallRefused, false, "before",
			deleteTries, false},
		{"still in use", DeleteENI, Result{Class: InUse, Code: "Yet"}, deleteTries, CallRefused, true,
			"EC2 refuses " + DeleteENI.String() + ": Yet",
			deleteTries + 1, true},
		{"a delete is not allowed", DeleteENI, Result{Class: Denied, Code: "No"}, 0, CallRefused, true,
			"EC2 refuses " + DeleteENI.String() + ": No", 1, false},
		{"it is done", ModifyENI, Result{}, 2, 0, false, "", 0, false},
	} {
		for _, awaited := range []bool{true, false} {
			n := newborn(t)
			n.Phase, n.Steps = serving, 7
			stage := Attached
			if c.do == DeleteENI {
				stage = Tombstoned
			}
			ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-1", Device: 1}, Stage: stage, mutation: mutation{Doing: c.do,
				Tries: c.tries, Wait: calling, Next: never}})
			n.ENIs[ix].Tag = 0
			id := n.ledger.await(eniCall, ix)
			if !awaited {
				n.ENIs[ix].Wait = applying
			}
			n.Troubles[troubleEC2] = "before"
			n.driver.called(now, Called{ID: id, Result: c.result})
			e := &n.ENIs[ix]
			if !awaited {
				if e.Wait != applying || len(n.out) > 0 || n.Troubles[troubleEC2] != "before" || e.Tries != c.tries {
					t.Errorf("%s, of which nothing is awaited: %+v, %v", c.name, *e, n.out)
				}
				continue
			}
			if e.Wait != idle || e.Tries != c.after || e.Lost != c.lost || n.Troubles[troubleEC2] != c.trouble ||
				e.Tag != 7 {
				t.Errorf("%s: tries %d, in doubt %v, %q; expected %d, %v, %q", c.name, e.Tries, e.Lost,
					n.Troubles[troubleEC2], c.after, c.lost, c.trouble)
			}
			if again := e.Next; c.after > c.tries && again <= now || c.result.Class == Lost && again != now {
				t.Errorf("%s: it goes on at %v", c.name, again)
			}
			if slow := n.driver.Pace != newborn(t).driver.Pace; slow != (c.result.Class == Throttled) {
				t.Errorf("%s: the node's pace is %+v", c.name, n.driver.Pace)
			}
			told := 0
			for _, o := range n.out {
				if note, ok := o.(*Note); ok && note.Point == c.note && c.note != 0 {
					if told++; note.Warn != c.warn || note.ENI != "eni-1" {
						t.Errorf("%s: told as %+v", c.name, note)
					}
				}
			}
			if told > 1 || (told == 1) != (c.note != 0) {
				t.Errorf("%s: told %d times: %v", c.name, told, n.out)
			}
		}
	}
}
