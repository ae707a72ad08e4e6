package swarm_test

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/swarm"
)

// fake is a world in which a scenario breaks while some lines are in it: runs cost nothing and are counted.
type fake struct {
	needs  []string // all of them in the text, or it holds
	atOnce int
	once   bool // it does not repeat: a candidate breaks every second time
	played atomic.Int64
	now    atomic.Int64
	most   atomic.Int64 // runs at the same time
	err    error
}

func (f *fake) World() string { return "netns" }
func (f *fake) Repeats() bool { return !f.once }
func (f *fake) AtOnce() int   { return max(1, f.atOnce) }

func (f *fake) Play(_, text string, _ uint64, _ func() bool) (*swarm.Outcome, error) {
	f.most.Store(max(f.most.Load(), f.now.Add(1)))
	defer f.now.Add(-1)
	n := f.played.Add(1)
	if f.err != nil {
		return nil, f.err
	}
	for _, need := range f.needs {
		if !strings.Contains(text, need) {
			return &swarm.Outcome{}, nil
		}
	}
	if f.once && n%2 == 0 {
		return &swarm.Outcome{}, nil
	}
	return &swarm.Outcome{Broken: swarm.NewBroken("nothing is leaked", "node-1 leaks: a rule", 0, 1)}, nil
}

// drawn is a scenario that somebody drew.
const drawn = `# Drawn by enilab swarm for any CNI from seed 9.
cluster nodes=2 type=t3.medium subnet=10.0.0.0/24 runtime=containerd max-pods=12
config  WARM_IP_TARGET=2 IP_COOLDOWN_PERIOD=60
start   pods web 4 on node-*
maybe at 12s node-1 hold
maybe at 15s ec2 lose AttachNetworkInterface times=2
at 20s kube scale web 9
maybe at 31s node-1 unhold
maybe at 40s node-2 kill
maybe at 55s ec2 down for=30s
maybe at 1m10s pod web-3 delete
at 2m within 6m expect kube pods.unready == 0
finally converges within 6m
`

func dearly(f *fake) swarm.Options { return swarm.Options{Player: f, CNI: swarm.Ours(), Tries: 200} }

// TestShrinkOverAPlayer: what is left is what breaks, however many are played at once, and it is played twice more.
func TestShrinkOverAPlayer(t *testing.T) {
	var first string
	for _, atOnce := range []int{1, 3} {
		f := &fake{needs: []string{"node-1 hold", "web"}, atOnce: atOnce}
		o := dearly(f)
		o.Together = func(n int, do func(int)) {
			var all sync.WaitGroup
			for i := range n {
				all.Go(func() { do(i) })
			}
			all.Wait()
		}
		s := must.Get(swarm.Shrink("drawn.scn", drawn, 9, o))(t)
		first = cmp.Or(first, s.Text)
		want := "cluster max-pods=1\nstart pods web 1 on node-1\nat 0s node-1 hold\nfinally converges within 6m\n"
		if got := strings.ReplaceAll(s.Text, "maybe ", ""); got != want || s.Text != first {
			t.Errorf("%d at once: %d lines of %d after %d runs:\n%s", atOnce, s.Lines, s.From, s.Tried, s.Text)
		}
		if s.Again != 2 || s.Of != 2 {
			t.Errorf("played again, it broke alike %d times of %d", s.Again, s.Of)
		}
		if most := int(f.most.Load()); most > atOnce {
			t.Errorf("%d runs at once, expected %d at most", most, atOnce)
		}
		if n := int(f.played.Load()); n != 1+s.Tried+2 {
			t.Errorf("%d runs for %d candidates: something is played twice", n, s.Tried)
		}
	}
}

