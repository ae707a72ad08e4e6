package ec2

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/internal/splitmix"
)

// none marks the absence of an instance, slot or number.
const none int32 = -1

// Account owns everything in a Cloud: the account number that AWS's own examples use.
const Account = "111122223333"

// Cloud is one account in one region. Make it with New; copy it with Clone, never by assignment.
type Cloud struct {
	cfg *Config // defaults filled in; never written to, only replaced
	now time.Duration
	// rand is the third parties' stream; each instance has its own.
	rand stream

	instanceNames, eniNames, attachmentNames, reservationNames namer

	vpcs    []vpc
	groups  []SecurityGroup
	subnets []subnet

	instances []instance // by number; a terminated one stays, its ID is still known
	enis      []eni      // by slot
	spare     []int32    // slots to use again
	slots     []int32    // by ENI number: its slot, or none when it is gone
	attached  []int32    // by attachment number: its ENI's slot, or none when it has ended
	oldest    int32      // slots in order of creation are a list, linked through eni.newer and eni.older
	newest    int32
	living    int     // ENIs that are not deleted
	graves    []grave // deleted ENIs that a stale read still shows

	due    []transition // a heap
	dueSeq uint32

	runs      map[string]runUse // of RunInstances, by client token; nil until one is used
	tokens    map[string]tokenUse
	past      []pastToken // oldest first
	forgotten int32       // how many have left past

	buckets, unfiltered, resources [ActionCount]level

	calls  [ActionCount]tally
	codes  map[codeKey]uint32 // nil until a call fails
	faults []Fault
	lag    lagFault
	met    []Met         // since Met was asked last
	seen   time.Duration // by third parties, see Lag.Monotonic

	events, drained []Event
}

// instance is what EC2 knows of one.
type instance struct {
	id       InstanceID
	kind     string
	limits   Limits
	subnet   int32
	primary  int32 // slot; none once terminated
	rand     stream
	seen     time.Duration // the latest instant that a Describe of its showed
	primMAC  string
	primAddr netip.Addr
	tags     []Tag // never written to, only replaced
	image    string
	// reservation is that of the first instance that was launched with it.
	reservation string

	state, was  instanceState // now, and before changed
	changed     time.Duration
	visibleFrom time.Duration // since when reads and later calls can know of it
	launched    time.Duration
	epoch       uint32 // a transition of another epoch is void

	// enis are the slots of what occupies a device index (attaching, in-use, detaching), by network card and device index.
	// The slice is never written to, only replaced; likewise ghosts and burned.
	enis   []int32
	ghosts []ghost
	burned []int32 // places that a forced detach left unusable

	calls [ActionCount]tally
}

// New makes an account with the subnets of cfg and no instances. A subnet that cannot be (see
// Config.Validate) has no addresses.
func New(cfg Config, seed uint64) *Cloud {
	key := stream(seed)
	cfg = cfg.withDefaults()
	c := &Cloud{cfg: &cfg, oldest: none, newest: none, tokens: map[string]tokenUse{}}
	c.rand = stream(key.next())
	c.instanceNames = namer{key.next()}
	c.eniNames = namer{key.next()}
	c.attachmentNames = namer{key.next()}
	others := namer{key.next()} // subnets, groups and the VPC, which are only ever compared

	c.reservationNames = others // another prefix: the names cannot meet

	c.makeVPCs(others)
	for n, s := range c.cfg.Subnets {
		id, zone := s.ID, s.Zone
		if id == "" {
			id = SubnetID(others.name(subnetPrefix, 2+n))
		}
		orString(&zone, c.cfg.Zone)
		sub := newSubnet(id, zone, &s)
		sub.vpc, sub.tags = max(0, c.vpcNamed(s.VPC)), merged(nil, s.Tags)
		sub.tagged = never
		sub.history = newFreeHistory(sub.free)
		c.subnets = append(c.subnets, sub)
	}
	return c
}

