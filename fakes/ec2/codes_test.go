package ec2

import (
	"net/netip"
	"testing"
	"time"
)

// codeRow is a world with one m5.large (3 interfaces of 10 addresses), prepared and then asked.
type codeRow struct {
	name string
	req  func(w *world, i InstanceID) Request
	code string
}

// plain is a request that needs no preparation, and of one about the instance's primary interface.
func plain(r Request) func(*world, InstanceID) Request {
	return func(*world, InstanceID) Request { return r }
}

func of(r Request) func(*world, InstanceID) Request {
	return func(w *world, i InstanceID) Request {
		r.ENI = w.AttachedENIs(i)[0]
		return r
	}
}

const absent = ENIID("eni-00000000000000000")

// One row per way to be refused that the EC2 API reference names, and the successes next to them.
func TestRefusalsHaveEC2sCodes(t *testing.T) {
	checkCodes(t, []codeRow{
		{"no action", plain(Request{}), "InvalidAction"},
		{"action beyond the last", plain(Request{Action: ActionCount}), "InvalidAction"},

		{"create", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecondaryCount: 9, SecurityGroups: []string{"sg-2"}}
		}, ""},
		{"create: no subnet", plain(Request{Action: CreateNetworkInterface}), "MissingParameter"},
		{"create: unknown subnet", plain(Request{Action: CreateNetworkInterface, Subnet: "subnet-x"}),
			"InvalidSubnetID.NotFound"},
		{"create: all that a /28 has", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: tiny, SecondaryCount: 10}
		}, ""},
		{"create: one more than a /28 has", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: tiny, SecondaryCount: 11}
		}, "InsufficientFreeAddressesInSubnet"},
		{"create: subnet drained by others", func(w *world, i InstanceID) Request {
			w.DrainSubnet(w.now, plenty, 0)
			return Request{Action: CreateNetworkInterface, Subnet: plenty}
		}, "InsufficientFreeAddressesInSubnet"},
		{"create: more than any instance may have on an interface", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecondaryCount: 50}
		}, "PrivateIpAddressLimitExceeded"},
		{"create: more than this instance may have", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecondaryCount: 49}
		}, ""},
		{"create: negative count", plain(Request{Action: CreateNetworkInterface, Subnet: plenty, SecondaryCount: -1}),
			"InvalidParameterValue"},
		{"create: quota", func(w *world, i InstanceID) Request {
			w.cfg.ENIQuota = 1
			return Request{Action: CreateNetworkInterface, Subnet: plenty}
		}, "NetworkInterfaceLimitExceeded"},
		{"create: unknown group", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: []string{"sg-x"}}
		}, "InvalidGroup.NotFound"},
		{"create: malformed group", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: []string{"default"}}
		}, "InvalidGroupId.Malformed"},
		{"create: too many groups", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: w.SecurityGroups()}
		}, "SecurityGroupsPerInterfaceLimitExceeded"},
		{"create: chosen primary", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.77")}, SecondaryCount: 3}
		}, ""},
		{"create: chosen primary is taken", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.4")}}
		}, "InvalidIPAddress.InUse"},
		{"create: chosen secondary is taken", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.77"), ip("10.0.0.4")}}
		}, "InvalidParameterValue"},
		{"create: chosen address is in another subnet", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.1.7")}}
		}, "InvalidParameterValue"},
		{"create: chosen address is reserved", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.2")}}
		}, "InvalidParameterValue"},
		{"create: chosen address twice", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.77"), ip("10.0.0.77")}}
		}, "InvalidParameterValue"},
		{"create: count and secondaries", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Addresses: []netip.Addr{ip("10.0.0.77"), ip("10.0.0.78")}, SecondaryCount: 1}
		}, "InvalidParameterCombination"},
		{"create: AWS's own tag", func(w *world, i InstanceID) Request {
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Tags: []Tag{{"AWS:x", "1"}}}
		}, "InvalidParameterValue"},
		{"create: same token, other parameters", func(w *world, i InstanceID) Request {
			w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t"})
			return Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t", SecondaryCount: 1}
		}, "IdempotentParameterMismatch"},
		{"create: same token, same parameters", func(w *world, i InstanceID) Request {
			w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t"})
			return Request{Action: CreateNetworkInterface, Subnet: plenty, ClientToken: "t"}
		}, ""},

		{"attach", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 9), Instance: i, DeviceIndex: 2}
		}, ""},
		{"attach: nothing", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, Instance: i, DeviceIndex: 1}
		}, "MissingParameter"},
		{"attach: unknown interface", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: absent, Instance: i, DeviceIndex: 1}
		}, "InvalidNetworkInterfaceID.NotFound"},
		{"attach: malformed interface", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: "eni-0zzzzzzzzzzzzzzzz", Instance: i, DeviceIndex: 1}
		}, "InvalidNetworkInterfaceId.Malformed"},
		{"attach: deleted interface", func(w *world, i InstanceID) Request {
			e := w.create(plenty, 0)
			w.do(Request{Action: DeleteNetworkInterface, ENI: e})
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}
		}, "InvalidNetworkInterfaceID.NotFound"},
		{"attach: no instance", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), DeviceIndex: 1}
		}, "MissingParameter"},
		{"attach: unknown instance", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: noInstance, DeviceIndex: 1}
		}, "InvalidInstanceID.NotFound"},
		{"attach: terminated instance", func(w *world, i InstanceID) Request {
			w.Terminate(w.now, i)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, "IncorrectInstanceState"},
		{"attach: already attaching", func(w *world, i InstanceID) Request {
			e := w.create(plenty, 0)
			w.attach(e, i, 1)
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 2}
		}, "InvalidNetworkInterface.InUse"},
		{"attach: still detaching", func(w *world, i InstanceID) Request {
			e, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a})
			return Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 2}
		}, "InvalidNetworkInterface.InUse"},
		{"attach: other zone", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(far, 0), Instance: i, DeviceIndex: 1}
		}, "InvalidParameterValue"},
		{"attach: device 0", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i}
		}, "InvalidParameterValue"},
		{"attach: negative device", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: -1}
		}, "InvalidParameterValue"},
		{"attach: device of a detaching interface", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a})
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, "InvalidParameterValue"},
		{"attach: device that a forced detach left", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
			w.wait(time.Minute)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, "InvalidParameterValue"},
		{"attach: the same after a reboot", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
			w.wait(time.Minute)
			w.Reboot(w.now, i)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 1}
		}, ""},
		{"attach: fourth interface", func(w *world, i InstanceID) Request {
			w.attach(w.create(plenty, 0), i, 1)
			w.attach(w.create(plenty, 0), i, 2)
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 0), Instance: i, DeviceIndex: 3}
		}, "AttachmentLimitExceeded"},
		{"attach: too many addresses (cilium#9730)", func(w *world, i InstanceID) Request {
			return Request{Action: AttachNetworkInterface, ENI: w.create(plenty, 10), Instance: i, DeviceIndex: 1}
		}, "InvalidInterface.IpAddressLimitExceeded"},

		{"modify", func(w *world, i InstanceID) Request {
			e, a := w.attachedENI(i, 1, 0)
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: e, Attachment: a, DeleteOnTermination: true}
		}, ""},
		{"modify: while attaching", func(w *world, i InstanceID) Request {
			e := w.create(plenty, 0)
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: e, Attachment: w.attach(e, i, 1), DeleteOnTermination: true}
		}, ""},
		{"modify: without the attachment", func(w *world, i InstanceID) Request {
			e, _ := w.attachedENI(i, 1, 0)
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: e, DeleteOnTermination: true}
		}, "InvalidParameterCombination"},
		{"modify: another's attachment", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: w.create(plenty, 0), Attachment: a}
		}, "InvalidAttachmentID.NotFound"},
		{"modify: two attributes", func(w *world, i InstanceID) Request {
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: w.create(plenty, 0), Description: "x", SecurityGroups: []string{"sg-1"}}
		}, "InvalidParameterCombination"},
		{"modify: unknown group", func(w *world, i InstanceID) Request {
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: w.create(plenty, 0), SecurityGroups: []string{"sg-x"}}
		}, "InvalidGroup.NotFound"},
		{"modify: unknown interface", func(w *world, i InstanceID) Request {
			return Request{Action: ModifyNetworkInterfaceAttribute, ENI: absent, Description: "x"}
		}, "InvalidNetworkInterfaceID.NotFound"},

		{"detach", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			return Request{Action: DetachNetworkInterface, Attachment: a}
		}, ""},
		{"detach: nothing", plain(Request{Action: DetachNetworkInterface}), "MissingParameter"},
		{"detach: unknown", plain(Request{Action: DetachNetworkInterface, Attachment: "eni-attach-00000000000000000"}),
			"InvalidAttachmentID.NotFound"},
		{"detach: long done", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a})
			w.wait(time.Minute)
			return Request{Action: DetachNetworkInterface, Attachment: a}
		}, "InvalidAttachmentID.NotFound"},
		{"detach: the primary", func(w *world, i InstanceID) Request {
			return Request{Action: DetachNetworkInterface, Attachment: w.eni(w.AttachedENIs(i)[0]).Attachment}
		}, "OperationNotPermitted"},
		{"detach: the primary, by force", func(w *world, i InstanceID) Request {
			return Request{Action: DetachNetworkInterface, Attachment: w.eni(w.AttachedENIs(i)[0]).Attachment, Force: true}
		}, "OperationNotPermitted"},
		{"detach: still attaching", func(w *world, i InstanceID) Request {
			return Request{Action: DetachNetworkInterface, Attachment: w.attach(w.create(plenty, 0), i, 1)}
		}, "IncorrectState"},
		{"detach: still attaching, by force", func(w *world, i InstanceID) Request {
			return Request{Action: DetachNetworkInterface, Attachment: w.attach(w.create(plenty, 0), i, 1), Force: true}
		}, ""},
		{"detach: twice", func(w *world, i InstanceID) Request {
			_, a := w.attachedENI(i, 1, 0)
			w.do(Request{Action: DetachNetworkInterface, Attachment: a})
			return Request{Action: DetachNetworkInterface, Attachment: a}
		}, "IncorrectState"},

		{"delete", func(w *world, i InstanceID) Request {
			return Request{Action: DeleteNetworkInterface, ENI: w.create(plenty, 0)}
		}, ""},
		{"delete: unknown", plain(Request{Action: DeleteNetworkInterface, ENI: absent}),
			"InvalidNetworkInterfaceID.NotFound"},
		{"delete: attached", func(w *world, i InstanceID) Request {
			e, _ := w.attachedENI(i, 1, 0)
			return Request{Action: DeleteNetworkInterface, ENI: e}
		}, "InvalidParameterValue"},
		{"delete: attaching", func(w *world, i InstanceID) Request {
			e := w.create(plenty, 0)
			w.attach(e, i, 1)
			return Request{Action: DeleteNetworkInterface, ENI: e}
		}, "InvalidParameterValue"},

		{"assign up to the limit", of(Request{Action: AssignPrivateIpAddresses, SecondaryCount: 9}), ""},
		{"assign: one above the limit", of(Request{Action: AssignPrivateIpAddresses, SecondaryCount: 10}),
			"PrivateIpAddressLimitExceeded"},
		{"assign: above the limit in two steps", func(w *world, i InstanceID) Request {
			w.do(Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], SecondaryCount: 9})
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], SecondaryCount: 1}
		}, "PrivateIpAddressLimitExceeded"},
		{"assign: a count near the end of integers", func(w *world, i InstanceID) Request {
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], SecondaryCount: 1<<63 - 1}
		}, "PrivateIpAddressLimitExceeded"},
		{"assign: more than the subnet has", func(w *world, i InstanceID) Request {
			w.DrainSubnet(w.now, plenty, 2)
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], SecondaryCount: 3}
		}, "InsufficientFreeAddressesInSubnet"},
		{"assign: nothing", of(Request{Action: AssignPrivateIpAddresses}), "MissingParameter"},
		{"assign: negative", of(Request{Action: AssignPrivateIpAddresses, SecondaryCount: -1}),
			"InvalidParameterValue"},
		{"assign: count and addresses", func(w *world, i InstanceID) Request {
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], SecondaryCount: 1, Addresses: []netip.Addr{ip("10.0.0.9")}}
		}, "InvalidParameterCombination"},
		{"assign: exactly this one", func(w *world, i InstanceID) Request {
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], Addresses: []netip.Addr{ip("10.0.0.9")}}
		}, ""},
		{"assign: one in use", func(w *world, i InstanceID) Request {
			w.create(plenty, 0)
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], Addresses: []netip.Addr{ip("10.0.0.5")}}
		}, "InvalidParameterValue"},
		{"assign: outside the subnet", func(w *world, i InstanceID) Request {
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], Addresses: []netip.Addr{ip("10.9.0.5")}}
		}, "InvalidParameterValue"},
		{"assign: not an IPv4 address", func(w *world, i InstanceID) Request {
			return Request{Action: AssignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], Addresses: []netip.Addr{{}, ip("::1")}}
		}, "InvalidParameterValue"},
		{"assign: unknown interface", plain(Request{Action: AssignPrivateIpAddresses, ENI: absent, SecondaryCount: 1}),
			"InvalidNetworkInterfaceID.NotFound"},

		{"unassign", func(w *world, i InstanceID) Request {
			e := w.AttachedENIs(i)[0]
			p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 2})
			return Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: p.Assigned}
		}, ""},
		{"unassign: nothing", of(Request{Action: UnassignPrivateIpAddresses}), "MissingParameter"},
		{"unassign: one that is not there", func(w *world, i InstanceID) Request {
			return Request{Action: UnassignPrivateIpAddresses, ENI: w.AttachedENIs(i)[0], Addresses: []netip.Addr{ip("10.0.0.99")}}
		}, "InvalidParameterValue"},
		{"unassign: same offset in another subnet", func(w *world, i InstanceID) Request {
			e := w.AttachedENIs(i)[0]
			w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{ip("10.0.0.9")}})
			return Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{ip("10.0.2.9")}}
		}, "InvalidParameterValue"},
		{"unassign: the same twice", func(w *world, i InstanceID) Request {
			e := w.AttachedENIs(i)[0]
			a := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 1}).Assigned[0]
			return Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{a, a}}
		}, "InvalidParameterValue"},
		{"unassign: the primary", func(w *world, i InstanceID) Request {
			e := w.AttachedENIs(i)[0]
			return Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{w.eni(e).Primary}}
		}, "InvalidParameterValue"},
		{"unassign: unknown interface", func(w *world, i InstanceID) Request {
			return Request{Action: UnassignPrivateIpAddresses, ENI: absent, Addresses: []netip.Addr{ip("10.0.0.9")}}
		}, "InvalidNetworkInterfaceID.NotFound"},

		{"describe interfaces", func(w *world, i InstanceID) Request {
			return Request{Action: DescribeNetworkInterfaces, ENIs: w.AttachedENIs(i)}
		}, ""},
		{"describe interfaces: one of two is unknown", func(w *world, i InstanceID) Request {
			return Request{Action: DescribeNetworkInterfaces, ENIs: append(w.AttachedENIs(i), absent)}
		}, "InvalidNetworkInterfaceID.NotFound"},
		{"describe interfaces: a filter that fits nothing", func(w *world, i InstanceID) Request {
			return Request{Action: DescribeNetworkInterfaces, FilterInstance: "i-0"}
		}, ""},
		{"describe subnets: unknown", plain(Request{Action: DescribeSubnets, Subnet: "subnet-x"}),
			"InvalidSubnetID.NotFound"},
		{"describe types", plain(Request{Action: DescribeInstanceTypes, Types: []string{"m5.large", "t3.nano"}}), ""},
		{"describe types: unknown", func(w *world, i InstanceID) Request {
			return Request{Action: DescribeInstanceTypes, Types: []string{"m5.large", "z9.huge"}}
		}, "InvalidInstanceType"},
		{"dry run", plain(Request{Action: CreateNetworkInterface, Subnet: plenty, DryRun: true}), "DryRunOperation"},
		{"dry run without permission", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: DenyPermission})
			return Request{Action: DescribeSubnets, DryRun: true}
		}, "UnauthorizedOperation"},
		{"describe instances: unknown", plain(Request{Action: DescribeInstances, Instance: noInstance}),
			"InvalidInstanceID.NotFound"},

		{"tags: no resource", plain(Request{Action: CreateTags, Tags: []Tag{{"a", "b"}}}), "MissingParameter"},
		{"tags: none", of(Request{Action: CreateTags}), "MissingParameter"},
		{"tags: empty key", of(Request{Action: CreateTags, Tags: []Tag{{"", "b"}}}), "MissingParameter"},
		{"tags: unknown interface", plain(Request{Action: CreateTags, ENI: absent, Tags: []Tag{{"a", "b"}}}),
			"InvalidNetworkInterfaceID.NotFound"},
		{"tags: too many", func(w *world, i InstanceID) Request {
			var many []Tag
			for k := range 51 {
				many = append(many, Tag{Key: string(rune('A' + k))})
			}
			return Request{Action: CreateTags, ENI: w.AttachedENIs(i)[0], Tags: many}
		}, "TagLimitExceeded"},

		{"fault: permission denied", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: DenyPermission, Action: CreateTags})
			return Request{Action: CreateTags, ENI: w.AttachedENIs(i)[0], Tags: []Tag{{"a", "b"}}}
		}, "UnauthorizedOperation"},
		{"role: not named", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << DescribeInstances})
			return Request{Action: DescribeSubnets}
		}, "UnauthorizedOperation"},
		{"role: named", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << DescribeSubnets})
			return Request{Action: DescribeSubnets}
		}, ""},
		{"role: another's", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << DescribeInstances, Instance: noInstance})
			return Request{Action: DescribeSubnets}
		}, ""},
		{"role: one for everybody takes the place of all", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << DescribeInstances, Instance: i})
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << DescribeSubnets})
			return Request{Action: DescribeSubnets}
		}, ""},
		{"role: may create, and not tag", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1 << CreateNetworkInterface})
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Tags: []Tag{{"a", "b"}}}
		}, "UnauthorizedOperation"},
		{"role: may create and tag", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: AllowOnly, Allow: 1<<CreateNetworkInterface | 1<<CreateTags})
			return Request{Action: CreateNetworkInterface, Subnet: plenty, Tags: []Tag{{"a", "b"}}}
		}, ""},
		{"fault: down", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: Down, Until: time.Second})
			return Request{Action: DescribeSubnets}
		}, "Unavailable"},
		{"fault: down has ended", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: Down, Until: time.Second})
			w.wait(time.Second)
			return Request{Action: DescribeSubnets}
		}, ""},
		{"fault: another instance's", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: Down, Instance: "i-other"})
			return Request{Action: DescribeSubnets, Caller: i}
		}, ""},
		{"fault: any code", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: Fail, Code: "AuthFailure"})
			return Request{Action: DescribeSubnets}
		}, "AuthFailure"},
		{"fault: code left out", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: Fail})
			return Request{Action: DescribeSubnets}
		}, "InternalError"},
		{"fault: somebody's burst", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: ThrottleBurst, Action: DescribeSubnets})
			return Request{Action: DescribeSubnets}
		}, "RequestLimitExceeded"},
		{"fault: delete in use", func(w *world, i InstanceID) Request {
			w.Fault(Fault{Kind: DeleteInUse, Times: 1})
			return Request{Action: DeleteNetworkInterface, ENI: w.create(plenty, 0)}
		}, "InvalidParameterValue"},
	})
}

func checkCodes(t *testing.T, rows []codeRow) {
	t.Helper()
	status := map[string]int{
		"": 200, "RequestLimitExceeded": 503, "Unavailable": 503, "InternalError": 500, "InsufficientInstanceCapacity": 500,
		"UnauthorizedOperation": 403, "AuthFailure": 401, "DryRunOperation": 412,
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			r := row.req(w, w.launch("m5.large", plenty))
			w.Advance(w.now)
			before := accounts(w.Cloud)
			p := w.Serve(w.now, &r)
			if p.Code != row.code {
				t.Fatalf("code %q (%s), want %q", p.Code, p.Message, row.code)
			}
			want, ok := status[row.code]
			if !ok {
				want = 400
			}
			if p.HTTP != want {
				t.Errorf("HTTP %d, want %d", p.HTTP, want)
			}
			if (p.Message == "") != (p.Code == "") {
				t.Errorf("message %q for code %q", p.Message, p.Code)
			}
			if p.Code != "" && accounts(w.Cloud) != before {
				t.Errorf("a refused request changed something:\nbefore %s\nafter  %s", before, accounts(w.Cloud))
			}
			balance(t, w.Cloud)
		})
	}
}
