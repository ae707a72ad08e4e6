package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// seenENIs reads EC2's answer about ENIs asked by ID. An ID that is not in a whole answer does not exist for EC2, now.
func (sv *survey) seenENIs(now time.Duration, in *Seen, whole bool, asked []string) {
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
		if o := sv.evidence.otherByID(id); o != nil && o.Asking {
			sv.resolveOther(now, o, found)
			continue
		}
		ix, ok := sv.enis.eniByID(id)
		if !ok || !sv.enis.ENIs[ix].Asking {
			continue
		}
		if sv.enis.ENIs[ix].Wait != idle { // in the middle of something: the answer may be of before it
			sv.evidence.want(LookENI, now+askPause)
			continue
		}
		sv.enis.ENIs[ix].Asking = false
		sv.resolve(now, ix, found)
	}
}

// resolve brings our idea of an ENI in line with EC2's word; v is nil when EC2 does not know it.
func (sv *survey) resolve(now time.Duration, ix int32, v *ENI) {
	e := &sv.enis.ENIs[ix]
	e.Tag = sv.Steps
	if v != nil && (e.Foreign && v.kept() || !e.Foreign && !sv.ours(v, LookENI)) {
		sv.disown(now, ix, v)
		return
	}
	ours := v != nil && v.Instance == sv.Inst.ID && (v.Status == "in-use" || v.Status == "attaching")
	if v != nil {
		known := sv.enis.grouped()
		e.learn(now, v)
		sv.reread(now, known)
	}
	if ours { // evidence about an ENI is about the rows that are on it
		for ip, prefixed := range v.carried() {
			if i, known := sv.pool.byAddress[ip]; known && !sv.pool.justMoved(now, i, v.ID) {
				sv.pool.place(i, ix)
				sv.pool.mark(i, prefixed)
			}
		}
	}
	switch {
	case e.Stage == Ready:
		sv.resolveReady(now, ix, v, ours)
	case v == nil:
		sv.resolveUnknown(now, ix)
	case e.Stage < Ready:
		sv.resolveRising(now, ix, v, ours)
	default:
		sv.resolveFalling(now, ix, v, ours)
	}
}

// resolveUnknown: EC2 does not know the ENI. Just after its creation that means nothing.
func (sv *survey) resolveUnknown(now time.Duration, ix int32) {
	e := &sv.enis.ENIs[ix]
	e.ByEC2++
	// of one that a third party made, or after the clock was set back, not known: then it is old
	age := time.Duration(sv.wall(now)-e.Wall) * time.Second
	// EC2 made or detached it a moment ago, which may be long after this node first wanted it
	young := (e.Stage < Ready || e.Stage == Detached) && now-e.Since < consistency
	if young || age >= 0 && age < consistency || e.ByEC2 < 2 {
		sv.enis.ask(ix, now+askPause)
		return
	}
	sv.driver.finish(now, ix)
}

// resolveRising: an ENI on its way to service.
func (sv *survey) resolveRising(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &sv.enis.ENIs[ix]
	e.Lost, e.Trimming, e.ByEC2 = false, false, 0
	if e.Doing == AssignIPs { // what has landed of it is among its addresses
		e.Doing = ModifyENI
	}
	switch {
	case ours:
		e.Barred = 0
		if e.Stage < Attached {
			sv.enis.move(e, Attached, now)
		}
		e.Next = now
		if !e.Linked { // it may be on its way, or away: EC2's answer is of a while ago
			sv.enis.ask(ix, now+max(detachPause, (now-e.Since)/4))
		}
	case v.Status == "available":
		sv.enis.move(e, Created, e.Since)
		e.Next = max(now, e.Next)
		if e.Next == never {
			e.Next = now
		}
	case v.Status == "detaching":
		sv.enis.ask(ix, now+detachPause)
	default: // another interface has it
		sv.driver.finish(now, ix)
	}
}

// resolveFalling: an ENI on its way out.
func (sv *survey) resolveFalling(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &sv.enis.ENIs[ix]
	e.Lost, e.ByEC2, e.Next = false, 0, now
	switch {
	case v.Status == "available": // our own detach, or a third party that was faster
		sv.enis.move(e, Tombstoned, e.Since)
	case v.Status == "detaching":
		if e.Stage != Detached {
			sv.enis.move(e, Detached, now)
		}
		e.Next = now + e.detachPause(now)
	case ours && e.Stage == Detached && now-e.Since < consistency: // the answer is of before the detach
		e.Next = now + e.detachPause(now)
	case ours && !e.Foreign && e.Stage != Draining: // a late attach, or a detach that did not happen
		e.Doing, e.Unwired = 0, false
		sv.driver.beginDrain(now, ix)
	case ours && !sv.driver.drainable(ix): // an earlier daemon's evidence died with it
		e.Since = now
		sv.driver.gather(now, ix)
	case ours:
	default:
		sv.driver.finish(now, ix)
	}
}

