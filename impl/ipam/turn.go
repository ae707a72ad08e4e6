package ipam

import (
	"strconv"
	"time"
)

// turnPause is how long slots of the other kind stay after it could not be shown that nobody uses them.
const turnPause = time.Minute

// strays says whether a free address, or one that is about to be, takes a slot from the kind that the mode uses.
func (wp *warm) strays(a *address) bool {
	switch b := wp.pool.blockOf(a); {
	case wp.delegates():
		return b == nil && !wp.pool.Warm.Bare
	case b != nil:
		return b.Has[Free]+b.Has[Cooling] == prefixSize
	}
	return false
}

// spare is what an ENI in service has for pods to come: free addresses, and of them prefixes nobody has an address of. What
// goes because it is of the other kind is not among them; until it has gone a pod that waits may have it. In a subnet that has nothing more to
// give prefixes stay, in either mode.
func (wp *warm) spare(e *eni) (free, whole int) {
	leaving := 0
	if e.Trimming {
		leaving = len(e.Before)
	}
	whole = e.whole
	if e.Trimming && e.Prefixed {
		whole -= leaving / prefixSize
	}
	switch {
	case wp.delegates() && !wp.pool.Warm.Bare:
		if free = e.free; e.Prefixed {
			free -= leaving
		}
	case wp.delegates():
		free = e.Has[Free] - leaving
	default:
		if free = e.Has[Free]; !wp.subnets.exhausted(e.Subnet) {
			free -= prefixSize * e.whole
		}
		if !e.Prefixed {
			free -= leaving
		}
		whole = 0
	}
	return free, whole
}

// turning says whether an ENI gives back slots because they are of the other kind.
func (wp *warm) turning(e *eni) bool { return !wp.pool.Warm.Bare && e.Prefixed != wp.delegates() }

// turn gives back slots of the kind that the mode does not use and that nobody has: amazon-vpc-cni-k8s does so when it
// starts (tryUnassignIPsFromENIs, tryUnassignPrefixesFromENIs). Slots of either kind that pods have stay until these have
// ended. Single addresses stay until a prefix has been had, or their places are wanted for one.
func (wp *warm) turn(now time.Duration) {
	p := &wp.pool.Warm
	if now < p.TurnAt || wp.unbelieved() {
		return
	}
	prefixed := !wp.delegates()
	if !prefixed && (p.Bare || len(wp.pool.blocks) == 0 && wp.roomy()) {
		return
	}
	for i := range wp.enis.ENIs {
		e := &wp.enis.ENIs[i]
		if !e.askable(now) || !e.spares(prefixed) || !e.takes() {
			continue
		}
		if prefixed && wp.subnets.exhausted(e.Subnet) { // no address is to be had there in its place
			continue
		}
		wp.giveBack(now, int32(i), e.Has[Free], prefixed)
		wp.note(Note{Point: SlotsTurned, ENI: e.ID, Text: strconv.Itoa(e.leavingSlots())})
		p.TurnAt = now + turnPause
	}
	if p.TurnAt > now {
		p.At = min(p.At, p.TurnAt)
	}
}

// roomy says whether an ENI in service has a slot that nothing takes.
func (wp *warm) roomy() bool {
	for i := range wp.enis.ENIs {
		if e := &wp.enis.ENIs[i]; e.Stage == Ready && wp.room(e) > 0 {
			return true
		}
	}
	return false
}

// tellPrefixes says what keeps the node from what ENABLE_PREFIX_DELEGATION asks for (rule J): once that its type has no
// prefixes, and for as long as it matters that its subnet has none.
func (wp *warm) tellPrefixes(now time.Duration, more int) {
	p := &wp.pool.Warm
	if typeless := wp.Set.PrefixDelegation && !wp.Inst.Limits.Prefixes; typeless != p.Typeless {
		if p.Typeless = typeless; typeless {
			wp.note(Note{Point: TypeWithoutPrefixes, Warn: true, Text: wp.Inst.Type + " is neither of the Nitro system nor bare metal: " +
				"ENABLE_PREFIX_DELEGATION has no effect on it, addresses are assigned one by one"})
		}
	}
	why := ""
	if wp.delegates() && p.Bare {
		if p.BareAt > now {
			p.At = min(p.At, p.BareAt)
		}
		if p.BareAt > now || more > 0 {
			why = "EC2 has no /28 prefix to give in " + wp.subnets.home() + ", which is fragmented or full: addresses are assigned one by one. " +
				"Reserve a range for prefixes (aws ec2 create-subnet-cidr-reservation --reservation-type prefix), or use a new subnet"
		}
	}
	wp.trouble(troublePrefixes, why)
	wp.trouble(troubleMaxPods, wp.tooMany())
}

// hostPods are pods on the host's network that a node's capacity counts and that take no address: EKS's formula for max-pods
// has two.
const hostPods = 2

// tooMany says that max-pods is more than the node has addresses for, where a setting is why anybody thinks that it had them: prefixes,
// or custom networking, which leaves one ENI without pods.
func (wp *warm) tooMany() string {
	most := (wp.maxENIs() - wp.enis.kept()) * wp.perENI()
	if !wp.Set.PrefixDelegation && !wp.Set.CustomNetwork || most <= 0 || wp.Set.MaxPods-hostPods <= most {
		return ""
	}
	return "max-pods is " + strconv.Itoa(wp.Set.MaxPods) + ", and the node can give addresses to " + strconv.Itoa(most) +
		" pods: the scheduler sends it more than it can take; lower max-pods"
}
