package ipam

import "time"

// growth is how EC2's refusals slow down the demand for addresses (rule L): not at once again, and fewer at a time when a fragmented or
// nearly full subnet could not give as many.
type growth struct {
	GrowAt time.Duration // not before, after a refusal
	Fails  int           // refusals in a row
	Ask    int           // addresses to ask for at once; 0 is as many as fit
}

// refused puts growth off until then.
func (g *growth) refused(until time.Duration) {
	g.Fails++
	g.GrowAt = until
}

// halve asks for less next time: the subnet could not give so many.
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

// asked bounds how many addresses one call asks for.
func (g *growth) asked(count int) int {
	if g.Ask > 0 {
		return max(1, min(count, g.Ask))
	}
	return count
}
