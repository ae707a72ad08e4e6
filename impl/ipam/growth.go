package ipam

import "time"

// growth is how EC2's refusals slow down the demand for addresses (rule L): not at once again, and fewer at a time when a fragmented or
// nearly full subnet could not give as many.
type growth struct {
	GrowAt time.Duration // not before, after a refusal
	Fails  int           // refusals in a row
	Ask    int           // slots to ask for at once; 0 is as many as fit

	bareness
}

// bareness is that EC2 has no free /28 in the subnet (InsufficientCidrBlocks): slots get single addresses, and when the time has
// come the next one that is wanted is asked for as a prefix again.
type bareness struct {
	Bare   bool          `json:",omitzero"`
	BareAt time.Duration `json:",omitzero"` // when a prefix is asked for again
	Bares  int           `json:",omitzero"` // how often in a row there was none
}

const (
	// bareAfter is how long a subnet is believed to have no free /28: its addresses come free one by one. Each further refusal
	// doubles it, up to maxBareAfter.
	bareAfter    = 2 * time.Minute
	maxBareAfter = time.Hour
)

// bare: EC2 has no prefix to give.
func (b *bareness) bare(now time.Duration) {
	b.Bare, b.BareAt = true, now+min(bareAfter<<min(b.Bares, 6), maxBareAfter)
	b.Bares++
}

// prefixes says whether a slot that is wanted now is asked for as a prefix.
func (b *bareness) prefixes(now time.Duration) bool { return !b.Bare || b.BareAt <= now }

// refused puts growth off until then.
func (g *growth) refused(until time.Duration) {
	g.Fails++
	g.GrowAt = until
}

// halve asks for less next time: the subnet could not give so many slots.
func (g *growth) halve(count int) {
	if count > 1 {
		g.Ask = (count + 1) / 2
	}
}

// grew ends the pause after refusals and asks for more again; from limit on that is as many as fit.
func (g *growth) grew(limit int) {
	g.Fails, g.GrowAt = 0, 0
	if g.Ask *= 2; g.Ask >= limit {
		g.Ask = 0
	}
}

// asked bounds how many slots one call asks for.
func (g *growth) asked(count int) int {
	if g.Ask > 0 {
		return max(1, min(count, g.Ask))
	}
	return count
}
