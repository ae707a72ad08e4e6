package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/clock"
)

// clockFile is a clock's socket, below a folder of the node that its daemon mounts.
const clockFile = "clock.sock"

// nodeClock is the time of one node's daemon: CLOCK_BOOTTIME, and ahead of it once minutes have been left out in which the daemon would
// have waited for nothing but their end. Kubelet, the runtime, EC2 and the kernel live in real time.
type nodeClock struct {
	listener net.Listener
	real     *clock.Clock

	mu     sync.Mutex
	offset time.Duration
	seat   *clock.Seat   // nil: no daemon is connected
	report *clock.Report // the daemon's last word since the last jump; nil: it has something to do
}

// openClock serves a clock in a folder.
func openClock(dir string) (*nodeClock, error) {
	path := filepath.Join(dir, clockFile)
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	c := &nodeClock{listener: l, real: clock.Boot()}
	go c.serve()
	return c, nil
}

func (c *nodeClock) close() { _ = c.listener.Close() }

func (c *nodeClock) serve() {
	for {
		conn, err := c.listener.Accept()
		if err != nil {
			return
		}
		go c.attend(conn)
	}
}

// attend tells a daemon the time and listens to it until its end.
func (c *nodeClock) attend(conn net.Conn) {
	defer conn.Close()
	c.mu.Lock()
	seat, err := clock.NewSeat(conn, c.offset)
	if err == nil {
		c.seat, c.report = seat, nil
	}
	c.mu.Unlock()
	for err == nil {
		var r clock.Report
		if r, err = seat.Read(); err == nil {
			c.mu.Lock()
			if c.seat == seat && r.Offset == c.offset {
				c.report = &r
			}
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seat == seat {
		c.seat, c.report = nil, nil
	}
}

// now is the daemon's time.
func (c *nodeClock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.real.Now() + c.offset
}

// jump leaves out what is left until the daemon has something to do, and at most until an instant. It says why it cannot.
func (c *nodeClock) jump(until time.Duration) (why string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.real.Now() + c.offset
	switch r := c.report; {
	case c.seat == nil:
		return "no daemon runs", nil
	case r == nil:
		return "the daemon has not said that it waits", nil
	case r.Remote > 0 || r.Requests > 0:
		return fmt.Sprintf("the daemon waits for %d answers and owes %d", r.Remote, r.Requests), nil
	case r.Next >= 0 && r.Next <= now:
		return "the daemon's time has come", nil
	case r.Next >= 0:
		until = min(until, r.Next)
	}
	if until > now {
		c.offset, c.report = c.offset+until-now, nil
		return "", c.seat.Tell(c.offset)
	}
	return "", nil
}

// Periods of looking at a daemon that has something to do, and of jumps that have to be small.
const (
	jumpPeriod = 5 * time.Millisecond
	slowPeriod = 200 * time.Millisecond
)

// pass lets the daemon live through a while, as fast as it can: it does all that it would have done. most says how much may be left out at
// once, or why nothing may.
func (c *nodeClock) pass(ctx context.Context, d time.Duration, most func() (time.Duration, string, error)) error {
	until := c.now() + d
	for c.now() < until {
		step, why, err := most()
		if err == nil && why == "" {
			why, err = c.jump(min(until, c.now()+step))
		}
		if err != nil {
			why = err.Error()
		}
		pause := jumpPeriod
		if why == "" && step >= d {
			continue
		} else if why == "" {
			pause = slowPeriod
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("waited for %v of the daemon's time to pass, and %v are left: %s", d, until-c.now(), why)
		}
	}
	return nil
}

// pass lets the stage's daemon live through a while, as fast as it can; one whose clock is the kernel's lives through it by itself.
func (s *stage) pass(ctx context.Context, d time.Duration) error {
	if s.clock == nil {
		return nil
	}
	return s.clock.pass(ctx, d, s.leap)
}

// smallLeap is for a daemon that waits for EC2: ten times as fast as EC2 is.
const smallLeap = 10 * slowPeriod

// leap is how much of the daemon's time may be left out at once, or why nothing may. EC2, whose time is the real one, must not seem to be
// minutes late.
func (s *stage) leap() (most time.Duration, why string, err error) {
	v, err := s.view()
	switch {
	case err != nil:
		return 0, "", err
	case v.View.Running > 0:
		return 0, fmt.Sprintf("%d operations are under way", v.View.Running), nil
	case s.metadataLags():
		return 0, "instance metadata does not show yet what EC2 has done", nil
	case v.View.Intents > 0:
		return smallLeap, "", nil
	}
	return time.Hour, "", nil
}

// metadataLags says whether the node's metadata is behind the truth.
func (s *stage) metadataLags() (lags bool) {
	s.Cloud(func(now time.Duration, m *ec2.Cloud) {
		view, ok := m.IMDS(now, s.node.Instance)
		attached := m.AttachedENIs(s.node.Instance)
		lags = !ok || len(view.ENIs) != len(attached)
		for i := range view.ENIs {
			shown := &view.ENIs[i]
			e, ok := m.ENI(shown.ENI)
			lags = lags || shown.Partial || !ok || len(shown.Addresses) != len(e.Secondaries)+1
		}
	})
	return lags
}
