package ipam

import (
	"net/netip"
	"slices"
	"time"
)

// attachTries is how often EC2 may refuse to attach an ENI that carries no pod before it is given up: often enough to come by each
// device index of a small type, and to outlive answers that are ten seconds old.
const attachTries = 6

// heardPause is between looks for the answer of the API server or of EC2, on which an ENI waits.
const heardPause = time.Second

// attach takes the lowest free device index, and the next ones in turn when EC2 says that a third party has it.
// An ENI that would no longer be made where and as it is, is deleted before pods get any of it (rules H, L). DeleteOnTermination cannot be asked for
// here.
func (dr *driver) attach(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	if e.Device == 0 && !dr.enis.carries(ix) {
		sn := dr.enis.subnets
		if !sn.heard(now, e.Since) {
			e.Next = now + heardPause
			return
		}
		if why := sn.outdated(e, dr.enis.primarysGroups()); why != "" {
			dr.abandon(now, ix, why)
			e.Next = now
			return
		}
	}
	if e.Before = dr.surplus(ix); len(e.Before) > 0 {
		dr.mutate(now, ix, UnassignIPs)
		return
	}
	if e.Device == 0 || e.Barred > 0 {
		e.Device = dr.device(ix, e.Barred)
	}
	dr.mutate(now, ix, AttachENI)
}

func (dr *driver) device(ix int32, skip int) int {
	limit := min(max(dr.Inst.Limits.ENIs, 2), mostENIs)
	var free []int
	for d := 1; d < limit; d++ {
		taken := false
		for i := range dr.enis.ENIs {
			e := &dr.enis.ENIs[i]
			taken = taken || int32(i) != ix && e.Stage >= Created && !e.Foreign && e.Device == d
		}
		for i := range dr.evidence.Others {
			taken = taken || dr.evidence.Others[i].Device == d
		}
		if !taken {
			free = append(free, d)
		}
	}
	if len(free) == 0 {
		return 1
	}
	return free[skip%len(free)]
}

// attachRefused decides what it means that an ENI cannot be attached; the caller has set a pause before the next try.
func (dr *driver) attachRefused(now time.Duration, ix int32, r *Result) {
	e := &dr.enis.ENIs[ix]
	switch r.Class {
	case Denied, Unavailable: // that says nothing about the ENI
		return
	case NotFound:
		e.Lost = now-e.Since >= consistency
		return
	}
	e.Barred++
	e.Lost = true                                    // EC2's word on the ENI and on what is attached may be another than ours
	if r.Class == Limit || e.Barred >= attachTries { // cilium#9730: too many addresses show only here
		dr.giveUp(now, ix, r)
	}
	dr.evidence.want(LookAttached, max(now, dr.evidence.Looks[LookAttached].At+askPause))
}

// surplus are the addresses of a detached ENI beyond what an attached one may have, as far as no pod has them. EC2
// lets a detached ENI be filled beyond that, by a request that arrives twice for one, and then refuses to attach it.
func (dr *driver) surplus(ix int32) []netip.Addr {
	e := &dr.enis.ENIs[ix]
	over := len(e.Addresses) + len(e.Prefixes) + 1 - dr.Inst.Limits.Addresses
	if e.Prefixed = false; !dr.enis.carries(ix) {
		return nil
	}
	var out []netip.Addr
	for _, ip := range slices.Backward(e.Addresses) {
		i, known := dr.pool.byAddress[ip]
		if len(out) < over && (!known || dr.pool.Addrs[i].State == Free && dr.pool.Addrs[i].ENI == ix) {
			out = append(out, ip)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, p := range slices.Backward(e.Prefixes) {
		if len(out) < over*prefixSize && dr.pool.idle(p, ix) {
			out = slices.AppendSeq(out, addressesOf(p))
		}
	}
	e.Prefixed = len(out) > 0
	return out
}

// lightened goes on with a detached ENI whose surplus EC2 has taken back.
func (dr *driver) lightened(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	dr.takenBack(now, ix, e.Before)
	e.Addresses = slices.DeleteFunc(slices.Clone(e.Addresses), func(ip netip.Addr) bool { return slices.Contains(e.Before, ip) })
	e.Prefixes = slices.DeleteFunc(slices.Clone(e.Prefixes), func(p netip.Prefix) bool { return slices.Contains(e.Before, p.Addr()) })
	e.Before, e.Prefixed, e.Barred = nil, false, 0
}

// giveUp deletes an ENI that EC2 will not attach, unless pods have its addresses: those of one that a third party
// detached live, and an index may come free. It remembers that the instance carries no more than it has: the next one
// would end alike.
func (dr *driver) giveUp(now time.Duration, ix int32, r *Result) {
	if !dr.enis.carries(ix) {
		dr.abandon(now, ix, r.Code)
	} else {
		dr.pool.Warm.At = now
	}
	dr.pool.Warm.bar(now, dr.enis.hasAttached())
}

// abandon deletes an ENI that is not attached and carries no pod.
func (dr *driver) abandon(now time.Duration, ix int32, why string) {
	e := &dr.enis.ENIs[ix]
	dr.note(Note{Point: ENIGivenUp, Warn: true, ENI: e.ID, Text: why})
	dr.enis.move(e, Tombstoned, now)
	e.Lost = false
}
