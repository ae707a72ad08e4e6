package kind

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/internal/must"
)

// TestLeap: the clock leaps when every daemon waits and nobody else has anything to do, and not beyond what is waited
// for. Daemons and models follow it.
func TestLeap(t *testing.T) {
	w := machineless(t)
	w.work = &controller{want: map[string]int{}}
	w.witness.Begin()
	e := &endpoint{w: w}
	w.endpoints = []*endpoint{e}
	l := must.Get(net.Listen("unix", filepath.Join(t.TempDir(), "clock.sock")))(t)
	defer l.Close()
	go e.tell(l)
	daemon := must.Get(clock.Dial(l.Addr().String()))(t)
	defer daemon.Close()
	reports := func(s clock.State) {
		t.Helper()
		w.mu.Lock()
		e.report = nil
		w.mu.Unlock()
		daemon.Idle(s)
		await(t, "the report", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return e.report != nil })
	}
	const far = 10 * time.Minute

	reports(clock.State{Next: -1})
	if w.pace.leap(far) {
		t.Error("it leapt while two nodes had no daemon")
	}
	w.members = w.members[:1]
	for _, c := range []struct {
		name  string
		state clock.State
		until time.Duration // the instant of the scenario that is waited for, from now on
		most  time.Duration // how far it may leap; 0: not at all
		model time.Duration // when a model has something to do; 0: never
	}{
		{"an answer is under way", clock.State{Next: time.Second, Remote: 1}, far, 0, 0},
		{"a plugin waits", clock.State{Next: time.Second, Requests: 1}, far, 0, 0},
		{"its time has come", clock.State{Next: 1}, far, 0, 0},
		{"never", clock.State{Next: -1}, far, longestLeap, 0},
		{"the next line", clock.State{Next: -1}, 3 * time.Second, 3 * time.Second, 0},
		{"the daemon", clock.State{Next: 8 * time.Second}, far, 8 * time.Second, 0},
		{"a model", clock.State{Next: 8 * time.Second}, far, 4 * time.Second, 4 * time.Second},
	} {
		if c.state.Next > 1 {
			c.state.Next += w.now()
		}
		if c.model > 0 {
			w.c.Cloud(func(time.Duration, *ec2.Cloud) { w.c.After(c.model, func() {}) })
		}
		reports(c.state)
		before := w.c.Offset()
		leapt := w.pace.leap(w.Now() + c.until)
		found := w.c.Offset() - before
		if leapt != (c.most > 0) || found > c.most || leapt && found < c.most-2*time.Second {
			t.Errorf("%s: it leapt %v, expected %v", c.name, found, c.most)
		}
		if !leapt {
			continue
		}
		await(t, "the daemon to know", func() bool { return daemon.Now() >= w.now()-time.Millisecond })
		if w.pace.leap(w.Now() + far) {
			t.Errorf("%s: it leapt again before the daemon had said that it waits", c.name)
		}
	}

	reports(clock.State{Next: -1})
	w.pace.asides.Add(1)
	if w.pace.leap(w.Now() + far) {
		t.Error("it leapt while something was done to a machine")
	}
	w.pace.asides.Add(-1)
	w.work.want["web"] = 1
	if w.pace.leap(w.Now() + far) {
		t.Error("it leapt while a pod was to be made")
	}
	w.pods.put(object("1", "web-x-7", "web", "a", nil))
	w.pace.stirred = time.Now().Add(time.Hour)
	if w.pace.leap(w.Now() + far) {
		t.Error("it leapt right after an action")
	}
	w.pace.stirred = time.Time{}
	if !w.pace.leap(w.Now() + far) {
		t.Error("it did not leap although all was settled")
	}
}
