package ipam

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// pods are the attachments: what is asked for them (add.go, del.go, gc.go), in which order, and what the kernel and
// the runtime show of them. One operation runs per attachment.
type pods struct {
	*life    `json:"-"`
	ledger   *ledger
	requests *requests
	evidence *evidence
	enis     *enis
	pool     *pool
	host     *host
}

// record makes a row durable that recovery found; what is asked about the attachment waits for it (contract 3).
func (ps *pods) record(ix int32) {
	a := &ps.pool.Addrs[ix]
	if a.Op != recording { // else its Save failed
		a.run(recording)
	}
	a.Retry = never
	ps.pool.putAddress(ix)
	ps.ledger.waitSaved(RunStore, saveRecord, ix, a.Tag)
}

func (ps *pods) recordSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &ps.pool.Addrs[ix]
	if a.Op != recording || a.Tag != tag {
		return
	}
	if !ok {
		ps.pool.retryLater(now, a)
		return
	}
	att, was := a.Att, a.Was
	a.run(noOp)
	a.Tries, a.Was = 0, Attachment{}
	ps.evidence.want(LookKernel, now+coolBatch) // what was recovered is compared with its plan
	ps.runQueued(now, att)
	ps.runQueued(now, was)
}

// expire answers requests whose time is up. What runs for them runs on, and is then undone.
func (ps *pods) expire(now time.Duration) {
	for i := 0; i < len(ps.requests.Open) && ps.requests.due <= now; {
		o := ps.requests.Open[i]
		if o.Deadline-replyMargin > now {
			i++
			continue
		}
		why := ps.whyNot(o)
		ps.abandon(o.Req)
		ps.requests.end(o.Req, &Error{CodeTryAgain, why})
		ps.runQueued(now, o.Att)
		i = 0 // that may have answered others
		if o.Verb == VerbAdd {
			ps.note(Note{Point: AddTimedOut, Att: o.Att})
		}
	}
}

// gone notes that the caller hung up and will not read the answer.
func (ps *pods) gone(r Req) {
	if _, ok := ps.requests.close(r); ok {
		ps.abandon(r)
	}
}

// abandon takes a request out of whatever waits or runs for it.
func (ps *pods) abandon(r Req) {
	for i := range ps.requests.Waiting {
		if ps.requests.Waiting[i].Req == r {
			ps.requests.dropWaiting(i)
			return
		}
	}
	for i := range ps.requests.Queued {
		if ps.requests.Queued[i].req() == r {
			ps.requests.Queued = append(ps.requests.Queued[:i], ps.requests.Queued[i+1:]...)
			return
		}
	}
	for i := range ps.requests.Agains {
		if ps.requests.Agains[i].Req == r {
			ps.requests.Agains = append(ps.requests.Agains[:i], ps.requests.Agains[i+1:]...)
			return
		}
	}
	for i := range ps.requests.Checks {
		if ps.requests.Checks[i].Req == r {
			ps.requests.Checks = append(ps.requests.Checks[:i], ps.requests.Checks[i+1:]...)
			return
		}
	}
	if ps.requests.Collecting.Req == r {
		ps.requests.Collecting = collecting{}
		return
	}
	for i := range ps.pool.Addrs {
		if a := &ps.pool.Addrs[i]; a.Req == r {
			a.Req = 0
			return
		} else if a.Then != nil && a.Then.Req == r {
			a.Then = nil
			return
		}
	}
}

// whyNot explains a request that ran out of time (rule J).
func (ps *pods) whyNot(o open) string {
	for i := range ps.requests.Waiting {
		if ps.requests.Waiting[i].Req == o.Req {
			return ps.noAddress(o.Deadline, &ps.requests.Waiting[i])
		}
	}
	subject := "cni " + o.Verb.String() + " " + o.Att.String() + ": "
	if ps.Phase == recovering {
		return subject + "ipamd is still recovering: " + ps.host.waitsFor() + "; try again"
	}
	return subject + "the node's work on it did not end in time; it goes on and is undone or kept; try again"
}

