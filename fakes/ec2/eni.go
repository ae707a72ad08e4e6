package ec2

import (
	"slices"
	"time"
)

// never is an instant before all others.
const never = time.Duration(-1 << 62)

// always is an instant after all others.
const always = time.Duration(1<<63 - 1)

// eni is what EC2 knows of an interface. Slices in it are never written to, only replaced, so that a clone
// of the Cloud can share them; an eni is copied by assignment.
type eni struct {
	id          ENIID
	mac         string
	description string
	token       string // the client token it was made with
	tags        []Tag
	grouped     []groupVersion // its security groups, of the recent past and the present, oldest first, never empty
	number      int32
	subnet      int32

	created     time.Duration
	visibleFrom time.Duration // since when reads and later calls can know of it
	diedAt      time.Duration
	dead        bool // deleted; the slot is kept while a stale read may show it

	older, newer int32 // neighbours in order of creation

	// versions are the address lists of the recent past and the present, oldest first, never empty:
	// what Describe and metadata show is one of them.
	versions []addressVersion

	// extras are the same of prefixes and IPv6 addresses; empty while it never had any.
	extras []extraVersion

	att, was  attachment // now, and before attAt
	attAt     time.Duration
	by        int32  // who attached or detached it, for the event when that is complete
	epoch     uint32 // counts attachments' changes; a transition of another epoch is void
	plugged   bool   // its kernel link exists
	hung      bool   // attach or detach will not complete by itself (a fault)
	forced    bool   // its detach was forced
	unchecked bool   // its SourceDestCheck is off
	kind      InterfaceKind

	// What metadata shows of an attached interface, from when on. Zero times on a primary interface:
	// complete from the start.
	listedAt, completeAt, secondariesAt time.Duration
	unlistedAt                          time.Duration // set when the detach starts
}

// attachment ties an ENI to an instance's device index.
type attachment struct {
	id                  string
	since               time.Duration // of the call that made it
	number              int32
	instance            int32 // none while available
	device              int16
	card                int16 // network card
	status              Status
	deleteOnTermination bool
}

// place is a device index on a network card as one number.
func placeOf(card, device int16) int32 { return int32(card)<<16 | int32(device) }

func (a *attachment) place() int32 { return placeOf(a.card, a.device) }

// addressVersion is the list of an interface's addresses, as offsets in its subnet, primary first, since
// an instant. Neither list nor version changes once made.
type addressVersion struct {
	at     time.Duration // when it became the truth
	imdsAt time.Duration // when metadata shows it
	list   []uint16
}

// ghost is what metadata still shows of an interface that is detached.
type ghost struct {
	until time.Duration
	entry IMDSENI
}

// grave is a deleted interface's slot, until no stale read can show it any more.
type grave struct {
	until time.Duration
	slot  int32
}

// current is the true address list, primary first.
func (e *eni) current() []uint16 { return e.versions[len(e.versions)-1].list }

// setAddresses makes list the truth now; metadata follows after lag, but never out of order.
func (c *Cloud) setAddresses(e *eni, list []uint16, lag time.Duration) {
	last := e.versions[len(e.versions)-1]
	keep := 0 // drop what neither metadata nor the most stale read can still show
	for keep+1 < len(e.versions) {
		next := e.versions[keep+1]
		if next.imdsAt > c.now || next.at > c.now-c.cfg.Lag.Describe.Max {
			break
		}
		keep++
	}
	v := make([]addressVersion, 0, len(e.versions)-keep+1)
	v = append(v, e.versions[keep:]...)
	e.versions = append(v, addressVersion{c.now, max(last.imdsAt, c.now+lag), list})
}

// setAttachment makes a the truth now and keeps the one before for stale reads.
func (c *Cloud) setAttachment(at time.Duration, e *eni, a attachment) {
	if e.attAt != at {
		e.was = e.att
	}
	e.att, e.attAt = a, at
}

