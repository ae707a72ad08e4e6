package ipam

import "time"

// shrinkAfter is how long there has to be too much before something is given back: upstream keeps an ENI 60 s as well.
const shrinkAfter = time.Minute

// aim serves what waits, then grows or shrinks towards the warm targets.
func (n *Node) aim(now time.Duration) {
	n.serve(now)
	if n.Warm.At <= now {
		n.Warm.At = never
	}
	n.unplan()
	if !n.Set.Provisions() {
		n.Warm.Wanted = false
		n.turnAway(now)
		return
	}
	if !n.Surveyed { // what there is room for, and what is too much, is known when EC2 has said what there is
		n.turnAway(now)
		return
	}
	n.unbar(now)
	s := n.supply()
	w := n.policy.Demand(s)
	more := min(w.More, s.Room)
	n.Warm.Wanted = more > 0
	n.tellBarred(w.More > more || n.Warm.Probe && (more > 0 || n.making()))
	if more > 0 {
		n.grow(now, more, w.Whole)
	}
	n.shrink(now, w)
	n.turnAway(now)
	if n.Troubles[troubleEC2] != "" && !n.Warm.Wanted && !n.mutating() {
		n.trouble(troubleEC2, "") // the call that would show that EC2 refuses no more is not needed any more
	}
}

// unplan drops the ENIs that EC2 has not been asked for: while they wait for the node's pace, what they were for may come from elsewhere or go.
func (n *Node) unplan() {
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Stage == Intended && e.Doing == 0 && !e.Stored {
			n.vacate(int32(i))
		}
	}
}

// supply is what the demand is computed from.
func (n *Node) supply() Supply {
	s := Supply{Settings: n.Set, PerENI: max(n.Inst.Limits.Addresses-1, 0), Waiting: len(n.Waiting),
		Assigned: n.Count[Assigned], Cooling: n.Count[Cooling], Quarantined: n.Count[Quarantined]}
	attached := 0
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage == 0 || e.Foreign {
			continue
		}
		if e.Stage < Tombstoned {
			attached++
		}
		switch {
		case e.Stage < Ready && e.Barred >= attachTries: // EC2 may never attach it again
		case e.Stage <= Ready:
			s.Coming += e.coming()
			s.Room += n.room(e)
			if e.Stage == Ready {
				s.Free += e.Has[Free]
				if e.Trimming {
					s.Free -= len(e.Before)
				}
			}
		}
	}
	// Addresses that only their inspection by the kernel keeps from being free come at once.
	for _, i := range n.Cooling {
		if a := &n.Addrs[i]; a.State == Cooling && a.Att == (Attachment{}) && a.ENI >= 0 &&
			n.ENIs[a.ENI].Stage <= Ready {
			s.Coming++
		}
	}
	s.Room += max(0, n.maxENIs()-attached) * s.PerENI
	return s
}

// maxENIs is how many ENIs of our own the node may have: others have device indexes too.
func (n *Node) maxENIs() int {
	most := n.Inst.Limits.ENIs
	if n.Set.MaxENI > 0 {
		most = min(most, n.Set.MaxENI)
	}
	return n.Warm.bound(most - len(n.Others))
}

// mostUnderWay bounds the ENIs that are made at once: those of a burst run side by side, and an instance that carries fewer than its type
// says costs no more calls than these.
const mostUnderWay = 4

// grow assigns to ENIs that EC2 has attached first (one call, no attach), then makes ENIs. What fits on an ENI that is busy or under way
// waits for it: another ENI for one address would stay for as long as a pod has that address.
func (n *Node) grow(now time.Duration, more int, whole bool) {
	if now < n.Warm.GrowAt {
		n.Warm.At = min(n.Warm.At, n.Warm.GrowAt)
		return
	}
	if n.asksWhose() { // what is ours already may be enough
		return
	}
	per, underWay := n.Inst.Limits.Addresses-1, 0
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage == 0 || e.Stage > Ready || e.Foreign {
			continue
		}
		if e.Stage < Ready {
			underWay++
		}
		// what was to be given back is wanted again
		if more > 0 && e.Trimming && e.Wait == idle && !e.Lost && now >= e.Doubt {
			more -= len(e.Before)
			n.stay(now, int32(i))
			n.Warm.At = now
		}
		room := n.room(e)
		if more <= 0 || room <= 0 {
			continue
		}
		if !e.takes() {
			// refused for now: its next try asks for what is wanted by then
			if e.Doing == AssignIPs && e.Wait == idle && !e.Lost {
				e.Count = n.Warm.asked(e.Count + min(room, more))
			}
			more -= n.policy.Fits(room)
			continue
		}
		count := room
		if !whole {
			count = min(room, more)
		}
		e.Doing, e.Count, e.Next = AssignIPs, n.Warm.asked(count), now
		more -= count
	}
	for more > 0 && underWay < mostUnderWay && n.attached() < n.maxENIs() && n.unplaced() == nil {
		count := per
		if !whole {
			count = min(per, more)
		}
		e := eni{ENI: ENI{Subnet: n.Inst.Subnet}, Stage: Intended, mutation: mutation{Count: n.Warm.asked(count),
			Wall: n.wall(now), Next: now}, Since: now}
		if primary := n.primary(); primary != nil {
			e.Subnet, e.CIDR = primary.Subnet, primary.CIDR
		}
		n.newENI(e)
		underWay++
		more -= per
	}
}

