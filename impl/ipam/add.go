package ipam

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// add: Save → Saved → Apply → Applied → Reply (contract 3).
func (n *Node) add(now time.Duration, in Add) {
	if !n.accept(now, in.Req, VerbAdd, in.Att, in.Deadline) {
		return
	}
	if in.Deadline == 0 {
		in.Deadline = now + defaultDeadline
	}
	if !n.policy.Speaks(VerbAdd, in.Version, n.Version) {
		n.refuseVersion(in.Req, VerbAdd, in.Att, in.Version)
		return
	}
	if aliasLength(in.Att) > dataplane.MaxAlias {
		n.fail(in.Req, &Error{CodeConfig, "cni add " + in.Att.String() + ": network, container ID and interface name together are too long for a link's alias"})
		return
	}
	if n.Phase == recovering {
		n.Queued = append(n.Queued, queued{Add: in.kept()})
		return
	}
	if n.busy(in.Att) || n.waits(in.Att) {
		n.enqueue(queued{Add: in.kept()})
		return
	}
	n.startAdd(now, in)
}

// kept is a copy that outlives the step; most requests do not.
func (in *Add) kept() *Add {
	out := *in
	return &out
}

// noName is the longest alias of an attachment with empty names.
var noName = len(alias(Attachment{}, netip.AddrFrom4([4]byte{255, 255, 255, 255})))

// aliasLength is how long the alias of an attachment can get.
func aliasLength(a Attachment) int {
	return noName + len(a.Network) + len(a.ContainerID) + len(a.IfName)
}

func (n *Node) startAdd(now time.Duration, in Add) {
	if ix, ok := n.rowOf(in.Att); ok {
		n.addAgain(now, ix, in)
		return
	}
	ix, ok := n.pick()
	if !ok {
		n.Waiting = append(n.Waiting, in)
		return
	}
	n.begin(now, ix, in.kept())
}

// again is a repeated ADD that waits for an observation of the kernel.
type again struct {
	Add
	Tag uint64
}

// addAgain deals with an ADD for an attachment that has its address: kubelet and runtime repeat after a crash
// (an ADD twice). The same namespace gets the same answer, once the kernel has been looked at: the records do not know
// what somebody removed since. Another one gets an error and changes nothing.
func (n *Node) addAgain(now time.Duration, ix int32, in Add) {
	a := &n.Addrs[ix]
	switch {
	case a.State != Assigned:
		n.fail(in.Req, &Error{CodeTryAgain, "cni add " + in.Pod.Name + " (" + in.Att.String() + "): its earlier address " + a.IP.String() +
			" is " + a.State.String() + " (" + a.Evidence + "); end the sandbox and make a new one"})
	case a.Netns != 0 && a.Netns != in.Netns:
		n.fail(in.Req, &Error{CodeOccupied, "cni add " + in.Pod.Name + " (" + in.Att.String() + "): the attachment has address " + a.IP.String() +
			" in another network namespace; delete it first"})
	default:
		a.Netns = in.Netns
		n.Agains = append(n.Agains, again{in, n.Steps})
		n.want(LookKernel, now)
	}
}

// answerAgains goes on with the repeated ADDs that an observation is new enough for.
func (n *Node) answerAgains(now time.Duration, ix *dataplane.Index, asked uint64) {
	list := n.Agains
	n.Agains = nil
	for _, c := range list {
		switch i, ok := n.rowOf(c.Att); {
		case c.Tag > asked:
			n.Agains = append(n.Agains, c)
		case ok && n.Addrs[i].Op != noOp:
			n.enqueue(queued{Add: c.kept()})
		case ok && n.Addrs[i].Tag <= asked && n.Addrs[i].State == Assigned && n.Addrs[i].Netns == c.Netns:
			n.answerAgain(i, c.Req, ix)
		default: // it has changed meanwhile
			n.startAdd(now, c.Add)
		}
	}
}

// answerAgain says yes to a repeated ADD when the kernel has all that the first one made, and puts back what is missing before.
func (n *Node) answerAgain(ix int32, req Req, index *dataplane.Index) {
	a := &n.Addrs[ix]
	if a.ENI < 0 {
		n.fail(req, &Error{CodeTryAgain, "cni add " + a.Att.String() + ": it is not known which ENI its address " + a.IP.String() + " is on; try again"})
		return
	}
	plan := dataplane.RemakePod(n.spec(ix), index)
	if plan.Empty() {
		n.replyAdd(ix, req)
		return
	}
	n.note(Note{Point: DriftRepaired, Warn: true, Att: a.Att, Addr: a.IP, Text: "before ADD is answered again: " + plan.Ops[0].Kind.String()})
	a.Req = req
	n.repairPod(ix, plan)
}

