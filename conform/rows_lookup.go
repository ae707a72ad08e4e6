package conform

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The actions that look at what surrounds interfaces.
const (
	describeTags    = "DescribeTags"
	describeZones   = "DescribeAvailabilityZones"
	describeRegions = "DescribeRegions"
	describeStatus  = "DescribeInstanceStatus"

	getReservations = "GetSubnetCidrReservations"
	describeENIPart = "DescribeNetworkInterfaceAttribute"
	describeVPCPart = "DescribeVpcAttribute"
	describeAccount = "DescribeAccountAttributes"
	describeElastic = "DescribeAddresses"
	describeTables  = "DescribeRouteTables"
	deleteSubnet    = "DeleteSubnet"
)

const statusChecking = "Status checks for Amazon EC2 instances"

// checked is within what time an instance that runs has passed its status checks.
const checked = 10 * time.Minute

func lookupRows() []Row {
	return slices.Concat(describeTagRows(), zoneRows(), statusRows(), attributeRows(), surroundingRows())
}

func describeTagRows() []Row {
	return []Row{
		{Name: "taglist.resource", Call: describeTags, When: "filter resource-id",
			Want:   "eventually each tag of it, with its resourceType",
			Source: api(describeTags), run: func(t *try) {
				id := t.eni("TagSpecification.1.Tag.2.Key", "k", "TagSpecification.1.Tag.2.Value", "v ü")
				t.eventually(consistency, func() string {
					list := t.ok(describeTags, "Filter.1.Name", "resource-id", "Filter.1.Value.1", id)
					found := sorted(slices.Concat(list.texts("tagSet/item/key"), list.texts("tagSet/item/value"),
						list.texts("tagSet/item/resourceType")))
					return unlike("tags", quoteAll(found), quoteAll(sorted([]string{tagKey, t.tag(), "k", "v ü",
						"network-interface", "network-interface"})))
				})
			}},
		{Name: "taglist.tag", Call: describeTags, When: "filter tag:KEY",
			Want:   "eventually the interfaces with that value",
			Source: api(describeTags), run: func(t *try) {
				key := t.unique()
				a := t.eni("TagSpecification.1.Tag.2.Key", key, "TagSpecification.1.Tag.2.Value", "v")
				t.eni("TagSpecification.1.Tag.2.Key", key, "TagSpecification.1.Tag.2.Value", "other",
					"TagSpecification.1.Tag.3.Key", "k", "TagSpecification.1.Tag.3.Value", "v")
				t.settle()
				t.eventually(consistency, func() string {
					return unlike("resources", quoteAll(t.ok(describeTags, "Filter.1.Name", "tag:"+key, "Filter.1.Value.1",
						"v").texts("tagSet/item/resourceId")), a)
				})
			}},
		{Name: "taglist.key-and-value", Call: describeTags, When: "filters key and value",
			Want:   "eventually the interface that has it",
			Source: api(describeTags), run: func(t *try) {
				key := t.unique()
				a := t.eni("TagSpecification.1.Tag.2.Key", key, "TagSpecification.1.Tag.2.Value", "v")
				t.eni("TagSpecification.1.Tag.2.Key", key, "TagSpecification.1.Tag.2.Value", "other")
				t.settle()
				t.eventually(consistency, func() string {
					list := t.ok(describeTags, "Filter.1.Name", "key", "Filter.1.Value.1", key, "Filter.2.Name", "value",
						"Filter.2.Value.1", "v")
					return unlike("resources", quoteAll(list.texts("tagSet/item/resourceId")), a)
				})
			}},
		{Name: "taglist.type", Call: describeTags, When: "filter resource-type of another kind",
			Want:   "nothing",
			Source: api(describeTags), run: func(t *try) {
				id := t.eni()
				t.settle()
				ask := func(kind string) string {
					return quoteAll(t.ok(describeTags, "Filter.1.Name", "resource-id", "Filter.1.Value.1", id, "Filter.2.Name",
						"resource-type", "Filter.2.Value.1", kind).texts("tagSet/item/resourceId"))
				}
				t.eventually(consistency, func() string { return unlike("tags of interfaces", ask("network-interface"), id) })
				t.is("tags of subnets", ask("subnet"), "nothing")
			}},
		{Name: "taglist.pages", Call: describeTags, When: "six tags and MaxResults 5",
			Want:   "five and a NextToken, then one and none",
			Source: api(describeTags), run: func(t *try) {
				var pairs []string
				for k := 2; k <= 6; k++ {
					n := strconv.Itoa(k)
					pairs = append(pairs, "TagSpecification.1.Tag."+n+".Key", "k"+n, "TagSpecification.1.Tag."+n+".Value", "v")
				}
				id := t.eni(pairs...)
				t.eventually(consistency, func() string {
					pairs := []string{"Filter.1.Name", "resource-id", "Filter.1.Value.1", id, "MaxResults", "5"}
					one := t.ok(describeTags, pairs...)
					if w := unlike("tags on the first page", strconv.Itoa(len(one.all("tagSet/item"))),
						"5"); w != "" || one.say("nextToken") == "" {
						return w + ", nextToken " + quote(one.say("nextToken"))
					}
					two := t.ok(describeTags, append(pairs, "NextToken", one.say("nextToken"))...)
					return unlike("tags on the second page, and its nextToken",
						strconv.Itoa(len(two.all("tagSet/item")))+two.say("nextToken"), "1")
				})
			}},
		{Name: "taglist.unknown-filter", Call: describeTags, When: "filter tag-key, which other actions have",
			Want:   "InvalidParameterValue",
			Source: api(describeTags), run: func(t *try) {
				t.refused("InvalidParameterValue", describeTags, "Filter.1.Name", "tag-key", "Filter.1.Value.1", tagKey)
			}},
	}
}

