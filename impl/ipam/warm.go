package ipam

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// shrinkAfter is how long there has to be too much before something is given back: upstream keeps an ENI 60 s as well.
const shrinkAfter = time.Minute

// warm is the warm pool: how many addresses are wanted, and what is made or given back for it.
type warm struct {
	*life    `json:"-"`
	requests *requests
	evidence *evidence
	subnets  *subnets
	enis     *enis
	pool     *pool
	driver   *driver
	pods     *pods
}

// aim serves what waits, then grows or shrinks towards the warm targets.
func (wp *warm) aim(now time.Duration) {
	wp.pods.serve(now)
	if wp.pool.Warm.At <= now {
		wp.pool.Warm.At = never
	}
	wp.unplan()
	if !wp.Set.Provisions() {
		wp.pool.Warm.Wanted = false
		wp.pods.turnAway(now)
		return
	}
	if !wp.Surveyed { // what there is room for, and what is too much, is known when EC2 has said what there is
		wp.pods.turnAway(now)
		return
	}
	wp.unbar(now)
	wp.turn(now)
	s := wp.supply(now)
	if s.Room == 0 {
		s = wp.again(now, s)
	}
	w := wp.policy.Demand(s)
	more := min(w.More, s.Room)
	wp.pool.Warm.Wanted = more > 0
	wp.tellPrefixes(now, more)
	wp.tellBarred(w.More > more || wp.pool.Warm.Probe && (more > 0 || wp.enis.making()))
	if wp.holds(now, s, w.More) {
		more = 0
	}
	if more > 0 {
		wp.grow(now, more, w.Whole)
	}
	if w.More > 0 {
		wp.seek(now)
	}
	wp.clear(now)
	wp.shrink(now, w)
	wp.pods.turnAway(now)
	if wp.Troubles[troubleEC2] != "" && !wp.pool.Warm.Wanted && !wp.enis.mutating() {
		wp.trouble(troubleEC2, "") // the call that would show that EC2 refuses no more is not needed any more
	}
}

// holds says whether EC2 is not asked yet for addresses that are missing, because more may be missing soon.
func (wp *warm) holds(now time.Duration, s Supply, more int) bool {
	p := &wp.pool.Warm
	if more <= 0 {
		p.MoreSince = 0
		return false
	}
	p.MoreSince = cmp.Or(p.MoreSince, now)
	at := p.MoreSince + wp.policy.TopUp(s, more)
	if at <= now {
		return false
	}
	p.At = min(p.At, at)
	return true
}

// unplan drops the ENIs that EC2 has not been asked for: while they wait for the node's pace, what they were for may
// come from elsewhere or go.
func (wp *warm) unplan() {
	for i := range wp.enis.ENIs {
		if e := &wp.enis.ENIs[i]; e.Stage == Intended && e.Doing == 0 && !e.Stored {
			wp.subnets.takes(e.Subnet, -1-e.Count*e.unit())
			wp.enis.vacate(int32(i))
		}
	}
}

// supply is what the demand is computed from.
func (wp *warm) supply(now time.Duration) Supply {
	unit := wp.unit(now)
	s := Supply{Settings: wp.Set, PerENI: max(wp.Inst.Limits.Addresses-1, 0) * unit, Waiting: len(wp.requests.Waiting),
		Prefixes: Delegation{On: wp.delegates(), Bare: wp.pool.Warm.Bare},
		Assigned: wp.pool.Count[Assigned], Cooling: wp.pool.Count[Cooling], Quarantined: wp.pool.Count[Quarantined]}
	attached := 0
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if e.Stage == 0 || e.Foreign {
			continue
		}
		if e.Stage < Tombstoned {
			attached++
		}
		switch {
		case e.Stage < Ready && e.Barred >= attachTries: // EC2 may never attach it again
		case wp.enis.excluded(e): // what it has is given to nobody
		case e.Stage <= Ready:
			s.Coming += e.coming()
			s.Near += wp.room(e) * unit
			if e.Stage == Ready {
				free, whole := wp.spare(e)
				s.Free += free
				s.Prefixes.Free += whole
			}
		}
	}
	// Addresses that only their inspection by the kernel keeps from being free come at once.
	for _, i := range wp.pool.Cooling {
		if a := &wp.pool.Addrs[i]; a.State == Cooling && a.Att == (Attachment{}) && a.ENI >= 0 &&
			wp.enis.ENIs[a.ENI].Stage <= Ready && !wp.strays(a) && !wp.enis.excluded(&wp.enis.ENIs[a.ENI]) {
			s.Coming++
		}
	}
	s.Room = s.Near
	if _, ok := wp.subnets.place(now); ok {
		s.Room += max(0, wp.maxENIs()-attached) * s.PerENI
	}
	return s
}

