package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// survey is what EC2 and metadata say of ENIs and their addresses, and what that means: which are the node's, which
// are gone or leaked, and whether a call whose answer was lost has happened.
type survey struct {
	*life    `json:"-"`
	ledger   *ledger
	evidence *evidence
	enis     *enis
	pool     *pool
	driver   *driver

	Sightings []sighting
	Reread    time.Duration `json:",omitzero"` // not before then EC2's word on security groups is sure to be of after an earlier daemon; 0: it is
}

// seenAttached is the survey at the begin of a life, and what EC2 is asked once more for. Metadata may not list yet what an earlier daemon attached, and a
// node that believes it has fewer ENIs than it has makes more than MAX_ENI.
func (sv *survey) seenAttached(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole && !sv.Surveyed {
		sv.trouble(troubleSurvey, "EC2 does not say which network interfaces are attached, and before that none is "+
			"made and no address is taken that is not on record: "+in.Err)
	}
	if !whole || sv.Phase == recovering {
		return
	}
	first, known := !sv.Surveyed, sv.enis.grouped()
	sv.Surveyed = true
	sv.trouble(troubleSurvey, "")
	sv.adoptENIs(now, LookAttached, in.ENIs, asked)
	if first {
		known = 0
	}
	sv.reread(now, known)
	// EC2 does not list it
	sv.evidence.Others = slices.DeleteFunc(sv.evidence.Others, func(o other) bool { return o.Why == "" })
	sv.reclaim(now)
	sv.homeless(now, asked)
}

// reread asks once more when EC2 has said the groups of more ENIs than were known: that may be of before the last change of an earlier daemon. What is
// asked before is none the wiser.
func (sv *survey) reread(now time.Duration, known int) {
	if sv.enis.grouped() > known && sv.policy.Stale(0) {
		sv.Reread = now + consistency
	}
	if sv.evidence.Looks[LookAttached].At >= sv.Reread {
		sv.Reread = 0
		return
	}
	sv.evidence.want(LookAttached, sv.Reread)
}

// homeless: what a pod has and no ENI of this node is not there, once EC2 has said so twice. Records that are lost do
// not name its ENI.
func (sv *survey) homeless(now time.Duration, asked uint64) {
	for i := range sv.pool.Addrs {
		a := &sv.pool.Addrs[i]
		if a.State != Assigned || a.ENI >= 0 || sv.evidence.otherByID(a.ENIID) != nil {
			continue
		}
		again := now + askPause
		if a.Op == noOp && a.Tag <= asked {
			a.Missing++
			again = max(again, a.Allocated+consistency)
			if sv.policy.Absent(Absence{ByIMDS: 1, ByEC2: a.Missing, Young: now < a.Allocated+consistency}) {
				sv.pool.addressGone(int32(i))
				continue
			}
		}
		sv.evidence.want(LookAttached, again)
	}
}

// reclaim looks for the ENIs that records name and that are not attached: a third party took them while no daemon
// watched. What the pods of such an ENI have is out of reach until it is attached again, and no other node deletes an
// idle one. What became of it is unknown: its attach is in doubt like a lost one.
func (sv *survey) reclaim(now time.Duration) {
	if sv.policy.Lost(AttachENI) != Ask {
		return
	}
	for i := range sv.pool.Addrs {
		a := &sv.pool.Addrs[i]
		if a.State == 0 || a.ENI >= 0 || a.ENIID == "" || sv.evidence.otherByID(a.ENIID) != nil {
			continue
		}
		ix, known := sv.enis.eniByID(a.ENIID)
		if !known {
			ix = sv.enis.newENI(eni{ENI: ENI{ID: a.ENIID, Owner: sv.Inst.ID}, Stage: Created,
				mutation: mutation{Doing: AttachENI, Lost: true, Next: now}, Since: now})
		}
		if a.State == Assigned { // what no pod has is the node's once EC2 lists it
			sv.pool.place(int32(i), ix)
		}
	}
}

