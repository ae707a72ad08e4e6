package server

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// render writes the answer to a call that succeeded.
func (c *call) render(x *writer, id string, p *ec2.Response) {
	x.begin(c.action)
	x.text("requestId", id)
	switch c.req.Action {
	case ec2.CreateNetworkInterface:
		x.open("networkInterface")
		c.eni(x, &p.ENI)
		x.end("networkInterface")
		x.option("clientToken", c.req.ClientToken)
	case ec2.AttachNetworkInterface:
		x.text("attachmentId", p.Attachment)
		x.number("networkCardIndex", c.req.NetworkCard)
	case ec2.AssignPrivateIpAddresses:
		c.assigned(x, p)
	case ec2.AssignIpv6Addresses:
		x.sixes(&c.req, "assignedIpv6Addresses", p.Assigned, "assignedIpv6PrefixSet", p.Prefixes)
	case ec2.UnassignIpv6Addresses:
		x.sixes(&c.req, "unassignedIpv6Addresses", c.req.IPv6, "unassignedIpv6PrefixSet", c.req.IPv6Prefixes)
	case ec2.RunInstances:
		c.launched(x, p)
	case ec2.TerminateInstances, ec2.StopInstances, ec2.StartInstances:
		list(x, "instancesSet", p.Changes, x.change)
	default:
		c.described(x, p)
	}
	x.option("nextToken", c.next)
	x.finish(c.action)
}

// described writes what a Describe lists. All other actions answer that they are done.
func (c *call) described(x *writer, p *ec2.Response) {
	switch c.req.Action {
	case ec2.DescribeNetworkInterfaces:
		x.b = slices.Grow(x.b, room(p.ENIs))
		list(x, "networkInterfaceSet", p.ENIs, func(e *ec2.ENI) { c.eni(x, e) })
	case ec2.DescribeSubnets:
		list(x, "subnetSet", p.Subnets, func(s *ec2.Subnet) { c.subnet(x, s) })
	case ec2.DescribeInstances:
		c.reservations(x, p.Instances)
	case ec2.DescribeInstanceTypes:
		list(x, "instanceTypeSet", p.Types, x.instanceType)
	case ec2.DescribeVpcs:
		list(x, "vpcSet", p.VPCs, func(v *ec2.VPC) { c.vpc(x, v) })
	case ec2.DescribeTags:
		list(x, "tagSet", p.Tags, x.tagOf)
	case ec2.DescribeAvailabilityZones:
		list(x, "availabilityZoneInfo", p.Zones, x.zone)
	case ec2.DescribeRegions:
		list(x, "regionInfo", p.Regions, x.region)
	case ec2.DescribeInstanceStatus:
		list(x, "instanceStatusSet", p.Statuses, x.status)
	case ec2.DescribeSecurityGroups:
		list(x, "securityGroupInfo", p.Groups, func(g *ec2.SecurityGroup) { c.group(x, g) })
	default:
		c.describedMore(x, p)
	}
}

// describedMore writes attributes, addresses, reservations and routes.
func (c *call) describedMore(x *writer, p *ec2.Response) {
	switch c.req.Action {
	case ec2.GetSubnetCidrReservations: // reservations of IPv6 are not modelled
		list(x, "subnetIpv4CidrReservationSet", p.Reservations, func(r *ec2.Reservation) { c.reservation(x, r) })
		x.open("subnetIpv6CidrReservationSet")
		x.end("subnetIpv6CidrReservationSet")
	case ec2.DescribeNetworkInterfaceAttribute:
		c.eniAttribute(x, &p.ENI)
	case ec2.DescribeVpcAttribute: // as CreateVpc makes one
		x.text("vpcId", c.req.VPCs[0])
		x.open(c.asked)
		x.flag("value", c.asked == "enableDnsSupport")
		x.end(c.asked)
	case ec2.DescribeAccountAttributes:
		list(x, "accountAttributeSet", p.Account, x.accountAttribute)
	case ec2.DescribeAddresses:
		x.open("addressesSet")
		x.end("addressesSet")
	case ec2.DescribeRouteTables:
		list(x, "routeTableSet", p.RouteTables, func(t *ec2.RouteTable) { c.routeTable(x, t) })
	default:
		x.flag("return", true)
	}
}

