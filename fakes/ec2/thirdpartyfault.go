package ec2

// mostAtOnce bounds how often a fault makes a third party act at one instant.
const mostAtOnce = 1 << 16

// byThirdParty says whether a fault of this kind is a third party's change, rather than a failure of calls.
func (k FaultKind) byThirdParty() bool { return k >= DetachByStranger && k <= DrainByStranger }

// thirdPartyActs makes the third party's change of a fault now. Where the fault names no interface it draws one from
// the third parties' stream; without one it does nothing. It returns whether anything was changed.
func (c *Cloud) thirdPartyActs(f *Fault) bool {
	switch f.Kind {
	case DetachByStranger:
		if slot := c.victim(f, false); slot != none {
			return c.ThirdPartyDetach(c.now, c.enis[slot].id)
		}
	case DeleteByStranger:
		if slot := c.victim(f, true); slot != none {
			return c.ThirdPartyDelete(c.now, c.enis[slot].id)
		}
	case UnassignByStranger:
		if !f.Address.IsValid() {
			return c.unassignSome(f)
		}
		return c.ThirdPartyUnassign(c.now, f.Address)
	case DrainByStranger:
		sub := f.Subnet
		if sub == "" {
			sub = c.subnets[0].id
		}
		return c.DrainSubnet(c.now, sub, f.Leave) != 0
	}
	return false
}

// victim is the interface that a third party changes: the one named, or one that is drawn. A primary interface never
// is.
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

// draw picks one of a list by the third parties' stream of random numbers.
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
	return c.ThirdPartyUnassign(c.now, c.subnets[e.subnet].addr(list[c.rand.next()%uint64(len(list))]))
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
