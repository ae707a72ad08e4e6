package ipam

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// delPatience is how long a DEL waits for a daemon that recovers. Longer, and its plugin leaves it as an intent (rule F).
const delPatience = 2 * time.Second

// del: Save(cooling) → Saved → Apply(removal) → Applied → Reply (contract 3).
func (ps *pods) del(now time.Duration, in Del) {
	deadline := in.Deadline
	if ps.Phase == recovering && !in.Intent {
		deadline = min(cmp.Or(deadline, never), now+delPatience+replyMargin)
	}
	if !ps.requests.accept(now, in.Req, VerbDel, in.Att, deadline) {
		return
	}
	if !ps.policy.Speaks(VerbDel, in.Version, ps.Version) {
		ps.requests.refuseVersion(in.Req, VerbDel, in.Att, in.Version)
		return
	}
	if ps.Phase == recovering { // what the checkpoint does not know, the kernel may
		ps.requests.Queued = append(ps.requests.Queued, queued{Del: new(in)})
		return
	}
	if ps.pool.busy(in.Att) {
		ps.requests.enqueue(queued{Del: new(in)})
		return
	}
	ps.startDel(now, in)
}

func (ps *pods) startDel(now time.Duration, in Del) {
	ps.requests.cancelWaiting(in.Att)
	ix, ok := ps.find(&in)
	if !ok {
		ps.note(Note{Point: DelUnknown, Att: in.Att})
		ps.requests.end(in.Req, ps.policy.Unknown(in.Att))
		return
	}
	ps.pool.Addrs[ix].Req = in.Req
	ps.release(now, ix)
}

// find is the row that a DEL means (rule E), of those that nothing runs on: while something runs on its own, the DEL is queued.
func (ps *pods) find(in *Del) (int32, bool) {
	for i := range ps.pool.Addrs {
		if a := &ps.pool.Addrs[i]; a.Keyed && a.Op == noOp && ps.policy.Match(in, a.Att, a.Pod) {
			return int32(i), true
		}
	}
	return 0, false
}

// release starts the end of an allocation: from here on its address cools.
func (ps *pods) release(now time.Duration, ix int32) {
	a := &ps.pool.Addrs[ix]
	if a.State == Assigned || a.State == Quarantined {
		ps.pool.rest(now, ix, false)
	}
	a.run(releasing)
	a.Then, a.Tries, a.Retry = nil, 0, never
	a.Evidence, a.Clean = "", 0
	ps.saveRelease(ix)
}

func (ps *pods) saveRelease(ix int32) {
	a := &ps.pool.Addrs[ix]
	a.Tag = ps.Steps
	ps.pool.putAddress(ix)
	ps.ledger.waitSaved(RunStore, saveRelease, ix, a.Tag)
}

func (ps *pods) releaseSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &ps.pool.Addrs[ix]
	if a.Op != releasing || a.Tag != tag {
		return
	}
	if ok {
		ps.removePod(ix)
		return
	}
	// The store still says assigned; so do we to the caller, and go on trying: the address stays withheld meanwhile.
	ps.requests.end(a.Req, &Error{CodeTryAgain, "cni del " + a.Att.String() +
		": the release could not be made durable: " + ps.Troubles[troubleStore] + "; try again"})
	a.Req = 0
	ps.pool.retryLater(now, a)
}

func (ps *pods) removePod(ix int32) {
	a := &ps.pool.Addrs[ix]
	ps.emit(&Apply{ID: ps.ledger.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att},
		Plan: dataplane.PodRemoval(ps.pool.spec(ix))})
}

func (ps *pods) releaseApplied(now time.Duration, ix int32, in Applied) {
	a := &ps.pool.Addrs[ix]
	a.Tag = ps.Steps
	if in.Err != nil {
		ps.pool.retryLater(now, a)
		return
	}
	att, req, then := a.Att, a.Req, a.Then
	a.run(noOp)
	a.cool(remembered)
	a.Req, a.Then = 0, nil
	a.ReleasedAt = now // the cool-down counts from when the namespace has lost the address
	ps.pool.unkey(ix)
	ps.pool.cools(a)
	ps.requests.end(req, nil)
	if then != nil && ps.requests.isOpen(then.Req) {
		ps.startAdd(now, *then)
	}
	ps.runQueued(now, att)
}

// removalPause bounds how often a removal that fails is tried again.
const (
	removalPause    = time.Second
	maxRemovalPause = time.Minute
)

