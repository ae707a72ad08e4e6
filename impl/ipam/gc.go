package ipam

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// checking is a CHECK that waits for an observation of the kernel.
type checking struct {
	Check
	Tag uint64
}

// check compares an attachment with the kernel as it is now.
func (n *Node) check(now time.Duration, in Check) {
	if !n.accept(now, in.Req, VerbCheck, in.Att, in.Deadline) {
		return
	}
	if n.Phase == recovering {
		n.fail(in.Req, &Error{CodeTryAgain, "cni check " + in.Att.String() + ": ipamd is still recovering: " + n.waitsFor() + "; try again"})
		return
	}
	n.Checks = append(n.Checks, checking{in, n.Steps})
	n.want(LookKernel, now)
}

func (n *Node) answerChecks(ix *dataplane.Index, asked uint64) {
	kept := n.Checks[:0]
	for _, c := range n.Checks {
		if c.Tag > asked {
			kept = append(kept, c)
			continue
		}
		if why := n.drifted(c, ix); why != "" {
			n.fail(c.Req, &Error{CodeDrifted, "cni check " + c.Att.String() + ": " + why})
		} else {
			n.succeed(c.Req)
		}
	}
	n.Checks = kept
}

// drifted says how an attachment differs from what ADD left; "" when it does not.
func (n *Node) drifted(c checking, ix *dataplane.Index) string {
	i, ok := n.rowOf(c.Att)
	if !ok || n.Addrs[i].State != Assigned {
		return "the attachment has no address; add it"
	}
	a := &n.Addrs[i]
	if a.Netns != 0 && c.Netns != 0 && a.Netns != c.Netns {
		return "address " + a.IP.String() + " belongs to another network namespace"
	}
	if _, used := ix.Uses(a.IP); !used {
		return "address " + a.IP.String() + " is in no namespace; end the sandbox"
	}
	if plan := dataplane.RepairPod(n.spec(i), ix); len(plan.Ops) > 0 {
		return "missing: " + plan.Ops[0].String() + "; it is being put back"
	}
	return ""
}

// collecting is a GC under way: rounds of observations, then what nobody has is released (rule K).
type collecting struct {
	GC
	Began           time.Duration
	Tag             uint64
	Kernel, Runtime bool // have answered in this round
	Rounds          int
}

func (n *Node) gc(now time.Duration, in GC) {
	if !n.accept(now, in.Req, VerbGC, Attachment{Network: in.Network}, in.Deadline) {
		return
	}
	switch {
	case n.Phase == recovering || n.Collecting.Req != 0:
		n.fail(in.Req, &Error{CodeTryAgain, "cni gc " + in.Network + ": ipamd is recovering or another GC runs; try again"})
	case in.Absent:
		n.note(Note{Point: GCRefused, Warn: true, Text: "no list"})
		n.fail(in.Req, &Error{CodeConfig, "cni gc " + in.Network + ": cni.dev/valid-attachments is missing, which is not an empty list; name the attachments that live"})
	default:
		n.Collecting = collecting{GC: in, Began: now, Tag: n.Steps}
		for i := range n.Addrs {
			n.Addrs[i].Lists = 0
		}
		n.collectOr(now, now)
	}
}

// collectOr ends a GC, or lets it look again at an instant. It ends when an allocation that no source has shown in any round so far
// would be released: there is no stronger case than that.
func (n *Node) collectOr(now, at time.Duration) {
	rounds := n.Collecting.Rounds
	if n.policy.Collect(Absentee{Runtime: n.Set.Runtime, Absences: rounds, KernelAbsent: rounds, Lists: rounds}) {
		n.collect(now)
		return
	}
	n.lookForGC(at)
}

func (n *Node) lookForGC(at time.Duration) {
	n.want(LookKernel, at)
	if n.Set.Runtime {
		n.want(LookRuntime, at)
	} else {
		n.Collecting.Runtime = true
	}
}

// collected counts a whole answer of a source towards the GC under way.
func (n *Node) collected(now time.Duration, w What, asked uint64) {
	c := &n.Collecting
	if c.Req == 0 || asked < c.Tag {
		return
	}
	c.Kernel = c.Kernel || w == LookKernel
	c.Runtime = c.Runtime || w == LookRuntime
	if !c.Kernel || !c.Runtime {
		return
	}
	for i := range n.Addrs {
		if n.unlisted(&n.Addrs[i]) {
			n.Addrs[i].Lists++
		}
	}
	c.Rounds++
	c.Kernel, c.Runtime, c.Tag = false, false, n.Steps+1
	n.collectOr(now, now+time.Second)
}

// unlisted says whether GC speaks of a row and does not name it. What was allocated since the caller made its list is not meant.
func (n *Node) unlisted(a *address) bool {
	c := &n.Collecting
	return a.State == Assigned && a.Op == noOp && a.Att.Network == c.Network && a.Allocated < c.Began &&
		!slices.ContainsFunc(c.Valid, func(v Attachment) bool { return v.ContainerID == a.Att.ContainerID && v.IfName == a.Att.IfName })
}

func (n *Node) collect(now time.Duration) {
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if !n.unlisted(a) {
			continue
		}
		if !n.policy.Collect(n.absentee(now, a)) {
			n.note(Note{Point: GCRefused, Warn: true, Att: a.Att, Addr: a.IP, Text: "runtime or kernel know it"})
			continue
		}
		n.note(Note{Point: GCReleased, Att: a.Att, Addr: a.IP})
		n.release(now, int32(i))
	}
	req := n.Collecting.Req
	n.Collecting = collecting{}
	n.succeed(req)
}
