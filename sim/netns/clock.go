package netns

import (
	"time"

	"github.com/enilab/enilab/impl/clock"
)

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

// now is the time since the world began.
func (t *timer) now() time.Duration { return t.real.Now() + t.offset }

// jump moves the clock forward to an instant.
func (w *World) jump(to time.Duration) {
	d := to - w.now()
	if d <= 0 {
		return
	}
	w.clock.offset += d
	w.clock.jumped += d
	w.clock.jumps++
	for _, n := range w.nodes[1:] {
		if n.seat != nil {
			_ = n.seat.Tell(w.clock.offset) // a daemon that died says so by itself
		}
	}
}

// now is the time since the world began.
func (w *World) now() time.Duration { return w.clock.now() }

// behind names a daemon that has not said yet that its clock shows the last jump; "" is none. Nothing may happen before: what a daemon
// began at the old time would have lasted for the whole jump at once.
func (w *World) behind() string {
	for _, n := range w.nodes[1:] {
		if l := n.life; !n.Gone && l != nil && !l.ended && !n.dying && !n.exited && n.reported && n.report.Offset != w.clock.offset {
			return n.Name()
		}
	}
	return ""
}

// busy names what still has something to do; "" is nothing.
func (w *World) busy(now time.Duration) string {
	for _, n := range w.nodes[1:] {
		if n.Gone {
			continue
		}
		if why := n.busy(now); why != "" {
			return n.Name() + ": " + why
		}
	}
	return ""
}

func (n *instance) busy(now time.Duration) string {
	if why := n.works(now); why != "" {
		return why
	}
	if !n.doubt.since.IsZero() {
		return "its kernel is not what the model shows"
	}
	return ""
}

// works is busy, whatever the kernel shows.
func (n *instance) works(now time.Duration) string {
	switch {
	case time.Now().Before(n.stirred):
		return "its kernel has just been changed"
	case n.starting || n.dying:
		return "its daemon starts or ends"
	case n.asides > 0:
		return "something is done to it"
	case n.life == nil:
		if n.running > 0 {
			return "a plugin runs"
		}
		return ""
	}
	return n.w.keeper.toil(n, now)
}

// look is when what is busy may have come to rest unreported: a change of a kernel that needed no reaction.
func (w *World) look() time.Duration {
	d := lookEvery
	for _, n := range w.nodes[1:] {
		if left := time.Until(n.stirred); left > 0 {
			d = min(d, left)
		}
		if !n.doubt.since.IsZero() {
			d = min(d, doubtPause)
		}
	}
	return d
}

// next is the earliest instant that a daemon waits for.
func (w *World) next() time.Duration {
	at := never
	for _, n := range w.nodes[1:] {
		if !n.Gone && n.life != nil && n.reported && n.report.Next >= 0 {
			at = min(at, n.report.Next)
		}
	}
	return at
}
