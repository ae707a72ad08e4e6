package ec2

import (
	"slices"
	"strconv"
	"time"
)

// deviceIndexes bounds the device index of an attachment on a network card; what runs out long before is AttachmentLimitExceeded.
const deviceIndexes = 128

func (c *Cloud) attach(from int32, r *Request) Response {
	slot := c.find(from, r.ENI)
	if slot == none {
		return noSuchENI(r.ENI)
	}
	return c.attachSlot(from, slot, r)
}

// attachSlot is attach for an interface that the caller knows to exist.
func (c *Cloud) attachSlot(from, slot int32, r *Request) Response {
	if r.Instance == "" {
		return missing("instanceId")
	}
	n := c.findInstance(from, r.Instance)
	if n == none {
		return noSuchInstance(r.Instance)
	}
	if p := c.mayAttach(slot, n, r.NetworkCard, r.DeviceIndex); p.Code != "" {
		return p
	}
	e, i := &c.enis[slot], &c.instances[n]
	id := c.newAttachment(slot)
	e.epoch++
	e.by, e.forced, e.listedAt = from, false, always
	c.setAttachment(c.now, e, attachment{
		id: id, since: c.now, number: int32(len(c.attached) - 1), instance: n, device: int16(r.DeviceIndex), card: int16(r.NetworkCard), status: Attaching,
	})
	i.enis = c.insertByDevice(i.enis, slot)
	c.start(AttachHangs, slot)
	p := success()
	p.Attachment = id
	return p
}

// mayAttach checks what instance and interface allow; an empty Response means yes.
func (c *Cloud) mayAttach(slot, n int32, card, device int) Response {
	e, i := &c.enis[slot], &c.instances[n]
	id, on := string(e.id), "'"+string(i.id)+"'"
	switch {
	case i.state != running && i.state != stopped:
		return failure(codeInstanceState, "Instance "+on+" is not 'running' or 'stopped'.")
	case e.att.status != Available:
		return failure(codeENIInUse, "Interface: ["+id+"] in use.")
	case c.subnets[e.subnet].zone != c.subnets[i.subnet].zone:
		return failure(codeValue, "You may not attach a network interface to an instance if they are not in the same availability zone")
	case c.subnets[e.subnet].vpc != c.subnets[i.subnet].vpc && !c.cfg.MultiVPC:
		return failure(codeValue, "You may not attach a network interface to an instance if they are not in the same VPC")
	case card < 0 || card >= max(i.limits.Cards, 1):
		return failure(codeValue, "Invalid value '"+strconv.Itoa(card)+"' for networkCardIndex: "+i.kind+" has "+
			strconv.Itoa(max(i.limits.Cards, 1))+" network cards")
	case device < 0 || device >= deviceIndexes:
		return failure(codeValue, "Invalid value '"+strconv.Itoa(device)+"' for deviceIndex.")
	case c.deviceTaken(i, placeOf(int16(card), int16(device))):
		return failure(codeValue, "Instance "+on+" already has an interface attached at device index '"+strconv.Itoa(device)+"'.")
	case c.onCard(i, int16(card)) >= i.limits.ENIs:
		return failure(codeAttachmentLimit, "Interface count "+strconv.Itoa(c.onCard(i, int16(card))+1)+" exceeds the limit for "+i.kind)
	case e.places() > i.limits.IPv4PerENI:
		return failure(codeAttachAddresses, "Address count "+strconv.Itoa(e.places())+" exceeds the limit for "+i.kind)
	case len(e.extras) > 0 && e.places6() > i.limits.IPv6PerENI:
		return failure(codeAttachAddresses, "IPv6 address count "+strconv.Itoa(e.places6())+" exceeds the limit for "+i.kind)
	}
	return Response{}
}

// onCard counts the interfaces on a network card, those that are going included.
func (c *Cloud) onCard(i *instance, card int16) (n int) {
	for _, slot := range i.enis {
		if c.enis[slot].att.card == card {
			n++
		}
	}
	return n
}

// deviceTaken says whether an interface, also one that is going, or a forced detach occupies the place.
func (c *Cloud) deviceTaken(i *instance, place int32) bool {
	for _, slot := range i.enis {
		if c.enis[slot].att.place() == place {
			return true
		}
	}
	return slices.Contains(i.burned, place)
}

// attachCompletes makes an attaching interface in-use and decides when metadata follows.
func (c *Cloud) attachCompletes(at time.Duration, e *eni) {
	a := e.att
	a.status = InUse
	c.setAttachment(at, e, a)
	s := &c.instances[a.instance].rand
	e.listedAt = at + s.draw(c.cfg.Lag.IMDSAttach)
	e.completeAt = e.listedAt + s.draw(c.cfg.Lag.IMDSPartial)
	e.secondariesAt = e.completeAt + s.draw(c.cfg.Lag.IMDSAddress)
	c.emit(at, ENIAttached, e, e.by)
}

func (c *Cloud) detach(from int32, r *Request) Response {
	if r.Attachment == "" {
		return missing("attachmentId")
	}
	slot := c.attachmentSlot(r.Attachment)
	if slot == none {
		return noSuchAttachment(r.Attachment)
	}
	e := &c.enis[slot]
	i := &c.instances[e.att.instance]
	switch {
	case slot == i.primary:
		return failure(codeNotPermitted, "The network interface at device index 0 and networkCard index 0 cannot be detached.")
	case e.att.status != InUse && !r.Force:
		// Not documented; the strict reading: only force ends an attachment that is under way.
		return failure(codeState, "Attachment '"+r.Attachment+"' is "+e.att.status.String()+".")
	}
	wasDetaching := e.att.status == Detaching
	e.epoch++ // voids what was under way: the completion, a link that had not arrived yet
	e.by, e.forced = from, e.forced || r.Force
	c.unplug(e, from)
	if !wasDetaching {
		a := e.att
		a.status = Detaching
		c.setAttachment(c.now, e, a)
		e.unlistedAt = c.now + i.rand.draw(c.cfg.Lag.IMDSDetach)
		c.emit(c.now, ENIDetachStarted, e, from)
	}
	c.start(DetachHangs, slot)
	c.trimDue()
	return success()
}

// attachmentSlot finds the interface of an attachment that has not ended.
func (c *Cloud) attachmentSlot(id string) int32 {
	n, ok := c.attachmentNames.number(attachmentPrefix, id, len(c.attached))
	if !ok {
		return none
	}
	return c.attached[n]
}

// unplug takes the kernel link away, if it has appeared.
func (c *Cloud) unplug(e *eni, by int32) {
	if e.plugged {
		e.plugged = false
		c.emit(c.now, LinkUnplugged, e, by)
	}
}

// detached makes an interface available, whatever its attachment was up to.
func (c *Cloud) detached(at time.Duration, slot, by int32) {
	e := &c.enis[slot]
	c.emit(at, ENIDetached, e, by)
	i := &c.instances[e.att.instance]
	if e.forced {
		i.burned = append(i.burned[:len(i.burned):len(i.burned)], e.att.place())
		e.unlistedAt = always
	}
	if e.listedAt <= at && at < e.unlistedAt {
		c.leaveGhost(at, i, e)
	}
	i.enis = without(i.enis, slot)
	c.attached[e.att.number] = none
	e.epoch++
	e.hung, e.forced = false, false
	c.setAttachment(at, e, attachment{instance: none, number: none})
	c.trimDue()
}
