package ipam

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// pool are the addresses of the node, each in a slot: which ENI carries it, whose it is, and how long it cools.
type pool struct {
	*life    `json:"-"`
	ledger   *ledger
	requests *requests
	evidence *evidence
	enis     *enis

	Addrs     []address
	Holes     []int32              // free slots of Addrs
	FreeQueue []int32              // addresses by how long they are free; entries may be stale
	Cooling   []int32              // entries may be stale
	Count     [Quarantined + 1]int // addresses by state
	RetryAt   time.Duration        // earliest retry of a removal
	CoolAt    time.Duration        // earliest end of a cool-down
	Flows     flowState
	Warm      warmState `json:"Pool"`

	// Rebuilt from Addrs, never encoded.
	byAddress map[netip.Addr]int32
	blocks    []block              // ENI -1: an empty slot
	byID      map[string]int32     // keyed rows by container ID, one of each
	byAtt     map[Attachment]int32 // and those whose container has another one in byID
}

// warmState is the warm pool's memory.
type warmState struct {
	At time.Duration // when to think again although nothing happened
	growth
	MoreSince time.Duration `json:",omitzero"` // since when there is too little; 0 there is not
	LessSince time.Duration // since when there is too much; 0 there is not
	Wanted    bool          // more addresses are wanted than are under way
	TurnAt    time.Duration `json:",omitzero"` // slots of the other kind stay until then
	Typeless  bool          `json:",omitzero"` // it has been told that the type has no prefixes
	ceiling
}

// index begins the index of so many addresses.
func (p *pool) index(size int) {
	p.byAddress = make(map[netip.Addr]int32, size)
	p.byID = make(map[string]int32, size)
	p.byAtt = nil
}

// reindex rebuilds what is not encoded.
func (p *pool) reindex() {
	p.index(len(p.Addrs))
	for i := range p.Addrs {
		a := &p.Addrs[i]
		if a.State == 0 {
			continue
		}
		p.byAddress[a.IP] = int32(i)
		if a.Keyed {
			p.enter(int32(i))
		}
	}
	p.rebuildBlocks()
}

// newAddress takes a slot for an address that is not known yet. The caller sets its state.
func (p *pool) newAddress(ip netip.Addr, eniIx int32) int32 {
	var ix int32
	if k := len(p.Holes); k > 0 {
		ix = p.Holes[k-1]
		p.Holes = p.Holes[:k-1]
	} else {
		ix = int32(len(p.Addrs))
		p.Addrs = append(p.Addrs, address{})
	}
	p.Addrs[ix] = address{IP: ip, ENI: -1, Tag: p.Steps, Retry: never}
	p.byAddress[ip] = ix
	p.place(ix, eniIx)
	return ix
}

// putAddress writes the row of an address in this step's Save.
func (p *pool) putAddress(ix int32) {
	p.ledger.putRow(RunStore, p.Addrs[ix].row())
}

// place says which ENI carries an address. One that another ENI has by now was given back there, whatever became of that call's answer: it is not
// about to go any more.
func (p *pool) place(ix, eniIx int32) {
	a := &p.Addrs[ix]
	if a.ENI == eniIx {
		return
	}
	p.leave(ix)
	if a.ENI >= 0 {
		p.enis.ENIs[a.ENI].Has[a.State]--
	}
	a.ENI = eniIx
	if eniIx >= 0 {
		a.ENIID, a.Missing = p.enis.ENIs[eniIx].ID, 0
		p.stays(ix)
		p.enis.ENIs[eniIx].Has[a.State]++
	}
	p.join(ix)
}

// stays ends that an address is about to be given back.
func (p *pool) stays(ix int32) {
	if a := &p.Addrs[ix]; a.Leaving {
		a.Leaving = false
		p.FreeQueue = append(p.FreeQueue, ix)
	}
}

// become moves an address to another state; state 0 forgets it. As with run, a move that is not in the table is a
// mistake of the program.
func (p *pool) become(ix int32, s State) {
	a := &p.Addrs[ix]
	if !slices.Contains(stateFollows[a.State], s) {
		panic(fmt.Sprintf("address %v: %v follows %v", a.IP, s, a.State))
	}
	p.Count[a.State]--
	p.Count[s]++
	p.Count[0] = 0
	if b := p.blockOf(a); b != nil {
		p.count(b, -1)
		b.Has[a.State]--
		b.Has[s]++
		p.count(b, 1)
	}
	if a.ENI >= 0 {
		e := &p.enis.ENIs[a.ENI]
		e.Has[a.State]--
		e.Has[s]++
	}
	a.State, a.Tag, a.Cooling = s, p.Steps, inKernel
}

