package conform

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The actions that are asked.
const (
	createENI          = "CreateNetworkInterface"
	deleteENI          = "DeleteNetworkInterface"
	attachENI          = "AttachNetworkInterface"
	detachENI          = "DetachNetworkInterface"
	modifyENI          = "ModifyNetworkInterfaceAttribute"
	describeENIs       = "DescribeNetworkInterfaces"
	assignIPv4         = "AssignPrivateIpAddresses"
	unassignIPv4       = "UnassignPrivateIpAddresses"
	assignIPv6         = "AssignIpv6Addresses"
	unassignIPv6       = "UnassignIpv6Addresses"
	describeSubnets    = "DescribeSubnets"
	describeVPCs       = "DescribeVpcs"
	describeGroups     = "DescribeSecurityGroups"
	describeInstances  = "DescribeInstances"
	describeTypes      = "DescribeInstanceTypes"
	createTags         = "CreateTags"
	deleteTags         = "DeleteTags"
	runInstances       = "RunInstances"
	terminateInstances = "TerminateInstances"
	stopInstances      = "StopInstances"
	startInstances     = "StartInstances"
	rebootInstances    = "RebootInstances"
)

// Sources that several rows share. A row that only needs its action's page names that: "NAME (API reference)".
const (
	errorCodes  = "Error codes for the Amazon EC2 API"
	idempotency = "Ensuring idempotency in Amazon EC2 API requests"
	consistent  = "Eventual consistency in the Amazon EC2 API"
	throttling  = "Request throttling for the Amazon EC2 API"
	sizing      = "Subnet CIDR blocks: subnet sizing for IPv4"
	queries     = "Query requests for Amazon EC2"
	common      = "Common errors (Amazon EC2 API reference)"
	signing     = "AWS Signature Version 4 for API requests"
	tagRules    = "Tag your Amazon EC2 resources: tag restrictions"
	filtering   = "List and filter using the CLI and API"
	usingENI    = "Elastic network interfaces"
	prefixes    = "Assign prefixes to Amazon EC2 network interfaces"
	multiCard   = "Elastic network interfaces: network cards"
	perType     = "Maximum IP addresses per network interface"
)

func api(action string) string { return action + " (API reference)" }

// Identifiers of the right form that nothing has.
const (
	noENI        = "eni-00000000000000000"
	noInstance   = "i-00000000000000000"
	noSubnet     = "subnet-00000000000000000"
	noGroup      = "sg-00000000000000000"
	noVPC        = "vpc-00000000000000000"
	noAttachment = "eni-attach-00000000000000000"
	noTag        = "enilab-tag-that-nothing-has"
)