// room is what could still be had on an ENI that is in service or on its way there: where addresses are given back, others can be had.
func (n *Node) room(e *eni) int {
	has := e.slots()
	switch {
	case e.Stage < Ready:
		has -= e.Has[Free] // which are coming
	case e.Trimming:
		has -= len(e.Before)
	}
	return max(0, n.Inst.Limits.Addresses-1-has-e.coming())
}

// shrink gives back what has been too much for a while: an idle ENI if that fits, single addresses otherwise.
func (n *Node) shrink(now time.Duration, w Want) {
	if n.unplaced() != nil && !n.leaving() { // an ENI none of whose addresses is used makes room for one with pods
		w.Less, w.Whole = max(w.Less, n.Inst.Limits.Addresses-1), true
	}
	if w.Less <= 0 {
		n.Warm.LessSince = 0
		return
	}
	if n.Warm.LessSince == 0 {
		n.Warm.LessSince = now
	}
	if at := n.Warm.LessSince + shrinkAfter; at > now {
		n.Warm.At = min(n.Warm.At, at)
		return
	}
	if n.Set.Runtime && n.Witness.Runtime && n.Troubles[troubleRuntime] != "" {
		return // rule A: nothing is given back while a configured source cannot be believed
	}
	if ix, ok := n.idleENI(w); ok {
		n.beginDrain(now, ix)
		n.note(Note{Point: ENIDrained, ENI: n.ENIs[ix].ID})
		return
	}
	if !w.Whole {
		n.trim(now, w.Less)
	}
}

// idleENI is the last attached ENI none of whose addresses is used, if all of it may go. Where pods come and go their addresses cool down:
// an ENI without which there were hardly room for these as well would have to be made again.
func (n *Node) idleENI(w Want) (int32, bool) {
	best, found := int32(0), false
	per := n.Inst.Limits.Addresses - 1
	needed := n.Count[Assigned] + n.Count[Free] - w.Less + n.Count[Cooling] + n.Count[Quarantined]
	if n.Count[Cooling] > 0 && (n.hasAttached()-1)*per < needed+(per+3)/4 {
		return 0, false
	}
	for i := range n.ENIs {
		e := &n.ENIs[i]
		// pods of upstream may have addresses of its prefixes
		if e.Stage != Ready || e.busy() || e.Device == 0 || e.Prefixes > 0 || e.total() > w.Less {
			continue
		}
		// by the books: nobody else is asked before the drain begins
		if !n.policy.Drainable(Evidence{Uses: e.total() - e.Has[Free]}) {
			continue
		}
		if !found || e.Device > n.ENIs[best].Device {
			best, found = int32(i), true
		}
	}
	return best, found
}

// trim gives back free addresses of the ENI that uses the fewest.
func (n *Node) trim(now time.Duration, less int) {
	best := int32(-1)
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage != Ready || e.busy() || e.Trimming || e.Has[Free] == 0 {
			continue
		}
		if best < 0 || e.Has[Assigned] < n.ENIs[best].Has[Assigned] {
			best = int32(i)
		}
	}
	if best < 0 {
		return
	}
	e := &n.ENIs[best]
	e.Before = nil
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == Free && a.ENI == best && len(e.Before) < less {
			a.Leaving = true
			e.Before = append(e.Before, a.IP)
		}
	}
	e.Trimming, e.Since, e.Next = true, now, now
	n.gather(now, best)
}
