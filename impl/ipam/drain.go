package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// keptPause is for how long an ENI that had to keep what was to be given back is not asked again. Others are meanwhile,
// and metadata, which is read once a minute, is believed about it: a look that was under way when the evidence began to
// be gathered, or was given up, says nothing.
const keptPause = 2 * time.Minute

// askable says whether an ENI in service can be asked to give something back.
func (e *eni) askable(now time.Duration) bool {
	return e.Stage == Ready && !e.busy() && now >= e.KeptTill
}

// drainPatience is how long evidence of disuse may take before the ENI is taken back into service.
const drainPatience = time.Minute

// disuse is which sources have said that they see no use of an ENI that drains, or of the addresses that are about to
// be unassigned, since they were last asked. A use that they see ends the drain.
type disuse struct {
	KernelOK  bool
	RuntimeOK bool
}

func (v *disuse) kernel() *bool  { return &v.KernelOK }
func (v *disuse) runtime() *bool { return &v.RuntimeOK }

// beginDrain starts to gather evidence that an ENI is unused.
func (dr *driver) beginDrain(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	dr.enis.move(e, Draining, now)
	e.Next = now
	dr.gather(now, ix)
}

// gather begins the evidence anew: what was heard before is of before.
func (dr *driver) gather(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	e.disuse, e.Tag, dr.evidence.calm = disuse{}, dr.Steps, false
	dr.evidence.want(LookKernel, now)
	if dr.Set.Runtime {
		dr.evidence.want(LookRuntime, now)
	}
}

// drain detaches an ENI once the evidence is there.
func (dr *driver) drain(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	switch {
	case e.Attachment != "":
		dr.giveBack(now, ix, DetachENI)
	case !e.Asking:
		dr.enis.ask(ix, now)
	}
}

// giveBack asks EC2 to take back an ENI or addresses once the evidence is there, and takes them into service again if that takes too long.
func (dr *driver) giveBack(now time.Duration, ix int32, a Action) {
	e := &dr.enis.ENIs[ix]
	switch {
	case dr.drainable(ix):
		dr.mutate(now, ix, a)
	case now-e.Since >= drainPatience:
		dr.stay(now, ix)
	default:
		e.Next = e.Since + drainPatience
	}
}

// drainable asks the policy.
func (dr *driver) drainable(ix int32) bool {
	e := &dr.enis.ENIs[ix]
	v := Evidence{KernelAsked: dr.Witness.Kernel, RuntimeAsked: dr.Set.Runtime && dr.Witness.Runtime,
		KernelAnswer: e.KernelOK, RuntimeAnswer: e.RuntimeOK}
	if !e.Trimming {
		v.Uses = e.Has[Assigned] + e.Has[Cooling] + e.Has[Quarantined]
	}
	for _, ip := range e.Before {
		i, known := dr.pool.byAddress[ip]
		if !known || !e.Trimming || dr.pool.Addrs[i].State == Free {
			continue
		}
		if b := dr.pool.blockOf(&dr.pool.Addrs[i]); !e.Prefixed || b == nil || !dr.policy.Idle(b.use()) {
			v.Uses++
		}
	}
	return dr.policy.Drainable(v)
}

// stay takes an ENI, or the addresses about to be unassigned, back into service. While an earlier daemon's call may still take
// them away nothing of them is given to a pod.
func (dr *driver) stay(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	if now < e.Doubt {
		e.Next = e.Doubt
		return
	}
	if e.Trimming && e.Doubt > e.Since { // what EC2 has said since may be of before that call
		e.Doubt, e.Doing, e.Lost, e.Next = 0, UnassignIPs, true, now
		return
	}
	dr.note(Note{Point: DrainStopped, Warn: true, ENI: e.ID})
	dr.keep(ix)
	if e.Stage == Draining {
		dr.enis.move(e, Ready, e.Since)
		e.Addresses, e.Prefixes = nil, nil
	}
	e.KeptTill, e.Unwired = now+keptPause, false
	dr.pool.Warm.LessSince = 0 // not at once again: who claims the address now, claims it in a second
	dr.atRest(ix)
	e.Tag = dr.Steps
}

// keep lets the addresses of an ENI that were to be given back be given to pods again.
func (dr *driver) keep(ix int32) {
	for i := range dr.pool.Addrs {
		if dr.pool.Addrs[i].ENI == ix {
			dr.pool.stays(int32(i))
		}
	}
}

// gathering says whether evidence about an ENI is wanted, and an answer asked for at that step counts.
func (e *eni) gathering(asked uint64) bool {
	return (e.Stage == Draining || e.Stage == Ready && e.Trimming) && e.Wait == idle && e.Tag <= asked
}

// leaves says whether an address is among those that are to be given back.
func (e *eni) leaves(a *address) bool { return e.Stage == Draining || a.Leaving }