// key makes the attachment findable; unkey ends that.
func (p *pool) key(ix int32) {
	a := &p.Addrs[ix]
	a.Keyed, a.alias = true, ""
	p.enter(ix)
}

// enter puts a keyed row into the index. A container has one attachment, nearly always.
func (p *pool) enter(ix int32) {
	att := &p.Addrs[ix].Att
	if i, ok := p.byID[att.ContainerID]; ok {
		if o := &p.Addrs[i]; o.Keyed && o.Att != *att && o.Att.ContainerID == att.ContainerID {
			if p.byAtt == nil {
				p.byAtt = map[Attachment]int32{}
			}
			p.byAtt[*att] = ix
			return
		}
	}
	p.byID[att.ContainerID] = ix
	delete(p.byAtt, *att)
}

// rowOf is the row of an attachment.
func (p *pool) rowOf(att Attachment) (ix int32, ok bool) {
	if ix, ok = p.byID[att.ContainerID]; ok {
		if a := &p.Addrs[ix]; a.Keyed && a.Att == att {
			return ix, true
		}
	}
	if p.byAtt == nil {
		return 0, false
	}
	ix, ok = p.byAtt[att]
	return ix, ok
}

func (p *pool) unkey(ix int32) {
	a := &p.Addrs[ix]
	if i, ok := p.byID[a.Att.ContainerID]; a.Keyed && ok && i == ix {
		delete(p.byID, a.Att.ContainerID)
	} else if i, ok := p.byAtt[a.Att]; a.Keyed && ok && i == ix {
		delete(p.byAtt, a.Att)
	}
	a.Keyed = false
}

// forget drops an address that the cloud has taken back.
func (p *pool) forget(ix int32) {
	a := &p.Addrs[ix]
	p.unkey(ix)
	p.ledger.dropRow(RunStore, Key{Address: a.IP})
	delete(p.byAddress, a.IP)
	p.become(ix, 0)
	p.place(ix, -1)
	p.Addrs[ix] = address{ENI: -1, Retry: never, Tag: p.Steps}
	p.Holes = append(p.Holes, ix)
}

// free makes an address available, behind all that are free longer. What metadata and EC2 have said against it stands:
// the end of a cool-down says nothing about that.
func (p *pool) free(ix int32) {
	a := &p.Addrs[ix]
	p.unkey(ix)
	*a = address{IP: a.IP, Prefixed: a.Prefixed, block: a.block, ENI: a.ENI, ENIID: a.ENIID, State: a.State, ByIMDS: a.ByIMDS,
		Missing: a.Missing, Given: a.Given, Retry: never}
	p.become(ix, Free)
	p.FreeQueue = append(p.FreeQueue, ix)
}

// pick takes an address from an ENI that may give: where there are no prefixes the one that is free the longest, else as
// better says. One that EC2's last answer lacked waits for the next, and where only metadata is asked, one that
// metadata lacks for it to say so for long; one whose ENI has no link waits for that.
func (p *pool) pick() (int32, bool) {
	best := -1
	for i, ix := range p.FreeQueue {
		a := &p.Addrs[ix]
		if a.State != Free {
			continue // stale
		}
		if a.Leaving || a.Missing > 0 || p.Set.IMDSOnly && a.ByIMDS > 0 || a.ENI < 0 ||
			p.enis.ENIs[a.ENI].Stage != Ready || p.enis.ENIs[a.ENI].gives(a.IP) ||
			p.enis.excluded(&p.enis.ENIs[a.ENI]) || p.enis.ENIs[a.ENI].cut() && !p.policy.Serves(false) {
			continue
		}
		if best < 0 || p.better(a, &p.Addrs[p.FreeQueue[best]]) {
			best = i
		}
		if len(p.blocks) == 0 {
			break
		}
	}
	if best < 0 {
		return 0, false
	}
	ix := p.FreeQueue[best]
	p.FreeQueue = append(p.FreeQueue[:best], p.FreeQueue[best+1:]...)
	return ix, true
}

// compactFree removes stale and double entries when they are in the majority.
func (p *pool) compactFree() {
	if len(p.FreeQueue) <= 2*p.Count[Free]+8 {
		return
	}
	seen := make(map[int32]bool, p.Count[Free])
	kept := p.FreeQueue[:0]
	for _, ix := range p.FreeQueue {
		if p.Addrs[ix].State == Free && !seen[ix] {
			seen[ix] = true
			kept = append(kept, ix)
		}
	}
	p.FreeQueue = kept
}

