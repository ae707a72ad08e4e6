package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// drainPatience is how long evidence of disuse may take before the ENI is taken back into service.
const drainPatience = time.Minute

// disuse is which sources have said that they see no use of an ENI that drains, or of the addresses that are about to be
// unassigned, since they were last asked. A use that they see ends the drain.
type disuse struct {
	KernelOK  bool
	RuntimeOK bool
}

func (v *disuse) kernel() *bool  { return &v.KernelOK }
func (v *disuse) runtime() *bool { return &v.RuntimeOK }

// beginDrain starts to gather evidence that an ENI is unused.
func (n *Node) beginDrain(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	n.move(e, Draining, now)
	e.Next = now
	n.gather(now, ix)
}

// gather begins the evidence anew: what was heard before is of before.
func (n *Node) gather(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	e.disuse, e.Tag, n.calm = disuse{}, n.Steps, false
	n.want(LookKernel, now)
	if n.Set.Runtime {
		n.want(LookRuntime, now)
	}
}

// drain detaches an ENI once the evidence is there.
func (n *Node) drain(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	switch {
	case e.Attachment != "":
		n.giveBack(now, ix, DetachENI)
	case !e.Asking:
		n.ask(ix, now)
	}
}

// giveBack asks EC2 to take back an ENI or addresses once the evidence is there, and takes them into service again if that takes too long.
func (n *Node) giveBack(now time.Duration, ix int32, a Action) {
	e := &n.ENIs[ix]
	switch {
	case n.drainable(ix):
		n.mutate(now, ix, a)
	case now-e.Since >= drainPatience:
		n.stay(now, ix)
	default:
		e.Next = e.Since + drainPatience
	}
}

// drainable asks the policy.
func (n *Node) drainable(ix int32) bool {
	e := &n.ENIs[ix]
	v := Evidence{KernelAsked: n.Witness.Kernel, RuntimeAsked: n.Set.Runtime && n.Witness.Runtime, KernelAnswer: e.KernelOK, RuntimeAnswer: e.RuntimeOK}
	if !e.Trimming {
		v.Uses = e.Has[Assigned] + e.Has[Cooling] + e.Has[Quarantined]
	}
	for _, ip := range e.Before {
		if i, known := n.byAddress[ip]; e.Trimming && known && n.Addrs[i].State != Free {
			v.Uses++
		}
	}
	return n.policy.Drainable(v)
}

// stay takes an ENI, or the addresses about to be unassigned, back into service. While an earlier daemon's call may still take
// them away nothing of them is given to a pod.
func (n *Node) stay(now time.Duration, ix int32) {
	e := &n.ENIs[ix]
	if now < e.Doubt {
		e.Next = e.Doubt
		return
	}
	n.note(Note{Point: DrainStopped, Warn: true, ENI: e.ID})
	n.keep(ix)
	if e.Stage == Draining {
		n.move(e, Ready, e.Since)
		e.Addresses = nil
	}
	e.Unwired = false
	n.Warm.LessSince = 0 // not at once again: who claims the address now, claims it in a second
	n.atRest(ix)
	e.Tag = n.Steps
}

// keep lets the addresses of an ENI that were to be given back be given to pods again.
func (n *Node) keep(ix int32) {
	for i := range n.Addrs {
		if a := &n.Addrs[i]; a.ENI == ix && a.Leaving {
			a.Leaving = false
			n.FreeQueue = append(n.FreeQueue, int32(i))
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
func (n *Node) drains(now time.Duration, ix *dataplane.Index, asked uint64) {
	n.attest(now, asked, (*disuse).kernel, func(j int32, a *address) bool {
		if !n.Witness.Kernel {
			return false
		}
		why, used := ix.Uses(a.IP)
		if used && a.State == Free {
			n.quarantine(j, why)
		}
		return used
	})
}

// drainsRuntime uses the runtime's list as evidence: a ready sandbox that believes to have one of the addresses is a use.
func (n *Node) drainsRuntime(now time.Duration, listed map[string]*Sandbox, asked uint64) {
	var claimed map[netip.Addr]bool
	n.attest(now, asked, (*disuse).runtime, func(_ int32, a *address) bool {
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
func (n *Node) attest(now time.Duration, asked uint64, source func(*disuse) *bool, used func(int32, *address) bool) {
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if !e.gathering(asked) || *source(&e.disuse) {
			continue
		}
		uses := 0
		for j := range n.Addrs {
			if a := &n.Addrs[j]; a.State != 0 && a.ENI == int32(i) && e.leaves(a) && used(int32(j), a) {
				uses++
			}
		}
		if uses > 0 {
			n.stay(now, int32(i))
			continue
		}
		*source(&e.disuse), e.Next = true, now
	}
}
