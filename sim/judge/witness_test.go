package judge_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/virtual"
)

// script lets addresses be given, taken back and given again, and a daemon die.
const script = `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  IP_COOLDOWN_PERIOD=5
start   pods web 12 on node-1
at 10s  kube roll web 6
at 1m   node-1 kill
at 2m   kube roll web 6
at 3m   kube scale web 3
at 4m   expect node-1 addresses.assigned == 3
finally converges within 2m
`

// kernel is what the witness sees: every address that is asked for is in that many namespaces.
type kernel struct {
	now   time.Duration
	held  int
	plans int
}

func (k *kernel) Now() time.Duration                          { return k.now }
func (k *kernel) Held(int32, netip.Addr) int                  { return k.held }
func (k *kernel) Ran(*judge.Life, *ipam.Apply, *ipam.Applied) { k.plans++ }
func (k *kernel) witness(book *timeline.Book) *judge.Witness {
	return &judge.Witness{Eyes: k, Audit: judge.New(judge.Config{Nodes: 1}), Story: &timeline.Timeline{}, Book: book}
}

// life is the recording of one daemon, and what the core was in the end.
type life struct {
	lines [][]byte
	core  *ipam.Node
	last  time.Duration
}

// record runs the script in virtual time and records the lives of node-1's daemon.
func record(t *testing.T) (lives []life) {
	t.Helper()
	f := must.Get(scn.Parse("script.scn", []byte(script)))(t)
	c := must.Get(sim.Check(f))(t)
	w := must.Get(virtual.Open(c, 1, nil))(t)
	defer w.Close()
	r := must.Get(sim.NewRun(f, w, "sim"))(t)
	var rec *ipam.Recording
	add := func(b []byte) {
		l := &lives[len(lives)-1]
		l.lines = append(l.lines, []byte(strings.TrimSuffix(string(b), "\n")))
	}
	w.Record(1, func(n *ipam.Node) {
		rec = must.Get(ipam.NewRecording(n, "sound"))(t)
		lives = append(lives, life{core: n})
		add(rec.Header())
	}, func(at time.Duration, in ipam.Input, effs []ipam.Effect) {
		line := must.Get(rec.Line(at, in, effs))(t)
		add(line)
		lives[len(lives)-1].last = at
	})
	if v := r.Finish(nil); !v.Held() {
		t.Fatalf("the script does not hold: %+v", v)
	}
	if len(lives) != 2 || len(lives[0].lines) < 10 {
		t.Fatalf("%d lives, the first of %d lines", len(lives), len(lives[0].lines))
	}
	return lives
}

// follow reads recordings to their end. It begins in the middle of a life, whose contract is that of a daemon that runs.
func follow(t *testing.T, w *judge.Witness, k *kernel, lives []life) *judge.Life {
	t.Helper()
	var last *judge.Life
	for i := range lives {
		if last != nil {
			w.Torn(last)
			w.Died(last.Number())
		}
		l := must.Get(w.Open(1, lives[i].lines[0]))(t)
		for _, line := range lives[i].lines[1:] {
			must.Do(t, l.Step(line))
		}
		k.now, last = lives[i].last, l
	}
	return last
}

// TestFollow: the second Node is what the daemon's is, and what follows from its steps is told and judged.
func TestFollow(t *testing.T) {
	lives := record(t)
	k := &kernel{held: 1}
	w := k.witness(timeline.NewBook())
	w.Begin()
	l := follow(t, w, k, lives)
	want := must.Get(lives[1].core.Encode())(t)
	got, err := l.Node().Encode()
	if err != nil || string(got) != string(want) {
		t.Errorf("%v: the second Node is another one:\n%s\n%s", err, got, want)
	}
	if int(l.Steps()) != len(lives[1].lines)-1 || k.plans == 0 || len(l.Plans()) != 0 {
		t.Errorf("%d steps of %d, %d plans ran, %d have not ended", l.Steps(), len(lives[1].lines)-1, k.plans, len(l.Plans()))
	}
	if !w.Reached("recovered-from-checkpoint") || w.Reached("eni-swept") || !strings.Contains(w.Story.String(), "ipamd starts") {
		t.Errorf("marks or story are wrong:\n%s", w.Story)
	}
	if lines := w.Book.Lines(); len(lives[1].lines) > 0 && len(lines) == 0 {
		t.Error("the book is empty")
	}
	if v, broken := w.Audit.First(); broken && v.Invariant != judge.I13 { // I13 began in the middle of a life
		t.Errorf("broken: %v", v)
	}
	var c judge.Snapshot
	c.Books(l.Core(), &ipam.View{})
	if !c.Up || len(c.Rows) != 3 || l.Busy() != "" {
		t.Errorf("the snapshot has %d rows, up %v; busy: %q", len(c.Rows), c.Up, l.Busy())
	}
	w.Begin()
	if w.Reached("recovered-from-checkpoint") || w.Story.String() != "" || w.Now() != 0 {
		t.Error("what was before t=0 is remembered")
	}
}