func createRows() []Row {
	return []Row{
		{Name: "create.available", Call: createENI, When: "a subnet", Want: "status available, and no attachment", Source: api(createENI), run: func(t *try) {
			e := t.create()
			t.is("status", e.say("status"), "available")
			t.is("attachment", e.say("attachment/attachmentId"), "")
		}},
		{Name: "create.place", Call: createENI, When: "a subnet", Want: "the subnet, its VPC and its zone", Source: api(createENI), run: func(t *try) {
			e := t.create()
			t.is("subnetId", e.say("subnetId"), t.subnet)
			t.is("vpcId", e.say("vpcId"), t.vpc)
			t.is("availabilityZone", e.say("availabilityZone"), t.zone)
		}},
		{Name: "create.address", Call: createENI, When: "no address is asked for", Want: "one, primary, of the subnet and not among its five reserved ones",
			Source: sizing, run: func(t *try) {
				e := t.create()
				t.is("number of addresses", strconv.Itoa(len(addresses(e))), "1")
				t.is("primary", e.say("privateIpAddressesSet/item/primary"), "true")
				t.is("privateIpAddress", e.say("privateIpAddress"), strings.Join(addresses(e), ","))
				t.inSubnet(e.say("privateIpAddress"))
			}},
		{Name: "create.mac", Call: createENI, When: "a subnet", Want: "a unicast MAC, lower case with colons, that no other has", Source: usingENI, run: func(t *try) {
			a, b := t.create().say("macAddress"), t.create().say("macAddress")
			t.holds(macForm(a), "macAddress: expected six pairs of lower case digits, unicast, found %q", a)
			t.holds(t.err != nil || a != b, "two interfaces with the MAC %s", a)
		}},
		{Name: "create.owner", Call: createENI, When: "a subnet", Want: "ownerId of 12 digits", Source: api(createENI), run: func(t *try) {
			id := t.create().say("ownerId")
			t.holds(len(id) == 12 && strings.Trim(id, "0123456789") == "", "ownerId: expected 12 digits, found %q", id)
		}},
		{Name: "create.source-dest-check", Call: createENI, When: "a subnet", Want: "sourceDestCheck true", Source: api(modifyENI), run: func(t *try) {
			t.is("sourceDestCheck", t.create().say("sourceDestCheck"), "true")
		}},
		{Name: "create.described", Call: createENI, When: "the interface is described", Want: "eventually what the creation answered", Source: consistent, run: func(t *try) {
			e := t.create("SecondaryPrivateIpAddressCount", "2", "Description", "found again")
			d := t.see(e.say("networkInterfaceId"), consistency, func(*element) string { return "" })
			for _, path := range [...]string{"networkInterfaceId", "subnetId", "macAddress", "privateIpAddress", "description"} {
				t.is(path, d.say(path), e.say(path))
			}
			t.is("addresses", quoteAll(addresses(d)), quoteAll(addresses(e)))
		}},
		{Name: "create.count", Call: createENI, When: "SecondaryPrivateIpAddressCount 3", Want: "four addresses, the first one primary", Source: api(createENI), run: func(t *try) {
			e := t.create("SecondaryPrivateIpAddressCount", "3")
			t.is("primary flags", strings.Join(e.texts("privateIpAddressesSet/item/primary"), " "), "true false false false")
			for _, a := range addresses(e) {
				t.inSubnet(a)
			}
		}},
		{Name: "create.exact-primary", Call: createENI, When: "PrivateIpAddress, and it is free", Want: "that address", Source: api(createENI), run: func(t *try) {
			a := t.spare(1)[0]
			t.is("privateIpAddress", t.create("PrivateIpAddress", a).say("privateIpAddress"), a)
		}},
		{Name: "create.exact-list", Call: createENI, When: "PrivateIpAddresses, of which the second is primary", Want: "both, that one primary", Source: api(createENI), run: func(t *try) {
			a := t.spare(2)
			e := t.create("PrivateIpAddresses.1.PrivateIpAddress", a[0], "PrivateIpAddresses.2.PrivateIpAddress", a[1], "PrivateIpAddresses.2.Primary", "true")
			t.is("privateIpAddress", e.say("privateIpAddress"), a[1])
			t.is("addresses", quoteAll(sorted(addresses(e))), quoteAll(sorted(a)))
		}},
		{Name: "create.primary-in-use", Call: createENI, When: "PrivateIpAddress is another interface's", Want: "InvalidIPAddress.InUse", Source: errorCodes, run: func(t *try) {
			a := t.create().say("privateIpAddress")
			t.refused("InvalidIPAddress.InUse", createENI, t.in(t.subnet, "PrivateIpAddress", a)...)
		}},
		{Name: "create.secondary-in-use", Call: createENI, When: "a secondary of PrivateIpAddresses is another interface's", Want: "InvalidParameterValue", Source: errorCodes,
			run: func(t *try) {
				a := t.create().say("privateIpAddress")
				t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddresses.1.PrivateIpAddress", t.spare(1)[0],
					"PrivateIpAddresses.1.Primary", "true", "PrivateIpAddresses.2.PrivateIpAddress", a)...)
			}},
		{Name: "create.outside", Call: createENI, When: "PrivateIpAddress lies outside the subnet", Want: "InvalidParameterValue", Source: api(createENI), run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddress", "192.0.2.10")...)
		}},
		{Name: "create.network-address", Call: createENI, When: "PrivateIpAddress is the subnet's first", Want: "InvalidParameterValue", Source: sizing, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddress", offset(t.cidr, 0).String())...)
		}},
		{Name: "create.router-address", Call: createENI, When: "PrivateIpAddress is one of the three that AWS reserves after the first", Want: "InvalidParameterValue", Source: sizing, run: func(t *try) {
			for n := 1; n <= 3; n++ {
				t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddress", offset(t.cidr, n).String())...)
			}
		}},
		{Name: "create.broadcast-address", Call: createENI, When: "PrivateIpAddress is the subnet's last", Want: "InvalidParameterValue", Source: sizing, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddress", offset(t.cidr, 1<<(32-t.cidr.Bits())-1).String())...)
		}},
		{Name: "create.not-an-address", Call: createENI, When: "PrivateIpAddress is no address", Want: "InvalidParameterValue", Source: common, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddress", "10.0.0.256")...)
		}},
		{Name: "create.count-and-list", Call: createENI, When: "SecondaryPrivateIpAddressCount with secondary PrivateIpAddresses", Want: "InvalidParameterCombination", Source: api(createENI),
			run: func(t *try) {
				a := t.spare(2)
				t.refused("InvalidParameterCombination", createENI, t.in(t.subnet, "PrivateIpAddresses.1.PrivateIpAddress", a[0], "PrivateIpAddresses.1.Primary", "true",
					"PrivateIpAddresses.2.PrivateIpAddress", a[1], "SecondaryPrivateIpAddressCount", "1")...)
			}},
		{Name: "create.two-primaries", Call: createENI, When: "two of PrivateIpAddresses are primary", Want: "InvalidParameterCombination|InvalidParameterValue", Source: api(createENI), run: func(t *try) {
			a := t.spare(2)
			t.refused("InvalidParameterCombination|InvalidParameterValue", createENI, t.in(t.subnet, "PrivateIpAddresses.1.PrivateIpAddress", a[0], "PrivateIpAddresses.1.Primary", "true",
				"PrivateIpAddresses.2.PrivateIpAddress", a[1], "PrivateIpAddresses.2.Primary", "true")...)
		}},
		{Name: "create.unknown-subnet", Call: createENI, When: "a subnet that does not exist", Want: "InvalidSubnetID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidSubnetID.NotFound", createENI, t.in(noSubnet)...)
		}},
		{Name: "create.no-subnet", Call: createENI, When: "no SubnetId", Want: "MissingParameter", Source: common, run: func(t *try) {
			t.refused("MissingParameter", createENI, t.tagged("network-interface")...)
		}},
		{Name: "create.full-subnet", Call: createENI, When: "more addresses than a /28 has", Want: "InsufficientFreeAddressesInSubnet", Source: errorCodes, run: func(t *try) {
			t.refused("InsufficientFreeAddressesInSubnet", createENI, t.in(t.tiny(), "SecondaryPrivateIpAddressCount", "11")...)
		}},
		{Name: "create.all-of-subnet", Call: createENI, When: "an empty /28 and 11 addresses", Want: "all 11, and the next is InsufficientFreeAddressesInSubnet", Source: sizing, run: func(t *try) {
			tiny := t.tiny()
			t.eventually(consistency, func() string {
				return unlike("availableIpAddressCount of the empty "+tiny, t.free(tiny), "11")
			})
			t.is("number of addresses", strconv.Itoa(len(addresses(t.ok(createENI, t.in(tiny, "SecondaryPrivateIpAddressCount", "10")...).get("networkInterface")))), "11")
			t.refused("InsufficientFreeAddressesInSubnet", createENI, t.in(tiny)...)
		}},
		{Name: "create.too-many-addresses", Call: createENI, When: "100 addresses: twice what any type has room for", Want: "PrivateIpAddressLimitExceeded", Source: perType, run: func(t *try) {
			t.refused("PrivateIpAddressLimitExceeded", createENI, t.in(t.subnet, "SecondaryPrivateIpAddressCount", "99")...)
		}},
		{Name: "create.more-than-attach-takes", Call: createENI, When: "31 addresses: more than most types take", Want: "success: it is Attach that knows the type",
			Source: "cilium/cilium#9730", run: func(t *try) {
				t.is("number of addresses", strconv.Itoa(len(addresses(t.create("SecondaryPrivateIpAddressCount", "30")))), "31")
			}},
		{Name: "create.count-no-number", Call: createENI, When: "SecondaryPrivateIpAddressCount is no number", Want: "InvalidParameterValue", Source: common, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "SecondaryPrivateIpAddressCount", "two")...)
		}},
		{Name: "create.group", Call: createENI, When: "a security group", Want: "it, and no other", Source: api(createENI), run: func(t *try) {
			g := t.group()
			t.is("groups", quoteAll(t.create("SecurityGroupId.1", g).texts("groupSet/item/groupId")), g)
		}},
		{Name: "create.default-group", Call: createENI, When: "no security group", Want: "the VPC's default one", Source: api(createENI), run: func(t *try) {
			id := t.create().say("groupSet/item/groupId")
			for _, g := range t.groups {
				if g.say("groupId") == id {
					t.is("its name", g.say("groupName"), "default")
					t.is("its VPC", g.say("vpcId"), t.vpc)
					return
				}
			}
			t.differ("group: expected one of DescribeSecurityGroups, found %s", quote(id))
		}},
		{Name: "create.unknown-group", Call: createENI, When: "a security group that does not exist", Want: "InvalidGroup.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidGroup.NotFound", createENI, t.in(t.subnet, "SecurityGroupId.1", noGroup)...)
		}},
		{Name: "create.malformed-group", Call: createENI, When: "a security group that is no sg-…", Want: "InvalidGroupId.Malformed", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidGroupId.Malformed", createENI, t.in(t.subnet, "SecurityGroupId.1", "default")...)
		}},
		{Name: "create.too-many-groups", Call: createENI, When: "six security groups", Want: "SecurityGroupsPerInterfaceLimitExceeded", Source: "Amazon VPC quotas", run: func(t *try) {
			groups := t.groupsOf(t.vpc)
			if len(groups) < 6 {
				t.skip("%s has %d security groups: six are needed", t.vpc, len(groups))
			}
			var pairs []string
			for k, g := range groups[:min(6, len(groups))] {
				pairs = append(pairs, "SecurityGroupId."+strconv.Itoa(k+1), g)
			}
			t.refused("SecurityGroupsPerInterfaceLimitExceeded", createENI, t.in(t.subnet, pairs...)...)
		}},
		{Name: "create.foreign-group", Call: createENI, When: "a security group of another VPC", Want: "InvalidParameterValue|InvalidGroup.NotFound|InvalidParameterCombination", Source: api(createENI), run: func(t *try) {
			for _, g := range t.groups {
				if g.say("vpcId") != t.vpc {
					t.refused("InvalidParameterValue|InvalidGroup.NotFound|InvalidParameterCombination", createENI, t.in(t.subnet, "SecurityGroupId.1", g.say("groupId"))...)
					return
				}
			}
			t.skip("there is no other VPC with a security group")
		}},
		{Name: "create.description", Call: createENI, When: `a Description with <, & and "`, Want: "the same text", Source: api(createENI), run: func(t *try) {
			const text = `aws-K8S-<i> & "co" ü`
			t.is("description", t.create("Description", text).say("description"), text)
		}},
		{Name: "create.tags", Call: createENI, When: "TagSpecification.1 for network-interface", Want: "the tag in the answer", Source: tagRules, run: func(t *try) {
			t.is("tag", tagOf(t.create(), tagKey), t.tag())
		}},
		{Name: "create.tags-of-other-kind", Call: createENI, When: "TagSpecification.1 for instance", Want: "InvalidParameterValue", Source: api(createENI), run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, append(t.tagged("instance"), "SubnetId", t.subnet)...)
		}},
		{Name: "create.tags-of-aws", Call: createENI, When: "a tag key that begins with aws:", Want: "InvalidParameterValue", Source: tagRules, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "TagSpecification.1.Tag.2.Key", "aws:mine", "TagSpecification.1.Tag.2.Value", "x")...)
		}},
		{Name: "create.token-again", Call: createENI, When: "the same ClientToken and parameters twice", Want: "one interface", Source: idempotency, run: func(t *try) {
			token := t.unique()
			t.is("the second networkInterfaceId", t.eni("ClientToken", token), t.eni("ClientToken", token))
		}},
		{Name: "create.token-answer", Call: createENI, When: "a ClientToken", Want: "it is in the answer", Source: api(createENI), run: func(t *try) {
			token := t.unique()
			t.is("clientToken", t.ok(createENI, t.in(t.subnet, "ClientToken", token)...).say("clientToken"), token)
		}},
		{Name: "create.token-other", Call: createENI, When: "a ClientToken of other parameters", Want: "IdempotentParameterMismatch", Source: idempotency, run: func(t *try) {
			token := t.unique()
			t.create("ClientToken", token, "Description", "one")
			t.refused("IdempotentParameterMismatch", createENI, t.in(t.subnet, "ClientToken", token, "Description", "two")...)
		}},
		{Name: "create.no-token", Call: createENI, When: "no ClientToken, the same parameters twice", Want: "two interfaces", Source: idempotency, run: func(t *try) {
			a, b := t.eni(), t.eni()
			t.holds(t.err != nil || a != b, "two interfaces: found %s twice", a)
		}},
		{Name: "create.token-too-long", Call: createENI, When: "a ClientToken of 65 characters", Want: "InvalidParameterValue", Source: idempotency, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "ClientToken", strings.Repeat("t", 65))...)
		}},
		{Name: "create.dry-run", Call: createENI, When: "DryRun", Want: "DryRunOperation with status 412, and nothing is made", Source: common, run: func(t *try) {
			t.refused("DryRunOperation", createENI, t.in(t.subnet, "DryRun", "true")...)
			t.is("interfaces with the row's tag", quoteAll(t.mine()), "nothing")
		}},
		{Name: "create.count-falls", Call: createENI, When: "four addresses", Want: "AvailableIpAddressCount is eventually lower by four", Source: api(describeSubnets), run: func(t *try) {
			t.countMoves(-4, func() { t.create("SecondaryPrivateIpAddressCount", "3") })
		}},
		{Name: "create.prefix", Call: createENI, When: "Ipv4PrefixCount 1", Want: "a /28 of the subnet, aligned, beside the primary address", Source: prefixes, run: func(t *try) {
			e := t.create("Ipv4PrefixCount", "1")
			t.is("number of addresses", strconv.Itoa(len(addresses(e))), "1")
			t.onePrefix(e.texts("ipv4PrefixSet/item/ipv4Prefix"), t.cidr, 28)
		}},
		{Name: "create.prefix-exact", Call: createENI, When: "Ipv4Prefix, and it is free", Want: "that prefix", Source: prefixes, run: func(t *try) {
			p := t.freshPrefix().String()
			t.is("prefix", t.create("Ipv4Prefix.1.Ipv4Prefix", p).say("ipv4PrefixSet/item/ipv4Prefix"), p)
		}},
		{Name: "create.prefix-in-use", Call: createENI, When: "Ipv4Prefix is another interface's", Want: "InvalidParameterValue|InvalidIPAddress.InUse", Source: prefixes, run: func(t *try) {
			p := t.create("Ipv4PrefixCount", "1").say("ipv4PrefixSet/item/ipv4Prefix")
			t.refused("InvalidParameterValue|InvalidIPAddress.InUse", createENI, t.in(t.subnet, "Ipv4Prefix.1.Ipv4Prefix", p)...)
		}},
		{Name: "create.prefix-unaligned", Call: createENI, When: "Ipv4Prefix is not on a boundary of 16", Want: "InvalidParameterValue", Source: prefixes, run: func(t *try) {
			t.refused("InvalidParameterValue", createENI, t.in(t.subnet, "Ipv4Prefix.1.Ipv4Prefix", offset(t.cidr, 24).String()+"/28")...)
		}},
		{Name: "create.prefix-no-block", Call: createENI, When: "Ipv4PrefixCount 1 in a /28, whose ends are reserved", Want: "InsufficientCidrBlocks", Source: prefixes, run: func(t *try) {
			t.refused("InsufficientCidrBlocks", createENI, t.in(t.tiny(), "Ipv4PrefixCount", "1")...)
		}},
		{Name: "create.prefix-and-count", Call: createENI, When: "Ipv4PrefixCount with SecondaryPrivateIpAddressCount", Want: "InvalidParameterCombination", Source: api(createENI), run: func(t *try) {
			t.refused("InvalidParameterCombination", createENI, t.in(t.subnet, "Ipv4PrefixCount", "1", "SecondaryPrivateIpAddressCount", "1")...)
		}},
		{Name: "create.prefix-of-free", Call: createENI, When: "Ipv4PrefixCount 1", Want: "AvailableIpAddressCount is eventually lower by 17", Source: prefixes, run: func(t *try) {
			t.countMoves(-17, func() { t.create("Ipv4PrefixCount", "1") })
		}},
		{Name: "create.ipv6", Call: createENI, When: "Ipv6AddressCount 2 in a subnet with an IPv6 CIDR", Want: "two addresses of it", Source: api(createENI), run: func(t *try) {
			s, p := t.six()
			e := t.ok(createENI, t.in(s, "Ipv6AddressCount", "2")...)
			list := e.texts("networkInterface/ipv6AddressesSet/item/ipv6Address")
			t.is("number of IPv6 addresses", strconv.Itoa(len(list)), "2")
			for _, a := range list {
				x, err := netip.ParseAddr(a)
				t.holds(err == nil && p.Contains(x), "IPv6 address: expected one of %v, found %q", p, a)
			}
		}},
		{Name: "create.ipv6-exact", Call: createENI, When: "Ipv6Addresses, and it is free", Want: "that address", Source: api(createENI), run: func(t *try) {
			s, p := t.six()
			a := t.spareSix(p)
			t.is("IPv6 address", t.ok(createENI, t.in(s, "Ipv6Addresses.1.Ipv6Address", a)...).say("networkInterface/ipv6AddressesSet/item/ipv6Address"), a)
		}},
		{Name: "create.ipv6-nowhere", Call: createENI, When: "Ipv6AddressCount 1 in a subnet without an IPv6 CIDR", Want: "InvalidParameterValue|InvalidSubnet|InvalidParameterCombination", Source: api(createENI), run: func(t *try) {
			t.refused("InvalidParameterValue|InvalidSubnet|InvalidParameterCombination", createENI, t.in(t.four(), "Ipv6AddressCount", "1")...)
		}},
		{Name: "create.ipv6-prefix", Call: createENI, When: "Ipv6PrefixCount 1", Want: "a /80 of the subnet's IPv6 CIDR", Source: prefixes, run: func(t *try) {
			s, p := t.six()
			t.onePrefix(t.ok(createENI, t.in(s, "Ipv6PrefixCount", "1")...).texts("networkInterface/ipv6PrefixSet/item/ipv6Prefix"), p, 80)
		}},
	}
}

