package judge

import (
	"net/netip"

	"github.com/enilab/enilab/impl/ipam"
)

// holder is what is known of one attachment. It goes when it has no row, no request for an address, and nothing under
// way.
type holder struct {
	att     ipam.Attachment
	next    int32      // another attachment of the same container, or none
	address netip.Addr // of its durable assigned row
	wired   bool       // that row may be answered: a plan wanted after its Saved was applied, or it is not of this life
	touched bool       // a plan may have changed the kernel for it since it had nothing there
	left    netip.Addr // the address that it gave up while its removal is not done
	found   bool       // its row was recovered: no ADD had asked for it, or a Note says so
	adds    int32      // open ADDs
	op      uint64     // Seq of the last Save that began an operation on it
	coming  uint64     // Seq of the last Save that changes whether it has a row
	latest  netip.Addr // the last address that a Save assigned to it
	plan    ipam.ID    // the Apply outstanding on its lane
	repair  bool       // that Apply only puts back what was done before
}

// hold finds or makes the attachment's place. Pointers into holders end here.
func (c *Contract) hold(att ipam.Attachment) int32 {
	first := c.first(att.ContainerID)
	for i := first; i != none; i = c.holders[i].next {
		if c.holders[i].att == att {
			return i
		}
	}
	var i int32
	if n := len(c.spare); n > 0 {
		i, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		i = int32(len(c.holders))
		c.holders = append(c.holders, holder{})
	}
	c.holders[i] = holder{att: att, next: first}
	c.byAtt[att.ContainerID] = i
	return i
}

// none is no holder.
const none = int32(-1)

func (c *Contract) first(containerID string) int32 {
	if i, ok := c.byAtt[containerID]; ok {
		return i
	}
	return none
}

// holder of an attachment, or nil.
func (c *Contract) holder(att ipam.Attachment) *holder {
	for i := c.first(att.ContainerID); i != none; i = c.holders[i].next {
		if h := &c.holders[i]; h.att == att {
			return h
		}
	}
	return nil
}

// unsaved says that the Save that began the holder's operation is neither durable nor failed.
func (c *Contract) unsaved(h *holder) bool { return h.op > c.stores[ipam.RunStore].ended }

// working says that an operation on the attachment runs.
func (c *Contract) working(h *holder) bool { return c.unsaved(h) || h.plan != 0 && !h.repair }

// release forgets a holder of which nothing is left.
func (c *Contract) release(h *holder) {
	if h.address.IsValid() || h.left.IsValid() || h.adds > 0 || h.plan != 0 || h.coming > c.stores[ipam.RunStore].ended {
		return
	}
	i := c.byAtt[h.att.ContainerID]
	switch {
	case &c.holders[i] != h:
		for &c.holders[c.holders[i].next] != h {
			i = c.holders[i].next
		}
		i, c.holders[i].next = c.holders[i].next, h.next
	case h.next != none:
		c.byAtt[h.att.ContainerID] = h.next
	default:
		delete(c.byAtt, h.att.ContainerID)
	}
	c.spare = append(c.spare, i)
}

// apply checks the lane and remembers what the plan will prove when it has run.
func (c *Contract) apply(e *ipam.Apply) {
	if e.Lane.Kind != ipam.PodLane {
		for i := range c.flights {
			if f := &c.flights[i]; f.kind == applying && f.lane == e.Lane.Kind && f.eni == e.Lane.ENI {
				c.breaks("apply %d was wanted on lane %v while apply %d runs on it: expected one at a time", e.ID, e.Lane, f.id)
			}
		}
		c.fly(flight{id: e.ID, kind: applying, lane: e.Lane.Kind, eni: e.Lane.ENI})
		return
	}
	i := c.hold(e.Lane.Att)
	h := &c.holders[i]
	if h.plan != 0 {
		c.breaks("apply %d was wanted on lane %v while apply %d runs on it: expected one at a time", e.ID, e.Lane, h.plan)
	}
	if c.fly(flight{id: e.ID, kind: applying, lane: ipam.PodLane, holder: i, proves: h.address}) {
		h.plan, h.repair, h.touched = e.ID, h.wired && h.address.IsValid(), true
	}
}

// applied proves a wiring or a removal, if it followed the Saved and did not fail.
func (c *Contract) applied(in ipam.Applied) {
	f, ok := c.land(in.ID, applying)
	if !ok || f.lane != ipam.PodLane {
		return
	}
	h := &c.holders[f.holder]
	if h.plan != in.ID {
		return
	}
	h.plan = 0
	switch {
	case in.Err != nil:
	case f.proves.IsValid() && f.proves == h.address:
		h.wired = true
	case !f.proves.IsValid() && !h.address.IsValid():
		h.left, h.touched = netip.Addr{}, false
	}
	c.release(h)
}

// note takes the node's word that a row was recovered, so that an ADD for it needs no plan of this life.
func (c *Contract) note(e *ipam.Note) {
	switch e.Point {
	case ipam.RecoveredCheckpoint, ipam.RecoveredKernel, ipam.RecoveredRuntime:
		if h := c.holder(e.Att); h != nil {
			h.found = true
		}
	}
}
