package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

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

// seenAttached is the survey at the begin of a life. Metadata may not list yet what an earlier daemon attached, and a node that
// believes it has fewer ENIs than it has makes more than MAX_ENI.
func (n *Node) seenAttached(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		n.trouble(troubleSurvey, "EC2 does not say which network interfaces are attached, and before that none is made and no address is taken that is not on record: "+in.Err)
	}
	if !whole || n.Phase == recovering {
		return
	}
	n.Surveyed = true
	n.trouble(troubleSurvey, "")
	n.adoptENIs(now, LookAttached, in.ENIs, asked)
	n.Others = slices.DeleteFunc(n.Others, func(o other) bool { return o.Why == "" }) // EC2 does not list it
	n.reclaim(now)
	n.homeless(now, asked)
}

// homeless: what a pod has and no ENI of this node is not there, once EC2 has said so twice. Records that are lost do not name its ENI.
func (n *Node) homeless(now time.Duration, asked uint64) {
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Assigned || a.ENI >= 0 || n.otherByID(a.ENIID) != nil {
			continue
		}
		again := now + askPause
		if a.Op == noOp && a.Tag <= asked {
			a.Missing++
			again = max(again, a.Allocated+consistency)
			if n.policy.Absent(Absence{ByIMDS: 1, ByEC2: a.Missing, Young: now < a.Allocated+consistency}) {
				n.addressGone(int32(i))
				continue
			}
		}
		n.want(LookAttached, again)
	}
}

// reclaim looks for the ENIs that records name and that are not attached: a stranger took them while no daemon watched. What the
// pods of such an ENI have is out of reach until it is attached again, and nobody else deletes an idle one. What became of it nobody knows: its attach
// is in doubt like a lost one.
func (n *Node) reclaim(now time.Duration) {
	if n.policy.Lost(AttachENI) != Ask {
		return
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 || a.ENI >= 0 || a.ENIID == "" || n.otherByID(a.ENIID) != nil {
			continue
		}
		ix, known := n.eniByID(a.ENIID)
		if !known {
			ix = n.newENI(eni{ENI: ENI{ID: a.ENIID, Owner: n.Inst.ID}, Stage: Created, mutation: mutation{Doing: AttachENI, Lost: true, Next: now}, Since: now})
		}
		if a.State == Assigned { // what nobody has is the node's once EC2 lists it
			n.place(int32(i), ix)
		}
	}
}

// adoptENIs takes attached ENIs that are ours, and their addresses, into the books, as far as the source may vouch for them.
func (n *Node) adoptENIs(now time.Duration, by What, view []ENI, asked uint64) {
	for i := range view {
		v := &view[i]
		if v.Partial && v.ID == "" {
			n.want(LookIMDS, now+2*time.Second)
			continue
		}
		if by == LookIMDS && n.Set.IMDSOnly && !n.policy.Vouch(by) { // what is listed lasts, whether or not it can be taken now
			for _, ip := range v.Addresses {
				if _, known := n.byAddress[ip]; !known {
					n.lasts(now, ip, "")
				}
			}
		}
		ix, known := n.eniByID(v.ID)
		switch {
		case (by != LookIMDS || !known) && !n.ours(v, by):
			n.notOurs(now, v, by)
			continue
		case v.Partial:
			n.want(LookIMDS, now+2*time.Second)
			continue
		case known:
		case by == LookIMDS && n.otherByID(v.ID) != nil: // EC2's word stands
			continue
		case !n.linked(v) && !n.confirmed(now, by, netip.Addr{}, v.ID): // in this order: what is not confirmed counts as departed until it is
			n.hearsay(now, netip.Addr{}, v.ID)
			continue
		case n.hasDeparted(now, netip.Addr{}, v.ID):
			continue
		default:
			n.takeOther(v.ID)
			ix = n.adoptENI(now, v)
		}
		e := &n.ENIs[ix]
		if by != LookIMDS {
			e.Prefixes = v.Prefixes
		}
		if by == LookAttached && e.Stage < Ready && e.Wait == applying && !e.Stored {
			e.learn(v) // the kernel is at work on it, and EC2 is not
			continue
		}
		if known && (e.busy() || e.Tag > asked) || e.Stage != Ready && known && e.Stored {
			continue // contract 8: a view of before our own change
		}
		e.there()
		n.adoptAddresses(now, by, ix, v.Addresses)
	}
}

// confirmed says whether a source makes an address or an ENI that the records do not have the node's. Where nobody but metadata is asked, what it
// goes on listing is.
func (n *Node) confirmed(now time.Duration, by What, ip netip.Addr, id string) bool {
	return n.policy.Vouch(by) || n.Set.IMDSOnly && n.lasts(now, ip, id)
}

