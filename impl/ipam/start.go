package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// network is the CNI network's name: it is in every libcni cache entry, so a drop-in keeps it.
const network = "aws-cni"

// born starts a daemon's life: it knows its records, and asks kernel, runtime and metadata at once.
func (n *Node) born(now time.Duration, in Start) {
	n.Phase = recovering
	n.Boot, n.Daemon, n.Wall, n.Cluster, n.Set, n.Unread = in.Boot, in.Daemon, in.Wall, in.Cluster, in.Settings, in.Unread
	n.Rng, n.First = in.Seed, firstOfBoot(&in)
	if n.Version = in.Version; n.Version == 0 {
		n.Version = Version
	}
	if in.Unread != "" {
		n.note(Note{Point: CheckpointUnread, Warn: true, Text: in.Unread})
	}
	n.Booted = now
	if in.Rebooted && in.Unread == "" {
		n.Booted = in.Booted
	}
	for i := range in.Rows {
		r := &in.Rows[i]
		switch {
		case r.Intent != nil:
			n.resume(now, r.Intent)
		case !r.Address.IsValid() || in.Rebooted: // a reboot ended the pods that run rows speak of
		case r.State == Departed && r.Address.IsUnspecified(): // earlier versions noted so that they keep such records
			n.dropRow(RunStore, r.Key())
		case r.State == Departed:
			if r.Node != nil {
				n.Facts = r.Node
			}
			n.Departures = append(n.Departures, departed{IP: r.Address, At: r.ReleasedAt, Stored: true, Ask: r.ReleasedAt + consistency, Pause: hearsayPause})
		default:
			n.restore(now, r)
		}
	}
	n.want(LookIMDS, now)
	n.want(LookKernel, now)
	if n.Set.Runtime {
		n.want(LookRuntime, now)
	}
	n.want(LookLeaked, now+leakedFirst+time.Duration(n.random()*float64(leakedFirst)))
	n.want(LookPods, now+podsPeriod)
	n.Pace.Window = now
}

// firstOfBoot says whether no daemon that keeps facts has started in this boot: the machine has rebooted, or the records are another CNI's. Records
// that are lost do not say it: what was left alone before would be taken for found.
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

// removalLimit is how long before the loss of an address its release may have been recorded. The cool-down counts from the loss, of which
// there is no record: it may have been the last thing that the daemon did, so it counts from the start of the next one. A busy machine has
// been seen to take three seconds. The limit is there because what is withheld for longer is asked of EC2 instead, at every restart.
const removalLimit = 10 * time.Second

// record makes a row durable that recovery found; what is asked about the attachment waits for it (contract 3).
func (n *Node) record(ix int32) {
	a := &n.Addrs[ix]
	a.Op, a.Retry = recording, never
	n.putAddress(ix)
	n.waitSaved(RunStore, saveRecord, ix, a.Tag)
}

func (n *Node) recordSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &n.Addrs[ix]
	if a.Op != recording || a.Tag != tag {
		return
	}
	if !ok {
		n.retryLater(now, a)
		return
	}
	att, was := a.Att, a.Was
	a.Op, a.Tries, a.Was = noOp, 0, Attachment{}
	n.want(LookKernel, now+coolBatch) // what was recovered is compared with its plan
	n.runQueued(now, att)
	n.runQueued(now, was)
}

// tryRecover ends recovery once kernel and metadata have answered whole, the runtime has answered, and the host is set up.
func (n *Node) tryRecover(now time.Duration) {
	if !n.Known || n.Kernel == nil || n.Set.Runtime && !n.policy.Begins(n.Answered, n.ListedOK) {
		if n.Looks[LookKernel].ID == 0 && n.Kernel == nil {
			n.want(LookKernel, now+time.Second)
		}
		return
	}
	if !n.HostDone {
		if !n.HostBusy && n.Looks[LookKernel].ID == 0 && n.HostAt <= now {
			n.applyHost(dataplane.HostPlan(n.hostSpec()))
		}
		return
	}
	ix := n.Kernel.IndexBy(n.named)
	n.beginRecords(now, ix)
	n.recall(now, ix)
	n.finds()
	n.adoptENIs(now, LookIMDS, n.Cloud, n.Steps)
	if n.Deaf {
		n.believe(now, ix)
	}
	n.placeRecorded()
	n.settleRecall(now, ix)
	n.Kernel, n.Listed, n.Cloud = nil, nil, nil
	n.Phase = serving
	n.Surveyed = n.Set.IMDSOnly // nobody will say it
	if !n.Deaf {
		n.want(LookAttached, now)
	}
	n.tellNext()
	n.Warm.At, n.Flows.At = now, now
	n.want(LookKernel, now)
	waiting := n.Queued
	n.Queued = nil
	for _, q := range waiting {
		switch {
		case n.busy(q.att()):
			n.Queued = append(n.Queued, q)
		case q.Add != nil:
			n.startAdd(now, *q.Add)
		default:
			n.startDel(now, *q.Del)
		}
	}
}

// beginRecords finds out since when releases are on record. The node's own address, which is never a pod's, stands for the records: its
// departed row has that instant. Where it is gone, as after a reboot, an earlier daemon may have released any address just before it started
// to be missed: then, or when the machine booted if nothing on it has an address any more.
func (n *Node) beginRecords(now time.Duration, ix *dataplane.Index) {
	own := n.Inst.Address
	if i := slices.IndexFunc(n.Departures, func(d departed) bool { return d.IP.IsValid() && d.IP == own }); i >= 0 {
		n.Recorded = n.Departures[i].At
		n.Departures = slices.Delete(n.Departures, i, i+1)
		return
	}
	n.Recorded = now
	inhabited := func(e ENI) bool {
		return slices.ContainsFunc(e.Addresses, func(ip netip.Addr) bool { _, used := ix.Uses(ip); return used })
	}
	if !slices.ContainsFunc(n.Cloud, inhabited) {
		n.Recorded = n.Booted
	}
	if own.IsValid() {
		n.putRow(RunStore, n.beginning())
	}
}

