package ipam

import "time"

// pace limits a node's EC2 mutations: additive increase, multiplicative decrease, and a cap per hour (rule L).
type pace struct {
	Gap    time.Duration // between two mutations
	At     time.Duration // of the next one
	Window time.Duration // begin of the current hour
	Spent  int           // mutations in it
}

const (
	gapStep = 250 * time.Millisecond
	gapMost = 30 * time.Second
	// perHour is far above what a node needs (an ENI's life takes six mutations) and far below what would hurt an account.
	perHour = 600
)

// next is when a mutation may go out.
func (p *pace) next(now time.Duration) time.Duration {
	if now-p.Window >= time.Hour {
		p.Window, p.Spent = now, 0
	}
	if p.Spent >= perHour {
		return p.Window + time.Hour
	}
	return p.At
}

func (p *pace) spend(now time.Duration) {
	p.Spent++
	p.At = now + p.Gap
}

// slow widens the gap when EC2 throttles: it begins with first, and doubles.
func (p *pace) slow(first time.Duration) { p.Gap = min(max(2*p.Gap, first), gapMost) }

// quicken narrows it when EC2 does not.
func (p *pace) quicken() { p.Gap = max(p.Gap-gapStep, 0) }