func zoneRows() []Row {
	return []Row{
		{Name: "zones.by-name", Call: describeZones, When: "the name of the subnet's zone",
			Want:   "it alone, available, with its ID and region",
			Source: api(describeZones), run: func(t *try) {
				list := t.ok(describeZones, "ZoneName.1", t.zone)
				z := list.get("availabilityZoneInfo/item")
				t.is("zones", quoteAll(list.texts("availabilityZoneInfo/item/zoneName")), t.zone)
				t.is("zoneState", z.say("zoneState"), "available")
				t.is("regionName", z.say("regionName"), t.Region)
				t.holds(strings.Contains(z.say("zoneId"), "-az"), "zoneId: expected one like usw2-az1, found %s",
					quote(z.say("zoneId")))
			}},
		{Name: "zones.by-id", Call: describeZones, When: "the ID of the subnet's zone",
			Want:   "the zone with that name",
			Source: api(describeZones), run: func(t *try) {
				id := t.ok(describeZones, "ZoneName.1", t.zone).say("availabilityZoneInfo/item/zoneId")
				t.is("zones", quoteAll(t.ok(describeZones, "ZoneId.1", id).texts("availabilityZoneInfo/item/zoneName")), t.zone)
			}},
		{Name: "zones.all", Call: describeZones, When: "neither name nor filter",
			Want:   "the zones of all subnets are there, each once",
			Source: api(describeZones), run: func(t *try) {
				found := sorted(t.ok(describeZones).texts("availabilityZoneInfo/item/zoneName"))
				t.is("zones, each once", quoteAll(slices.Compact(slices.Clone(found))), quoteAll(found))
				for _, s := range t.subnets {
					t.holds(slices.Contains(found, s.say("availabilityZone")), "zones: expected %s, found %s",
						s.say("availabilityZone"), quoteAll(found))
				}
			}},
		{Name: "zones.filter", Call: describeZones, When: "filter zone-name",
			Want:   "it alone",
			Source: api(describeZones), run: func(t *try) {
				t.is("zones", quoteAll(t.ok(describeZones, "Filter.1.Name", "zone-name", "Filter.1.Value.1",
					t.zone).texts("availabilityZoneInfo/item/zoneName")), t.zone)
			}},
		{Name: "zones.unknown", Call: describeZones, When: "a zone that does not exist",
			Want:   "InvalidParameterValue",
			Source: "beeswithmachineguns#90", run: func(t *try) {
				t.refused("InvalidParameterValue", describeZones, "ZoneName.1", t.Region+"z")
			}},
		{Name: "regions.by-name", Call: describeRegions, When: "the region's name",
			Want:   "it alone, with its endpoint",
			Source: api(describeRegions), run: func(t *try) {
				list := t.ok(describeRegions, "RegionName.1", t.Region)
				t.is("regions", quoteAll(list.texts("regionInfo/item/regionName")), t.Region)
				t.holds(strings.HasPrefix(list.say("regionInfo/item/regionEndpoint"), "ec2."+t.Region+"."),
					"regionEndpoint: expected ec2.%s…, found %s", t.Region, quote(list.say("regionInfo/item/regionEndpoint")))
			}},
		{Name: "regions.unknown", Call: describeRegions, When: "a region that does not exist",
			Want:   "InvalidParameterValue",
			Source: "amazon-s3-tar-tool#7", run: func(t *try) {
				t.refused("InvalidParameterValue", describeRegions, "RegionName.1", "us--east-1")
			}},
	}
}

