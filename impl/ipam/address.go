package ipam

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// address is one secondary address and, while there is one, its attachment.
type address struct {
	IP       netip.Addr
	Prefixed bool   `json:",omitzero"` // a prefix carries it, and it is no secondary address by itself
	block    int32  // which one, counted from 1: see pool.blocks; 0 none
	ENI      int32  // in ENIs; -1 while no ENI is known to carry it
	ENIID    string // kept for the record
	State    State
	Keyed    bool    // Att is looked up here: assigned, or a release that has not ended
	Op       op      `json:"-"` // see encodedAddress
	Cooling  cooling `json:"-"` // likewise
	Tag      uint64  // step in which the row last changed (contract 8); also tells lives of a slot apart

	Att        Attachment
	Pod        Pod
	Netns      uint64
	Veth       string
	MAC        string // of a host veth that another CNI made and we keep
	Allocated  time.Duration
	ReleasedAt time.Duration
	Extra      string

	Req     Req    // the request that waits for Op; 0: none
	Then    *Add   // to be tried again with another address
	alias   string // of its link, made when it is first asked for
	Tries   int
	Retry   time.Duration
	Was     Attachment // recording: whose its record says that it is
	Leaving bool       // free, and about to be unassigned

	Evidence string   // quarantined: why
	Clean    int      // quarantined: consecutive observations without use
	Claim    *Sandbox // quarantined: the ready sandbox that says it has the address; never changed once set

	testimony
	Given    time.Duration `json:",omitzero"` // EC2 assigned it, by its own answer: one of its replicas may not know yet
	Missing  int           // consecutive answers of EC2 without the address
	ByIMDS   int           // consecutive IMDS views without it
	Unlisted time.Duration // since when metadata does not list it
}

// stateFollows says which state may follow which, and why; 0 is an address that is not in the books. What is set aside
// and what is new cool before they are free.
var stateFollows = [Quarantined + 1][]State{
	0:           {Assigned, Cooling, Quarantined},          // records; kernel or runtime; EC2's word
	Free:        {Assigned, Quarantined, 0},                // an ADD, a living link; a use; EC2 has taken it back
	Assigned:    {Free, Assigned, Cooling, Quarantined, 0}, // its row was not saved; another's; a release; a veto; refuted
	Cooling:     {Free, Assigned, Quarantined, 0},          // over; the kernel's word; a use; EC2 has taken it back
	Quarantined: {Assigned, Cooling, 0},                    // whose it is is known; unused for long
}

// testimony is what sources have said about an assigned row, see Absentee.
type testimony struct {
	SeenCRI, Listed, Live, PodGone bool
	Absent, Ended, Dead, Lists     int
}

// op is what runs on an attachment. Only opFollows[op] may follow.
type op uint8

const (
	noOp      op = iota
	adding       // the row of an ADD is being made durable
	releasing    // the row of a release, then what is left of the attachment in the kernel
	repairing    // something that the kernel lacks is being put back
	recording    // a row that recovery found is being made durable
	held         // the plan of an ADD waits for that of another sandbox of the pod
	wiring       // the plan of an ADD is under way
)

var opNames = [...]string{"nothing", "adding", "releasing", "repairing", "recording", "held", "wiring"}

func (o op) String() string { return name(opNames[:], int(o)) }

// opFollows says which operation may follow which.
var opFollows = [wiring + 1][]op{
	noOp:      {adding, releasing, repairing, recording},
	adding:    {held, wiring, releasing}, // releasing: the ADD's caller is gone
	held:      {wiring, releasing},
	wiring:    {noOp, releasing},
	releasing: {noOp},
	repairing: {noOp},
	recording: {noOp},
}

// run goes on to another operation. Only the node itself moves one, so a move that is not in the table is a mistake of
// the program: it panics, for going on could give one address to two pods.
func (a *address) run(to op) {
	if !slices.Contains(opFollows[a.Op], to) {
		panic(fmt.Sprintf("address %v: %v follows %v", a.IP, to, a.Op))
	}
	a.Op = to
}

