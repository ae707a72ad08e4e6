package netns

import (
	"time"

	"github.com/enilab/enilab/sim/models"
)

const never = models.Never

// at lets run happen at an instant.
func (w *World) at(t time.Duration, run func()) { w.due.Add(t, run) }

// after lets run happen a while from now.
func (w *World) after(d time.Duration, run func()) { w.at(w.now()+d, run) }

// post hands something that happened outside to the loop, which owns the world. False: the world has been closed.
func (w *World) post(f func()) bool {
	select {
	case w.in <- f:
		return true
	case <-w.closed:
		return false
	}
}

// ask posts f and waits until it has run.
func (w *World) ask(f func()) bool {
	done := make(chan struct{})
	if !w.post(func() { f(); close(done) }) {
		return false
	}
	select {
	case <-done:
		return true
	case <-w.closed:
		return false
	}
}

// Until runs to instant t of the scenario. each, if any, is called whenever something has happened and before the clock jumps, and stops the
// run by returning true.
func (w *World) Until(t time.Duration, each func() bool) {
	t += w.Epoch()
	due := max(t, w.now()) // an expectation before it may have waited for a steady cluster
	if w.until(t, each); w.now() >= t {
		w.acted(due)
	}
}

// patience is how long, in real time and on a machine of the reference's speed, a process may be busy without anything
// that reaches the laboratory: longer than any process that is not stuck takes. A world that is stuck ends with the
// name of who was busy.
const patience = 60 * time.Second

// lookEvery is the pause, in real time, between two looks whether the run is still wanted, while nothing happens.
const lookEvery = 250 * time.Millisecond

func (w *World) until(t time.Duration, each func() bool) {
	heard := time.Now()
	patience := slowed(patience)
	for w.broken == nil {
		if w.unwanted() {
			if each != nil {
				each() // it sees that too
			}
			return
		}
		if w.step() {
			heard = time.Now()
			w.clock.quiet = time.Time{}
			if each != nil && each() {
				return
			}
			continue
		}
		if late := w.behind(); late != "" {
			if time.Since(heard) > patience {
				w.stuck("%s has not said for %v that its clock has jumped", late, patience)
				return
			}
			w.listen(lookEvery)
			continue
		}
		now := w.now()
		if now >= t {
			return
		}
		due := min(t, w.due.Next())
		w.compareAgain() // first: a node that is doubted is busy
		why := w.busy(now)
		if why != "" {
			if !w.clock.still && time.Since(heard) > patience { // else this ends when the time has passed
				w.stuck("%s, and nothing has happened for %v", why, patience)
				return
			}
			w.clock.quiet = time.Time{}
			w.listen(min(due-now, w.look()))
			continue
		}
		heard = time.Now()
		due = min(due, w.next())
		if w.clock.still && each != nil { // what is waited for may come with time alone, and without an event
			if each() {
				return
			}
			due = min(due, now+lookEvery)
		}
		if w.idle(now, due, each) {
			return
		}
	}
}

// idle waits a little for anything to stir, and then jumps, unless that is not wanted any more: then it says so.
func (w *World) idle(now, due time.Duration, each func() bool) bool {
	if w.clock.still {
		w.listen(due - now)
		return false
	}
	if w.clock.quiet.IsZero() {
		w.clock.quiet = time.Now()
	}
	left := slowed(settleTime) - time.Since(w.clock.quiet)
	if left > 0 && due > now {
		w.listen(min(left, due-now))
		return false
	}
	w.clock.quiet = time.Time{}
	if each != nil && each() {
		return true
	}
	w.jump(due)
	return false
}

// listen waits for something from outside, which step then takes.
func (w *World) listen(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case f := <-w.in:
		w.heardEarly = f
	case <-t.C:
	case <-w.ctx.Done():
	}
}

// unwanted says whether the laboratory was asked to end.
func (w *World) unwanted() bool { return w.ctx.Err() != nil }

// step does one thing that has happened outside, or whose time has come.
func (w *World) step() bool {
	f := w.heardEarly
	w.heardEarly = nil
	if f == nil {
		select {
		case f = <-w.in:
		default:
		}
	}
	if at := w.due.Next(); f == nil && at <= w.now() && w.behind() == "" {
		w.acted(at)
		f = w.due.Take()
	}
	if f == nil {
		return false
	}
	f()
	w.pump()
	w.bell.ring(w.shown)
	return true
}

// fail ends the world: the laboratory itself is broken, so nothing that it says counts any more. What breaks once nobody wants it any
// more is its end.
func (w *World) fail(err error) {
	if w.broken == nil && err != nil && !w.unwanted() {
		w.broken = err
	}
}

// Err is why the laboratory broke; nil when it did not.
func (w *World) Err() error { return w.broken }
