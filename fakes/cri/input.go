package cri

import (
	"net/netip"
	"time"
)

// OpID names one run of the plugin. It is never zero and never used again on its node.
type OpID uint64

// SandboxID is the handle of a sandbox on its node. It is never zero and never used again.
type SandboxID uint64

// InputKind says what happened.
type InputKind uint8

const (
	Tick            InputKind = iota // time has passed; the same as a nil Input
	PodBound                         // UID, Namespace, Name, HostNetwork: the API server bound a pod to this node
	PodDeleted                       // UID, Grace: the object has a deletionTimestamp
	PodForceRemoved                  // UID: the object left the API server at once; kubelet kills in the background
	NetnsMade                        // Sandbox, Inode: the namespace asked for by MakeNetns exists
	PluginDone                       // Op, Err, Address: a plugin run has ended; a nil Err is success
	Reboot                           // every process and namespace and /run is gone; /var/lib is kept
	RestartKubelet                   // kubelet forgets its pod workers and lists again
	RestartRuntime                   // Graceful: the runtime ends and loads its records again; pods keep running
)

var inputNames = [...]string{"Tick", "PodBound", "PodDeleted", "PodForceRemoved", "NetnsMade", "PluginDone", "Reboot", "RestartKubelet", "RestartRuntime"}

func (k InputKind) String() string {
	if int(k) < len(inputNames) {
		return inputNames[k]
	}
	return "unknown-input"
}

// PluginError is what a CNI plugin prints when it fails: the error object of the CNI specification.
type PluginError struct {
	Code int
	Msg  string
}

// Error is the code's message.
func (e *PluginError) Error() string { return e.Msg }

// Input is one thing that happened. It is flat, not an interface, so that a step allocates nothing.
// Step keeps its strings but not the Input itself.
type Input struct {
	Kind        InputKind
	HostNetwork bool
	// Graceful: the runtime is told to stop and kills the plugins under way. Otherwise it dies: they go on, and their
	// results are lost.
	Graceful  bool
	UID       string
	Namespace string
	Name      string
	Grace     time.Duration // 0 means the default of 30 s
	Sandbox   SandboxID
	Inode     uint64
	Op        OpID
	Err       *PluginError
	Address   netip.Addr // of a successful ADD
}
