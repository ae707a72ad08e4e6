package ipam

import (
	"cmp"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// delPatience is how long a DEL waits for a daemon that recovers. Longer, and its plugin leaves it as an intent (rule F).
const delPatience = 2 * time.Second

// del: Save(cooling) → Saved → Apply(removal) → Applied → Reply (contract 3).
func (n *Node) del(now time.Duration, in Del) {
	deadline := in.Deadline
	if n.Phase == recovering && !in.Intent {
		deadline = min(cmp.Or(deadline, never), now+delPatience+replyMargin)
	}
	if !n.accept(now, in.Req, VerbDel, in.Att, deadline) {
		return
	}
	if !n.policy.Speaks(VerbDel, in.Version, n.Version) {
		n.refuseVersion(in.Req, VerbDel, in.Att, in.Version)
		return
	}
	if n.Phase == recovering { // what the checkpoint does not know, the kernel may
		n.Queued = append(n.Queued, queued{Del: in.kept()})
		return
	}
	if n.busy(in.Att) {
		n.enqueue(queued{Del: in.kept()})
		return
	}
	n.startDel(now, in)
}

// kept is a copy that outlives the step; most requests do not.
func (in *Del) kept() *Del {
	out := *in
	return &out
}

func (n *Node) startDel(now time.Duration, in Del) {
	n.cancelWaiting(in.Att)
	ix, ok := n.find(&in)
	if !ok {
		n.note(Note{Point: DelUnknown, Att: in.Att})
		if err := n.policy.Unknown(in.Att); err != nil {
			n.fail(in.Req, err)
		} else {
			n.succeed(in.Req)
		}
		return
	}
	n.Addrs[ix].Req = in.Req
	n.release(now, ix)
}

// find is the row that a DEL means (rule E), of those that nothing runs on: while something runs on its own, the DEL is queued.
func (n *Node) find(in *Del) (int32, bool) {
	for i := range n.Addrs {
		if a := &n.Addrs[i]; a.Keyed && a.Op == noOp && n.policy.Match(in, a.Att, a.Pod) {
			return int32(i), true
		}
	}
	return 0, false
}

// release starts the end of an allocation: from here on its address cools.
func (n *Node) release(now time.Duration, ix int32) {
	a := &n.Addrs[ix]
	if a.State == Assigned || a.State == Quarantined {
		n.rest(now, ix, false)
	}
	a.Op, a.Then, a.Tries, a.Retry = releasing, nil, 0, never
	a.Evidence, a.Clean = "", 0
	n.saveRelease(ix)
}

func (n *Node) saveRelease(ix int32) {
	a := &n.Addrs[ix]
	a.Tag = n.Steps
	n.putAddress(ix)
	n.waitSaved(RunStore, saveRelease, ix, a.Tag)
}

func (n *Node) releaseSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &n.Addrs[ix]
	if a.Op != releasing || a.Tag != tag {
		return
	}
	if ok {
		n.removePod(ix)
		return
	}
	// The store still says assigned; so do we to the caller, and go on trying: the address stays withheld meanwhile.
	if a.Req != 0 {
		n.fail(a.Req, &Error{CodeTryAgain, "cni del " + a.Att.String() + ": the release could not be made durable: " + n.Troubles[troubleStore] + "; try again"})
		a.Req = 0
	}
	n.retryLater(now, a)
}

func (n *Node) removePod(ix int32) {
	a := &n.Addrs[ix]
	n.emit(&Apply{ID: n.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att}, Plan: dataplane.PodRemoval(n.spec(ix))})
}

func (n *Node) releaseApplied(now time.Duration, ix int32, in Applied) {
	a := &n.Addrs[ix]
	a.Tag = n.Steps
	if in.Err != nil {
		n.retryLater(now, a)
		return
	}
	att, req, then := a.Att, a.Req, a.Then
	a.Op, a.Req, a.Then, a.Removed, a.Flows = noOp, 0, nil, true, remembered
	a.ReleasedAt = now // the cool-down counts from when the namespace has lost the address
	n.unkey(ix)
	n.cools(a)
	n.succeed(req)
	if then != nil && n.isOpen(then.Req) {
		n.startAdd(now, *then)
	}
	n.runQueued(now, att)
}

// removalPause bounds how often a removal that fails is tried again.
const (
	removalPause    = time.Second
	maxRemovalPause = time.Minute
)

// retryRemovals goes on with releases whose Save or Apply failed. The whole release is repeated: both are idempotent.
func (n *Node) retryRemovals(now time.Duration) {
	n.RetryAt = never
	for i := range n.Addrs {
		a := &n.Addrs[i]
		switch {
		case a.Retry == never || a.Op != releasing && a.Op != recording:
		case a.Retry <= now:
			a.Retry = never
			if a.Op == recording {
				n.record(int32(i))
				n.note(Note{Point: RecoveredKernel, Att: a.Att, Addr: a.IP})
			} else {
				n.saveRelease(int32(i))
			}
		default:
			n.RetryAt = min(n.RetryAt, a.Retry)
		}
	}
}