// adoptENIs takes attached ENIs that are ours, and their addresses, into the books, as far as the source may vouch for
// them.
func (sv *survey) adoptENIs(now time.Duration, by What, view []ENI, asked uint64) {
	for i := range view {
		v := &view[i]
		if v.Partial && v.ID == "" {
			sv.evidence.want(LookIMDS, now+2*time.Second)
			continue
		}
		// what is listed lasts, whether or not it can be taken now
		if by == LookIMDS && sv.Set.IMDSOnly && !sv.policy.Vouch(by) {
			for ip := range v.carried() {
				if _, known := sv.pool.byAddress[ip]; !known {
					sv.evidence.lasts(now, ip, "")
				}
			}
		}
		ix, known := sv.enis.eniByID(v.ID)
		switch {
		case (by != LookIMDS || !known) && !sv.ours(v, by):
			sv.notOurs(now, v, by)
			continue
		case v.Partial:
			sv.evidence.want(LookIMDS, now+2*time.Second)
			continue
		case known:
		case by == LookIMDS && sv.evidence.otherByID(v.ID) != nil: // EC2's word stands
			continue
		// in this order: what is not confirmed counts as departed until it is
		case !sv.linked(v) && !sv.confirmed(now, by, netip.Addr{}, v.ID):
			sv.evidence.hearsay(now, netip.Addr{}, v.ID)
			continue
		case sv.evidence.hasDeparted(by, netip.Addr{}, v.ID):
			continue
		default:
			sv.evidence.takeOther(v.ID)
			ix = sv.adoptENI(now, v)
		}
		e := &sv.enis.ENIs[ix]
		if by == LookAttached && e.Stage < Ready && e.Wait == applying && !e.Stored {
			e.learn(now, v) // the kernel is at work on it, and EC2 is not
			continue
		}
		if known && (e.busy() || e.Tag > asked) || e.Stage != Ready && known && e.Stored {
			sv.housePods(now, ix, v)
			continue // contract 8: a view of before our own change
		}
		if by != LookIMDS || !e.cut() { // else metadata may be behind, and what EC2 has said against it stands
			e.there()
		}
		e.hears(now, v.Groups)
		sv.adoptAddresses(now, by, ix, v)
	}
}

// confirmed says whether a source makes an address or an ENI that the records do not have the node's. Where nobody but
// metadata is asked, what it goes on listing is.
func (sv *survey) confirmed(now time.Duration, by What, ip netip.Addr, id string) bool {
	return sv.policy.Vouch(by) || sv.Set.IMDSOnly && sv.evidence.lasts(now, ip, id)
}

// linked says whether the kernel that recovery began with has the ENI's link: it is attached then, whatever else
// metadata may be wrong about.
func (sv *survey) linked(v *ENI) bool {
	return v.Device == 0 || sv.evidence.Kernel != nil && sv.evidence.Kernel.Index().LinkByMAC(v.MAC) != nil
}

func (sv *survey) adoptENI(now time.Duration, v *ENI) int32 {
	// since when is not known; its link should be there
	e := eni{ENI: *v, Stage: Attached, mutation: mutation{Next: now}, Since: now - linkPatience}
	e.Addresses, e.Prefixes = nil, nil
	// metadata does not say; EC2 does (incident 31: DeleteOnTermination was never set)
	e.DOT = v.DOT || v.Attachment == ""
	if v.Device == 0 {
		e.Stage, e.Linked = Ready, true
	}
	sv.evidence.want(LookKernel, now) // for its link
	return sv.enis.newENI(e)
}

// housePods places what pods have and no ENI of the node is known to: a change of the ENI that is under way or in doubt is not about these, and
// until its end nothing that their pods lack would be put back.
func (sv *survey) housePods(now time.Duration, ix int32, v *ENI) {
	for ip, prefixed := range v.carried() {
		if i, known := sv.pool.byAddress[ip]; known && sv.pool.Addrs[i].ENI < 0 && sv.pool.Addrs[i].State == Assigned &&
			!sv.pool.justMoved(now, i, v.ID) {
			sv.pool.place(i, ix)
			sv.pool.mark(i, prefixed)
		}
	}
}

// adoptAddresses: metadata says no more of what the records have than that it lists it, and where a pod's address is
// that is on no ENI.
func (sv *survey) adoptAddresses(now time.Duration, by What, ix int32, v *ENI) {
	sv.housePods(now, ix, v)
	for ip, prefixed := range v.carried() {
		i, known := sv.pool.byAddress[ip]
		switch {
		case known && sv.pool.justMoved(now, i, v.ID):
		case known && (sv.policy.Vouch(by) || sv.pool.Addrs[i].ENI == ix):
			sv.pool.place(i, ix)
			sv.pool.mark(i, prefixed)
			sv.pool.Addrs[i].ByIMDS = 0
			if sv.pool.Addrs[i].Missing > 0 { // EC2 has said no: it is given to no pod until EC2 says yes
				sv.enis.ask(ix, now)
			}
		case known:
		case !sv.confirmed(now, by, ip, ""):
			sv.evidence.hearsay(now, ip, "")
		case sv.evidence.hasDeparted(by, ip, ""):
		default:
			sv.pool.discover(now, ip, ix, prefixed, by == LookIMDS || sv.evidence.listed(ip))
		}
	}
	for i := range sv.pool.Addrs {
		a := &sv.pool.Addrs[i]
		if a.State == 0 || a.ENI != ix || a.Leaving || v.carries(a.IP) {
			continue
		}
		if a.ByIMDS++; a.ByIMDS == 1 {
			a.Unlisted = now
		}
		if sv.policy.Absent(Absence{ByIMDS: a.ByIMDS, Lasting: sv.Set.IMDSOnly && now-a.Unlisted >= lasting}) {
			sv.pool.addressGone(int32(i))
		} else {
			sv.enis.ask(ix, now)
		}
	}
}

