package netns

import (
	"context"
	"fmt"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
)

const never = models.Never

// loop is a world's time. What has happened outside, and what is due, is done here one after the other, by the goroutine
// that owns the world; when none of its nodes works, the clock jumps.
type loop struct {
	ctx        context.Context // Parts.Context
	nodes      fleet           // that are waited for
	clock      timer
	epoch      time.Duration // t=0 of the scenario; 0 before
	late       lateness
	due        machine.Queue
	mail       *machine.Mailbox
	heardEarly func() // taken from mail, not yet done
	broken     error  // the laboratory itself is
	then       func() // after each thing that was done
}

func newLoop(ctx context.Context, nodes int) loop {
	return loop{ctx: ctx, nodes: make(fleet, 1, nodes+1), clock: newTimer(), mail: machine.NewMailbox()}
}

// at lets run happen at an instant.
func (l *loop) at(t time.Duration, run func()) { l.due.Add(t, run) }

// after lets run happen a while from now.
func (l *loop) after(d time.Duration, run func()) { l.at(l.now()+d, run) }

// Now is the instant of the scenario.
func (l *loop) Now() time.Duration { return l.now() - l.epoch }

// Epoch is when t=0 was, in the world's own time.
func (l *loop) Epoch() time.Duration { return l.epoch }

// Until runs to instant t of the scenario. each, if any, is called whenever something has happened and before the clock jumps, and stops the
// run by returning true.
func (l *loop) Until(t time.Duration, each func() bool) {
	t += l.epoch
	due := max(t, l.now()) // an expectation before it may have waited for a steady cluster
	if l.until(t, each); l.now() >= t {
		l.acted(due)
	}
}

// patience is how long, in real time and on a machine of the reference's speed, a process may be busy without anything
// that reaches the laboratory: longer than any process that is not stuck takes. A world that is stuck ends with the
// name of who was busy.
const patience = 60 * time.Second

// lookEvery is the pause, in real time, between two looks whether the run is still wanted, while nothing happens.
const lookEvery = 250 * time.Millisecond

func (l *loop) until(t time.Duration, each func() bool) {
	heard := time.Now()
	patience := slowed(patience)
	for l.broken == nil {
		if l.unwanted() {
			if each != nil {
				each() // it sees that too
			}
			return
		}
		if l.step() {
			heard = time.Now()
			l.clock.quiet = time.Time{}
			if each != nil && each() {
				return
			}
			continue
		}
		if late := l.nodes.behind(l.clock.offset); late != "" {
			if time.Since(heard) > patience {
				l.stuck("%s has not said for %v that its clock has jumped", late, patience)
				return
			}
			l.listen(lookEvery)
			continue
		}
		now := l.now()
		if now >= t {
			return
		}
		due := min(t, l.due.Next())
		l.nodes.compareAgain(now) // first: a node that is doubted is busy
		why := l.nodes.busy(now)
		if why != "" {
			if !l.clock.still && time.Since(heard) > patience { // else this ends when the time has passed
				l.stuck("%s, and nothing has happened for %v", why, patience)
				return
			}
			l.clock.quiet = time.Time{}
			l.listen(min(due-now, l.nodes.look()))
			continue
		}
		heard = time.Now()
		due = min(due, l.nodes.next())
		if l.clock.still && each != nil { // what is waited for may come with time alone, and without an event
			if each() {
				return
			}
			due = min(due, now+lookEvery)
		}
		if l.idle(now, due, each) {
			return
		}
	}
}

// idle waits a little for anything to stir, and then jumps, unless that is not wanted any more: then it says so.
func (l *loop) idle(now, due time.Duration, each func() bool) bool {
	if l.clock.still {
		l.listen(due - now)
		return false
	}
	if l.clock.quiet.IsZero() {
		l.clock.quiet = time.Now()
	}
	left := slowed(settleTime) - time.Since(l.clock.quiet)
	if left > 0 && due > now {
		l.listen(min(left, due-now))
		return false
	}
	l.clock.quiet = time.Time{}
	if each != nil && each() {
		return true
	}
	l.jump(due)
	return false
}

