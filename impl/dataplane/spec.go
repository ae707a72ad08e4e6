package dataplane

import "net/netip"

// HostSpec is what the node itself needs, whatever its pods are.
type HostSpec struct {
	PrimaryMAC   string
	NodeAddress  netip.Addr     // the primary ENI's primary address: what SNAT writes
	VPCCIDRs     []netip.Prefix // never SNATed to: the VPC's, peers' and AWS_VPC_K8S_CNI_EXCLUDE_SNAT_CIDRS
	ExternalSNAT bool           // something else does SNAT (a NAT gateway)
	NodePort     bool           // AWS_VPC_CNI_NODE_PORT_SUPPORT
	MTU          int            // bytes; 0 leaves the link's alone
	VethPrefix   string         // what pods' host veths are called, see HostVethName
}

// ENISpec is one attached ENI.
type ENISpec struct {
	MAC     string
	Device  int // device number; 0 is the primary
	Primary netip.Addr
	Subnet  netip.Prefix
	Table   int // TableOf(Device)
	MTU     int // bytes; 0 leaves the link's alone
}

// PodSpec is one attachment: one address in one namespace.
type PodSpec struct {
	Alias    string // the exact key, see Alias
	HostVeth string // the host end's name: HostVethName, or DisplacedVethName of an older incarnation
	Netns    uint64 // inode of the pod's namespace
	Address  netip.Addr
	Table    int // of the address's ENI, see TableOf; UnknownTable leaves rules from the address alone
	MTU      int // bytes; 0 leaves the kernel's default

	IfName string // the pod's end; empty means eth0
	MAC    string // the host end's; empty means VethMAC(Alias). An adopted pod's is what was found

	// Two incarnations of one pod name may be alive. The canonical name belongs to the newest: the
	// link with alias Displaced, or whatever veth has the name, gives it up and is then called
	// DisplacedName. Empty: no other link holds it.
	Displaced, DisplacedName string
}

// ruled says whether a rule leads what comes from the address to a table of its ENI.
func (s *PodSpec) ruled() bool { return s.Table != MainTable && s.Table != UnknownTable }
