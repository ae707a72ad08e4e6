package ec2

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// run launches instances in the large subnet of zone a.
func (w *world) run(least, most int) []Instance {
	w.t.Helper()
	return w.do(runOf(plenty, least, most)).Instances
}

// described is what DescribeInstances says of an instance.
func (w *world) described(id InstanceID) Instance {
	w.t.Helper()
	return w.do(Request{Action: DescribeInstances, Instances: []InstanceID{id}}).Instances[0]
}

// kinds are the kinds of what happened since they were last asked for.
func (w *world) kinds() string {
	var out []string
	for _, e := range w.Events() {
		out = append(out, e.Kind.String())
	}
	return strings.Join(out, " ")
}

// From RunInstances to running: the primary interface is attaching for as long, and there are no metadata before.
func TestLaunchTakesTime(t *testing.T) {
	w := newWorld(t)
	got := w.run(1, 2)
	if len(got) != 2 || got[0].State != "pending" || got[0].Reservation != got[1].Reservation || got[0].Image != image {
		t.Fatalf("launched %+v", got)
	}
	i := got[0]
	if s := i.Interfaces[0].Status; s != Attaching {
		t.Errorf("the primary interface of a pending instance is %v", s)
	}
	if _, ok := w.IMDS(w.now, i.ID); ok {
		t.Error("a pending instance has metadata")
	}
	w.wait(8*time.Second - 1)
	if s := w.described(i.ID).State; s != "pending" {
		t.Errorf("%s a nanosecond before its time", s)
	}
	w.kinds()
	w.wait(1)
	if k := w.kinds(); k != strings.Repeat(" ENIAttached LinkPlugged InstanceRunning", 2)[1:] {
		t.Errorf("events %s", k)
	}
	if v := w.described(i.ID); v.State != "running" || v.Interfaces[0].Status != InUse || v.Launched != 0 || v.SecurityGroups[0] != "sg-1" {
		t.Errorf("described as %+v", v)
	}
	v, ok := w.IMDS(w.now, i.ID)
	if !ok || len(v.ENIs) != 1 || v.ENIs[0].Partial || v.ENIs[0].Addresses[0] != i.PrimaryAddress {
		t.Errorf("metadata %v %+v", ok, v)
	}
	if e := w.eni(w.AttachedENIs(i.ID)[0]); !e.DeleteOnTermination {
		t.Error("the primary interface outlives its instance")
	}
	balance(t, w.Cloud)
}

// An instance that shuts down keeps its interfaces until it is terminated; then those with DeleteOnTermination go, and the rest is free.
func TestTerminateTakesTime(t *testing.T) {
	w, i := launched(t)
	kept, _ := w.attachedENI(i, 1, 0)
	gone, a := w.attachedENI(i, 2, 0)
	w.do(Request{Action: ModifyNetworkInterfaceAttribute, ENI: gone, Attachment: a, DeleteOnTermination: true})
	change := w.do(Request{Action: TerminateInstances, Instances: []InstanceID{i, i}}).Changes
	if len(change) != 1 || change[0] != (StateChange{i, "running", "shutting-down"}) {
		t.Errorf("changes %v", change)
	}
	if again := w.do(Request{Action: TerminateInstances, Instance: i}).Changes[0]; again.Previous != "shutting-down" {
		t.Errorf("the second time: %v", again)
	}
	if v := w.described(i); v.State != "shutting-down" || len(v.Interfaces) != 3 {
		t.Errorf("while it shuts down: %+v", v)
	}
	if _, ok := w.IMDS(w.now, i); !ok {
		t.Error("no metadata while it shuts down")
	}
	w.wait(20 * time.Second)
	if v := w.described(i); v.State != "terminated" || v.PrimaryAddress.IsValid() || v.Subnet != "" || len(v.Interfaces) != 0 {
		t.Errorf("terminated: %+v", v)
	}
	if _, ok := w.ENI(gone); ok || w.eni(kept).Status != Available {
		t.Errorf("deleted: %v; the other is %v", !ok, w.eni(kept).Status)
	}
	w.wait(time.Hour)
	if n := len(w.do(Request{Action: DescribeInstances}).Instances) + len(w.AllInstances()); n != 0 {
		t.Errorf("%d instances are remembered an hour later", n)
	}
	balance(t, w.Cloud)
}