// noAddress explains why an ADD gets no address.
func (ps *pods) noAddress(now time.Duration, in *Add) string {
	if ps.Phase == recovering {
		return "cni add " + in.Pod.Name + " (sandbox " + in.Att.String() + "): ipamd is still recovering: " +
			ps.host.waitsFor() + "; try again"
	}
	why := "the node can carry no more; try again when pods have ended"
	switch {
	case ps.Troubles[troubleEC2] != "":
		why = ps.Troubles[troubleEC2]
	case ps.Troubles[troubleSurvey] != "":
		why = ps.Troubles[troubleSurvey]
	case ps.Deaf:
		why = ps.Troubles[troubleIMDS] + "; until it answers, only addresses that are on record and free are given"
	case ps.Set.IMDSOnly:
		why = "ENABLE_IMDS_ONLY_MODE: no address is asked for, and what metadata lists is taken when it has done so " +
			"for " + lasting.String()
	case !ps.Surveyed:
		why = "EC2 has not said yet which network interfaces are attached; try again"
	case ps.enis.unlinked() != "":
		why = ps.enis.unlinked()
	case ps.pool.growing():
		why = "growth is under way; try again"
	case ps.enis.subnets.customNetworking() && ps.enis.subnets.unusable(true) != "":
		why = ps.enis.subnets.unusable(true)
	case ps.enis.shutOut() != "":
		why = ps.enis.shutOut()
	}
	b := make([]byte, 0, 256) // a node that waits for growth says this to every pod every half minute
	b = append(append(b, "cni add "...), in.Pod.Name...)
	b = append(in.Att.append(append(b, " (sandbox "...)), "): no address: "...)
	b = append(strconv.AppendInt(b, int64(ps.pool.Count[Assigned]), 10), " assigned, "...)
	b = append(strconv.AppendInt(b, int64(ps.pool.Count[Cooling]), 10), " cool down, "...)
	b = append(strconv.AppendInt(b, int64(ps.pool.Count[Quarantined]), 10), " quarantined, "...)
	b = append(strconv.AppendInt(b, int64(len(ps.requests.Waiting)), 10), " pods wait; "...)
	return string(append(b, why...))
}

// runQueued goes on with what waited for the attachment: one operation, unless that one ends at once.
func (ps *pods) runQueued(now time.Duration, att Attachment) {
	if len(ps.requests.Queued) == 0 || ps.Phase == recovering { // tryRecover goes on with all of them
		return
	}
	if ps.pool.busy(att) || ps.requests.waits(att) {
		return
	}
	for i := 0; i < len(ps.requests.Queued); i++ {
		if ps.requests.Queued[i].att() != att {
			continue
		}
		q := ps.requests.Queued[i]
		ps.requests.Queued = append(ps.requests.Queued[:i], ps.requests.Queued[i+1:]...)
		if q.Add != nil {
			ps.startAdd(now, *q.Add)
		} else {
			ps.startDel(now, *q.Del)
		}
		if ps.pool.busy(att) {
			return
		}
		i = -1
	}
}

// claimed gives a quarantined address to the sandbox that claims it, when the kernel shows a living veth behind the
// address: runtime and kernel together name an attachment that another CNI made.
func (ps *pods) claimed(ix int32, l *dataplane.Link) bool {
	a := &ps.pool.Addrs[ix]
	if a.Claim == nil || l == nil || !l.Veth || !l.PeerLive {
		return false
	}
	att := Attachment{network, a.Claim.ID, "eth0"}
	if ps.pool.elsewhere(att, ix) {
		return false
	}
	a.Att, a.Pod, a.SeenCRI, a.Evidence, a.Clean = att, a.Claim.Pod, true, "", 0
	a.Veth, a.MAC, a.Claim = l.Name, l.MAC, nil
	ps.pool.become(ix, Assigned)
	ps.pool.key(ix)
	ps.record(ix)
	ps.note(Note{Point: RecoveredRuntime, Att: att, Addr: a.IP})
	ps.trust(a, l, true)
	return true
}

// reap releases an allocation whose DEL never came, once that is proven (rule D).
func (ps *pods) reap(now time.Duration, ix int32) {
	a := &ps.pool.Addrs[ix]
	if ps.Phase != serving {
		return
	}
	if !ps.policy.Gone(ps.absentee(now, a)) {
		return
	}
	ps.note(Note{Point: ReapedSandbox, Att: a.Att, Addr: a.IP})
	ps.release(now, ix)
}