// rest lets an address cool, from now; removed says that the kernel holds nothing of it any more.
func (p *pool) rest(now time.Duration, ix int32, removed bool) {
	a := &p.Addrs[ix]
	p.become(ix, Cooling)
	a.ReleasedAt = now
	p.Cooling = append(p.Cooling, ix)
	if removed {
		a.cool(remembered)
		p.cools(a)
	}
}

// inspect is rest for an address whose cool-down is over or never was: it is free once the kernel has been seen not to
// use it.
func (p *pool) inspect(now time.Duration, ix int32) {
	a := &p.Addrs[ix]
	p.become(ix, Cooling)
	a.ReleasedAt = now - p.coolDown()
	a.cool(remembered)
	p.Cooling = append(p.Cooling, ix)
	p.cools(a)
}

// rested is when the cool-down of a ends.
func (p *pool) rested(a *address) time.Duration { return a.ReleasedAt + p.coolDown() }

// spec is what the kernel should look like for an attachment.
func (p *pool) spec(ix int32) dataplane.PodSpec {
	a := &p.Addrs[ix]
	return dataplane.PodSpec{Alias: a.link(), HostVeth: a.Veth, Netns: a.Netns, Address: a.IP, Table: p.table(a),
		MTU: p.Set.MTU, IfName: a.Att.IfName, MAC: a.MAC}
}

func (p *pool) table(a *address) int {
	if a.ENI < 0 {
		return dataplane.UnknownTable
	}
	e := &p.enis.ENIs[a.ENI]
	if e.Device == 0 && e.Stage < Attached { // the records name it, and no source has yet
		return dataplane.UnknownTable
	}
	return dataplane.TableOf(e.Device)
}

// discover takes an address into the books that is on an ENI and has no record. The record of what was given
// back may be lost: unless something else speaks for the address, EC2's answer may be the older one.
func (p *pool) discover(now time.Duration, ip netip.Addr, ix int32, prefixed, seconded bool) {
	p.note(Note{Point: AddressAdopted, ENI: p.enis.ENIs[ix].ID, Addr: ip})
	p.adopt(now, ip, ix, prefixed)
	if until := p.ledger.Recorded + p.policy.Forgotten(p.Set, seconded); until > now {
		p.hold(p.byAddress[ip], until)
		p.putAddress(p.byAddress[ip]) // the next daemon has to wait as long
	}
}

func (p *pool) retryLater(now time.Duration, a *address) {
	a.Tries++
	a.Retry = now + min(removalPause<<min(a.Tries-1, 6), maxRemovalPause)
	p.RetryAt = min(p.RetryAt, a.Retry)
}

// returned takes an address that EC2 has assigned, by its own answer. One that departed a moment ago is held back for
// a while: an unassignment is named by ENI and address, so one of a lost call or a dead daemon that lands late takes
// it away again (contract 5).
func (p *pool) returned(now time.Duration, ip netip.Addr, ix int32, prefixed bool) {
	until := now
	for i := range p.evidence.Departures {
		if d := &p.evidence.Departures[i]; d.IP == ip {
			until = max(until, d.At+landing)
		}
	}
	p.adopt(now, ip, ix, prefixed)
	a := p.byAddress[ip]
	if p.Addrs[a].Given = now; until > now {
		p.hold(a, until)
		p.putAddress(a)
	}
}

// young says whether EC2 has just assigned an address by its own answer, or a pod has just got it: a list of EC2 that says
// otherwise may be of before.
func (p *pool) young(now time.Duration, a *address) bool {
	return a.Given > 0 && p.policy.Stale(now-a.Given) || a.State == Assigned && p.policy.Stale(now-a.Allocated)
}

// justMoved says whether an address has come to another ENI than this a moment ago.
func (p *pool) justMoved(now time.Duration, i int32, eni string) bool {
	a := &p.Addrs[i]
	return a.ENIID != "" && a.ENIID != eni && p.young(now, a)
}

// hold keeps a new address back until an instant.
func (p *pool) hold(ix int32, until time.Duration) {
	if a := &p.Addrs[ix]; a.State == Cooling && a.Att == (Attachment{}) {
		a.ReleasedAt = until - p.coolDown()
		p.cools(a)
	}
}

