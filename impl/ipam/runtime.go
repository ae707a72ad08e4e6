package ipam

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// seenRuntime reads the runtime's list of sandboxes.
func (n *Node) seenRuntime(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		why := in.Err
		if why == "" {
			why = "the list lacks ipamd's own sandbox: it is another runtime's"
		}
		if n.Troubles[troubleRuntime] == "" {
			n.note(Note{Point: RuntimeListRefused, Warn: true, Text: why})
		}
		n.trouble(troubleRuntime, "the runtime's list of sandboxes cannot be believed: "+why)
	} else {
		n.trouble(troubleRuntime, "")
	}
	if n.Phase == recovering {
		n.Listed, n.ListedOK = append([]Sandbox(nil), in.Sandboxes...), whole
		n.Answered = true

		return
	}
	if !whole {
		return
	}
	listed := make(map[string]*Sandbox, len(in.Sandboxes))
	for i := range in.Sandboxes {
		listed[in.Sandboxes[i].ID] = &in.Sandboxes[i]
	}
	suspicious := false
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Assigned || a.Op != noOp || a.Tag > asked {
			continue
		}
		b, ok := listed[a.Att.ContainerID]
		a.Listed = ok
		if ok {
			a.SeenCRI, a.Absent = true, 0
			if a.Ended++; b.Ready {
				a.Ended = 0
			}
			if a.Pod.Name == "" {
				a.Pod = b.Pod // recovered from the kernel, which does not know names
			}
			continue
		}
		a.Absent, a.Ended = a.Absent+1, 0
		suspicious = true
	}
	n.claims(in.Sandboxes, asked)
	if suspicious {
		n.calm = false
		n.want(LookKernel, now)
		n.want(LookRuntime, now+runtimePeriod/2)
	}
	n.drainsRuntime(now, listed, asked)
	n.collected(now, LookRuntime, asked)
}

// claimed gives a quarantined address to the sandbox that claims it, when the kernel shows a living veth behind the address: runtime and
// kernel together name an attachment that another CNI made.
func (n *Node) claimed(ix int32, l *dataplane.Link) bool {
	a := &n.Addrs[ix]
	if a.Claim == nil || l == nil || !l.Veth || !l.PeerLive {
		return false
	}
	att := Attachment{network, a.Claim.ID, "eth0"}
	if n.elsewhere(att, ix) {
		return false
	}
	a.Att, a.Pod, a.SeenCRI, a.Evidence, a.Clean = att, a.Claim.Pod, true, "", 0
	a.Veth, a.MAC, a.Claim = l.Name, l.MAC, nil
	n.become(ix, Assigned)
	n.key(ix)
	n.record(ix)
	n.note(Note{Point: RecoveredRuntime, Att: att, Addr: a.IP})
	n.trust(a, l, true)
	return true
}

// seenPods reads the API server's list: a hint to look, never proof (rule D).
func (n *Node) seenPods(now time.Duration, in *Seen, whole bool) {
	if !whole || n.Phase == recovering {
		return
	}
	type named struct{ namespace, name string }
	pods := make(map[named]bool, len(in.Pods))
	uids := make(map[string]bool, len(in.Pods))
	for _, p := range in.Pods {
		pods[named{p.Namespace, p.Name}], uids[p.UID] = true, true
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Assigned || a.Pod.Name == "" {
			continue
		}
		gone := !pods[named{a.Pod.Namespace, a.Pod.Name}]
		if a.Pod.UID != "" {
			gone = !uids[a.Pod.UID]
		}
		if gone && !a.PodGone {
			n.want(LookRuntime, now)
			n.want(LookKernel, now)
		}
		n.calm = n.calm && a.PodGone == gone
		a.PodGone = gone
	}
}

// reap releases an allocation whose DEL never came, once that is proven (rule D).
func (n *Node) reap(now time.Duration, ix int32) {
	a := &n.Addrs[ix]
	if n.Phase != serving {
		return
	}
	if !n.policy.Gone(n.absentee(now, a)) {
		return
	}
	n.note(Note{Point: ReapedSandbox, Att: a.Att, Addr: a.IP})
	n.release(now, ix)
}

func (n *Node) absentee(now time.Duration, a *address) Absentee {
	return Absentee{Runtime: n.Set.Runtime, Listed: a.Listed, Ever: a.SeenCRI, Absences: a.Absent, Ended: a.Ended, KernelLive: a.Live,
		KernelAbsent: a.Dead, Age: now - a.Allocated, PodGone: a.PodGone, Lists: a.Lists}
}

// seenIMDS reads instance metadata: who we are, and which ENIs carry which addresses. It lags (amazon-ecs-cni-plugins#66), so it
// neither adds nor takes away (rule A): it is a reason to ask EC2.
func (n *Node) seenIMDS(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		n.trouble(troubleIMDS, "instance metadata: "+in.Err)
		if n.Phase == recovering {
			n.recollect()
		}
		return
	}
	n.trouble(troubleIMDS, "")
	if in.IMDS == nil {
		return
	}
	if !n.Known || n.Deaf && n.Phase == recovering {
		n.Deaf = false
		n.Inst, n.Known = in.IMDS.Instance, true
		n.Inst.VPC, n.Inst.Limits = slices.Clone(n.Inst.VPC), n.Inst.Limits.bounded()
	}
	if n.Phase == recovering {
		n.Cloud = cloneENIs(in.IMDS.ENIs)
		return
	}
	if n.Deaf {
		n.hears(now, in.IMDS.Instance)
	}
	n.vpcChanged(in.IMDS.Instance.VPC)
	n.adoptENIs(now, LookIMDS, in.IMDS.ENIs, asked)
	n.forgetDepartures(now)
	n.absentENIs(now, in.IMDS.ENIs, asked)
	n.absentOthers(now, in.IMDS.ENIs)
	n.tellNext()
}
