package server

import (
	"net/netip"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// render is the answer to a call that succeeded.
func (c *call) render(id string, p *ec2.Response) []byte {
	x := &writer{b: make([]byte, 0, 1024+2048*len(p.ENIs))}
	x.b = append(x.b, header...)
	x.b = append(x.b, "<"+c.action+`Response xmlns="http://ec2.amazonaws.com/doc/`+version+`/">`...)
	x.text("requestId", id)
	switch c.req.Action {
	case ec2.CreateNetworkInterface:
		x.open("networkInterface")
		x.eni(&p.ENI)
		x.end("networkInterface")
		x.option("clientToken", c.req.ClientToken)
	case ec2.AttachNetworkInterface:
		x.text("attachmentId", p.Attachment)
		x.number("networkCardIndex", 0)
	case ec2.AssignPrivateIpAddresses:
		x.assigned(&c.req, p)
	case ec2.DescribeNetworkInterfaces:
		list(x, "networkInterfaceSet", p.ENIs, x.eni)
	case ec2.DescribeSubnets:
		list(x, "subnetSet", p.Subnets, x.subnet)
	case ec2.DescribeInstances:
		list(x, "reservationSet", p.Instances, x.reservation)
	case ec2.DescribeInstanceTypes:
		list(x, "instanceTypeSet", p.Types, x.instanceType)
	default:
		x.flag("return", true)
	}
	x.option("nextToken", c.next)
	x.end(c.action + "Response")
	return x.b
}

// list writes <set><item>…</item>…</set>.
func list[T any](x *writer, set string, items []T, write func(*T)) {
	x.open(set)
	for i := range items {
		x.open("item")
		write(&items[i])
		x.end("item")
	}
	x.end(set)
}

func (x *writer) assigned(r *ec2.Request, p *ec2.Response) {
	x.text("networkInterfaceId", string(r.ENI))
	list(x, "assignedPrivateIpAddressesSet", p.Assigned, func(a *netip.Addr) { x.text("privateIpAddress", a.String()) })
	x.open("assignedIpv4PrefixSet")
	x.end("assignedIpv4PrefixSet")
	x.flag("return", true)
}

// statusOf is the interface's own status; what happens to its attachment is the attachment's.
func statusOf(e *ec2.ENI) string {
	if e.Status == ec2.Available {
		return "available"
	}
	return "in-use"
}

// attachmentStatus spells the status of an attachment.
func attachmentStatus(s ec2.Status) string {
	if s == ec2.InUse {
		return "attached"
	}
	return s.String()
}

func (x *writer) eni(e *ec2.ENI) {
	x.text("networkInterfaceId", string(e.ID))
	x.text("subnetId", string(e.Subnet))
	x.text("vpcId", e.VPC)
	x.text("availabilityZone", e.Zone)
	x.text("description", e.Description)
	x.text("ownerId", ec2.Account)
	x.flag("requesterManaged", false)
	x.text("status", statusOf(e))
	x.text("macAddress", e.MAC)
	x.text("privateIpAddress", text(e.Primary))
	x.flag("sourceDestCheck", true)
	x.text("interfaceType", "interface")
	list(x, "groupSet", e.SecurityGroups, x.group)
	if e.Attachment != "" {
		x.open("attachment")
		x.text("attachmentId", e.Attachment)
		x.text("instanceId", string(e.Instance))
		x.text("instanceOwnerId", ec2.Account)
		x.attachment(e.DeviceIndex, e.Status)
		x.flag("deleteOnTermination", e.DeleteOnTermination)
		x.end("attachment")
	}
	list(x, "tagSet", e.Tags, x.tag)
	x.addresses(e)
}

// addresses are an interface's, primary first.
func (x *writer) addresses(e *ec2.ENI) {
	x.open("privateIpAddressesSet")
	x.address(e.Primary, true)
	for _, a := range e.Secondaries {
		x.address(a, false)
	}
	x.end("privateIpAddressesSet")
}

func (x *writer) address(a netip.Addr, primary bool) {
	x.open("item")
	x.text("privateIpAddress", text(a))
	x.flag("primary", primary)
	x.end("item")
}

func (x *writer) attachment(device int, s ec2.Status) {
	x.number("deviceIndex", device)
	x.number("networkCardIndex", 0)
	x.text("status", attachmentStatus(s))
}

func (x *writer) group(id *string) {
	x.text("groupId", *id)
	x.text("groupName", *id) // the model's groups have no names
}

func (x *writer) tag(t *ec2.Tag) {
	x.text("key", t.Key)
	x.text("value", t.Value)
}

func (x *writer) subnet(s *ec2.Subnet) {
	x.text("subnetId", string(s.ID))
	x.text("state", "available")
	x.text("ownerId", ec2.Account)
	x.text("vpcId", s.VPC)
	x.text("cidrBlock", s.CIDR.String())
	x.number("availableIpAddressCount", s.Available)
	x.text("availabilityZone", s.Zone)
	x.flag("defaultForAz", false)
	x.flag("mapPublicIpOnLaunch", false)
	x.flag("assignIpv6AddressOnCreation", false)
}

// reservation: each instance was launched by a request of its own.
func (x *writer) reservation(i *ec2.Instance) {
	x.text("reservationId", "r-"+strings.TrimPrefix(string(i.ID), "i-"))
	x.text("ownerId", ec2.Account)
	x.open("instancesSet")
	x.open("item")
	x.instance(i)
	x.end("item")
	x.end("instancesSet")
}

func (x *writer) instance(i *ec2.Instance) {
	code := 16
	if i.State == "terminated" {
		code = 48
	}
	x.text("instanceId", string(i.ID))
	x.text("instanceType", i.Type)
	x.open("instanceState")
	x.number("code", code)
	x.text("name", i.State)
	x.end("instanceState")
	x.open("placement")
	x.text("availabilityZone", i.Zone)
	x.text("tenancy", "default")
	x.end("placement")
	x.text("architecture", "x86_64") // all types of the limits table
	if i.State != "terminated" {     // of a terminated one the API shows no network
		x.text("subnetId", string(i.Subnet))
		x.text("vpcId", i.VPC)
		x.text("privateIpAddress", text(i.PrimaryAddress))
	}
	list(x, "networkInterfaceSet", i.Interfaces, func(e *ec2.Interface) { x.instanceENI(i, e) })
	list(x, "tagSet", i.Tags, x.tag)
}

func (x *writer) instanceENI(i *ec2.Instance, e *ec2.Interface) {
	x.text("networkInterfaceId", string(e.ENI))
	x.text("vpcId", i.VPC)
	x.text("ownerId", ec2.Account)
	x.text("status", "in-use")
	x.open("attachment")
	x.text("attachmentId", e.Attachment)
	x.attachment(e.Device, e.Status)
	x.end("attachment")
}

func (x *writer) instanceType(t *ec2.Type) {
	x.text("instanceType", t.Name)
	x.open("networkInfo")
	x.number("maximumNetworkInterfaces", t.ENIs)
	x.number("maximumNetworkCards", 1)
	x.number("defaultNetworkCardIndex", 0)
	x.open("networkCards")
	x.open("item")
	x.number("networkCardIndex", 0)
	x.number("maximumNetworkInterfaces", t.ENIs)
	x.end("item")
	x.end("networkCards")
	x.number("ipv4AddressesPerInterface", t.IPv4PerENI)
	x.end("networkInfo")
}