// Whatever is under way when an instance is terminated does not happen any more.
func TestTerminateOvertakes(t *testing.T) {
	w := newWorld(t)
	i, j := w.run(1, 1)[0].ID, w.launch("m5.large", plenty)
	w.do(Request{Action: RebootInstances, Instance: j})
	w.do(Request{Action: TerminateInstances, Instances: []InstanceID{i, j}})
	w.kinds()
	w.wait(time.Minute)
	if k := w.kinds(); strings.Contains(k, "InstanceRunning") || strings.Contains(k, "InstanceRebooted") {
		t.Errorf("events %s", k)
	}
	if n := w.CountENIs(InUse) + w.CountENIs(Available) + w.CountENIs(Attaching); n != 0 {
		t.Errorf("%d interfaces are left", n)
	}
	balance(t, w.Cloud)
}

// RebootInstances does what Reboot does, later.
func TestRebootTakesTime(t *testing.T) {
	w, i := launched(t)
	_, a := w.attachedENI(i, 1, 0)
	w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
	w.wait(time.Minute)
	w.do(Request{Action: RebootInstances, Instances: []InstanceID{i}})
	e := w.create(plenty, 0)
	w.refused(Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}, codeValue)
	w.wait(5 * time.Second)
	w.attach(e, i, 1)
	if s := w.described(i).State; s != "running" {
		t.Errorf("a rebooted instance is %s", s)
	}
}

// A stopped instance keeps its interfaces and addresses, has no metadata, and takes up no capacity; started, it runs as if it had booted.
func TestStopAndStart(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Capacity = []Capacity{{Type: "m5.large", Instances: 2}}
	w := newWorld(t)
	w.Cloud = New(cfg, 7)
	i, j := w.launch("m5.large", plenty), w.launch("m5.large", plenty)
	e, a := w.attachedENI(i, 1, 2)
	before := w.eni(e)
	w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
	w.wait(time.Minute)
	w.kinds()
	w.do(Request{Action: RebootInstances, Instance: i}) // the stop overtakes it
	stop := Request{Action: StopInstances, Instances: []InstanceID{i}}
	if c := w.do(stop).Changes; len(c) != 1 || c[0] != (StateChange{i, "running", "stopping"}) {
		t.Errorf("stopped: %v", c)
	}
	if _, ok := w.IMDS(w.now, i); !ok {
		t.Error("no metadata while it stops")
	}
	w.refused(Request{Action: StartInstances, Instances: []InstanceID{j, i}}, codeInstanceState)
	w.refused(Request{Action: RebootInstances, Instances: []InstanceID{i}}, codeState)
	w.wait(time.Minute)
	if got := w.kinds(); got != "InstanceStopping InstanceStopped" {
		t.Errorf("events %s", got)
	}
	if c := w.do(stop).Changes; c[0] != (StateChange{i, "stopped", "stopped"}) {
		t.Errorf("stopped once more: %v", c)
	}
	if _, ok := w.IMDS(w.now, i); ok {
		t.Error("metadata answers a stopped instance")
	}
	w.attach(e, i, 2)
	if v := w.described(i); v.State != "stopped" || len(v.Interfaces) != 2 || len(w.eni(e).Secondaries) != len(before.Secondaries) {
		t.Errorf("while it is stopped: %+v", v)
	}
	k := w.run(1, 1)[0].ID
	start := Request{Action: StartInstances, Instances: []InstanceID{i}}
	w.refused(start, codeNoCapacity)
	w.do(Request{Action: TerminateInstances, Instances: []InstanceID{k}})
	w.wait(time.Hour)
	w.kinds()
	if c := w.do(start).Changes; c[0] != (StateChange{i, "stopped", "pending"}) {
		t.Errorf("started: %v", c)
	}
	w.refused(stop, codeInstanceState)
	launched := w.now
	w.wait(time.Minute)
	if v := w.described(i); v.State != "running" || v.Launched != launched || len(v.Interfaces) != 2 {
		t.Errorf("started: %+v", v)
	}
	if c := w.do(start).Changes; c[0] != (StateChange{i, "running", "running"}) {
		t.Errorf("started once more: %v", c)
	}
	if got := w.kinds(); got != "InstanceRunning" {
		t.Errorf("events %s", got)
	}
	if v, ok := w.IMDS(w.now, i); !ok {
		t.Errorf("metadata %v %+v", ok, v)
	}
	w.attach(w.create(plenty, 0), i, 1) // the place that a forced detach had left unusable
	w.do(stop)
	w.do(Request{Action: TerminateInstances, Instances: []InstanceID{i, j}})
	w.wait(time.Hour)
	if n := w.CountENIs(InUse); n != 0 {
		t.Errorf("%d interfaces are left", n)
	}
	balance(t, w.Cloud)
}