// repairPod runs what puts back something of an attachment that has its address. A repeated ADD may wait for it.
func (n *Node) repairPod(ix int32, plan dataplane.Plan) {
	a := &n.Addrs[ix]
	a.Op, a.Tag = repairing, n.Steps
	n.emit(&Apply{ID: n.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att}, Plan: plan})
}

// repairApplied answers the repeated ADD that waited for a repair. What failed is no reason to take the address from whoever has it.
func (n *Node) repairApplied(now time.Duration, ix int32, in Applied) {
	a := &n.Addrs[ix]
	req := a.Req
	a.Op, a.Req, a.Tag = noOp, 0, n.Steps
	switch {
	case req == 0:
	case in.Err == nil:
		n.replyAdd(ix, req)
	default:
		n.fail(req, &Error{CodeIO, "cni add " + a.Att.String() + ": it has address " + a.IP.String() +
			", of which the kernel lacks a part that cannot be put back: " + in.Err.Error() + "; end the sandbox and make a new one"})
	}
	n.runQueued(now, a.Att)
}

// begin gives address ix to an attachment, from the record on.
func (n *Node) begin(now time.Duration, ix int32, in *Add) {
	a := &n.Addrs[ix]
	a.Att, a.Pod, a.Netns, a.Allocated = in.Att, in.Pod, in.Netns, now
	a.Veth = dataplane.HostVethName(n.Set.VethPrefix, in.Pod.Namespace, in.Pod.Name)
	a.Op, a.Req, a.Then = adding, in.Req, in
	n.become(ix, Assigned)
	n.key(ix)
	n.putAddress(ix)
	n.waitSaved(RunStore, saveAdd, ix, a.Tag)
}

func (n *Node) addSaved(now time.Duration, ix int32, tag uint64, ok bool) {
	a := &n.Addrs[ix]
	if a.Op != adding || a.Tag != tag {
		return
	}
	if !ok {
		req, att := a.Req, a.Att
		n.free(ix) // the store holds what it held before
		n.fail(req, &Error{CodeTryAgain, "cni add " + att.String() + ": the allocation could not be made durable: " + n.Troubles[troubleStore] + "; try again"})
		n.runQueued(now, att)
		return
	}
	a.Allocated = now
	n.wirePod(now, ix)
}

// wirePod makes an attachment whose row is durable, if somebody waits for it. While a link of that name is being made it is held: two plans
// about one name would be mixed up.
func (n *Node) wirePod(now time.Duration, ix int32) {
	a := &n.Addrs[ix]
	a.Held = false
	if a.Req == 0 {
		n.undo(now, ix)
		return
	}
	for i := range n.Addrs {
		if o := &n.Addrs[i]; o.Wiring && o.Veth == a.Veth {
			a.Held = true
			return
		}
	}
	a.Wiring = true
	spec := n.spec(ix)
	evicted := n.displace(ix, &spec)
	plan := dataplane.PodPlan(spec)
	if evicted != "" {
		plan.Ops = append([]dataplane.Op{{Kind: dataplane.DeleteVeth, Alias: evicted}}, plan.Ops...)
	}
	n.emit(&Apply{ID: n.await(podPlan, ix), Lane: Lane{Kind: PodLane, Att: a.Att}, Plan: plan})
}

// wireHeld goes on with who waited for a link of that name.
func (n *Node) wireHeld(now time.Duration, veth string) {
	for i := range n.Addrs {
		if a := &n.Addrs[i]; a.Held && a.Veth == veth {
			n.wirePod(now, int32(i))
		}
	}
}

