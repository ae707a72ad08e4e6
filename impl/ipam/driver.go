package ipam

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// driver takes each ENI from stage to stage: it makes intents, calls EC2, sets up links, and gathers what has to be
// known before something is given back.
type driver struct {
	*life    `json:"-"`
	ledger   *ledger
	evidence *evidence
	subnets  *subnets
	enis     *enis
	pool     *pool

	Pace pace
}

// resume takes up the intent of an earlier daemon. Its last mutation may have happened, or may still: for two minutes
// a call of a dead daemon can land (contract 5), so nothing is concluded from one look.
func (dr *driver) resume(now time.Duration, in *Intent) {
	dr.note(Note{Point: IntentResumed, ENI: in.ENI.ID, Text: in.Stage.String() + ", " + in.Doing.String()})
	e := eni{ENI: in.ENI, Token: in.Token, Stage: in.Stage, Foreign: in.Foreign, Since: now, Doubt: now + landing,
		mutation: mutation{Doing: in.Doing, Count: in.Count, Before: slices.Clone(in.Before), Prefixed: in.Prefixed,
			Wall: in.Wall, Stored: true, Extra: in.Extra, Lost: true, Open: now + landing, Next: now}}
	e.Addresses, e.Prefixes = slices.Clone(in.ENI.Addresses), slices.Clone(in.ENI.Prefixes)
	if e.Stage == 0 || e.Stage > Tombstoned {
		return // of a version that this one does not know: the sweep and the reconcilers find what it meant
	}
	e.Trimming = e.Doing == UnassignIPs
	// the end of one was not durable: EC2 is asked in any case
	if ix, twice := dr.enis.eniByID(e.ID); twice && e.ID != "" {
		if dr.enis.ENIs[ix].Stage < e.Stage {
			e.Tag = dr.Steps
			dr.enis.ENIs[ix], e = e, dr.enis.ENIs[ix]
		}
		dr.ledger.dropRow(LibStore, Key{Token: e.Token})
		return
	}
	dr.enis.newENI(e)
}

// settleDoubt decides how to find out whether a mutation happened (contract 6).
func (dr *driver) settleDoubt(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	switch how := dr.policy.Lost(e.Doing); {
	case how == Repeat:
		dr.mutate(now, ix, e.Doing)
	case how == Ask && e.ID != "":
		dr.enis.ask(ix, now)
	case e.Doing == CreateENI:
		dr.discard(ix)
	case e.Stage == Ready && (e.Doing == AssignIPs || e.Doing == UnassignIPs):
		dr.stay(now, ix)
		dr.atRest(ix)
	default:
		e.Lost, e.Next = false, now
	}
}

// driveENIs goes on with every ENI that waits for nothing but the time.
func (dr *driver) driveENIs(now time.Duration) {
	if dr.Phase != serving {
		return
	}
	for i := range dr.enis.ENIs {
		if e := &dr.enis.ENIs[i]; e.Stage != 0 && e.Wait == idle && e.Next <= now {
			e.Next = never
			dr.drive(now, int32(i))
		}
	}
}

// drive does the next thing about an ENI.
func (dr *driver) drive(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	if e.Lost {
		dr.settleDoubt(now, ix)
		return
	}
	switch e.Stage {
	case Intended:
		dr.mutate(now, ix, CreateENI)
	case Created:
		dr.attach(now, ix)
	case Attached:
		dr.wire(now, ix)
	case Configured:
		dr.ready(now, ix)
	case Ready:
		dr.trimOrAssign(now, ix)
	case Draining:
		dr.drain(now, ix)
	case Detached: // EC2 refuses to delete what is not available yet
		dr.enis.ask(ix, now)
	case Tombstoned:
		dr.mutate(now, ix, DeleteENI)
	}
}

