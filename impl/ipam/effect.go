package ipam

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Effect is something wanted from the world. Every effect with an ID gets exactly one outcome with that ID while
// the daemon lives, and none after it died.
type Effect interface{ effect() }

// Reply answers an ADD, DEL, CHECK or GC.
type Reply struct {
	Req     Req
	Verb    Verb
	Att     Attachment
	Err     *Error // nil is success
	Address netip.Addr
	Device  int // device index of the address's ENI
	Table   int // its route table
	Veth    string
}

// Call is one EC2 mutation whose intent is durable.
type Call struct {
	ID          ID
	Action      Action
	ENI         string
	Token       string // Create: client token
	Subnet      string
	Device      int
	Attachment  string
	Count       int            // Create, Assign: secondary addresses
	PrefixCount int            `json:",omitzero"` // Create, Assign: /28 prefixes, instead
	Groups      []string       // Create, GroupENI: IDs of security groups
	Addresses   []netip.Addr   // Unassign
	Prefixes    []netip.Prefix `json:",omitzero"` // Unassign: /28, instead
	Owner       string         // Create: tags instance_id …
	Cluster     string
	Created     int64 // … and createdAt, seconds since 1970
}

// Look asks a source. ENIs restricts LookENI.
type Look struct {
	ID   ID
	What What
	ENIs []string
}

// Apply runs a plan. Plans of one lane run in the order in which they were wanted, one at a time; lanes run at once.
type Apply struct {
	ID   ID
	Lane Lane
	Plan dataplane.Plan
}

// Save makes rows durable. Seq counts per store from 1.
type Save struct {
	Store Store
	Seq   uint64
	Put   []Row
	Drop  []Key
}

// Note is an event, metric or log line that matters.
type Note struct {
	Point Point
	Warn  bool
	ENI   string
	Att   Attachment
	Addr  netip.Addr
	Text  string // more, for people; built only for rare notes
}

func (*Reply) effect() {}
func (*Call) effect()  {}
func (*Look) effect()  {}
func (*Apply) effect() {}
func (*Save) effect()  {}
func (*Note) effect()  {}

// Lane serializes effects on one subject.
type Lane struct {
	Kind LaneKind
	ENI  string     // HostLane, ENILane
	Att  Attachment // PodLane
}

// LaneKind sorts lanes.
type LaneKind uint8

const (
	HostLane LaneKind = iota + 1
	ENILane
	PodLane
	FlowLane // what conntrack remembers of addresses: one walk of its table at a time, and only addresses wait for it
)

func (l Lane) String() string {
	switch l.Kind {
	case HostLane:
		return "host"
	case ENILane:
		return "eni/" + l.ENI
	case PodLane:
		return "pod/" + l.Att.String()
	case FlowLane:
		return "flows"
	}
	return "?"
}

// Verb of a request.
type Verb uint8

const (
	VerbAdd Verb = iota + 1
	VerbDel
	VerbCheck
	VerbGC
)

var verbNames = [...]string{"", "ADD", "DEL", "CHECK", "GC"}

func (v Verb) String() string { return name(verbNames[:], int(v)) }

// Action is an EC2 mutation.
type Action uint8

const (
	CreateENI Action = iota + 1
	AttachENI
	ModifyENI // DeleteOnTermination: AttachNetworkInterface has no such field
	DetachENI
	DeleteENI
	AssignIPs
	UnassignIPs
	GroupENI // security groups: ModifyNetworkInterfaceAttribute changes one attribute at a time
)

var actionNames = [...]string{"", "CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute",
	"DetachNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses",
	"ModifyNetworkInterfaceAttribute (groups)"}

func (a Action) String() string { return name(actionNames[:], int(a)) }

// Error is what a caller of the plugin is told. Its text avoids "not found" and "no such file": go-cni takes an
// error with these words for success (rule F).
type Error struct {
	Code int    // CNI error code: 11 try again, 7 config, ≥ 100 ours
	Text string // operation, subject, expected, found, what to do
}

func (e *Error) Error() string { return e.Text }

// CNI error codes (SPEC 1.1.0, section Error; 100 and up are the plugin's own).
const (
	CodeVersion  = 1
	CodeIO       = 5
	CodeConfig   = 7
	CodeTryAgain = 11
	CodeOccupied = 100 // the attachment exists with another namespace
	CodeDrifted  = 101 // CHECK found a difference
)

// defaultDeadline is how long a caller waits when it does not say: the plugin's own 30 s.
const defaultDeadline = 30 * time.Second
