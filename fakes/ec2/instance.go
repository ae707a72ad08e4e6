package ec2

import (
	"slices"
	"time"
)

// instanceState is where an instance is in its life ("Instance lifecycle"). What Launch starts is running from the first.
type instanceState uint8

const (
	running instanceState = iota
	pending
	shuttingDown
	terminated
	stopping
	stopped
)

// String is the state as EC2 spells it.
func (s instanceState) String() string {
	return [...]string{"running", "pending", "shutting-down", "terminated", "stopping", "stopped"}[s]
}

// up says whether the instance's own software runs, and can read its metadata.
func (i *instance) up() bool {
	return i.state == running || i.state == shuttingDown || i.state == stopping
}

// setState makes s the truth now and keeps the state before for stale reads.
func (c *Cloud) setState(at time.Duration, i *instance, s instanceState) {
	if i.changed != at {
		i.was = i.state
	}
	i.state, i.changed = s, at
}

// stateAt is the state as a replica of that instant knows it. One step of history is kept.
func (i *instance) stateAt(at time.Duration) instanceState {
	if i.changed > at {
		return i.was
	}
	return i.state
}

// known says whether a replica of that instant shows the instance: it has heard of it, and it is not terminated for longer than EC2
// remembers.
func (c *Cloud) knownInstance(n int32, at time.Duration) bool {
	i := &c.instances[n]
	return i.visibleFrom <= at && !(i.state == terminated && at-i.changed >= c.cfg.TerminatedFor)
}

// findInstance is instanceIndex for a call that changes something: what was only just launched may not be known yet where the call is
// executed ("Eventual consistency in the Amazon EC2 API").
func (c *Cloud) findInstance(from int32, id InstanceID) int32 {
	n := c.instanceIndex(id)
	if n == none || !c.knownInstance(n, c.now) {
		return none
	}
	if age := c.now - c.instances[n].visibleFrom; age < c.cfg.Lag.Mutation.Max && age < c.stream(from).draw(c.cfg.Lag.Mutation) {
		return none
	}
	return n
}

