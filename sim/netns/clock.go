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
func (l *loop) jump(to time.Duration) {
	d := to - l.now()
	if d <= 0 {
		return
	}
	l.clock.offset += d
	l.clock.jumped += d
	l.clock.jumps++
	l.nodes.tell(l.clock.offset)
}

// now is the time since the world began.
func (l *loop) now() time.Duration { return l.clock.now() }