// addressGone: the cloud has taken an address back.
func (p *pool) addressGone(i int32) {
	a := &p.Addrs[i]
	p.note(Note{Point: AddressMissing, Warn: true, Addr: a.IP, Att: a.Att})
	switch {
	case a.Op != noOp:
	case a.State == Assigned:
		why := "EC2 has taken the address away from " + cmp.Or(a.ENIID, "this node")
		p.place(i, -1)
		a.ENIID = ""
		p.quarantine(i, why)
	case a.Att != Attachment{}: // it may come back, and cools on, or is set aside
		p.place(i, -1)
		a.ENIID = ""
		p.putAddress(i)
	default:
		p.forget(i)
	}
}

// adopt takes an address that an ENI carries into the books, and into the records: the next daemon has only EC2
// to hear it from.
func (p *pool) adopt(now time.Duration, ip netip.Addr, ix int32, prefixed bool) {
	p.evidence.Departures = slices.DeleteFunc(p.evidence.Departures, func(d departed) bool { return d.IP == ip })
	if a, known := p.byAddress[ip]; known {
		p.place(a, ix)
		p.mark(a, prefixed)
		p.Addrs[a].Missing, p.Addrs[a].ByIMDS = 0, 0
		return
	}
	a := p.newAddress(ip, ix)
	p.inspect(now, a)
	p.mark(a, prefixed)
	p.putAddress(a)
}

// strand takes an ENI's addresses out of the books; what is or was an attachment's keeps its row, that of a living pod
// as quarantined, so that DEL finds it. Of one whose ADD goes on EC2 is asked once more.
func (p *pool) strand(now time.Duration, ix int32) {
	for i := range p.Addrs {
		a := &p.Addrs[i]
		if a.State == 0 || a.ENI != ix {
			continue
		}
		p.place(int32(i), -1)
		switch {
		case a.State == Assigned && a.Op == noOp:
			p.quarantine(int32(i), "its ENI "+a.ENIID+" is gone")
		case a.State == Assigned:
			p.evidence.want(LookAttached, now+askPause)
		case a.Op == noOp && a.Att == Attachment{}:
			p.forget(int32(i))
		}
	}
}

// named says whether the records name an address as that of the pod behind a host veth.
func (p *pool) named(link string, ip netip.Addr) bool {
	i, known := p.byAddress[ip]
	return known && p.Addrs[i].Veth == link && p.Addrs[i].Att != Attachment{}
}

// rowOfLink is the row of the pod behind a host veth with our alias.
func (p *pool) rowOfLink(l *dataplane.Link) (int32, bool) {
	network, id, ifName, _, ok := dataplane.ParseAlias(l.Alias)
	if !ok {
		return 0, false
	}
	return p.rowOf(Attachment{network, id, ifName})
}

// unclaimed says whether an address names an ENI of which EC2 has not said yet whether the node has it, or may not list it yet: it
// tells reclaim of that ENI.
func (p *pool) unclaimed(now time.Duration, a *address) bool {
	return a.ENI < 0 && a.ENIID != "" && (!p.Surveyed || p.young(now, a))
}

// quarantine sets an address aside while there is evidence that something uses it.
func (p *pool) quarantine(i int32, why string) {
	a := &p.Addrs[i]
	p.become(i, Quarantined)
	a.Evidence, a.Clean = why, 0
	p.putAddress(i)
	p.note(Note{Point: AddressQuarantined, Warn: true, Addr: a.IP, Att: a.Att, Text: why})
}

// nextCool is when the kernel has to be looked at for the end of a cool-down.
func (p *pool) nextCool(now time.Duration) time.Duration {
	at := never
	for _, i := range p.Cooling {
		a := &p.Addrs[i]
		if a.State == Cooling && a.Cooling != inKernel && a.Op == noOp && p.flowless(a) && !p.unclaimed(now, a) {
			at = min(at, max(p.rested(a), now+coolBatch))
		}
	}
	return at
}

// busy says whether an operation runs on the attachment.
func (p *pool) busy(att Attachment) bool {
	if ix, ok := p.rowOf(att); ok {
		return p.Addrs[ix].Op != noOp
	}
	for i := range p.Addrs { // its address is being recorded as another's
		if a := &p.Addrs[i]; a.Op == recording && a.Was == att {
			return true
		}
	}
	return false
}

// elsewhere says whether the attachment has another address than ix.
func (p *pool) elsewhere(att Attachment, ix int32) bool {
	other, taken := p.rowOf(att)
	return taken && other != ix
}

