package ipam

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// network is the CNI network's name: it is in every libcni cache entry, so a drop-in keeps it.
const network = "aws-cni"

// recovery is the begin of a daemon's life: what records, kernel, runtime and metadata say becomes one, and nobody is
// served before that.
type recovery struct {
	*life    `json:"-"`
	ledger   *ledger
	requests *requests
	evidence *evidence
	enis     *enis
	pool     *pool
	host     *host
	driver   *driver
	survey   *survey
	pods     *pods

	Booted   time.Duration // as Start said, where nothing there speaks against a reboot
	Answered bool          // the runtime has, one way or the other

	// Kept until recovery ends.
	Listed   []Sandbox
	ListedOK bool
	Cloud    []ENI // IMDS's word
}

// born starts a daemon's life: it knows its records, and asks kernel, runtime and metadata at once.
func (rc *recovery) born(now time.Duration, in Start) {
	rc.Phase = recovering
	rc.Boot, rc.Daemon, rc.Wall, rc.Cluster, rc.Set, rc.Unread = in.Boot, in.Daemon, in.Wall, in.Cluster,
		in.Settings, in.Unread
	rc.Rng, rc.First = in.Seed, firstOfBoot(&in)
	if rc.Version = in.Version; rc.Version == 0 {
		rc.Version = Version
	}
	if in.Unread != "" {
		rc.note(Note{Point: CheckpointUnread, Warn: true, Text: in.Unread})
	}
	rc.Booted = now
	if in.Rebooted && in.Unread == "" {
		rc.Booted = in.Booted
	}
	for i := range in.Rows {
		r := &in.Rows[i]
		switch {
		case r.Intent != nil:
			rc.driver.resume(now, r.Intent)
		case !r.Address.IsValid() || in.Rebooted: // a reboot ended the pods that run rows speak of
		case r.State == Departed && r.Address.IsUnspecified(): // earlier versions noted so that they keep such records
			rc.ledger.dropRow(RunStore, r.Key())
		case r.State == Departed:
			if r.Node != nil {
				rc.ledger.Facts = r.Node
			}
			rc.evidence.Departures = append(rc.evidence.Departures, departed{IP: r.Address, At: r.ReleasedAt,
				Stored: true, Ask: r.ReleasedAt + consistency, Pause: hearsayPause})
		default:
			rc.pool.restore(now, r)
		}
	}
	rc.evidence.want(LookIMDS, now)
	rc.evidence.want(LookKernel, now)
	if rc.Set.Runtime {
		rc.evidence.want(LookRuntime, now)
	}
	rc.evidence.want(LookLeaked, now+leakedFirst+time.Duration(rc.random()*float64(leakedFirst)))
	rc.evidence.want(LookPods, now+podsPeriod)
	rc.driver.Pace.Window = now
}

// firstOfBoot says whether no daemon that keeps facts has started in this boot: the machine has rebooted, or the
// records are another CNI's. Records that are lost do not say it: what was left alone before would be taken for found.
func firstOfBoot(in *Start) bool {
	rows := false
	for i := range in.Rows {
		r := &in.Rows[i]
		if r.Node != nil && !in.Rebooted {
			return false
		}
		rows = rows || r.Intent == nil && r.Address.IsValid()
	}
	return in.Rebooted || rows && in.Unread == ""
}

// removalLimit is how long before the loss of an address its release may have been recorded. The cool-down counts from
// the loss, of which there is no record: it may have been the last thing that the daemon did, so it counts from the
// start of the next one. A busy machine has been seen to take three seconds. The limit is there because what is
// withheld for longer is asked of EC2 instead, at every restart.
const removalLimit = 10 * time.Second

