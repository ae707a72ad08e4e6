package ipam

import (
	"cmp"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// add: Save → Saved → Apply → Applied → Reply (contract 3).
func (ps *pods) add(now time.Duration, in Add) {
	if !ps.requests.accept(now, in.Req, VerbAdd, in.Att, in.Deadline) {
		return
	}
	in.Deadline = cmp.Or(in.Deadline, now+defaultDeadline)
	if !ps.policy.Speaks(VerbAdd, in.Version, ps.Version) {
		ps.requests.refuseVersion(in.Req, VerbAdd, in.Att, in.Version)
		return
	}
	if aliasLength(in.Att) > dataplane.MaxAlias {
		ps.requests.end(in.Req, &Error{CodeConfig, "cni add " + in.Att.String() +
			": network, container ID and interface name together are too long for a link's alias"})
		return
	}
	if ps.Phase == recovering {
		ps.requests.Queued = append(ps.requests.Queued, queued{Add: new(in)})
		return
	}
	if ps.pool.busy(in.Att) || ps.requests.waits(in.Att) {
		ps.requests.enqueue(queued{Add: new(in)})
		return
	}
	ps.startAdd(now, in)
}

// noName is the longest alias of an attachment with empty names.
var noName = len(alias(Attachment{}, netip.AddrFrom4([4]byte{255, 255, 255, 255})))

// aliasLength is how long the alias of an attachment can get.
func aliasLength(a Attachment) int {
	return noName + len(a.Network) + len(a.ContainerID) + len(a.IfName)
}

func (ps *pods) startAdd(now time.Duration, in Add) {
	if ix, ok := ps.pool.rowOf(in.Att); ok {
		ps.addAgain(now, ix, in)
		return
	}
	ix, ok := ps.pool.pick()
	if !ok {
		ps.requests.Waiting = append(ps.requests.Waiting, in)
		return
	}
	ps.begin(now, ix, new(in))
}

// again is a repeated ADD that waits for an observation of the kernel.
type again struct {
	Add
	Tag uint64
}

// addAgain deals with an ADD for an attachment that has its address: kubelet and runtime repeat after a crash
// (an ADD twice). The same namespace gets the same answer, once the kernel has been looked at: the records do not know
// what was removed since. Another one gets an error and changes nothing.
func (ps *pods) addAgain(now time.Duration, ix int32, in Add) {
	a := &ps.pool.Addrs[ix]
	switch {
	case a.State != Assigned:
		ps.requests.end(in.Req, &Error{CodeTryAgain, "cni add " + in.Pod.Name + " (" + in.Att.String() +
			"): its earlier address " + a.IP.String() +
			" is " + a.State.String() + " (" + a.Evidence + "); end the sandbox and make a new one"})
	case a.Netns != 0 && a.Netns != in.Netns:
		ps.requests.end(in.Req, &Error{CodeOccupied, "cni add " + in.Pod.Name + " (" + in.Att.String() +
			"): the attachment has address " + a.IP.String() +
			" in another network namespace; delete it first"})
	default:
		a.Netns = in.Netns
		ps.requests.Agains = append(ps.requests.Agains, again{in, ps.Steps})
		ps.evidence.want(LookKernel, now)
	}
}

// answerAgains goes on with the repeated ADDs that an observation is new enough for.
func (ps *pods) answerAgains(now time.Duration, ix *dataplane.Index, asked uint64) {
	list := ps.requests.Agains
	ps.requests.Agains = nil
	for _, c := range list {
		switch i, ok := ps.pool.rowOf(c.Att); {
		case c.Tag > asked:
			ps.requests.Agains = append(ps.requests.Agains, c)
		case ok && ps.pool.Addrs[i].Op != noOp:
			ps.requests.enqueue(queued{Add: new(c.Add)})
		case ok && ps.pool.Addrs[i].Tag <= asked && ps.pool.Addrs[i].State == Assigned &&
			ps.pool.Addrs[i].Netns == c.Netns:
			ps.answerAgain(i, c.Req, ix)
		default: // it has changed meanwhile
			ps.startAdd(now, c.Add)
		}
	}
}

// answerAgain says yes to a repeated ADD when the kernel has all that the first one made, and puts back what is missing before.
func (ps *pods) answerAgain(ix int32, req Req, index *dataplane.Index) {
	a := &ps.pool.Addrs[ix]
	if ps.pool.table(a) == dataplane.UnknownTable {
		ps.requests.end(req, &Error{CodeTryAgain, "cni add " + a.Att.String() +
			": it is not known where the ENI of its address " + a.IP.String() + " is attached; try again"})
		return
	}
	plan := dataplane.RemakePod(ps.pool.spec(ix), index)
	if plan.Empty() {
		ps.replyAdd(ix, req)
		return
	}
	ps.note(Note{Point: DriftRepaired, Warn: true, Att: a.Att, Addr: a.IP, Text: "before ADD is answered again: " +
		plan.Ops[0].Kind.String()})
	a.Req = req
	ps.repairPod(ix, plan)
}

// repairPod runs what puts back something of an attachment that has its address. A repeated ADD may wait for it.
func (ps *pods) repairPod(ix int32, plan dataplane.Plan) {
	a := &ps.pool.Addrs[ix]
	a.run(repairing)
	a.Tag = ps.Steps
	ps.emit(&Apply{ID: ps.ledger.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att}, Plan: plan})
}

