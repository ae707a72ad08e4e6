package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Config describes an account in a region. The zero Config is usable: one subnet of 65,531 addresses,
// one security group, the published throttling table.
type Config struct {
	Account      string         // default Account
	Region, Zone string         // default us-west-2, and its zone "a" (the zone of subnets that name none)
	VPCs         []VPC          // default: one, 10.0.0.0/16
	Subnets      []SubnetConfig // default: one subnet as large as the first VPC's first CIDR allows
	// SecurityGroups are the groups that exist; the first one of a VPC is what an interface gets that asks for none. A VPC that has
	// none gets one, named default.
	SecurityGroups []SecurityGroup
	ENIQuota       int // network interfaces per region, default 5000 (the account's default quota)
	// FullIsInvalidValue: when a count of prefixes is asked for, and the subnet has not even as many addresses left, the answer is
	// InvalidParameterValue; InsufficientCidrBlocks then says only that what is left is in pieces. EC2 has been seen to answer either
	// (cilium#31016).
	FullIsInvalidValue bool
	VCPUQuota          int // virtual processors of running instances per region; 0: no quota
	// Capacity is what the zones can hold; what it does not speak of is without bounds.
	Capacity []Capacity
	// TerminatedFor is how long a terminated instance is still described; default one hour ("Terminate Amazon EC2 instances").
	TerminatedFor time.Duration
	// MultiVPC lets an interface be attached to an instance of another VPC in its zone ("Multi-VPC ENI attachments", 2023). Without
	// it that is refused, as it was before.
	MultiVPC bool
	Latency  Latency
	Throttle Throttle
	Lag      Lag
}

// Capacity is how many instances of a type a zone can hold, what is there already included: a launch beyond it is answered with
// InsufficientInstanceCapacity. Where several cover a launch, each must have room.
type Capacity struct {
	Type      string // empty: all types together
	Zone      string // empty: all zones together
	Instances int    // below zero: the type is not offered (Unsupported)
}

// VPC is a network that subnets are cut from. VPCs may overlap one another.
type VPC struct {
	ID    string         // made when empty
	CIDRs []netip.Prefix // IPv4; default 10.0.0.0/16
	IPv6  []netip.Prefix // each a /56
	Tags  []Tag
}

// SecurityGroup is a security group: of a VPC, by its ID.
type SecurityGroup struct {
	ID          string // made when empty
	Name        string // default "default" for a VPC's first group, else the ID
	Description string
	VPC         string // empty: the first one
	Tags        []Tag
}

// SubnetConfig is one subnet. A CIDR that is not IPv4 between /16 and /28 gives a subnet without
// addresses; Validate tells.
type SubnetConfig struct {
	ID   SubnetID // made when empty
	VPC  string   // the VPC's ID; empty: the first one
	CIDR netip.Prefix
	IPv6 netip.Prefix // a /64 of the VPC's, or none
	Zone string       // default Config.Zone
	// Reservations are explicit CIDR reservations: their addresses are given only to who asks for exactly them ("Subnet CIDR
	// reservations", VPC user guide).
	Reservations []netip.Prefix
	// PrefixReservations are those of type "prefix": their addresses go only to interfaces that are given prefixes.
	PrefixReservations []netip.Prefix
	Tags               []Tag
}

// Span is a distribution of durations: half of the draws lie between Min and Median, half between
// Median and Max. The zero Span means "the default"; Always(0) means no time at all.
type Span struct{ Min, Median, Max time.Duration }

// Always is the span whose draws are all d. (A span of zero duration is written with Max one nanosecond
// below zero, so that it is not the zero Span.)
func Always(d time.Duration) Span {
	if d <= 0 {
		return Span{Max: -1}
	}
	return Span{d, d, d}
}

// Latency says how long things take that EC2 works on.
type Latency struct {
	// Call is the round trip per action, before anything a Slow fault adds; default 30 to 400 ms.
	Call [ActionCount]Span
	// Attach runs from AttachNetworkInterface's execution to "in-use"; default 1 to 6 s.
	Attach Span
	// Link is how long after half of Attach's time the kernel link appears: the guest's hot-plug event
	// does not wait for the API. Default 0 to 4 s.
	Link Span
	// Detach runs from DetachNetworkInterface's execution to "available"; default 4 to 7 s (a log of
	// amazon-vpc-cni-k8s 1.5.3 shows Delete fail "in use" once and succeed 5 s later).
	Detach Span
	// Launch runs from RunInstances' or StartInstances' execution to "running"; default 4 to 30 s.
	Launch Span
	// Terminate runs from TerminateInstances' execution to "terminated"; default 10 to 60 s.
	Terminate Span
	// Stop runs from StopInstances' execution to "stopped"; default 10 to 60 s.
	Stop Span
	// Reboot runs from RebootInstances' execution to the restart; default 1 to 30 s ("queues a request to reboot").
	Reboot Span
}

