package server

import (
	_ "embed"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// call is a request as it was understood.
type call struct {
	action  string
	req     ec2.Request
	filters []filter
	max     int    // MaxResults; 0: not given
	token   string // NextToken
	asked   string // the attribute that a Describe is about
	next    string // the token of the page after this one

	account string    // who owns what has no owner in the model's answer
	region  string    // the signer's
	epoch   time.Time // of the model's instants; zero: they are not shown
}

// apiActions are the names of the API's actions, one a line; the model has some of them.
//
//go:embed actions.txt
var apiActions string

// parse understands a body. An action that does not exist, or is not modelled, is a call too: the model refuses it, and
// counts it.
func (c *call) parse(body string) *fault {
	q, f := parseForm(body)
	if f != nil {
		return f
	}
	name := q.text("Action")
	if c.action = excerpt(name); c.action == "" {
		return bad("MissingAction", "The request must contain the parameter Action")
	}
	switch v := q.text("Version"); {
	case v == "":
		return bad("MissingParameter", "The request must contain the parameter Version")
	case v != version:
		return bad("NoSuchVersion", "The requested version ("+excerpt(v)+") of service AmazonEC2 does not exist")
	}
	c.req.Action, _ = ec2.ParseAction(c.action)
	switch {
	case c.req.Action != ec2.AnyAction:
		c.read(q)
		q.done()
	case slices.Contains(strings.Fields(apiActions), name):
		c.req.Unmodelled = name
	}
	return q.fault
}

// read takes an action's parameters.
func (c *call) read(q *form) {
	switch r := &c.req; r.Action {
	case ec2.CreateNetworkInterface:
		c.create(q)
	case ec2.AttachNetworkInterface:
		c.attach(q)
	case ec2.ModifyNetworkInterfaceAttribute:
		c.modify(q)
	case ec2.DetachNetworkInterface:
		r.DryRun = q.flag("DryRun")
		r.Attachment = q.required("AttachmentId")
		r.Force = q.flag("Force")
	case ec2.DeleteNetworkInterface:
		r.DryRun = q.flag("DryRun")
		c.interfaceID(q)
	case ec2.AssignPrivateIpAddresses:
		c.assign(q)
	case ec2.UnassignPrivateIpAddresses:
		c.interfaceID(q)
		r.Addresses = q.addresses("PrivateIpAddress")
		r.Prefixes = q.prefixes("Ipv4Prefix", "", false)
	case ec2.AssignIpv6Addresses:
		c.interfaceID(q)
		r.IPv6 = items(q, "Ipv6Addresses", q.ipv6)
		r.IPv6Count = q.count("Ipv6AddressCount", 1)
		r.IPv6Prefixes = q.prefixes("Ipv6Prefix", "", true)
		r.IPv6PrefixCount = q.count("Ipv6PrefixCount", 1)
	case ec2.UnassignIpv6Addresses:
		c.interfaceID(q)
		r.IPv6 = items(q, "Ipv6Addresses", q.ipv6)
		r.IPv6Prefixes = q.prefixes("Ipv6Prefix", "", true)
	case ec2.CreateTags:
		c.createTags(q)
	case ec2.DeleteTags:
		c.deleteTags(q)
	case ec2.RunInstances:
		c.run(q)
	case ec2.TerminateInstances:
		r.DryRun = q.flag("DryRun")
		r.Instances = c.instanceIDs(q)
		q.only("Force", "false")
		q.only("SkipOsShutdown", "false")
	case ec2.StopInstances:
		r.DryRun = q.flag("DryRun")
		r.Instances = c.instanceIDs(q)
		q.flag("Force") // all stop in the same time
		q.only("Hibernate", "false")
		q.flag("SkipOsShutdown")
	case ec2.RebootInstances, ec2.StartInstances:
		r.DryRun = q.flag("DryRun")
		r.Instances = c.instanceIDs(q)
	case ec2.DeleteSubnet:
		r.DryRun = q.flag("DryRun")
		r.Subnet = ec2.SubnetID(q.required("SubnetId"))
	default:
		c.describes(q)
	}
}

// describes takes the parameters of the actions that only read.
func (c *call) describes(q *form) {
	r := &c.req
	switch r.Action {
	case ec2.DescribeNetworkInterfaces:
		for _, id := range c.describe(q, "NetworkInterfaceId", 1000) {
			r.ENIs = append(r.ENIs, ec2.ENIID(q.eni(id)))
		}
		q.flag("IncludeManagedResources") // there are none
	case ec2.DescribeSubnets:
		for _, id := range c.describe(q, "SubnetId", 1000) {
			r.Subnets = append(r.Subnets, ec2.SubnetID(id))
		}
	case ec2.DescribeInstances:
		for _, id := range c.describe(q, "InstanceId", 1000) {
			r.Instances = append(r.Instances, ec2.InstanceID(q.instance(id)))
		}
		q.flag("IncludeManagedResources")
	case ec2.DescribeInstanceTypes:
		r.Types = c.describe(q, "InstanceType", 100)
		q.flag("IncludeUnsupportedInRegion") // there are none
	case ec2.DescribeVpcs:
		r.VPCs = c.describe(q, "VpcId", 1000)
	case ec2.DescribeTags:
		c.asks(q)
		c.pages(q, 1000)
	case ec2.DescribeAvailabilityZones:
		c.asks(q)
		r.Zones, r.ZoneIDs = q.texts("ZoneName"), q.texts("ZoneId")
		q.flag("AllAvailabilityZones") // there are none that one could opt in to
	case ec2.DescribeRegions:
		c.asks(q)
		r.Regions = q.texts("RegionName")
		q.flag("AllRegions") // likewise
	case ec2.DescribeInstanceStatus:
		for _, id := range c.describe(q, "InstanceId", 1000) {
			r.Instances = append(r.Instances, ec2.InstanceID(q.instance(id)))
		}
		r.AllStates = q.flag("IncludeAllInstances")
		q.flag("IncludeManagedResources")
	case ec2.DescribeSecurityGroups:
		r.SecurityGroups = c.describe(q, "GroupId", 1000)
		q.without("GroupName") // names belong to the default VPC, and the model has none
	default:
		c.describesMore(q)
	}
}

// describesMore takes the parameters of the actions that tell of attributes, addresses, reservations and routes.
func (c *call) describesMore(q *form) {
	switch r := &c.req; r.Action {
	case ec2.GetSubnetCidrReservations:
		c.asks(q)
		c.pages(q, 1000)
		r.Subnet = ec2.SubnetID(q.required("SubnetId"))
	case ec2.DescribeNetworkInterfaceAttribute:
		r.DryRun = q.flag("DryRun")
		c.interfaceID(q)
		c.attribute(q, "description", "groupSet", "sourceDestCheck", "attachment", "associatePublicIpAddress")
	case ec2.DescribeVpcAttribute:
		r.DryRun = q.flag("DryRun")
		r.VPCs = []string{q.required("VpcId")}
		c.attribute(q, "enableDnsSupport", "enableDnsHostnames", "enableNetworkAddressUsageMetrics")
	case ec2.DescribeAccountAttributes:
		r.DryRun = q.flag("DryRun")
		r.Attributes = q.texts("AttributeName")
	case ec2.DescribeAddresses:
		c.asks(q)
		r.PublicIPs, r.Allocations = q.addresses("PublicIp"), q.texts("AllocationId")
	case ec2.DescribeRouteTables:
		r.RouteTables = c.describe(q, "RouteTableId", 100)
	}
}

// attribute takes the name of the one attribute that is asked for.
func (c *call) attribute(q *form, names ...string) {
	if c.asked = q.required("Attribute"); !slices.Contains(names, c.asked) {
		q.invalid("attribute", c.asked, "Expecting one of "+strings.Join(names, ", ")+".")
	}
}

// asks takes what all Describes share.
func (c *call) asks(q *form) {
	c.req.DryRun = q.flag("DryRun")
	c.filters = q.filters(c)
	c.hint()
}

// pages takes the parameters of a Describe that can be had in pages.
func (c *call) pages(q *form, pageMost int) {
	c.max = max(0, q.number("MaxResults", 5, pageMost))
	c.req.Paged = c.max > 0
	c.token = q.text("NextToken")
}

// describe takes the parameters of a Describe with pages and identifiers, and gives the identifiers asked for.
func (c *call) describe(q *form, ids string, pageMost int) []string {
	c.asks(q)
	c.pages(q, pageMost)
	list := q.texts(ids)
	if len(list) > 0 && (c.max > 0 || c.token != "") {
		q.fail(bad("InvalidParameterCombination", "The parameter "+ids+" cannot be used with the parameter maxResults or nextToken"))
	}
	return list
}

// interfaceID takes the identifier of the one interface that a call is about.
func (c *call) interfaceID(q *form) { c.req.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId"))) }

// instanceIDs takes a list of instances that must not be empty.
func (c *call) instanceIDs(q *form) []ec2.InstanceID {
	list := identifiers[ec2.InstanceID](q, "InstanceId", q.instance)
	if len(list) == 0 {
		q.fail(bad("MissingParameter", "The request must contain the parameter InstanceId"))
	}
	return list
}

func (c *call) attach(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	c.interfaceID(q)
	r.Instance = ec2.InstanceID(q.instance(q.required("InstanceId")))
	q.required("DeviceIndex")
	r.DeviceIndex = q.number("DeviceIndex", 0, most)
	r.NetworkCard = q.count("NetworkCardIndex", 0)
	q.without("EnaQueueCount", "EnaSrdSpecification")
}

func (c *call) assign(q *form) {
	r := &c.req
	c.interfaceID(q)
	r.Addresses = q.addresses("PrivateIpAddress")
	r.SecondaryCount = q.count("SecondaryPrivateIpAddressCount", 1)
	r.Prefixes = q.prefixes("Ipv4Prefix", "", false)
	r.PrefixCount = q.count("Ipv4PrefixCount", 1)
	r.AllowReassignment = q.flag("AllowReassignment")
}

func (c *call) create(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	r.Subnet = ec2.SubnetID(q.required("SubnetId"))
	r.Description = q.text("Description")
	r.SecurityGroups = q.texts("SecurityGroupId")
	r.SecondaryCount = q.count("SecondaryPrivateIpAddressCount", 0)
	r.Addresses = q.createAddresses("")
	r.Prefixes = q.prefixes("Ipv4Prefix", ".Ipv4Prefix", false)
	r.PrefixCount = q.count("Ipv4PrefixCount", 0)
	r.IPv6 = items(q, "Ipv6Addresses", q.specifiedIPv6)
	r.IPv6Count = q.count("Ipv6AddressCount", 0)
	r.IPv6Prefixes = q.prefixes("Ipv6Prefix", ".Ipv6Prefix", true)
	r.IPv6PrefixCount = q.count("Ipv6PrefixCount", 0)
	c.clientToken(q)
	for _, name := range q.members("TagSpecification") {
		if kind := q.required(name + ".ResourceType"); kind != "network-interface" && kind != "" {
			q.fail(notTaggable(kind))
		}
		tags := q.tags(name + ".Tag")
		q.once(r.Tags, tags)
		r.Tags = append(r.Tags, tags...)
	}
	if kind := q.text("InterfaceType"); kind != "" && kind != "interface" {
		q.fail(bad("UnsupportedOperation", "The interface type "+excerpt(kind)+" is not modelled."))
	}
	q.only("EnablePrimaryIpv6", "false")
	q.without("ConnectionTrackingSpecification", "Operator")
}

func notTaggable(kind string) *fault {
	return bad("InvalidParameterValue", "'"+excerpt(kind)+"' is not a valid taggable resource type for this operation.")
}

// clientToken takes the token of a request that may be repeated ("Ensuring idempotency in Amazon EC2 API requests").
func (c *call) clientToken(q *form) {
	if c.req.ClientToken = q.text("ClientToken"); len(c.req.ClientToken) > 64 {
		q.fail(bad("InvalidParameterValue", "The client token must have at most 64 ASCII characters"))
	}
}

// specifiedIPv6 is an address of a list that could say of each whether it is the primary one.
func (q *form) specifiedIPv6(name string) netip.Addr {
	q.only(name+".IsPrimaryIpv6", "false")
	return q.ipv6(name + ".Ipv6Address")
}

// prefixes is a list of blocks; in some lists each member is a structure with the block in a field.
func (q *form) prefixes(list, field string, six bool) []netip.Prefix {
	return items(q, list, func(name string) netip.Prefix { return q.prefix(name+field, six) })
}

// createAddresses are the addresses that a new interface is to have, primary first; under is the structure's name and a dot.
func (q *form) createAddresses(under string) []netip.Addr {
	var primary, others []netip.Addr
	if q.find(under+"PrivateIpAddress") >= 0 {
		primary = append(primary, q.address(under+"PrivateIpAddress"))
	}
	for _, name := range q.members(under + "PrivateIpAddresses") {
		a := q.address(name + ".PrivateIpAddress")
		if q.flag(name + ".Primary") {
			primary = append(primary, a)
		} else {
			others = append(others, a)
		}
	}
	switch {
	case len(primary) > 1:
		q.fail(bad("InvalidParameterCombination", "Only one primary private IP address can be specified"))
	case len(primary) == 0 && len(others) > 0:
		q.fail(bad("InvalidParameterCombination", "A primary private IP address must be specified with secondary ones"))
	}
	return append(primary, others...)
}

// modify takes the one attribute that a call may change. Which attributes are given is said by the parameters' presence: an
// empty description is a description.
func (c *call) modify(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	c.interfaceID(q)
	given := 0
	give := func(a ec2.Attribute) {
		r.Attribute = a
		given++
	}
	if r.SecurityGroups = q.texts("SecurityGroupId"); len(r.SecurityGroups) > 0 {
		give(ec2.AttributeGroups)
	}
	if q.find("Attachment.AttachmentId") >= 0 || q.find("Attachment.DeleteOnTermination") >= 0 {
		r.Attachment = q.required("Attachment.AttachmentId")
		q.required("Attachment.DeleteOnTermination")
		r.DeleteOnTermination = q.flag("Attachment.DeleteOnTermination")
		give(ec2.AttributeAttachment)
	}
	if q.find("Description.Value") >= 0 {
		r.Description = q.text("Description.Value")
		give(ec2.AttributeDescription)
	}
	if q.find("SourceDestCheck.Value") >= 0 {
		q.required("SourceDestCheck.Value")
		r.SourceDestCheck = q.flag("SourceDestCheck.Value")
		give(ec2.AttributeSourceDestCheck)
	}
	if given > 1 {
		q.fail(bad("InvalidParameterCombination", "Fields for multiple attribute types specified"))
	}
	q.without("AssociatedSubnetId", "AssociatePublicIpAddress", "ConnectionTrackingSpecification", "EnablePrimaryIpv6", "EnaSrdSpecification",
		"Attachment.DefaultEnaQueueCount", "Attachment.EnaQueueCount")
}

func (c *call) createTags(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	c.resources(q)
	r.Tags = q.tags("Tag")
}

// deleteTags takes tags with a value, of which an empty one is one, and tags without.
func (c *call) deleteTags(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	c.resources(q)
	for _, name := range q.members("Tag") {
		key := q.required(name + ".Key")
		if v, ok := q.take(name + ".Value"); ok {
			r.Tags = append(r.Tags, ec2.Tag{Key: key, Value: v})
		} else {
			r.TagKeys = append(r.TagKeys, key)
		}
	}
}

// resources takes the identifiers of what is tagged: interfaces have a field of their own.
func (c *call) resources(q *form) {
	r := &c.req
	for _, name := range q.members("ResourceId") {
		id := q.required(name)
		switch kind, _, _ := strings.Cut(id, "-"); kind {
		case "eni":
			r.ENIs = append(r.ENIs, ec2.ENIID(q.eni(id)))
		case "i":
			r.Resources = append(r.Resources, q.instance(id))
		case "subnet", "vpc", "sg":
			r.Resources = append(r.Resources, id)
		default:
			q.fail(bad("InvalidID", "The ID '"+excerpt(id)+"' is not valid: interfaces, instances, subnets, VPCs and security groups are modelled"))
		}
	}
}

// tags is a list of tags; a value may be empty, a key may not.
func (q *form) tags(prefix string) []ec2.Tag {
	var out []ec2.Tag
	for _, name := range q.members(prefix) {
		t := ec2.Tag{Key: q.required(name + ".Key"), Value: q.text(name + ".Value")}
		switch {
		case len(t.Key) > 128*4 || len(t.Value) > 256*4:
			q.fail(bad("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters, or its value 256"))
		case hasKey(out, t.Key):
			q.fail(bad("InvalidParameterValue", "Duplicate tag key '"+excerpt(t.Key)+"' specified."))
		}
		out = append(out, t)
	}
	return out
}

// once refuses a second specification of tags for the same kind of resource, which the API wants to be one.
func (q *form) once(have, more []ec2.Tag) {
	if len(have) > 0 && len(more) > 0 {
		q.fail(bad("InvalidParameterValue", "The same resource type may not be specified more than once in tag specifications"))
	}
}

func hasKey(tags []ec2.Tag, key string) bool {
	return slices.ContainsFunc(tags, func(t ec2.Tag) bool { return t.Key == key })
}
