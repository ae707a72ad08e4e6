package ec2

import (
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// readAt is the instant whose state a Describe that a caller makes now is answered from: behind by a drawn lag, and by what a
// StaleReads fault adds.
func (c *Cloud) readAt(from int32, a Action) time.Duration {
	return c.seenFrom(from, c.now-c.stream(from).draw(c.cfg.Lag.Describe)-c.stale(from, a))
}

// countAt is the same for AvailableIpAddressCount. Its lag is no draw from the caller's stream, but depends on the seed, the caller and
// the instant alone: two questions at one instant get the same answer.
func (c *Cloud) countAt(from int32, a Action) time.Duration {
	s := stream(splitmix.Mix(uint64(c.now)) ^ c.eniNames.salt ^ uint64(from)*splitmix.Golden)
	return c.seenFrom(from, c.now-s.draw(c.cfg.Lag.Available)-c.stale(from, a))
}

// stale is by how much a fault makes a read of the caller's older.
func (c *Cloud) stale(from int32, a Action) time.Duration {
	if len(c.faults) == 0 {
		return 0
	}
	f, _ := c.hit(StaleReads, a, c.instanceID(from))
	return max(f.By, 0)
}

// seenFrom is the instant that a caller reads at, with Lag.Monotonic never before that of its last read.
func (c *Cloud) seenFrom(from int32, at time.Duration) time.Duration {
	if !c.cfg.Lag.Monotonic {
		return at
	}
	seen := &c.seen
	if from >= 0 {
		seen = &c.instances[from].seen
	}
	*seen = max(*seen, at)
	return *seen
}

// freeMark says how many addresses of a subnet were free since an instant.
type freeMark struct {
	at   time.Duration
	free int32
}

// freeHistory is a ring of marks. Its grain is an eighth of the longest lag, so that ten reach back far enough.
type freeHistory struct {
	marks [10]freeMark
	last  uint8
}

// note keeps the count that held between two instants, if it is another one, from where the last one is older than the grain.
func (h *freeHistory) note(from, to, grain time.Duration, free int) {
	last := &h.marks[h.last]
	if int(last.free) == free {
		return
	}
	if from = max(from, last.at+grain); from <= to {
		h.last = (h.last + 1) % uint8(len(h.marks))
		h.marks[h.last] = freeMark{from, int32(free)}
	}
}

// before is the count at an instant, or the oldest one known.
func (h *freeHistory) before(at time.Duration) int {
	k := h.last
	for range len(h.marks) - 1 {
		if h.marks[k].at <= at {
			break
		}
		k = (k + uint8(len(h.marks)) - 1) % uint8(len(h.marks))
	}
	return int(h.marks[k].free)
}

// newFreeHistory is that of a subnet whose count has always been the same.
func newFreeHistory(free int) (h freeHistory) {
	for k := range h.marks {
		h.marks[k] = freeMark{never, int32(free)}
	}
	return h
}

// shownFree is AvailableIpAddressCount as a read of an instant shows it.
func (c *Cloud) shownFree(s *subnet, at time.Duration) int {
	if at >= c.now {
		return s.free
	}
	return s.history.before(at)
}

// Lag is how far views trail behind, with the defaults filled in.
func (c *Cloud) Lag() Lag { return c.cfg.Lag }

// Latency is how long things take, with the defaults filled in.
func (c *Cloud) Latency() Latency { return c.cfg.Latency }