// Lag says how far views trail behind the truth.
type Lag struct {
	// IMDSAttach runs from "in-use" to the MAC being listed in instance metadata; default 0 to 6 s.
	// (5 s are too few and 18 s were seen: amazon-ecs-cni-plugins#66.)
	IMDSAttach Span
	// IMDSPartial is how long a listed MAC's leaves answer 404; default 0.1 to 4 s (ec2-net-utils#38).
	IMDSPartial Span
	// IMDSAddress runs from an address's assignment or removal, or from a new interface's leaves being
	// complete, to local-ipv4s saying so; default 0 to 3 s.
	IMDSAddress Span
	// IMDSDetach is how long a detached interface stays listed, counted from DetachNetworkInterface;
	// default 0 to 12 s.
	IMDSDetach Span
	// Describe is how far behind the replica is that answers a Describe, drawn for each one: what was
	// created or changed since is not in its answer. Default 0 to 2 s, mostly below 50 ms.
	Describe Span
	// Mutation is the same for calls that change something: for so long after its creation an ENI may
	// be NotFound. Default 0 to 250 ms, mostly below 10 ms.
	Mutation Span
	// Available is how far behind AvailableIpAddressCount is in DescribeSubnets, to an eighth of Max. Default 0 to 5 s, mostly below
	// 500 ms. (No document says how far; that it trails has been seen.)
	Available Span
	// Monotonic makes a caller's Describes never older than what it has seen before. EC2 does not promise that ("Eventual consistency in
	// the Amazon EC2 API").
	Monotonic bool
	// FreedAddress is how long an address that was given back is neither free nor used; default 2 s.
	FreedAddress Span
}

// Bucket is a token bucket: Capacity tokens at most, RefillPerSecond tokens a second.
type Bucket struct{ Capacity, RefillPerSecond int }

// Throttle is the bucket of each action; a zero Bucket means the published one.
type Throttle struct {
	Action [ActionCount]Bucket
	// Unfiltered is drawn from instead by a Describe without filters, identifiers and paging.
	Unfiltered [ActionCount]Bucket
	// Resources is what a call draws from besides, one token for each resource it is about: only RunInstances (its MaxCount),
	// TerminateInstances, StopInstances and StartInstances have such a bucket. Those of other actions are not looked at.
	Resources [ActionCount]Bucket
}

// defaultBucket is the table in "Request throttling for the Amazon EC2 API". The document lists the unfiltered Describes that have the
// smaller bucket; here all of them do.
func defaultBucket(a Action, unfiltered bool) Bucket {
	switch {
	case a.describes() && unfiltered:
		return Bucket{50, 10}
	case a.describes():
		return Bucket{100, 20}
	}
	switch a {
	case CreateTags, DeleteTags:
		return Bucket{100, 10}
	case RunInstances:
		return Bucket{5, 2}
	case CreateNetworkInterface, DeleteNetworkInterface, ModifyNetworkInterfaceAttribute, AssignPrivateIpAddresses,
		UnassignPrivateIpAddresses, AssignIpv6Addresses, TerminateInstances:
		return Bucket{100, 5}
	}
	return Bucket{50, 5} // what changes something and is not listed by name: Attach, Detach, UnassignIpv6Addresses, RebootInstances
}

// defaultResources is the document's table of resource rates.
func defaultResources(a Action) Bucket {
	switch a {
	case RunInstances, StartInstances:
		return Bucket{1000, 2}
	case TerminateInstances, StopInstances:
		return Bucket{1000, 20}
	}
	return Bucket{}
}

