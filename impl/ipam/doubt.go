package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// resume takes up the intent of an earlier daemon. Its last mutation may have happened, or may still: for two minutes a call of
// a dead daemon can land (contract 5), so nothing is concluded from one look.
func (n *Node) resume(now time.Duration, in *Intent) {
	n.note(Note{Point: IntentResumed, ENI: in.ENI.ID, Text: in.Stage.String() + ", " + in.Doing.String()})
	e := eni{ENI: in.ENI, Token: in.Token, Stage: in.Stage, Foreign: in.Foreign, Since: now, Doubt: now + landing, mutation: mutation{Doing: in.Doing,
		Count: in.Count, Before: slices.Clone(in.Before), Wall: in.Wall, Stored: true, Extra: in.Extra, Lost: true, Next: now}}
	e.Addresses = slices.Clone(in.ENI.Addresses)
	if e.Stage == 0 || e.Stage > Tombstoned {
		return // of a version that this one does not know: the sweep and the reconcilers find what it meant
	}
	e.Trimming = e.Doing == UnassignIPs
	if ix, twice := n.eniByID(e.ID); twice && e.ID != "" { // the end of one was not durable: EC2 is asked in any case
		if n.ENIs[ix].Stage < e.Stage {
			e.Tag = n.Steps
			n.ENIs[ix], e = e, n.ENIs[ix]
		}
		n.dropRow(LibStore, Key{Token: e.Token})
		return
	}
	n.newENI(e)
}

// settleDoubt decides how to find out whether a mutation happened (contract 6).
func (n *Node) settleDoubt(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	switch how := n.policy.Lost(e.Doing); {
	case how == Repeat:
		n.mutate(now, ix, e.Doing)
	case how == Ask && e.ID != "":
		n.ask(ix, now)
	case e.Doing == CreateENI:
		n.discard(ix)
	case e.Stage == Ready && (e.Doing == AssignIPs || e.Doing == UnassignIPs):
		n.stay(now, ix)
		n.atRest(ix)
	default:
		e.Lost, e.Next = false, now
	}
}

// seenENIs reads EC2's answer about ENIs asked by ID. An ID that is not in a whole answer does not exist for EC2, now.
func (n *Node) seenENIs(now time.Duration, in *Seen, whole bool, asked []string) {
	if !whole {
		return // the look repeats itself
	}
	for _, id := range asked {
		var found *ENI
		for i := range in.ENIs {
			if in.ENIs[i].ID == id {
				found = &in.ENIs[i]
			}
		}
		if o := n.otherByID(id); o != nil && o.Asking {
			n.resolveOther(now, o, found)
			continue
		}
		ix, ok := n.eniByID(id)
		if !ok || !n.ENIs[ix].Asking {
			continue
		}
		if n.ENIs[ix].Wait != idle { // in the middle of something: the answer may be of before it
			n.want(LookENI, now+askPause)
			continue
		}
		n.ENIs[ix].Asking = false
		n.resolve(now, ix, found)
	}
}

// resolve brings our idea of an ENI in line with EC2's word; v is nil when EC2 does not know it.
func (n *Node) resolve(now time.Duration, ix int32, v *ENI) {
	e := &n.ENIs[ix]
	e.Tag = n.Steps
	if v != nil && (e.Foreign && v.kept() || !e.Foreign && !n.ours(v, LookENI)) {
		n.disown(now, ix, v)
		return
	}
	ours := v != nil && v.Instance == n.Inst.ID && (v.Status == "in-use" || v.Status == "attaching")
	if v != nil {
		e.learn(v)
	}
	if ours { // evidence about an ENI is about the rows that are on it
		for _, ip := range v.Addresses {
			if i, known := n.byAddress[ip]; known {
				n.place(i, ix)
			}
		}
	}
	switch {
	case e.Stage == Ready:
		n.resolveReady(now, ix, v, ours)
	case v == nil:
		n.resolveUnknown(now, ix)
	case e.Stage < Ready:
		n.resolveRising(now, ix, v, ours)
	default:
		n.resolveFalling(now, ix, v, ours)
	}
}

// resolveUnknown: EC2 does not know the ENI. Just after its creation that means nothing.
func (n *Node) resolveUnknown(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	e.ByEC2++
	age := time.Duration(n.wall(now)-e.Wall) * time.Second // of one that a stranger made, or after the clock was set back, not known: then it is old
	if e.Stage < Ready && now-e.Since < consistency || age >= 0 && age < consistency || e.ByEC2 < 2 {
		n.ask(ix, now+askPause)
		return
	}
	n.finish(now, ix)
}

// resolveRising: an ENI on its way to service.
func (n *Node) resolveRising(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &n.ENIs[ix]
	e.Lost, e.Trimming, e.ByEC2 = false, false, 0
	if e.Doing == AssignIPs { // what has landed of it is among its addresses
		e.Doing = ModifyENI
	}
	switch {
	case ours:
		e.Barred = 0
		if e.Stage < Attached {
			n.move(e, Attached, now)
		}
		e.Next = now
		if !e.Linked { // it may be on its way, or away: EC2's answer is of a while ago
			n.ask(ix, now+max(detachPause, (now-e.Since)/4))
		}
	case v.Status == "available":
		n.move(e, Created, e.Since)
		e.Next = max(now, e.Next)
		if e.Next == never {
			e.Next = now
		}
	case v.Status == "detaching":
		n.ask(ix, now+detachPause)
	default: // somebody else has it
		n.finish(now, ix)
	}
}

