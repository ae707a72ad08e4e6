package ec2

import (
	"net/netip"
	"time"
)

// Tag is a key and a value.
type Tag struct{ Key, Value string }

// Request is one API call: plain data, one struct for all actions; the fields an action does not name
// are ignored, except that a filter always makes a Describe a filtered one.
type Request struct {
	Action Action
	// Unmodelled is the name of an action that the API has and the model has not; Action is AnyAction then.
	Unmodelled string
	// Caller is the instance whose credentials sign the call: it is what the ledger counts by and whose
	// random stream is drawn from. "" is a third party.
	Caller InstanceID
	// DryRun asks whether the caller has the permission, and nothing else: it is answered with
	// DryRunOperation or UnauthorizedOperation, costs a token, and neither validates nor changes anything.
	DryRun bool
	// Paged says that the caller wants pages (MaxResults): such a Describe is not an unfiltered one, whatever it asks for ("Request
	// throttling for the Amazon EC2 API"). The model answers it whole all the same; each page is a request.
	Paged bool

	ENI  ENIID   // Attach, Modify, Delete, Assign, Unassign, CreateTags, DescribeNetworkInterfaceAttribute
	ENIs []ENIID // DescribeNetworkInterfaces by ID; CreateTags on several

	Subnet         SubnetID     // Create, Run, DeleteSubnet; DescribeSubnets (empty, and no Subnets: all)
	SecurityGroups []string     // Create, Run, Modify (replaces the groups); DescribeSecurityGroups by ID
	Description    string       // Create, Modify
	ClientToken    string       // Create, Run, AssignPrivateIpAddresses never: makes a repetition harmless
	Tags           []Tag        // Create, CreateTags, Run (the instance's); DeleteTags: those with exactly that value
	TagKeys        []string     // DeleteTags: those with any value
	Resources      []string     // CreateTags, DeleteTags: identifiers of interfaces, instances, subnets, VPCs and groups
	VPCs           []string     // DescribeVpcs by ID
	Subnets        []SubnetID   // DescribeSubnets by ID
	Zones, ZoneIDs []string     // DescribeAvailabilityZones by name and by ID (ZoneID)
	Regions        []string     // DescribeRegions by name
	RouteTables    []string     // DescribeRouteTables by ID
	Attributes     []string     // DescribeAccountAttributes by name
	PublicIPs      []netip.Addr // DescribeAddresses by address
	Allocations    []string     // DescribeAddresses by ID

	SecondaryCount int          // Create, Assign, Run
	Addresses      []netip.Addr // Create (primary first), Assign of exact ones, Unassign
	// AllowReassignment lets Assign of exact addresses take them from another interface.
	AllowReassignment bool
	PrefixCount       int            // Create, Assign: IPv4 prefixes, each a /28
	Prefixes          []netip.Prefix // Create, Assign of exact ones, Unassign: /28
	IPv6Count         int            // Create, AssignIpv6Addresses
	IPv6              []netip.Addr   // Create, AssignIpv6Addresses of exact ones, UnassignIpv6Addresses
	IPv6PrefixCount   int            // Create, AssignIpv6Addresses: each a /80
	IPv6Prefixes      []netip.Prefix // Create, AssignIpv6Addresses of exact ones, UnassignIpv6Addresses: /80

	Types []string // DescribeInstanceTypes (empty: all that LimitsOf knows)

	Instance    InstanceID   // Attach; DescribeInstances, DescribeInstanceStatus (empty: all)
	Instances   []InstanceID // Terminate-, Reboot-, Stop- and StartInstances, DescribeInstances and DescribeInstanceStatus by ID
	AllStates   bool         // DescribeInstanceStatus: also of instances that do not run
	DeviceIndex int          // Attach
	NetworkCard int          // Attach
	Attachment  string       // Detach, Modify of DeleteOnTermination
	Force       bool         // Detach
	// DeleteOnTermination is what Modify sets when Attachment is given; the API takes both or neither.
	DeleteOnTermination bool
	// Attribute is which attribute Modify changes. ByFields: the one whose field is set.
	Attribute       Attribute
	SourceDestCheck bool // Modify

	Type               string // RunInstances
	Image              string // RunInstances: "ami-" and 8 or 17 hexadecimal digits; every such image exists
	MinCount, MaxCount int    // RunInstances
	ENITags            []Tag  // RunInstances: of the interfaces

	// Filters of DescribeNetworkInterfaces; all that are given must match.
	FilterStatus   string // "available", "in-use", ...
	FilterTagKey   string // the tag exists; with FilterTagValue: and has that value
	FilterTagValue string
	FilterInstance string // attached to that instance
	// FilterDescription matches the whole text, or its beginning when it ends in "*".
	FilterDescription string
}