func defaultCall(a Action) Span {
	switch {
	case a.describes():
		return Span{30 * time.Millisecond, 60 * time.Millisecond, 300 * time.Millisecond}
	case a == CreateNetworkInterface || a == AttachNetworkInterface || a == DetachNetworkInterface:
		return Span{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	}
	return Span{50 * time.Millisecond, 120 * time.Millisecond, 400 * time.Millisecond}
}

// Validate says what New would have to bend: operation, subject, what was found and what to do.
func (cfg *Config) Validate() error {
	for i, s := range cfg.Subnets {
		if !usableCIDR(s.CIDR) {
			return fmt.Errorf("ec2 config: subnet %d (%q): CIDR %v is not an IPv4 prefix between /16 and /28: give one", i, s.ID, s.CIDR)
		}
		v := cfg.vpcOf(s.VPC)
		if v == nil {
			return fmt.Errorf("ec2 config: subnet %d (%q): there is no VPC %q: name one that is in the config", i, s.ID, s.VPC)
		}
		for j, o := range cfg.Subnets[:i] {
			if s.CIDR.Overlaps(o.CIDR) && cfg.sameVPC(s.VPC, o.VPC) {
				return fmt.Errorf("ec2 config: subnet %d: CIDR %v overlaps %v of subnet %d: cut them apart", i, s.CIDR, o.CIDR, j)
			}
			if s.ID != "" && s.ID == o.ID {
				return fmt.Errorf("ec2 config: subnet %d: ID %q is that of subnet %d too: rename one", i, s.ID, j)
			}
		}
		if err := s.checkReservations(i); err != nil {
			return err
		}
		if err := s.checkIPv6(cfg, i); err != nil {
			return err
		}
		if !v.holds(s.CIDR) {
			return fmt.Errorf("ec2 config: subnet %d: CIDR %v lies in none of the VPC's %v: add its CIDR to the VPC", i, s.CIDR, v.CIDRs)
		}
	}
	return cfg.checkNames()
}

// checkNames is the part of Validate that is about VPCs, groups and capacities.
func (cfg *Config) checkNames() error {
	for i, v := range cfg.VPCs {
		for j, o := range cfg.VPCs[:i] {
			if v.ID != "" && v.ID == o.ID {
				return fmt.Errorf("ec2 config: VPC %d: ID %q is that of VPC %d too: rename one", i, v.ID, j)
			}
		}
	}
	for i, g := range cfg.SecurityGroups {
		if cfg.vpcOf(g.VPC) == nil {
			return fmt.Errorf("ec2 config: security group %d (%q): there is no VPC %q: name one that is in the config", i, g.ID, g.VPC)
		}
		for j, o := range cfg.SecurityGroups[:i] {
			if g.ID != "" && g.ID == o.ID {
				return fmt.Errorf("ec2 config: security group %d: ID %q is that of group %d too: rename one", i, g.ID, j)
			}
		}
	}
	for i, l := range cfg.Capacity {
		if _, ok := TypeOf(l.Type); !ok && l.Type != "" {
			return fmt.Errorf("ec2 config: capacity %d: there is no instance type %q in the catalogue: use one that Types lists", i, l.Type)
		}
	}
	return nil
}

// vpcOf is the VPC with an ID, the first one for "", nil if there is none.
func (cfg *Config) vpcOf(id string) *VPC {
	if len(cfg.VPCs) == 0 && id == "" {
		return &VPC{CIDRs: []netip.Prefix{defaultVPC()}}
	}
	for i := range cfg.VPCs {
		if id == "" || cfg.VPCs[i].ID == id {
			return &cfg.VPCs[i]
		}
	}
	return nil
}

// sameVPC says whether two IDs, which may be empty, name one VPC.
func (cfg *Config) sameVPC(a, b string) bool {
	v, w := cfg.vpcOf(a), cfg.vpcOf(b)
	return v != nil && w != nil && v.ID == w.ID
}

// holds says whether p lies in one of the VPC's CIDRs; a VPC that names none has room for everything in its default.
func (v *VPC) holds(p netip.Prefix) bool {
	cidrs := v.CIDRs
	if len(cidrs) == 0 {
		cidrs = []netip.Prefix{defaultVPC()}
	}
	return slices.ContainsFunc(cidrs, func(c netip.Prefix) bool {
		return c.Bits() <= p.Bits() && c.Contains(p.Addr())
	})
}

func defaultVPC() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10}), 16) }

