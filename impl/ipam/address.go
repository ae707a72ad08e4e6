package ipam

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// address is one secondary address and, while there is one, its attachment.
type address struct {
	IP    netip.Addr
	ENI   int32  // in ENIs; -1 while no ENI is known to carry it
	ENIID string // kept for the record
	State State
	Keyed bool // Att is looked up here: assigned, or a release that has not ended
	Op    op
	Tag   uint64 // step in which the row last changed (contract 8); also tells lives of a slot apart

	Att        Attachment
	Pod        Pod
	Netns      uint64
	Veth       string
	MAC        string // of a host veth that another CNI made and we keep
	Allocated  time.Duration
	ReleasedAt time.Duration
	Extra      string

	Req     Req    // who waits for Op; 0 nobody
	Then    *Add   // to be tried again with another address
	alias   string // of its link, made when it is first asked for
	Tries   int
	Retry   time.Duration
	Was     Attachment // recording: whose its record says that it is
	Wiring  bool       // adding: its plan is under way
	Held    bool       // adding: its plan waits for that of another sandbox of the pod
	Removed bool       // cooling: nothing of the attachment is left in the kernel by our own doing
	Flows   flows
	Leaving bool // free, and about to be unassigned

	Evidence string   // quarantined: why
	Clean    int      // quarantined: consecutive observations without use
	Claim    *Sandbox // quarantined: the ready sandbox that says it has the address; never changed once set
	// What sources said about an assigned row, see Absentee.
	SeenCRI, Listed, Live, PodGone bool
	Absent, Ended, Dead, Lists     int
	Missing                        int           // consecutive answers of EC2 without the address
	ByIMDS                         int           // consecutive IMDS views without it
	Unlisted                       time.Duration // since when metadata does not list it
}

// op is what runs on an attachment.
type op uint8

const (
	noOp op = iota
	adding
	releasing
	repairing
	recording // a row that recovery found is being made durable

)

// flows is whether conntrack has forgotten what the holder of a cooling address said to others: its next holder would get their
// answers, and a service's flows. No record says it, so a new daemon has them forgotten anew.
type flows uint8

const (
	remembered flows = iota
	forgetting       // the Apply is under way
	forgotten
)

func (a *address) row() Row {
	return Row{Address: a.IP, State: a.State, Att: a.Att, Pod: a.Pod, Netns: a.Netns, Veth: a.Veth, MAC: a.MAC, ENI: a.ENIID,
		Allocated: a.Allocated, ReleasedAt: a.ReleasedAt, SeenCRI: a.SeenCRI, Extra: a.Extra}
}

// link is the alias of the address's link.
func (a *address) link() string {
	if a.alias == "" {
		a.alias = alias(a.Att, a.IP)
	}
	return a.alias
}

// newAddress takes a slot for an address that is not known yet. The caller sets its state.
func (n *Node) newAddress(ip netip.Addr, eniIx int32) int32 {
	var ix int32
	if k := len(n.Holes); k > 0 {
		ix = n.Holes[k-1]
		n.Holes = n.Holes[:k-1]
	} else {
		ix = int32(len(n.Addrs))
		n.Addrs = append(n.Addrs, address{})
	}
	n.Addrs[ix] = address{IP: ip, ENI: -1, Tag: n.Steps, Retry: never}
	n.byAddress[ip] = ix
	n.place(ix, eniIx)
	return ix
}

// place says which ENI carries an address.
func (n *Node) place(ix, eniIx int32) {
	a := &n.Addrs[ix]
	if a.ENI == eniIx {
		return
	}
	if a.ENI >= 0 {
		n.ENIs[a.ENI].Has[a.State]--
	}
	a.ENI = eniIx
	if eniIx >= 0 {
		a.ENIID, a.Missing = n.ENIs[eniIx].ID, 0
		n.ENIs[eniIx].Has[a.State]++
	}
}

// become moves an address to another state; state 0 forgets it.
func (n *Node) become(ix int32, s State) {
	a := &n.Addrs[ix]
	n.Count[a.State]--
	n.Count[s]++
	n.Count[0] = 0
	if a.ENI >= 0 {
		e := &n.ENIs[a.ENI]
		e.Has[a.State]--
		e.Has[s]++
	}
	a.State, a.Tag, a.Flows = s, n.Steps, remembered
}

// key makes the attachment findable; unkey ends that.
func (n *Node) key(ix int32) {
	a := &n.Addrs[ix]
	a.Keyed, a.alias = true, ""
	n.enter(ix)
}

// enter puts a keyed row into the index. A container has one attachment, nearly always.
func (n *Node) enter(ix int32) {
	att := &n.Addrs[ix].Att
	if i, ok := n.byID[att.ContainerID]; ok {
		if o := &n.Addrs[i]; o.Keyed && o.Att != *att && o.Att.ContainerID == att.ContainerID {
			if n.byAtt == nil {
				n.byAtt = map[Attachment]int32{}
			}
			n.byAtt[*att] = ix
			return
		}
	}
	n.byID[att.ContainerID] = ix
	delete(n.byAtt, *att)
}

