package ipam

import (
	"slices"
	"strconv"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
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

	Has      [Quarantined + 1]int // its addresses by state
	Doubt    time.Duration        // until when a call of an earlier daemon may land on it (contract 5), or what was unassigned may be listed yet
	Linked   bool                 // a link has its MAC
	Unwired  bool                 // draining: its routes and rules are gone
	Trimming bool                 // Before are free addresses to be given back
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
	// linkPatience is how long the link of an ENI that EC2 calls attached may take before EC2 is asked again: a stranger's detach may
	// have been under way, or the answer old.
	linkPatience = 10 * time.Second
	// landing is how long a call of a dead daemon may be under way (contract 5).
	landing = 2 * time.Minute
	// askPause is between two questions about one ENI: two answers of one moment are one answer.
	askPause = 5 * time.Second
)

// driveENIs goes on with every ENI that waits for nothing but the time.
func (n *Node) driveENIs(now time.Duration) {
	if n.Phase != serving {
		return
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Stage != 0 && e.Wait == idle && e.Next <= now {
			e.Next = never
			n.drive(now, int32(i))
		}
	}
}

// drive does the next thing about an ENI.
func (n *Node) drive(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	if e.Lost {
		n.settleDoubt(now, ix)
		return
	}
	switch e.Stage {
	case Intended:
		n.mutate(now, ix, CreateENI)
	case Created:
		n.attach(now, ix)
	case Attached:
		n.wire(now, ix)
	case Configured:
		n.ready(now, ix)
	case Ready:
		n.trimOrAssign(now, ix)
	case Draining:
		n.drain(now, ix)
	case Detached: // EC2 refuses to delete what is not available yet
		n.ask(ix, now)
	case Tombstoned:
		n.mutate(now, ix, DeleteENI)
	}
}

// done moves an ENI on after EC2 accepted.
func (n *Node) done(now time.Duration, ix int32, r *Result) {
	e := &n.ENIs[ix]
	e.Next, e.Since = now, now
	switch e.Doing {
	case CreateENI:
		if _, known := n.eniByID(r.ENI.ID); known { // the sweep or metadata was faster than EC2's answer
			n.discard(ix)
			return
		}
		n.takeOther(r.ENI.ID)
		cidr, subnet := e.CIDR, e.Subnet
		e.ENI = r.ENI
		if !e.CIDR.IsValid() {
			e.CIDR = cidr
		}
		if e.Subnet == "" {
			e.Subnet = subnet
		}
		e.DOT, e.Device = false, 0
		n.move(e, Created, now)
		n.Warm.grew(n.Inst.Limits.Addresses)
	case AttachENI:
		e.Attachment, e.Barred = r.Attachment, 0
		n.move(e, Attached, now)
		n.Warm.attached(n.hasAttached())
	case ModifyENI:
		e.DOT = true
	case AssignIPs:
		n.Warm.grew(n.Inst.Limits.Addresses)
		if e.Stage < Ready {
			e.Addresses, e.Doing = append(e.Addresses, r.Addresses...), ModifyENI
			return
		}
		for _, ip := range r.Addresses {
			n.returned(now, ip, ix)
		}

		n.atRest(ix)
	case UnassignIPs:
		if e.Stage == Created {
			n.lightened(now, ix)
			return
		}
		n.unassigned(now, ix)
	case DetachENI:
		n.move(e, Detached, now)
		e.Next = now + detachPause
	case DeleteENI:
		n.finish(now, ix)
	}
}

// refused decides what a refusal means; the caller has set a pause before the next try.
func (n *Node) refused(now time.Duration, ix int32, r *Result) {
	e := &n.ENIs[ix]
	switch e.Doing {
	case CreateENI:
		if r.Class != Unavailable { // nothing was made: the intent has no object
			n.growLater(now, r, e.Count)
			n.discard(ix)
		}
	case AttachENI:
		n.attachRefused(now, ix, r)
	case AssignIPs:
		n.growLater(now, r, e.Count)
		e.Lost, e.Next = true, now // our idea of the ENI may be wrong (amazon-vpc-cni-k8s #989): look
	case UnassignIPs, ModifyENI, DetachENI:
		if r.Class != Denied && r.Class != Unavailable {
			e.lose(now)
		}
	case DeleteENI:
		switch {
		case r.Class == NotFound:
			n.finish(now, ix)
		case r.Class == InUse && e.Tries <= 4:
			e.Next = now + detachPause
		case r.Class == InUse:
			e.Lost = true // perhaps an attach of an earlier daemon landed late
		}
	}
}