// usableCIDR says whether EC2 would make a subnet of p ("Subnet CIDR blocks": /16 to /28).
func usableCIDR(p netip.Prefix) bool {
	return p.IsValid() && p.Addr().Is4() && p.Bits() >= 16 && p.Bits() <= 28
}

// withDefaults fills what is zero and puts spans and buckets in order, so that no later step has to ask.
func (cfg Config) withDefaults() Config {
	orString(&cfg.Region, "us-west-2")
	orString(&cfg.Zone, cfg.Region+"a")
	orString(&cfg.Account, Account)
	cfg.VPCs = slices.Clone(cfg.VPCs)
	if len(cfg.VPCs) == 0 {
		cfg.VPCs = make([]VPC, 1)
	}
	for i := range cfg.VPCs {
		if v := &cfg.VPCs[i]; len(v.CIDRs) == 0 {
			v.CIDRs = []netip.Prefix{defaultVPC()}
		}
	}
	if len(cfg.Subnets) == 0 {
		first := cfg.VPCs[0].CIDRs[0]
		cfg.Subnets = []SubnetConfig{{CIDR: netip.PrefixFrom(first.Addr(), max(first.Bits(), 16))}}
	}
	if cfg.ENIQuota <= 0 {
		cfg.ENIQuota = 5000
	}
	if cfg.TerminatedFor <= 0 {
		cfg.TerminatedFor = time.Hour
	}
	cfg.Capacity = slices.Clone(cfg.Capacity)
	cfg.Latency = cfg.Latency.withDefaults()
	cfg.Lag = cfg.Lag.withDefaults()
	for a := range ActionCount {
		orBucket(&cfg.Throttle.Action[a], defaultBucket(a, false))
		orBucket(&cfg.Throttle.Unfiltered[a], defaultBucket(a, true))
		orBucket(&cfg.Throttle.Resources[a], defaultResources(a))
	}
	return cfg
}

func (l Latency) withDefaults() Latency {
	for a := range ActionCount {
		orSpan(&l.Call[a], defaultCall(a))
	}
	orSpan(&l.Attach, Span{time.Second, 2500 * time.Millisecond, 6 * time.Second})
	orSpan(&l.Link, Span{0, time.Second, 4 * time.Second})
	orSpan(&l.Detach, Span{4 * time.Second, 5 * time.Second, 7 * time.Second})
	orSpan(&l.Launch, Span{4 * time.Second, 8 * time.Second, 30 * time.Second})
	orSpan(&l.Terminate, Span{10 * time.Second, 25 * time.Second, 60 * time.Second})
	orSpan(&l.Stop, Span{10 * time.Second, 25 * time.Second, 60 * time.Second})
	orSpan(&l.Reboot, Span{time.Second, 4 * time.Second, 30 * time.Second})
	return l
}

func (l Lag) withDefaults() Lag {
	orSpan(&l.IMDSAttach, Span{0, 2 * time.Second, 6 * time.Second})
	orSpan(&l.IMDSPartial, Span{100 * time.Millisecond, time.Second, 4 * time.Second})
	orSpan(&l.IMDSAddress, Span{0, 800 * time.Millisecond, 3 * time.Second})
	orSpan(&l.IMDSDetach, Span{0, 3 * time.Second, 12 * time.Second})
	orSpan(&l.Describe, Span{0, 50 * time.Millisecond, 2 * time.Second})
	orSpan(&l.Mutation, Span{0, 10 * time.Millisecond, 250 * time.Millisecond})
	orSpan(&l.Available, Span{0, 500 * time.Millisecond, 5 * time.Second})
	orSpan(&l.FreedAddress, Always(2*time.Second))
	return l
}

func orString(s *string, or string) {
	if *s == "" {
		*s = or
	}
}

// orSpan replaces the zero span and sorts any other one, so that Min ≤ Median ≤ Max and none is negative.
func orSpan(s *Span, or Span) {
	if *s == (Span{}) {
		*s = or
	}
	s.Min = max(s.Min, 0)
	s.Median = max(s.Median, s.Min)
	s.Max = max(s.Max, s.Median)
}

// orBucket replaces the zero bucket and clips any other one to what the arithmetic holds.
func orBucket(b *Bucket, or Bucket) {
	if *b == (Bucket{}) {
		*b = or
	}
	b.Capacity = min(max(b.Capacity, 0), maxTokens)
	b.RefillPerSecond = min(max(b.RefillPerSecond, 0), maxTokens)
}