func statusRows() []Row {
	const item = "instanceStatusSet/item"
	return []Row{
		{Name: "status.running", Call: describeStatus, When: "the instance, which has run for a while",
			Want:   "system and instance are ok, and reachability passed",
			Source: statusChecking, Marks: Attaches, run: func(t *try) {
				t.needInstance()
				s := t.ok(describeStatus, "InstanceId.1", t.instance).get(item)
				t.is("instanceState/name", s.say("instanceState/name"), "running")
				t.is("systemStatus/status", s.say("systemStatus/status"), "ok")
				t.is("instanceStatus/status", s.say("instanceStatus/status"), "ok")
				t.is("instanceStatus/details",
					s.say("instanceStatus/details/item/name")+" "+s.say("instanceStatus/details/item/status"), "reachability passed")
			}},
		{Name: "status.filter", Call: describeStatus, When: "filter instance-status.status",
			Want:   "ok has the instance, impaired has it not",
			Source: api(describeStatus), Marks: Attaches, run: func(t *try) {
				t.needInstance()
				ask := func(status string) bool {
					return slices.Contains(t.ok(describeStatus, "Filter.1.Name", "instance-status.status", "Filter.1.Value.1",
						status).texts(item+"/instanceId"), t.instance)
				}
				t.holds(ask("ok"), "ok: expected %s, found others", t.instance)
				t.holds(!ask("impaired"), "impaired: expected others, found %s", t.instance)
			}},
		{Name: "status.checks", Call: describeStatus, When: "an instance begins to run",
			Want:   "initializing, eventually ok",
			Source: statusChecking, Marks: Costly, run: func(t *try) {
				id := t.start()
				status := func() string { return t.ok(describeStatus, "InstanceId.1", id).say(item + "/instanceStatus/status") }
				t.eventually(consistency, func() string { return unlike("status", status(), "initializing") })
				t.eventually(checked, func() string { return unlike("status", status(), "ok") })
			}},
		{Name: "status.ended", Call: describeStatus, When: "the instance is terminated",
			Want:   "eventually nothing; with IncludeAllInstances not-applicable",
			Source: api(describeStatus), Marks: Costly, run: func(t *try) {
				id := t.start()
				t.ok(terminateInstances, "InstanceId.1", id)
				t.state(id, "terminated")
				t.eventually(consistency, func() string {
					return unlike("instances", quoteAll(t.ok(describeStatus, "InstanceId.1", id).texts(item+"/instanceId")),
						"nothing")
				})
				t.eventually(consistency, func() string {
					s := t.ok(describeStatus, "InstanceId.1", id, "IncludeAllInstances", "true").get(item)
					return unlike("state and status", s.say("instanceState/name")+" "+s.say("instanceStatus/status"),
						"terminated not-applicable")
				})
			}},
		{Name: "status.unknown", Call: describeStatus, When: "an instance that does not exist",
			Want:   "InvalidInstanceID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidInstanceID.NotFound", describeStatus, "InstanceId.1", noInstance)
			}},
	}
}

