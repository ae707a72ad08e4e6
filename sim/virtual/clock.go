package virtual

import (
	"net/netip"
	"time"
)

// clock is virtual time: it jumps from one event of its heap to the next, and folds each into the trace.
type clock struct {
	now    time.Duration
	epoch  time.Duration // t=0 of the scenario
	seq    uint64
	heap   heap
	popped uint64
	hash   uint64
}

func (c *clock) push(e event) {
	c.seq++
	e.seq = c.seq
	c.heap.push(e)
}

// due says whether there is an event until an instant.
func (c *clock) due(t time.Duration) bool { return len(c.heap) > 0 && c.heap[0].at <= t }

// pop makes it the instant of the next event.
func (c *clock) pop() event {
	e := c.heap.pop()
	c.now = e.at
	c.popped++
	c.mix(uint64(e.at))
	c.mix(uint64(e.kind)<<56 ^ uint64(e.node)<<24 ^ e.num)
	return e
}

// mix folds a word into the trace hash (FNV-1a over words).
func (c *clock) mix(x uint64) { c.hash = (c.hash ^ x) * 1099511628211 }

func (c *clock) mixString(s string) {
	for i := range len(s) {
		c.mix(uint64(s[i]))
	}
}

func (c *clock) mixAddr(a netip.Addr) {
	if a.Is4() {
		b := a.As4()
		c.mix(uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3]))
	}
}

// Clock is the world's own time.
func (c *clock) Clock() time.Duration { return c.now }

// AdvanceAt lets EC2 go on by itself at an instant.
func (c *clock) AdvanceAt(at time.Duration) { c.push(event{at: max(at, c.now), kind: evCloud}) }

// Hash is the trace so far; Popped is how many events were popped.
func (c *clock) Hash() uint64   { return c.hash }
func (c *clock) Popped() uint64 { return c.popped }

// Now is the instant of the scenario.
func (c *clock) Now() time.Duration { return c.now - c.epoch }

// Epoch is when t=0 was, in the world's own time.
func (c *clock) Epoch() time.Duration { return c.epoch }