// fits says whether an address in its state may have its operation.
func (a *address) fits() bool {
	switch a.Op {
	case noOp:
		return true
	case releasing:
		return a.State == Cooling
	}
	return a.Op <= wiring && a.State == Assigned
}

// cooling is how far a cooling address is from being free. What its holder said to others conntrack remembers: its
// next holder would get their answers, and a service's flows. No record says that it has forgotten, so a new daemon
// has the flows forgotten anew. Only coolingFollows[cooling] may follow while the address cools; another state of the
// address begins it anew.
type cooling uint8

const (
	inKernel   cooling = iota // something of the attachment may be left
	remembered                // nothing is, by our own doing
	forgetting                // conntrack is being walked
	forgotten
)

var coolingNames = [...]string{"in the kernel", "remembered", "forgetting", "forgotten"}

func (c cooling) String() string { return name(coolingNames[:], int(c)) }

// coolingFollows says what may follow what. An observation may show, at any time, that something is left after all.
var coolingFollows = [forgotten + 1][]cooling{
	inKernel:   {remembered},
	remembered: {forgetting, inKernel},
	forgetting: {forgotten, remembered, inKernel}, // remembered: the walk failed
	forgotten:  {inKernel},
}

// cool goes on with a cool-down. As with run, a move that is not in the table is a mistake of the program.
func (a *address) cool(to cooling) {
	if !slices.Contains(coolingFollows[a.Cooling], to) {
		panic(fmt.Sprintf("address %v: %v follows %v", a.IP, to, a.Cooling))
	}
	a.Cooling = to
}

// linkless says whether an attachment's ADD has made no link yet, as far as has been heard.
func (a *address) linkless() bool { return a.Op == adding || a.Op == held || a.Op == wiring }

func (a *address) row() Row {
	return Row{Address: a.IP, State: a.State, Att: a.Att, Pod: a.Pod, Netns: a.Netns, Veth: a.Veth, MAC: a.MAC, ENI: a.ENIID,
		Allocated: a.Allocated, ReleasedAt: a.ReleasedAt, SeenCRI: a.SeenCRI, Prefixed: a.Prefixed, Extra: a.Extra}
}

// link is the alias of the address's link.
func (a *address) link() string {
	if a.alias == "" {
		a.alias = alias(a.Att, a.IP)
	}
	return a.alias
}

type plainAddress address

// encodedAddress is an address in an encoded Node. As recordings have it, an operation and a cool-down are each a
// number with booleans beside it.
type encodedAddress struct {
	*plainAddress
	Op      op   // held and wiring are adding
	Wiring  bool // adding
	Held    bool // adding
	Removed bool
	Flows   cooling // from 0, once Removed
}

// MarshalJSON writes an encodedAddress.
func (a address) MarshalJSON() ([]byte, error) {
	e := encodedAddress{plainAddress: (*plainAddress)(&a), Op: a.Op, Wiring: a.Op == wiring, Held: a.Op == held}
	if e.Wiring || e.Held {
		e.Op = adding
	}
	if e.Removed = a.Cooling != inKernel; e.Removed {
		e.Flows = a.Cooling - remembered
	}
	return json.Marshal(e)
}

// UnmarshalJSON reads an encodedAddress.
func (a *address) UnmarshalJSON(data []byte) error {
	e := encodedAddress{plainAddress: (*plainAddress)(a)}
	if err := strictly(data, &e); err != nil {
		return err
	}
	planned := e.Wiring || e.Held
	if e.Op > recording || planned && e.Op != adding || e.Wiring && e.Held || e.Flows > forgotten-remembered {
		return fmt.Errorf("address %v: operation %d, wiring %t, held %t, flows %d", a.IP, e.Op, e.Wiring, e.Held,
			e.Flows)
	}
	switch a.Op = e.Op; {
	case e.Wiring:
		a.Op = wiring
	case e.Held:
		a.Op = held
	}
	if a.Cooling = inKernel; e.Removed {
		a.Cooling = remembered + e.Flows
	}
	return nil
}
