package judge

import (
	"net/netip"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
)

// Snapshot is one node at a consistent moment: nothing of it moved while it was collected. The auditor keeps no part of it.
type Snapshot struct {
	Node        int
	Up          bool          // the daemon runs
	View        *ipam.View    // nil: could not be read, what needs it is not judged
	Rows        []ipam.Row    // the assigned ones
	Cloud       []CloudENI    // of this node, as EC2 knows them
	Pods        []PodSnapshot // live pods that have an attachment
	Leaks       []string      // what has no owner, one sentence each
	ThirdParty  []Foreign     // what third parties have put on the node; empty: nothing, or it could not be looked at
	PendingDELs int           // DELs that the runtime still has to repeat, or that wait on disk
	Settings    ipam.Settings
	Limits      ipam.Limits
	Subnets     []CloudSubnet // of the node's VPC and zone, by EC2's truth
	OtherGroups []ec2.ENI     // of the node's ENIs, those with other security groups than they should have, see Whose.Grouped
	Silent      bool          // the node's metadata does not answer
}

// CloudENI is an ENI as EC2 knows it.
type CloudENI struct {
	ID          string
	Attached    bool
	NotOurs     bool // it has a device index, and nothing else is the node's
	Reserved    bool // custom networking keeps it from pods
	Subnet      ec2.SubnetID
	Prefixes    int // each takes the place of an address
	Primary     netip.Addr
	Secondaries []netip.Addr // those of prefixes too
}

// PodSnapshot is a live pod.
type PodSnapshot struct {
	Att     ipam.Attachment
	Name    string
	Address netip.Addr
	Fault   string // why no packet gets there and back; "" is reachable
	Ours    bool   // the fault is not one of a third party that cannot be repaired
}