// Response is the answer to any Request. Code "" means success.
type Response struct {
	Code    string // EC2's error code
	Message string
	HTTP    int  // status: 200, or the error's
	Lost    bool // the caller sees a time-out, and nothing else in the Response: it may have been executed

	ENI ENI // Create, DescribeNetworkInterfaceAttribute
	// DescribeNetworkInterfaces: in the order asked for; with FilterInstance by device index; else oldest first
	ENIs         []ENI
	Attachment   string             // Attach
	Assigned     []netip.Addr       // Assign, AssignIpv6Addresses
	Prefixes     []netip.Prefix     // Assign, AssignIpv6Addresses
	Subnets      []Subnet           // DescribeSubnets
	Instances    []Instance         // DescribeInstances
	Types        []Type             // DescribeInstanceTypes
	VPCs         []VPC              // DescribeVpcs, DescribeVpcAttribute
	Groups       []SecurityGroup    // DescribeSecurityGroups
	Changes      []StateChange      // Terminate-, Stop- and StartInstances
	Tags         []TagOf            // DescribeTags
	Zones        []Zone             // DescribeAvailabilityZones
	Regions      []string           // DescribeRegions
	Statuses     []InstanceStatus   // DescribeInstanceStatus
	Reservations []Reservation      // GetSubnetCidrReservations
	Account      []AccountAttribute // DescribeAccountAttributes
	RouteTables  []RouteTable       // DescribeRouteTables
}

// Attribute names what ModifyNetworkInterfaceAttribute changes.
type Attribute uint8

const (
	ByFields Attribute = iota
	AttributeDescription
	AttributeGroups
	AttributeAttachment
	AttributeSourceDestCheck
)

// StateChange is what TerminateInstances, StopInstances and StartInstances answer for one instance; states are spelt as in Instance.State.
type StateChange struct {
	Instance          InstanceID
	Previous, Current string
}

// Status is an interface's state. (EC2 splits it into Status and Attachment.Status: "attaching" is in-use
// with an attachment that is attaching, "detaching" likewise.)
type Status uint8

const (
	Available Status = iota
	Attaching
	InUse
	Detaching
)

// String is the state as EC2 spells it.
func (s Status) String() string {
	switch s {
	case Available:
		return "available"
	case Attaching:
		return "attaching"
	case InUse:
		return "in-use"
	case Detaching:
		return "detaching"
	}
	return "unknown"
}

// ENI is an interface as an answer shows it. Its slices belong to the reader, except Tags and
// SecurityGroups, which are shared and must not be written to.
type ENI struct {
	ID                  ENIID
	Status              Status
	MAC                 string // "02:..", lower case
	Subnet              SubnetID
	Zone, VPC           string // its subnet's
	Primary             netip.Addr
	Secondaries         []netip.Addr   // in order of assignment
	Prefixes            []netip.Prefix // /28, in order of assignment
	IPv6                []netip.Addr   // in order of assignment
	IPv6Prefixes        []netip.Prefix // /80, in order of assignment
	Attachment          string         // "" while available
	Instance            InstanceID     // "" while available
	DeviceIndex         int
	NetworkCard         int
	DeleteOnTermination bool
	SourceDestCheck     bool
	AttachedAt          time.Duration // of the attachment
	Owner               string        // the account
	Description         string
	Tags                []Tag
	SecurityGroups      []string
	Created             time.Duration
	Kind                InterfaceKind
}

// Subnet is a subnet as an answer shows it.
type Subnet struct {
	ID        SubnetID
	CIDR      netip.Prefix
	Zone      string
	Available int // AvailableIpAddressCount
	VPC       string
	IPv6      netip.Prefix // the zero Prefix: none
	Tags      []Tag        // shared; must not be written to
}

// Instance is an instance as an answer shows it, or (without State and Interfaces) as its own metadata does.
type Instance struct {
	ID             InstanceID
	Type           string
	Zone           string
	Subnet         SubnetID
	VPC            string
	PrimaryMAC     string
	PrimaryAddress netip.Addr
	VPCCIDRs       []netip.Prefix // shared; must not be written to
	State          string         // "pending", "running", "shutting-down", "terminated"
	Reservation    string         // shared by what one RunInstances launched
	Image          string         // "" for what Launch started
	Interfaces     []Interface    // by network card, then device index
	Tags           []Tag          // shared; must not be written to
	Launched       time.Duration
	SecurityGroups []string // of the primary interface; shared
	Owner          string   // the account
}

// Interface is one attachment in a DescribeInstances answer: what a free device index is looked for in.
type Interface struct {
	ENI        ENIID
	Attachment string
	Device     int
	Card       int
	Status     Status

	DeleteOnTermination bool
	AttachedAt          time.Duration
}
