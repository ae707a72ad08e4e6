package ipam

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Input is something that happened. Start must be the first one; a nil Input is the tick that Next asked for.
type Input interface{ input() }

// Start begins the life of a daemon. What it holds comes from this machine alone: the cloud, the kernel and the
// runtime are asked by Looks, so that a silent IMDS delays a node and does not stop it.
type Start struct {
	Boot     string        // boot identity, as /proc/sys/kernel/random/boot_id
	Rebooted bool          // the marker on the tmpfs was absent
	Booted   time.Duration // when the machine booted: where CLOCK_BOOTTIME begins; a laboratory's clock is older
	Seed     uint64        // for jitter and client tokens; differs at each start
	Daemon   string        // container ID of the daemon's own sandbox ("" when it runs outside any): rule A
	Version  int           // version of the records and of the local protocol that this daemon writes; 0 means Version
	Wall     int64         // wall clock at boot, in seconds since 1970; printed and put into tags, never decided on alone
	Cluster  string        // tagged on every ENI; sweeps stay inside it. Empty: they are of ENIs that no cluster's name is on

	Rows     []Row  // both stores, as decoded
	Unread   string // why a record could not be read; its rows are then missing and are rebuilt from kernel and runtime
	Settings Settings
}

// Set replaces the settings and what is known of the node.
type Set struct{ Settings Settings }

// Add asks for an address and a wired namespace.
type Add struct {
	Req      Req
	Att      Attachment
	Pod      Pod
	Netns    uint64        // inode of the pod's network namespace
	Deadline time.Duration // the reply must leave before; 0 means 30 s from now
	Version  int           // of the local protocol that the plugin speaks

	Tries int // kept by the Node: occupied addresses met so far
}

// Del gives an attachment back. Netns is 0 when CNI_NETNS was empty or names nothing.
type Del struct {
	Req      Req
	Att      Attachment
	Pod      Pod
	Netns    uint64
	Deadline time.Duration
	Version  int
	Intent   bool // read from the folder of DEL intents: the reply is the leave to remove the file (rule F)
}

// Check asks whether an attachment is still as ADD left it.
type Check struct {
	Req      Req
	Att      Attachment
	Netns    uint64
	Deadline time.Duration
}

// GC names every attachment of a network that the runtime knows; Absent says that the key was missing, which is
// not the same as an empty list (cni#1091, libcni sends no key for "all").
type GC struct {
	Req      Req
	Network  string
	Valid    []Attachment // Network is ignored
	Absent   bool
	Deadline time.Duration
}

// Gone says that the caller of Req hung up: the Reply will not be read.
type Gone struct{ Req Req }

// Seen answers the Look with the same ID. ID 0 is a kernel event: a hint to look, and carries nothing.
type Seen struct {
	ID       ID
	What     What
	Complete bool   // the source answered whole; false with Err
	Err      string // why not, as the source said it
	Denied   bool   // LookSubnets: for want of the permission
	Refused  bool   `json:",omitzero"` // LookSubnets: EC2 refuses who asks, whatever it asks: a wrong clock, credentials that have ended

	IMDS      *IMDS
	ENIs      []ENI // LookENI, LookLeaked, LookAttached
	Subnets   []Subnet
	Config    *ENIConfig
	Sandboxes []Sandbox
	Kernel    *dataplane.Observation
	Pods      []Pod
}

// Called is the result of the Call with the same ID.
type Called struct {
	ID     ID
	Result Result
}

// Applied says that the plan of the Apply with the same ID ran, up to operation Done.
type Applied struct {
	ID   ID
	Done int
	Err  *dataplane.Error
}

// Saved says that all Saves of the store up to Seq are durable, or that they are not (Err) and the store holds
// what it held before the first of them.
type Saved struct {
	Store Store
	Seq   uint64
	Err   string
}

// Stop is SIGTERM: answer what waits, start nothing.
type Stop struct{}

func (Start) input()   {}
func (Set) input()     {}
func (Add) input()     {}
func (Del) input()     {}
func (Check) input()   {}
func (GC) input()      {}
func (Gone) input()    {}
func (Seen) input()    {}
func (Called) input()  {}
func (Applied) input() {}
func (Saved) input()   {}
func (Stop) input()    {}

// What names a source that can be looked at.
type What uint8

