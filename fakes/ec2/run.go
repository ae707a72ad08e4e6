package ec2

import (
	"strconv"
	"strings"
)

// mostInstances is the most that one call may launch: what the resource-rate bucket of RunInstances holds.
const mostInstances = 1000

// runUse is what a client token of RunInstances was used for: the reservation of instances first to first+n-1.
type runUse struct {
	sum      uint64
	first, n int32
}

// runInstances starts up to MaxCount instances that are alike, as many as there is room for, and none when there is not room for MinCount.
// They are pending until Latency.Launch has passed.
func (c *Cloud) runInstances(from int32, r *Request) Response {
	if r.ClientToken != "" {
		if p, again := c.ranBefore(r); again {
			return p
		}
	}
	if p := checkRun(r); p.Code != "" {
		return p
	}
	kind, ok := TypeOf(r.Type)
	if !ok {
		return failure(codeValue, "Invalid value '"+r.Type+"' for InstanceType.")
	}
	sub := c.subnetIndex(r.Subnet)
	if sub == none {
		return noSuchSubnet(r.Subnet)
	}
	if p := c.checkRunParts(sub, &kind, r); p.Code != "" {
		return p
	}
	count, p := c.room(sub, &kind, r)
	if p.Code != "" {
		return p
	}
	first := int32(len(c.instances))
	p = success()
	p.Instances = make([]Instance, 0, count)
	for range count {
		n := c.startInstance(from, sub, &kind, r)
		c.instances[n].reservation = c.instances[first].reservation
		p.Instances = append(p.Instances, c.showInstance(n, always))
	}
	if r.ClientToken != "" {
		if c.runs == nil {
			c.runs = map[string]runUse{}
		}
		c.runs[r.ClientToken] = runUse{r.runSum(), first, int32(count)}
	}
	return p
}

// checkRun checks what needs no look at the cloud.
func checkRun(r *Request) Response {
	switch {
	case r.Image == "":
		return missing("ImageId")
	case !wellFormed(imagePrefix, r.Image):
		return failure(codeImageMalformed, "Invalid id: \""+r.Image+"\" (expecting \"ami-...\")")
	case r.Type == "":
		return missing("InstanceType") // EC2 takes m1.small, which the catalogue does not have
	case r.MinCount == 0:
		return missing("MinCount")
	case r.MaxCount == 0:
		return missing("MaxCount")
	case r.MinCount < 0 || r.MaxCount < r.MinCount:
		return failure(codeValue, "Invalid value '"+strconv.Itoa(r.MaxCount)+"' for maxCount: it must not be below minCount, nor that below 1")
	case r.MinCount > mostInstances:
		return failure(codeInstanceLimit, "You have requested more instances ("+strconv.Itoa(r.MinCount)+") than one request may launch")
	case r.Subnet == "":
		return failure(codeNoDefaultVPC, "No default VPC for this user. GroupName is only supported for EC2-Classic and default VPC.")
	}
	return Response{}
}

// checkRunParts checks the interface and the tags that the instances are to have.
func (c *Cloud) checkRunParts(sub int32, kind *Type, r *Request) Response {
	for _, g := range r.SecurityGroups {
		if n := c.groupNamed(g); n != none && c.groups[n].VPC != c.vpcOf(sub).id {
			return failure(codeParameter, "Security group "+g+" and subnet "+string(r.Subnet)+" belong to different networks.")
		}
	}
	if p := c.checkGroups(sub, r.SecurityGroups); p.Code != "" {
		return p
	}
	for _, tags := range [...][]Tag{r.Tags, r.ENITags} {
		if p := checkTags(nil, tags); p.Code != "" {
			return p
		}
	}
	switch {
	case r.SecondaryCount < 0:
		return failure(codeValue, "Invalid value for secondaryPrivateIpAddressCount: it must not be negative")
	case r.SecondaryCount >= kind.IPv4PerENI:
		return failure(codeAddressLimit, messageLimit)
	case len(r.Addresses) > 0 && r.MaxCount > 1:
		return failure(codeCombination, "Multiple instances creation is not compatible with private IP address specification")
	case len(r.Addresses) > 1:
		return failure(codeCombination, "Only the primary address can be chosen when an instance is launched")
	}
	for _, a := range r.Addresses {
		_, why := c.subnets[sub].wanted(a, nil)
		if why == addressTaken {
			return failure(codePrimaryInUse, "Address "+a.String()+" is in use.")
		}
		if why != "" {
			return failure(codeValue, "Address "+a.String()+why)
		}
	}
	return Response{}
}

// room is how many instances can be launched, MaxCount at most; fewer than MinCount is a failure.
func (c *Cloud) room(sub int32, kind *Type, r *Request) (int, Response) {
	s := &c.subnets[sub]
	if p := c.carries(s.zone, kind, r.MinCount, r.MinCount*kind.VCPUs); p.Code != "" {
		return 0, p
	}
	capacity, _ := c.capacityFor(kind.Name, s.zone)
	addresses := (s.free + s.asideOf(r.Addresses...)) / (1 + r.SecondaryCount)
	processors := mostInstances
	if c.cfg.VCPUQuota > 0 {
		processors = max(0, c.cfg.VCPUQuota-c.vcpus()) / kind.VCPUs
	}
	switch least := r.MinCount; {
	case c.cfg.ENIQuota-c.living < least:
		return 0, failure(codeENIQuota, messageENIQuota)
	case addresses < least:
		return 0, failure(codeSubnetFull, c.subnetFull(sub))
	}
	return min(r.MaxCount, mostInstances, processors, c.cfg.ENIQuota-c.living, addresses, capacity), Response{}
}

