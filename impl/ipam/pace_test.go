package ipam

import (
	"testing"
	"time"
)

// TestPaceAfterEachMutation: what the pace says after each event of a node's mutations, and when the next one may go
// out.
func TestPaceAfterEachMutation(t *testing.T) {
	const first = 500 * time.Millisecond // the gap that the first throttling asks for
	for _, c := range []struct {
		name string
		do   func(p *pace)
		now  time.Duration
		gap  time.Duration
		next time.Duration
	}{
		{"nothing was asked of EC2", func(*pace) {}, 7, 0, 0},
		{"unhindered, mutations need no gap", func(p *pace) { p.spend(7) }, 7, 0, 7},
		{"throttled once", func(p *pace) { p.slow(first); p.spend(time.Second) }, time.Second, first, time.Second + first},
		{"a later tries' longer pause counts", func(p *pace) { p.slow(first); p.slow(3 * first) }, 0, 3 * first, 0},
		{"a repeated one doubles", func(p *pace) { p.slow(first); p.slow(first); p.spend(0) }, 0, 2 * first, 2 * first},
		{"up to a bound", func(p *pace) { p.slow(time.Hour); p.slow(first); p.spend(0) }, 0, gapMost, gapMost},
		{"an answer narrows it by a step", func(p *pace) { p.slow(first); p.quicken() }, 0, first - gapStep, 0},
		{"down to nothing", func(p *pace) { p.slow(first); p.quicken(); p.quicken(); p.quicken() }, 0, 0, 0},
		{"an hour's mutations are spent", func(p *pace) { p.Window = time.Minute; p.Spent = perHour - 1; p.spend(2 * time.Minute) },
			2 * time.Minute, 0, time.Minute + time.Hour},
		{"all but one are", func(p *pace) { p.Spent = perHour - 2; p.spend(2 * time.Minute) }, 2 * time.Minute, 0, 2 * time.Minute},
		{"the next hour begins", func(p *pace) { p.Window = time.Minute; p.Spent = perHour; p.At = 5 }, time.Minute + time.Hour, 0, 5},
		{"and ends an hour after it began", func(p *pace) { p.next(3 * time.Hour); p.Spent = perHour }, 3*time.Hour + 1, 0, 4 * time.Hour},
	} {
		var p pace
		c.do(&p)
		if got := p.next(c.now); got != c.next || p.Gap != c.gap {
			t.Errorf("%s: at %v the next may go out at %v, gap %v; expected %v and %v", c.name, c.now, got, p.Gap, c.next, c.gap)
		}
	}
}