// absentENIs asks EC2 about ENIs in service that metadata does not list.
func (sv *survey) absentENIs(now time.Duration, view []ENI, asked uint64) {
	for i := range sv.enis.ENIs {
		e := &sv.enis.ENIs[i]
		if e.Stage != Ready || e.Wait != idle || e.Tag > asked {
			continue
		}
		if !e.Linked { // metadata lags behind the kernel, and counts twice: its next word is worth hearing soon
			sv.evidence.want(LookIMDS, now+linkPause)
		}
		if slices.ContainsFunc(view, func(v ENI) bool { return v.ID == e.ID || v.MAC == e.MAC }) {
			e.ByIMDS = 0
			// Metadata may be behind for long. EC2 is asked less and less often: a link may be hidden for another reason.
			if cut := e.cutFor(now); cut >= cutPatience && !e.Asking {
				sv.enis.ask(int32(i), now+cut/4)
			}
			continue
		}
		e.unlisted(now)
		if sv.policy.Absent(Absence{ByIMDS: e.ByIMDS, Lasting: sv.Set.IMDSOnly && now-e.Unlisted >= lasting,
			Linked: e.Linked}) {
			sv.missing(now, int32(i), nil)
		} else {
			sv.enis.ask(int32(i), now)
		}
	}
}

func cloneENIs(in []ENI) []ENI {
	out := slices.Clone(in)
	for i := range out {
		out[i].Addresses, out[i].Prefixes = slices.Clone(out[i].Addresses), slices.Clone(out[i].Prefixes)
	}
	return out
}

// forgetDepartures drops what no view lists any more.
func (sv *survey) forgetDepartures(now time.Duration) {
	sv.evidence.Departures = slices.DeleteFunc(sv.evidence.Departures, func(d departed) bool {
		return (d.At+rememberedFor <= now || sv.Set.IMDSOnly) && !d.Stored && d.Listed < now
	})
	for i := range sv.evidence.Departures {
		d := &sv.evidence.Departures[i]
		if !d.Stored || now-d.At < rememberedFor {
			continue
		}
		d.Stored = false
		if _, back := sv.pool.byAddress[d.IP]; !back {
			sv.ledger.dropRow(RunStore, Key{Address: d.IP})
		}
	}
}

// look issues the looks that are due, one per source at a time.
func (sv *survey) look(now time.Duration) {
	if sv.Phase == stopping {
		return
	}
	for w := What(1); w < looks; w++ {
		l := &sv.evidence.Looks[w]
		if l.ID != 0 || l.Want > now {
			continue
		}
		l.Want = never
		if !sv.evidence.configured(w) {
			continue
		}
		l.ENIs = nil
		if w == LookENI {
			if l.ENIs = sv.enis.doubtful(); len(l.ENIs) == 0 {
				continue
			}
		}
		l.ID, l.Asked, l.At = sv.id(), sv.Steps, now
		sv.emit(&Look{ID: l.ID, What: w, ENIs: l.ENIs})
	}
}

// believe takes the ENIs on record into service.
func (sv *survey) believe(now time.Duration, ix *dataplane.Index) {
	sv.note(Note{Point: ServedFromRecords, Warn: true, Text: sv.Troubles[troubleIMDS]})
	for i := range sv.ledger.Facts.ENIs {
		v := &sv.ledger.Facts.ENIs[i]
		if _, known := sv.enis.eniByID(v.ID); known { // an intent speaks of it
			continue
		}
		linked := ix.LinkByMAC(v.MAC) != nil
		if !sv.policy.Serves(linked) || sv.Set.IMDSOnly && v.Device != 0 && sv.Set.Excluded.Has(v.Device) {
			continue
		}
		if e := &sv.enis.ENIs[sv.adoptENI(now, v)]; !linked { // no link will come that would say that it is set up
			sv.enis.move(e, Ready, e.Since)
		}
	}
}