// repairApplied answers the repeated ADD that waited for a repair. What failed is no reason to take the address from
// the pod that has it.
func (ps *pods) repairApplied(now time.Duration, ix int32, in Applied) {
	a := &ps.pool.Addrs[ix]
	req := a.Req
	a.run(noOp)
	a.Req, a.Tag = 0, ps.Steps
	switch {
	case req == 0:
	case in.Err == nil:
		ps.replyAdd(ix, req)
	default:
		ps.requests.end(req, &Error{CodeIO, "cni add " + a.Att.String() + ": it has address " + a.IP.String() +
			", of which the kernel lacks a part that cannot be put back: " + in.Err.Error() + "; end the sandbox and make a new one"})
	}
	ps.runQueued(now, a.Att)
}

// begin gives address ix to an attachment, from the record on.
func (ps *pods) begin(now time.Duration, ix int32, in *Add) {
	a := &ps.pool.Addrs[ix]
	a.Att, a.Pod, a.Netns, a.Allocated = in.Att, in.Pod, in.Netns, now
	a.Veth = dataplane.HostVethName(ps.Set.VethPrefix, in.Pod.Namespace, in.Pod.Name)
	a.run(adding)
	a.Req, a.Then = in.Req, in
	ps.pool.become(ix, Assigned)
	ps.pool.key(ix)
	ps.pool.putAddress(ix)
	ps.ledger.waitSaved(RunStore, saveAdd, ix, a.Tag)
}

func (ps *pods) addSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &ps.pool.Addrs[ix]
	if a.Op != adding || a.Tag != tag {
		return
	}
	if !ok {
		req, att := a.Req, a.Att
		ps.pool.free(ix) // the store holds what it held before
		ps.requests.end(req, &Error{CodeTryAgain, "cni add " + att.String() +
			": the allocation could not be made durable: " + ps.Troubles[troubleStore] + "; try again"})
		ps.runQueued(now, att)
		return
	}
	a.Allocated = now
	ps.wirePod(now, ix)
}

// wirePod makes an attachment whose row is durable, if a caller waits for it. While a link of that name is being made
// it is held: two plans about one name would be mixed up.
func (ps *pods) wirePod(now time.Duration, ix int32) {
	a := &ps.pool.Addrs[ix]
	if a.Req == 0 {
		ps.undo(now, ix)
		return
	}
	for i := range ps.pool.Addrs {
		if o := &ps.pool.Addrs[i]; o.Op == wiring && o.Veth == a.Veth {
			if a.Op != held {
				a.run(held)
			}
			return
		}
	}
	a.run(wiring)
	spec := ps.pool.spec(ix)
	evicted := ps.displace(ix, &spec)
	plan := dataplane.PodPlan(spec)
	if evicted != "" {
		plan.Ops = append([]dataplane.Op{{Kind: dataplane.DeleteVeth, Alias: evicted}}, plan.Ops...)
	}
	ps.emit(&Apply{ID: ps.ledger.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att}, Plan: plan})
}

// wireHeld goes on with who waited for a link of that name.
func (ps *pods) wireHeld(now time.Duration, veth string) {
	for i := range ps.pool.Addrs {
		if a := &ps.pool.Addrs[i]; a.Op == held && a.Veth == veth {
			ps.wirePod(now, int32(i))
		}
	}
}

// displace makes room for a new incarnation of a pod whose older sandbox is still here (rule G): the canonical name
// belongs to the newest.
func (ps *pods) displace(ix int32, spec *dataplane.PodSpec) (evict string) {
	a := &ps.pool.Addrs[ix]
	for i := range ps.pool.Addrs {
		o := &ps.pool.Addrs[i]
		if int32(i) == ix || !o.Keyed || o.Veth != a.Veth || o.linkless() {
			continue
		}
		old := alias(o.Att, o.IP)
		newer, older := a.row(), o.row()
		if ps.policy.Displace(&newer, &older) == Evict {
			return old
		}
		o.Veth = dataplane.DisplacedVethName(ps.Set.VethPrefix, old)
		spec.Displaced, spec.DisplacedName = old, o.Veth
		if o.Op != recording { // its own Save may fail yet; the kernel knows its name
			ps.pool.putAddress(int32(i))
		}
		ps.note(Note{Point: Displaced, Att: o.Att, Addr: o.IP})
		return ""
	}
	if a.Then != nil && a.Then.Tries > 0 { // the first try met a link of that name that no row knows
		if newer := a.row(); ps.policy.Displace(&newer, nil) == Rename {
			spec.DisplacedName = dataplane.DisplacedVethName(ps.Set.VethPrefix, "before "+a.link())
		}
	}
	return ""
}