// named are the instances that a request names, each once.
func (r *Request) named() []InstanceID {
	ids := r.Instances
	if r.Instance != "" {
		ids = append([]InstanceID{r.Instance}, ids...)
	}
	if len(ids) < 2 {
		return ids
	}
	out := make([]InstanceID, 0, len(ids))
	seen := make(map[InstanceID]bool, len(ids))
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// findAll finds the instances that a request names, all or none.
func (c *Cloud) findAll(from int32, r *Request) ([]int32, Response) {
	ids := r.named()
	if len(ids) == 0 {
		return nil, missing("InstanceId")
	}
	out := make([]int32, len(ids))
	for k, id := range ids {
		out[k] = c.findInstance(from, id)
		if out[k] == none {
			return nil, noSuchInstance(id)
		}
	}
	return out, Response{}
}

// terminate begins to end instances: shutting-down at once, terminated after Latency.Terminate, when their interfaces go. Repeating it
// is harmless.
func (c *Cloud) terminate(from int32, r *Request) Response {
	all, p := c.findAll(from, r)
	if p.Code != "" {
		return p
	}
	return c.change(all, func(n int32, i *instance) {
		if i.state != shuttingDown && i.state != terminated {
			c.setState(c.now, i, shuttingDown)
			i.epoch++ // voids a launch, a stop or a reboot that is under way
			c.schedule(c.now+i.rand.draw(c.cfg.Latency.Terminate), terminateDone, n)
			c.emitInstance(c.now, InstanceShuttingDown, n, from)
		}
	})
}

// stop begins to stop instances: stopping at once, stopped after Latency.Stop. Their interfaces and addresses stay what they are. One that is
// stopped already stays so.
func (c *Cloud) stop(from int32, r *Request) Response {
	all, p := c.findAllIn(from, r, "stopped", pending, shuttingDown, terminated)
	if p.Code != "" {
		return p
	}
	return c.change(all, func(n int32, i *instance) {
		if i.state == running {
			c.setState(c.now, i, stopping)
			i.epoch++ // voids a reboot that is under way
			c.schedule(c.now+i.rand.draw(c.cfg.Latency.Stop), stopDone, n)
			c.emitInstance(c.now, InstanceStopping, n, from)
		}
	})
}

// startAgain begins to start stopped instances: pending at once, running after Latency.Launch, and launched anew. One that runs already is left
// alone.
func (c *Cloud) startAgain(from int32, r *Request) Response {
	all, p := c.findAllIn(from, r, "started", stopping, shuttingDown, terminated)
	if p.Code != "" {
		return p
	}
	type place struct{ kind, zone string }
	count, vcpus := map[place]int{}, 0
	for _, n := range all {
		if i := &c.instances[n]; i.state == stopped {
			kind, _ := TypeOf(i.kind)
			at := place{i.kind, c.subnets[i.subnet].zone}
			count[at]++
			vcpus += kind.VCPUs
			if why := c.carries(at.zone, &kind, count[at], vcpus); why.Code != "" {
				return why
			}
		}
	}
	return c.change(all, func(n int32, i *instance) {
		if i.state == stopped {
			c.setState(c.now, i, pending)
			i.launched = c.now
			c.schedule(c.now+i.rand.draw(c.cfg.Latency.Launch), startDone, n)
		}
	})
}

// change has each of the instances begin something, and answers with the states before and after.
func (c *Cloud) change(all []int32, begin func(n int32, i *instance)) Response {
	p := success()
	for _, n := range all {
		i := &c.instances[n]
		before := i.state
		begin(n, i)
		p.Changes = append(p.Changes, StateChange{i.id, before.String(), i.state.String()})
	}
	c.trimDue()
	return p
}

// findAllIn is findAll for a change that instances in some states are refused.
func (c *Cloud) findAllIn(from int32, r *Request, verb string, not ...instanceState) ([]int32, Response) {
	all, p := c.findAll(from, r)
	if p.Code != "" {
		return nil, p
	}
	for _, n := range all {
		if i := &c.instances[n]; slices.Contains(not, i.state) {
			return nil, failure(codeInstanceState, "The instance '"+string(i.id)+"' is not in a state from which it can be "+verb+".")
		}
	}
	return all, Response{}
}

// reboot asks instances to restart; the answer comes before they do. "Requests to reboot terminated instances are ignored"
// (RebootInstances).
func (c *Cloud) reboot(from int32, r *Request) Response {
	all, p := c.findAll(from, r)
	if p.Code != "" {
		return p
	}
	for _, n := range all {
		if i := &c.instances[n]; i.state != running && i.state != terminated {
			// Not documented; the strict reading.
			return failure(codeState, "This instance '"+string(i.id)+"' is not in a state from which it can be rebooted.")
		}
	}
	for _, n := range all {
		if i := &c.instances[n]; i.state == running {
			c.schedule(c.now+i.rand.draw(c.cfg.Latency.Reboot), rebootDone, n)
		}
	}
	return success()
}

// runInstance does one transition of an instance.
func (c *Cloud) runInstance(t transition) {
	n := t.slot
	switch t.kind {
	case launchDone:
		c.launchCompletes(t.at, n)
	case terminateDone:
		c.end(t.at, n)
	case rebootDone:
		c.bootsAnew(n)
		c.emitInstance(t.at, InstanceRebooted, n, none)
	case stopDone:
		c.setState(t.at, &c.instances[n], stopped)
		c.emitInstance(t.at, InstanceStopped, n, none)
	case startDone:
		c.bootsAnew(n)
		c.setState(t.at, &c.instances[n], running)
		c.emitInstance(t.at, InstanceRunning, n, none)
	}
}

// bootsAnew forgets what only a kernel that has not been started anew remembers of interfaces that are gone.
func (c *Cloud) bootsAnew(n int32) { c.instances[n].burned, c.instances[n].ghosts = nil, nil }

// launchCompletes makes a pending instance running, with its primary interface plugged in and complete in its metadata.
func (c *Cloud) launchCompletes(at time.Duration, n int32) {
	i := &c.instances[n]
	c.setState(at, i, running)
	e := &c.enis[i.primary]
	a := e.att
	a.status = InUse
	c.setAttachment(at, e, a)
	e.plugged = true
	c.emit(at, ENIAttached, e, e.by)
	c.emit(at, LinkPlugged, e, e.by)
	c.emitInstance(at, InstanceRunning, n, e.by)
}

// emitInstance records an event that is no interface's.
func (c *Cloud) emitInstance(at time.Duration, kind EventKind, n, by int32) {
	c.events = append(c.events, Event{At: at, Kind: kind, Instance: c.instances[n].id, By: c.instanceID(by)})
}

// describeInstances is as far behind as any Describe: an index that it shows as free may be taken.
func (c *Cloud) describeInstances(from int32, r *Request) Response {
	at := c.readAt(from, r.Action)
	asked, p := c.asked(r, at)
	if p.Code != "" {
		return p
	}
	p.Instances = make([]Instance, 0, len(asked))
	for _, n := range asked {
		p.Instances = append(p.Instances, c.describeInstance(n, at))
	}
	return p
}

// asked are the instances that a Describe is about: those named, in that order, or all that a replica of that instant
// knows. One that is named and not known fails the request.
func (c *Cloud) asked(r *Request, at time.Duration) (list []int32, p Response) {
	if r.Instance == "" && len(r.Instances) == 0 {
		list = make([]int32, 0, len(c.instances))
		for n := range c.instances {
			if c.knownInstance(int32(n), at) {
				list = append(list, int32(n))
			}
		}
		return list, success()
	}
	for _, id := range r.named() {
		n := c.instanceIndex(id)
		if n == none || !c.knownInstance(n, at) {
			return nil, noSuchInstance(id)
		}
		list = append(list, n)
	}
	return list, success()
}

// describeInstance is showInstance without what EC2 no longer tells of a terminated instance: its network.
func (c *Cloud) describeInstance(n int32, at time.Duration) Instance {
	v := c.showInstance(n, at)
	if c.instances[n].stateAt(at) == terminated {
		return Instance{ID: v.ID, Type: v.Type, Zone: v.Zone, State: v.State, Tags: v.Tags, Launched: v.Launched, Owner: v.Owner,
			Reservation: v.Reservation, Image: v.Image}
	}
	return v
}

// showInstance is an instance with what occupied its device indexes at an instant; always gives the truth.
func (c *Cloud) showInstance(n int32, at time.Duration) Instance {
	v := c.identity(n)
	i := &c.instances[n]
	v.VPCCIDRs = c.vpcOf(i.subnet).cidrs()
	v.State = i.stateAt(at).String()
	if i.primary != none {
		v.SecurityGroups = c.enis[i.primary].groupsAt(at)
	}
	if len(i.enis) > 0 {
		v.Interfaces = make([]Interface, 0, len(i.enis))
	}
	for _, slot := range i.enis {
		e := &c.enis[slot]
		if a := e.attachmentAt(at); a.instance == n {
			v.Interfaces = append(v.Interfaces, Interface{e.id, a.id, int(a.device), int(a.card), a.status, a.deleteOnTermination, a.since})
		}
	}
	return v
}

// identity is what never changes about an instance, but for its tags.
func (c *Cloud) identity(n int32) Instance {
	i := &c.instances[n]
	s := &c.subnets[i.subnet]
	return Instance{
		ID: i.id, Type: i.kind, Zone: s.zone, Subnet: s.id, VPC: c.vpcs[s.vpc].id, PrimaryMAC: i.primMAC, PrimaryAddress: i.primAddr,
		Tags: i.tags, Owner: c.cfg.Account, Launched: i.launched, Image: i.image, Reservation: i.reservation,
	}
}

// AllInstances are all instances as they are, oldest first; terminated ones for as long as DescribeInstances knows them.
func (c *Cloud) AllInstances() []Instance {
	var out []Instance
	for n := range c.instances {
		if c.knownInstance(int32(n), c.now) {
			out = append(out, c.showInstance(int32(n), always))
		}
	}
	return out
}

// SetCapacity replaces what the zones can hold, from now on.
func (c *Cloud) SetCapacity(list []Capacity) { c.cfg.Capacity = slices.Clone(list) }