// tryRecover ends recovery once kernel and metadata have answered whole, the runtime has answered, and the host is set
// up.
func (rc *recovery) tryRecover(now time.Duration) {
	if !rc.Known || rc.evidence.Kernel == nil || rc.Set.Runtime && !rc.policy.Begins(rc.Answered, rc.ListedOK) {
		if rc.evidence.Looks[LookKernel].ID == 0 && rc.evidence.Kernel == nil {
			rc.evidence.want(LookKernel, now+time.Second)
		}
		return
	}
	if !rc.host.Done {
		if !rc.host.Busy && rc.evidence.Looks[LookKernel].ID == 0 && rc.host.At <= now {
			rc.host.apply(dataplane.HostPlan(rc.host.spec()))
		}
		return
	}
	ix := rc.evidence.Kernel.IndexBy(rc.pool.named)
	rc.beginRecords(now, ix)
	rc.recall(now, ix)
	rc.finds()
	rc.survey.adoptENIs(now, LookIMDS, rc.Cloud, rc.Steps)
	if rc.Deaf {
		rc.survey.believe(now, ix)
	}
	rc.pool.placeRecorded()
	rc.settleRecall(now, ix)
	rc.evidence.Kernel, rc.Listed, rc.Cloud = nil, nil, nil
	rc.Phase = serving
	rc.Surveyed = rc.Set.IMDSOnly // EC2 is not asked for it
	if !rc.Deaf {
		rc.evidence.want(LookAttached, now)
		rc.evidence.want(LookSubnets, now)
		rc.evidence.want(LookConfig, now)
	}
	rc.enis.tellNext()
	rc.pool.Warm.At, rc.pool.Flows.At = now, now
	rc.evidence.want(LookKernel, now)
	waiting := rc.requests.Queued
	rc.requests.Queued = nil
	for _, q := range waiting {
		switch {
		case rc.pool.busy(q.att()):
			rc.requests.Queued = append(rc.requests.Queued, q)
		case q.Add != nil:
			rc.pods.startAdd(now, *q.Add)
		default:
			rc.pods.startDel(now, *q.Del)
		}
	}
}

// beginRecords finds out since when releases are on record. The node's own address, which is never a pod's, stands for
// the records: its departed row has that instant. Where it is gone, as after a reboot, an earlier daemon may have
// released any address just before it started to be missed: then, or when the machine booted if nothing on it has an
// address any more.
func (rc *recovery) beginRecords(now time.Duration, ix *dataplane.Index) {
	own := rc.Inst.Address
	is := func(d departed) bool { return d.IP.IsValid() && d.IP == own }
	if i := slices.IndexFunc(rc.evidence.Departures, is); i >= 0 {
		rc.ledger.Recorded = rc.evidence.Departures[i].At
		rc.evidence.Departures = slices.Delete(rc.evidence.Departures, i, i+1)
		return
	}
	rc.ledger.Recorded = now
	inhabited := func(e ENI) bool {
		for ip := range e.carried() {
			if _, used := ix.Uses(ip); used {
				return true
			}
		}
		return false
	}
	if !slices.ContainsFunc(rc.Cloud, inhabited) {
		rc.ledger.Recorded = rc.Booted
	}
	if own.IsValid() {
		rc.ledger.putRow(RunStore, rc.ledger.beginning())
	}
}

// recall merges what the sources know of allocations into the rows (Policy.Recall).
func (rc *recovery) recall(now time.Duration, ix *dataplane.Index) {
	s := Sources{Network: network, Kernel: ix, Sandboxes: rc.Listed, Runtime: rc.ListedOK}
	for i := range rc.pool.Addrs {
		if rc.pool.Addrs[i].State != 0 {
			s.Checkpoint = append(s.Checkpoint, rc.pool.Addrs[i].row())
		}
	}
	r := rc.policy.Recall(&s)
	rc.Witness = r.Witnesses
	for _, ip := range r.Refuted {
		if i, known := rc.pool.byAddress[ip]; known {
			rc.pool.forget(i)
		}
	}
	rc.pool.Cooling = slices.DeleteFunc(rc.pool.Cooling,
		func(i int32) bool { return rc.pool.Addrs[i].State != Cooling })
	for i := range r.Rows {
		rc.recalled(now, &r.Rows[i], ix)
	}
}

