package conform

import (
	"slices"
	"strconv"
)

func attachRows() []Row {
	return []Row{
		{Name: "attach.attached", Call: attachENI, When: "an available interface and a free device index", Want: "eventually in-use and attached", Source: usingENI, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.shows(id, "status", "in-use")
		}},
		{Name: "attach.under-way", Call: attachENI, When: "described right after the answer", Want: "status in-use; the attachment attaching or attached", Source: "NetworkInterfaceAttachment (API reference)", Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attachTo(t.instance, id, t.freeIndex())
			e := t.see(id, consistency, func(e *element) string { return unlike("status", e.say("status"), "in-use") })
			s := e.say("attachment/status")
			t.holds(s == "attaching" || s == "attached", "attachment's status: expected attaching or attached, found %s", quote(s))
		}},
		{Name: "attach.described", Call: attachENI, When: "the interface is described", Want: "instance, device index and attachment as asked and answered", Source: api(attachENI), Marks: Attaches, run: func(t *try) {
			id, index := t.eni(), t.freeIndex()
			attachment := t.attachTo(t.instance, id, index)
			e := t.attached(id).get("attachment")
			t.is("attachmentId", e.say("attachmentId"), attachment)
			t.is("instanceId", e.say("instanceId"), t.instance)
			t.is("deviceIndex", e.say("deviceIndex"), strconv.Itoa(index))
		}},
		{Name: "attach.in-instance", Call: attachENI, When: "the instance is described", Want: "eventually the interface at its device index", Source: api(describeInstances), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.eventually(consistency, func() string {
				for _, e := range t.myInterfaces() {
					if e.say("networkInterfaceId") == id {
						return unlike("deviceIndex", e.say("attachment/deviceIndex"), strconv.Itoa(t.lastIndex))
					}
				}
				return "the instance's interfaces: expected " + id + " among them, found it missing"
			})
		}},
		{Name: "attach.kept", Call: attachENI, When: "nothing is said about termination", Want: "deleteOnTermination false", Source: api(modifyENI), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.shows(id, "attachment/deleteOnTermination", "false")
		}},
		{Name: "attach.index-in-use", Call: attachENI, When: "another interface has the device index", Want: "InvalidParameterValue", Source: errorCodes, Marks: Attaches, run: func(t *try) {
			a, b, index := t.eni(), t.eni(), t.freeIndex()
			t.attachTo(t.instance, a, index)
			t.attached(a)
			t.refused("InvalidParameterValue", attachENI, "NetworkInterfaceId", b, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(index))
		}},
		{Name: "attach.index-zero", Call: attachENI, When: "device index 0, which the primary interface has", Want: "InvalidParameterValue", Source: usingENI, Marks: Attaches, run: func(t *try) {
			t.refused("InvalidParameterValue", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", t.instance, "DeviceIndex", "0")
		}},
		{Name: "attach.index-while-attaching", Call: attachENI, When: "an interface that is still attaching has the device index", Want: "InvalidParameterValue", Source: errorCodes, Marks: Attaches, run: func(t *try) {
			a, b, index := t.eni(), t.eni(), t.freeIndex()
			t.attachTo(t.instance, a, index)
			t.refused("InvalidParameterValue", attachENI, "NetworkInterfaceId", b, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(index))
			t.attached(a)
		}},
		{Name: "attach.index-hole", Call: attachENI, When: "a device index above the next free one", Want: "that index", Source: usingENI, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attachTo(t.instance, id, t.freeIndex()+1)
			t.is("deviceIndex", t.attached(id).say("attachment/deviceIndex"), strconv.Itoa(t.lastIndex+1))
		}},
		{Name: "attach.twice", Call: attachENI, When: "the interface is attached", Want: "InvalidNetworkInterface.InUse", Source: errorCodes, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.attach(id)
			t.refused("InvalidNetworkInterface.InUse", attachENI, "NetworkInterfaceId", id, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
		}},
		{Name: "attach.unknown-interface", Call: attachENI, When: "an interface that does not exist", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, Marks: Attaches, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceID.NotFound", attachENI, "NetworkInterfaceId", noENI, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
		}},
		{Name: "attach.unknown-instance", Call: attachENI, When: "an instance that does not exist", Want: "InvalidInstanceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.NotFound", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", noInstance, "DeviceIndex", "1")
		}},
		{Name: "attach.malformed-instance", Call: attachENI, When: "an instance identifier that is no i-…", Want: "InvalidInstanceID.Malformed", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.Malformed", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", "node-1", "DeviceIndex", "1")
		}},
		{Name: "attach.no-index", Call: attachENI, When: "no DeviceIndex", Want: "MissingParameter", Source: common, Marks: Attaches, run: func(t *try) {
			t.refused("MissingParameter", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", t.instance)
		}},
		{Name: "attach.negative-index", Call: attachENI, When: "DeviceIndex -1", Want: "InvalidParameterValue", Source: common, Marks: Attaches, run: func(t *try) {
			t.refused("InvalidParameterValue", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", t.instance, "DeviceIndex", "-1")
		}},
		{Name: "attach.too-many", Call: attachENI, When: "the instance has as many interfaces as its type takes", Want: "AttachmentLimitExceeded", Source: perType, Marks: Attaches, run: func(t *try) {
			free := t.most - len(t.myInterfaces())
			if t.most > 4 {
				t.skip("%s takes %d interfaces: an instance with a smaller type is filled faster", t.kind, t.most)
			}
			for range max(0, free) {
				t.attach(t.eni())
			}
			t.refused("AttachmentLimitExceeded", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
		}},
		{Name: "attach.too-many-addresses", Call: attachENI, When: "an interface with one address more than the type takes", Want: "InvalidInterface.IpAddressLimitExceeded|PrivateIpAddressLimitExceeded", Source: "cilium/cilium#9730", Marks: Attaches,
			run: func(t *try) {
				if t.perENI >= 50 {
					t.skip("%s takes %d addresses per interface: more cannot be asked for", t.kind, t.perENI)
				}
				id := t.eni("SecondaryPrivateIpAddressCount", strconv.Itoa(t.perENI))
				t.refused("InvalidInterface.IpAddressLimitExceeded|PrivateIpAddressLimitExceeded", attachENI, "NetworkInterfaceId", id, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
			}},
		{Name: "attach.all-addresses", Call: attachENI, When: "an interface with as many addresses as the type takes", Want: "success", Source: perType, Marks: Attaches, run: func(t *try) {
			t.attach(t.eni("SecondaryPrivateIpAddressCount", strconv.Itoa(t.perENI-1)))
		}},
		{Name: "attach.too-many-prefixes", Call: attachENI, When: "an interface whose address and prefixes are one more than the type takes", Want: "InvalidInterface.IpAddressLimitExceeded|PrivateIpAddressLimitExceeded", Source: prefixes, Marks: Attaches,
			run: func(t *try) {
				if t.perENI > 16 {
					t.skip("%s takes %d addresses per interface: so many prefixes may not be free", t.kind, t.perENI)
				}
				id := t.eni("Ipv4PrefixCount", strconv.Itoa(t.perENI))
				t.refused("InvalidInterface.IpAddressLimitExceeded|PrivateIpAddressLimitExceeded", attachENI, "NetworkInterfaceId", id, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
			}},
		{Name: "attach.other-zone", Call: attachENI, When: "an interface of another availability zone", Want: "InvalidParameterValue|InvalidParameterCombination", Source: usingENI, Marks: Attaches, run: func(t *try) {
			id := t.ok(createENI, t.in(t.elsewhere())...).say("networkInterface/networkInterfaceId")
			t.refused("InvalidParameterValue|InvalidParameterCombination", attachENI, "NetworkInterfaceId", id, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()))
		}},
		{Name: "attach.card", Call: attachENI, When: "NetworkCardIndex 1 on a type with several cards", Want: "the attachment on that card", Source: multiCard, Marks: Attaches, run: func(t *try) {
			i := t.withCards(func(n int) bool { return n > 1 })
			id := t.eni()
			t.attachTo(i, id, 1, "NetworkCardIndex", "1")
			t.is("networkCardIndex", t.attached(id).say("attachment/networkCardIndex"), "1")
		}},
		{Name: "attach.no-such-card", Call: attachENI, When: "NetworkCardIndex 1 on a type with one card", Want: "InvalidParameterValue|InvalidParameterCombination", Source: multiCard, Marks: Attaches, run: func(t *try) {
			i := t.withCards(func(n int) bool { return n == 1 })
			t.refused("InvalidParameterValue|InvalidParameterCombination", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", i, "DeviceIndex", strconv.Itoa(t.freeIndex()), "NetworkCardIndex", "1")
		}},
		{Name: "attach.dry-run", Call: attachENI, When: "DryRun", Want: "DryRunOperation, and the interface stays available", Source: common, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.refused("DryRunOperation", attachENI, "NetworkInterfaceId", id, "InstanceId", t.instance, "DeviceIndex", strconv.Itoa(t.freeIndex()), "DryRun", "true")
			t.ok(deleteENI, "NetworkInterfaceId", id)
		}},
	}
}

func detachRows() []Row {
	return []Row{
		{Name: "detach.available", Call: detachENI, When: "an attached interface", Want: "eventually available, with no attachment", Source: api(detachENI), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.ok(detachENI, "AttachmentId", t.attach(id))
			t.available(id)
		}},
		{Name: "detach.under-way", Call: detachENI, When: "described right after the answer", Want: "in-use and detaching, or available already", Source: "NetworkInterfaceAttachment (API reference)", Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.ok(detachENI, "AttachmentId", t.attach(id))
			t.see(id, consistency, func(e *element) string {
				now := e.say("status") + " " + e.say("attachment/status")
				t.holds(now == "in-use attached" || now == "in-use detaching" || now == "available ", "status and attachment's status: expected in-use and detaching, found %s", now)
				return map[bool]string{true: "attachment's status: expected detaching, found attached"}[now == "in-use attached"] // an old answer
			})
		}},
		{Name: "detach.keeps-addresses", Call: detachENI, When: "an attached interface with three addresses", Want: "available with the same three", Source: usingENI, Marks: Attaches, run: func(t *try) {
			e := t.create("SecondaryPrivateIpAddressCount", "2")
			id := e.say("networkInterfaceId")
			t.ok(detachENI, "AttachmentId", t.attach(id))
			t.is("addresses", quoteAll(addresses(t.available(id))), quoteAll(addresses(e)))
		}},
		{Name: "detach.frees-index", Call: attachENI, When: "the device index of an interface that was detached", Want: "success", Source: usingENI, Marks: Attaches, run: func(t *try) {
			a, b, index := t.eni(), t.eni(), t.freeIndex()
			first := t.attachTo(t.instance, a, index)
			t.attached(a)
			t.ok(detachENI, "AttachmentId", first)
			t.available(a)
			t.attachTo(t.instance, b, index)
			t.attached(b)
		}},
		{Name: "detach.new-attachment", Call: attachENI, When: "an interface that was detached is attached again", Want: "an attachment with another identifier", Source: api(attachENI), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			first := t.attach(id)
			t.ok(detachENI, "AttachmentId", first)
			t.available(id)
			second := t.attach(id)
			t.holds(t.err != nil || first != second, "attachments: found %s twice", first)
		}},
		{Name: "detach.not-in-instance", Call: detachENI, When: "the instance is described after it", Want: "eventually without the interface", Source: api(describeInstances), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.ok(detachENI, "AttachmentId", t.attach(id))
			t.available(id)
			t.eventually(consistency, func() string {
				for _, e := range t.myInterfaces() {
					if e.say("networkInterfaceId") == id {
						return "the instance's interfaces: expected " + id + " not to be among them"
					}
				}
				return ""
			})
		}},
		{Name: "detach.primary", Call: detachENI, When: "the attachment at device index 0", Want: "OperationNotPermitted", Source: usingENI, Marks: Attaches, run: func(t *try) {
			for _, e := range t.myInterfaces() {
				if e.say("attachment/deviceIndex") == "0" {
					t.refused("OperationNotPermitted", detachENI, "AttachmentId", e.say("attachment/attachmentId"), "DryRun", "false")
					return
				}
			}
			t.differ("DescribeInstances: expected an interface at device index 0 of %s, found none", t.instance)
		}},
		{Name: "detach.twice", Call: detachENI, When: "the attachment has ended", Want: "InvalidAttachmentID.NotFound", Source: errorCodes, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			attachment := t.attach(id)
			t.ok(detachENI, "AttachmentId", attachment)
			t.available(id)
			t.refused("InvalidAttachmentID.NotFound", detachENI, "AttachmentId", attachment)
		}},
		{Name: "detach.unknown", Call: detachENI, When: "an attachment that does not exist", Want: "InvalidAttachmentID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidAttachmentID.NotFound", detachENI, "AttachmentId", noAttachment)
		}},
		{Name: "detach.no-attachment", Call: detachENI, When: "no AttachmentId", Want: "MissingParameter", Source: common, run: func(t *try) {
			t.refused("MissingParameter", detachENI)
		}},
		{Name: "detach.dry-run", Call: detachENI, When: "DryRun", Want: "DryRunOperation, and the interface stays attached", Source: common, Marks: Attaches, run: func(t *try) {
			id := t.eni()
			t.refused("DryRunOperation", detachENI, "AttachmentId", t.attach(id), "DryRun", "true")
			t.refused("InvalidParameterValue|InvalidNetworkInterface.InUse", deleteENI, "NetworkInterfaceId", id)
		}},
	}
}