func (c *call) reservation(x *writer, r *ec2.Reservation) {
	x.text("subnetCidrReservationId", r.ID)
	x.text("subnetId", string(r.Subnet))
	x.text("cidr", r.CIDR.String())
	x.text("reservationType", r.Type)
	x.text("ownerId", c.account)
	x.open("tagSet")
	x.end("tagSet")
}

// eniAttribute is the one attribute of an interface that was asked for.
func (c *call) eniAttribute(x *writer, e *ec2.ENI) {
	x.text("networkInterfaceId", string(e.ID))
	switch c.asked {
	case "description":
		x.open("description")
		x.text("value", e.Description)
		x.end("description")
	case "groupSet":
		list(x, "groupSet", e.SecurityGroups, x.groupID)
	case "sourceDestCheck":
		x.open("sourceDestCheck")
		x.flag("value", e.SourceDestCheck)
		x.end("sourceDestCheck")
	case "attachment":
		c.eniAttachment(x, e)
	case "associatePublicIpAddress":
		x.flag("associatePublicIpAddress", false)
	}
}

func (x *writer) accountAttribute(a *ec2.AccountAttribute) {
	x.text("attributeName", a.Name)
	x.open("attributeValueSet")
	x.open("item")
	x.text("attributeValue", a.Value)
	x.end("item")
	x.end("attributeValueSet")
}

func (c *call) routeTable(x *writer, t *ec2.RouteTable) {
	x.text("routeTableId", t.ID)
	x.text("vpcId", t.VPC)
	x.text("ownerId", c.account)
	list(x, "routeSet", t.Local, func(p *netip.Prefix) {
		x.text(destinationOf(*p), p.String())
		x.text("gatewayId", "local")
		x.text("state", "active")
		x.text("origin", "CreateRouteTable")
	})
	x.open("associationSet")
	x.open("item")
	x.text("routeTableAssociationId", t.Association)
	x.text("routeTableId", t.ID)
	x.flag("main", true)
	x.open("associationState")
	x.text("state", "associated")
	x.end("associationState")
	x.end("item")
	x.end("associationSet")
	x.open("propagatingVgwSet")
	x.end("propagatingVgwSet")
	x.open("tagSet")
	x.end("tagSet")
}

// destinationOf is the element that a route's prefix stands in.
func destinationOf(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "destinationCidrBlock"
	}
	return "destinationIpv6CidrBlock"
}