// again lets subnets be asked again, when what could be had was in those that EC2 has refused; after a pause, if a refusal brought it to that.
func (wp *warm) again(now time.Duration, s Supply) Supply {
	last, any := wp.subnets.forgive()
	if !any {
		return s
	}
	if last.Class != OK {
		wp.driver.growLater(now, last)
	}
	return wp.supply(now)
}

// unit is how many addresses one more slot brings.
func (wp *warm) unit(now time.Duration) int {
	if wp.delegates() && wp.pool.Warm.prefixes(now) {
		return prefixSize
	}
	return 1
}

// perENI is how many addresses the node's mode has on an ENI at most.
func (wp *warm) perENI() int {
	per := wp.Inst.Limits.Addresses - 1
	if wp.delegates() && !wp.pool.Warm.Bare {
		return per * prefixSize
	}
	return per
}

// maxENIs is how many ENIs of our own the node may have: others have device indexes too.
func (wp *warm) maxENIs() int {
	most := wp.Inst.Limits.ENIs
	if wp.Set.MaxENI > 0 {
		most = min(most, wp.Set.MaxENI)
	}
	return wp.pool.Warm.bound(most - len(wp.evidence.Others))
}

// mostUnderWay bounds the ENIs that are made at once: those of a burst run side by side, and an instance that carries
// fewer than its type says costs no more calls than these.
const mostUnderWay = 4

// grow assigns to ENIs that EC2 has attached first (one call, no attach), then makes ENIs. What fits on an ENI that is
// busy or under way waits for it: another ENI for one address would stay for as long as a pod has that address.
func (wp *warm) grow(now time.Duration, more int, whole bool) {
	if now < wp.pool.Warm.GrowAt {
		wp.pool.Warm.At = min(wp.pool.Warm.At, wp.pool.Warm.GrowAt)
		return
	}
	if wp.evidence.asksWhose() { // what is ours already may be enough
		return
	}
	if wp.subnets.Awaited = !wp.subnets.known(); wp.subnets.Awaited { // nor is it known which of that is for pods
		return
	}
	unit := wp.unit(now)
	wanted := more
	more = (more + unit - 1) / unit // slots, from here on
	besides := more*unit - wanted   // addresses that come besides, of the last slot and of ENIs in doubt
	per, underWay, strays := wp.Inst.Limits.Addresses-1, 0, 0
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if e.Stage == 0 || e.Stage > Ready || e.Foreign {
			continue
		}
		if e.Stage < Ready {
			underWay++
		}
		if wp.enis.excluded(e) {
			continue
		}
		// what was to be given back is wanted again
		if more > 0 && e.Trimming && e.Wait == idle && !e.Lost && now >= e.Doubt && !wp.turning(e) {
			more -= max(1, len(e.Before)/unit)
			wp.driver.stay(now, int32(i))
			wp.pool.Warm.At = now
		}
		room := wp.room(e)
		// Single addresses that an earlier daemon has asked for, it is not known with what success, may have left slots for prefixes: EC2 is
		// being asked about them, and another ENI would be made for nothing.
		if e.Lost && e.Doing == AssignIPs && e.unit() < unit && wp.evidence.Looks[LookENI].Fails < 3 {
			room += e.Count
		}
		// The rest of a prefix of which EC2 has said that it is gone, while a pod's address in it is not given up yet: it is there, or
		// its slot can be had.
		if !wp.subnets.exhausted(e.Subnet) {
			besides += e.blocks*prefixSize - e.blocked.addresses
		}
		// single addresses that nobody has: pods that come get them, and then their slots are had for prefixes
		if unit > 1 && !wp.pool.Warm.Bare && e.Stage == Ready {
			strays += e.Has[Free] - e.free
		}
		if more <= 0 || room <= 0 {
			continue
		}
		if !e.takes() {
			// refused for now: its next try asks for what is wanted by then
			if e.Doing == AssignIPs && e.Wait == idle && !e.Lost {
				if e.unit() != unit { // the mode has changed since
					e.Count = 0
				}
				e.Prefixed = unit > 1
				e.Count = wp.pool.Warm.asked(e.Count + min(room, more))
			}
			more -= wp.policy.Fits(room)
			continue
		}
		count := room
		if !whole {
			count = min(room, more)
		}
		e.Doing, e.Count, e.Prefixed, e.Next = AssignIPs, wp.pool.Warm.asked(count), unit > 1, now
		more -= count
	}
	more -= besides / unit
	more -= wp.policy.Fits(strays)
	for more > 0 && underWay < mostUnderWay && wp.enis.attached() < wp.maxENIs() && wp.enis.unplaced() == nil {
		count := per
		if !whole {
			count = min(per, more)
		}
		if wp.subnets.Awaited = !wp.subnets.fresh(now); wp.subnets.Awaited {
			return
		}
		at, ok := wp.subnets.place(now)
		if !ok {
			return
		}
		e := eni{ENI: ENI{Subnet: at.ID, CIDR: at.CIDR, Groups: slices.Clone(wp.subnets.groups(wp.enis.primarysGroups()))}, Stage: Intended, Since: now,
			mutation: mutation{Count: wp.pool.Warm.asked(count), Prefixed: unit > 1, Wall: wp.wall(now), Next: now}}
		if primary := wp.enis.primary(); primary != nil && at.ID == wp.Inst.Subnet {
			e.Subnet, e.CIDR = primary.Subnet, primary.CIDR
		}
		wp.subnets.takes(e.Subnet, 1+e.Count*e.unit())
		wp.enis.newENI(e)
		underWay++
		more -= per
	}
}