// The same token and parameters give the same instances, as they are by then; a day after their end they are launched anew.
func TestLaunchIsIdempotent(t *testing.T) {
	w := newWorld(t)
	r := runOf(plenty, 2, 2)
	r.ClientToken = "once"
	first := w.do(r).Instances
	w.wait(8 * time.Second)
	again := w.do(r).Instances
	if len(again) != 2 || again[1].ID != first[1].ID || again[1].State != "running" || len(w.AllInstances()) != 2 {
		t.Errorf("again: %+v", again)
	}
	w.do(Request{Action: TerminateInstances, Instances: []InstanceID{first[0].ID, first[1].ID}})
	w.wait(24*time.Hour + 20*time.Second - 1)
	if p := w.do(r); p.Instances[0].ID != first[0].ID || p.Instances[0].State != "terminated" {
		t.Errorf("a day later: %+v", p.Instances)
	}
	w.wait(1)
	if p := w.do(r); p.Instances[0].ID == first[0].ID {
		t.Error("the token is never forgotten")
	}
}

// What was only just launched is not known everywhere yet.
func TestLaunchedMayBeNotFound(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.Describe, cfg.Lag.Mutation = Always(2*time.Second), Always(time.Second)
	cfg.Lag.Describe.Max++ // so that it is drawn
	cfg.Lag.Mutation.Max++
	w := &world{Cloud: New(cfg, 7), t: t}
	i := w.run(1, 1)[0].ID
	byID, tag := Request{Action: DescribeInstances, Instance: i}, Request{Action: CreateTags, Resources: []string{string(i)}, Tags: []Tag{{"a", ""}}}
	w.refused(byID, codeInstanceNotFound)
	w.refused(tag, codeInstanceNotFound)
	w.refused(Request{Action: TerminateInstances, Instance: i}, codeInstanceNotFound)
	if n := len(w.do(Request{Action: DescribeInstances}).Instances); n != 0 {
		t.Errorf("%d instances in the list", n)
	}
	w.wait(time.Second + 1)
	w.do(tag)
	w.refused(byID, codeInstanceNotFound)
	w.wait(time.Second)
	w.do(byID)
	w.wait(time.Minute)
	w.do(Request{Action: TerminateInstances, Instance: i})
	if s := w.described(i).State; s != "running" {
		t.Errorf("%s to a reader that is behind, want running", s)
	}
	w.wait(2*time.Second + 1)
	if s := w.described(i).State; s != "shutting-down" {
		t.Errorf("%s to a reader that has caught up, want shutting-down", s)
	}
}

