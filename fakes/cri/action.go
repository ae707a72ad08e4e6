package cri

import (
	"net/netip"
	"time"
)

// ActionKind says what the world has to do, or what it may want to know.
type ActionKind uint8

const (
	MakeNetns    ActionKind = 1 + iota // Sandbox, ContainerID: make a namespace, answer NetnsMade
	RemoveNetns                        // Inode: the runtime unmounts the namespace; it lives on while something holds it
	RunPlugin                          // every plugin field: run it, answer PluginDone
	KillPlugin                         // Op: the plugin process is SIGKILLed; what it asked the daemon for goes on. No answer is awaited
	HoldNetns                          // Inode, UID: a process of the pod is in D state and holds the namespace
	ReleaseNetns                       // Inode, UID: that process has ended
	PodStarted                         // UID, ContainerID, Address: the pod's containers run
	PodStopped                         // UID: the pod's containers no longer run, or never will in this sandbox
	PodGone                            // UID: kubelet has finished with the pod; the API object may go
	SandboxGone                        // ContainerID, UID, Lost: the runtime has forgotten the sandbox
)

var actionNames = [...]string{"", "MakeNetns", "RemoveNetns", "RunPlugin", "KillPlugin", "HoldNetns", "ReleaseNetns", "PodStarted", "PodStopped", "PodGone", "SandboxGone"}

func (k ActionKind) String() string {
	if int(k) < len(actionNames) {
		return actionNames[k]
	}
	return "unknown-action"
}

// Verb is a CNI command.
type Verb uint8

const (
	ADD Verb = 1 + iota
	DEL
	CHECK
)

var verbNames = [...]string{"", "ADD", "DEL", "CHECK"}

// String is the value of CNI_COMMAND.
func (v Verb) String() string {
	if int(v) < len(verbNames) {
		return verbNames[v]
	}
	return "unknown-verb"
}

// Action is one thing to do, in order. Which fields are set stands with its Kind.
type Action struct {
	Kind ActionKind
	Verb Verb
	// Lost: the runtime ran ADD and will never call a successful DEL again.
	Lost    bool
	Sandbox SandboxID
	Op      OpID
	Inode   uint64
	// Netns is the inode behind CNI_NETNS; 0 is an empty CNI_NETNS.
	Netns       uint64
	Timeout     time.Duration // after which KillPlugin will come
	ContainerID string        // CNI_CONTAINERID: 64 hexadecimal digits
	IfName      string        // CNI_IFNAME: "eth0"
	Network     string        // name of the network list
	Namespace   string        // K8S_POD_NAMESPACE
	Name        string        // K8S_POD_NAME
	UID         string        // K8S_POD_UID; empty in RunPlugin with Dockershim, which does not pass it
	Address     netip.Addr
}
