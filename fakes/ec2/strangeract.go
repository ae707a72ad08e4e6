package ec2

// mostAtOnce bounds how often a fault has a stranger act at one instant.
const mostAtOnce = 1 << 16

// byStranger says whether the kind is a deed of somebody else, and not something about calls.
func (k FaultKind) byStranger() bool { return k >= DetachByStranger && k <= DrainByStranger }

// strangerActs does what a fault has a stranger do, now. It draws the victim from the strangers' stream when the fault names none,
// and does nothing when there is none. It says whether anything was changed.
func (c *Cloud) strangerActs(f *Fault) bool {
	switch f.Kind {
	case DetachByStranger:
		if slot := c.victim(f, false); slot != none {
			return c.StrangerDetach(c.now, c.enis[slot].id)
		}
	case DeleteByStranger:
		if slot := c.victim(f, true); slot != none {
			return c.StrangerDelete(c.now, c.enis[slot].id)
		}
	case UnassignByStranger:
		if !f.Address.IsValid() {
			return c.unassignSome(f)
		}
		return c.StrangerUnassign(c.now, f.Address)
	case DrainByStranger:
		sub := f.Subnet
		if sub == "" {
			sub = c.subnets[0].id
		}
		return c.DrainSubnet(c.now, sub, f.Leave) != 0
	}
	return false
}

// victim is the interface that a stranger works on: the one named, or one of those there are. A primary interface never is.
func (c *Cloud) victim(f *Fault, idle bool) int32 {
	if f.ENI != "" {
		return c.slotOf(f.ENI)
	}
	return c.draw(c.victims(f, func(e *eni) bool { return e.att.status == InUse || idle && e.att.status == Available }))
}

// victims are the slots of living interfaces that fit, oldest first.
func (c *Cloud) victims(f *Fault, fits func(*eni) bool) (out []int32) {
	for slot := c.oldest; slot != none; slot = c.enis[slot].newer {
		e := &c.enis[slot]
		n := e.att.instance
		switch {
		case e.dead || !fits(e),
			f.ENI != "" && e.id != f.ENI,
			n != none && slot == c.instances[n].primary && f.Kind != UnassignByStranger,
			f.Instance != "" && c.instanceID(n) != f.Instance:
			continue
		}
		out = append(out, slot)
	}
	return out
}

// draw picks one of a list from the strangers' stream.
func (c *Cloud) draw(list []int32) int32 {
	if len(list) == 0 {
		return none
	}
	return list[c.rand.next()%uint64(len(list))]
}

// unassignSome unassigns one secondary address of the interfaces that a fault speaks of.
func (c *Cloud) unassignSome(f *Fault) bool {
	slot := c.draw(c.victims(f, func(e *eni) bool { return len(e.current()) > 1 }))
	if slot == none {
		return false
	}
	e := &c.enis[slot]
	list := e.current()[1:]
	return c.StrangerUnassign(c.now, c.subnets[e.subnet].addr(list[c.rand.next()%uint64(len(list))]))
}

// Running are the instances that are not terminated, oldest first.
func (c *Cloud) Running() (out []InstanceID) {
	for i := range c.instances {
		if n := &c.instances[i]; n.state != terminated {
			out = append(out, n.id)
		}
	}
	return out
}