// done moves an ENI on after EC2 accepted.
func (dr *driver) done(now time.Duration, ix int32, r *Result) {
	e := &dr.enis.ENIs[ix]
	e.Next, e.Since = now, now
	switch e.Doing {
	case CreateENI:
		if _, known := dr.enis.eniByID(r.ENI.ID); known { // the sweep or metadata was faster than EC2's answer
			dr.discard(ix)
			return
		}
		dr.evidence.takeOther(r.ENI.ID)
		cidr, subnet, groups := e.CIDR, e.Subnet, e.Groups
		e.ENI = r.ENI
		if len(e.Groups) == 0 {
			e.Groups = groups
		}
		if !e.CIDR.IsValid() {
			e.CIDR = cidr
		}
		e.Subnet = cmp.Or(e.Subnet, subnet)
		e.DOT, e.Device = false, 0
		dr.given(&e.ENI)
		dr.enis.move(e, Created, now)
		dr.pool.Warm.grew(dr.Inst.Limits.Addresses)
	case AttachENI:
		e.Attachment, e.Barred = r.Attachment, 0
		dr.enis.move(e, Attached, now)
		dr.pool.Warm.attached(dr.enis.hasAttached())
	case ModifyENI:
		e.DOT = true
	case AssignIPs:
		dr.pool.Warm.grew(dr.Inst.Limits.Addresses)
		dr.given(&ENI{Prefixes: r.Prefixes})
		if e.Stage < Ready {
			e.Addresses, e.Prefixes = append(e.Addresses, r.Addresses...), append(e.Prefixes, r.Prefixes...)
			e.Doing = ModifyENI
			return
		}
		dr.takes(now, ix, &ENI{Addresses: r.Addresses, Prefixes: r.Prefixes})
		dr.atRest(ix)
	case GroupENI:
		dr.note(Note{Point: GroupsChanged, ENI: e.ID, Text: strings.Join(e.Give, ", ")})
		e.Groups, e.GroupsAt, e.GivenAt = e.Give, 0, now
		dr.atRest(ix)
	case UnassignIPs:
		if e.Stage == Created {
			dr.lightened(now, ix)
			return
		}
		dr.unassigned(now, ix)
	case DetachENI:
		dr.enis.move(e, Detached, now)
		e.Next = now + detachPause
	case DeleteENI:
		dr.finish(now, ix)
	}
}

// deleteTries is how often EC2 may call an ENI in use whose detachment it has just confirmed.
const deleteTries = 4

// refused decides what a refusal means; the caller has set a pause before the next try.
func (dr *driver) refused(now time.Duration, ix int32, r *Result) {
	e := &dr.enis.ENIs[ix]
	switch e.Doing {
	case CreateENI:
		switch {
		case r.Class == Unavailable:
			e.Open = now + landing
		case e.Open == 0 || r.Class != Denied && now >= e.Open: // nothing was made: the intent has no object
			if r.Class == NotFound || r.Class == Invalid { // a group or a subnet may be gone
				dr.groupsRefused(now, r, e.Groups)
			}
			dr.growElsewhere(now, e, r)
			dr.discard(ix)
		}
	case AttachENI:
		dr.attachRefused(now, ix, r)
	case AssignIPs:
		dr.growElsewhere(now, e, r)
		e.Lost, e.Next = true, now // our idea of the ENI may be wrong (amazon-vpc-cni-k8s #989): look
	case GroupENI:
		if r.Class == NotFound { // of the ENI or of a group: metadata or our idea may be old
			dr.groupsRefused(now, r, e.Give)
			dr.enis.ask(ix, now)
		}
		dr.regroupLater(ix, r.Class)
	case UnassignIPs, ModifyENI, DetachENI:
		if r.Class != Denied && r.Class != Unavailable {
			e.lose(now)
		}
	case DeleteENI:
		switch {
		case r.Class == NotFound:
			dr.finish(now, ix)
		case r.Class == InUse && e.Tries <= deleteTries:
			e.Next = now + detachPause
		case r.Class == InUse:
			e.Lost = true // perhaps an attach of an earlier daemon landed late
		}
	}
}

// discard drops an ENI that never was.
func (dr *driver) discard(ix int32) {
	dr.dropIntent(ix)
	dr.enis.vacate(ix)
}

// wire makes an attached ENI carry pods: DeleteOnTermination first (or it outlives the instance), then its link.
func (dr *driver) wire(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	// what it has need not wait for more
	if e.Doing == AssignIPs && e.Linked && (e.Tries > 0 || dr.Pace.next(now) > now) {
		e.Doing = ModifyENI
	}
	switch {
	case e.Doing == AssignIPs:
		dr.mutate(now, ix, AssignIPs)
	case !e.DOT:
		dr.mutate(now, ix, ModifyENI)
	case e.Linked:
		dr.applyENI(ix, dataplane.ENIPlan(dr.enis.eniSpec(e)))
	default:
		dr.evidence.want(LookKernel, now+linkPause)
	}
}

func (dr *driver) applyENI(ix int32, plan dataplane.Plan) {
	e := &dr.enis.ENIs[ix]
	e.Wait = applying
	dr.emit(&Apply{ID: dr.ledger.await(eniPlan, ix), Lane: Lane{Kind: ENILane, ENI: e.ID}, Plan: plan})
}

func (dr *driver) eniApplied(now time.Duration, ix int32, in Applied) {
	e := &dr.enis.ENIs[ix]
	if e.Stage == 0 || !e.ends(applying) {
		return
	}
	if in.Err != nil {
		dr.retry(now, e)
		e.Linked = e.Linked && in.Err.Kind != dataplane.NoLink
		if e.Stage == Draining && in.Err.Kind == dataplane.NoLink {
			e.Unwired = true
		}
		return
	}
	switch e.Stage {
	case Attached:
		dr.enis.move(e, Configured, now)
		e.Next, e.Tries = now, 0
	case Draining:
		e.Unwired = true
		dr.call(now, ix)
	case Ready:
		if e.Doing == 0 { // else the pause before its next try stands
			e.Next = now
		}
	default:
		e.Next = now
	}
}