func attributeRows() []Row {
	of := func(t *try, id, name string) *element {
		return t.ok(describeENIPart, "NetworkInterfaceId", id, "Attribute", name)
	}
	return []Row{
		{Name: "attribute.description", Call: describeENIPart, When: "Attribute description",
			Want:   "it, and no other attribute",
			Source: api(describeENIPart), run: func(t *try) {
				id := t.eni("Description", "node-17 pods")
				a := of(t, id, "description")
				t.is("networkInterfaceId", a.say("networkInterfaceId"), id)
				t.is("description", a.say("description/value"), "node-17 pods")
				t.is("groupSet", quoteAll(a.texts("groupSet/item/groupId")), "nothing")
			}},
		{Name: "attribute.groups", Call: describeENIPart, When: "Attribute groupSet",
			Want:   "the interface's groups",
			Source: api(describeENIPart), run: func(t *try) {
				g := t.group()
				t.is("groupSet", quoteAll(of(t, t.eni("SecurityGroupId.1", g), "groupSet").texts("groupSet/item/groupId")), g)
			}},
		{Name: "attribute.check", Call: describeENIPart, When: "Attribute sourceDestCheck, which was set to false",
			Want:   "eventually false",
			Source: api(describeENIPart), run: func(t *try) {
				id := t.eni()
				t.is("sourceDestCheck at first", of(t, id, "sourceDestCheck").say("sourceDestCheck/value"), "true")
				t.ok(modifyENI, "NetworkInterfaceId", id, "SourceDestCheck.Value", "false")
				t.eventually(consistency, func() string {
					return unlike("sourceDestCheck", of(t, id, "sourceDestCheck").say("sourceDestCheck/value"), "false")
				})
			}},
		{Name: "attribute.attachment", Call: describeENIPart, When: "Attribute attachment of one that is attached",
			Want:   "the attachment, with instance and device index",
			Source: api(describeENIPart), Marks: Attaches, run: func(t *try) {
				id := t.eni()
				attachment := t.attach(id)
				t.attached(id)
				t.eventually(consistency, func() string {
					a := of(t, id, "attachment").get("attachment")
					return unlike("attachment", a.say("attachmentId")+" "+a.say("instanceId")+" "+a.say("deviceIndex"),
						attachment+" "+t.instance+" "+strconv.Itoa(t.lastIndex))
				})
			}},
		{Name: "attribute.none", Call: describeENIPart, When: "no Attribute",
			Want:   "MissingParameter",
			Source: api(describeENIPart), run: func(t *try) {
				t.refused("MissingParameter|InvalidParameterCombination", describeENIPart, "NetworkInterfaceId", t.eni())
			}},
		{Name: "attribute.unknown", Call: describeENIPart, When: "an interface that does not exist",
			Want:   "InvalidNetworkInterfaceID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidNetworkInterfaceID.NotFound", describeENIPart, "NetworkInterfaceId", noENI, "Attribute",
					"description")
			}},
		{Name: "vpcs.attribute", Call: describeVPCPart, When: "Attribute enableDnsSupport",
			Want:   "whether it is so, and no other attribute",
			Source: api(describeVPCPart), run: func(t *try) {
				a := t.ok(describeVPCPart, "VpcId", t.vpc, "Attribute", "enableDnsSupport")
				t.is("vpcId", a.say("vpcId"), t.vpc)
				v := a.say("enableDnsSupport/value")
				t.holds(v == "true" || v == "false", "enableDnsSupport: expected true or false, found %s", quote(v))
				t.is("enableDnsHostnames", a.say("enableDnsHostnames/value"), "")
			}},
		{Name: "vpcs.attribute-unknown", Call: describeVPCPart, When: "a VPC that does not exist",
			Want:   "InvalidVpcID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidVpcID.NotFound", describeVPCPart, "VpcId", noVPC, "Attribute", "enableDnsSupport")
			}},
		{Name: "account.all", Call: describeAccount, When: "no attribute is named",
			Want:   "all, each with a value",
			Source: api(describeAccount), run: func(t *try) {
				list := t.ok(describeAccount).all("accountAttributeSet/item")
				for _, name := range []string{"default-vpc", "max-elastic-ips", "vpc-max-security-groups-per-interface"} {
					ok := slices.ContainsFunc(list, func(a *element) bool {
						return a.say("attributeName") == name && a.say("attributeValueSet/item/attributeValue") != ""
					})
					t.holds(ok, "%s: expected a value, found none", name)
				}
			}},
		{Name: "account.one", Call: describeAccount, When: "AttributeName.1 default-vpc",
			Want:   "it alone",
			Source: api(describeAccount), run: func(t *try) {
				t.is("attributes", quoteAll(t.ok(describeAccount, "AttributeName.1",
					"default-vpc").texts("accountAttributeSet/item/attributeName")), "default-vpc")
			}},
		{Name: "account.unknown", Call: describeAccount, When: "an attribute that does not exist",
			Want:   "InvalidParameterValue",
			Source: common, run: func(t *try) {
				t.refused("InvalidParameterValue", describeAccount, "AttributeName.1", "colour")
			}},
	}
}