func deleteRows() []Row {
	return []Row{
		{Name: "delete.gone", Call: deleteENI, When: "an interface that is available", Want: "eventually InvalidNetworkInterfaceID.NotFound", Source: api(deleteENI), run: func(t *try) {
			id := t.eni()
			t.settle()
			t.ok(deleteENI, "NetworkInterfaceId", id)
			t.gone(id)
		}},
		{Name: "delete.in-use", Call: deleteENI, When: "the interface is attached", Want: "InvalidParameterValue|InvalidNetworkInterface.InUse", Source: "aws/amazon-vpc-cni-k8s#69", Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.refused("InvalidParameterValue|InvalidNetworkInterface.InUse", deleteENI, "NetworkInterfaceId", id)
		}},
		{Name: "delete.while-detaching", Call: deleteENI, When: "right after the detach was answered", Want: "InvalidParameterValue|InvalidNetworkInterface.InUse", Source: "aws/amazon-vpc-cni-k8s#69", Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.ok(detachENI, "AttachmentId", t.attach(id))
			t.refused("InvalidParameterValue|InvalidNetworkInterface.InUse", deleteENI, "NetworkInterfaceId", id)
		}},
		{Name: "delete.twice", Call: deleteENI, When: "the interface was deleted a moment ago", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, run: func(t *try) {
			id := t.eni()
			t.settle()
			t.ok(deleteENI, "NetworkInterfaceId", id)
			t.refused("InvalidNetworkInterfaceID.NotFound", deleteENI, "NetworkInterfaceId", id)
		}},
		{Name: "delete.unknown", Call: deleteENI, When: "an interface that never was", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceID.NotFound", deleteENI, "NetworkInterfaceId", noENI)
		}},
		{Name: "delete.malformed", Call: deleteENI, When: "an identifier that is no eni-…", Want: "InvalidNetworkInterfaceId.Malformed", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceId.Malformed|InvalidNetworkInterfaceID.Malformed", deleteENI, "NetworkInterfaceId", "eni-none")
		}},
		{Name: "delete.dry-run", Call: deleteENI, When: "DryRun", Want: "DryRunOperation, and the interface stays", Source: common, run: func(t *try) {
			id := t.eni()
			t.refused("DryRunOperation", deleteENI, "NetworkInterfaceId", id, "DryRun", "true")
			t.shows(id, "networkInterfaceId", id)
		}},
		{Name: "delete.count-rises", Call: deleteENI, When: "an interface with three addresses", Want: "AvailableIpAddressCount is eventually higher by three", Source: api(describeSubnets), run: func(t *try) {
			id := t.eni("SecondaryPrivateIpAddressCount", "2")
			t.countMoves(3, func() { t.ok(deleteENI, "NetworkInterfaceId", id) })
		}},
		{Name: "delete.address-again", Call: createENI, When: "an exact address whose interface was deleted", Want: "eventually that address", Source: sizing, run: func(t *try) {
			a := t.spare(1)[0]
			t.ok(deleteENI, "NetworkInterfaceId", t.eni("PrivateIpAddress", a))
			t.eventually(consistency, func() string {
				code := t.call(createENI, t.in(t.subnet, "PrivateIpAddress", a)...).Code
				return unlike("CreateNetworkInterface with "+a, code, "")
			})
		}},
	}
}

