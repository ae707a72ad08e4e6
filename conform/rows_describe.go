package conform

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

func describeRows() []Row {
	return slices.Concat(describeENIRows(), describeOtherRows())
}

func describeENIRows() []Row {
	// found says which of the row's interfaces a filtered Describe eventually shows: those and no others.
	found := func(t *try, want []string, filters ...string) {
		t.settle()
		pairs := []string{"Filter.9.Name", "tag:" + tagKey, "Filter.9.Value.1", t.tag()}
		t.eventually(consistency, func() string {
			got := t.ok(describeENIs, append(pairs, filters...)...).texts("networkInterfaceSet/item/networkInterfaceId")
			return unlike("interfaces", quoteAll(sorted(got)), quoteAll(sorted(want)))
		})
	}
	return []Row{
		{Name: "describe.by-id", Call: describeENIs, When: "two identifiers", Want: "eventually these two", Source: api(describeENIs), run: func(t *try) {
			a, b := t.eni(), t.eni()
			t.eventually(consistency, func() string {
				got := t.ok(describeENIs, "NetworkInterfaceId.1", a, "NetworkInterfaceId.2", b).texts("networkInterfaceSet/item/networkInterfaceId")
				return unlike("interfaces", quoteAll(sorted(got)), quoteAll(sorted([]string{a, b})))
			})
		}},
		{Name: "describe.one-unknown", Call: describeENIs, When: "one of two identifiers does not exist", Want: "InvalidNetworkInterfaceID.NotFound for the whole call", Source: errorCodes, run: func(t *try) {
			id := t.eni()
			t.shows(id, "networkInterfaceId", id)
			t.refused("InvalidNetworkInterfaceID.NotFound", describeENIs, "NetworkInterfaceId.1", id, "NetworkInterfaceId.2", noENI)
		}},
		{Name: "describe.malformed", Call: describeENIs, When: "an identifier that is no eni-…", Want: "InvalidNetworkInterfaceId.Malformed", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceId.Malformed|InvalidNetworkInterfaceID.Malformed", describeENIs, "NetworkInterfaceId.1", "eni-zzz")
		}},
		{Name: "describe.nothing", Call: describeENIs, When: "a filter that nothing matches", Want: "an empty set, and no error", Source: filtering, run: func(t *try) {
			t.is("interfaces", quoteAll(t.mine()), "nothing")
		}},
		{Name: "describe.filter-tag", Call: describeENIs, When: "filter tag:KEY", Want: "those with that value", Source: filtering, run: func(t *try) { found(t, []string{t.eni()}) }},
		{Name: "describe.filter-tag-key", Call: describeENIs, When: "filter tag-key", Want: "those that have the tag, whatever it says", Source: filtering, run: func(t *try) {
			key := t.unique()
			a := t.eni("TagSpecification.1.Tag.2.Key", key, "TagSpecification.1.Tag.2.Value", "")
			t.eni()
			found(t, []string{a}, "Filter.1.Name", "tag-key", "Filter.1.Value.1", key)
		}},
		{Name: "describe.filter-status", Call: describeENIs, When: "filter status in-use", Want: "those that are attached", Source: api(describeENIs), Marks: Attaches, run: func(t *try) {
			a, _ := t.eni(), t.eni()
			t.attach(a)
			found(t, []string{a}, "Filter.1.Name", "status", "Filter.1.Value.1", "in-use")
		}},
		{Name: "describe.filter-instance", Call: describeENIs, When: "filter attachment.instance-id", Want: "those on that instance", Source: api(describeENIs), Marks: Attaches, run: func(t *try) {
			a, _ := t.eni(), t.eni()
			t.attach(a)
			found(t, []string{a}, "Filter.1.Name", "attachment.instance-id", "Filter.1.Value.1", t.instance)
		}},
		{Name: "describe.filter-device", Call: describeENIs, When: "filter attachment.device-index", Want: "those at that index", Source: api(describeENIs), Marks: Attaches, run: func(t *try) {
			a, b := t.eni(), t.eni()
			t.attach(a)
			index := t.lastIndex
			t.attach(b)
			found(t, []string{a}, "Filter.1.Name", "attachment.device-index", "Filter.1.Value.1", strconv.Itoa(index))
		}},
		{Name: "describe.filter-address", Call: describeENIs, When: "filter addresses.private-ip-address with a secondary address", Want: "the interface that has it", Source: api(describeENIs), run: func(t *try) {
			e := t.create("SecondaryPrivateIpAddressCount", "1")
			t.eni()
			found(t, []string{e.say("networkInterfaceId")}, "Filter.1.Name", "addresses.private-ip-address", "Filter.1.Value.1", nth(addresses(e), 1))
		}},
		{Name: "describe.filter-mac", Call: describeENIs, When: "filter mac-address", Want: "the interface that has it", Source: api(describeENIs), run: func(t *try) {
			e := t.create()
			t.eni()
			found(t, []string{e.say("networkInterfaceId")}, "Filter.1.Name", "mac-address", "Filter.1.Value.1", e.say("macAddress"))
		}},
		{Name: "describe.filter-group", Call: describeENIs, When: "filter group-id", Want: "those that have the group", Source: api(describeENIs), run: func(t *try) {
			g := t.group()
			a, _ := t.eni("SecurityGroupId.1", g), t.eni()
			found(t, []string{a}, "Filter.1.Name", "group-id", "Filter.1.Value.1", g)
		}},
		{Name: "describe.filter-description", Call: describeENIs, When: "filter description with * and ?", Want: "those whose whole text matches", Source: filtering, run: func(t *try) {
			a, _ := t.eni("Description", "node-17 pods"), t.eni("Description", "a node-17 pods")
			found(t, []string{a}, "Filter.1.Name", "description", "Filter.1.Value.1", "node-1? po*")
		}},
		{Name: "describe.filter-case", Call: describeENIs, When: "filter description in another case", Want: "nothing: filters are case-sensitive", Source: filtering, run: func(t *try) {
			t.eni("Description", "Node")
			found(t, nil, "Filter.1.Name", "description", "Filter.1.Value.1", "node")
		}},
		{Name: "describe.filter-values", Call: describeENIs, When: "one filter with two values", Want: "those that match either", Source: filtering, run: func(t *try) {
			a, b := t.eni("Description", "one"), t.eni("Description", "two")
			t.eni("Description", "three")
			found(t, []string{a, b}, "Filter.1.Name", "description", "Filter.1.Value.1", "one", "Filter.1.Value.2", "two")
		}},
		{Name: "describe.filters", Call: describeENIs, When: "two filters", Want: "those that match both", Source: filtering, run: func(t *try) {
			a := t.create("Description", "one")
			t.eni("Description", "one")
			found(t, []string{a.say("networkInterfaceId")}, "Filter.1.Name", "description", "Filter.1.Value.1", "one",
				"Filter.2.Name", "private-ip-address", "Filter.2.Value.1", a.say("privateIpAddress"))
		}},
		{Name: "describe.filter-and-id", Call: describeENIs, When: "an identifier, and a filter that it does not match", Want: "an empty set", Source: filtering, run: func(t *try) {
			id := t.eni("Description", "one")
			t.eventually(consistency, func() string {
				got := t.ok(describeENIs, "NetworkInterfaceId.1", id, "Filter.1.Name", "description", "Filter.1.Value.1", "two").texts("networkInterfaceSet/item/networkInterfaceId")
				return unlike("interfaces", quoteAll(got), "nothing")
			})
		}},
		{Name: "describe.unknown-filter", Call: describeENIs, When: "a filter that does not exist", Want: "InvalidParameterValue", Source: filtering, run: func(t *try) {
			t.refused("InvalidParameterValue", describeENIs, "Filter.1.Name", "colour", "Filter.1.Value.1", "red")
		}},
		{Name: "describe.filter-without-value", Call: describeENIs, When: "a filter without a value", Want: "InvalidParameterValue|MissingParameter", Source: filtering, run: func(t *try) {
			t.refused("InvalidParameterValue|MissingParameter", describeENIs, "Filter.1.Name", "status")
		}},
		{Name: "describe.pages", Call: describeENIs, When: "six interfaces and MaxResults 5", Want: "five and a NextToken, then one and none", Source: "Pagination (Amazon EC2 API reference)", run: func(t *try) {
			for range 6 {
				t.eni()
			}
			t.eventually(consistency, func() string {
				pairs := []string{"Filter.1.Name", "tag:" + tagKey, "Filter.1.Value.1", t.tag(), "MaxResults", "5"}
				one := t.ok(describeENIs, pairs...)
				if w := unlike("interfaces on the first page", strconv.Itoa(len(one.all("networkInterfaceSet/item"))), "5"); w != "" || one.say("nextToken") == "" {
					return w + ", nextToken " + quote(one.say("nextToken"))
				}
				two := t.ok(describeENIs, append(pairs, "NextToken", one.say("nextToken"))...)
				ids := append(one.texts("networkInterfaceSet/item/networkInterfaceId"), two.texts("networkInterfaceSet/item/networkInterfaceId")...)
				slices.Sort(ids)
				return unlike("different interfaces on both pages, and the last nextToken", strconv.Itoa(len(slices.Compact(ids)))+two.say("nextToken"), "6")
			})
		}},
		{Name: "describe.small-pages", Call: describeENIs, When: "MaxResults 4", Want: "InvalidParameterValue: pages have at least five", Source: api(describeENIs), run: func(t *try) {
			t.refused("InvalidParameterValue", describeENIs, "MaxResults", "4")
		}},
		{Name: "describe.large-pages", Call: describeENIs, When: "MaxResults 1001", Want: "InvalidParameterValue: pages have at most a thousand", Source: api(describeENIs), run: func(t *try) {
			t.refused("InvalidParameterValue", describeENIs, "MaxResults", "1001")
		}},
		{Name: "describe.pages-by-id", Call: describeENIs, When: "MaxResults with an identifier", Want: "InvalidParameterCombination", Source: api(describeENIs), run: func(t *try) {
			t.refused("InvalidParameterCombination", describeENIs, "NetworkInterfaceId.1", t.eni(), "MaxResults", "5")
		}},
		{Name: "describe.bad-token", Call: describeENIs, When: "a NextToken that nobody gave out", Want: "InvalidPaginationToken|InvalidNextToken|InvalidParameterValue", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidPaginationToken|InvalidNextToken|InvalidParameterValue", describeENIs, "MaxResults", "5", "NextToken", "bm9uZQ")
		}},
		{Name: "describe.dry-run", Call: describeENIs, When: "DryRun", Want: "DryRunOperation", Source: common, run: func(t *try) {
			t.refused("DryRunOperation", describeENIs, "DryRun", "true")
		}},
	}
}