// hears ends that metadata was silent: what was put off begins, and EC2 is asked what is attached.
func (sv *survey) hears(now time.Duration, i Instance) {
	sv.Deaf = false
	if i.ID != sv.Inst.ID {
		sv.disbelieve(now, i.ID)
	}
	sv.Inst = i
	sv.Inst.VPC, sv.Inst.Limits = slices.Clone(i.VPC), i.Limits.bounded()
	sv.evidence.want(LookAttached, now)
	sv.evidence.want(LookSubnets, now)
	sv.evidence.want(LookConfig, now)
	sv.evidence.want(LookKernel, now) // the host's rules are compared with what is known now
	sv.enis.kick(now)
}

// disbelieve: the records are another instance's. Pods keep what they have, for the kernel shows it.
func (sv *survey) disbelieve(now time.Duration, id string) {
	sv.Unread = "the records are of instance " + sv.Inst.ID + ", and this is " + id
	sv.note(Note{Point: CheckpointUnread, Warn: true, Text: sv.Unread})
	for i := range sv.enis.ENIs {
		if e := &sv.enis.ENIs[i]; e.Stage != 0 && e.Wait == idle && !e.Stored {
			sv.pool.strand(now, int32(i))
			sv.driver.discard(int32(i))
		}
	}
}

// ours asks the policy about an ENI that a source lists.
func (sv *survey) ours(v *ENI, by What) bool {
	return sv.policy.Ours(Claim{
		Primary:  v.Device == 0 && (by == LookIMDS || v.Instance == sv.Inst.ID),
		Read:     sv.policy.Vouch(by),
		Kept:     v.kept(),
		Made:     v.Owner != "" && v.Owner == sv.Inst.ID,
		Named:    v.NoManage != "",
		Untagged: !sv.Set.LeaveUntagged,
		Recorded: sv.recorded(v) || sv.Set.IMDSOnly && sv.evidence.vouched(v.ID),
		Excluded: sv.Set.IMDSOnly && sv.Set.Excluded.Has(v.Device),
	})
}

// recorded says whether our records name an ENI: an attachment is on it.
func (sv *survey) recorded(v *ENI) bool {
	for i := range sv.pool.Addrs {
		if a := &sv.pool.Addrs[i]; a.State != 0 && a.Att != (Attachment{}) &&
			(a.ENIID == v.ID || v.carries(a.IP)) {
			return true
		}
	}
	return false
}

// notOurs deals with an ENI that a source lists and that is not ours.
func (sv *survey) notOurs(now time.Duration, v *ENI, by What) {
	ix, known := sv.enis.eniByID(v.ID)
	switch {
	case !known && by == LookIMDS:
		if sv.evidence.otherByID(v.ID) != nil {
			return // EC2 has said whose it is, or is being asked
		}
		if sv.evidence.hearsay(now, netip.Addr{}, v.ID) {
			sv.evidence.setAside(v, false)
		}
	case !known:
		sv.evidence.setAside(v, true)
	case sv.enis.ENIs[ix].Wait == idle:
		sv.disown(now, ix, v)
	default: // in the middle of something
		sv.enis.ask(ix, now+askPause)
	}
}

// disown gives up an ENI at rest that turned out to be another owner's. Pods on it keep what they have, until their
// DEL.
func (sv *survey) disown(now time.Duration, ix int32, v *ENI) {
	if v.Instance != sv.Inst.ID {
		sv.note(Note{Point: ENINotOurs, ENI: v.ID, Text: v.whose()})
		sv.driver.finish(now, ix)
		return
	}
	for i := range sv.pool.Addrs {
		a := &sv.pool.Addrs[i]
		if a.State == 0 || a.ENI != ix {
			continue
		}
		sv.pool.place(int32(i), -1)
		if a.Op == noOp && a.State != Assigned && a.Att == (Attachment{}) {
			sv.pool.forget(int32(i))
		}
	}
	sv.driver.discard(ix)
	sv.evidence.setAside(v, true)
}

// resolveOther brings what is known of another owner's ENI in line with EC2's word; v is nil when EC2 does not know
// it.
func (sv *survey) resolveOther(now time.Duration, o *other, v *ENI) {
	o.Asking = false
	switch {
	case v == nil || v.Instance != sv.Inst.ID:
		sv.evidence.takeOther(o.ID)
	case v.Status == "detaching": // metadata will not list it soon
	default:
		sv.adoptENIs(now, LookENI, []ENI{*v}, sv.Steps)
	}
}
