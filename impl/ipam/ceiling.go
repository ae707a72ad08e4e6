package ipam

import "time"

const (
	// moreAfter is how long a node believes that its instance carries no more ENIs than it had when EC2 refused to attach another; then it
	// tries one more. Each such try that is refused doubles it, up to maxMoreAfter: a third party that had the index for
	// a moment costs minutes, and an instance that carries no more six ENIs in its first hour.
	moreAfter    = time.Minute
	maxMoreAfter = time.Hour
	// probePatience is how long the one that is tried may take before another is.
	probePatience = 10 * time.Minute
)

// ceiling is how many ENIs EC2 lets the instance have, as it has shown by refusals: third parties' ENIs that metadata
// does not list yet, or a type that carries fewer than it says. It is a belief, tested by trying one more from time to
// time.
type ceiling struct {
	Most   int           // ENIs that EC2 lets the instance have, as it has shown; 0 as many as its type may have
	MoreAt time.Duration // when one more is tried
	Probe  bool          // Most has room for that one
	Bars   int           // ENIs in a row that EC2 refused to attach
}

// barred says whether EC2 has shown a bound.
func (c *ceiling) barred() bool { return c.Most > 0 }

// bar: EC2 attaches no other to an instance that has so many.
func (c *ceiling) bar(now time.Duration, has int) {
	if !c.barred() || c.Most > has { // not one more of those that were on their way together
		c.MoreAt = now + min(moreAfter<<min(c.Bars, 6), maxMoreAfter)
		c.Bars++
	}
	c.Most, c.Probe = has, false
}

// attached ends the belief that there is room for no more, once there was for the one that was tried.
func (c *ceiling) attached(has int) {
	if c.Probe && has >= c.Most {
		c.lift()
	}
}

// unbar lets one more ENI be tried when its time has come, and forgets the bound once it is none: the instance has more, or all that its type
// may have.
func (c *ceiling) unbar(now time.Duration, has, limit int) {
	switch {
	case !c.barred():
	case has > c.Most, c.Most >= limit && !c.Probe:
		c.lift()
	case c.MoreAt <= now:
		c.Most, c.Probe = c.Most+1, true
		c.MoreAt = now + probePatience
	}
}

func (c *ceiling) lift() { c.Most, c.Bars, c.Probe = 0, 0, false }

// bound is how many ENIs may be had, of so many.
func (c *ceiling) bound(most int) int {
	if c.barred() {
		return min(most, c.Most)
	}
	return most
}

// shown is how many EC2 has shown to attach, without the one that is being tried.
func (c *ceiling) shown() int {
	if c.Probe {
		return c.Most - 1
	}
	return c.Most
}
