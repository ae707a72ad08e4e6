package kind

import (
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/sim/machine"
)

// loop is the goroutine that owns the models: one thing at a time, and what is due at an instant of the laboratory's
// clock, which is CLOCK_BOOTTIME and what it has leapt.
type loop struct {
	clock  *clock.Clock
	ahead  atomic.Int64
	in     chan func()
	closed chan struct{}
	ended  chan struct{}
	due    machine.Queue
}

func newLoop() *loop {
	return &loop{clock: clock.Boot(), in: make(chan func(), 256), closed: make(chan struct{}), ended: make(chan struct{})}
}

func (l *loop) now() time.Duration { return l.clock.Now() + l.offset() }

// offset is how far the clock is ahead of CLOCK_BOOTTIME.
func (l *loop) offset() time.Duration { return time.Duration(l.ahead.Load()) }

// leap moves the clock on. Only the loop calls it.
func (l *loop) leap(d time.Duration) { l.ahead.Add(int64(d)) }

// run runs until close; after is called after each thing.
func (l *loop) run(after func()) {
	defer close(l.ended)
	for {
		wait := min(l.due.Next()-l.now(), time.Hour)
		if wait <= 0 {
			l.due.Take()()
			after()
			continue
		}
		t := time.NewTimer(wait)
		select {
		case f := <-l.in:
			f()
			after()
		case <-t.C:
		case <-l.closed:
			t.Stop()
			return
		}
		t.Stop()
	}
}

// after lets f happen in the loop a while from now. Only the loop calls it.
func (l *loop) after(d time.Duration, f func()) {
	l.due.Add(l.now()+d, f)
}

// post hands f to the loop; false: it has ended.
func (l *loop) post(f func()) bool {
	select {
	case <-l.closed:
		return false
	default:
	}
	select {
	case l.in <- f:
		return true
	case <-l.closed:
		return false
	}
}

// ask posts f and waits until it has run. The loop itself must not call it.
func (l *loop) ask(f func()) bool {
	done := make(chan struct{})
	if !l.post(func() { f(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-l.ended:
		return false
	}
}

func (l *loop) close() {
	close(l.closed)
	<-l.ended
}
