package server

import (
	"github.com/enilab/enilab/fakes/ec2"
)

// launched is the answer of RunInstances: all its instances are one reservation.
func (c *call) launched(x *writer, p *ec2.Response) {
	if len(p.Instances) > 0 {
		x.text("reservationId", p.Instances[0].Reservation)
		x.text("ownerId", p.Instances[0].Owner)
	}
	x.open("groupSet")
	x.end("groupSet")
	list(x, "instancesSet", p.Instances, func(i *ec2.Instance) { c.instance(x, i) })
}

// reservations lists instances with those of one reservation together, where they follow one another.
func (c *call) reservations(x *writer, all []ec2.Instance) {
	x.open("reservationSet")
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].Reservation == all[0].Reservation {
			n++
		}
		x.open("item")
		x.text("reservationId", all[0].Reservation)
		x.text("ownerId", all[0].Owner)
		x.open("groupSet")
		x.end("groupSet")
		list(x, "instancesSet", all[:n], func(i *ec2.Instance) { c.instance(x, i) })
		x.end("item")
		all = all[n:]
	}
	x.end("reservationSet")
}

// stateCode is the number of an instance's state (InstanceState in the API reference).
func stateCode(state string) int {
	switch state {
	case "pending":
		return 0
	case "shutting-down":
		return 32
	case "terminated":
		return 48
	case "stopping":
		return 64
	case "stopped":
		return 80
	}
	return 16
}

func (x *writer) state(tag, state string) {
	x.open(tag)
	x.number("code", stateCode(state))
	x.text("name", state)
	x.end(tag)
}

func (x *writer) change(s *ec2.StateChange) {
	x.text("instanceId", string(s.Instance))
	x.state("currentState", s.Current)
	x.state("previousState", s.Previous)
}

// status is what the status checks say of an instance.
func (x *writer) status(s *ec2.InstanceStatus) {
	x.text("instanceId", string(s.Instance))
	x.text("availabilityZone", s.Zone.Name)
	x.option("availabilityZoneId", s.Zone.ID)
	x.state("instanceState", s.State)
	for _, of := range [...]string{"systemStatus", "instanceStatus"} {
		x.open(of)
		x.text("status", s.Status)
		x.open("details")
		if r := reachability(s); r != "" {
			x.open("item")
			x.text("name", "reachability")
			x.text("status", r)
			x.end("item")
		}
		x.end("details")
		x.end(of)
	}
}

// reachability is the one check that a status is made of, "" where none is made.
func reachability(s *ec2.InstanceStatus) string {
	switch s.Status {
	case "ok":
		return "passed"
	case "initializing":
		return s.Status
	}
	return ""
}

func (c *call) instance(x *writer, i *ec2.Instance) {
	x.text("instanceId", string(i.ID))
	x.text("imageId", i.Image)
	x.text("instanceType", i.Type)
	x.state("instanceState", i.State)
	c.time(x, "launchTime", i.Launched)
	x.open("placement")
	x.text("availabilityZone", i.Zone)
	x.text("tenancy", "default")
	x.end("placement")
	x.open("monitoring")
	x.text("state", "disabled")
	x.end("monitoring")
	x.text("virtualizationType", "hvm")
	if i.State != "terminated" { // of a terminated one the API shows no network
		x.text("subnetId", string(i.Subnet))
		x.text("vpcId", i.VPC)
		x.address("privateIpAddress", i.PrimaryAddress)
		x.dnsName("privateDnsName", i.PrimaryAddress, i.Zone)
		list(x, "groupSet", i.SecurityGroups, x.groupID)
	}
	list(x, "networkInterfaceSet", i.Interfaces, func(e *ec2.Interface) { c.instanceENI(x, i, e) })
	list(x, "tagSet", i.Tags, x.tag)
}

func (c *call) instanceENI(x *writer, i *ec2.Instance, e *ec2.Interface) {
	x.text("networkInterfaceId", string(e.ENI))
	x.text("vpcId", i.VPC)
	x.text("ownerId", i.Owner)
	x.text("status", "in-use")
	x.text("interfaceType", "interface")
	x.open("attachment")
	x.text("attachmentId", e.Attachment)
	c.time(x, "attachTime", e.AttachedAt)
	x.flag("deleteOnTermination", e.DeleteOnTermination)
	x.attachment(e.Device, e.Card, e.Status)
	x.end("attachment")
}

func (x *writer) instanceType(t *ec2.Type) {
	x.text("instanceType", t.Name)
	x.flag("bareMetal", t.Hypervisor == "")
	x.option("hypervisor", t.Hypervisor)
	x.open("processorInfo")
	x.open("supportedArchitectures")
	x.text("item", t.Arch)
	x.end("supportedArchitectures")
	x.end("processorInfo")
	x.open("vCpuInfo")
	x.number("defaultVCpus", t.VCPUs)
	x.end("vCpuInfo")
	x.open("memoryInfo")
	x.number("sizeInMiB", t.MemoryMiB)
	x.end("memoryInfo")
	x.network(t)
}

func (x *writer) network(t *ec2.Type) {
	cards := max(t.Cards, 1)
	x.open("networkInfo")
	x.number("maximumNetworkInterfaces", t.MaximumENIs())
	x.number("maximumNetworkCards", cards)
	x.number("defaultNetworkCardIndex", 0)
	x.open("networkCards")
	for n := range cards {
		x.open("item")
		x.number("networkCardIndex", n)
		x.number("maximumNetworkInterfaces", t.ENIs)
		x.end("item")
	}
	x.end("networkCards")
	x.number("ipv4AddressesPerInterface", t.IPv4PerENI)
	x.number("ipv6AddressesPerInterface", t.IPv6PerENI)
	x.flag("ipv6Supported", t.IPv6PerENI > 0)
	x.end("networkInfo")
}