func surroundingRows() []Row {
	const sets = "routeTableSet/item"
	return []Row{
		{Name: "reservations.listed", Call: getReservations, When: "a subnet with CIDR reservations",
			Want:   "each lies in the subnet, with its type and the subnet's ID",
			Source: api(getReservations), run: func(t *try) {
				s := t.subnetWith("with a CIDR reservation", func(s *element) bool {
					return len(t.ok(getReservations, "SubnetId", s.say("subnetId")).all("subnetIpv4CidrReservationSet/item")) > 0
				})
				whole, err := netip.ParsePrefix(s.say("cidrBlock"))
				t.holds(t.err != nil || err == nil, "cidrBlock: expected a prefix, found %s", quote(s.say("cidrBlock")))
				for _, r := range t.ok(getReservations, "SubnetId", s.say("subnetId")).all("subnetIpv4CidrReservationSet/item") {
					p, err := netip.ParsePrefix(r.say("cidr"))
					t.holds(err == nil && p.Bits() >= whole.Bits() && whole.Contains(p.Addr()),
						"cidr: expected one in %v, found %s", whole, quote(r.say("cidr")))
					t.is("subnetId", r.say("subnetId"), s.say("subnetId"))
					kind := r.say("reservationType")
					t.holds(kind == "explicit" || kind == "prefix", "reservationType: expected explicit or prefix, found %s",
						quote(kind))
				}
			}},
		{Name: "reservations.filter", Call: getReservations, When: "filter reservationType prefix",
			Want:   "reservations of that type alone",
			Source: api(getReservations), run: func(t *try) {
				types := func(id string, pairs ...string) []string {
					return t.ok(getReservations, append([]string{"SubnetId", id},
						pairs...)...).texts("subnetIpv4CidrReservationSet/item/reservationType")
				}
				id := t.subnetWith("with CIDR reservations of both types", func(s *element) bool {
					all := types(s.say("subnetId"))
					return slices.Contains(all, "prefix") && slices.Contains(all, "explicit")
				}).say("subnetId")
				if t.err == nil {
					found := sorted(types(id, "Filter.1.Name", "reservationType", "Filter.1.Value.1", "prefix"))
					t.is("types", quoteAll(slices.Compact(found)), "prefix")
				}
			}},
		{Name: "reservations.unknown", Call: getReservations, When: "a subnet that does not exist",
			Want:   "InvalidSubnetID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidSubnetID.NotFound", getReservations, "SubnetId", noSubnet)
			}},
		{Name: "elastic.unknown", Call: describeElastic, When: "an address that the account does not have",
			Want:   "InvalidAddress.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidAddress.NotFound", describeElastic, "PublicIp.1", "192.0.2.1")
			}},
		{Name: "elastic.unknown-id", Call: describeElastic, When: "an allocation that does not exist",
			Want:   "InvalidAllocationID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidAllocationID.NotFound", describeElastic, "AllocationId.1", "eipalloc-00000000000000000")
			}},
		{Name: "elastic.filter", Call: describeElastic, When: "filter network-interface-id of an interface without one",
			Want:   "an empty set",
			Source: api(describeElastic), run: func(t *try) {
				t.is("addresses", quoteAll(t.ok(describeElastic, "Filter.1.Name", "network-interface-id", "Filter.1.Value.1",
					t.eni()).texts("addressesSet/item/publicIp")), "nothing")
			}},
		{Name: "routes.main", Call: describeTables, When: "filters vpc-id and association.main true",
			Want:   "one table, with a local route for each CIDR of the VPC",
			Source: "Route tables (VPC user guide)", run: func(t *try) {
				list := t.ok(describeTables, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", t.vpc, "Filter.2.Name",
					"association.main", "Filter.2.Value.1", "true").all(sets)
				t.is("number of tables", strconv.Itoa(len(list)), "1")
				var local []string
				for _, table := range list {
					for _, r := range table.all("routeSet/item") {
						if r.say("gatewayId") == "local" && r.say("state") == "active" && r.say("destinationCidrBlock") != "" {
							local = append(local, r.say("destinationCidrBlock"))
						}
					}
				}
				cidrs := t.ok(describeVPCs, "VpcId.1", t.vpc).texts("vpcSet/item/cidrBlockAssociationSet/item/cidrBlock")
				t.is("local routes", quoteAll(sorted(local)), quoteAll(sorted(cidrs)))
			}},
		{Name: "routes.by-id", Call: describeTables, When: "a table's identifier",
			Want:   "it alone, with its VPC",
			Source: api(describeTables), run: func(t *try) {
				id := t.ok(describeTables, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", t.vpc).say(sets + "/routeTableId")
				list := t.ok(describeTables, "RouteTableId.1", id)
				t.is("tables", quoteAll(list.texts(sets+"/routeTableId")), id)
				t.is("vpcId", list.say(sets+"/vpcId"), t.vpc)
			}},
		{Name: "routes.unknown", Call: describeTables, When: "a table that does not exist",
			Want:   "InvalidRouteTableID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidRouteTableID.NotFound", describeTables, "RouteTableId.1", "rtb-00000000000000000")
			}},
	}
}

// subnetRows come last: an endpoint that deletes what is in use loses what the others need.
func subnetRows() []Row {
	return []Row{
		{Name: "subnets.delete-in-use", Call: deleteSubnet, When: "an interface is in the subnet",
			Want:   "DependencyViolation",
			Source: errorCodes, run: func(t *try) {
				id := t.eni()
				t.shows(id, "subnetId", t.subnet)
				t.refused("DependencyViolation", deleteSubnet, "SubnetId", t.subnet)
			}},
		{Name: "subnets.delete-unknown", Call: deleteSubnet, When: "a subnet that does not exist",
			Want:   "InvalidSubnetID.NotFound",
			Source: errorCodes, run: func(t *try) {
				t.refused("InvalidSubnetID.NotFound", deleteSubnet, "SubnetId", noSubnet)
			}},
	}
}