func TestConfigNames(t *testing.T) {
	rows := []struct {
		cfg  Config
		want string // part of the error
	}{
		{Config{VPCs: []VPC{{ID: "vpc-1"}, {ID: "vpc-1"}}}, "VPC 1"},
		{Config{SecurityGroups: []SecurityGroup{{ID: "sg-1", VPC: "vpc-9"}}}, "no VPC"},
		{Config{SecurityGroups: []SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}, {ID: "sg-1"}}}, "group 2"},
		{Config{Capacity: []Capacity{{"m5.large", "", 1}, {"", "", 9}, {"z9.huge", "", 1}}}, "capacity 2"},
	}
	for _, row := range rows {
		if err := row.cfg.Validate(); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v, want %q", err, row.want)
		}
		New(row.cfg, 1).Serve(0, &Request{Action: DescribeSecurityGroups}) // must not panic
	}
}

// Two interfaces may have one device index, on two cards: lists and metadata tell them apart and put the first card first.
func TestCardsInViews(t *testing.T) {
	w := newWorld(t)
	i := w.launch("p4d.24xlarge", plenty)
	second, first := w.create(plenty, 0), w.create(plenty, 0)
	r := Request{Action: AttachNetworkInterface, ENI: second, Instance: i, NetworkCard: 3, DeviceIndex: 1}
	a := w.do(r).Attachment
	w.attach(first, i, 1)
	w.wait(time.Minute)
	var got []string
	for _, e := range w.described(i).Interfaces {
		got = append(got, fmt.Sprint(e.Card, e.Device))
	}
	v, _ := w.IMDS(w.now, i)
	for _, e := range v.ENIs {
		got = append(got, fmt.Sprint(e.Card, e.Device))
	}
	for _, l := range w.Links(i) {
		got = append(got, fmt.Sprint(l.Card, l.Device))
	}
	if want := []string{"0 0", "0 1", "3 1"}; !slices.Equal(got, append(append(slices.Clone(want), want...), want...)) {
		t.Errorf("card and device in answer, metadata and kernel: %q", got)
	}
	if e := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{second}}).ENIs[0]; e.NetworkCard != 3 || e.DeviceIndex != 1 {
		t.Errorf("described on card %d as device %d", e.NetworkCard, e.DeviceIndex)
	}
	w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
	w.wait(time.Minute)
	w.refused(r, codeValue) // what force left unusable
	r.NetworkCard = 2
	w.do(r) // is that place, and not the index on another card
	if k := w.described(i).Interfaces[2]; k.Card != 2 || k.AttachedAt != w.now || k.DeleteOnTermination || w.eni(second).AttachedAt != w.now {
		t.Errorf("the last attachment is %+v of %+v, want one of %v", k, w.eni(second), w.now)
	}
}

func TestModifyEveryAttribute(t *testing.T) {
	w := newWorld(t)
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, Description: "old"}).ENI
	if !e.SourceDestCheck || e.Description != "old" {
		t.Errorf("made as %+v", e)
	}
	modify := func(a Attribute, check bool, groups ...string) ENI {
		w.do(Request{Action: ModifyNetworkInterfaceAttribute, ENI: e.ID, Attribute: a, SourceDestCheck: check, SecurityGroups: groups})
		return w.eni(e.ID)
	}
	if got := modify(AttributeDescription, false); got.Description != "" || !got.SourceDestCheck {
		t.Errorf("with its description cleared: %+v", got)
	}
	if modify(AttributeSourceDestCheck, false).SourceDestCheck || !modify(AttributeSourceDestCheck, true).SourceDestCheck {
		t.Error("the source/destination check does not go off and on")
	}
	if got := modify(AttributeGroups, false, "sg-3", "sg-2").SecurityGroups; !slices.Equal(got, []string{"sg-3", "sg-2"}) {
		t.Errorf("groups %v", got)
	}
}

