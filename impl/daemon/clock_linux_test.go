package daemon

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// laboratory gives the rig a clock that jumps, and hears its reports.
func laboratory(t *testing.T, r *rig) (*clock.Seat, <-chan clock.Report) {
	t.Helper()
	path := filepath.Join(r.c.RunDir, "clock.sock")
	l := must.Get(net.Listen("unix", path))(t)
	defer l.Close()
	seats := make(chan *clock.Seat, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		s, err := clock.NewSeat(conn, 0)
		if err != nil {
			t.Error(err)
		}
		seats <- s
	}()
	c := must.Get(clock.Dial(path))(t)
	r.c.Clock = c
	s := <-seats
	reports := make(chan clock.Report, 1<<16)
	go func() {
		for {
			p, err := s.Read()
			if err != nil {
				close(reports)
				return
			}
			reports <- p
		}
	}()
	t.Cleanup(func() { c.Close(); s.Close() })
	return s, reports
}

// await reads reports until one is as wanted.
func await(t *testing.T, r *rig, what string, reports <-chan clock.Report, ok func(clock.Report) bool) clock.Report {
	t.Helper()
	end := time.After(soon)
	for {
		select {
		case p, open := <-reports:
			if !open {
				t.Fatalf("the daemon left before %s", what)
			}
			if ok(p) {
				return p
			}
		case <-end:
			t.Fatalf("no report within %v: %s\n%s", soon, what, r.log)
		}
	}
}

// leaps lets time pass, from one instant that the daemon waits for to the next, until something is so.
func leaps(t *testing.T, r *rig, seat *clock.Seat, reports <-chan clock.Report) func(until func() bool) {
	offset := time.Duration(0)
	return func(until func() bool) {
		t.Helper()
		offset += time.Millisecond // reports of before have another offset: they may lie in the queue, and do not know what the daemon has been told since
		must.Do(t, seat.Tell(offset))
		for end := time.Now().Add(soon); ; {
			p := await(t, r, "it is idle", reports, func(p clock.Report) bool { return p.Offset == offset && p.Remote == 0 })
			if until() {
				return
			}
			if p.Next > r.c.Clock.Now() {
				offset += p.Next - r.c.Clock.Now()
				must.Do(t, seat.Tell(offset))
			}
			if time.Now().After(end) {
				t.Fatalf("not within %v\n%s", soon, r.log)
			}
		}
	}
}

// TestDaemonReportsWhatItWaitsFor: the daemon says what it waits for, and jumps are the time that passes.
func TestDaemonReportsWhatItWaitsFor(t *testing.T) {
	r := newRig(t, 2)
	seat, reports := laboratory(t, r)
	r.cloud.silent = make(chan struct{})
	r.start()
	await(t, r, "it waits for metadata alone", reports, func(p clock.Report) bool { return p.Remote == 1 && p.Requests == 0 && p.Next > 0 })
	answer := make(chan *ipc.Response, 1)
	q, files := addOf("one"), passed(t)
	q.TimeoutMS = 120_000
	go func() { out, _ := r.call(q, files...); answer <- out }()
	p := await(t, r, "an ADD waits too", reports, func(p clock.Report) bool { return p.Requests == 1 })
	if p.Remote != 1 {
		t.Errorf("report %+v: metadata is still asked", p)
	}
	close(r.cloud.silent)
	jump := leaps(t, r, seat, reports)
	jump(func() bool { return len(answer) > 0 })
	if out := <-answer; out.Code != 0 {
		t.Fatalf("add: %+v", out)
	}
	r.del("one")
	began, now := time.Now(), r.c.Clock.Now()
	jump(func() bool { return r.c.Clock.Now()-now > 40*time.Second })
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("40 s took %v: nothing has jumped", took)
	}
	if v := r.view(); v.View.Cooling != 0 || v.View.Free != 2 {
		t.Errorf("40 s after the DEL: %d cooling, %d free", v.View.Cooling, v.View.Free)
	}
	r.end()
	if got := r.replays(); got.Until < 40*time.Second {
		t.Errorf("the recording ends at %v", got.Until)
	}
}

// TestSilentSourceIsGivenUp: a source that never answers is given up, by the clock.
func TestSilentSourceIsGivenUp(t *testing.T) {
	r := newRig(t, 2)
	seat, reports := laboratory(t, r)
	r.cloud.silent = make(chan struct{})
	r.start()
	p := await(t, r, "it waits for metadata", reports, func(p clock.Report) bool { return p.Remote == 1 })
	if p.Next > r.c.Clock.Now()+imdsBound {
		t.Errorf("it would wait until %v, now is %v", p.Next, r.c.Clock.Now())
	}
	must.Do(t, seat.Tell(2*imdsBound))
	r.eventually("it has given up", func() bool { // asked: it tries again, and on a busy machine is never seen between two tries
		out := r.status()
		return !out.Ready && strings.Contains(strings.Join(out.Reasons, "\n"), "given up after "+imdsBound.String())
	})
}

// TestRunningPlanIsNotIdle: while a plan runs nothing is reported.
func TestRunningPlanIsNotIdle(t *testing.T) {
	r := newRig(t, 2)
	_, reports := laboratory(t, r)
	r.start().serves()
	leave, entered := make(chan struct{}), make(chan struct{}, 8)
	r.kernel.gate(func(p dataplane.Plan) {
		for i := range p.Ops {
			if p.Ops[i].Kind == dataplane.CreateVeth {
				entered <- struct{}{}
				<-leave
			}
		}
	})
	files := passed(t)
	done := make(chan struct{})
	go func() { r.call(addOf("one"), files...); close(done) }()
	select {
	case <-entered:
	case <-time.After(soon):
		t.Fatal("no plan ran")
	}
	r.view()
	for len(reports) > 0 {
		<-reports
	}
	r.view() // wakes the loop
	r.view()
	if n := len(reports); n > 0 {
		t.Errorf("%d reports while a plan ran: %+v", n, <-reports)
	}
	close(leave)
	<-done
	await(t, r, "it is idle again", reports, func(p clock.Report) bool { return p.Requests == 0 })
}
