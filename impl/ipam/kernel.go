package ipam

import (
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// seenKernel reads an observation of the kernel. Rows that changed after it was asked for are left alone (contract 8).
func (n *Node) seenKernel(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		n.trouble(troubleKernel, "reading links, rules and routes was cut short: "+in.Err)
		n.CoolAt = n.nextCool(now)
		return
	}
	n.trouble(troubleKernel, "")
	o := in.Kernel
	if o == nil {
		o = &dataplane.Observation{} // and yet the policy takes the answer for whole
	}
	if n.Phase == recovering {
		n.Kernel = o
		return
	}
	if n.calm && (n.last == o || n.last.Equal(o)) {
		return
	}
	ix, rested := o.IndexBy(n.named), n.atPeace() // what leaves a state by this look is judged by the next one (contract 8), which may show the same
	alive := n.testify(now, ix, asked)
	n.added(ix)
	n.unquarantine(now, ix, asked)
	n.coolDowns(now, ix, asked)
	n.drains(now, ix, asked)
	n.links(now, ix)
	n.answerAgains(now, ix, asked)
	n.repair(now, ix, asked)
	n.residue(now, ix, asked)
	n.answerChecks(ix, asked)
	n.collected(now, LookKernel, asked)
	n.CoolAt = n.nextCool(now)
	n.last, n.calm = o, alive && rested && n.atPeace()
}