// recall merges what the sources know of allocations into the rows (Policy.Recall).
func (n *Node) recall(now time.Duration, ix *dataplane.Index) {
	s := Sources{Network: network, Kernel: ix, Sandboxes: n.Listed, Runtime: n.ListedOK}
	for i := range n.Addrs {
		if n.Addrs[i].State != 0 {
			s.Checkpoint = append(s.Checkpoint, n.Addrs[i].row())
		}
	}
	r := n.policy.Recall(&s)
	n.Witness = r.Witnesses
	for _, ip := range r.Refuted {
		if i, known := n.byAddress[ip]; known {
			n.forget(i)
		}
	}
	n.Cooling = slices.DeleteFunc(n.Cooling, func(i int32) bool { return n.Addrs[i].State != Cooling })
	for i := range r.Rows {
		n.recalled(now, &r.Rows[i], ix)
	}
}

// recalled puts one allocation in, unless the checkpoint had put exactly it there.
func (n *Node) recalled(now time.Duration, r *Row, index *dataplane.Index) {
	if ix, known := n.byAddress[r.Address]; known {
		a := &n.Addrs[ix]
		if a.State == r.State && a.Att == r.Att {
			if r.State == Assigned {
				n.note(Note{Point: RecoveredCheckpoint, Att: r.Att, Addr: r.Address})
			}
			return
		}
		if n.elsewhere(r.Att, ix) { // its own record stands; the kernel's veto keeps this address from others
			return
		}
		n.unkey(ix)
		a.Was = a.Att
		a.Att, a.Pod, a.Netns, a.Veth, a.MAC = r.Att, r.Pod, 0, r.Veth, r.MAC
		n.become(ix, Assigned)
		n.key(ix)
		n.record(ix)
		a.SeenCRI, a.Evidence = r.SeenCRI, ""
		n.tellRecovered(a, r, index)
		return
	}
	if _, taken := n.rowOf(r.Att); taken {
		return
	}
	ix := n.newAddress(r.Address, -1)
	a := &n.Addrs[ix]
	a.Att, a.Pod, a.Veth, a.MAC, a.SeenCRI, a.Allocated = r.Att, r.Pod, r.Veth, r.MAC, r.SeenCRI, now
	n.become(ix, Assigned)
	n.key(ix)
	n.record(ix)
	n.tellRecovered(a, r, index)
}

func (n *Node) tellRecovered(a *address, r *Row, index *dataplane.Index) {
	if !r.SeenCRI {
		n.note(Note{Point: RecoveredKernel, Att: r.Att, Addr: r.Address})
		return
	}
	n.note(Note{Point: RecoveredRuntime, Att: r.Att, Addr: r.Address})
	if l := index.User(r.Address); l != nil {
		n.trust(a, l, true)
	}
}

// settleRecall frees, quarantines or goes on with what recovery found.
func (n *Node) settleRecall(now time.Duration, ix *dataplane.Index) {
	for i := range n.Addrs {
		a := &n.Addrs[i]
		switch a.State {
		case Cooling:
			if !n.unfinished(a, ix) || n.elsewhere(a.Att, int32(i)) { // of one that has come back: residue removes the rest
				a.Removed = true
			} else if a.Op == noOp { // a removal was cut short: it is repeated
				n.key(int32(i))
				n.note(Note{Point: IntentResumed, Att: a.Att, Addr: a.IP})
				a.Op, a.Tag = releasing, n.Steps
				n.removePod(int32(i))
			}
		case Assigned:
			if l := ix.LinkByAlias(alias(a.Att, a.IP)); l != nil {
				a.Veth = l.Name
			} else if l := ix.User(a.IP); l != nil && l.Alias == "" && l.Veth {
				n.takeOver(int32(i), l)
			}
		}
	}
	if !n.Witness.Kernel {
		return
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Free {
			continue
		}
		if why, used := ix.Uses(a.IP); used && n.policy.Veto(why) {
			n.quarantine(int32(i), why)
		}
	}
	n.coolDowns(now, ix, n.Steps) // what has long rested, and the kernel has just been seen not to use
}

// unfinished says whether the kernel still has something of a cooling row's attachment.
func (n *Node) unfinished(a *address, ix *dataplane.Index) bool {
	if a.Att == (Attachment{}) || a.Removed {
		return false
	}
	_, left := ix.Residue(a.IP)
	return left || ix.LinkByAlias(alias(a.Att, a.IP)) != nil
}

// settings replaces them; what follows from them follows at the next tick.
func (n *Node) settings(now time.Duration, s Settings) {
	var before [looks]bool
	for w := range before {
		before[w] = n.configured(What(w))
	}
	alone := n.Set.IMDSOnly
	n.Set = s
	for w := What(1); w < looks; w++ {
		if !before[w] && n.configured(w) {
			n.want(w, now)
		}
	}
	switch {
	case s.IMDSOnly && n.Phase != recovering:
		n.Surveyed = true
	case alone:
		n.kick(now)
	}
	n.CoolAt, n.Flows.At = n.nextCool(now), now
	if n.HostDone && !n.HostBusy {
		n.applyHost(dataplane.HostPlan(n.hostSpec()))
	}
}