// discard drops an ENI that never was.
func (n *Node) discard(ix int32) {
	n.dropIntent(ix)
	n.vacate(ix)
}

// wire makes an attached ENI carry pods: DeleteOnTermination first (or it outlives the instance), then its link.
func (n *Node) wire(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	if e.Doing == AssignIPs && e.Linked && (e.Tries > 0 || n.Pace.next(now) > now) { // what it has need not wait for more
		e.Doing = ModifyENI
	}
	switch {
	case e.Doing == AssignIPs:
		n.mutate(now, ix, AssignIPs)
	case !e.DOT:
		n.mutate(now, ix, ModifyENI)
	case e.Linked:
		n.applyENI(ix, dataplane.ENIPlan(n.eniSpec(e)))
	default:
		n.want(LookKernel, now+linkPause)
	}
}

func (n *Node) applyENI(ix int32, plan dataplane.Plan) {
	e := &n.ENIs[ix]
	e.Wait = applying
	n.emit(&Apply{ID: n.await(eniPlan, ix), Lane: Lane{Kind: ENILane, ENI: e.ID}, Plan: plan})
}

func (n *Node) eniApplied(now time.Duration, ix int32, in Applied) {
	e := &n.ENIs[ix]
	if e.Stage == 0 || !e.ends(applying) {
		return
	}
	if in.Err != nil {
		n.retry(now, e)
		e.Linked = e.Linked && in.Err.Kind != dataplane.NoLink
		if e.Stage == Draining && in.Err.Kind == dataplane.NoLink {
			e.Unwired = true
		}
		return
	}
	switch e.Stage {
	case Attached:
		n.move(e, Configured, now)
		e.Next, e.Tries = now, 0
	case Draining:
		e.Unwired = true
		n.call(now, ix)
	case Ready:
		if e.Doing == 0 { // else the pause before its next try stands
			e.Next = now
		}
	default:
		e.Next = now
	}
}

// ready puts an ENI's addresses into service, once the kernel has been seen not to use them.
func (n *Node) ready(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	n.move(e, Ready, now)
	e.Tries, e.Doing = 0, 0
	for _, ip := range e.Addresses {
		n.returned(now, ip, ix)
	}
	e.Addresses = nil
	n.dropIntent(ix)
	n.note(Note{Point: ENIMade, ENI: e.ID, Text: "device " + strconv.Itoa(e.Device)})
	n.Warm.At = now
	n.tellNext()
}

// finish ends the life of an ENI that no longer exists for this node.
func (n *Node) finish(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	n.note(Note{Point: ENIDeleted, ENI: e.ID})
	n.strand(now, ix)
	n.departENI(now, e.ID)
	n.discard(ix)
	if e := n.unplaced(); e != nil { // there may be a place now
		e.Next = now
	}
}

// learn takes over what EC2 knows better.
func (e *eni) learn(v *ENI) {
	e.Attachment, e.DOT, e.Prefixes = v.Attachment, v.DOT, v.Prefixes
	if v.MAC != "" {
		e.MAC = v.MAC
	}
	if v.Primary.IsValid() {
		e.Primary = v.Primary
	}
	if v.CIDR.IsValid() {
		e.CIDR = v.CIDR
	}
	if e.Stage != Ready {
		e.Addresses = slices.Clone(v.Addresses)
	}
	if v.Instance != "" {
		e.Device = v.Device
	}
}

// detachPause is until EC2 is asked again about an ENI that is being detached: that takes seconds, or hangs for hours.
func (e *eni) detachPause(now time.Duration) time.Duration {
	return min(max(detachPause, (now-e.Since)/4), maxDetachPause)
}

// slots is how many places for addresses are taken on an ENI. We use no prefixes, and upstream leaves some behind.
func (e *eni) slots() int { return e.total() + e.Prefixes }

func (e *eni) total() int { return e.Has[Free] + e.Has[Assigned] + e.Has[Cooling] + e.Has[Quarantined] }

// coming is what is on its way to an ENI.
func (e *eni) coming() int {
	c := 0
	switch {
	case e.Stage == Intended:
		c = e.Count
	case e.Stage < Ready: // what pods have of one that is attached again is in the books
		c = max(len(e.Addresses)-e.total()+e.Has[Free], e.Has[Free])
	}
	if e.Stage > Intended && e.Doing == AssignIPs {
		c += e.Count
	}
	return c
}

// takes says whether addresses may be assigned to an ENI now. One without a link may have been detached by a stranger, and EC2 would fill it
// beyond what it lets it be attached with; one whose attach EC2 has just answered has none yet.
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