// inSubnet is what holds of any address that EC2 chooses.
func (t *try) inSubnet(text string) {
	a, err := netip.ParseAddr(text)
	last := offset(t.cidr, 1<<(32-t.cidr.Bits())-1)
	t.holds(err == nil && t.cidr.Contains(a) && a.Compare(offset(t.cidr, 3)) > 0 && a != last, "address: expected one of %v that is not reserved, found %q", t.cidr, text)
}

// onePrefix is what holds of a prefix that EC2 chooses.
func (t *try) onePrefix(list []string, of netip.Prefix, bits int) {
	t.is("number of prefixes", strconv.Itoa(len(list)), "1")
	for _, text := range list {
		p, err := netip.ParsePrefix(text)
		t.holds(err == nil && p.Bits() == bits && p == p.Masked() && of.Contains(p.Addr()), "prefix: expected a /%d of %v, found %q", bits, of, text)
	}
}

func macForm(s string) bool {
	if len(s) != 17 {
		return false
	}
	for k, c := range []byte(s) {
		if k%3 == 2 && c != ':' || k%3 != 2 && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return strings.IndexByte("02468ace", s[1]) >= 0
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// tagOf is the value of a resource's tag.
func tagOf(e *element, key string) string {
	for _, tag := range e.all("tagSet/item") {
		if tag.say("key") == key {
			return tag.say("value")
		}
	}
	return ""
}

// mine are the interfaces with the row's tag, as far as Describe knows them by now.
func (t *try) mine() []string {
	return t.ok(describeENIs, "Filter.1.Name", "tag:"+tagKey, "Filter.1.Value.1", t.tag()).texts("networkInterfaceSet/item/networkInterfaceId")
}

// gone waits until no answer has an interface any more.
func (t *try) gone(id string) {
	t.eventually(consistency, func() string {
		return unlike("DescribeNetworkInterfaces of what is gone", t.call(describeENIs, "NetworkInterfaceId.1", id).Code, "InvalidNetworkInterfaceID.NotFound")
	})
}

// free is a subnet's AvailableIpAddressCount.
func (t *try) free(subnet string) string {
	return t.ok(describeSubnets, "SubnetId.1", subnet).say("subnetSet/item/availableIpAddressCount")
}

// countMoves waits until AvailableIpAddressCount has stood still, does something, and waits until it has moved by n. Where others work in
// the subnet at the same time that can go wrong: the difference is then theirs.
func (t *try) countMoves(n int, do func()) {
	before := t.stillCount()
	do()
	t.eventually(consistency, func() string {
		return unlike("availableIpAddressCount", t.free(t.subnet), strconv.Itoa(before+n))
	})
}

// stillCount is AvailableIpAddressCount when it has not changed for a while: what earlier rows gave back has arrived.
func (t *try) stillCount() int {
	last, since := "", t.Now()
	for t.err == nil && t.Now().Sub(since) < 6*pause {
		if now := t.free(t.subnet); now != last {
			last, since = now, t.Now()
		}
		t.wait()
	}
	n, err := strconv.Atoi(last)
	t.holds(err == nil, "availableIpAddressCount: expected a number, found %q", last)
	return n
}

// spareSix is a free IPv6 address: there are too many for a collision.
func (t *try) spareSix(p netip.Prefix) string {
	t.calls++
	if !p.IsValid() {
		return ""
	}
	b := p.Masked().Addr().As16()
	now := uint64(t.Now().UnixNano())
	for k := range 6 {
		b[9+k] = byte(now >> (8 * k))
	}
	b[15] = byte(1 + t.calls%250)
	return netip.AddrFrom16(b).String()
}