// added tells of pods that have addresses of the node beyond their own. It takes NET_ADMIN in a pod, and nobody else's address may be
// withheld because of it; but the pod gets nothing that is sent to them, and reaches none of those that have them.
func (n *Node) added(ix *dataplane.Index) {
	type has struct {
		link  *dataplane.Link
		count int
		as    netip.Addr
	}
	var pods []has
	for i := range n.Addrs {
		a := &n.Addrs[i]
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
	text := ""
	for _, h := range pods {
		who := "the pod behind " + h.link.Name
		if i, ok := n.rowOfLink(h.link); ok && n.Addrs[i].Pod.Name != "" {
			who = "pod " + n.Addrs[i].Pod.Namespace + "/" + n.Addrs[i].Pod.Name
		}
		if text != "" {
			text += "; "
		}
		text += who + " has " + strconv.Itoa(h.count) + " of this node's addresses beyond its own, as " + h.as.String()
	}
	if text != "" {
		text += ": nothing that is sent to them gets there, and other pods are given them; take NET_ADMIN from it"
	}
	if text != "" && text != n.Troubles[troubleAdded] {
		n.note(Note{Point: AddressesAdded, Warn: true, Text: text})
	}
	n.trouble(troubleAdded, text)
}

// atPeace says whether nothing that an observation of the kernel could move is under way.
func (n *Node) atPeace() bool {
	if n.Phase != serving || !n.HostDone || n.HostBusy || n.Count[Cooling]+n.Count[Quarantined]+len(n.Checks)+len(n.Agains) > 0 || n.Collecting.Req != 0 {
		return false
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Stage != 0 && (e.Stage != Ready || e.busy() || e.Trimming || e.ByIMDS != 0 || !e.Linked) {
			return false
		}
	}
	return true
}

// testify records for every allocation whether the kernel still has it, and adopts attachments that only the kernel knows. It says
// whether all of them live and none was left out.
func (n *Node) testify(now time.Duration, ix *dataplane.Index, asked uint64) (alive bool) {
	if n.Witness.Kernel {
		n.adoptLinks(ix, asked)
	}
	alive = true
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Assigned || a.Op != noOp || a.Tag > asked {
			alive = alive && a.State != Assigned
			continue
		}
		l := ix.LinkByAlias(a.link())
		u := ix.User(a.IP)
		if l == nil && u != nil && u.Veth && u.Alias == "" && n.takeOver(int32(i), u) {
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
		n.reap(now, int32(i))
	}
	return alive
}

// takeOver finds the link of an allocation that has no alias. One that another CNI made is kept as it is: the pod's ARP entry names its MAC.
// That is durable before the link gets our alias (RepairPod). One that we made, as its namespace in the record says, has the MAC that is the
// alias's function, or gets it back. It says whether that was news.
func (n *Node) takeOver(ix int32, l *dataplane.Link) bool {
	a := &n.Addrs[ix]
	mac := a.MAC
	if mac == "" && a.Netns == 0 {
		mac = l.MAC
		n.trust(a, l, false)
	}
	if a.Veth == l.Name && a.MAC == mac {
		return false
	}
	a.Veth, a.MAC = l.Name, mac
	if a.Op == noOp {
		n.record(ix)
	} else {
		n.putAddress(ix)
	}
	return true
}

// trust tells of a MAC that is taken as it is, because neither record nor kernel say what it should be. Only the pod's own neighbour entry
// does, and nobody sees that from outside.
func (n *Node) trust(a *address, l *dataplane.Link, lost bool) {
	if !l.Adopted && l.MAC != dataplane.VethMAC(a.link()) {
		n.note(Note{Point: MACUnrecorded, Warn: lost, Att: a.Att, Addr: a.IP, Text: "the MAC of " + l.Name + " is taken for right: " + l.MAC +
			"; if its pod " + a.Pod.Namespace + "/" + a.Pod.Name + " does not reach " + dataplane.Gateway().String() +
			", its permanent neighbour entry names another one: delete the pod"})
	}
}

// adoptLinks turns a living host veth with our alias that no row knows into an allocation: its exact key is in the kernel (rule E).
func (n *Node) adoptLinks(ix *dataplane.Index, asked uint64) {
	for i := range ix.Observation.Links {
		l := &ix.Observation.Links[i]
		if l.Alias == "" || !l.PeerLive {
			continue
		}
		if len(l.PeerAddresses) == 1 { // nearly always it is that of a row we know
			if j, known := n.byAddress[l.PeerAddresses[0]]; known && n.Addrs[j].State == Assigned && n.Addrs[j].link() == l.Alias {
				continue
			}
		}
		network, id, ifName, ip, ok := dataplane.ParseAlias(l.Alias)
		if !ok {
			continue
		}
		j, known := n.byAddress[ip]
		if !known {
			continue
		}
		a := &n.Addrs[j]
		att := Attachment{network, id, ifName}
		if _, taken := n.rowOf(att); taken || a.Tag > asked || a.Op != noOp || a.State == Assigned || a.State == Cooling && a.Att == att && !a.Removed {
			continue
		}
		if a.State == Free || a.State == Quarantined && !a.Keyed {
			a.Att, a.Veth, a.MAC = att, l.Name, ownMAC(l)
			n.become(j, Assigned)
			n.key(j)
			n.record(j)
			n.note(Note{Point: RecoveredKernel, Att: att, Addr: ip})
		}
	}
}

// unquarantine ends quarantines whose evidence is gone (Policy.Cleared); the address then cools. One that an attachment has is released as by
// a DEL, which may never come: nobody lists what a daemon before this one recorded, and no DEL is owed for a sandbox that is long gone.
func (n *Node) unquarantine(now time.Duration, ix *dataplane.Index, asked uint64) {
	if n.Count[Quarantined] == 0 {
		return
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Quarantined || a.Op != noOp || a.Tag > asked {
			continue
		}
		if why, used := ix.Uses(a.IP); used {
			if a.Keyed || !n.claimed(int32(i), ix.User(a.IP)) {
				a.Clean, a.Evidence = 0, why
			}
			continue
		}
		if l := ix.LinkByAlias(a.link()); a.Keyed && l != nil && l.PeerLive {
			a.Clean, a.Evidence = 0, "its pod's namespace lives behind "+l.Name
			continue
		}
		if a.Clean++; !n.policy.Cleared(a.Clean) {
			n.want(LookKernel, now+coolBatch)
			continue
		}
		n.note(Note{Point: QuarantineEnded, Addr: a.IP, Att: a.Att})
		if a.Keyed {
			n.release(now, int32(i))
			continue
		}
		a.Clean, a.Evidence = 0, ""
		n.rest(now, int32(i), true)
		n.putAddress(int32(i))
	}
}

// coolDowns frees addresses whose cool-down has ended, unless the kernel has a veto (rule B).
func (n *Node) coolDowns(now time.Duration, ix *dataplane.Index, asked uint64) {
	kept := n.Cooling[:0]
	for _, i := range n.Cooling {
		a := &n.Addrs[i]
		if a.State != Cooling {
			continue
		}
		if a.Att == (Attachment{}) && a.Removed && a.Tag <= asked && n.rested(a) > now && n.Witness.Kernel {
			if why, used := ix.Uses(a.IP); used && n.policy.Veto(why) {
				n.quarantine(i, why) // nobody released it: no reason to wait
				continue
			}
		}
		if !a.Removed || a.Op != noOp || a.Tag > asked || n.rested(a) > now || !n.flowless(a) {
			kept = append(kept, i)
			continue
		}
		if !n.endCoolDown(now, i, ix) {
			kept = append(kept, i)
		}
	}
	n.Cooling = kept
	n.compactFree()
}

// endCoolDown says whether address i has left the state.
func (n *Node) endCoolDown(now time.Duration, i int32, ix *dataplane.Index) bool {
	a := &n.Addrs[i]
	if why, used := ix.Uses(a.IP); used && n.Witness.Kernel && n.policy.Veto(why) {
		n.note(Note{Point: AddressVetoed, Warn: true, Addr: a.IP, Text: why})
		n.quarantine(i, why)
		return true
	}
	if n.unclaimed(a) {
		return false
	}
	if a.ENI < 0 {
		n.forget(i)
		return true
	}
	if _, left := ix.Residue(a.IP); left && a.Att != (Attachment{}) {
		if n.elsewhere(a.Att, i) {
			return false // the attachment is back with another address, and its lane is its own: residue removes the rest
		}
		n.note(Note{Point: ResidueRemoved, Addr: a.IP})
		a.Op, a.Tag, a.Removed = releasing, n.Steps, false
		n.key(i)
		n.removePod(i)
		return false
	}
	n.free(i)
	return true
}

// repair puts back what somebody took away from living attachments and ENIs (rule H).
func (n *Node) repair(now time.Duration, ix *dataplane.Index, asked uint64) {
	if n.Phase != serving {
		return
	}
	if plan := n.policy.Repair(dataplane.RepairHost(n.hostSpec(), ix)); len(plan.Ops) > 0 && n.HostDone && !n.HostBusy {
		n.note(Note{Point: DriftRepaired, Warn: true, Text: plan.Ops[0].Kind.String()})
		n.applyHost(plan)
	}
	for i := range n.ENIs {
		n.repairENI(int32(i), ix)
	}
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State != Assigned || a.Op != noOp || a.Tag > asked || a.ENI < 0 {
			continue
		}
		plan := n.policy.Repair(dataplane.RepairPod(n.spec(int32(i)), ix))
		if len(plan.Ops) == 0 {
			continue
		}
		n.note(Note{Point: DriftRepaired, Warn: true, Att: a.Att, Addr: a.IP, Text: plan.Ops[0].Kind.String()})
		n.repairPod(int32(i), plan)
	}
}

// residue removes rules and routes of addresses that nobody has. Links are never removed here: a link with our alias and a
// living peer is an allocation, and one without dies with its namespace.
func (n *Node) residue(now time.Duration, ix *dataplane.Index, asked uint64) {
	if n.Phase != serving || n.HostBusy {
		return
	}
	keep := func(ip netip.Addr, alias string) bool {
		if alias != "" {
			return true
		}
		i, known := n.byAddress[ip]
		if !known {
			return n.isPrimary(ip) || n.othersHave(ip)
		}
		a := &n.Addrs[i]
		return a.State == Assigned || a.Op != noOp || a.Tag > asked || a.State == Cooling && !a.Removed || a.State == Quarantined
	}
	plan := dataplane.Residue(ix, keep)
	if len(plan.Ops) == 0 {
		return
	}
	n.note(Note{Point: ResidueRemoved, Text: plan.Ops[0].Kind.String()})
	n.applyHost(plan)
}