// initENI fills a slot whose addresses are its own already.
func (c *Cloud) initENI(slot, sub int32, list []uint16) {
	number := len(c.slots)
	c.slots = append(c.slots, slot)
	unattached := attachment{instance: none, number: none}
	c.enis[slot] = eni{
		id: ENIID(c.eniNames.name(eniPrefix, number)), mac: macOf(c.eniNames.salt, number),
		number: int32(number), subnet: sub, created: c.now, visibleFrom: c.now,
		older: c.newest, newer: none,
		versions: []addressVersion{{c.now, c.now, list}},
		att:      unattached, was: unattached, attAt: c.now, by: none,
		epoch: c.enis[slot].epoch, // goes on from the slot's last tenant, whose transitions must not fit
	}
	if c.newest != none {
		c.enis[c.newest].newer = slot
	} else {
		c.oldest = slot
	}
	c.newest = slot
	c.living++
}

func (c *Cloud) newSlot() int32 {
	if n := len(c.spare); n > 0 {
		slot := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return slot
	}
	c.enis = append(c.enis, eni{})
	return int32(len(c.enis) - 1)
}

// newAttachment numbers an attachment of a slot and names it.
func (c *Cloud) newAttachment(slot int32) string {
	n := len(c.attached)
	c.attached = append(c.attached, slot)
	return c.attachmentNames.name(attachmentPrefix, n)
}

// deleteENI gives an available interface's addresses back and buries it.
func (c *Cloud) deleteENI(slot, by int32) {
	e := &c.enis[slot]
	c.emit(c.now, ENIDeleted, e, by)
	s := &c.subnets[e.subnet]
	until := c.now + c.stream(by).draw(c.cfg.Lag.FreedAddress)
	for _, o := range e.current() {
		s.hold(o, until)
	}
	if len(e.extras) > 0 {
		c.releaseExtras(e, until)
	}
	c.forgetToken(e)
	c.slots[e.number] = none
	e.dead, e.diedAt = true, c.now
	c.living--
	c.graves = append(c.graves, grave{c.now + c.cfg.Lag.Describe.Max, slot})
}

// exhume makes slots usable again that no read can show any more.
func (c *Cloud) exhume() {
	n := 0
	for n < len(c.graves) && c.graves[n].until <= c.now {
		slot := c.graves[n].slot
		e := &c.enis[slot]
		if e.older != none {
			c.enis[e.older].newer = e.newer
		} else {
			c.oldest = e.newer
		}
		if e.newer != none {
			c.enis[e.newer].older = e.older
		} else {
			c.newest = e.older
		}
		c.enis[slot] = eni{epoch: e.epoch}
		c.spare = append(c.spare, slot)
		n++
	}
	c.graves = c.graves[n:]
}

// slotOf finds a living interface, as it truly is.
func (c *Cloud) slotOf(id ENIID) int32 {
	n, ok := c.eniNames.number(eniPrefix, string(id), len(c.slots))
	if !ok {
		return none
	}
	return c.slots[n]
}

// find is slotOf for a call that changes something: what was only just created may not be known yet
// where the call is executed ("Eventual consistency in the Amazon EC2 API").
func (c *Cloud) find(from int32, id ENIID) int32 {
	slot := c.slotOf(id)
	if slot == none {
		return none
	}
	if age := c.now - c.enis[slot].visibleFrom; age < c.cfg.Lag.Mutation.Max &&
		age < c.stream(from).draw(c.cfg.Lag.Mutation) {
		return none
	}
	return slot
}

// insertByDevice is the slots of an instance with one more, in order of network card and device index.
func (c *Cloud) insertByDevice(slots []int32, slot int32) []int32 {
	at := len(slots)
	for at > 0 && c.enis[slots[at-1]].att.place() > c.enis[slot].att.place() {
		at--
	}
	out := make([]int32, 0, len(slots)+1)
	out = append(out, slots[:at]...)
	out = append(out, slot)
	return append(out, slots[at:]...)
}

// without is a new slice that lacks one element.
func without(slots []int32, slot int32) []int32 {
	return slices.DeleteFunc(slices.Clone(slots), func(s int32) bool { return s == slot })
}