// retryRemovals goes on with releases whose Save or Apply failed. The whole release is repeated: both are idempotent.
func (ps *pods) retryRemovals(now time.Duration) {
	ps.pool.RetryAt = never
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		switch {
		case a.Retry == never || a.Op != releasing && a.Op != recording:
		case a.Retry <= now:
			a.Retry = never
			if a.Op == recording {
				ps.record(int32(i))
				ps.note(Note{Point: RecoveredKernel, Att: a.Att, Addr: a.IP})
			} else {
				ps.saveRelease(int32(i))
			}
		default:
			ps.pool.RetryAt = min(ps.pool.RetryAt, a.Retry)
		}
	}
}

// unquarantine ends quarantines whose evidence is gone (Policy.Cleared); the address then cools. One that an
// attachment has is released as by a DEL, which may never come: no list has what an earlier daemon recorded,
// and no DEL is owed for a sandbox that is long gone.
func (ps *pods) unquarantine(now time.Duration, ix *dataplane.Index, asked uint64) {
	if ps.pool.Count[Quarantined] == 0 {
		return
	}
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if a.State != Quarantined || a.Op != noOp || a.Tag > asked {
			continue
		}
		if why, used := ps.uses(ix, a.IP); used {
			if a.Keyed || !ps.claimed(int32(i), ix.User(a.IP)) {
				a.Clean, a.Evidence = 0, why
			}
			continue
		}
		if l := ix.LinkByAlias(a.link()); a.Keyed && l != nil && l.PeerLive {
			a.Clean, a.Evidence = 0, "its pod's namespace lives behind "+l.Name
			continue
		}
		if a.Clean++; !ps.policy.Cleared(a.Clean) {
			ps.evidence.want(LookKernel, now+coolBatch)
			continue
		}
		ps.note(Note{Point: QuarantineEnded, Addr: a.IP, Att: a.Att})
		if a.Keyed {
			ps.release(now, int32(i))
			continue
		}
		a.Clean, a.Evidence = 0, ""
		ps.pool.rest(now, int32(i), true)
		ps.pool.putAddress(int32(i))
	}
}

// coolDowns frees addresses whose cool-down has ended, unless the kernel has a veto (rule B).
func (ps *pods) coolDowns(now time.Duration, ix *dataplane.Index, asked uint64) {
	kept := ps.pool.Cooling[:0]
	for _, i := range ps.pool.Cooling {
		a := &ps.pool.Addrs[i]
		if a.State != Cooling {
			continue
		}
		if a.Att == (Attachment{}) && a.Cooling != inKernel && a.Tag <= asked && ps.pool.rested(a) > now &&
			ps.Witness.Kernel {
			if why, used := ps.uses(ix, a.IP); used && ps.policy.Veto(why) {
				ps.pool.quarantine(i, why) // it was not released: no reason to wait
				continue
			}
		}
		if a.Cooling == inKernel || a.Op != noOp || a.Tag > asked || ps.pool.rested(a) > now || !ps.pool.flowless(a) {
			kept = append(kept, i)
			continue
		}
		if !ps.endCoolDown(now, i, ix) {
			kept = append(kept, i)
		}
	}
	ps.pool.Cooling = kept
	ps.pool.compactFree()
}

// uses is the kernel's word on whether an address is in use. EC2 may have made one that it took back the own address of
// an ENI, and that the ENI has it is no pod's use.
func (ps *pods) uses(ix *dataplane.Index, ip netip.Addr) (why string, used bool) {
	if l := ix.User(ip); l == nil || ps.enis.owns(ip, l) {
		return "", false
	}
	return ix.Uses(ip)
}

// endCoolDown says whether address i has left the state.
func (ps *pods) endCoolDown(now time.Duration, i int32, ix *dataplane.Index) bool {
	a := &ps.pool.Addrs[i]
	if why, used := ps.uses(ix, a.IP); used && ps.Witness.Kernel && ps.policy.Veto(why) {
		ps.note(Note{Point: AddressVetoed, Warn: true, Addr: a.IP, Text: why})
		ps.pool.quarantine(i, why)
		return true
	}
	if ps.pool.unclaimed(now, a) {
		return false
	}
	if a.ENI < 0 || ps.enis.isPrimary(a.IP) {
		ps.pool.forget(i)
		return true
	}
	if _, left := ix.Residue(a.IP); left && a.Att != (Attachment{}) {
		if ps.pool.elsewhere(a.Att, i) {
			// the attachment is back with another address, and its lane is its own: residue removes the rest
			return false
		}
		ps.note(Note{Point: ResidueRemoved, Addr: a.IP})
		a.run(releasing)
		a.cool(inKernel)
		a.Tag = ps.Steps
		ps.pool.key(i)
		ps.removePod(i)
		return false
	}
	ps.pool.free(i)
	return true
}
