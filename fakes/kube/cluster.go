package kube

import (
	"net/netip"
	"time"
)

// Phase is a pod's phase.
type Phase uint8

const (
	Pending Phase = iota
	Running
	Failed // evicted, or its node rebooted under a pod that is not restarted
)

// Kind is a controller.
type Kind uint8

const (
	Deployment  Kind = iota // names carry a generated suffix; a replacement comes as soon as the deletion is seen
	StatefulSet             // names are name-0, name-1, …; a replacement comes only when the old object is gone
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
	Address     netip.Addr
	Created     time.Duration
}

// Spec makes a workload.
type Spec struct {
	Name        string
	Namespace   string // default "default"
	Kind        Kind
	Replicas    int
	Nodes       []int // pods are placed on these, round robin over those not cordoned
	HostNetwork bool
}

// EventKind is what a kubelet watches for.
type EventKind uint8

const (
	PodBound EventKind = 1 + iota
	PodDeleted
	PodForceRemoved
)

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

// Cluster is the API server with its controllers and scheduler.
type Cluster struct{}

func New(seed uint64) *Cluster                  { return &Cluster{} }
func (c *Cluster) Clone() *Cluster              { d := *c; return &d }
func (c *Cluster) Events() []Event              { return nil } // drains; valid until the next call of any method
func (c *Cluster) Find(name string) (Pod, bool) { return Pod{}, false }
func (c *Cluster) Get(uid string) (Pod, bool)   { return Pod{}, false }
func (c *Cluster) ListPods(node int) []Pod      { return nil }
func (c *Cluster) Pods(workload string) []Pod   { return nil }
func (c *Cluster) Len() int                     { return 0 }

func (c *Cluster) CreateWorkload(now time.Duration, s Spec) error                     { return nil }
func (c *Cluster) Scale(now time.Duration, workload string, replicas int) bool        { return false }
func (c *Cluster) Roll(now time.Duration, workload string, count int) int             { return 0 }
func (c *Cluster) DeletePod(now time.Duration, name string, grace time.Duration) bool { return false }
func (c *Cluster) ForceDelete(now time.Duration, name string) bool                    { return false }
func (c *Cluster) PodStarted(now time.Duration, uid string, a netip.Addr)             {}
func (c *Cluster) PodStopped(now time.Duration, uid string)                           {}
func (c *Cluster) PodGone(now time.Duration, uid string)                              {}
func (c *Cluster) Cordon(now time.Duration, node int, on bool)                        {}