// claims remembers which ready sandbox says that it has a quarantined address; the kernel's next word decides.
func (p *pool) claims(list []Sandbox, asked uint64) {
	if p.Count[Quarantined] == 0 {
		return
	}
	for i := range p.Addrs {
		p.Addrs[i].Claim = nil
	}
	for i := range list {
		b := list[i]
		ix, known := p.byAddress[b.Address]
		if !known || !b.Ready {
			continue
		}
		if a := &p.Addrs[ix]; a.State == Quarantined && !a.Keyed && a.Tag <= asked {
			a.Claim = &b
			p.evidence.want(LookKernel, p.evidence.Looks[LookKernel].At+coolBatch)
		}
	}
}

// restore puts a durable row back as it was.
func (p *pool) restore(now time.Duration, r *Row) {
	if _, twice := p.byAddress[r.Address]; twice || r.State < Assigned || r.State > Quarantined {
		return
	}
	ix := p.newAddress(r.Address, -1)
	a := &p.Addrs[ix]
	a.ENIID, a.Att, a.Pod, a.Netns, a.Veth, a.MAC = r.ENI, r.Att, r.Pod, r.Netns, r.Veth, r.MAC
	a.Allocated, a.ReleasedAt, a.SeenCRI, a.Prefixed, a.Extra = r.Allocated, r.ReleasedAt, r.SeenCRI, r.Prefixed, r.Extra
	if r.State == Cooling && r.Att != (Attachment{}) {
		a.ReleasedAt = max(r.ReleasedAt, min(now, r.ReleasedAt+removalLimit))
	}
	p.become(ix, r.State)
	a.Tag = 0
	switch {
	case r.State == Cooling:
		if r.Att == (Attachment{}) { // when it came into the books it had rested
			a.Given = min(now, r.ReleasedAt+p.coolDown())
		}
		p.Cooling = append(p.Cooling, ix)
	case r.State == Quarantined && r.Att == Attachment{}:
	case p.elsewhere(r.Att, ix):
		p.restoreSecond(ix)
	default:
		p.key(ix)
	}
}

// restoreSecond decides between two rows of one attachment: what it has wins over what was set aside, and of two
// allocations the second is set aside.
func (p *pool) restoreSecond(ix int32) {
	a := &p.Addrs[ix]
	first, _ := p.rowOf(a.Att)
	switch {
	case a.State == Quarantined:
	case p.Addrs[first].State == Quarantined:
		p.unkey(first)
		p.key(ix)
	default:
		p.quarantine(ix, "the record of "+a.Att.String()+" has another address")
	}
}

// placeRecorded puts what the records have on the ENIs that they name. What EC2 took since then it will not list
// (seenAttached).
func (p *pool) placeRecorded() {
	for i := range p.Addrs {
		a := &p.Addrs[i]
		if a.State == 0 || a.ENI >= 0 || a.ENIID == "" {
			continue
		}
		if ix, known := p.enis.eniByID(a.ENIID); known {
			p.place(int32(i), ix)
		}
	}
}

// uses says whether an attachment, or something that the kernel shows, has one of an ENI's addresses.
func (p *pool) uses(v *ENI) bool {
	for ip := range v.carried() {
		if i, known := p.byAddress[ip]; known && (p.Addrs[i].State == Assigned || p.Addrs[i].State == Quarantined) {
			return true
		}
	}
	return false
}

// growing says whether addresses are on their way.
func (p *pool) growing() bool {
	if !p.Surveyed && !p.Deaf && p.evidence.Looks[LookAttached].Fails < 3 || p.evidence.asksWhose() || p.enis.subnets.Awaited {
		return true
	}
	for i := range p.enis.ENIs {
		e := &p.enis.ENIs[i]
		if e.Stage != 0 && !e.Foreign && (e.Stage < Ready || e.Stage == Ready && e.Doing == AssignIPs) {
			return true
		}
	}
	for _, i := range p.Cooling {
		if a := &p.Addrs[i]; a.State == Cooling && a.Att == (Attachment{}) {
			return true
		}
	}
	return false
}

// hope is when an address may become available without growth: the end of the first cool-down, or the next try to
// grow.
func (p *pool) hope() time.Duration {
	at := p.Warm.GrowAt
	if !p.Warm.Wanted {
		at = never
	}
	for _, ix := range p.Cooling {
		if a := &p.Addrs[ix]; a.State == Cooling {
			at = min(at, p.rested(a))
		}
	}
	if at == never {
		return never - replyMargin
	}
	return at
}