const (
	LookKernel   What = iota + 1 // links, routes, rules, addresses in namespaces
	LookRuntime                  // the runtime's sandboxes
	LookIMDS                     // identity, attached ENIs and their addresses
	LookENI                      // EC2's word on ENIs, asked by ID
	LookLeaked                   // EC2's `available` ENIs with the cluster's tag; without a cluster's name, all that a VPC CNI made
	LookPods                     // the pods that the API server lists for this node
	LookAttached                 // EC2's word on the ENIs attached to this instance, at a life's begin: metadata may not list the newest yet
	LookSubnets                  // EC2's word on the subnets of this instance's VPC and zone
	LookConfig                   // the API server's word on the ENIConfig of this node
	looks        = iota + 1
)

var whatNames = [...]string{"", "kernel", "runtime", "imds", "eni", "leaked", "pods", "attached", "subnets", "eniconfig"}

func (w What) String() string { return name(whatNames[:], int(w)) }

// IMDS is what instance metadata says.
type IMDS struct {
	Instance Instance
	ENIs     []ENI    // attached, sorted by device; Partial when leaves are missing
	Groups   []string // security groups of the primary ENI
}

// Instance is the identity of this machine.
type Instance struct {
	ID, Type, Zone string
	Subnet         string
	PrimaryMAC     string
	Address        netip.Addr
	VPC            []netip.Prefix
	Limits         Limits
}

// Limits of an instance type (DescribeInstanceTypes NetworkInfo).
type Limits struct {
	ENIs      int // network interfaces
	Addresses int // IPv4 addresses per interface, the primary included

	Prefixes bool `json:",omitzero"` // an interface may have /28 prefixes: Nitro and bare-metal types
}

// ENI is an elastic network interface as IMDS or EC2 shows it.
type ENI struct {
	ID         string
	MAC        string
	Device     int
	Subnet     string
	CIDR       netip.Prefix // of the subnet
	Primary    netip.Addr
	Addresses  []netip.Addr   // secondaries
	Prefixes   []netip.Prefix // /28, each of which takes the place of an address
	Status     string         // EC2: available, attaching, in-use, detaching
	Attachment string         // EC2: eni-attach-…
	Instance   string         // EC2: attached to
	Owner      string         // EC2: tag node.k8s.amazonaws.com/instance_id
	Created    int64          // EC2: tag node.k8s.amazonaws.com/createdAt, seconds since 1970; 0 when absent
	Groups     []string       // EC2: IDs of its security groups
	NoManage   string         // EC2: tag node.k8s.amazonaws.com/no_manage
	OwnerGone  bool           // EC2, LookLeaked: the instance Owner is terminated, or EC2 does not know it. False is also: nobody knows
	Near       bool           // EC2, LookLeaked: it is in this instance's VPC and tagged with this cluster, or with none where this one has no name. False is also: nobody knows
	Kind       string         // EC2: what it is for: interface (also when empty), trunk, efa, efa-only
	DOT        bool           // EC2: DeleteOnTermination of the attachment
	Partial    bool           // IMDS: the MAC is listed, its leaves are still 404 (ec2-net-utils#38); with an ID, only the addresses are
}

// Sandbox is a pod sandbox as CRI lists it.
type Sandbox struct {
	ID      string // the containerID of its attachments
	Pod     Pod
	Ready   bool
	Address netip.Addr // as the runtime believes; invalid when it does not say
}

// Class sorts EC2's answers by what the caller should do next.
type Class uint8

const (
	OK          Class = iota
	Lost              // no answer: it may have happened, or may still
	Throttled         // RequestLimitExceeded, HTTP 503: slow down; it may have happened
	NotFound          // Invalid…ID.NotFound
	InUse             // "currently in use", device index taken
	Limit             // the instance or the ENI can take no more
	SubnetFull        // InsufficientFreeAddressesInSubnet, InsufficientCidrBlocks
	Denied            // UnauthorizedOperation, AuthFailure
	Invalid           // any other 4xx: repeating it will not help
	Unavailable       // 5xx, connection refused: nothing is known to have happened
)

var classNames = [...]string{"ok", "lost", "throttled", "not-found", "in-use", "limit", "subnet-full", "denied", "invalid", "unavailable"}

func (c Class) String() string { return name(classNames[:], int(c)) }

// Result is the outcome of one EC2 request.
type Result struct {
	Class      Class
	Code       string         // EC2's error code
	ENI        ENI            // Create
	Attachment string         // Attach
	Addresses  []netip.Addr   // Assign
	Prefixes   []netip.Prefix // Assign
}

func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "?"
	}
	return names[i]
}
