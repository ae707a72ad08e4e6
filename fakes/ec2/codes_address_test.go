package ec2

import (
	"net/netip"
	"testing"
	"time"
)

// The rows of TestRefusalsHaveEC2sCodes that are about prefixes, IPv6 and addresses that move. plenty has fourteen
// blocks of /28 that nobody's address is in: not the first and not the last, and not those that the instance got in.
func TestAddressCodes(t *testing.T) {
	type (
		addrs    = []netip.Addr
		prefixes = []netip.Prefix
	)
	const create, assign, unassign = CreateNetworkInterface, AssignPrivateIpAddresses, UnassignPrivateIpAddresses
	block, six, six80 := cidr("10.0.0.64/28"), ip("2001:db8:0:100::77"), cidr("2001:db8:0:100:77::/80")
	in := func(s SubnetID, r Request) func(*world, InstanceID) Request {
		return func(*world, InstanceID) Request {
			r.Action, r.Subnet = create, s
			return r
		}
	}
	// after does something as a request of its own first.
	after := func(first Request, then func(*world, InstanceID) Request) func(*world, InstanceID) Request {
		return func(w *world, i InstanceID) Request {
			if first.ENI == "" && first.Action != create {
				first.ENI = w.AttachedENIs(i)[0]
			}
			w.do(first)
			return then(w, i)
		}
	}
	checkCodes(t, []codeRow{
		{"create: prefixes", in(plenty, Request{PrefixCount: 10}), ""},
		{"create: exact prefixes", in(plenty, Request{Prefixes: prefixes{block, cidr("10.0.0.128/28")}}), ""},
		{"create: chosen primary and prefixes", in(plenty, Request{Addresses: addrs{ip("10.0.0.77")}, PrefixCount: 13}), ""},
		{"create: chosen primary in the last block", in(plenty, Request{Addresses: addrs{ip("10.0.0.77")}, PrefixCount: 14}), "InsufficientCidrBlocks"},
		{"create: chosen primary in the exact prefix", in(plenty, Request{Addresses: addrs{ip("10.0.0.77")}, Prefixes: prefixes{block}}), "InvalidParameterValue"},
		{"create: fifteen blocks of fourteen", in(plenty, Request{PrefixCount: 15}), "InsufficientCidrBlocks"},
		{"create: a prefix in a /28", in(tiny, Request{PrefixCount: 1}), "InsufficientCidrBlocks"},
		{"create: more prefixes than any instance may have", in(plenty, Request{PrefixCount: 50}), "PrivateIpAddressLimitExceeded"},
		{"create: a negative count of prefixes", in(plenty, Request{PrefixCount: -1}), "InvalidParameterValue"},
		{"create: prefixes and secondaries", in(plenty, Request{PrefixCount: 1, SecondaryCount: 1}), "InvalidParameterCombination"},
		{"create: prefixes and exact secondaries", in(plenty, Request{PrefixCount: 1, Addresses: addrs{ip("10.0.0.77"), ip("10.0.0.78")}}), "InvalidParameterCombination"},
		{"create: prefixes by count and by value", in(plenty, Request{PrefixCount: 1, Prefixes: prefixes{block}}), "InvalidParameterCombination"},
		{"create: a prefix of 16", in(plenty, Request{Prefixes: prefixes{cidr("10.0.0.0/24")}}), "InvalidParameterValue"},
		{"create: a prefix that is none", in(plenty, Request{Prefixes: prefixes{{}}}), "InvalidParameterValue"},
		{"create: a prefix off its boundary", in(plenty, Request{Prefixes: prefixes{cidr("10.0.0.65/28")}}), "InvalidParameterValue"},
		{"create: a prefix of another subnet", in(plenty, Request{Prefixes: prefixes{cidr("10.0.2.64/28")}}), "InvalidParameterValue"},
		{"create: a prefix with EC2's own addresses", in(plenty, Request{Prefixes: prefixes{cidr("10.0.0.240/28")}}), "InvalidParameterValue"},
		{"create: a prefix twice", in(plenty, Request{Prefixes: prefixes{block, block}}), "InvalidParameterValue"},
		{"create: a prefix that somebody has", after(Request{Action: create, Subnet: plenty, Prefixes: prefixes{block}},
			in(plenty, Request{Prefixes: prefixes{block}})), "InvalidParameterValue"},
		{"create: primary in somebody's prefix", after(Request{Action: create, Subnet: plenty, Prefixes: prefixes{block}},
			in(plenty, Request{Addresses: addrs{ip("10.0.0.77")}})), "InvalidIPAddress.InUse"},
		{"create: same token, another count of prefixes", after(Request{Action: create, Subnet: plenty, ClientToken: "t", PrefixCount: 1},
			in(plenty, Request{ClientToken: "t", PrefixCount: 2})), "IdempotentParameterMismatch"},
		{"create: same token, another prefix", after(Request{Action: create, Subnet: plenty, ClientToken: "t", Prefixes: prefixes{block}},
			in(plenty, Request{ClientToken: "t", Prefixes: prefixes{cidr("10.0.0.80/28")}})), "IdempotentParameterMismatch"},
		{"create: same token, a prefix and not an address", after(Request{Action: create, Subnet: plenty, ClientToken: "t", SecondaryCount: 1},
			in(plenty, Request{ClientToken: "t", PrefixCount: 1})), "IdempotentParameterMismatch"},
		{"create: same token, same prefix", after(Request{Action: create, Subnet: plenty, ClientToken: "t", Prefixes: prefixes{block}},
			in(plenty, Request{ClientToken: "t", Prefixes: prefixes{block}})), ""},
		{"create: same token, another count of IPv6", after(Request{Action: create, Subnet: plenty, ClientToken: "t", IPv6Count: 1},
			in(plenty, Request{ClientToken: "t", IPv6Count: 2})), "IdempotentParameterMismatch"},
		{"create: same token, another IPv6 address", after(Request{Action: create, Subnet: plenty, ClientToken: "t", IPv6: addrs{six}},
			in(plenty, Request{ClientToken: "t", IPv6: addrs{six.Next()}})), "IdempotentParameterMismatch"},
		{"create: same token, IPv6 prefixes and not addresses", after(Request{Action: create, Subnet: plenty, ClientToken: "t", IPv6Count: 1},
			in(plenty, Request{ClientToken: "t", IPv6PrefixCount: 1})), "IdempotentParameterMismatch"},
		{"create: same token, another count of IPv6 prefixes", after(Request{Action: create, Subnet: plenty, ClientToken: "t", IPv6PrefixCount: 1},
			in(plenty, Request{ClientToken: "t", IPv6PrefixCount: 2})), "IdempotentParameterMismatch"},
		{"create: same token, another IPv6 prefix", after(Request{Action: create, Subnet: plenty, ClientToken: "t", IPv6Prefixes: prefixes{six80}},
			in(plenty, Request{ClientToken: "t", IPv6Prefixes: prefixes{cidr("2001:db8:0:100:78::/80")}})), "IdempotentParameterMismatch"},

		{"create: IPv6 addresses", in(plenty, Request{IPv6Count: 50}), ""},
		{"create: exact IPv6 address", in(plenty, Request{IPv6: addrs{six}}), ""},
		{"create: IPv6 prefixes", in(plenty, Request{IPv6PrefixCount: 50, SecondaryCount: 3}), ""},
		{"create: exact IPv6 prefix", in(plenty, Request{IPv6Prefixes: prefixes{six80}}), ""},
		{"create: more IPv6 than any instance may have", in(plenty, Request{IPv6Count: 51}), "PrivateIpAddressLimitExceeded"},
		{"create: more IPv6 prefixes than any instance may have", in(plenty, Request{IPv6PrefixCount: 1 << 62}), "PrivateIpAddressLimitExceeded"},
		{"create: negative IPv6", in(plenty, Request{IPv6Count: -1}), "InvalidParameterValue"},
		{"create: IPv6 in a subnet without", in(tiny, Request{IPv6Count: 1}), "InvalidParameterValue"},
		{"create: IPv6 by count and by value", in(plenty, Request{IPv6Count: 1, IPv6: addrs{six}}), "InvalidParameterCombination"},
		{"create: IPv6 prefixes by count and by value", in(plenty, Request{IPv6PrefixCount: 1, IPv6Prefixes: prefixes{six80}}), "InvalidParameterCombination"},
		{"create: IPv6 addresses and prefixes (karpenter#2187)", in(plenty, Request{IPv6Count: 1, IPv6PrefixCount: 1}), "InvalidParameterValue"},
		{"create: IPv6 address of another subnet", in(plenty, Request{IPv6: addrs{ip("2001:db8:0:102::77")}}), "InvalidParameterValue"},
		{"create: IPv6 address of EC2's own", in(plenty, Request{IPv6: addrs{ip("2001:db8:0:100::3")}}), "InvalidParameterValue"},
		{"create: IPv6 address, the last", in(plenty, Request{IPv6: addrs{ip("2001:db8:0:100:ffff:ffff:ffff:ffff")}}), "InvalidParameterValue"},
		{"create: an IPv4 address as IPv6", in(plenty, Request{IPv6: addrs{ip("10.0.0.77")}}), "InvalidParameterValue"},
		{"create: an IPv6 address as IPv4", in(plenty, Request{Addresses: addrs{six}}), "InvalidParameterValue"},
		{"create: no address as IPv6", in(plenty, Request{IPv6: addrs{{}}}), "InvalidParameterValue"},
		{"create: IPv6 address twice", in(plenty, Request{IPv6: addrs{six, six}}), "InvalidParameterValue"},
		{"create: IPv6 address in use", after(Request{Action: create, Subnet: plenty, IPv6: addrs{six}}, in(plenty, Request{IPv6: addrs{six}})), "InvalidParameterValue"},
		{"create: IPv6 address in somebody's prefix", after(Request{Action: create, Subnet: plenty, IPv6Prefixes: prefixes{six80}},
			in(plenty, Request{IPv6: addrs{six80.Addr().Next()}})), "InvalidParameterValue"},
		{"create: IPv6 prefix with somebody's address", after(Request{Action: create, Subnet: plenty, IPv6: addrs{six80.Addr().Next()}},
			in(plenty, Request{IPv6Prefixes: prefixes{six80}})), "InvalidParameterValue"},
		{"create: IPv6 prefix with EC2's own addresses", in(plenty, Request{IPv6Prefixes: prefixes{cidr("2001:db8:0:100::/80")}}), "InvalidParameterValue"},
		{"create: IPv6 prefix of 64", in(plenty, Request{IPv6Prefixes: prefixes{cidr("2001:db8:0:100::/64")}}), "InvalidParameterValue"},
		{"create: IPv6 prefix off its boundary", in(plenty, Request{IPv6Prefixes: prefixes{cidr("2001:db8:0:100:77::1/80")}}), "InvalidParameterValue"},
		{"create: IPv6 prefix that is none", in(plenty, Request{IPv6Prefixes: prefixes{{}}}), "InvalidParameterValue"},
		{"create: IPv6 prefix twice", in(plenty, Request{IPv6Prefixes: prefixes{six80, six80}}), "InvalidParameterValue"},

		{"attach: addresses and prefixes up to the limit", func(w *world, i InstanceID) Request {
			e := w.do(Request{Action: create, Subnet: plenty, PrefixCount: 9, IPv6Count: 10}).ENI.ID
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}
		}, ""},
		{"attach: one prefix above the limit", func(w *world, i InstanceID) Request {
			e := w.do(Request{Action: create, Subnet: plenty, PrefixCount: 10}).ENI.ID
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}
		}, "InvalidInterface.IpAddressLimitExceeded"},
		{"attach: one IPv6 address above the limit", func(w *world, i InstanceID) Request {
			e := w.do(Request{Action: create, Subnet: plenty, IPv6Count: 11}).ENI.ID
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}
		}, "InvalidInterface.IpAddressLimitExceeded"},

		{"assign: prefixes up to the limit", of(Request{Action: assign, PrefixCount: 9}), ""},
		{"assign: one prefix above the limit", of(Request{Action: assign, PrefixCount: 10}), "PrivateIpAddressLimitExceeded"},
		{"assign: prefixes near the end of integers", of(Request{Action: assign, PrefixCount: 1<<63 - 1}), "PrivateIpAddressLimitExceeded"},
		{"assign: prefix above the limit with addresses", after(Request{Action: assign, SecondaryCount: 9}, of(Request{Action: assign, PrefixCount: 1})), "PrivateIpAddressLimitExceeded"},
		{"assign: address above the limit with prefixes", after(Request{Action: assign, PrefixCount: 9}, of(Request{Action: assign, SecondaryCount: 1})), "PrivateIpAddressLimitExceeded"},
		{"assign: exact prefix", of(Request{Action: assign, Prefixes: prefixes{block}}), ""},
		{"assign: exact prefix, again", after(Request{Action: assign, Prefixes: prefixes{block}}, of(Request{Action: assign, Prefixes: prefixes{block}})), "InvalidParameterValue"},
		{"assign: prefixes and addresses", of(Request{Action: assign, PrefixCount: 1, SecondaryCount: 1}), "InvalidParameterCombination"},
		{"assign: prefixes by count and by value", of(Request{Action: assign, PrefixCount: 1, Prefixes: prefixes{block}}), "InvalidParameterCombination"},
		{"assign: negative count of prefixes", of(Request{Action: assign, PrefixCount: -1}), "InvalidParameterValue"},
		{"assign: addresses are left, but no block", func(w *world, i InstanceID) Request {
			w.FragmentSubnet(w.now, plenty, 1)
			if free := w.FreeAddresses(plenty); free < 200 {
				w.t.Fatalf("%d addresses are free", free)
			}
			return of(Request{Action: assign, PrefixCount: 2})(w, i)
		}, "InsufficientCidrBlocks"},
		{"assign: prefixes of a full subnet", func(w *world, i InstanceID) Request {
			w.DrainSubnet(w.now, plenty, 15)
			return of(Request{Action: assign, PrefixCount: 1})(w, i)
		}, "InsufficientCidrBlocks"},
		{"assign: prefixes of a full subnet (cilium#31016)", func(w *world, i InstanceID) Request {
			w.cfg.FullIsInvalidValue = true
			w.DrainSubnet(w.now, plenty, 15)
			return of(Request{Action: assign, PrefixCount: 1})(w, i)
		}, "InvalidParameterValue"},
		{"assign: prefixes of a subnet in pieces (cilium#31016)", func(w *world, i InstanceID) Request {
			w.cfg.FullIsInvalidValue = true
			w.FragmentSubnet(w.now, plenty, 0)
			return of(Request{Action: assign, PrefixCount: 1})(w, i)
		}, "InsufficientCidrBlocks"},
		{"assign: the one block that is left", func(w *world, i InstanceID) Request {
			w.FragmentSubnet(w.now, plenty, 1)
			return of(Request{Action: assign, PrefixCount: 1})(w, i)
		}, ""},
		{"assign: a block that was just given back", func(w *world, i InstanceID) Request {
			w.cfg.Lag.FreedAddress = Always(2 * time.Second)
			of := of(Request{Action: assign, Prefixes: prefixes{block}})
			r := of(w, i)
			w.do(r)
			w.do(Request{Action: unassign, ENI: r.ENI, Prefixes: prefixes{block}})
			w.wait(time.Second)
			return r
		}, "InvalidParameterValue"},
		{"assign: the same, later", func(w *world, i InstanceID) Request {
			w.cfg.Lag.FreedAddress = Always(2 * time.Second)
			r := of(Request{Action: assign, Prefixes: prefixes{block}})(w, i)
			w.do(r)
			w.do(Request{Action: unassign, ENI: r.ENI, Prefixes: prefixes{block}})
			w.wait(2 * time.Second)
			return r
		}, ""},
		{"unassign: prefix", after(Request{Action: assign, Prefixes: prefixes{block}}, of(Request{Action: unassign, Prefixes: prefixes{block}})), ""},
		{"unassign: another prefix", after(Request{Action: assign, Prefixes: prefixes{block}},
			of(Request{Action: unassign, Prefixes: prefixes{block, cidr("10.0.0.80/28")}})), "InvalidParameterValue"},
		{"unassign: prefix twice", after(Request{Action: assign, Prefixes: prefixes{block}}, of(Request{Action: unassign, Prefixes: prefixes{block, block}})), "InvalidParameterValue"},
		{"unassign: a part of a prefix", after(Request{Action: assign, Prefixes: prefixes{block}}, of(Request{Action: unassign, Prefixes: prefixes{cidr("10.0.0.64/29")}})), "InvalidParameterValue"},
		{"unassign: an address of a prefix", after(Request{Action: assign, Prefixes: prefixes{block}}, of(Request{Action: unassign, Addresses: addrs{ip("10.0.0.66")}})), "InvalidParameterValue"},
		{"unassign: addresses and prefixes", of(Request{Action: unassign, Addresses: addrs{ip("10.0.0.66")}, Prefixes: prefixes{block}}), "InvalidParameterCombination"},
		{"unassign: no prefix", of(Request{Action: unassign, Prefixes: prefixes{{}}}), "InvalidParameterValue"},

		{"assign IPv6 up to the limit", of(Request{Action: AssignIpv6Addresses, IPv6Count: 10}), ""},
		{"assign IPv6: one above the limit", of(Request{Action: AssignIpv6Addresses, IPv6Count: 11}), "PrivateIpAddressLimitExceeded"},
		{"assign IPv6: a prefix above the limit", after(Request{Action: AssignIpv6Addresses, IPv6Count: 10},
			of(Request{Action: AssignIpv6Addresses, IPv6PrefixCount: 1})), "PrivateIpAddressLimitExceeded"},
		{"assign IPv6: exact", of(Request{Action: AssignIpv6Addresses, IPv6: addrs{six}}), ""},
		{"assign IPv6: exact prefix", of(Request{Action: AssignIpv6Addresses, IPv6Prefixes: prefixes{six80}}), ""},
		{"assign IPv6: one that it has", after(Request{Action: AssignIpv6Addresses, IPv6: addrs{six}}, of(Request{Action: AssignIpv6Addresses, IPv6: addrs{six}})), "InvalidParameterValue"},
		{"assign IPv6: nothing", of(Request{Action: AssignIpv6Addresses}), "MissingParameter"},
		{"assign IPv6: only IPv4", of(Request{Action: AssignIpv6Addresses, SecondaryCount: 1}), "MissingParameter"},
		{"assign: only IPv6", of(Request{Action: assign, IPv6Count: 1}), "MissingParameter"},
		{"assign IPv6: subnet without", func(w *world, i InstanceID) Request {
			return Request{Action: AssignIpv6Addresses, ENI: w.create(tiny, 0), IPv6Count: 1}
		}, "InvalidParameterValue"},
		{"assign IPv6: unknown interface", plain(Request{Action: AssignIpv6Addresses, ENI: absent, IPv6Count: 1}),
			"InvalidNetworkInterfaceID.NotFound"},
		{"assign IPv6: no interface", plain(Request{Action: AssignIpv6Addresses, IPv6Count: 1}), "MissingParameter"},
		{"assign IPv6: every /80 is given away", func(w *world, i InstanceID) Request {
			w.fill6()
			return of(Request{Action: AssignIpv6Addresses, IPv6PrefixCount: 1})(w, i)
		}, "InsufficientCidrBlocks"},
		{"unassign IPv6", after(Request{Action: AssignIpv6Addresses, IPv6: addrs{six}}, of(Request{Action: UnassignIpv6Addresses, IPv6: addrs{six}})), ""},
		{"unassign IPv6: prefix", after(Request{Action: AssignIpv6Addresses, IPv6Prefixes: prefixes{six80}},
			of(Request{Action: UnassignIpv6Addresses, IPv6Prefixes: prefixes{six80}})), ""},
		{"unassign IPv6: one of two is not assigned", after(Request{Action: AssignIpv6Addresses, IPv6: addrs{six}},
			of(Request{Action: UnassignIpv6Addresses, IPv6: addrs{six, six.Next()}})), "InvalidParameterValue"},
		{"unassign IPv6: prefix not assigned", of(Request{Action: UnassignIpv6Addresses, IPv6Prefixes: prefixes{six80}}), "InvalidParameterValue"},
		{"unassign IPv6: a part of a prefix", after(Request{Action: AssignIpv6Addresses, IPv6Prefixes: prefixes{six80}},
			of(Request{Action: UnassignIpv6Addresses, IPv6Prefixes: prefixes{cidr("2001:db8:0:100:77::/96")}})), "InvalidParameterValue"},
		{"unassign IPv6: an address of a prefix", after(Request{Action: AssignIpv6Addresses, IPv6Prefixes: prefixes{six80}},
			of(Request{Action: UnassignIpv6Addresses, IPv6: addrs{six80.Addr()}})), "InvalidParameterValue"},
		{"unassign IPv6: nothing", of(Request{Action: UnassignIpv6Addresses}), "MissingParameter"},
		{"unassign IPv6: unknown interface", func(w *world, i InstanceID) Request {
			return Request{Action: UnassignIpv6Addresses, ENI: absent, IPv6: addrs{six}}
		}, "InvalidNetworkInterfaceID.NotFound"},

		{"reassign: another's secondary", after(Request{Action: create, Subnet: plenty, Addresses: addrs{ip("10.0.0.80"), ip("10.0.0.81")}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81"), ip("10.0.0.99")}, AllowReassignment: true})), ""},
		{"reassign: not allowed", after(Request{Action: create, Subnet: plenty, Addresses: addrs{ip("10.0.0.80"), ip("10.0.0.81")}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81")}})), "InvalidParameterValue"},
		{"reassign: another's primary", after(Request{Action: create, Subnet: plenty, Addresses: addrs{ip("10.0.0.80"), ip("10.0.0.81")}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81"), ip("10.0.0.80")}, AllowReassignment: true})), "InvalidParameterValue"},
		{"reassign: another's prefix", after(Request{Action: create, Subnet: plenty, Prefixes: prefixes{block}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.65")}, AllowReassignment: true})), "InvalidParameterValue"},
		{"reassign: one that it has", after(Request{Action: assign, Addresses: addrs{ip("10.0.0.81")}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81")}, AllowReassignment: true})), ""},
		{"reassign: twice", after(Request{Action: create, Subnet: plenty, Addresses: addrs{ip("10.0.0.80"), ip("10.0.0.81")}},
			of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81"), ip("10.0.0.81")}, AllowReassignment: true})), "InvalidParameterValue"},
		{"reassign: above the limit", after(Request{Action: create, Subnet: plenty, Addresses: addrs{ip("10.0.0.80"), ip("10.0.0.81")}},
			after(Request{Action: assign, SecondaryCount: 9}, of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81")}, AllowReassignment: true}))), "PrivateIpAddressLimitExceeded"},
		{"reassign: just given back", func(w *world, i InstanceID) Request {
			w.cfg.Lag.FreedAddress = Always(2 * time.Second)
			r := of(Request{Action: assign, Addresses: addrs{ip("10.0.0.81")}, AllowReassignment: true})(w, i)
			w.do(r)
			w.do(Request{Action: unassign, ENI: r.ENI, Addresses: addrs{ip("10.0.0.81")}})
			return r
		}, "InvalidParameterValue"},
		{"reassign: outside the subnet", of(Request{Action: assign, Addresses: addrs{ip("10.0.2.9")}, AllowReassignment: true}), "InvalidParameterValue"},
	})
}

// fill6 gives all /80s of plenty that can be given away to a third party.
func (w *world) fill6() {
	for b := 1; b < 1<<16-1; b++ {
		if six := &w.subnets[0].six; six.blockFree(uint16(b)) {
			six.takeBlock(uint16(b), addressThirdParty)
		}
	}
}