func modifyRows() []Row {
	return []Row{
		{Name: "modify.description", Call: modifyENI, When: "Description.Value", Want: "eventually the new text", Source: api(modifyENI), run: func(t *try) {
			id := t.eni("Description", "old")
			t.ok(modifyENI, "NetworkInterfaceId", id, "Description.Value", "new")
			t.shows(id, "description", "new")
		}},
		{Name: "modify.no-description", Call: modifyENI, When: "Description.Value is empty", Want: "eventually no text", Source: api(modifyENI), run: func(t *try) {
			id := t.eni("Description", "old")
			t.shows(id, "description", "old")
			t.ok(modifyENI, "NetworkInterfaceId", id, "Description.Value", "")
			t.shows(id, "description", "")
		}},
		{Name: "modify.groups", Call: modifyENI, When: "SecurityGroupId of another group", Want: "eventually that one, instead of the old ones", Source: api(modifyENI), run: func(t *try) {
			g := t.group()
			id := t.eni()
			t.ok(modifyENI, "NetworkInterfaceId", id, "SecurityGroupId.1", g)
			t.see(id, consistency, func(e *element) string { return unlike("groups", quoteAll(e.texts("groupSet/item/groupId")), g) })
		}},
		{Name: "modify.unknown-group", Call: modifyENI, When: "a security group that does not exist", Want: "InvalidGroup.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidGroup.NotFound", modifyENI, "NetworkInterfaceId", t.eni(), "SecurityGroupId.1", noGroup)
		}},
		{Name: "modify.source-dest-check", Call: modifyENI, When: "SourceDestCheck.Value false", Want: "eventually false", Source: api(modifyENI), run: func(t *try) {
			id := t.eni()
			t.ok(modifyENI, "NetworkInterfaceId", id, "SourceDestCheck.Value", "false")
			t.shows(id, "sourceDestCheck", "false")
		}},
		{Name: "modify.delete-on-termination", Call: modifyENI, When: "Attachment.DeleteOnTermination true of an attached interface", Want: "eventually true", Source: api(modifyENI), Marks: Attaches, run: func(t *try) {
			id := t.eni()
			attachment := t.attach(id)
			t.ok(modifyENI, "NetworkInterfaceId", id, "Attachment.AttachmentId", attachment, "Attachment.DeleteOnTermination", "true")
			t.shows(id, "attachment/deleteOnTermination", "true")
		}},
		{Name: "modify.unknown-attachment", Call: modifyENI, When: "an Attachment that the interface does not have", Want: "InvalidAttachmentID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidAttachmentID.NotFound", modifyENI, "NetworkInterfaceId", t.eni(), "Attachment.AttachmentId", noAttachment, "Attachment.DeleteOnTermination", "true")
		}},
		{Name: "modify.two", Call: modifyENI, When: "Description.Value with SourceDestCheck.Value", Want: "InvalidParameterCombination: one attribute at a time", Source: api(modifyENI), run: func(t *try) {
			t.refused("InvalidParameterCombination", modifyENI, "NetworkInterfaceId", t.eni(), "Description.Value", "new", "SourceDestCheck.Value", "false")
		}},
		{Name: "modify.none", Call: modifyENI, When: "no attribute", Want: "InvalidParameterCombination|MissingParameter", Source: common, run: func(t *try) {
			t.refused("InvalidParameterCombination|MissingParameter", modifyENI, "NetworkInterfaceId", t.eni())
		}},
		{Name: "modify.unknown", Call: modifyENI, When: "an interface that does not exist", Want: "InvalidNetworkInterfaceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidNetworkInterfaceID.NotFound", modifyENI, "NetworkInterfaceId", noENI, "Description.Value", "new")
		}},
		{Name: "modify.dry-run", Call: modifyENI, When: "DryRun", Want: "DryRunOperation", Source: common, run: func(t *try) {
			t.refused("DryRunOperation", modifyENI, "NetworkInterfaceId", t.eni(), "Description.Value", "new", "DryRun", "true")
		}},
	}
}

// myInterfaces are those of the instance, as DescribeInstances shows them.
func (t *try) myInterfaces() []*element {
	return t.ok(describeInstances, "InstanceId.1", t.instance).all("reservationSet/item/instancesSet/item/networkInterfaceSet/item")
}

// withCards is an instance in the subnet's zone and VPC with such a number of network cards.
func (t *try) withCards(fits func(n int) bool) string {
	k := slices.IndexFunc(t.instances, func(i *element) bool {
		if i.say("placement/availabilityZone") != t.zone || i.say("vpcId") != t.vpc || t.Instance != "" && i.say("instanceId") != t.instance {
			return false
		}
		n, err := strconv.Atoi(t.ok(describeTypes, "InstanceType.1", i.say("instanceType")).say("instanceTypeSet/item/networkInfo/maximumNetworkCards"))
		return err == nil && fits(n)
	})
	if k < 0 {
		t.skip("no instance has a type with such a number of network cards")
		return noInstance
	}
	return t.instances[k].say("instanceId")
}