func describeOtherRows() []Row {
	return []Row{
		{Name: "subnets.by-id", Call: describeSubnets, When: "the subnet's identifier", Want: "it, with its VPC, zone and CIDR", Source: api(describeSubnets), run: func(t *try) {
			list := t.ok(describeSubnets, "SubnetId.1", t.subnet).all("subnetSet/item")
			t.is("number of subnets", strconv.Itoa(len(list)), "1")
			for _, s := range list {
				t.is("subnetId", s.say("subnetId"), t.subnet)
				t.is("vpcId", s.say("vpcId"), t.vpc)
				t.is("state", s.say("state"), "available")
			}
		}},
		{Name: "subnets.unknown", Call: describeSubnets, When: "a subnet that does not exist", Want: "InvalidSubnetID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidSubnetID.NotFound", describeSubnets, "SubnetId.1", noSubnet)
		}},
		{Name: "subnets.in-vpc", Call: describeSubnets, When: "any subnet", Want: "its CIDR lies in one of its VPC's", Source: sizing, run: func(t *try) {
			for _, s := range t.subnets {
				p, err := netip.ParsePrefix(s.say("cidrBlock"))
				cidrs := t.ok(describeVPCs, "VpcId.1", s.say("vpcId")).texts("vpcSet/item/cidrBlockAssociationSet/item/cidrBlock")
				inside := slices.ContainsFunc(cidrs, func(c string) bool {
					v, bad := netip.ParsePrefix(c)
					return bad == nil && v.Bits() <= p.Bits() && v.Contains(p.Addr())
				})
				t.holds(err == nil && inside, "subnet %s: expected a cidrBlock in %s of %s, found %q", s.say("subnetId"), quoteAll(cidrs), s.say("vpcId"), s.say("cidrBlock"))
			}
		}},
		{Name: "subnets.count", Call: describeSubnets, When: "an empty /28", Want: "AvailableIpAddressCount 11: five are reserved", Source: sizing, run: func(t *try) {
			tiny := t.tiny()
			t.eventually(consistency, func() string { return unlike("availableIpAddressCount", t.free(tiny), "11") })
		}},
		{Name: "subnets.filter-vpc", Call: describeSubnets, When: "filter vpc-id", Want: "the VPC's subnets and no others", Source: api(describeSubnets), run: func(t *try) {
			var want []string
			for _, s := range t.subnets {
				if s.say("vpcId") == t.vpc {
					want = append(want, s.say("subnetId"))
				}
			}
			got := t.ok(describeSubnets, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", t.vpc).texts("subnetSet/item/subnetId")
			t.is("subnets", quoteAll(sorted(got)), quoteAll(sorted(want)))
			t.is("subnets of no VPC", quoteAll(t.ok(describeSubnets, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", noVPC).texts("subnetSet/item/subnetId")), "nothing")
		}},
		{Name: "subnets.filter-zone", Call: describeSubnets, When: "filters vpc-id and availability-zone",
			Want:   "the VPC's subnets in that zone and no others",
			Source: api(describeSubnets), run: func(t *try) {
				var want []string
				for _, s := range t.subnets {
					if s.say("vpcId") == t.vpc && s.say("availabilityZone") == t.zone {
						want = append(want, s.say("subnetId"))
					}
				}
				in := func(zone string) []string {
					return sorted(t.ok(describeSubnets, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", t.vpc,
						"Filter.2.Name", "availability-zone", "Filter.2.Value.1", zone).texts("subnetSet/item/subnetId"))
				}
				t.is("subnets", quoteAll(in(t.zone)), quoteAll(sorted(want)))
				t.is("subnets of no zone", quoteAll(in(t.Region+"-none")), "nothing")
			}},
		{Name: "subnets.filter-tag", Call: describeSubnets, When: "filter tag-key of a tag that nothing has",
			Want:   "no subnet",
			Source: api(describeSubnets), run: func(t *try) {
				t.is("subnets", quoteAll(t.ok(describeSubnets, "Filter.1.Name", "tag-key", "Filter.1.Value.1",
					noTag).texts("subnetSet/item/subnetId")), "nothing")
			}},
		{Name: "vpcs.by-id", Call: describeVPCs, When: "the VPC's identifier", Want: "it, with its CIDRs, the first as cidrBlock", Source: api(describeVPCs), run: func(t *try) {
			v := t.ok(describeVPCs, "VpcId.1", t.vpc).get("vpcSet/item")
			t.is("vpcId", v.say("vpcId"), t.vpc)
			t.is("cidrBlock", v.say("cidrBlock"), v.say("cidrBlockAssociationSet/item/cidrBlock"))
			t.holds(v.say("cidrBlock") != "", "cidrBlock: expected a prefix, found nothing")
		}},
		{Name: "vpcs.unknown", Call: describeVPCs, When: "a VPC that does not exist", Want: "InvalidVpcID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidVpcID.NotFound", describeVPCs, "VpcId.1", noVPC)
		}},
		{Name: "groups.unknown", Call: describeGroups, When: "a security group that does not exist", Want: "InvalidGroup.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidGroup.NotFound", describeGroups, "GroupId.1", noGroup)
		}},
		{Name: "groups.default", Call: describeGroups, When: "filter vpc-id and group-name default", Want: "exactly one: every VPC has it", Source: "Default security groups for your VPCs", run: func(t *try) {
			list := t.ok(describeGroups, "Filter.1.Name", "vpc-id", "Filter.1.Value.1", t.vpc, "Filter.2.Name", "group-name", "Filter.2.Value.1", "default").all("securityGroupInfo/item")
			t.is("number of groups", strconv.Itoa(len(list)), "1")
			for _, g := range list {
				t.is("vpcId", g.say("vpcId"), t.vpc)
			}
		}},
		{Name: "groups.by-id", Call: describeGroups, When: "a group's identifier", Want: "it alone, with name and VPC", Source: api(describeGroups), run: func(t *try) {
			for _, g := range t.groups {
				if g.say("vpcId") == t.vpc {
					list := t.ok(describeGroups, "GroupId.1", g.say("groupId"))
					t.is("number of groups", strconv.Itoa(len(list.all("securityGroupInfo/item"))), "1")
					t.is("groupName", list.say("securityGroupInfo/item/groupName"), g.say("groupName"))
					return
				}
			}
			t.differ("DescribeSecurityGroups: expected a group of %s, found none", t.vpc)
		}},
		{Name: "instances.by-id", Call: describeInstances, When: "the instance's identifier", Want: "it, running, with its primary interface at device index 0", Source: api(describeInstances), Marks: Attaches, run: func(t *try) {
			i := t.ok(describeInstances, "InstanceId.1", t.instance).get("reservationSet/item/instancesSet/item")
			t.is("instanceId", i.say("instanceId"), t.instance)
			t.is("instanceState/name", i.say("instanceState/name"), "running")
			t.is("instanceState/code", i.say("instanceState/code"), "16")
			t.holds(slices.Contains(i.texts("networkInterfaceSet/item/attachment/deviceIndex"), "0"), "networkInterfaceSet: expected an interface at device index 0, found none")
		}},
		{Name: "instances.unknown", Call: describeInstances, When: "an instance that does not exist", Want: "InvalidInstanceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.NotFound", describeInstances, "InstanceId.1", noInstance)
		}},
		{Name: "instances.malformed", Call: describeInstances, When: "an identifier that is no i-…", Want: "InvalidInstanceID.Malformed", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.Malformed", describeInstances, "InstanceId.1", "node-1")
		}},
		{Name: "instances.filter-state", Call: describeInstances, When: "filters instance-state-name running and vpc-id", Want: "the instance is there; with stopped it is not", Source: api(describeInstances), Marks: Attaches, run: func(t *try) {
			ask := func(state string) bool {
				return slices.Contains(t.ok(describeInstances, "Filter.1.Name", "instance-state-name", "Filter.1.Value.1", state, "Filter.2.Name", "vpc-id", "Filter.2.Value.1", t.vpc).
					texts("reservationSet/item/instancesSet/item/instanceId"), t.instance)
			}
			t.holds(ask("running"), "running: expected %s, found others", t.instance)
			t.holds(!ask("stopped"), "stopped: expected others, found %s", t.instance)
		}},
		{Name: "types.limits", Call: describeTypes, When: "m5.large", Want: "three interfaces with ten IPv4 and ten IPv6 addresses, on one card", Source: perType, run: func(t *try) {
			i := t.ok(describeTypes, "InstanceType.1", "m5.large").get("instanceTypeSet/item/networkInfo")
			t.is("maximumNetworkInterfaces", i.say("maximumNetworkInterfaces"), "3")
			t.is("ipv4AddressesPerInterface", i.say("ipv4AddressesPerInterface"), "10")
			t.is("ipv6AddressesPerInterface", i.say("ipv6AddressesPerInterface"), "10")
			t.is("maximumNetworkCards", i.say("maximumNetworkCards"), "1")
		}},
		{Name: "types.cards", Call: describeTypes, When: "p4d.24xlarge", Want: "60 interfaces on four cards of 15", Source: multiCard, run: func(t *try) {
			i := t.ok(describeTypes, "InstanceType.1", "p4d.24xlarge").get("instanceTypeSet/item/networkInfo")
			t.is("maximumNetworkInterfaces", i.say("maximumNetworkInterfaces"), "60")
			t.is("networkCards", strings.Join(i.texts("networkCards/item/maximumNetworkInterfaces"), " "), "15 15 15 15")
		}},
		{Name: "types.unknown", Call: describeTypes, When: "a type that does not exist", Want: "InvalidInstanceType", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceType", describeTypes, "InstanceType.1", "m5.tiny")
		}},
		{Name: "types.filter", Call: describeTypes, When: "filter instance-type with c5.*", Want: "c5 types, among them c5.xlarge, and no others", Source: filtering, run: func(t *try) {
			list := t.ok(describeTypes, "Filter.1.Name", "instance-type", "Filter.1.Value.1", "c5.*").texts("instanceTypeSet/item/instanceType")
			others := slices.ContainsFunc(list, func(s string) bool { return !strings.HasPrefix(s, "c5.") })
			t.holds(slices.Contains(list, "c5.xlarge") && !others, "types: expected those of c5, found %s", quoteAll(list))
		}},
	}
}

// nth is a list's element by its number, "" when there is none.
func nth(list []string, n int) string {
	if n < len(list) {
		return list[n]
	}
	return ""
}

// rest is a list without its first element.
func rest(list []string) []string { return list[min(1, len(list)):] }