// room is how many slots could still be had on an ENI that is in service or on its way there: where some are given back,
// others can be had.
func (wp *warm) room(e *eni) int {
	if wp.enis.excluded(e) || wp.subnets.exhausted(e.Subnet) {
		return 0
	}
	has := wp.policy.Slots(e.total()-e.blocked.addresses, e.blocks)
	switch {
	case e.Stage == Intended:
		has = e.Count
	case e.Stage < Ready:
		has = max(has, wp.policy.Slots(len(e.Addresses), len(e.Prefixes)))
	case e.Trimming:
		has -= e.leavingSlots()
	}
	if e.Stage > Intended && e.Doing == AssignIPs {
		has += e.Count
	}
	return max(0, wp.Inst.Limits.Addresses-1-has)
}

// shrink gives back what has been too much for a while: an idle ENI if that fits, single addresses otherwise.
func (wp *warm) shrink(now time.Duration, w Want) {
	// an ENI none of whose addresses is used makes room for one with pods
	if wp.enis.unplaced() != nil && !wp.enis.leaving() {
		w.Less, w.Whole = max(w.Less, wp.perENI()), true
	}
	if w.Less <= 0 {
		wp.pool.Warm.LessSince = 0
		return
	}
	wp.pool.Warm.LessSince = cmp.Or(wp.pool.Warm.LessSince, now)
	if at := wp.pool.Warm.LessSince + shrinkAfter; at > now {
		wp.pool.Warm.At = min(wp.pool.Warm.At, at)
		return
	}
	if wp.unbelieved() {
		return
	}
	if ix, ok := wp.idleENI(now, w); ok {
		wp.driver.beginDrain(now, ix)
		wp.note(Note{Point: ENIDrained, ENI: wp.enis.ENIs[ix].ID})
		return
	}
	if !w.Whole {
		wp.trim(now, w.Less)
	}
}

// idleENI is the last attached ENI none of whose addresses is used, if all of it may go. Where pods come and go their
// addresses cool down: an ENI without which there were hardly room for these as well would have to be made again.
func (wp *warm) idleENI(now time.Duration, w Want) (int32, bool) {
	best, found := int32(0), false
	per := wp.perENI()
	needed := wp.pool.Count[Assigned] + wp.pool.Count[Free] - w.Less + wp.pool.Count[Cooling] +
		wp.pool.Count[Quarantined]
	if wp.pool.Count[Cooling] > 0 && (wp.enis.bearers()-1)*per < needed+(per+3)/4 {
		return 0, false
	}
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if !e.askable(now) || e.Device == 0 || e.total() > w.Less || wp.enis.excluded(e) {
			continue
		}
		// by the books: nobody else is asked before the drain begins
		if !wp.policy.Drainable(Evidence{Uses: e.total() - e.Has[Free]}) {
			continue
		}
		if !found || e.Device > wp.enis.ENIs[best].Device {
			best, found = int32(i), true
		}
	}
	return best, found
}

// trim gives back free addresses of the ENI that uses the fewest, or whole prefixes of it.
func (wp *warm) trim(now time.Duration, less int) {
	prefixed := wp.delegates() && !wp.pool.Warm.Bare
	ix := wp.leastUsed(now, prefixed)
	if ix < 0 && wp.pool.Warm.Bare && less >= prefixSize {
		prefixed, ix = true, wp.leastUsed(now, true)
	}
	if ix >= 0 {
		wp.giveBack(now, ix, less, prefixed)
	}
}

// leastUsed is the ENI at rest that uses the fewest of its addresses, of those that have a free one or a free prefix; -1 is none. The primary
// one, which stays whatever becomes of its addresses, comes after others that use as few.
func (wp *warm) leastUsed(now time.Duration, prefixed bool) int32 {
	best, least := int32(-1), (*eni)(nil)
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if !e.askable(now) || e.Trimming || !e.spares(prefixed) || wp.enis.excluded(e) {
			continue
		}
		if least == nil || e.Has[Assigned] < least.Has[Assigned] || e.Has[Assigned] == least.Has[Assigned] && least.Device == 0 {
			best, least = int32(i), e
		}
	}
	return best
}