// recalled puts one allocation in, unless the checkpoint had put exactly it there.
func (rc *recovery) recalled(now time.Duration, r *Row, index *dataplane.Index) {
	if ix, known := rc.pool.byAddress[r.Address]; known {
		a := &rc.pool.Addrs[ix]
		if a.State == r.State && a.Att == r.Att {
			if r.State == Assigned {
				rc.note(Note{Point: RecoveredCheckpoint, Att: r.Att, Addr: r.Address})
			}
			return
		}
		if rc.pool.elsewhere(r.Att, ix) { // its own record stands; the kernel's veto keeps this address from others
			return
		}
		rc.pool.unkey(ix)
		a.Was = a.Att
		a.Att, a.Pod, a.Netns, a.Veth, a.MAC = r.Att, r.Pod, 0, r.Veth, r.MAC
		rc.pool.become(ix, Assigned)
		rc.pool.key(ix)
		rc.pods.record(ix)
		a.SeenCRI, a.Evidence = r.SeenCRI, ""
		rc.tellRecovered(a, r, index)
		return
	}
	if _, taken := rc.pool.rowOf(r.Att); taken {
		return
	}
	ix := rc.pool.newAddress(r.Address, -1)
	a := &rc.pool.Addrs[ix]
	a.Att, a.Pod, a.Veth, a.MAC, a.SeenCRI, a.Allocated = r.Att, r.Pod, r.Veth, r.MAC, r.SeenCRI, now
	rc.pool.become(ix, Assigned)
	rc.pool.key(ix)
	rc.pods.record(ix)
	rc.tellRecovered(a, r, index)
}

func (rc *recovery) tellRecovered(a *address, r *Row, index *dataplane.Index) {
	if !r.SeenCRI {
		rc.note(Note{Point: RecoveredKernel, Att: r.Att, Addr: r.Address})
		return
	}
	rc.note(Note{Point: RecoveredRuntime, Att: r.Att, Addr: r.Address})
	if l := index.User(r.Address); l != nil {
		rc.pods.trust(a, l, true)
	}
}

// settleRecall frees, quarantines or goes on with what recovery found.
func (rc *recovery) settleRecall(now time.Duration, ix *dataplane.Index) {
	for i := range rc.pool.Addrs {
		a := &rc.pool.Addrs[i]
		switch a.State {
		case Cooling:
			// of one that has come back: residue removes the rest
			if !rc.unfinished(a, ix) || rc.pool.elsewhere(a.Att, int32(i)) {
				if a.Cooling == inKernel {
					a.cool(remembered)
				}
			} else if a.Op == noOp { // a removal was cut short: it is repeated
				rc.pool.key(int32(i))
				rc.note(Note{Point: IntentResumed, Att: a.Att, Addr: a.IP})
				a.run(releasing)
				a.Tag = rc.Steps
				rc.pods.removePod(int32(i))
			}
		case Assigned:
			if l := ix.LinkByAlias(alias(a.Att, a.IP)); l != nil {
				a.Veth = l.Name
			} else if l := ix.User(a.IP); l != nil && l.Alias == "" && l.Veth {
				rc.pods.takeOver(int32(i), l)
			}
		}
	}
	if rc.Witness.Kernel { // none is free yet: what is not a pod's cools
		rc.pods.coolDowns(now, ix, rc.Steps) // what has long rested, and the kernel has just been seen not to use
	}
}

// unfinished says whether the kernel still has something of a cooling row's attachment.
func (rc *recovery) unfinished(a *address, ix *dataplane.Index) bool {
	if a.Att == (Attachment{}) || a.Cooling != inKernel {
		return false
	}
	_, left := ix.Residue(a.IP)
	return left || ix.LinkByAlias(alias(a.Att, a.IP)) != nil
}

// recollect takes the instance for what it was: metadata does not answer a daemon that starts.
func (rc *recovery) recollect() {
	if rc.Known || !rc.ledger.Facts.usable() {
		return
	}
	rc.Inst, rc.Known, rc.Deaf = rc.ledger.Facts.Instance, true, true
	rc.Inst.VPC, rc.Inst.Limits = slices.Clone(rc.Inst.VPC), rc.Inst.Limits.bounded()
}

// finds notes what metadata lists when the first daemon of a boot starts: such ENIs were attached for pods before it
// came.
func (rc *recovery) finds() {
	if !rc.Set.IMDSOnly || !rc.First {
		return
	}
	for i := range rc.Cloud {
		if v := &rc.Cloud[i]; v.ID != "" && v.Device != 0 && v.size() > 0 &&
			len(rc.evidence.Found) < mostENIs && !slices.Contains(rc.evidence.Found, v.ID) {
			rc.evidence.Found = append(rc.evidence.Found, v.ID)
		}
	}
}
