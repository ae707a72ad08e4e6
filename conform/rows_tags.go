package conform

import (
	"slices"
	"strconv"
)

func tagRows() []Row {
	shown := func(t *try, id, key, value string) {
		t.see(id, consistency, func(e *element) string { return unlike("tag "+key, tagOf(e, key), value) })
	}
	return slices.Concat([]Row{
		{Name: "tags.create", Call: createTags, When: "a new key on an interface", Want: "eventually the tag", Source: api(createTags), run: func(t *try) {
			id := t.eni()
			t.ok(createTags, "ResourceId.1", id, "Tag.1.Key", "k", "Tag.1.Value", "v ü")
			shown(t, id, "k", "v ü")
		}},
		{Name: "tags.overwrite", Call: createTags, When: "a key that is there", Want: "eventually the new value, once", Source: api(createTags), run: func(t *try) {
			id := t.eni()
			t.ok(createTags, "ResourceId.1", id, "Tag.1.Key", "k", "Tag.1.Value", "old")
			t.ok(createTags, "ResourceId.1", id, "Tag.1.Key", "k", "Tag.1.Value", "new")
			shown(t, id, "k", "new")
			t.see(id, consistency, func(e *element) string {
				return unlike("number of tags", strconv.Itoa(len(e.all("tagSet/item"))), "2")
			})
		}},
		{Name: "tags.several", Call: createTags, When: "two interfaces", Want: "eventually the tag on both", Source: api(createTags), run: func(t *try) {
			a, b := t.eni(), t.eni()
			t.ok(createTags, "ResourceId.1", a, "ResourceId.2", b, "Tag.1.Key", "k", "Tag.1.Value", "v")
			shown(t, a, "k", "v")
			shown(t, b, "k", "v")
		}},
		{Name: "tags.one-unknown", Call: createTags, When: "one of two interfaces does not exist", Want: "InvalidNetworkInterfaceID.NotFound, and no tag on the other", Source: errorCodes, run: func(t *try) {
			id := t.eni()
			t.settle()
			t.refused("InvalidNetworkInterfaceID.NotFound", createTags, "ResourceId.1", id, "ResourceId.2", noENI, "Tag.1.Key", "k", "Tag.1.Value", "v")
			t.ok(modifyENI, "NetworkInterfaceId", id, "Description.Value", "later")
			t.is("tag k", tagOf(t.shows(id, "description", "later"), "k"), "")
		}},
		{Name: "tags.no-such-kind", Call: createTags, When: "an identifier of no kind of resource", Want: "InvalidID", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidID|InvalidParameterValue", createTags, "ResourceId.1", "node-1", "Tag.1.Key", "k", "Tag.1.Value", "v")
		}},
		{Name: "tags.none", Call: createTags, When: "no tag", Want: "MissingParameter", Source: common, run: func(t *try) {
			t.refused("MissingParameter", createTags, "ResourceId.1", t.eni())
		}},
		{Name: "tags.of-aws", Call: createTags, When: "a key that begins with aws:", Want: "InvalidParameterValue", Source: tagRules, run: func(t *try) {
			t.refused("InvalidParameterValue", createTags, "ResourceId.1", t.eni(), "Tag.1.Key", "aws:mine", "Tag.1.Value", "v")
		}},
		{Name: "tags.too-many", Call: createTags, When: "a fifty-first tag", Want: "TagLimitExceeded", Source: tagRules, run: func(t *try) {
			pairs := []string{"ResourceId.1", t.eni()}
			for k := range 50 { // and tagKey
				n := strconv.Itoa(k + 1)
				pairs = append(pairs, "Tag."+n+".Key", "k"+n, "Tag."+n+".Value", "v")
			}
			t.refused("TagLimitExceeded", createTags, pairs...)
		}},
		{Name: "tags.as-many", Call: createTags, When: "a fiftieth tag", Want: "success", Source: tagRules, run: func(t *try) {
			pairs := []string{"ResourceId.1", t.eni()}
			for k := range 49 {
				n := strconv.Itoa(k + 1)
				pairs = append(pairs, "Tag."+n+".Key", "k"+n, "Tag."+n+".Value", "v")
			}
			t.ok(createTags, pairs...)
		}},
		{Name: "tags.delete", Call: deleteTags, When: "a key without a value", Want: "eventually no such tag, whatever its value was", Source: api(deleteTags), run: func(t *try) {
			id := t.eni("TagSpecification.1.Tag.2.Key", "k", "TagSpecification.1.Tag.2.Value", "v")
			shown(t, id, "k", "v")
			t.ok(deleteTags, "ResourceId.1", id, "Tag.1.Key", "k")
			shown(t, id, "k", "")
		}},
		{Name: "tags.delete-value", Call: deleteTags, When: "a key with the tag's value", Want: "eventually no such tag", Source: api(deleteTags), run: func(t *try) {
			id := t.eni("TagSpecification.1.Tag.2.Key", "k", "TagSpecification.1.Tag.2.Value", "v")
			shown(t, id, "k", "v")
			t.ok(deleteTags, "ResourceId.1", id, "Tag.1.Key", "k", "Tag.1.Value", "v")
			shown(t, id, "k", "")
		}},
		{Name: "tags.delete-other-value", Call: deleteTags, When: "a key with another value than the tag's", Want: "success, and the tag stays", Source: api(deleteTags), run: func(t *try) {
			id := t.eni("TagSpecification.1.Tag.2.Key", "k", "TagSpecification.1.Tag.2.Value", "v")
			t.ok(deleteTags, "ResourceId.1", id, "Tag.1.Key", "k", "Tag.1.Value", "other")
			t.ok(modifyENI, "NetworkInterfaceId", id, "Description.Value", "later")
			t.is("tag k", tagOf(t.shows(id, "description", "later"), "k"), "v")
		}},
		{Name: "tags.dry-run", Call: createTags, When: "DryRun", Want: "DryRunOperation", Source: common, run: func(t *try) {
			t.refused("DryRunOperation", createTags, "ResourceId.1", t.eni(), "Tag.1.Key", "k", "Tag.1.Value", "v", "DryRun", "true")
		}},
	}, runRows())
}