// Clone copies the cloud. What is shared between the two is never written to.
func (c *Cloud) Clone() *Cloud {
	n := *c
	n.subnets = make([]subnet, len(c.subnets))
	for i := range c.subnets {
		n.subnets[i] = c.subnets[i].clone()
	}
	n.vpcs, n.groups = slices.Clone(c.vpcs), slices.Clone(c.groups)
	n.instances = slices.Clone(c.instances)
	n.enis = slices.Clone(c.enis)
	n.spare = slices.Clone(c.spare)
	n.slots = slices.Clone(c.slots)
	n.attached = slices.Clone(c.attached)
	n.graves = slices.Clone(c.graves)
	n.due = slices.Clone(c.due)
	n.runs, n.tokens = maps.Clone(c.runs), maps.Clone(c.tokens)
	n.past = slices.Clone(c.past)
	n.faults, n.met = slices.Clone(c.faults), slices.Clone(c.met)
	n.codes = maps.Clone(c.codes)
	n.events = slices.Clone(c.events)
	n.drained = nil
	return &n
}

// LaunchSpec is an instance to start.
type LaunchSpec struct {
	Type               string   // must be in LimitsOf
	Subnet             SubnetID // empty: the first one
	SecondaryAddresses int      // on the primary interface
	Prefixes           int      // of /28, on the primary interface
	Tags               map[string]string
	// Of the primary interface, when the machine exists already and has them: an address that is free or in a reservation of its
	// subnet, and a MAC, lower case. Zero: EC2 chooses.
	Address netip.Addr
	MAC     string
}

// Error is why Launch failed: the code that EC2 would give.
type Error struct{ Op, Code, Message string }

// Error is the operation, the code and the message.
func (e *Error) Error() string { return e.Op + ": " + e.Code + ": " + e.Message }

// Launch starts an instance with its primary interface at device 0, running, plugged and complete in its
// metadata at once: the model begins where the node's own software does. The error is an *Error.
func (c *Cloud) Launch(now time.Duration, s LaunchSpec) (InstanceID, error) {
	c.Advance(now)
	kind, ok := TypeOf(s.Type)
	if !ok {
		return "", launchError("InvalidParameterValue", "no instance type '"+s.Type+"' in the limits table: use one that LimitsOf knows")
	}
	sub := c.subnetIndex(s.Subnet)
	if s.Subnet == "" && !c.subnets[0].gone {
		sub = 0
	}
	switch {
	case sub == none:
		return "", launchError("InvalidSubnetID.NotFound", "The subnet ID '"+string(s.Subnet)+"' does not exist")
	case s.SecondaryAddresses < 0 || s.Prefixes < 0 || s.SecondaryAddresses+s.Prefixes >= kind.IPv4PerENI:
		return "", launchError("PrivateIpAddressLimitExceeded", "Number of private addresses will exceed limit.")
	case c.subnets[sub].free < 1+s.SecondaryAddresses-c.subnets[sub].asideOf(s.Address):
		return "", launchError(codeSubnetFull, c.subnetFull(sub))
	case c.living >= c.cfg.ENIQuota:
		return "", launchError(codeENIQuota, messageENIQuota)
	case s.Address.IsValid() && !c.subnets[sub].available(s.Address):
		return "", launchError(codePrimaryInUse, "The specified address "+s.Address.String()+" is not free in "+c.subnets[sub].cidr.String())
	}
	blocks, ok := c.launchBlocks(sub, &s)
	switch {
	case !ok:
		return "", launchError(codeNoBlocks, messageNoBlocks)
	case c.subnets[sub].free < 1+s.SecondaryAddresses-c.subnets[sub].asideOf(s.Address)+c.subnets[sub].generalIn(blocks):
		return "", launchError(codeSubnetFull, c.subnetFull(sub))
	}
	n := c.newInstance(&kind, sub)
	c.instances[n].tags = sortedTags(s.Tags)
	c.instances[n].visibleFrom, c.instances[n].changed = never, never
	slot := c.launchENI(sub, &s, blocks)
	e, i := &c.enis[slot], &c.instances[n]
	e.grouped = c.firstGroups(sub, nil)
	e.visibleFrom, e.attAt = never, never // seen by every read: the instance has been there for a while
	e.att = attachment{id: c.newAttachment(slot), since: c.now, number: int32(len(c.attached) - 1), instance: n, status: InUse, deleteOnTermination: true}
	e.plugged = true
	i.primary, i.primMAC, i.primAddr = slot, e.mac, c.subnets[sub].addr(e.current()[0])
	i.enis = []int32{slot}
	c.emit(c.now, ENICreated, e, none)
	c.emit(c.now, ENIAttached, e, none)
	c.emit(c.now, LinkPlugged, e, none)
	return i.id, nil
}

