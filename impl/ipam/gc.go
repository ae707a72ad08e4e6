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
func (ps *pods) check(now time.Duration, in Check) {
	if !ps.requests.accept(now, in.Req, VerbCheck, in.Att, in.Deadline) {
		return
	}
	if ps.Phase == recovering {
		ps.requests.end(in.Req, &Error{CodeTryAgain, "cni check " + in.Att.String() +
			": ipamd is still recovering: " + ps.host.waitsFor() + "; try again"})
		return
	}
	ps.requests.Checks = append(ps.requests.Checks, checking{in, ps.Steps})
	ps.evidence.want(LookKernel, now)
}

func (ps *pods) answerChecks(ix *dataplane.Index, asked uint64) {
	kept := ps.requests.Checks[:0]
	for _, c := range ps.requests.Checks {
		if c.Tag > asked {
			kept = append(kept, c)
			continue
		}
		if why := ps.drifted(c, ix); why != "" {
			ps.requests.end(c.Req, &Error{CodeDrifted, "cni check " + c.Att.String() + ": " + why})
		} else {
			ps.requests.end(c.Req, nil)
		}
	}
	ps.requests.Checks = kept
}

// drifted says how an attachment differs from what ADD left; "" when it does not.
func (ps *pods) drifted(c checking, ix *dataplane.Index) string {
	i, ok := ps.pool.rowOf(c.Att)
	if !ok || ps.pool.Addrs[i].State != Assigned {
		return "the attachment has no address; add it"
	}
	a := &ps.pool.Addrs[i]
	if a.Netns != 0 && c.Netns != 0 && a.Netns != c.Netns {
		return "address " + a.IP.String() + " belongs to another network namespace"
	}
	if _, used := ix.Uses(a.IP); !used {
		return "address " + a.IP.String() + " is in no namespace; end the sandbox"
	}
	if plan := dataplane.RepairPod(ps.pool.spec(i), ix); len(plan.Ops) > 0 {
		return "missing: " + plan.Ops[0].String() + "; it is being put back"
	}
	return ""
}

// collecting is a GC under way: rounds of observations, then what no sandbox has is released (rule K).
type collecting struct {
	GC
	Began           time.Duration
	Tag             uint64
	Kernel, Runtime bool // have answered in this round
	Rounds          int
}

func (ps *pods) gc(now time.Duration, in GC) {
	if !ps.requests.accept(now, in.Req, VerbGC, Attachment{Network: in.Network}, in.Deadline) {
		return
	}
	switch {
	case ps.Phase == recovering || ps.requests.Collecting.Req != 0:
		ps.requests.end(in.Req, &Error{CodeTryAgain, "cni gc " + in.Network +
			": ipamd is recovering or another GC runs; try again"})
	case in.Absent:
		ps.note(Note{Point: GCRefused, Warn: true, Text: "no list"})
		ps.requests.end(in.Req, &Error{CodeConfig, "cni gc " + in.Network +
			": cni.dev/valid-attachments is missing, which is not an empty list; name the attachments that live"})
	default:
		ps.requests.Collecting = collecting{GC: in, Began: now, Tag: ps.Steps}
		for i := range ps.pool.Addrs {
			ps.pool.Addrs[i].Lists = 0
		}
		ps.collectOr(now, now)
	}
}

// collectOr ends a GC, or lets it look again at an instant. It ends when an allocation that no source has shown in any round so far
// would be released: there is no stronger case than that.
func (ps *pods) collectOr(now, at time.Duration) {
	rounds := ps.requests.Collecting.Rounds
	if ps.policy.Collect(Absentee{Runtime: ps.Set.Runtime, Absences: rounds, KernelAbsent: rounds, Lists: rounds}) {
		ps.collect(now)
		return
	}
	ps.lookForGC(at)
}

func (ps *pods) lookForGC(at time.Duration) {
	ps.evidence.want(LookKernel, at)
	if ps.Set.Runtime {
		ps.evidence.want(LookRuntime, at)
	} else {
		ps.requests.Collecting.Runtime = true
	}
}

// collected counts a whole answer of a source towards the GC under way.
func (ps *pods) collected(now time.Duration, w What, asked uint64) {
	c := &ps.requests.Collecting
	if c.Req == 0 || asked < c.Tag {
		return
	}
	c.Kernel = c.Kernel || w == LookKernel
	c.Runtime = c.Runtime || w == LookRuntime
	if !c.Kernel || !c.Runtime {
		return
	}
	for i := range ps.pool.Addrs {
		if ps.unlisted(&ps.pool.Addrs[i]) {
			ps.pool.Addrs[i].Lists++
		}
	}
	c.Rounds++
	c.Kernel, c.Runtime, c.Tag = false, false, ps.Steps+1
	ps.collectOr(now, now+time.Second)
}

// unlisted says whether GC speaks of a row and does not name it. What was allocated since the caller made its list is not meant.
func (ps *pods) unlisted(a *address) bool {
	c := &ps.requests.Collecting
	return a.State == Assigned && a.Op == noOp && a.Att.Network == c.Network && a.Allocated < c.Began &&
		!slices.ContainsFunc(c.Valid, func(v Attachment) bool { return v.ContainerID == a.Att.ContainerID && v.IfName == a.Att.IfName })
}

func (ps *pods) collect(now time.Duration) {
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if !ps.unlisted(a) {
			continue
		}
		if !ps.policy.Collect(ps.absentee(now, a)) {
			ps.note(Note{Point: GCRefused, Warn: true, Att: a.Att, Addr: a.IP, Text: "runtime or kernel know it"})
			continue
		}
		ps.note(Note{Point: GCReleased, Att: a.Att, Addr: a.IP})
		ps.release(now, int32(i))
	}
	req := ps.requests.Collecting.Req
	ps.requests.Collecting = collecting{}
	ps.requests.end(req, nil)
}
