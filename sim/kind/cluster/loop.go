package cluster

import (
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
)

// Loop is the goroutine that owns EC2's model: one thing at a time, and what is due at an instant of the laboratory's
// clock, which is CLOCK_BOOTTIME and what it has leapt.
type Loop struct {
	model    *ec2.Cloud
	happened func(*ec2.Event)
	clock    *clock.Clock
	ahead    atomic.Int64
	mail     *machine.Mailbox
	due      machine.Queue
	next     time.Duration // when the model is due
}

// NewLoop runs a model until Close. happened is called with each of its events, in the loop.
func NewLoop(model *ec2.Cloud, happened func(*ec2.Event)) *Loop {
	l := &Loop{model: model, happened: happened, clock: clock.Boot(), mail: machine.NewMailbox(), next: models.Never}
	go l.run()
	return l
}

// Cloud calls f with EC2's model, alone, and waits until it has returned.
func (l *Loop) Cloud(f func(now time.Duration, m *ec2.Cloud)) {
	l.mail.Ask(func() { f(l.Now(), l.model) })
}

// Model is EC2's, for who is called in the loop.
func (l *Loop) Model() *ec2.Cloud { return l.model }

// Now is the models' clock, and the daemons'.
func (l *Loop) Now() time.Duration { return l.clock.Now() + l.Offset() }

// Offset is how far the clock is ahead of CLOCK_BOOTTIME.
func (l *Loop) Offset() time.Duration { return time.Duration(l.ahead.Load()) }

// Leap moves the clock on. Only the loop calls it.
func (l *Loop) Leap(d time.Duration) { l.ahead.Add(int64(d)) }

// Due is when something is due in the loop. Only the loop calls it.
func (l *Loop) Due() time.Duration { return l.due.Next() }

// After lets f happen in the loop a while from now. Only the loop calls it.
func (l *Loop) After(d time.Duration, f func()) { l.due.Add(l.Now()+d, f) }

// Close ends the loop.
func (l *Loop) Close() {
	if l.mail.Close() {
		<-l.mail.Ended()
	}
}

func (l *Loop) run() {
	defer l.mail.End()
	for {
		wait := min(l.Due()-l.Now(), time.Hour)
		if wait <= 0 {
			l.due.Take()()
			l.pump()
			continue
		}
		t := time.NewTimer(wait)
		select {
		case f := <-l.mail.In():
			f()
			l.pump()
		case <-t.C:
		case <-l.mail.Closed():
			t.Stop()
			return
		}
		t.Stop()
	}
}

// pump tells what has happened at EC2, and waits for what happens next.
func (l *Loop) pump() {
	l.model.Advance(l.Now())
	for {
		list := append([]ec2.Event(nil), l.model.Events()...)
		if len(list) == 0 {
			break
		}
		for i := range list {
			l.happened(&list[i])
		}
	}
	if at, ok := l.model.Next(); ok && (at < l.next || l.next <= l.Now()) {
		l.next = at
		l.After(at-l.Now(), func() {
			if l.next == at {
				l.next = models.Never
			}
		})
	}
}
