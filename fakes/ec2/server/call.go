package server

import (
	"net/netip"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// call is a request as it was understood.
type call struct {
	action  string
	req     ec2.Request
	filters []filter
	ids     []string // asked for by identifier, of instances and subnets
	max     int      // MaxResults; 0: not given
	token   string   // NextToken
	next    string   // the token of the page after this one
}

// parseCall understands a body. An action that does not exist is a call too: the model refuses it, and counts it.
func parseCall(body string) (*call, *fault) {
	q, f := parseForm(body)
	if f != nil {
		return nil, f
	}
	c := &call{action: q.text("Action")}
	if c.action == "" {
		return nil, bad("MissingAction", "The request must contain the parameter Action")
	}
	switch v := q.text("Version"); {
	case v == "":
		return nil, bad("MissingParameter", "The request must contain the parameter Version")
	case v != version:
		return nil, bad("NoSuchVersion", "The requested version ("+excerpt(v)+") of service AmazonEC2 does not exist")
	}
	c.action = excerpt(c.action)
	c.req.Action, _ = ec2.ParseAction(c.action)
	if c.req.Action != ec2.AnyAction {
		c.read(q)
		q.done()
	}
	return c, q.fault
}

// read takes an action's parameters.
func (c *call) read(q *form) {
	r := &c.req
	switch r.Action {
	case ec2.CreateNetworkInterface:
		c.create(q)
	case ec2.AttachNetworkInterface:
		r.DryRun = q.flag("DryRun")
		r.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId")))
		r.Instance = ec2.InstanceID(q.instance(q.required("InstanceId")))
		q.required("DeviceIndex")
		r.DeviceIndex = q.number("DeviceIndex", 0, 1<<20)
		q.number("NetworkCardIndex", 0, 0)
		q.without("EnaQueueCount", "EnaSrdSpecification")
	case ec2.ModifyNetworkInterfaceAttribute:
		c.modify(q)
	case ec2.DetachNetworkInterface:
		r.DryRun = q.flag("DryRun")
		r.Attachment = q.required("AttachmentId")
		r.Force = q.flag("Force")
	case ec2.DeleteNetworkInterface:
		r.DryRun = q.flag("DryRun")
		r.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId")))
	case ec2.AssignPrivateIpAddresses:
		r.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId")))
		r.Addresses = q.addresses("PrivateIpAddress")
		r.SecondaryCount = max(0, q.number("SecondaryPrivateIpAddressCount", 1, 1<<20))
		if q.flag("AllowReassignment") {
			q.fail(bad("UnsupportedOperation", "AllowReassignment is not modelled."))
		}
		q.without("Ipv4Prefix", "Ipv4PrefixCount")
	case ec2.UnassignPrivateIpAddresses:
		r.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId")))
		r.Addresses = q.addresses("PrivateIpAddress")
		q.without("Ipv4Prefix")
	case ec2.CreateTags:
		r.DryRun = q.flag("DryRun")
		for _, id := range q.list("ResourceId") {
			if !strings.HasPrefix(id, "eni-") {
				q.fail(bad("InvalidID", "The ID '"+excerpt(id)+"' is not valid: only network interfaces are modelled"))
			}
			r.ENIs = append(r.ENIs, ec2.ENIID(q.eni(id)))
		}
		r.Tags = q.tags("Tag")
	case ec2.DescribeNetworkInterfaces:
		for _, id := range c.describe(q, "NetworkInterfaceId", 1000) {
			r.ENIs = append(r.ENIs, ec2.ENIID(q.eni(id)))
		}
		c.hint()
	case ec2.DescribeSubnets:
		if c.ids = c.describe(q, "SubnetId", 1000); len(c.ids) == 1 {
			r.Subnet = ec2.SubnetID(c.ids[0])
		}
	case ec2.DescribeInstances:
		c.ids = c.describe(q, "InstanceId", 1000)
		for _, id := range c.ids {
			q.instance(id)
		}
		if len(c.ids) == 1 {
			r.Instance = ec2.InstanceID(c.ids[0])
		}
	case ec2.DescribeInstanceTypes:
		r.Types = c.describe(q, "InstanceType", 100)
	}
}

// describe takes what all Describes share, and gives the identifiers that are asked for.
func (c *call) describe(q *form, ids string, pageMost int) []string {
	c.req.DryRun = q.flag("DryRun")
	c.filters = q.filters(c.req.Action)
	c.max = max(0, q.number("MaxResults", 5, pageMost))
	c.token = q.text("NextToken")
	q.without("IncludeManagedResources", "IncludeUnsupportedInRegion")
	list := q.list(ids)
	if len(list) > 0 && (c.max > 0 || c.token != "") {
		q.fail(bad("InvalidParameterCombination", "The parameter "+ids+" cannot be used with the parameter maxResults or nextToken"))
	}
	return list
}

func (c *call) create(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	r.Subnet = ec2.SubnetID(q.required("SubnetId"))
	r.Description = q.text("Description")
	r.ClientToken = q.text("ClientToken")
	r.SecurityGroups = q.list("SecurityGroupId")
	r.SecondaryCount = max(0, q.number("SecondaryPrivateIpAddressCount", 0, 1<<20))
	r.Addresses = q.createAddresses()
	if len(r.ClientToken) > 64 {
		q.fail(bad("InvalidParameterValue", "The client token must have at most 64 ASCII characters")) // "Ensuring idempotency in Amazon EC2 API requests"
	}
	for _, name := range q.members("TagSpecification") {
		if kind := q.required(name + ".ResourceType"); kind != "network-interface" && kind != "" {
			q.fail(bad("InvalidParameterValue", "'"+excerpt(kind)+"' is not a valid taggable resource type for this operation."))
		}
		r.Tags = append(r.Tags, q.tags(name+".Tag")...)
	}
	if kind := q.text("InterfaceType"); kind != "" && kind != "interface" {
		q.fail(bad("UnsupportedOperation", "The interface type "+excerpt(kind)+" is not modelled."))
	}
	q.without("Ipv4Prefix", "Ipv4PrefixCount", "Ipv6Prefix", "Ipv6PrefixCount", "Ipv6Addresses", "Ipv6AddressCount",
		"EnablePrimaryIpv6", "ConnectionTrackingSpecification", "Operator")
}

// createAddresses are the addresses that a new interface is to have, primary first.
func (q *form) createAddresses() []netip.Addr {
	var primary, others []netip.Addr
	if _, ok := q.values["PrivateIpAddress"]; ok {
		primary = append(primary, q.address("PrivateIpAddress"))
	}
	for _, name := range q.members("PrivateIpAddresses") {
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

func (c *call) modify(q *form) {
	r := &c.req
	r.DryRun = q.flag("DryRun")
	r.ENI = ec2.ENIID(q.eni(q.required("NetworkInterfaceId")))
	r.SecurityGroups = q.list("SecurityGroupId")
	_, id := q.values["Attachment.AttachmentId"]
	_, dot := q.values["Attachment.DeleteOnTermination"]
	if id || dot {
		r.Attachment = q.required("Attachment.AttachmentId")
		q.required("Attachment.DeleteOnTermination")
		r.DeleteOnTermination = q.flag("Attachment.DeleteOnTermination")
	}
	if _, ok := q.values["Description.Value"]; ok {
		r.Description = q.required("Description.Value") // the model cannot empty one
	}
	q.without("AssociatedSubnetId", "AssociatePublicIpAddress", "ConnectionTrackingSpecification", "EnablePrimaryIpv6", "EnaSrdSpecification", "SourceDestCheck",
		"Attachment.DefaultEnaQueueCount", "Attachment.EnaQueueCount")
}

// tags is a list of tags; a value may be empty, a key may not.
func (q *form) tags(prefix string) []ec2.Tag {
	var out []ec2.Tag
	for _, name := range q.members(prefix) {
		t := ec2.Tag{Key: q.required(name + ".Key"), Value: q.text(name + ".Value")}
		switch {
		case len(t.Key) > 127*4 || len(t.Value) > 255*4:
			q.fail(bad("InvalidParameterValue", "Tag key exceeds the maximum length of 127 characters, or its value 255"))
		case hasKey(out, t.Key):
			q.fail(bad("InvalidParameterValue", "Duplicate tag key '"+excerpt(t.Key)+"' specified."))
		}
		out = append(out, t)
	}
	return out
}

func hasKey(tags []ec2.Tag, key string) bool {
	for _, t := range tags {
		if t.Key == key {
			return true
		}
	}
	return false
}