// ready puts an ENI's addresses into service, once the kernel has been seen not to use them.
func (dr *driver) ready(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	dr.enis.move(e, Ready, now)
	e.Tries, e.Doing = 0, 0
	e.Prefixed = false
	dr.takes(now, ix, &e.ENI)
	e.Addresses, e.Prefixes = nil, nil
	dr.dropIntent(ix)
	dr.note(Note{Point: ENIMade, ENI: e.ID, Text: "device " + strconv.Itoa(e.Device)})
	dr.pool.Warm.At = now
	dr.enis.tellNext()
}

// given ends that the subnet has no prefix, once EC2 has given one.
func (dr *driver) given(v *ENI) {
	if len(v.Prefixes) > 0 {
		dr.pool.Warm.bareness = bareness{}
	}
}

// takes puts what EC2 has assigned to an ENI into service.
func (dr *driver) takes(now time.Duration, ix int32, v *ENI) {
	for ip, prefixed := range v.carried() {
		dr.pool.returned(now, ip, ix, prefixed)
	}
}

// finish ends the life of an ENI that no longer exists for this node.
func (dr *driver) finish(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	dr.note(Note{Point: ENIDeleted, ENI: e.ID})
	dr.pool.strand(now, ix)
	dr.evidence.departENI(now, e.ID)
	dr.discard(ix)
	if e := dr.enis.unplaced(); e != nil { // there may be a place now
		e.Next = now
	}
}

// links notices which ENIs have a link: attached ones go on, and one in service without is suspicious.
func (dr *driver) links(now time.Duration, ix *dataplane.Index) {
	for i := range dr.enis.ENIs {
		e := &dr.enis.ENIs[i]
		if e.Stage == 0 || e.Foreign || e.MAC == "" {
			continue
		}
		e.sees(now, ix.LinkByMAC(e.MAC) != nil)
		switch {
		case e.Stage == Attached && e.Wait == idle && e.DOT && e.Linked:
			e.Next = now
		case e.Stage == Attached && e.Wait == idle && e.DOT && !e.Lost:
			dr.evidence.want(LookKernel, now+linkPause)
			if now-e.Since >= linkPatience && !e.Asking {
				dr.enis.ask(int32(i), now)
			}
		case e.cut() && e.ByIMDS == 0:
			dr.evidence.want(LookIMDS, now)
		}
	}
}

// growElsewhere has growth go on in another subnet, if there is one, and pauses it otherwise.
func (dr *driver) growElsewhere(now time.Duration, e *eni, r *Result) {
	f := refusal{r.Class, e.Count, e.Prefixed, e.Subnet + ": " + r.Code}
	if !dr.subnets.tryAnother(e.Subnet, e.Doing, f) {
		dr.growLater(now, f)
		return
	}
	dr.note(Note{Point: SubnetSwitched, ENI: e.ID, Text: f.Text})
	dr.pool.Warm.At = now
}

// growLater pauses growth after a refusal, and asks for less next time when the subnet could not give as much. Where it
// gives no prefix at all, addresses are asked for.
func (dr *driver) growLater(now time.Duration, f refusal) {
	p := &dr.pool.Warm
	p.refused(now + dr.backoff(p.Fails+1))
	p.At = min(p.At, p.GrowAt)
	switch {
	case f.Prefixed && dr.policy.Bare(f.Class):
		if p.Ask = 1; f.Count == 1 || f.Class != SubnetFull {
			p.Ask = 0
			p.bare(now)
			dr.note(Note{Point: PrefixesGone, Warn: true, Text: f.Text})
		}
	case f.Class == SubnetFull:
		p.halve(f.Count)
	}
}

// repairENIs puts back what the kernel lacks of ENIs in service, also between two tries of a call that EC2 refuses. One about which EC2 has not
// answered yet is looked at again soon, for an answer may take longer than a pod may be unreachable.
func (dr *driver) repairENIs(now time.Duration, ix *dataplane.Index) {
	for i := range dr.enis.ENIs {
		e := &dr.enis.ENIs[i]
		if e.Stage != Ready || e.Device == 0 {
			continue
		}
		plan := dr.policy.Repair(dataplane.RepairENI(dr.enis.eniSpec(e), ix))
		if len(plan.Ops) == 0 {
			continue
		}
		if e.Wait != idle {
			dr.evidence.want(LookKernel, now+linkPause)
			continue
		}
		dr.note(Note{Point: DriftRepaired, Warn: true, ENI: e.ID, Text: plan.Ops[0].Kind.String()})
		dr.applyENI(int32(i), plan)
	}
}