// small is the type that instances are started with: it is cheap.
const small = "t3.medium"

func runRows() []Row {
	return []Row{
		{Name: "run.running", Call: runInstances, When: "one instance in the subnet", Want: "pending, then running with a primary interface", Source: api(runInstances), Marks: Costly, run: func(t *try) {
			r := t.ok(runInstances, t.launch(1, 1)...)
			t.is("instanceState/name", r.say("instancesSet/item/instanceState/name"), "pending")
			i := t.running(r.say("instancesSet/item/instanceId"))
			t.is("interfaces", strconv.Itoa(len(i.all("networkInterfaceSet/item"))), "1")
			t.is("subnetId", i.say("subnetId"), t.subnet)
		}},
		{Name: "run.count", Call: runInstances, When: "MinCount 1 and MaxCount 2", Want: "two instances of one reservation", Source: api(runInstances), Marks: Costly, run: func(t *try) {
			t.is("number of instances", strconv.Itoa(len(t.ok(runInstances, t.launch(1, 2)...).all("instancesSet/item"))), "2")
		}},
		{Name: "run.min-above-max", Call: runInstances, When: "MinCount 2 and MaxCount 1", Want: "InvalidParameterValue|InvalidParameterCombination", Source: api(runInstances), Marks: Costly, run: func(t *try) {
			t.refused("InvalidParameterValue|InvalidParameterCombination", runInstances, t.launch(2, 1)...)
		}},
		{Name: "run.token-again", Call: runInstances, When: "the same ClientToken and parameters twice", Want: "one instance", Source: idempotency, Marks: Costly, run: func(t *try) {
			pairs := append(t.launch(1, 1), "ClientToken", t.unique())
			a := t.ok(runInstances, pairs...).say("instancesSet/item/instanceId")
			t.is("the second instanceId", t.ok(runInstances, pairs...).say("instancesSet/item/instanceId"), a)
		}},
		{Name: "run.token-other", Call: runInstances, When: "a ClientToken of other parameters", Want: "IdempotentParameterMismatch", Source: idempotency, Marks: Costly, run: func(t *try) {
			token := t.unique()
			t.ok(runInstances, append(t.launch(1, 1), "ClientToken", token)...)
			t.refused("IdempotentParameterMismatch", runInstances, append(t.launch(1, 2), "ClientToken", token)...)
		}},
		{Name: "run.tags", Call: runInstances, When: "TagSpecification.1 for instance", Want: "eventually the tag on the instance", Source: tagRules, Marks: Costly, run: func(t *try) {
			id := t.ok(runInstances, t.launch(1, 1)...).say("instancesSet/item/instanceId")
			t.is("tag", tagOf(t.running(id), tagKey), t.tag())
		}},
		{Name: "run.unknown-subnet", Call: runInstances, When: "a subnet that does not exist", Want: "InvalidSubnetID.NotFound", Source: errorCodes, Marks: Costly, run: func(t *try) {
			t.refused("InvalidSubnetID.NotFound", runInstances, append(t.launch(1, 1), "SubnetId", noSubnet)...)
		}},
		{Name: "run.dry-run", Call: runInstances, When: "DryRun", Want: "DryRunOperation", Source: common, Marks: Costly, run: func(t *try) {
			t.refused("DryRunOperation", runInstances, append(t.launch(1, 1), "DryRun", "true")...)
		}},
		{Name: "stop.state", Call: stopInstances, When: "a running instance", Want: "stopping, previously running; eventually stopped, with its interface", Source: api(stopInstances), Marks: Costly, run: func(t *try) {
			id := t.start()
			eni := t.running(id).say("networkInterfaceSet/item/networkInterfaceId")
			r := t.ok(stopInstances, "InstanceId.1", id)
			t.is("previousState", r.say("instancesSet/item/previousState/name"), "running")
			t.is("currentState", r.say("instancesSet/item/currentState/name"), "stopping")
			t.is("networkInterfaceId", t.state(id, "stopped").say("networkInterfaceSet/item/networkInterfaceId"), eni)
		}},
		{Name: "stop.terminated", Call: stopInstances, When: "the instance is terminated", Want: "IncorrectInstanceState", Source: errorCodes, Marks: Costly, run: func(t *try) {
			id := t.start()
			t.ok(terminateInstances, "InstanceId.1", id)
			t.state(id, "terminated")
			t.refused("IncorrectInstanceState", stopInstances, "InstanceId.1", id)
		}},
		{Name: "start.state", Call: startInstances, When: "a stopped instance", Want: "pending, previously stopped; eventually running", Source: api(startInstances), Marks: Costly, run: func(t *try) {
			id := t.start()
			t.ok(stopInstances, "InstanceId.1", id)
			t.state(id, "stopped")
			r := t.ok(startInstances, "InstanceId.1", id)
			t.is("previousState", r.say("instancesSet/item/previousState/name"), "stopped")
			t.is("currentState", r.say("instancesSet/item/currentState/name"), "pending")
			t.running(id)
		}},
		{Name: "start.running", Call: startInstances, When: "a running instance", Want: "success, and it runs on", Source: api(startInstances), Marks: Costly, run: func(t *try) {
			t.is("currentState", t.ok(startInstances, "InstanceId.1", t.start()).say("instancesSet/item/currentState/name"), "running")
		}},
		{Name: "terminate.state", Call: terminateInstances, When: "a running instance", Want: "shutting-down, previously running; eventually terminated", Source: api(terminateInstances), Marks: Costly, run: func(t *try) {
			id := t.start()
			r := t.ok(terminateInstances, "InstanceId.1", id)
			t.is("previousState", r.say("instancesSet/item/previousState/name"), "running")
			t.is("currentState", r.say("instancesSet/item/currentState/name"), "shutting-down")
			t.state(id, "terminated")
		}},
		{Name: "terminate.takes-primary", Call: terminateInstances, When: "a running instance", Want: "its primary interface is eventually gone", Source: usingENI, Marks: Costly, run: func(t *try) {
			id := t.start()
			eni := t.running(id).say("networkInterfaceSet/item/networkInterfaceId")
			t.holds(eni != "", "the instance's primary interface: expected one, found none")
			t.ok(terminateInstances, "InstanceId.1", id)
			t.state(id, "terminated")
			t.gone(eni)
		}},
		{Name: "terminate.leaves-others", Call: terminateInstances, When: "an attached interface without deleteOnTermination", Want: "it stays, eventually available", Source: usingENI, Marks: Costly, run: func(t *try) {
			id, eni := t.start(), t.eni()
			t.attachTo(id, eni, 1)
			t.attached(eni)
			t.ok(terminateInstances, "InstanceId.1", id)
			t.available(eni)
		}},
		{Name: "terminate.takes-marked", Call: terminateInstances, When: "an attached interface with deleteOnTermination", Want: "it is eventually gone", Source: usingENI, Marks: Costly, run: func(t *try) {
			id, eni := t.start(), t.eni()
			attachment := t.attachTo(id, eni, 1)
			t.attached(eni)
			t.ok(modifyENI, "NetworkInterfaceId", eni, "Attachment.AttachmentId", attachment, "Attachment.DeleteOnTermination", "true")
			t.ok(terminateInstances, "InstanceId.1", id)
			t.state(id, "terminated")
			t.gone(eni)
		}},
		{Name: "terminate.twice", Call: terminateInstances, When: "the instance is terminated", Want: "success: the call is idempotent", Source: api(terminateInstances), Marks: Costly, run: func(t *try) {
			id := t.start()
			t.ok(terminateInstances, "InstanceId.1", id)
			t.state(id, "terminated")
			t.is("currentState", t.ok(terminateInstances, "InstanceId.1", id).say("instancesSet/item/currentState/name"), "terminated")
		}},
		{Name: "terminate.no-attach", Call: attachENI, When: "the instance is terminated", Want: "IncorrectInstanceState|IncorrectState|InvalidInstanceID.NotFound", Source: errorCodes, Marks: Costly, run: func(t *try) {
			id := t.start()
			t.ok(terminateInstances, "InstanceId.1", id)
			t.state(id, "terminated")
			t.refused("IncorrectInstanceState|IncorrectState|InvalidInstanceID.NotFound", attachENI, "NetworkInterfaceId", t.eni(), "InstanceId", id, "DeviceIndex", "1")
		}},
		{Name: "terminate.unknown", Call: terminateInstances, When: "an instance that does not exist", Want: "InvalidInstanceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.NotFound", terminateInstances, "InstanceId.1", noInstance)
		}},
		{Name: "reboot.unknown", Call: rebootInstances, When: "an instance that does not exist", Want: "InvalidInstanceID.NotFound", Source: errorCodes, run: func(t *try) {
			t.refused("InvalidInstanceID.NotFound", rebootInstances, "InstanceId.1", noInstance)
		}},
		{Name: "reboot.running", Call: rebootInstances, When: "a running instance", Want: "success, and it stays running", Source: api(rebootInstances), Marks: Costly, run: func(t *try) {
			id := t.start()
			t.ok(rebootInstances, "InstanceId.1", id)
			t.running(id)
		}},
	}
}

// launch are the parameters that start instances.
func (t *try) launch(least, most int) []string {
	return append(t.tagged("instance"), "ImageId", t.Image, "InstanceType", small, "SubnetId", t.subnet,
		"MinCount", strconv.Itoa(least), "MaxCount", strconv.Itoa(most))
}

// start is an instance that runs.
func (t *try) start() string {
	id := t.ok(runInstances, t.launch(1, 1)...).say("instancesSet/item/instanceId")
	t.running(id)
	return id
}

func (t *try) running(id string) *element { return t.state(id, "running") }

// state waits until an instance is in a state.
func (t *try) state(id, state string) (i *element) {
	t.eventually(transition, func() string {
		i = t.ok(describeInstances, "InstanceId.1", id).get("reservationSet/item/instancesSet/item")
		return unlike("state", i.say("instanceState/name"), state)
	})
	return i
}