// resolveFalling: an ENI on its way out.
func (n *Node) resolveFalling(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &n.ENIs[ix]
	e.Lost, e.ByEC2, e.Next = false, 0, now
	switch {
	case v.Status == "available": // our own detach, or a stranger who was faster
		n.move(e, Tombstoned, e.Since)
	case v.Status == "detaching":
		if e.Stage != Detached {
			n.move(e, Detached, now)
		}
		e.Next = now + e.detachPause(now)
	case ours && e.Stage == Detached && now-e.Since < consistency: // the answer is of before the detach
		e.Next = now + e.detachPause(now)
	case ours && !e.Foreign && e.Stage != Draining: // a late attach, or a detach that did not happen
		e.Doing, e.Unwired = 0, false
		n.beginDrain(now, ix)
	case ours && !n.drainable(ix): // an earlier daemon's evidence died with it
		e.Since = now
		n.gather(now, ix)
	case ours:
	default:
		n.finish(now, ix)
	}
}

// resolveReady: an ENI in service, after a lost assignment or because something did not show up any more.
func (n *Node) resolveReady(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &n.ENIs[ix]
	if !ours {
		e.ByEC2++
		absent := Absence{ByIMDS: e.ByIMDS, ByEC2: e.ByEC2, Linked: e.Linked, Young: v == nil && now-e.Since < consistency}
		switch {
		case n.policy.Absent(absent):
			n.missing(now, ix, v)
		case e.ByIMDS > 0 || e.Lost: // a mutation stays in doubt until EC2 knows the ENI again
			n.ask(ix, now+askPause)
		}
		return
	}
	e.there()
	for _, ip := range v.Addresses {
		if _, known := n.byAddress[ip]; !known && !n.hasDeparted(now, ip, "") {
			n.discover(now, ip, ix, e.Doing == AssignIPs || n.listed(ip))
		}
	}
	switch {
	case !e.Lost:
		n.missingAddresses(now, ix, v.Addresses)
	case e.Doing == UnassignIPs:
		n.resolveUnassign(now, ix, v.Addresses)
	default: // an assignment: what landed is in the books now; what is missing will be asked for again
		n.atRest(ix)
		n.Warm.At = now
	}
}

func (n *Node) resolveUnassign(now time.Duration, ix int32, has []netip.Addr) {
	e := &n.ENIs[ix]
	var left, gone []netip.Addr
	for _, ip := range e.Before {
		i, known := n.byAddress[ip]
		switch {
		case !slices.Contains(has, ip):
			gone = append(gone, ip)
		case known && (n.Addrs[i].State == Free || n.Addrs[i].State == Cooling && n.Addrs[i].Att == Attachment{}): // what is used by now stays
			n.Addrs[i].Leaving = true
			left = append(left, ip)
		}
	}
	e.Lost = false
	if len(left) == 0 {
		e.Before = gone
		n.unassigned(now, ix)
		return
	}
	n.takenBack(now, ix, gone)
	e.Before = left
	e.Doing, e.Since, e.Next = 0, now, now
	n.gather(now, ix)
}

// missingAddresses deals with addresses that IMDS did not list: they are gone when EC2, asked by ID, says so twice.
func (n *Node) missingAddresses(now time.Duration, ix int32, has []netip.Addr) {
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 || a.ENI != ix || a.ByIMDS == 0 && a.Missing == 0 {
			continue
		}
		if slices.Contains(has, a.IP) {
			if a.Missing > 0 {
				n.Warm.At = now // it may be given again
			}
			a.Missing, a.ByIMDS = 0, 0
			continue
		}
		if a.ByIMDS == 0 { // metadata lists it again, and asks at its next look
			continue
		}
		a.Missing++
		young := a.State == Assigned && now-a.Allocated < consistency
		if !n.policy.Absent(Absence{ByIMDS: a.ByIMDS, ByEC2: a.Missing, Young: young}) {
			n.ask(ix, now+askPause)
			continue
		}
		n.addressGone(int32(i))
	}
}

// missing: an ENI in service is gone by word of IMDS and EC2. When it still exists, unattached or soon, it is attached again where pods live on it, and
// where this node made it: nobody else would delete it.
func (n *Node) missing(now time.Duration, ix int32, v *ENI) {
	e := &n.ENIs[ix]
	n.note(Note{Point: ENIMissing, Warn: true, ENI: e.ID})
	if v != nil && (v.Status == "available" || v.Status == "detaching") && (e.Has[Assigned] > 0 || v.Owner == n.Inst.ID) {
		n.note(Note{Point: Restored, Warn: true, ENI: e.ID})
		n.move(e, Created, now)
		e.there()
		n.keep(ix) // a trim that was under way is over: with the ENI its evidence is gone
		e.Before, e.Trimming = nil, false
		e.Next, e.Doing, e.Linked = now, 0, false
		e.Addresses, e.Attachment = slices.Clone(v.Addresses), ""
		if v.Status == "detaching" { // EC2 takes its time: it is asked until the ENI can be had again
			e.Doing, e.Lost = AttachENI, true
		}
		return
	}
	n.finish(now, ix)
}
