package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// clock is the world's: as fast as it says, and ahead by what was skipped.
type clock struct {
	speed float64
	ended chan struct{} // closed when the world ends

	mu     sync.Mutex
	start  time.Time
	offset time.Duration
	moved  chan struct{} // closed by a skip, and then another one
}

func newClock(at time.Duration, speed float64) *clock {
	return &clock{speed: speed, ended: make(chan struct{}), start: time.Now(), offset: at, moved: make(chan struct{})}
}

// now is the time since the world began.
func (c *clock) now() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at(time.Now())
}

func (c *clock) at(t time.Time) time.Duration {
	return c.offset + time.Duration(float64(t.Sub(c.start))*c.speed)
}

// skip makes time pass at once.
func (c *clock) skip(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	close(c.moved)
	c.moved = make(chan struct{})
}

var errEnded = errors.New("the world has ended")

// wait waits until d has passed in the world, or an end.
func (c *clock) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	until := c.now() + d
	for {
		c.mu.Lock()
		left, moved := until-c.at(time.Now()), c.moved
		c.mu.Unlock()
		if left <= 0 {
			return nil
		}
		if err := c.sleep(ctx, time.Duration(float64(left)/c.speed)+1, moved); err != nil {
			return err
		}
	}
}

// sleep waits for d of real time, for moved, or for an end.
func (c *clock) sleep(ctx context.Context, d time.Duration, moved <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-moved:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return errEnded
	}
	return nil
}

// run keeps a cloud moving between requests: instances that were launched come up, and their metadata with them.
func (c *cloud) run() {
	for {
		var left time.Duration
		busy := false
		c.with(func(now time.Duration, m *ec2.Cloud) {
			at, ok := m.Next()
			left, busy = at-now, ok
		})
		if !busy {
			left = idle
		}
		c.clock.mu.Lock()
		moved := c.clock.moved
		c.clock.mu.Unlock()
		t := time.NewTimer(max(time.Duration(float64(left)/c.clock.speed), time.Millisecond))
		select {
		case <-t.C:
		case <-moved:
		case <-c.stirred:
		case <-c.clock.ended:
			t.Stop()
			return
		}
		t.Stop()
	}
}

// idle is how often a cloud in which nothing will happen is looked at, in its own time.
const idle = time.Hour

// stir has run look again.
func (c *cloud) stir() {
	select {
	case c.stirred <- struct{}{}:
	default:
	}
}
