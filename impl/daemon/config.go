package daemon

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/kube"
)

// Config is what a daemon runs with. Clock, Kernel, Cloud and the paths are needed; everything else has a useful zero value.
type Config struct {
	Settings ipam.Settings // Runtime and API are taken from the fields below
	Problems []string      // settings that cannot be: the daemon stays up, says them, and takes no pods
	Unusual  []string      // what is worth saying about the settings and stops nothing
	Unread   []string      // variables that look like settings and are none; reported as an Event of the Node

	Clock   *clock.Clock
	Booted  time.Duration // when the machine booted, on that clock: 0 unless it is a laboratory's
	Kernel  Kernel
	Cloud   Cloud
	Runtime Runtime // nil: no runtime socket is configured
	Pods    Pods    // nil: the API server cannot be asked
	// Tell makes an Event about the node; nil: no Events are made.
	Tell func(ctx context.Context, reason, message string) error
	// HasPolicies says whether the cluster has a NetworkPolicy; nil: it cannot be asked.
	HasPolicies func(ctx context.Context) (bool, error)

	RunDir string // on a tmpfs: allocations, DEL intents, lock, marker
	LibDir string // on a disk: EC2 intents
	Socket string // for the plugin; empty: RunDir/ipamd.sock
	LogDir string // for dumps of the flight recorder; empty: RunDir
	// Checkpoint is RunStore's file; empty: RunDir/ipam.json.
	Checkpoint string
	// Rival is where another CNI's daemon listens, a path or HOST:PORT: while a daemon answers there, this one waits.
	Rival string

	// ConfDir is where the node's CNI configuration is; empty: the conflist is written by another program. Conflist is
	// what to write, Chained included.
	ConfDir  string
	Conflist conflist.Options

	ExcludeSNAT []netip.Prefix // never SNATed to, beside the VPC's own CIDRs

	// PolicyMode is what a network policy agent is told of pods, netpolicy.Standard or netpolicy.Strict; empty: nothing. The agent listens
	// in RunDir.
	PolicyMode string

	Cluster string   // tag of the node's ENIs
	Self    ipam.Pod // the daemon's own pod, by namespace and name; zero: it runs in none
	Sandbox string   // the daemon's own container ID, where it is known; wins over Self
	Version int      // of records and local protocol to speak; 0: ipam.Version

	Log    *slog.Logger // nil: nothing is said
	Record io.Writer    // every step goes there before it has a consequence; nil: nowhere

	Parts Parts
}

// Parts are what a laboratory replaces. Production has none of them.
type Parts struct {
	Policy     *ipam.Policy // nil: ipam.Sound
	PolicyName string       // as a recording names it; empty: "sound"

	Input   func(ipam.Input) ipam.Input
	Effects func([]ipam.Effect) []ipam.Effect
	Plan    func(ipam.Lane, dataplane.Plan) dataplane.Plan
	Store   func(Store) Store
	Cloud   func(Cloud) Cloud
}

// Kernel is the node's network namespace, see package linux.
type Kernel interface {
	Apply(p dataplane.Plan, pod *linux.Pod) (done int, err *dataplane.Error)
	Observe() (dataplane.Observation, error)
	Watch(ctx context.Context, hint func()) error
}

// Cloud is EC2 and instance metadata, see package cloud. A method has at most one request under way.
type Cloud interface {
	Call(ctx context.Context, c *ipam.Call) ipam.Result
	Metadata(ctx context.Context) (*ipam.IMDS, error)
	ENIs(ctx context.Context, ids []string) ([]ipam.ENI, error)
	Leaked(ctx context.Context) ([]ipam.ENI, error)
	Attached(ctx context.Context) ([]ipam.ENI, error)
	Subnets(ctx context.Context) ([]ipam.Subnet, error)
}

// Runtime is the container runtime, see package cri.
type Runtime interface {
	Sandboxes(ctx context.Context) ([]ipam.Sandbox, error)
}

// Pods is the API server's word on this node, see package kube.
type Pods interface {
	Pods(ctx context.Context) ([]ipam.Pod, error)
	Watch(ctx context.Context, changed func(kube.NodeFacts)) error
	ENIConfig(ctx context.Context, s *ipam.Settings) (ipam.ENIConfig, error)
}

// Store is the place of one kind of rows. Its methods are called one at a time.
type Store interface {
	// Read is called once, first. Written is the record version that wrote what was read: 0 when there was nothing or
	// another CNI wrote it. With an error there are no rows, and the store is empty from then on.
	Read() (rows []ipam.Row, written int, err error)
	// Commit makes all of the saves durable, in their order, or none.
	Commit(saves []*ipam.Save) error
}

// Self is the ID that stands for the daemon's own sandbox in what the core sees.
const Self = "self"

// StopBound is how long after SIGTERM a daemon ends, whatever hangs. amazon-vpc-cni-k8s's DaemonSet gives it 10 seconds.
const StopBound = 8 * time.Second
