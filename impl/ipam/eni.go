package ipam

import (
	"slices"
	"time"
)

// eni is one network interface and the work on it. One thing is done to an ENI at a time.
type eni struct {
	ENI
	Token   string // of its intent
	Stage   Stage  // 0: the slot is empty
	Foreign bool   // another instance's leak

	mutation
	Since time.Duration // when the stage began
	Tag   uint64        // step in which it last changed (contract 8)

	Has [Quarantined + 1]int // its addresses by state
	blocked
	Doubt    time.Duration // until when a call of an earlier daemon may land on it (contract 5), or what was unassigned may be listed yet
	Linked   bool          // a link has its MAC
	CutAt    time.Duration `json:",omitzero"` // since when the kernel shows no such link; 0 it did when last seen
	Unwired  bool          // draining: its routes and rules are gone
	GroupsAt time.Duration // not before, after EC2 refused to change its security groups; 0 it has not
	KeptTill time.Duration `json:",omitzero"` // not asked for anything before, after it had to keep what was to be given back; 0 it had not
	GivenAt  time.Duration `json:",omitzero"` // when EC2 has changed its security groups for this daemon; 0 it has not
	Trimming bool          // Before are free addresses to be given back
	disuse
	presence
}

// Times of the ENI machine.
const (
	// consistency is how long EC2 may answer NotFound for something that was just made (EC2 API guide, "Eventual consistency").
	consistency = 2 * time.Minute
	// detachPause is the least time between questions whether EC2 has ended a detach: a delete before that is refused ("currently in use",
	// seeds/000: 5 s later it worked).
	detachPause    = 3 * time.Second
	maxDetachPause = time.Minute
	// linkPause is between looks for the link of an attached ENI; the kernel's event makes it shorter.
	linkPause = 5 * time.Second
	// linkPatience is how long the link of an ENI that EC2 calls attached may take before EC2 is asked again: a third
	// party's detach may have been under way, or the answer old.
	linkPatience = 10 * time.Second
	// cutPatience is how long the kernel has to show no link of an ENI in service before it and EC2 are enough to give it
	// up: metadata may be behind for an hour.
	cutPatience = 30 * time.Second
	// landing is how long a call of a dead daemon may be under way (contract 5).
	landing = 2 * time.Minute
	// askPause is between two questions about one ENI: two answers of one moment are one answer.
	askPause = 5 * time.Second
)

// cut says whether the kernel shows no link of an ENI in service: a pod that got an address of it would reach nobody.
func (e *eni) cut() bool { return e.Stage == Ready && e.Device != 0 && !e.Linked }

// cutFor is for how long the kernel has shown none; 0 it has not said so.
func (e *eni) cutFor(now time.Duration) time.Duration {
	if !e.cut() || e.CutAt == 0 {
		return 0
	}
	return now - e.CutAt
}

// sees takes over whether the kernel shows the ENI's link.
func (e *eni) sees(now time.Duration, linked bool) {
	switch e.Linked = linked; {
	case linked:
		e.CutAt = 0
	case e.CutAt == 0:
		e.CutAt = now
	}
}

// learn takes over what EC2 knows better.
func (e *eni) learn(now time.Duration, v *ENI) {
	e.Attachment, e.DOT = v.Attachment, v.DOT
	if v.MAC != "" {
		e.MAC = v.MAC
	}
	if v.Primary.IsValid() {
		e.Primary = v.Primary
	}
	if v.CIDR.IsValid() {
		e.CIDR = v.CIDR
	}
	e.hears(now, v.Groups)
	if e.Stage != Ready {
		e.Addresses, e.Prefixes = slices.Clone(v.Addresses), slices.Clone(v.Prefixes)
	}
	if v.Instance != "" {
		e.Device = v.Device
	}
}

// detachPause is until EC2 is asked again about an ENI that is being detached: that takes seconds, or hangs for hours.
func (e *eni) detachPause(now time.Duration) time.Duration {
	return min(max(detachPause, (now-e.Since)/4), maxDetachPause)
}

// unit is how many addresses a slot brings that is asked for, or under way.
func (e *eni) unit() int {
	if e.Prefixed {
		return prefixSize
	}
	return 1
}

// leavingSlots is how many places Before takes.
func (e *eni) leavingSlots() int { return len(e.Before) / e.unit() }

// spares says whether an ENI has a free address by itself, or a prefix all of whose addresses are free.
func (e *eni) spares(prefixed bool) bool {
	if prefixed {
		return e.whole > 0
	}
	return e.Has[Free] > e.free
}

func (e *eni) total() int { return e.Has[Free] + e.Has[Assigned] + e.Has[Cooling] + e.Has[Quarantined] }

// coming is what is on its way to an ENI.
func (e *eni) coming() int {
	c := 0
	switch {
	case e.Stage == Intended:
		c = e.Count * e.unit()
	case e.Stage < Ready: // what pods have of one that is attached again is in the books
		c = max(e.size()-e.total()+e.Has[Free], e.Has[Free])
	}
	if e.Stage > Intended && e.Doing == AssignIPs {
		c += e.Count * e.unit()
	}
	return c
}

// takes says whether addresses may be assigned to an ENI now. One without a link may have been detached by a third
// party, and EC2 would fill it beyond what it lets it be attached with; one whose attach EC2 has just answered has
// none yet.
func (e *eni) takes() bool {
	if e.Wait != idle || e.Lost || e.Asking || e.Barred > 0 {
		return false
	}
	switch e.Stage {
	case Attached:
		return e.DOT && e.Doing == ModifyENI && !e.Linked
	case Ready:
		return e.Doing == 0 && !e.Trimming && !e.Stored && (e.Device == 0 || e.Linked)
	}
	return false
}