// linked says whether the kernel that recovery began with has the ENI's link: it is attached then, whatever else metadata may be wrong about.
func (n *Node) linked(v *ENI) bool {
	return v.Device == 0 || n.Kernel != nil && n.Kernel.Index().LinkByMAC(v.MAC) != nil
}

func (n *Node) adoptENI(now time.Duration, v *ENI) int32 {
	e := eni{ENI: *v, Stage: Attached, mutation: mutation{Next: now}, Since: now - linkPatience} // since when is not known; its link should be there
	e.Addresses = nil
	e.DOT = v.DOT || v.Attachment == "" // metadata does not say; EC2 does (incident 31: DeleteOnTermination was never set)
	if v.Device == 0 {
		e.Stage, e.Linked = Ready, true
	}
	n.want(LookKernel, now) // for its link
	return n.newENI(e)
}

// adoptAddresses: metadata says no more of what the records have than that it lists it, and where a pod's address is that is on no ENI.
func (n *Node) adoptAddresses(now time.Duration, by What, ix int32, list []netip.Addr) {
	for _, ip := range list {
		i, known := n.byAddress[ip]
		switch {
		case known && (n.policy.Vouch(by) || n.Addrs[i].ENI == ix || n.Addrs[i].ENI < 0 && n.Addrs[i].State == Assigned):
			n.place(i, ix)
			n.Addrs[i].ByIMDS = 0
			if n.Addrs[i].Missing > 0 { // EC2 has said no: it is given to nobody until EC2 says yes
				n.ask(ix, now)
			}
		case known:
		case !n.confirmed(now, by, ip, ""):
			n.hearsay(now, ip, "")
		case n.hasDeparted(now, ip, ""):
		default:
			n.discover(now, ip, ix, by == LookIMDS || n.listed(ip))
		}
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 || a.ENI != ix || a.Leaving || slices.Contains(list, a.IP) {
			continue
		}
		if a.ByIMDS++; a.ByIMDS == 1 {
			a.Unlisted = now
		}
		if n.policy.Absent(Absence{ByIMDS: a.ByIMDS, Lasting: n.Set.IMDSOnly && now-a.Unlisted >= lasting}) {
			n.addressGone(int32(i))
		} else {
			n.ask(ix, now)
		}
	}
}

// absentENIs asks EC2 about ENIs in service that metadata does not list.
func (n *Node) absentENIs(now time.Duration, view []ENI, asked uint64) {
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage != Ready || e.Wait != idle || e.Tag > asked {
			continue
		}
		if !e.Linked { // metadata lags behind the kernel, and counts twice: its next word is worth hearing soon
			n.want(LookIMDS, now+linkPause)
		}
		if slices.ContainsFunc(view, func(v ENI) bool { return v.ID == e.ID || v.MAC == e.MAC }) {
			e.ByIMDS = 0
			continue
		}
		e.unlisted(now)
		if n.policy.Absent(Absence{ByIMDS: e.ByIMDS, Lasting: n.Set.IMDSOnly && now-e.Unlisted >= lasting, Linked: e.Linked}) {
			n.missing(now, int32(i), nil)
		} else {
			n.ask(int32(i), now)
		}
	}
}

// links notices which ENIs have a link: attached ones go on, and one in service without is suspicious.
func (n *Node) links(now time.Duration, ix *dataplane.Index) {
	for i := range n.ENIs {
		e := &n.ENIs[i]
		if e.Stage == 0 || e.Foreign || e.MAC == "" {
			continue
		}
		e.Linked = ix.LinkByMAC(e.MAC) != nil
		switch {
		case e.Stage == Attached && e.Wait == idle && e.DOT && e.Linked:
			e.Next = now
		case e.Stage == Attached && e.Wait == idle && e.DOT && !e.Lost:
			n.want(LookKernel, now+linkPause)
			if now-e.Since >= linkPatience && !e.Asking {
				n.ask(int32(i), now)
			}
		case e.Stage == Ready && !e.Linked && e.ByIMDS == 0:
			n.want(LookIMDS, now)
		}
	}
}

// repairENI puts back what an ENI in service lacks.
func (n *Node) repairENI(ix int32, index *dataplane.Index) {
	e := &n.ENIs[ix]
	if e.Stage != Ready || e.Wait != idle || e.Device == 0 { // also between two tries of a call that EC2 refuses
		return
	}
	plan := n.policy.Repair(dataplane.RepairENI(n.eniSpec(e), index))
	if len(plan.Ops) == 0 {
		return
	}
	n.note(Note{Point: DriftRepaired, Warn: true, ENI: e.ID, Text: plan.Ops[0].Kind.String()})
	n.applyENI(ix, plan)
}

func cloneENIs(in []ENI) []ENI {
	out := slices.Clone(in)
	for i := range out {
		out[i].Addresses = slices.Clone(out[i].Addresses)
	}
	return out
}
