package kube

import (
	"net/netip"
	"time"
)

const (
	// DefaultNamespace is where workloads live that name none.
	DefaultNamespace = "default"
	// defaultGrace is the default of terminationGracePeriodSeconds.
	defaultGrace = 30 * time.Second
)

// Phase is a pod's phase.
type Phase uint8

const (
	Pending Phase = iota
	Running
)

// String is the API's word.
func (p Phase) String() string {
	if p == Running {
		return "Running"
	}
	return "Pending"
}

// Kind is a controller.
type Kind uint8

const (
	Deployment  Kind = iota // names end in a generated suffix; a replacement comes as soon as a deletion begins
	StatefulSet             // names are NAME-0, NAME-1, …; a replacement comes only when the old object is gone. Its pods are managed in parallel
)

// Pod is an object of the API server.
type Pod struct {
	UID         string
	Namespace   string
	Name        string
	Workload    string
	Node        int // index of the node; -1 while no node takes it
	Ordinal     int // of a StatefulSet's pod
	Phase       Phase
	Deleting    bool // it has a deletionTimestamp
	HostNetwork bool
	Address     netip.Addr // status.podIP; invalid before the pod started
	Created     time.Duration
	Deleted     time.Duration // when its deletion began; with Deleting
	Grace       time.Duration // that its kubelet was given then
}

// Spec makes a workload.
type Spec struct {
	Name        string
	Namespace   string // default DefaultNamespace
	Kind        Kind
	Replicas    int
	Nodes       []int // pods are placed on these, round robin over those that are not cordoned
	HostNetwork bool
}

// EventKind is what a kubelet watches for.
type EventKind uint8

const (
	PodBound        EventKind = 1 + iota // a pod was placed on the node
	PodDeleted                           // the object has a deletionTimestamp
	PodForceRemoved                      // the object has gone without its kubelet's consent
)

var eventNames = [...]string{"", "PodBound", "PodDeleted", "PodForceRemoved"}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return "unknown-event"
}

// Event is for the kubelet of Node.
type Event struct {
	Kind        EventKind
	Node        int
	HostNetwork bool
	UID         string
	Namespace   string
	Name        string
	Grace       time.Duration // of PodDeleted
}