// TestShrinkKeepsToItsBudget: it ends after so many runs with what is smallest by then, and with the largest bites taken; the same when
// somebody stops it.
func TestShrinkKeepsToItsBudget(t *testing.T) {
	f := &fake{needs: []string{"node-2 kill"}}
	o := dearly(f)
	o.Tries = 8
	s := must.Get(swarm.Shrink("drawn.scn", drawn, 9, o))(t)
	if s.Tried > 8 || f.played.Load() > 8+1+2 || s.Lines > 7 || !strings.Contains(s.Text, "node-2 kill") {
		t.Errorf("%d runs, %d lines:\n%s", s.Tried, s.Lines, s.Text)
	}
	f = &fake{needs: []string{"node-2 kill"}}
	o = dearly(f)
	o.Over = func() bool { return f.played.Load() >= 5 }
	s = must.Get(swarm.Shrink("drawn.scn", drawn, 9, o))(t)
	if f.played.Load() != 5+2 || s.Again != 2 || s.Lines >= s.From || !strings.Contains(s.Text, "node-2 kill") {
		t.Errorf("time is over: %d runs, played again %d times, %d lines of %d:\n%s", f.played.Load(), s.Of, s.Lines, s.From, s.Text)
	}
	f = &fake{needs: []string{"node-2 kill"}}
	o = dearly(f)
	o.Stop = func() bool { return f.played.Load() >= 5 }
	s = must.Get(swarm.Shrink("drawn.scn", drawn, 9, o))(t)
	if f.played.Load() != 5 || s.Of != 0 || s.Lines >= s.From || !strings.Contains(s.Text, "node-2 kill") {
		t.Errorf("stopped: %d runs, played again %d times, %d lines of %d:\n%s", f.played.Load(), s.Of, s.Lines, s.From, s.Text)
	}
}

// TestShrinkWhereRunsDiffer: a candidate that held once is played again when that is asked for, and what did not break again is told.
func TestShrinkWhereRunsDiffer(t *testing.T) {
	f := &fake{needs: []string{"node-2 kill"}, once: true}
	o := dearly(f)
	o.Times = 2
	s := must.Get(swarm.Shrink("drawn.scn", drawn, 9, o))(t)
	if s.Lines != 3 || s.Of != 1 {
		t.Errorf("%d lines, played again %d times:\n%s", s.Lines, s.Of, s.Text)
	}
}

// TestShrinkIsPatient: a run of which nothing is known is played again.
func TestShrinkIsPatient(t *testing.T) {
	f := &moody{fake{needs: []string{"node-2 kill"}, once: true}}
	s := must.Get(swarm.Shrink("drawn.scn", drawn, 9, swarm.Options{Player: f, CNI: swarm.Ours(), Tries: 200}))(t)
	if s.Lines != 3 {
		t.Errorf("%d lines:\n%s", s.Lines, s.Text)
	}
}

// moody knows nothing of every second run.
type moody struct{ fake }

func (m *moody) Play(name, text string, seed uint64, stop func() bool) (*swarm.Outcome, error) {
	if m.now.Add(1)%2 == 0 {
		return &swarm.Outcome{Unknown: "this machine did not keep up"}, nil
	}
	f := fake{needs: m.needs}
	return f.Play(name, text, seed, stop)
}

// TestShrinkOverAPlayerRefuses: what holds, what cannot be played, and what is not known.
func TestShrinkOverAPlayerRefuses(t *testing.T) {
	broken := errors.New("no kernel")
	for _, c := range []struct {
		f    *fake
		want error
	}{{&fake{needs: []string{"nothing of it"}}, swarm.ErrHolds}, {&fake{err: broken}, broken}} {
		if _, err := swarm.Shrink("drawn.scn", drawn, 9, dearly(c.f)); !errors.Is(err, c.want) {
			t.Errorf("expected %v, found %v", c.want, err)
		}
	}
	f := &unknown{}
	if _, err := swarm.Shrink("drawn.scn", drawn, 9, swarm.Options{Player: f}); !errors.Is(err, swarm.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
}

type unknown struct{ fake }

func (*unknown) Play(string, string, uint64, func() bool) (*swarm.Outcome, error) {
	return &swarm.Outcome{Unknown: "this machine did not keep up"}, nil
}

// TestTallyOfUnknown: a run of which nothing is known neither held nor broke anything.
func TestTallyOfUnknown(t *testing.T) {
	tally := swarm.TallyFor(old())
	tally.Add(3, &swarm.Outcome{Unknown: "too slow"})
	tally.Add(4, &swarm.Outcome{})
	tally.Add(5, &swarm.Outcome{Cut: true})
	if tally.Unknown != 1 || tally.Runs != 1 || tally.Held != 1 || len(tally.Whys) != 1 || tally.Whys[0] != "seed 3: too slow" {
		t.Errorf("%+v", tally)
	}
	if tally.Verbs() != len(old().Drawn()) || tally.Verbs() >= swarm.NewTally(nil).Verbs() {
		t.Errorf("%d verbs", tally.Verbs())
	}
}