// giveBack begins to give back so many addresses of one kind that nobody has. Of a prefix all sixteen go, or none.
func (wp *warm) giveBack(now time.Duration, ix int32, most int, prefixed bool) {
	e := &wp.enis.ENIs[ix]
	e.Before, e.Prefixed = nil, prefixed
	for i := range wp.pool.Addrs {
		a := &wp.pool.Addrs[i]
		if a.State != Free || a.ENI != ix || a.Prefixed != prefixed || len(e.Before) >= most {
			continue
		}
		if !prefixed {
			a.Leaving = true
			e.Before = append(e.Before, a.IP)
		} else if b := wp.pool.blockOf(a); wp.policy.Idle(b.use()) && !slices.Contains(e.Before, a.IP) && len(e.Before)+prefixSize <= most {
			for ip := range addressesOf(b.Prefix) {
				if i, known := wp.pool.byAddress[ip]; known && wp.pool.Addrs[i].State == Free {
					wp.pool.Addrs[i].Leaving = true
				}
				e.Before = append(e.Before, ip)
			}
		}
	}
	if len(e.Before) == 0 {
		e.rest()
		return
	}
	e.Trimming, e.Since, e.Next = true, now, now
	wp.driver.gather(now, ix)
}

// unbelieved says that a configured runtime cannot be believed (rule A): nothing is given back then.
func (wp *warm) unbelieved() bool {
	return wp.Set.Runtime && wp.Witness.Runtime && wp.Troubles[troubleRuntime] != ""
}

// seek asks EC2 about subnets, and the API server about the ENIConfig, again and again while a further ENI is wanted and none of them is
// for pods, or while a full node has an ENI that is not for pods: tags may change, and so may the ENIConfig.
func (wp *warm) seek(now time.Duration) {
	if wp.enis.attached() >= wp.maxENIs() {
		if !slices.ContainsFunc(wp.enis.ENIs, func(e eni) bool { return e.Stage == Ready && wp.subnets.excluded(e.Subnet) }) {
			return
		}
		if at := wp.subnets.CandidatesAt + seldomSubnets; at > now && len(wp.requests.Waiting) == 0 {
			wp.pool.Warm.At = min(wp.pool.Warm.At, at)
			return
		}
	} else if _, ok := wp.subnets.place(now); ok {
		return
	}
	if !wp.subnets.fresh(now) {
		wp.subnets.Awaited = wp.subnets.customNetworking() && wp.subnets.expects()
		return
	}
	if at := wp.subnets.nextWord(); at > now {
		wp.pool.Warm.At = min(wp.pool.Warm.At, at)
	}
}

// clear gives back what nobody has of ENIs that are not for pods any more: the whole ENI when no pod is on it, its free addresses
// otherwise. Pods that are there stay.
func (wp *warm) clear(now time.Duration) {
	if wp.unbelieved() {
		return
	}
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if !e.askable(now) || e.Trimming || e.Lost || !wp.enis.excluded(e) {
			continue
		}
		switch {
		case e.Device != 0 && e.total() == e.Has[Free]:
			wp.note(Note{Point: ENIExcluded, ENI: e.ID, Text: e.Subnet})
			wp.driver.beginDrain(now, int32(i))
		case e.spares(false), e.spares(true):
			wp.note(Note{Point: ENIExcluded, ENI: e.ID, Text: e.Subnet})
			wp.giveBack(now, int32(i), e.Has[Free], !e.spares(false))
		}
	}
}

// unbar tries one more ENI than EC2 has shown to attach, when the time for it has come.
func (wp *warm) unbar(now time.Duration) {
	p := &wp.pool.Warm
	if !p.barred() {
		return
	}
	if p.unbar(now, wp.enis.hasAttached(), wp.Inst.Limits.ENIs); p.barred() {
		p.At = min(p.At, p.MoreAt)
	}
}

// tellBarred says, while pods want what a further ENI would carry, why none is made (rule J).
func (wp *warm) tellBarred(short bool) {
	why := ""
	if short && wp.pool.Warm.barred() {
		why = "EC2 attaches no more than " + strconv.Itoa(wp.pool.Warm.shown()) +
			" network interfaces to this instance, and its type may have " +
			strconv.Itoa(wp.Inst.Limits.ENIs) + ": look for interfaces that are not the node's; it " +
			"tries another from time to time"
	}
	wp.trouble(troubleAttach, why)
}