func (ps *pods) podApplied(now time.Duration, ix int32, in Applied) {
	switch a := &ps.pool.Addrs[ix]; a.Op {
	case wiring:
		ps.addApplied(now, ix, in)
	case releasing:
		ps.releaseApplied(now, ix, in)
	case repairing:
		ps.repairApplied(now, ix, in)
	}
}

func (ps *pods) addApplied(now time.Duration, ix int32, in Applied) {
	a := &ps.pool.Addrs[ix]
	a.Tag = ps.Steps
	defer ps.wireHeld(now, a.Veth)
	switch {
	case in.Err == nil && a.Req != 0:
		att, req := a.Att, a.Req
		a.run(noOp)
		a.Req, a.Then = 0, nil
		ps.replyAdd(ix, req)
		ps.runQueued(now, att)
	case in.Err == nil:
		ps.undo(now, ix)
	case in.Err.Kind == dataplane.Exists && a.Req != 0 && a.Then != nil && a.Then.Tries < maxOccupied:
		// Something lives under this name or address: set it aside and take the next one.
		ps.note(Note{Point: AddressQuarantined, Warn: true, Att: a.Att, Addr: a.IP, Text: in.Err.Error()})
		then := *a.Then
		then.Tries++
		a.Req = 0
		ps.release(now, ix)
		a.Then = &then
	default:
		req, att := a.Req, a.Att
		a.Req = 0
		ps.release(now, ix)
		ps.requests.end(req, &Error{CodeIO, "cni add " + att.String() + ": setting up the namespace failed: " +
			in.Err.Error()})
	}
}

// maxOccupied bounds the addresses that one ADD tries.
const maxOccupied = 3

// undo releases what an ADD made whose caller is gone.
func (ps *pods) undo(now time.Duration, ix int32) {
	ps.note(Note{Point: AddUndone, Att: ps.pool.Addrs[ix].Att, Addr: ps.pool.Addrs[ix].IP})
	ps.release(now, ix)
}

func (ps *pods) replyAdd(ix int32, req Req) {
	if _, ok := ps.requests.close(req); !ok {
		return
	}
	a := &ps.pool.Addrs[ix]
	r := &Reply{Req: req, Verb: VerbAdd, Att: a.Att, Address: a.IP, Table: ps.pool.table(a), Veth: a.Veth}
	if a.ENI >= 0 {
		r.Device = ps.enis.ENIs[a.ENI].Device
	}
	ps.emit(r)
}

// serve gives addresses to ADDs that wait, first come first served.
func (ps *pods) serve(now time.Duration) {
	for len(ps.requests.Waiting) > 0 {
		// another ADD of it was served, or the kernel had it
		if att := ps.requests.Waiting[0].Att; ps.pool.elsewhere(att, -1) {
			in := ps.requests.Waiting[0]
			ps.requests.dropWaiting(0)
			if ps.pool.busy(att) {
				ps.requests.enqueue(queued{Add: &in})
			} else {
				ps.startAdd(now, in)
			}
			continue
		}
		ix, ok := ps.pool.pick()
		if !ok {
			return
		}
		in := ps.requests.Waiting[0]
		ps.requests.dropWaiting(0)
		ps.note(Note{Point: AddWaited, Att: in.Att})
		ps.begin(now, ix, &in)
	}
}

// turnAway answers the ADDs that no growth under way and no cool-down will serve in time.
func (ps *pods) turnAway(now time.Duration) {
	if len(ps.requests.Waiting) == 0 || ps.pool.growing() {
		return
	}
	kept := ps.requests.Waiting[:0]
	var gone []Add
	hope := ps.pool.hope()
	for i := range ps.requests.Waiting {
		w := ps.requests.Waiting[i]
		if hope+replyMargin < w.Deadline {
			kept = append(kept, w)
			continue
		}
		gone = append(gone, w)
	}
	ps.requests.Waiting = kept
	for i := range gone {
		ps.requests.end(gone[i].Req, &Error{CodeTryAgain, ps.noAddress(now, &gone[i])})
		ps.runQueued(now, gone[i].Att)
	}
}