// Tags of every kind of resource, set, shown, and removed: by key and value, by key, and all.
func TestTagsOfEverything(t *testing.T) {
	w, i := launched(t)
	e := w.AttachedENIs(i)[0]
	vpc := w.VPCID()
	shown := map[string]func() []Tag{
		string(i): func() []Tag { return w.described(i).Tags },
		string(e): func() []Tag { return w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0].Tags },
		string(plenty): func() []Tag {
			return w.do(Request{Action: DescribeSubnets, Subnets: []SubnetID{plenty}}).Subnets[0].Tags
		},
		vpc: func() []Tag { return w.do(Request{Action: DescribeVpcs, VPCs: []string{vpc}}).VPCs[0].Tags },
		"sg-2": func() []Tag {
			return w.do(Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"sg-2"}}).Groups[0].Tags
		},
	}
	all := []string{string(i), string(e), string(plenty), vpc, "sg-2"}
	remove := func(tags []Tag, keys ...string) Request {
		return Request{Action: DeleteTags, Resources: all, Tags: tags, TagKeys: keys}
	}
	for _, step := range []struct {
		r    Request
		want []Tag
	}{
		{Request{Action: CreateTags, Resources: all, Tags: []Tag{{"a", "1"}, {"b", "2"}, {"c", "3"}}}, []Tag{{"a", "1"}, {"b", "2"}, {"c", "3"}}},
		{Request{Action: CreateTags, Resources: all, Tags: []Tag{{"b", "4"}}}, []Tag{{"a", "1"}, {"b", "4"}, {"c", "3"}}},
		{remove([]Tag{{"b", "2"}}), []Tag{{"a", "1"}, {"b", "4"}, {"c", "3"}}}, // another value
		{remove([]Tag{{"a", "1"}}), []Tag{{"b", "4"}, {"c", "3"}}},
		{remove(nil, "c", "x"), []Tag{{"b", "4"}}},
		{remove(nil), nil},
	} {
		w.do(step.r)
		for _, id := range all {
			if got := shown[id](); !slices.Equal(got, step.want) {
				t.Errorf("%v: %s has %v, want %v", step.r.Action, id, got, step.want)
			}
		}
	}
}

// A refused CreateTags has tagged nothing.
func TestTagsAllOrNone(t *testing.T) {
	w := newWorld(t)
	w.refused(Request{Action: CreateTags, Resources: []string{"sg-1", "sg-x"}, Tags: []Tag{{"a", "1"}}}, codeGroupNotFound)
	if g := w.do(Request{Action: DescribeSecurityGroups}).Groups[0]; g.Tags != nil {
		t.Errorf("%s has %v", g.ID, g.Tags)
	}
}

// Networks and groups in the order asked for, or all as configured.
func TestDescribeNetworks(t *testing.T) {
	w := newWorld(t)
	w.twoVPCs(false)
	vpcs := w.do(Request{Action: DescribeVpcs}).VPCs
	if len(vpcs) != 2 || vpcs[1].ID != "vpc-2" || vpcs[1].CIDRs[0] != defaultVPC() {
		t.Errorf("VPCs %+v", vpcs)
	}
	w.AddCIDR(w.now, "vpc-2", cidr("10.9.0.0/16"))
	if got := w.do(Request{Action: DescribeVpcs, VPCs: []string{"vpc-2", vpcs[0].ID}}).VPCs; got[1].ID != vpcs[0].ID || len(got[0].CIDRs) != 2 {
		t.Errorf("VPCs asked for: %+v", got)
	}
	groups := w.do(Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"sg-other", "sg-1"}}).Groups
	if groups[0].VPC != "vpc-2" || groups[0].Name != "default" || groups[1].VPC != vpcs[0].ID {
		t.Errorf("groups %+v", groups)
	}
	subnets := w.do(Request{Action: DescribeSubnets, Subnets: []SubnetID{far, otherVPC}}).Subnets
	if subnets[0].ID != far || subnets[1].VPC != "vpc-2" {
		t.Errorf("subnets %+v", subnets)
	}
}