func (ps *pods) absentee(now time.Duration, a *address) Absentee {
	return Absentee{Runtime: ps.Set.Runtime, Listed: a.Listed, Ever: a.SeenCRI, Absences: a.Absent, Ended: a.Ended,
		KernelLive:   a.Live,
		KernelAbsent: a.Dead, Age: now - a.Allocated, PodGone: a.PodGone, Lists: a.Lists}
}

// added tells of pods that have addresses of the node beyond their own. It takes NET_ADMIN in a pod, and no other
// pod's address may be withheld because of it; but the pod gets nothing that is sent to them, and reaches none of
// those that have them.
func (ps *pods) added(ix *dataplane.Index) {
	type has struct {
		link  *dataplane.Link
		count int
		as    netip.Addr
	}
	var pods []has
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if a.State == 0 {
			continue
		}
		l := ix.Beyond(a.IP)
		if l == nil {
			continue
		}
		at := slices.IndexFunc(pods, func(h has) bool { return h.link == l })
		if at < 0 {
			at = len(pods)
			pods = append(pods, has{link: l, as: a.IP})
		}
		pods[at].count++
	}
	var said []string
	for _, h := range pods {
		who := "the pod behind " + h.link.Name
		if i, ok := ps.pool.rowOfLink(h.link); ok && ps.pool.Addrs[i].Pod.Name != "" {
			who = "pod " + ps.pool.Addrs[i].Pod.Namespace + "/" + ps.pool.Addrs[i].Pod.Name
		}
		said = append(said, who+" has "+strconv.Itoa(h.count)+" of this node's addresses beyond its own, as "+h.as.String())
	}
	text := strings.Join(said, "; ")
	if text != "" {
		text += ": nothing that is sent to them gets there, and other pods are given them; take NET_ADMIN from it"
	}
	if text != "" && text != ps.Troubles[troubleAdded] {
		ps.note(Note{Point: AddressesAdded, Warn: true, Text: text})
	}
	ps.trouble(troubleAdded, text)
}

// testify records for every allocation whether the kernel still has it, and adopts attachments that only the kernel
// knows. It says whether all of them live and none was left out.
func (ps *pods) testify(now time.Duration, ix *dataplane.Index, asked uint64) (alive bool) {
	if ps.Witness.Kernel {
		ps.adoptLinks(ix, asked)
	}
	alive = true
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if a.State != Assigned || a.Op != noOp || a.Tag > asked {
			alive = alive && a.State != Assigned
			continue
		}
		l := ix.LinkByAlias(a.link())
		u := ix.User(a.IP)
		if l == nil && u != nil && u.Veth && u.Alias == "" && ps.takeOver(int32(i), u) {
			alive = false // for this look
			continue
		}
		a.Live = u != nil || l != nil && l.PeerLive
		if a.Live {
			a.Dead = 0
		} else {
			a.Dead++
			alive = false
		}
		ps.reap(now, int32(i))
	}
	return alive
}

// takeOver finds the link of an allocation that has no alias. One that another CNI made is kept as it is: the pod's
// ARP entry names its MAC. That is durable before the link gets our alias (RepairPod). One that we made, as its
// namespace in the record says, has the MAC that is the alias's function, or gets it back. It says whether that was
// news.
func (ps *pods) takeOver(ix int32, l *dataplane.Link) bool {
	a := &ps.pool.Addrs[ix]
	mac := a.MAC
	if mac == "" && a.Netns == 0 {
		mac = l.MAC
		ps.trust(a, l, false)
	}
	if a.Veth == l.Name && a.MAC == mac {
		return false
	}
	a.Veth, a.MAC = l.Name, mac
	if a.Op == noOp {
		ps.record(ix)
	} else {
		ps.pool.putAddress(ix)
	}
	return true
}

