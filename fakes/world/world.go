package world

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// World is what a file says.
type World struct {
	Name   string // the file's
	Seed   uint64 // default 1
	Speed  float64
	Verify bool // signatures are checked
	// Hang is for how long of real time a caller waits whose answer is lost, or whose metadata is silent.
	Hang     time.Duration
	Accounts []Account
}

// Account is an AWS account.
type Account struct {
	ID      string // 12 digits
	Keys    []Key  // at least one
	Default bool   // what an unknown access key belongs to, unless signatures are checked
	Regions []Region

	object
}

// Key is an access key with its secret.
type Key struct {
	Access, Secret string

	object
}

// Region is an account's part of a region: one ec2.Cloud.
type Region struct {
	Name      string
	Config    ec2.Config
	Instances []Instance
	ENIs      []ENI // on no instance
	Faults    []Fault
	// Launched is what the instances that RunInstances starts are like: a role and settings of metadata.
	Launched Launched

	object
	subnets []subnet
	groups  map[string]group // by identifier and by name
}

// Instance is one that runs when the world begins.
type Instance struct {
	Name       string // unique in the world
	Type       string
	Subnet     ec2.SubnetID
	Address    netip.Addr // of the primary interface; zero: EC2 chooses
	MAC        string     // likewise
	Addressing            // of the primary interface
	Groups     []string   // likewise; none: the VPC's default one
	Tags       map[string]string
	Role       string
	Image      string // "": that of the model or of metadata
	UserData   string
	Key        Pair
	Spot       bool
	Lifecycle  string // of an Auto Scaling group, as InService
	ENIs       []ENI
	Metadata   Metadata

	object
}

// Launched is what an instance gets that the file does not know.
type Launched struct {
	Role     string
	Metadata Metadata

	object
}

// Addressing is how many addresses an interface has beside its primary one.
type Addressing struct {
	Addresses    int
	Prefixes     int // IPv4, each a /28
	IPv6         int
	IPv6Prefixes int // each a /80
}

// ENI is a further interface.
type ENI struct {
	Name   string
	Device int
	Card   int
	Subnet ec2.SubnetID
	Addressing
	Groups      []string
	Description string
	Tags        map[string]string

	object
}

// Pair is a key pair: its name, and the public key as in authorized_keys.
type Pair struct{ Name, Public string }

// Metadata is how an instance's metadata service is set.
type Metadata struct {
	V1       bool       // HttpTokens=optional
	Disabled bool       // HttpEndpoint=disabled
	HopLimit int        // HttpPutResponseHopLimit; 0: 1
	Tags     bool       // InstanceMetadataTags=enabled
	Throttle ec2.Bucket // zero: none
	// Listen is an address for this instance's service alone, "" the next one of the server's.
	Listen string
	// Netns is the path of a network namespace in which it listens on 169.254.169.254 too.
	Netns string

	object
}

// Fault is something that goes wrong from the beginning.
type Fault struct {
	Text string // as ec2.ParseFault reads it, with instances and subnets by their names

	object
}