// TestHeld: an address that another namespace has too breaks I1 when it is configured, and I2 when it is given.
func TestHeld(t *testing.T) {
	k := &kernel{held: 2}
	w := k.witness(nil)
	follow(t, w, k, record(t))
	if w.Audit.Total(judge.I1) == 0 || w.Audit.Total(judge.I2) == 0 {
		t.Errorf("I1 %d times, I2 %d times", w.Audit.Total(judge.I1), w.Audit.Total(judge.I2))
	}
}

// TestDisagree: a step with another fingerprint is an error.
func TestDisagree(t *testing.T) {
	lives := record(t)
	k := &kernel{held: 1}
	l := must.Get(k.witness(nil).Open(1, lives[0].lines[0]))(t)
	line := string(lives[0].lines[1])
	at := strings.LastIndex(line, `"out":"`) + len(`"out":"`)
	if err := l.Step([]byte(line[:at] + "0000000000000000" + line[at+16:])); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("got %v", err)
	}
	if _, err := k.witness(nil).Open(1, []byte("{")); err == nil {
		t.Error("half a header was taken")
	}
}

// TestHappened: I4 and I7 are judged by what happened at EC2, by whomever.
func TestHappened(t *testing.T) {
	m := ec2.New(ec2.Config{}, 1)
	i := must.Get(m.Launch(0, ec2.LaunchSpec{Type: "m5.large", SecondaryAddresses: 2}))(t)
	eni := m.AttachedENIs(i)[0]
	v, _ := m.ENI(eni)
	live := func(a netip.Addr) string {
		if a == v.Secondaries[1] {
			return "web-0"
		}
		return ""
	}
	for _, c := range []struct {
		name  string
		e     ec2.Event
		want  int64 // of I4
		early int64 // of I7, when the other address was released a moment ago
	}{
		{"a stranger detaches", ec2.Event{Kind: ec2.ENIDetachStarted, Instance: i, ENI: eni}, 0, 0},
		{"the node detaches", ec2.Event{Kind: ec2.ENIDetachStarted, Instance: i, ENI: eni, By: i}, 1, 1},
		{"the node unassigns", ec2.Event{Kind: ec2.AddressUnassigned, Instance: i, Address: v.Secondaries[1], By: i}, 1, 0},
		{"the node unassigns what nobody has", ec2.Event{Kind: ec2.AddressUnassigned, Instance: i, Address: v.Secondaries[0], By: i}, 0, 1},
		{"the node unassigns it in its prefix", ec2.Event{Kind: ec2.PrefixUnassigned, Instance: i, Prefix: netip.PrefixFrom(v.Secondaries[0], 32), By: i}, 0, 1},
		{"a stranger unassigns it", ec2.Event{Kind: ec2.AddressUnassigned, Instance: i, Address: v.Secondaries[0]}, 0, 0},
		{"something else", ec2.Event{Kind: ec2.LinkPlugged, Instance: i, ENI: eni, By: i}, 0, 0},
	} {
		w := (&kernel{}).witness(nil)
		api := ipam.Attachment{ContainerID: "api", IfName: "eth0"}
		w.Audit.Started(0, 1)
		w.Audit.Input(0, 1, ipam.Start{Settings: ipam.Defaults()})
		w.Audit.Given(0, 1, api, v.Secondaries[0], "")
		w.Audit.Released(0, 1, api, v.Secondaries[0])
		w.Happened(m, 1, &c.e, live)
		if got := w.Audit.Total(judge.I4); got != c.want {
			t.Errorf("%s: I4 is broken %d times, want %d", c.name, got, c.want)
		}
		if got := w.Audit.Total(judge.I7); got != c.early {
			t.Errorf("%s: I7 is broken %d times, want %d", c.name, got, c.early)
		}
	}
	if c := judge.AppendENIs(nil, judge.Whose{Model: m, Node: i}); len(c) != 1 || c[0].ID != string(eni) || len(c[0].Secondaries) != 2 {
		t.Errorf("the snapshot has %+v", c)
	}
	if leaked, underWay := judge.Orphans(m, "", 0, 0, []*ipam.Node{nil}); len(leaked) != 0 || len(underWay) != 0 {
		t.Errorf("leaked: %v, under way: %v", leaked, underWay)
	}
}
