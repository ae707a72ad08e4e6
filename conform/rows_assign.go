package conform

import (
	"net/netip"
	"slices"
	"strconv"
)

func assignRows() []Row {
	return []Row{
		{Name: "assign.count", Call: assignIPv4, When: "SecondaryPrivateIpAddressCount 2", Want: "two addresses of the subnet, and eventually three on the interface", Source: api(assignIPv4), run: func(t *try) {
			id := t.eni()
			list := t.assign(id, "SecondaryPrivateIpAddressCount", "2").texts("assignedPrivateIpAddressesSet/item/privateIpAddress")
			t.is("assigned", strconv.Itoa(len(list)), "2")
			for _, a := range list {
				t.inSubnet(a)
			}
			t.is("secondary addresses", quoteAll(sorted(rest(t.has(id, 3)))), quoteAll(sorted(list)))
		}},
		{Name: "assign.again", Call: assignIPv4, When: "the same count a second time", Want: "more addresses: the call is not idempotent", Source: api(assignIPv4), run: func(t *try) {
			id := t.eni()
			t.assign(id, "SecondaryPrivateIpAddressCount", "1")
			t.assign(id, "SecondaryPrivateIpAddressCount", "1")
			t.has(id, 3)
		}},
		{Name: "assign.exact", Call: assignIPv4, When: "PrivateIpAddress, and it is free", Want: "that address", Source: api(assignIPv4), run: func(t *try) {
			id, a := t.eni(), t.spare(1)[0]
			t.is("assigned", t.assign(id, "PrivateIpAddress.1", a).say("assignedPrivateIpAddressesSet/item/privateIpAddress"), a)
			t.is("secondary address", nth(t.has(id, 2), 1), a)
		}},
		{Name: "assign.not-primary", Call: assignIPv4, When: "described afterwards", Want: "the new address is not primary, the old one is", Source: "NetworkInterfacePrivateIpAddress (API reference)", run: func(t *try) {
			id := t.eni()
			t.assign(id, "SecondaryPrivateIpAddressCount", "1")
			e := t.see(id, consistency, func(e *element) string {
				return unlike("number of addresses", strconv.Itoa(len(addresses(e))), "2")
			})
			t.is("primary flags", quoteAll(e.texts("privateIpAddressesSet/item/primary")), "true, false")
		}},
		{Name: "assign.in-use", Call: assignIPv4, When: "PrivateIpAddress is another interface's primary", Want: "InvalidParameterValue", Source: errorCodes, run: func(t *try) {
			a := t.create().say("privateIpAddress")
			t.refused("InvalidParameterValue", assignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", a)
		}},
		{Name: "assign.others", Call: assignIPv4, When: "PrivateIpAddress is another interface's secondary, without AllowReassignment", Want: "InvalidParameterValue|InvalidIPAddress.InUse", Source: api(assignIPv4), run: func(t *try) {
			a := t.spare(1)[0]
			t.assign(t.eni(), "PrivateIpAddress.1", a)
			t.refused("InvalidParameterValue|InvalidIPAddress.InUse", assignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", a)
		}},
		{Name: "assign.reassign", Call: assignIPv4, When: "the same with AllowReassignment", Want: "the address moves", Source: api(assignIPv4), run: func(t *try) {
			from, to, a := t.eni(), t.eni(), t.spare(1)[0]
			t.assign(from, "PrivateIpAddress.1", a)
			t.assign(to, "PrivateIpAddress.1", a, "AllowReassignment", "true")
			t.has(from, 1)
			t.is("secondary address of the other interface", nth(t.has(to, 2), 1), a)
		}},
		{Name: "assign.outside", Call: assignIPv4, When: "PrivateIpAddress lies outside the subnet", Want: "InvalidParameterValue", Source: api(assignIPv4), run: func(t *try) {
			t.refused("InvalidParameterValue", assignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", "192.0.2.10")
		}},
		{Name: "assign.reserved", Call: assignIPv4, When: "PrivateIpAddress is one that AWS reserves", Want: "InvalidParameterValue", Source: sizing, run: func(t *try) {
			t.refused("InvalidParameterValue", assignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", offset(t.cidr, 1).String())
		}},
		{Name: "assign.all-or-none", Call: assignIPv4, When: "of two PrivateIpAddress one is in use", Want: "InvalidParameterValue, and none is assigned", Source: api(assignIPv4), run: func(t *try) {
			id, used, free := t.eni(), t.create().say("privateIpAddress"), t.spare(1)[0]
			t.refused("InvalidParameterValue", assignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", free, "PrivateIpAddress.2", used)
			t.assign(t.eni(), "PrivateIpAddress.1", free)
			t.has(id, 1)
		}},
		{Name: "assign.both", Call: assignIPv4, When: "a count and an address", Want: "InvalidParameterCombination", Source: api(assignIPv4), run: func(t *try) {
			t.refused("InvalidParameterCombination", assignIPv4, "NetworkInterfaceId", t.eni(), "SecondaryPrivateIpAddressCount", "1", "PrivateIpAddress.1", t.spare(1)[0])
		}},
		{Name: "assign.neither", Call: assignIPv4, When: "no count and no address", Want: "MissingParameter", Source: common, run: func(t *try) {
			t.refused("MissingParameter", assignIPv4, "NetworkInterfaceId", t.eni())
		}},
		{Name: "assign.unknown", Call: assignIPv4, When: "an interface that does not exist", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceID.NotFound", assignIPv4, "NetworkInterfaceId", noENI, "SecondaryPrivateIpAddressCount", "1")
		}},
		{Name: "assign.limit", Call: assignIPv4, When: "one address more than the type takes, on an attached interface", Want: "PrivateIpAddressLimitExceeded", Source: perType, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.refused("PrivateIpAddressLimitExceeded", assignIPv4, "NetworkInterfaceId", id, "SecondaryPrivateIpAddressCount", strconv.Itoa(t.perENI))
		}},
		{Name: "assign.up-to-limit", Call: assignIPv4, When: "as many addresses as the type takes, on an attached interface", Want: "success", Source: perType, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.assign(id, "SecondaryPrivateIpAddressCount", strconv.Itoa(t.perENI-1))
			t.has(id, t.perENI)
		}},
		{Name: "assign.full-subnet", Call: assignIPv4, When: "more addresses than the /28 has left", Want: "InsufficientFreeAddressesInSubnet", Source: errorCodes, run: func(t *try) {
			id := t.ok(createENI, t.in(t.tiny())...).say("networkInterface/networkInterfaceId")
			t.refused("InsufficientFreeAddressesInSubnet", assignIPv4, "NetworkInterfaceId", id, "SecondaryPrivateIpAddressCount", "11")
		}},
		{Name: "assign.prefix", Call: assignIPv4, When: "Ipv4PrefixCount 1", Want: "a /28 of the subnet", Source: prefixes, run: func(t *try) {
			id := t.eni()
			list := t.assign(id, "Ipv4PrefixCount", "1").texts("assignedIpv4PrefixSet/item/ipv4Prefix")
			t.onePrefix(list, t.cidr, 28)
			t.see(id, consistency, func(e *element) string {
				return unlike("prefixes", quoteAll(e.texts("ipv4PrefixSet/item/ipv4Prefix")), quoteAll(list))
			})
		}},
		{Name: "assign.prefix-exact", Call: assignIPv4, When: "Ipv4Prefix, and it is free", Want: "that prefix", Source: prefixes, run: func(t *try) {
			p := t.freshPrefix().String()
			t.is("assigned", t.assign(t.eni(), "Ipv4Prefix.1", p).say("assignedIpv4PrefixSet/item/ipv4Prefix"), p)
		}},
		{Name: "assign.prefix-limit", Call: assignIPv4, When: "address and prefixes are one more than the type takes", Want: "PrivateIpAddressLimitExceeded", Source: prefixes, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.refused("PrivateIpAddressLimitExceeded", assignIPv4, "NetworkInterfaceId", id, "Ipv4PrefixCount", strconv.Itoa(t.perENI))
		}},
		{Name: "assign.inside-prefix", Call: assignIPv4, When: "PrivateIpAddress lies in a prefix of another interface", Want: "InvalidParameterValue|InvalidIPAddress.InUse", Source: prefixes, run: func(t *try) {
			p, err := netip.ParsePrefix(t.create("Ipv4PrefixCount", "1").say("ipv4PrefixSet/item/ipv4Prefix"))
			if err != nil {
				t.differ("ipv4Prefix: expected a prefix, found %v", err)
				return
			}
			t.refused("InvalidParameterValue|InvalidIPAddress.InUse", assignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", p.Addr().Next().String())
		}},
		{Name: "assign.ipv6", Call: assignIPv6, When: "Ipv6AddressCount 2", Want: "two addresses of the subnet's IPv6 CIDR", Source: api(assignIPv6), run: func(t *try) {
			s, p := t.six()
			id := t.eniIn(s)
			list := t.ok(assignIPv6, "NetworkInterfaceId", id, "Ipv6AddressCount", "2").texts("assignedIpv6Addresses/item")
			t.is("assigned", strconv.Itoa(len(list)), "2")
			for _, a := range list {
				x, err := netip.ParseAddr(a)
				t.holds(err == nil && p.Contains(x), "assigned: expected an address of %v, found %q", p, a)
			}
			t.sixShown(id, list)
		}},
		{Name: "assign.ipv6-exact", Call: assignIPv6, When: "Ipv6Addresses, and it is free", Want: "that address", Source: api(assignIPv6), run: func(t *try) {
			s, p := t.six()
			a := t.spareSix(p)
			t.is("assigned", t.ok(assignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6Addresses.1", a).say("assignedIpv6Addresses/item"), a)
		}},
		{Name: "assign.ipv6-in-use", Call: assignIPv6, When: "Ipv6Addresses is another interface's", Want: "InvalidParameterValue|InvalidIPAddress.InUse", Source: api(assignIPv6), run: func(t *try) {
			s, p := t.six()
			a := t.spareSix(p)
			t.ok(assignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6Addresses.1", a)
			t.refused("InvalidParameterValue|InvalidIPAddress.InUse", assignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6Addresses.1", a)
		}},
		{Name: "assign.ipv6-outside", Call: assignIPv6, When: "Ipv6Addresses lies outside the subnet", Want: "InvalidParameterValue", Source: api(assignIPv6), run: func(t *try) {
			s, _ := t.six()
			t.refused("InvalidParameterValue", assignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6Addresses.1", "2001:db8:ffff:ffff::abcd:1")
		}},
		{Name: "assign.ipv6-nowhere", Call: assignIPv6, When: "an interface of a subnet without an IPv6 CIDR", Want: "InvalidParameterValue|InvalidSubnet|InvalidParameterCombination", Source: api(assignIPv6), run: func(t *try) {
			t.refused("InvalidParameterValue|InvalidSubnet|InvalidParameterCombination", assignIPv6, "NetworkInterfaceId", t.eniIn(t.four()), "Ipv6AddressCount", "1")
		}},
		{Name: "assign.ipv6-prefix", Call: assignIPv6, When: "Ipv6PrefixCount 1", Want: "a /80 of the subnet's IPv6 CIDR", Source: prefixes, run: func(t *try) {
			s, p := t.six()
			t.onePrefix(t.ok(assignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6PrefixCount", "1").texts("assignedIpv6PrefixSet/item"), p, 80)
		}},
	}
}

func unassignRows() []Row {
	return []Row{
		{Name: "unassign.one", Call: unassignIPv4, When: "one of two secondary addresses", Want: "eventually the other one is left", Source: api(unassignIPv4), run: func(t *try) {
			list := t.create("SecondaryPrivateIpAddressCount", "2")
			id, a := list.say("networkInterfaceId"), addresses(list)
			if len(a) != 3 {
				t.differ("number of addresses: expected 3, found %d", len(a))
				return
			}
			t.ok(unassignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", a[1])
			t.is("addresses", quoteAll(t.has(id, 2)), quoteAll([]string{a[0], a[2]}))
		}},
		{Name: "unassign.primary", Call: unassignIPv4, When: "the primary address", Want: "InvalidParameterValue", Source: api(unassignIPv4), run: func(t *try) {
			e := t.create()
			t.refused("InvalidParameterValue", unassignIPv4, "NetworkInterfaceId", e.say("networkInterfaceId"), "PrivateIpAddress.1", e.say("privateIpAddress"))
		}},
		{Name: "unassign.foreign", Call: unassignIPv4, When: "an address that the interface does not have", Want: "InvalidParameterValue", Source: api(unassignIPv4), run: func(t *try) {
			t.refused("InvalidParameterValue", unassignIPv4, "NetworkInterfaceId", t.eni(), "PrivateIpAddress.1", t.spare(1)[0])
		}},
		{Name: "unassign.twice", Call: unassignIPv4, When: "an address that was unassigned a moment ago", Want: "InvalidParameterValue", Source: api(unassignIPv4), run: func(t *try) {
			id, a := t.eni(), t.spare(1)[0]
			t.assign(id, "PrivateIpAddress.1", a)
			t.ok(unassignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", a)
			t.refused("InvalidParameterValue", unassignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", a)
		}},
		{Name: "unassign.all-or-none", Call: unassignIPv4, When: "of two addresses the interface has one", Want: "InvalidParameterValue, and both stay as they are", Source: api(unassignIPv4), run: func(t *try) {
			id, a := t.eni(), t.spare(2)
			t.assign(id, "PrivateIpAddress.1", a[0])
			t.refused("InvalidParameterValue", unassignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", a[0], "PrivateIpAddress.2", a[1])
			t.is("the secondary address", nth(t.has(id, 2), 1), a[0])
			t.ok(unassignIPv4, "NetworkInterfaceId", id, "PrivateIpAddress.1", a[0])
		}},
		{Name: "unassign.none", Call: unassignIPv4, When: "no address and no prefix", Want: "MissingParameter", Source: common, run: func(t *try) {
			t.refused("MissingParameter|InvalidParameterCombination", unassignIPv4, "NetworkInterfaceId", t.eni())
		}},
		{Name: "unassign.unknown", Call: unassignIPv4, When: "an interface that does not exist", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceID.NotFound", unassignIPv4, "NetworkInterfaceId", noENI, "PrivateIpAddress.1", t.spare(1)[0])
		}},
		{Name: "unassign.prefix", Call: unassignIPv4, When: "a prefix of the interface", Want: "eventually no prefix", Source: prefixes, run: func(t *try) {
			e := t.create("Ipv4PrefixCount", "1")
			id := e.say("networkInterfaceId")
			t.ok(unassignIPv4, "NetworkInterfaceId", id, "Ipv4Prefix.1", e.say("ipv4PrefixSet/item/ipv4Prefix"))
			t.see(id, consistency, func(e *element) string {
				return unlike("prefixes", quoteAll(e.texts("ipv4PrefixSet/item/ipv4Prefix")), "nothing")
			})
		}},
		{Name: "unassign.inside-prefix", Call: unassignIPv4, When: "an address out of the interface's prefix", Want: "InvalidParameterValue", Source: prefixes, run: func(t *try) {
			e := t.create("Ipv4PrefixCount", "1")
			p, err := netip.ParsePrefix(e.say("ipv4PrefixSet/item/ipv4Prefix"))
			if err != nil {
				t.differ("ipv4Prefix: expected a prefix, found %v", err)
				return
			}
			t.refused("InvalidParameterValue", unassignIPv4, "NetworkInterfaceId", e.say("networkInterfaceId"), "PrivateIpAddress.1", p.Addr().String())
		}},
		{Name: "unassign.ipv6", Call: unassignIPv6, When: "one of two IPv6 addresses", Want: "it is in the answer, and eventually the other one is left", Source: api(unassignIPv6), run: func(t *try) {
			s, _ := t.six()
			e := t.ok(createENI, t.in(s, "Ipv6AddressCount", "2")...).get("networkInterface")
			list := e.texts("ipv6AddressesSet/item/ipv6Address")
			if len(list) != 2 {
				t.differ("number of IPv6 addresses: expected 2, found %d", len(list))
				return
			}
			id := e.say("networkInterfaceId")
			t.is("unassigned", t.ok(unassignIPv6, "NetworkInterfaceId", id, "Ipv6Addresses.1", list[0]).say("unassignedIpv6Addresses/item"), list[0])
			t.sixShown(id, list[1:])
		}},
		{Name: "unassign.ipv6-foreign", Call: unassignIPv6, When: "an IPv6 address that the interface does not have", Want: "InvalidParameterValue|InvalidIPAddress.NotFound", Source: api(unassignIPv6), run: func(t *try) {
			s, p := t.six()
			t.refused("InvalidParameterValue|InvalidIPAddress.NotFound", unassignIPv6, "NetworkInterfaceId", t.eniIn(s), "Ipv6Addresses.1", t.spareSix(p))
		}},
	}
}

func (t *try) assign(id string, pairs ...string) *element {
	return t.ok(assignIPv4, append([]string{"NetworkInterfaceId", id}, pairs...)...)
}

// eniIn makes an interface in a subnet.
func (t *try) eniIn(subnet string) string {
	return t.ok(createENI, t.in(subnet)...).say("networkInterface/networkInterfaceId")
}

// sixShown waits until an interface has exactly these IPv6 addresses.
func (t *try) sixShown(id string, list []string) {
	want := quoteAll(slices.Sorted(slices.Values(list)))
	t.see(id, consistency, func(e *element) string {
		return unlike("IPv6 addresses", quoteAll(sorted(e.texts("ipv6AddressesSet/item/ipv6Address"))), want)
	})
}