// rowOf is the row of an attachment.
func (n *Node) rowOf(att Attachment) (ix int32, ok bool) {
	if ix, ok = n.byID[att.ContainerID]; ok {
		if a := &n.Addrs[ix]; a.Keyed && a.Att == att {
			return ix, true
		}
	}
	if n.byAtt == nil {
		return 0, false
	}
	ix, ok = n.byAtt[att]
	return ix, ok
}

func (n *Node) unkey(ix int32) {
	a := &n.Addrs[ix]
	if i, ok := n.byID[a.Att.ContainerID]; a.Keyed && ok && i == ix {
		delete(n.byID, a.Att.ContainerID)
	} else if i, ok := n.byAtt[a.Att]; a.Keyed && ok && i == ix {
		delete(n.byAtt, a.Att)
	}
	a.Keyed = false
}

// forget drops an address that the cloud has taken back.
func (n *Node) forget(ix int32) {
	a := &n.Addrs[ix]
	n.unkey(ix)
	n.dropRow(RunStore, Key{Address: a.IP})
	delete(n.byAddress, a.IP)
	n.become(ix, 0)
	n.place(ix, -1)
	n.Addrs[ix] = address{ENI: -1, Retry: never, Tag: n.Steps}
	n.Holes = append(n.Holes, ix)
}

// free makes an address available, behind all that are free longer. What metadata and EC2 have said against it stands: the end of a cool-down
// says nothing about that.
func (n *Node) free(ix int32) {
	a := &n.Addrs[ix]
	n.unkey(ix)
	*a = address{IP: a.IP, ENI: a.ENI, ENIID: a.ENIID, State: a.State, ByIMDS: a.ByIMDS, Missing: a.Missing, Retry: never}
	n.become(ix, Free)
	n.FreeQueue = append(n.FreeQueue, ix)
}

// pick takes the address that is free the longest from an ENI that may give. One that EC2's last answer lacked waits for the next,
// and where nobody but metadata is asked, one that metadata lacks for it to say so for long.
func (n *Node) pick() (int32, bool) {
	for i, ix := range n.FreeQueue {
		a := &n.Addrs[ix]
		if a.State != Free {
			continue // stale
		}
		if a.Leaving || a.Missing > 0 || n.Set.IMDSOnly && a.ByIMDS > 0 || a.ENI < 0 || n.ENIs[a.ENI].Stage != Ready || n.ENIs[a.ENI].gives(a.IP) {
			continue
		}
		n.FreeQueue = append(n.FreeQueue[:i], n.FreeQueue[i+1:]...)
		return ix, true
	}
	return 0, false
}

// compactFree removes stale and double entries when they are in the majority.
func (n *Node) compactFree() {
	if len(n.FreeQueue) <= 2*n.Count[Free]+8 {
		return
	}
	seen := make(map[int32]bool, n.Count[Free])
	kept := n.FreeQueue[:0]
	for _, ix := range n.FreeQueue {
		if n.Addrs[ix].State == Free && !seen[ix] {
			seen[ix] = true
			kept = append(kept, ix)
		}
	}
	n.FreeQueue = kept
}

// rest lets an address cool, from now; removed says that the kernel holds nothing of it any more.
func (n *Node) rest(now time.Duration, ix int32, removed bool) {
	a := &n.Addrs[ix]
	n.become(ix, Cooling)
	a.ReleasedAt, a.Removed = now, removed
	n.Cooling = append(n.Cooling, ix)
	if removed {
		n.cools(a)
	}
}

// inspect is rest for an address whose cool-down is over or never was: it is free once the kernel has been seen not to use it.
func (n *Node) inspect(now time.Duration, ix int32) {
	a := &n.Addrs[ix]
	n.become(ix, Cooling)
	a.ReleasedAt, a.Removed = now-n.coolDown(), true
	n.Cooling = append(n.Cooling, ix)
	n.cools(a)
}

// rested is when the cool-down of a ends.
func (n *Node) rested(a *address) time.Duration { return a.ReleasedAt + n.coolDown() }

// spec is what the kernel should look like for an attachment.
func (n *Node) spec(ix int32) dataplane.PodSpec {
	a := &n.Addrs[ix]
	return dataplane.PodSpec{Alias: a.link(), HostVeth: a.Veth, Netns: a.Netns, Address: a.IP, Table: n.table(a),
		MTU: n.Set.MTU, IfName: a.Att.IfName, MAC: a.MAC}
}

func (n *Node) table(a *address) int {
	if a.ENI < 0 {
		return dataplane.MainTable
	}
	return dataplane.TableOf(n.ENIs[a.ENI].Device)
}