// trust tells of a MAC that is taken as it is, because neither record nor kernel say what it should be. Only the pod's
// own neighbour entry does, and that is not visible from outside.
func (ps *pods) trust(a *address, l *dataplane.Link, lost bool) {
	if !l.Adopted && l.MAC != dataplane.VethMAC(a.link()) {
		ps.note(Note{Point: MACUnrecorded, Warn: lost, Att: a.Att, Addr: a.IP, Text: "the MAC of " + l.Name +
			" is taken for right: " + l.MAC +
			"; if its pod " + a.Pod.Namespace + "/" + a.Pod.Name + " does not reach " + dataplane.Gateway().String() +
			", its permanent neighbour entry names another one: delete the pod"})
	}
}

// adoptLinks turns a living host veth with our alias that no row knows into an allocation: its exact key is in the
// kernel (rule E).
func (ps *pods) adoptLinks(ix *dataplane.Index, asked uint64) {
	for i := range ix.Observation.Links {
		l := &ix.Observation.Links[i]
		if l.Alias == "" || !l.PeerLive {
			continue
		}
		if len(l.PeerAddresses) == 1 { // nearly always it is that of a row we know
			if j, known := ps.pool.byAddress[l.PeerAddresses[0]]; known && ps.pool.Addrs[j].State == Assigned &&
				ps.pool.Addrs[j].link() == l.Alias {
				continue
			}
		}
		network, id, ifName, ip, ok := dataplane.ParseAlias(l.Alias)
		if !ok {
			continue
		}
		j, known := ps.pool.byAddress[ip]
		if !known {
			continue
		}
		a := &ps.pool.Addrs[j]
		att := Attachment{network, id, ifName}
		if _, taken := ps.pool.rowOf(att); taken || a.Tag > asked || a.Op != noOp {
			continue
		}
		if a.State == Free || a.State == Quarantined && !a.Keyed {
			a.Att, a.Veth, a.MAC = att, l.Name, ownMAC(l)
			ps.pool.become(j, Assigned)
			ps.pool.key(j)
			ps.record(j)
			ps.note(Note{Point: RecoveredKernel, Att: att, Addr: ip})
		}
	}
}

// heard notes of each allocation whether the runtime lists its sandbox, and says whether one is missing.
func (ps *pods) heard(listed map[string]*Sandbox, asked uint64) (missing bool) {
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
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
		missing = true
	}
	return missing
}

// seenPods reads the API server's list: a hint to look, never proof (rule D).
func (ps *pods) seenPods(now time.Duration, in *Seen, whole bool) {
	if !whole || ps.Phase == recovering {
		return
	}
	type named struct{ namespace, name string }
	names := make(map[named]bool, len(in.Pods))
	uids := make(map[string]bool, len(in.Pods))
	for _, p := range in.Pods {
		names[named{p.Namespace, p.Name}], uids[p.UID] = true, true
	}
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if a.State != Assigned || a.Pod.Name == "" {
			continue
		}
		gone := !names[named{a.Pod.Namespace, a.Pod.Name}]
		if a.Pod.UID != "" {
			gone = !uids[a.Pod.UID]
		}
		if gone && !a.PodGone {
			ps.evidence.want(LookRuntime, now)
			ps.evidence.want(LookKernel, now)
		}
		ps.evidence.calm = ps.evidence.calm && a.PodGone == gone
		a.PodGone = gone
	}
}

// repairPods puts back what the kernel lacks of living attachments.
func (ps *pods) repairPods(now time.Duration, ix *dataplane.Index, asked uint64) {
	for i := range ps.pool.Addrs {
		a := &ps.pool.Addrs[i]
		if a.State != Assigned || a.Op != noOp || a.Tag > asked || a.ENI < 0 && !ps.pool.unclaimed(now, a) {
			continue
		}
		if a.Veth == "" { // a record of version 1, read when the link could not be seen
			if l := ix.LinkByAlias(a.link()); l != nil {
				a.Veth = l.Name
			}
		}
		plan := ps.policy.Repair(dataplane.RepairPod(ps.pool.spec(int32(i)), ix))
		if len(plan.Ops) == 0 {
			continue
		}
		ps.note(Note{Point: DriftRepaired, Warn: true, Att: a.Att, Addr: a.IP, Text: plan.Ops[0].Kind.String()})
		ps.repairPod(int32(i), plan)
	}
}
