package ipam

// Point is a coverage point, a rare branch of the core. A Note carries it; scenarios say with `reaches` that they came there.
type Point uint8

const (
	_                   Point = iota
	RuntimeListRefused        // a runtime list without the daemon's own sandbox, or an error, was not believed
	RecoveredCheckpoint       // an allocation came back from the checkpoint
	RecoveredKernel           // an allocation came back from a host veth's alias alone
	RecoveredRuntime          // an allocation came back from the runtime and a route alone
	CheckpointUnread          // the checkpoint could not be read; it was rebuilt
	AddressVetoed             // the kernel still used an address whose cool-down had ended
	AddressQuarantined        // an address was set aside
	QuarantineEnded           // its evidence was gone twice
	AddWaited                 // an ADD waited for growth or a cool-down and was served
	AddTimedOut               // an ADD was told to try again
	AddUndone                 // an ADD whose caller was gone was undone
	DelUnknown                // a DEL of something unknown succeeded
	DelQueued                 // a request waited for another operation on its attachment
	Displaced                 // an older incarnation gave up the canonical name of its link
	ReapedSandbox             // an address was released because runtime and kernel agreed that its sandbox is gone
	DriftRepaired             // something was put back into the kernel
	ResidueRemoved            // something without an owner was removed from the kernel
	CallLost                  // a reply of EC2 was lost
	CallThrottled             // EC2 throttled
	CallRefused               // EC2 refused for another reason
	IntentResumed             // an intent of an earlier daemon was carried on
	ENIMade                   // an ENI became ready
	ENIDrained                // an ENI is about to be given back
	ENIDeleted                // an ENI was deleted
	ENISwept                  // a leaked ENI was found
	ENIMissing                // an ENI that carried addresses is gone by word of IMDS and EC2
	DrainStopped              // an ENI, or addresses that were to be given back, turned out to be in use or wanted again
	AddressAdopted            // an address without a record was found on an ENI
	AddressMissing            // an address is gone by word of EC2
	GCRefused                 // a GC without a list, or with one that kernel or runtime contradict
	GCReleased                // a GC released an attachment
	SaveFailed                // a record could not be made durable
	VersionRefused            // a plugin spoke a version that this daemon does not
	Restored                  // an ENI that a third party had detached was attached again
	MACUnrecorded             // a host veth's MAC was taken for right, for nothing says what it should be
	ENIGivenUp                // EC2 would not attach an ENI, and it is deleted
	FlowsKept                 // conntrack could not be made to forget the flows of released addresses
	ENINotOurs                // an attached ENI turned out to be another owner's, and is left alone
	AddressesAdded            // a pod has addresses of the node beyond its own
	ServedFromRecords         // metadata did not answer a daemon that started, and its records said enough
	SubnetSwitched            // EC2 refused something in one subnet, and another one's turn has come
	SubnetsDenied             // the role may not ask for subnets
	GroupsChanged             // an ENI was given the security groups of the primary one
	ENIExcluded               // an ENI is in a subnet that is not for pods any more
	PrefixesGone              // EC2 had no prefix to give, and slots get addresses
	SlotsTurned               // slots of the kind that the mode does not use are about to be given back
	TypeWithoutPrefixes       // prefixes are asked for on a type that has none
	ConfigChanged             // the node's ENIConfig, or which one it is, has changed
	marks               = iota
)

var pointNames = [...]string{"", "runtime-list-refused", "recovered-from-checkpoint", "recovered-from-kernel", "recovered-from-runtime",
	"checkpoint-unread", "address-vetoed", "address-quarantined", "quarantine-ended", "add-waited", "add-timed-out", "add-undone",
	"del-unknown", "request-queued", "name-displaced", "sandbox-reaped", "drift-repaired", "residue-removed", "call-lost",
	"call-throttled", "call-refused", "intent-resumed", "eni-made", "eni-drained", "eni-deleted", "eni-swept", "eni-missing",
	"drain-stopped", "address-adopted", "address-missing", "gc-refused", "gc-released", "save-failed", "version-refused", "eni-restored",
	"mac-unrecorded", "eni-given-up", "flows-kept", "eni-not-ours", "addresses-added", "served-from-records",
	"subnet-turned", "subnets-denied", "groups-changed", "eni-excluded",
	"prefixes-gone", "slots-turned", "type-without-prefixes", "eniconfig-changed"}

func (m Point) String() string { return name(pointNames[:], int(m)) }

// Marks are all marks' names, in the order of their definition.
func Marks() []string { return append([]string(nil), pointNames[1:marks]...) }