// carries says why so many more instances of a type cannot run in a zone, or not with so many vCPUs in all; an empty Response means that they
// can.
func (c *Cloud) carries(zone string, kind *Type, count, vcpus int) Response {
	capacity, offered := c.capacityFor(kind.Name, zone)
	switch {
	case !offered:
		return failure(codeUnsupported, "Your requested instance type ("+kind.Name+") is not supported in your requested Availability Zone ("+
			zone+").")
	case c.cfg.VCPUQuota > 0 && c.vcpus()+vcpus > c.cfg.VCPUQuota:
		return failure(codeVCPULimit, "You have requested more vCPU capacity than your current vCPU limit of "+
			strconv.Itoa(c.cfg.VCPUQuota)+" allows for the instance bucket that the specified instance type belongs to.")
	case capacity < count:
		return failure(codeNoCapacity, "We currently do not have sufficient "+kind.Name+" capacity in the Availability Zone you requested ("+
			zone+").")
	}
	return Response{}
}

// startInstance makes a pending instance; the caller has looked at what is free.
func (c *Cloud) startInstance(from, sub int32, kind *Type, r *Request) int32 {
	n := c.newInstance(kind, sub)
	spec := LaunchSpec{SecondaryAddresses: r.SecondaryCount}
	if len(r.Addresses) > 0 {
		spec.Address = r.Addresses[0]
	}
	slot := c.launchENI(sub, &spec, nil)
	e, i := &c.enis[slot], &c.instances[n]
	i.visibleFrom, i.changed, i.state, i.was = c.now, c.now, pending, pending
	i.image, i.tags = r.Image, merged(nil, r.Tags)
	e.tags, e.grouped, e.by = merged(nil, r.ENITags), c.firstGroups(sub, r.SecurityGroups), from
	e.att = attachment{id: c.newAttachment(slot), since: c.now, number: int32(len(c.attached) - 1), instance: n, status: Attaching, deleteOnTermination: true}
	e.was = e.att
	i.primary, i.primMAC, i.primAddr = slot, e.mac, c.subnets[sub].addr(e.current()[0])
	i.enis = []int32{slot}
	c.emit(c.now, ENICreated, e, from)
	c.schedule(c.now+i.rand.draw(c.cfg.Latency.Launch), launchDone, n)
	return n
}

// capacityFor is how many more instances of a type a zone can hold, and whether it has the type at all.
func (c *Cloud) capacityFor(kind, zone string) (n int, offered bool) {
	n = mostInstances
	for _, limit := range c.cfg.Capacity {
		if !limit.covers(kind, zone) {
			continue
		}
		if limit.Instances < 0 {
			return 0, false
		}
		n = min(n, max(0, limit.Instances-c.holds(limit)))
	}
	return n, true
}

// covers says whether the limit counts instances of a type in a zone.
func (l *Capacity) covers(kind, zone string) bool {
	return (l.Type == "" || l.Type == kind) && (l.Zone == "" || l.Zone == zone)
}

// holds counts the instances that use up a capacity.
func (c *Cloud) holds(limit Capacity) (n int) {
	for k := range c.instances {
		if i := &c.instances[k]; i.state != terminated && i.state != stopped && limit.covers(i.kind, c.subnets[i.subnet].zone) {
			n++
		}
	}
	return n
}

// vcpus counts the processors that the quota is about: those of instances that run, or soon will.
func (c *Cloud) vcpus() (n int) {
	for k := range c.instances {
		if i := &c.instances[k]; i.state == pending || i.state == running {
			t, _ := TypeOf(i.kind)
			n += t.VCPUs
		}
	}
	return n
}

// ranBefore answers a client token that was used before: the same parameters get the same instances, as they are now; others are refused.
// A token is forgotten a day after the last of its instances has ended.
func (c *Cloud) ranBefore(r *Request) (Response, bool) {
	use, ok := c.runs[r.ClientToken]
	if !ok {
		return Response{}, false
	}
	over := true
	for n := use.first; n < use.first+use.n; n++ {
		i := &c.instances[n]
		over = over && i.state == terminated && c.now-i.changed >= tokenLife
	}
	if over {
		return Response{}, false
	}
	if use.sum != r.runSum() {
		return failure(codeIdempotent, "The request uses the same client token as a previous, but non-identical request."), true
	}
	p := success()
	for n := use.first; n < use.first+use.n; n++ {
		p.Instances = append(p.Instances, c.describeInstance(n, always))
	}
	return p, true
}

// runSum is a digest of a launch's parameters, all of which a repetition must share.
func (r *Request) runSum() uint64 {
	h := digest(r.sum())
	h.text(r.Type)
	h.text(r.Image)
	h.number(uint64(r.MinCount))
	h.number(uint64(r.MaxCount))
	for _, t := range r.ENITags {
		h.text(t.Key)
		h.text(t.Value)
	}
	return uint64(h)
}

// wellFormed says whether an identifier has its prefix and 8 or 17 hexadecimal digits.
func wellFormed(prefix, id string) bool {
	id, ok := strings.CutPrefix(id, prefix)
	if !ok || len(id) != 8 && len(id) != 17 {
		return false
	}
	return strings.Trim(id, digits) == ""
}