// gives says whether an address is being unassigned, or whether that is in doubt since an earlier daemon.
func (e *eni) gives(ip netip.Addr) bool { return e.Trimming && slices.Contains(e.Before, ip) }

// drains uses an observation of the kernel as evidence.
func (dr *driver) drains(now time.Duration, ix *dataplane.Index, asked uint64) {
	dr.attest(now, asked, (*disuse).kernel, func(j int32, a *address) bool {
		if !dr.Witness.Kernel {
			return false
		}
		why, used := ix.Uses(a.IP)
		if used && a.State == Free {
			dr.pool.quarantine(j, why)
		}
		return used
	})
}

// drainsRuntime uses the runtime's list as evidence: a ready sandbox that believes to have one of the addresses is a use.
func (dr *driver) drainsRuntime(now time.Duration, listed map[string]*Sandbox, asked uint64) {
	var claimed map[netip.Addr]bool
	dr.attest(now, asked, (*disuse).runtime, func(_ int32, a *address) bool {
		if claimed == nil {
			claimed = make(map[netip.Addr]bool, len(listed))
			for _, b := range listed { // a set: the order does not show
				if b.Ready && b.Address.IsValid() {
					claimed[b.Address] = true
				}
			}
		}
		return claimed[a.IP]
	})
}

// attest takes a source's answer for what it says of each address that is to be given back. One that it sees in use stops that; used is
// asked about all of them.
func (dr *driver) attest(now time.Duration, asked uint64, source func(*disuse) *bool,
	used func(int32, *address) bool) {
	for i := range dr.enis.ENIs {
		e := &dr.enis.ENIs[i]
		if !e.gathering(asked) || *source(&e.disuse) {
			continue
		}
		uses := 0
		for j := range dr.pool.Addrs {
			if a := &dr.pool.Addrs[j]; a.State != 0 && a.ENI == int32(i) && e.leaves(a) && used(int32(j), a) {
				uses++
			}
		}
		if uses > 0 {
			dr.stay(now, int32(i))
			continue
		}
		*source(&e.disuse), e.Next = true, now
	}
}

// trimOrAssign goes on with what is being done to an ENI in service.
func (dr *driver) trimOrAssign(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	switch {
	case e.Doing == AssignIPs:
		dr.mutate(now, ix, AssignIPs)
	case e.Doing == GroupENI:
		dr.mutate(now, ix, GroupENI)
	case !e.Trimming && e.Doing == 0 && e.Stored:
		dr.recordTaken(ix)
	case e.Trimming:
		dr.giveBack(now, ix, UnassignIPs)
	}
}

// unassigned takes the addresses that EC2 has taken back out of the books. The intent outlives the record of it: they
// are in two stores, and a daemon that finds neither believes the metadata, which lists the addresses for a while.
func (dr *driver) unassigned(now time.Duration, ix int32) {
	e := &dr.enis.ENIs[ix]
	dr.takenBack(now, ix, e.Before)
	if !e.Stored {
		dr.atRest(ix)
		return
	}
	e.rest()
	dr.awaitTaken(ix)
}

// awaitTaken goes on once this step's record is durable.
func (dr *driver) awaitTaken(ix int32) {
	// nothing was taken that metadata may still list
	if len(dr.ledger.put[RunStore])+len(dr.ledger.drop[RunStore]) == 0 {
		dr.atRest(ix)
		return
	}
	e := &dr.enis.ENIs[ix]
	e.Wait, e.Tag = storing, dr.Steps
	dr.ledger.waitSaved(RunStore, saveTaken, ix, e.Tag)
}

// takenSaved drops the intent of an unassignment, or writes again what it took.
func (dr *driver) takenSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	e := &dr.enis.ENIs[ix]
	if e.Tag != tag || !e.ends(storing) {
		return
	}
	if ok {
		e.Tries = 0
		dr.atRest(ix)
		dr.pool.Warm.At = now
		return
	}
	dr.retry(now, e)
}

// recordTaken writes again what could not be made durable.
func (dr *driver) recordTaken(ix int32) {
	for i := range dr.evidence.Departures {
		if d := &dr.evidence.Departures[i]; d.Stored {
			dr.ledger.putRow(RunStore, Row{Address: d.IP, State: Departed, ReleasedAt: d.At})
		}
	}
	dr.awaitTaken(ix)
}

// takenBack takes addresses of an ENI out of the books; one in use is set aside, so that its DEL finds it. What the
// books do not have departs as well: metadata may list it yet.
func (dr *driver) takenBack(now time.Duration, ix int32, list []netip.Addr) {
	for _, ip := range list {
		a, ok := dr.pool.byAddress[ip]
		switch {
		case !ok:
		case dr.pool.Addrs[a].ENI != ix:
			continue
		case dr.pool.Addrs[a].State == Assigned || dr.pool.Addrs[a].Op != noOp:
			dr.pool.addressGone(a)
		default:
			dr.pool.forget(a)
		}
		dr.evidence.depart(now, ip)
	}
}
