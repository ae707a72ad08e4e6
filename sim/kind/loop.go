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
	clock *clock.Clock
	ahead atomic.Int64
	mail  *machine.Mailbox
	due   machine.Queue
}

func newLoop() *loop {
	return &loop{clock: clock.Boot(), mail: machine.NewMailbox()}
}

func (l *loop) now() time.Duration { return l.clock.Now() + l.offset() }

// offset is how far the clock is ahead of CLOCK_BOOTTIME.
func (l *loop) offset() time.Duration { return time.Duration(l.ahead.Load()) }

// leap moves the clock on. Only the loop calls it.
func (l *loop) leap(d time.Duration) { l.ahead.Add(int64(d)) }

// run runs until close; after is called after each thing.
func (l *loop) run(after func()) {
	defer l.mail.End()
	for {
		wait := min(l.due.Next()-l.now(), time.Hour)
		if wait <= 0 {
			l.due.Take()()
			after()
			continue
		}
		t := time.NewTimer(wait)
		select {
		case f := <-l.mail.In():
			f()
			after()
		case <-t.C:
		case <-l.mail.Closed():
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

func (l *loop) close() {
	if l.mail.Close() {
		<-l.mail.Ended()
	}
}