// room is about how many bytes a list of interfaces takes.
func room(list []ec2.ENI) int {
	n := 512
	for i := range list {
		n += 1536 + 192*len(list[i].Secondaries)
	}
	return n
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

// plain writes a list whose items are texts.
func plain[T interface{ String() string }](x *writer, set string, items []T) {
	x.open(set)
	for _, v := range items {
		x.text("item", v.String())
	}
	x.end(set)
}

// wrapped writes a list whose items have one field.
func wrapped[T interface{ String() string }](x *writer, set, field string, items []T) {
	list(x, set, items, func(v *T) { x.text(field, (*v).String()) })
}

// instant is a time of the model as the API writes it.
func (c *call) instant(at time.Duration) string {
	return c.epoch.Add(at).UTC().Format("2006-01-02T15:04:05.000Z")
}

// time writes an instant, if there is an epoch to count from.
func (c *call) time(x *writer, tag string, at time.Duration) {
	if !c.epoch.IsZero() {
		x.text(tag, c.instant(at))
	}
}

func (c *call) assigned(x *writer, p *ec2.Response) {
	x.text("networkInterfaceId", string(c.req.ENI))
	wrapped(x, "assignedPrivateIpAddressesSet", "privateIpAddress", p.Assigned)
	wrapped(x, "assignedIpv4PrefixSet", "ipv4Prefix", p.Prefixes)
	x.flag("return", true)
}

func (x *writer) sixes(r *ec2.Request, addresses string, a []netip.Addr, prefixes string, p []netip.Prefix) {
	x.text("networkInterfaceId", string(r.ENI))
	plain(x, addresses, a)
	plain(x, prefixes, p)
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

func (c *call) eni(x *writer, e *ec2.ENI) {
	x.text("networkInterfaceId", string(e.ID))
	x.text("subnetId", string(e.Subnet))
	x.text("vpcId", e.VPC)
	x.text("availabilityZone", e.Zone)
	x.text("description", e.Description)
	x.text("ownerId", e.Owner)
	x.flag("requesterManaged", false)
	x.text("status", statusOf(e))
	x.text("macAddress", e.MAC)
	if e.Primary.IsValid() {
		x.address("privateIpAddress", e.Primary)
		x.dnsName("privateDnsName", e.Primary, e.Zone)
	}
	x.flag("sourceDestCheck", e.SourceDestCheck)
	x.text("interfaceType", e.Kind.String())
	list(x, "groupSet", e.SecurityGroups, x.groupID)
	c.eniAttachment(x, e)
	list(x, "tagSet", e.Tags, x.tag)
	x.addresses(e)
}

// eniAttachment is an interface's attachment, if it has one.
func (c *call) eniAttachment(x *writer, e *ec2.ENI) {
	if e.Attachment == "" {
		return
	}
	x.open("attachment")
	x.text("attachmentId", e.Attachment)
	x.text("instanceId", string(e.Instance))
	x.text("instanceOwnerId", e.Owner)
	x.attachment(e.DeviceIndex, e.NetworkCard, e.Status)
	c.time(x, "attachTime", e.AttachedAt)
	x.flag("deleteOnTermination", e.DeleteOnTermination)
	x.end("attachment")
}

// addresses are an interface's, primary first, and its prefixes.
func (x *writer) addresses(e *ec2.ENI) {
	x.open("privateIpAddressesSet")
	if e.Primary.IsValid() {
		x.privateAddress(e.Primary, e.Zone, true)
	}
	for _, a := range e.Secondaries {
		x.privateAddress(a, e.Zone, false)
	}
	x.end("privateIpAddressesSet")
	if len(e.Prefixes) > 0 {
		wrapped(x, "ipv4PrefixSet", "ipv4Prefix", e.Prefixes)
	}
	list(x, "ipv6AddressesSet", e.IPv6, func(a *netip.Addr) {
		x.address("ipv6Address", *a)
		x.flag("isPrimaryIpv6", false)
	})
	if len(e.IPv6Prefixes) > 0 {
		wrapped(x, "ipv6PrefixSet", "ipv6Prefix", e.IPv6Prefixes)
	}
}

func (x *writer) privateAddress(a netip.Addr, zone string, primary bool) {
	x.open("item")
	x.address("privateIpAddress", a)
	x.dnsName("privateDnsName", a, zone)
	x.flag("primary", primary)
	x.end("item")
}

func (x *writer) attachment(device, card int, s ec2.Status) {
	x.number("deviceIndex", device)
	x.number("networkCardIndex", card)
	x.text("status", attachmentStatus(s))
}

// groupID is a group in an interface's list. Its name is left out: the model's answer does not have it there.
func (x *writer) groupID(id *string) { x.text("groupId", *id) }

func (x *writer) tag(t *ec2.Tag) {
	x.text("key", t.Key)
	x.text("value", t.Value)
}

func (x *writer) tagOf(t *ec2.TagOf) {
	x.text("resourceId", t.Resource)
	x.text("resourceType", t.Kind)
	x.tag(&t.Tag)
}

// zone is an availability zone, of a group that is all of its region's.
func (x *writer) zone(z *ec2.Zone) {
	x.text("zoneName", z.Name)
	x.text("zoneId", z.ID)
	x.text("zoneState", "available")
	x.text("zoneType", "availability-zone")
	x.text("regionName", z.Region)
	x.text("groupName", zoneGroup(z))
	x.text("networkBorderGroup", z.Region)
	x.text("optInStatus", notOptional)
	x.open("messageSet")
	x.end("messageSet")
}

// notOptional is the status of what no account has to opt in to: the model has nothing else.
const notOptional = "opt-in-not-required"

// zoneGroup is the group of a zone, as us-west-2-zg-1.
func zoneGroup(z *ec2.Zone) string { return z.Region + "-zg-1" }

func (x *writer) region(name *string) {
	x.text("regionName", *name)
	x.text("regionEndpoint", endpointOf(*name))
	x.text("optInStatus", notOptional)
}

// endpointOf is the public endpoint of EC2 in a region.
func endpointOf(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "ec2." + region + ".amazonaws.com.cn"
	}
	return "ec2." + region + ".amazonaws.com"
}

func (c *call) subnet(x *writer, s *ec2.Subnet) {
	x.text("subnetId", string(s.ID))
	x.text("subnetArn", c.arn(s.Zone, "subnet/"+string(s.ID)))
	x.text("state", "available")
	x.text("ownerId", c.account)
	x.text("vpcId", s.VPC)
	x.text("cidrBlock", s.CIDR.String())
	x.number("availableIpAddressCount", s.Available)
	x.text("availabilityZone", s.Zone)
	x.flag("defaultForAz", false)
	x.flag("mapPublicIpOnLaunch", false)
	x.flag("assignIpv6AddressOnCreation", false)
	x.flag("ipv6Native", false)
	if s.IPv6.IsValid() {
		list(x, "ipv6CidrBlockAssociationSet", []netip.Prefix{s.IPv6}, func(p *netip.Prefix) {
			x.association("subnet", string(s.ID), "ipv6CidrBlock", *p)
		})
	}
	list(x, "tagSet", s.Tags, x.tag)
}

func (c *call) vpc(x *writer, v *ec2.VPC) {
	x.text("vpcId", v.ID)
	x.text("ownerId", c.account)
	x.text("state", "available")
	if len(v.CIDRs) > 0 {
		x.text("cidrBlock", v.CIDRs[0].String())
	}
	list(x, "cidrBlockAssociationSet", v.CIDRs, func(p *netip.Prefix) { x.association("vpc", v.ID, "cidrBlock", *p) })
	if len(v.IPv6) > 0 {
		list(x, "ipv6CidrBlockAssociationSet", v.IPv6, func(p *netip.Prefix) { x.association("vpc", v.ID, "ipv6CidrBlock", *p) })
	}
	x.text("instanceTenancy", "default")
	x.flag("isDefault", false)
	list(x, "tagSet", v.Tags, x.tag)
}

// association is a block of a VPC or subnet. The model's blocks have no identifiers: one is made of what it ties together.
func (x *writer) association(kind, owner, field string, p netip.Prefix) {
	x.text("associationId", kind+"-cidr-assoc-"+digest(owner, p.String()))
	x.text(field, p.String())
	x.open(field + "State")
	x.text("state", "associated")
	x.end(field + "State")
}

// group is a security group. The model's groups let everything through and have no rules to list.
func (c *call) group(x *writer, g *ec2.SecurityGroup) {
	x.text("ownerId", c.account)
	x.text("groupId", g.ID)
	x.text("groupName", g.Name)
	x.text("groupDescription", g.Description)
	x.text("vpcId", g.VPC)
	x.text("securityGroupArn", c.arn("", "security-group/"+g.ID))
	x.open("ipPermissions")
	x.end("ipPermissions")
	x.open("ipPermissionsEgress")
	x.end("ipPermissionsEgress")
	list(x, "tagSet", g.Tags, x.tag)
}

// arn is the name of a resource in a zone's region, or in the signer's.
func (c *call) arn(zone, resource string) string {
	region := c.region
	if zone != "" {
		region = regionOf(zone)
	}
	return "arn:aws:ec2:" + region + ":" + c.account + ":" + resource
}

// regionOf is the region of an availability zone: its name without the letter.
func regionOf(zone string) string { return strings.TrimRight(zone, "abcdefghijklmnopqrstuvwxyz") }

// dnsName is the IP-based private name of an address ("Amazon EC2 instance hostname types").
func dnsName(a netip.Addr, zone string) string {
	if !a.Is4() {
		return ""
	}
	var x writer
	x.name(a, regionOf(zone))
	return string(x.b)
}

// dnsName writes a private name, without making a text of it first.
func (x *writer) dnsName(tag string, a netip.Addr, zone string) {
	if a.Is4() {
		x.open(tag)
		x.name(a, regionOf(zone))
		x.end(tag)
	}
}

func (x *writer) name(a netip.Addr, region string) {
	from := len(x.b) + len("ip-")
	x.b = a.AppendTo(append(x.b, "ip-"...))
	for i := from; i < len(x.b); i++ {
		if x.b[i] == '.' {
			x.b[i] = '-'
		}
	}
	if region == "us-east-1" {
		x.b = append(x.b, ".ec2.internal"...)
		return
	}
	x.b = append(append(append(x.b, '.'), region...), ".compute.internal"...)
}
