package ipam

import (
	"net/netip"
	"time"
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