// displace makes room for a new incarnation of a pod whose older sandbox is still here (rule G): the canonical name
// belongs to the newest.
func (n *Node) displace(ix int32, spec *dataplane.PodSpec) (evict string) {
	a := &n.Addrs[ix]
	for i := range n.Addrs {
		o := &n.Addrs[i]
		if int32(i) == ix || !o.Keyed || o.Veth != a.Veth || o.Op == adding { // which has no link yet
			continue
		}
		old := alias(o.Att, o.IP)
		newer, older := a.row(), o.row()
		if n.policy.Displace(&newer, &older) == Evict {
			return old
		}
		o.Veth = dataplane.DisplacedVethName(n.Set.VethPrefix, old)
		spec.Displaced, spec.DisplacedName = old, o.Veth
		if o.Op != recording { // its own Save may fail yet; the kernel knows its name
			n.putAddress(int32(i))
		}
		n.note(Note{Point: Displaced, Att: o.Att, Addr: o.IP})
		return ""
	}
	if a.Then != nil && a.Then.Tries > 0 { // the first try met a link of that name that no row knows
		if newer := a.row(); n.policy.Displace(&newer, nil) == Rename {
			spec.DisplacedName = dataplane.DisplacedVethName(n.Set.VethPrefix, "before "+a.link())
		}
	}
	return ""
}

func (n *Node) podApplied(now time.Duration, ix int32, in Applied) {
	switch a := &n.Addrs[ix]; a.Op {
	case adding:
		n.addApplied(now, ix, in)
	case releasing:
		n.releaseApplied(now, ix, in)
	case repairing:
		n.repairApplied(now, ix, in)
	}
}

func (n *Node) addApplied(now time.Duration, ix int32, in Applied) {
	a := &n.Addrs[ix]
	a.Tag, a.Wiring = n.Steps, false
	defer n.wireHeld(now, a.Veth)
	switch {
	case in.Err == nil && a.Req != 0:
		att, req := a.Att, a.Req
		a.Op, a.Req, a.Then = noOp, 0, nil
		n.replyAdd(ix, req)
		n.runQueued(now, att)
	case in.Err == nil:
		n.undo(now, ix)
	case in.Err.Kind == dataplane.Exists && a.Req != 0 && a.Then != nil && a.Then.Tries < maxOccupied:
		// Something lives under this name or address: set it aside and take the next one.
		n.note(Note{Point: AddressQuarantined, Warn: true, Att: a.Att, Addr: a.IP, Text: in.Err.Error()})
		then := *a.Then
		then.Tries++
		a.Req = 0
		n.release(now, ix)
		a.Then = &then
	default:
		req, att := a.Req, a.Att
		a.Req = 0
		n.release(now, ix)
		n.fail(req, &Error{CodeIO, "cni add " + att.String() + ": setting up the namespace failed: " + in.Err.Error()})
	}
}

// maxOccupied bounds the addresses that one ADD tries.
const maxOccupied = 3

// undo releases what an ADD made that nobody waits for any more.
func (n *Node) undo(now time.Duration, ix int32) {
	n.note(Note{Point: AddUndone, Att: n.Addrs[ix].Att, Addr: n.Addrs[ix].IP})
	n.release(now, ix)
}

func (n *Node) replyAdd(ix int32, req Req) {
	if _, ok := n.close(req); !ok {
		return
	}
	a := &n.Addrs[ix]
	r := &Reply{Req: req, Verb: VerbAdd, Att: a.Att, Address: a.IP, Table: n.table(a), Veth: a.Veth}
	if a.ENI >= 0 {
		r.Device = n.ENIs[a.ENI].Device
	}
	n.emit(r)
}

// serve gives addresses to ADDs that wait, first come first served.
func (n *Node) serve(now time.Duration) {
	for len(n.Waiting) > 0 {
		if att := n.Waiting[0].Att; n.elsewhere(att, -1) { // another ADD of it was served, or the kernel had it
			in := n.Waiting[0]
			n.dropWaiting(0)
			if n.busy(att) {
				n.enqueue(queued{Add: &in})
			} else {
				n.startAdd(now, in)
			}
			continue
		}
		ix, ok := n.pick()
		if !ok {
			return
		}
		in := n.Waiting[0]
		n.dropWaiting(0)
		n.note(Note{Point: AddWaited, Att: in.Att})
		n.begin(now, ix, &in)
	}
}

// turnAway answers the ADDs that no growth under way and no cool-down will serve in time.
func (n *Node) turnAway(now time.Duration) {
	if len(n.Waiting) == 0 || n.growing() {
		return
	}
	kept := n.Waiting[:0]
	var gone []Add
	hope := n.hope()
	for i := range n.Waiting {
		w := n.Waiting[i]
		if hope+replyMargin < w.Deadline {
			kept = append(kept, w)
			continue
		}
		gone = append(gone, w)
	}
	n.Waiting = kept
	for i := range gone {
		n.fail(gone[i].Req, &Error{CodeTryAgain, n.noAddress(now, &gone[i])})
		n.runQueued(now, gone[i].Att)
	}
}