// resolveReady: an ENI in service, after a lost assignment or because something did not show up any more.
func (sv *survey) resolveReady(now time.Duration, ix int32, v *ENI, ours bool) {
	e := &sv.enis.ENIs[ix]
	if !ours {
		e.ByEC2++
		absent := Absence{ByIMDS: e.ByIMDS, ByEC2: e.ByEC2, Linked: e.Linked, Cut: e.cutFor(now) >= cutPatience,
			Young: v == nil && now-e.Since < consistency}
		switch {
		case sv.policy.Absent(absent):
			sv.missing(now, ix, v)
		case e.ByIMDS > 0 || e.Lost: // a mutation stays in doubt until EC2 knows the ENI again
			sv.enis.ask(ix, now+askPause)
		}
		return
	}
	e.there()
	asked := e.Doing == AssignIPs && e.Open == 0 // by this daemon: an earlier one may have died before its call
	for ip, prefixed := range v.carried() {
		if _, known := sv.pool.byAddress[ip]; !known && !sv.evidence.hasDeparted(LookENI, ip, "") {
			sv.pool.discover(now, ip, ix, prefixed, asked || sv.evidence.listed(ip))
		}
	}
	switch {
	case !e.Lost:
		sv.missingAddresses(now, ix, v)
	case e.Doing == UnassignIPs:
		sv.resolveUnassign(now, ix, v)
	default: // an assignment: what landed is in the books now; what is missing will be asked for again
		sv.driver.atRest(ix)
		sv.pool.Warm.At = now
		sv.evidence.want(LookIMDS, now) // what it did not list of a busy ENI was not counted
	}
}

func (sv *survey) resolveUnassign(now time.Duration, ix int32, v *ENI) {
	e := &sv.enis.ENIs[ix]
	var left, gone []netip.Addr
	cools := false
	for _, ip := range e.Before {
		i, known := sv.pool.byAddress[ip]
		switch {
		// where EC2 has given it to another ENI since, or made it one's own address, the answer is of before
		case !v.carries(ip), sv.enis.isPrimary(ip):
			gone = append(gone, ip)
		case known && sv.pool.Addrs[i].ENI != ix:
		// what is used by now stays
		case known && (sv.pool.Addrs[i].State == Free ||
			sv.pool.Addrs[i].State == Cooling && sv.pool.Addrs[i].Att == Attachment{}):
			left = append(left, ip)
		case known && sv.pool.Addrs[i].State == Cooling:
			cools = true
		}
	}
	if cools && now < e.Doubt { // EC2's answer may be of before the call, and what cools would be given: it stays in the intent
		e.Next = e.Doubt
		return
	}
	if e.Prefixed { // of a prefix all sixteen go, or none
		left = sv.pool.wholly(left)
		sv.driver.keep(ix)
	}
	e.Lost = false
	if len(left) == 0 {
		e.Before = gone
		sv.driver.unassigned(now, ix)
		return
	}
	sv.driver.takenBack(now, ix, gone)
	for _, ip := range left {
		sv.pool.Addrs[sv.pool.byAddress[ip]].Leaving = true
	}
	e.Before = left
	e.Doing, e.Since, e.Next = 0, now, now
	sv.driver.gather(now, ix)
}

// missingAddresses deals with addresses that IMDS did not list: they are gone when EC2, asked by ID, says so twice.
func (sv *survey) missingAddresses(now time.Duration, ix int32, v *ENI) {
	for i := range sv.pool.Addrs {
		a := &sv.pool.Addrs[i]
		if a.State == 0 || a.ENI != ix || a.ByIMDS == 0 && a.Missing == 0 {
			continue
		}
		if v.carries(a.IP) {
			if a.Missing > 0 {
				sv.pool.Warm.At = now // it may be given again
			}
			a.Missing, a.ByIMDS = 0, 0
			continue
		}
		if a.ByIMDS == 0 { // metadata lists it again, and asks at its next look
			continue
		}
		a.Missing++
		again := now + askPause
		// once more soon, for meanwhile no pod gets it and its ENI gets no other; then when that means something
		if a.Given > 0 && a.Missing > 1 {
			again = max(again, a.Given+consistency)
		}
		if !sv.policy.Absent(Absence{ByIMDS: a.ByIMDS, ByEC2: a.Missing, Young: sv.pool.young(now, a)}) {
			sv.enis.ask(ix, again)
			continue
		}
		sv.pool.addressGone(int32(i))
	}
}

// missing: an ENI in service is gone by word of IMDS and EC2. When it still exists, unattached or soon, it is attached again where pods live on it, and
// where this node made it: no other node would delete it.
func (sv *survey) missing(now time.Duration, ix int32, v *ENI) {
	e := &sv.enis.ENIs[ix]
	sv.note(Note{Point: ENIMissing, Warn: true, ENI: e.ID})
	if v != nil && (v.Status == "available" || v.Status == "detaching") &&
		(e.Has[Assigned] > 0 || v.Owner == sv.Inst.ID) {
		sv.note(Note{Point: Restored, Warn: true, ENI: e.ID})
		sv.enis.move(e, Created, now)
		e.there()
		sv.driver.keep(ix) // a trim that was under way is over: with the ENI its evidence is gone
		e.Before, e.Prefixed, e.Trimming = nil, false, false
		e.Next, e.Doing, e.Linked = now, 0, false
		e.Addresses, e.Prefixes, e.Attachment = slices.Clone(v.Addresses), slices.Clone(v.Prefixes), ""
		if v.Status == "detaching" { // EC2 takes its time: it is asked until the ENI can be had again
			e.Doing, e.Lost = AttachENI, true
		}
		return
	}
	sv.driver.finish(now, ix)
}
