package ec2

import "time"

type transitionKind uint8

const (
	attachDone transitionKind = iota
	linkArrives
	detachDone
	launchDone // the slot is an instance's number, here and below
	terminateDone
	rebootDone
	stopDone
	startDone
)

// transition is something that the cloud does by itself. It is void when the ENI's or the instance's epoch has moved on.
type transition struct {
	at    time.Duration
	seq   uint32 // order among equals
	epoch uint32
	slot  int32
	kind  transitionKind
}

func (t *transition) before(o *transition) bool {
	if t.at != o.at {
		return t.at < o.at
	}
	return int32(t.seq-o.seq) < 0
}

// Next is when the cloud does something by itself next: an attach or a detach completes, a link appears.
// (Views that lag need no step: they are computed from the instant they are asked for.)
func (c *Cloud) Next() (time.Duration, bool) {
	if len(c.due) == 0 {
		return 0, false
	}
	return c.due[0].at, true
}

// Advance does what is due at or before now. Every other call with a now does so first.
func (c *Cloud) Advance(now time.Duration) {
	if now > c.now {
		for i := range c.subnets { // as the last call left it
			c.subnets[i].history.note(c.now, now, c.cfg.Lag.Available.Max/8, c.subnets[i].free)
		}
	}
	for len(c.due) > 0 && c.due[0].at <= now {
		t := c.due[0]
		c.popDue()
		c.now = max(c.now, t.at)
		c.run(t)
	}
	c.now = max(c.now, now)
	c.exhume()
	for i := range c.subnets {
		c.subnets[i].release(c.now)
	}
}

// run does one transition.
func (c *Cloud) run(t transition) {
	if c.void(&t) {
		return
	}
	if t.kind >= launchDone {
		c.runInstance(t)
		c.trimDue()
		return
	}
	e := &c.enis[t.slot]
	switch t.kind {
	case attachDone:
		c.attachCompletes(t.at, e)
	case linkArrives:
		if e.kind == EFAOnly {
			break
		}
		e.plugged = true
		c.emit(t.at, LinkPlugged, e, e.by)
	case detachDone:
		c.detached(t.at, t.slot, e.by)
	}
	c.trimDue()
}

// void says whether what a transition was to complete is no longer under way.
func (c *Cloud) void(t *transition) bool {
	if t.kind >= launchDone {
		return c.instances[t.slot].epoch != t.epoch
	}
	return c.enis[t.slot].epoch != t.epoch
}

// schedule puts a transition of the slot's present epoch on the heap.
func (c *Cloud) schedule(at time.Duration, kind transitionKind, slot int32) {
	var epoch uint32
	if kind >= launchDone {
		epoch = c.instances[slot].epoch
	} else {
		epoch = c.enis[slot].epoch
	}
	c.dueSeq++
	c.due = append(c.due, transition{at, c.dueSeq, epoch, slot, kind})
	h, i := c.due, len(c.due)-1
	for i > 0 {
		up := (i - 1) / 2
		if !h[i].before(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

// popDue takes the earliest transition off the heap.
func (c *Cloud) popDue() {
	n := len(c.due) - 1
	c.due[0] = c.due[n]
	c.due = c.due[:n]
	h, i := c.due, 0
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < n; child++ {
			if h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// trimDue takes void transitions off the top, so that Next never names an instant at which nothing happens.
func (c *Cloud) trimDue() {
	for len(c.due) > 0 && c.void(&c.due[0]) {
		c.popDue()
	}
}