// listen waits for something from outside, which step then takes.
func (l *loop) listen(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case f := <-l.mail.In():
		l.heardEarly = f
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// unwanted says whether the laboratory was asked to end.
func (l *loop) unwanted() bool { return l.ctx.Err() != nil }

// step does one thing that has happened outside, or whose time has come.
func (l *loop) step() bool {
	f := l.heardEarly
	l.heardEarly = nil
	if f == nil {
		select {
		case f = <-l.mail.In():
		default:
		}
	}
	if at := l.due.Next(); f == nil && at <= l.now() && l.nodes.behind(l.clock.offset) == "" {
		l.acted(at)
		f = l.due.Take()
	}
	if f == nil {
		return false
	}
	f()
	l.then()
	return true
}

// fail ends the world: the laboratory itself is broken, so nothing that it says counts any more. What breaks once nobody wants it any
// more is its end.
func (l *loop) fail(err error) {
	if l.broken == nil && err != nil && !l.unwanted() {
		l.broken = err
	}
}

// Err is why the laboratory broke; nil when it did not.
func (l *loop) Err() error { return l.broken }

// Stay keeps the laboratory up until it is asked to end. Time does not jump any more, so that people can look around.
func (l *loop) Stay(interrupted func() bool) {
	still := l.clock.still
	l.clock.still = true
	for !interrupted() && l.broken == nil && !l.unwanted() {
		l.until(l.now()+100*time.Millisecond, nil)
	}
	l.clock.still = still
}

// settleTime is how long, in real time, nothing must happen before the clock jumps: what a netlink or inotify event, or a line of a
// recording that is in a socket's buffer, may be under way on a busy machine.
const settleTime = 2 * time.Millisecond

// kernelTime is the same after the laboratory itself has changed a node's kernel, whose events the daemon waits for.
const kernelTime = 15 * time.Millisecond

// timer is the laboratory's clock.
type timer struct {
	real   *clock.Clock
	offset time.Duration
	still  bool      // no jumps
	quiet  time.Time // since when nothing is busy; zero: something is
	jumped time.Duration
	jumps  int
}

func newTimer() timer {
	c := clock.Boot()
	return timer{real: c, offset: -c.Now()}
}

// jump moves the clock forward to an instant.
func (l *loop) jump(to time.Duration) {
	d := to - l.now()
	if d <= 0 {
		return
	}
	l.clock.offset += d
	l.clock.jumped += d
	l.clock.jumps++
	for _, n := range l.nodes[1:] {
		if n.seat != nil {
			_ = n.seat.Tell(l.clock.offset) // a daemon that died says so by itself
		}
	}
}

// now is the time since the world began.
func (l *loop) now() time.Duration { return l.clock.real.Now() + l.clock.offset }

// lateness is how much later than they were due things were done by the loop.
type lateness struct {
	most time.Duration
	at   time.Duration // instant of the scenario
	// rested is the end of what the loop itself chose to wait for, such as a ping's answer: what fell due meanwhile is no later than that.
	rested time.Duration
}

// rests notes that the loop has just waited for something by its own choice.
func (l *loop) rests() { l.late.rested = l.now() }

// acted notes that something which was due at an instant is done now.
func (l *loop) acted(due time.Duration) {
	now := l.now()
	if late := now - max(due, l.late.rested); late > l.late.most {
		l.late.most, l.late.at = late, now-l.epoch
	}
}

const (
	// lagSlack is how late this package may act before what failed in its run says nothing. Scenarios leave seconds between cause and
	// expectation, and the auditors' own bounds are a minute and more, or follow the slowness.
	lagSlack = time.Second
	// looks is how often a machine has to seem much slower.
	looks = 3
	// muchSlower is how many times slower the machine has to be when something failed than when it was measured first.
	muchSlower = 3
)

// tooSlow is an error that is this machine's fault: what a run says under it counts for nothing.
type tooSlow struct{ why string }

func (e *tooSlow) Error() string { return "this machine did not keep up: " + e.why }

// TooSlow tells it from a laboratory that is broken and from a daemon that is wrong.
func (e *tooSlow) TooSlow() {}

// TooSlow says why what failed in this run says nothing about the CNI; nil: it does say something. The error has a method TooSlow.
func (l *loop) TooSlow() error {
	if l.late.most > lagSlack {
		return &tooSlow{fmt.Sprintf("at %v of the scenario the laboratory acted %v late, of at most %v (run it with fewer things beside it)",
			l.late.at.Round(time.Millisecond), l.late.most.Round(time.Millisecond), lagSlack)}
	}
	var now float64
	for range looks { // a program that has just started is not what the whole run went through
		if now = measureSlowness(); now <= muchSlower*slowness() {
			return nil
		}
	}
	return &tooSlow{fmt.Sprintf("it is %.1f times slower than the reference now, and was %.1f times when it was measured first", now, slowness())}
}

// stuck is how the world ends when a node is busy for longer than a machine of this speed takes.
func (l *loop) stuck(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if late := l.TooSlow(); late != nil {
		err = &tooSlow{fmt.Sprintf("%v; %v", err, late)}
	}
	l.fail(err)
}