// InstanceAt is the ID of the n-th instance that is launched, from 0, for who has to know it before.
func (c *Cloud) InstanceAt(n int) InstanceID {
	return InstanceID(c.instanceNames.name(instancePrefix, n))
}

// newInstance makes an instance without interfaces, a reservation of its own.
func (c *Cloud) newInstance(kind *Type, sub int32) int32 {
	n := int32(len(c.instances))
	c.instances = append(c.instances, instance{
		id: c.InstanceAt(int(n)), kind: kind.Name, limits: kind.Limits, subnet: sub, primary: none,
		rand: stream(splitmix.Mix(c.instanceNames.salt ^ uint64(n)*splitmix.Golden)), launched: c.now,
		reservation: c.reservationNames.name(reservationPrefix, int(n)),
	})
	return n
}

// launchENI makes an instance's primary interface, with these prefixes.
func (c *Cloud) launchENI(sub int32, s *LaunchSpec, blocks []uint16) int32 {
	slot := c.newSlot()
	c.subnets[sub].takeBlocks(blocks, slot+1)
	list := make([]uint16, 0, 1+s.SecondaryAddresses)
	if s.Address.IsValid() {
		o, _ := c.subnets[sub].offset(s.Address)
		c.subnets[sub].take(o, slot+1)
		list = append(list, o)
	}
	for len(list) <= s.SecondaryAddresses {
		list = append(list, c.subnets[sub].pop(slot+1))
	}
	c.initENI(slot, sub, list)
	if s.MAC != "" {
		c.enis[slot].mac = s.MAC
	}
	if len(blocks) > 0 {
		c.enis[slot].extras = []extraVersion{{c.now, c.now, extras{prefixes: blocks}}}
	}
	return slot
}

// launchBlocks chooses an instance's prefixes, beside an address that is asked for.
func (c *Cloud) launchBlocks(sub int32, s *LaunchSpec) ([]uint16, bool) {
	if s.Prefixes == 0 {
		return nil, true
	}
	var except []uint16
	if o, ok := c.subnets[sub].offset(s.Address); ok {
		except = append(except, o)
	}
	return c.subnets[sub].chooseBlocks(s.Prefixes, except)
}

func launchError(code, message string) error { return &Error{"ec2 launch", code, message} }

// sortedTags is a map of tags as a list, in order of their keys.
func sortedTags(m map[string]string) []Tag {
	var out []Tag
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, Tag{k, m[k]})
	}
	return out
}

// Terminate ends an instance at once. Its interfaces with DeleteOnTermination go with it; the others
// stay behind as available. Unknown and terminated instances are left alone.
func (c *Cloud) Terminate(now time.Duration, id InstanceID) {
	c.Advance(now)
	n := c.instanceIndex(id)
	if n != none && c.instances[n].state != terminated {
		c.end(c.now, n)
	}
}

// end is the last step of a termination.
func (c *Cloud) end(at time.Duration, n int32) {
	i := &c.instances[n]
	for _, slot := range i.enis {
		e := &c.enis[slot]
		c.unplug(e, none)
		remove := e.att.deleteOnTermination
		c.detached(at, slot, none)
		if remove {
			c.deleteENI(slot, none)
		}
	}
	i.enis, i.ghosts, i.burned, i.primary = nil, nil, nil, none
	c.setState(at, i, terminated)
	i.epoch++
	c.events = append(c.events, Event{At: at, Kind: InstanceTerminated, Instance: i.id})
	c.trimDue()
}

// Reboot is what a restart of the instance changes on EC2's side: device indexes that a forced detach left
// unusable can be used again, and its metadata forgets what is gone.
func (c *Cloud) Reboot(now time.Duration, id InstanceID) {
	c.Advance(now)
	if n := c.instanceIndex(id); n != none {
		c.instances[n].burned, c.instances[n].ghosts = nil, nil
	}
}

// instanceIndex finds an instance, terminated ones too.
func (c *Cloud) instanceIndex(id InstanceID) int32 {
	if n, ok := c.instanceNames.number(instancePrefix, string(id), len(c.instances)); ok {
		return int32(n)
	}
	return none
}

// instanceID is the name of an instance's number, "" for none.
func (c *Cloud) instanceID(n int32) InstanceID {
	if n < 0 {
		return ""
	}
	return c.instances[n].id
}

// stream is whose randomness a call draws from.
func (c *Cloud) stream(from int32) *stream {
	if from < 0 {
		return &c.rand
	}
	return &c.instances[from].rand
}
