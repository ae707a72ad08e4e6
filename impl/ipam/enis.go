package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// enis are the network interfaces that the node has, makes or gives back, and their stages (stage.go).
type enis struct {
	*life    `json:"-"`
	ledger   *ledger
	evidence *evidence
	subnets  *subnets

	ENIs    []eni
	Grouped []string // security groups of the primary ENI, by metadata's word
	Gone    []string `json:",omitzero"` // the same when EC2 last said that there is no such group: its own word on the primary ENI counts then

	moved func(from, to Stage) // tests look on; else nil
}

// carries says whether an ENI has addresses that pods have.
func (es *enis) carries(ix int32) bool {
	e := &es.ENIs[ix]
	return e.total() > e.Has[Free]
}

// unplaced is an ENI with pods that EC2 refuses, again and again, to attach; nil is none.
func (es *enis) unplaced() *eni {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage == Created && e.Barred >= attachTries && es.carries(int32(i)) {
			return e
		}
	}
	return nil
}

// leaving says whether one of the node's ENIs is on its way out.
func (es *enis) leaving() bool {
	return slices.ContainsFunc(es.ENIs, func(e eni) bool { return e.Stage > Ready && !e.Foreign })
}

// hasAttached counts the ENIs that EC2 has attached for this node, and those that it has to attach again for their
// pods.
func (es *enis) hasAttached() int {
	c := 0
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && e.Stage < Tombstoned && !e.Foreign &&
			(e.Stage >= Attached || es.carries(int32(i))) {
			c++
		}
	}
	return c
}

// kept is how many ENIs no pod is ever on: the primary one, with custom networking.
func (es *enis) kept() int {
	if e := es.primary(); e != nil && es.reserved(e) {
		return 1
	}
	return 0
}

// bearers counts the attached ENIs, as hasAttached does, that are for pods.
func (es *enis) bearers() int { return es.hasAttached() - es.kept() }

func (es *enis) ask(ix int32, at time.Duration) {
	es.ENIs[ix].Asking = true
	es.evidence.want(LookENI, at)
}

// unlinked says of an ENI whose free addresses wait for its link that they do.
func (es *enis) unlinked() string {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.cut() && e.Has[Free] > 0 {
			return e.ID + " has free addresses, and the kernel shows no link with its MAC, " + e.MAC +
				": pods get them when it has one; look whether somebody has detached it"
		}
	}
	return ""
}

// doubtful are the IDs that EC2 is to be asked about.
func (es *enis) doubtful() []string {
	var ids []string
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && e.Asking && e.ID != "" {
			ids = append(ids, e.ID)
		}
	}
	for i := range es.evidence.Others {
		if o := &es.evidence.Others[i]; o.Asking {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

func (es *enis) eniByID(id string) (int32, bool) {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && e.ID == id {
			return int32(i), true
		}
	}
	return 0, false
}

func (es *enis) eniSpec(e *eni) dataplane.ENISpec {
	return dataplane.ENISpec{MAC: e.MAC, Device: e.Device, Primary: e.Primary, Subnet: e.CIDR,
		Table: dataplane.TableOf(e.Device), MTU: es.Set.MTU}
}

// awaitsLink says whether an ENI is on its way to service and lacks nothing but its link.
func (es *enis) awaitsLink() bool {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage == Attached && !e.Linked {
			return true
		}
	}
	return false
}

// kick goes on with every ENI, as soon as nothing is under way for it.
func (es *enis) kick(now time.Duration) {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 {
			e.Next = now
		}
	}
}

func (es *enis) isPrimary(ip netip.Addr) bool {
	if ip == es.Inst.Address {
		return true
	}
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && e.Primary == ip {
			return true
		}
	}
	return false
}

// owns says whether an address is the own one of the ENI with that link.
func (es *enis) owns(ip netip.Addr, l *dataplane.Link) bool {
	return l.Alias == "" && slices.ContainsFunc(es.ENIs, func(e eni) bool { return e.Stage != 0 && e.Primary == ip && e.MAC == l.MAC })
}

// making says whether an ENI is on its way to service.
func (es *enis) making() bool {
	return slices.ContainsFunc(es.ENIs, func(e eni) bool { return e.Stage != 0 && e.Stage < Ready && !e.Foreign })
}

// mutating says whether an ENI is not at rest: EC2 has to do something about it, or may have.
func (es *enis) mutating() bool {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && (e.Stage != Ready || e.Doing != 0 || e.Trimming || e.Lost) {
			return true
		}
	}
	return false
}

func (es *enis) attached() int {
	c := 0
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage != 0 && !e.Foreign && e.Stage < Tombstoned {
			c++
		}
	}
	return c
}

func (es *enis) primary() *eni {
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage == Ready && e.Device == 0 {
			return e
		}
	}
	return nil
}
