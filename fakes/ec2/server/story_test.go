package server

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// TestPrefixesAndIPv6BySDK is the story of prefixes and IPv6, as aws-sdk-go-v2 tells it to the model.
func TestPrefixesAndIPv6BySDK(t *testing.T) {
	w := newWorld(t, func(c *ec2.Config) {
		c.VPCs = []ec2.VPC{{CIDRs: []netip.Prefix{cidr("10.0.0.0/16")}, IPv6: []netip.Prefix{cidr("2001:db8:1::/56")}}}
		c.Subnets[0].IPv6 = cidr("2001:db8:1:1::/64")
	})
	ctx := w.ctx()
	created, err := w.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: str(string(plenty)), Ipv4PrefixCount: num(1), Ipv6AddressCount: num(1)})
	must.Do(t, err)
	e := created.NetworkInterface
	id := e.NetworkInterfaceId
	if len(e.Ipv4Prefixes) != 1 || len(e.Ipv6Addresses) != 1 || !cidr("2001:db8:1:1::/64").Contains(addr(*e.Ipv6Addresses[0].Ipv6Address)) {
		t.Fatalf("created with prefixes %v and IPv6 %v", e.Ipv4Prefixes, e.Ipv6Addresses)
	}
	four, err := w.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4PrefixCount: num(2)})
	must.Do(t, err)
	if len(four.AssignedIpv4Prefixes) != 2 || cidr(*four.AssignedIpv4Prefixes[0].Ipv4Prefix).Bits() != 28 {
		t.Errorf("assigned %v", four.AssignedIpv4Prefixes)
	}
	six, err := w.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6AddressCount: num(2)})
	must.Do(t, err)
	if len(six.AssignedIpv6Addresses) != 2 {
		t.Errorf("assigned %v", six.AssignedIpv6Addresses)
	}
	block, err := w.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6PrefixCount: num(1)})
	must.Do(t, err)
	if len(block.AssignedIpv6Prefixes) != 1 || cidr(block.AssignedIpv6Prefixes[0]).Bits() != 80 {
		t.Errorf("assigned %v", block.AssignedIpv6Prefixes)
	}
	now := w.one(*id)
	if len(now.Ipv4Prefixes) != 3 || len(now.Ipv6Addresses) != 3 || len(now.Ipv6Prefixes) != 1 {
		t.Errorf("found %d, %d and %d, expected 3 prefixes, 3 addresses and 1 prefix", len(now.Ipv4Prefixes), len(now.Ipv6Addresses), len(now.Ipv6Prefixes))
	}
	by, err := w.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{Filters: []types.Filter{{Name: str("ipv6-addresses.ipv6-address"), Values: six.AssignedIpv6Addresses[:1]}}})
	must.Do(t, err)
	if len(by.NetworkInterfaces) != 1 || *by.NetworkInterfaces[0].NetworkInterfaceId != *id {
		t.Errorf("by IPv6 address: found %v", names(by.NetworkInterfaces))
	}
	_, err = w.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: id, Ipv4Prefixes: []string{*four.AssignedIpv4Prefixes[0].Ipv4Prefix}})
	must.Do(t, err)
	gone, err := w.UnassignIpv6Addresses(ctx, &sdk.UnassignIpv6AddressesInput{NetworkInterfaceId: id, Ipv6Addresses: six.AssignedIpv6Addresses[:1], Ipv6Prefixes: block.AssignedIpv6Prefixes})
	must.Do(t, err)
	if len(gone.UnassignedIpv6Addresses) != 1 || len(gone.UnassignedIpv6Prefixes) != 1 {
		t.Errorf("unassigned %v and %v", gone.UnassignedIpv6Addresses, gone.UnassignedIpv6Prefixes)
	}
	if now = w.one(*id); len(now.Ipv4Prefixes) != 2 || len(now.Ipv6Addresses) != 2 || len(now.Ipv6Prefixes) != 0 {
		t.Errorf("afterwards found %d, %d and %d, expected 2 prefixes, 2 addresses and no prefix", len(now.Ipv4Prefixes), len(now.Ipv6Addresses), len(now.Ipv6Prefixes))
	}
	_, err = w.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: str(w.create(tiny, 0)), Ipv6AddressCount: num(1)})
	w.refused("IPv6 in a subnet without", err, "InvalidParameterValue", 400)
}

// TestInstancesBySDK is the story of instances: launched, described, tagged, rebooted, terminated.
func TestInstancesBySDK(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w := newWorldOf(t, Options{Epoch: start}, func(c *ec2.Config) {
		c.Throttle.Resources[ec2.RunInstances] = ec2.Bucket{Capacity: 1 << 20, RefillPerSecond: 1 << 20}
	})
	ctx := w.ctx()
	in := &sdk.RunInstancesInput{
		ImageId: str("ami-0123456789abcdef0"), InstanceType: types.InstanceTypeM5Large, MinCount: num(1), MaxCount: num(2), SubnetId: str(string(plenty)), ClientToken: str("fleet"),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tagA}, {ResourceType: types.ResourceTypeNetworkInterface, Tags: tagA}},
	}
	run := must.Get(w.RunInstances(ctx, in))(t)
	again := must.Get(w.RunInstances(ctx, in))(t)
	if len(run.Instances) != 2 || len(again.Instances) != 2 || *again.Instances[0].InstanceId != *run.Instances[0].InstanceId || run.Instances[0].State.Name != types.InstanceStateNamePending {
		t.Fatalf("ran %+v, and again %+v", run.Instances, again.Instances)
	}
	in.MaxCount = num(1)
	_, err := w.RunInstances(ctx, in)
	w.refused("another request with the token", err, "IdempotentParameterMismatch", 400)
	ids := []string{*run.Instances[0].InstanceId, *run.Instances[1].InstanceId}

	w.skip(10 * time.Minute)
	described := must.Get(w.DescribeInstances(ctx, &sdk.DescribeInstancesInput{InstanceIds: ids}))(t)
	if len(described.Reservations) != 1 || len(described.Reservations[0].Instances) != 2 || *described.Reservations[0].ReservationId != *run.ReservationId {
		t.Fatalf("described %+v", described.Reservations)
	}
	i := described.Reservations[0].Instances[1]
	if i.State.Name != types.InstanceStateNameRunning || *i.ImageId != *in.ImageId || len(i.NetworkInterfaces) != 1 || i.LaunchTime.Before(start) || len(i.Tags) != 1 {
		t.Errorf("found %+v", i)
	}
	if tags := w.one(*i.NetworkInterfaces[0].NetworkInterfaceId).TagSet; len(tags) != 1 {
		t.Errorf("its interface has the tags %v", tags)
	}
	_, err = w.CreateTags(ctx, &sdk.CreateTagsInput{Resources: ids, Tags: []types.Tag{{Key: str("c"), Value: str("")}}})
	must.Do(t, err)
	tagged := func(key string) int {
		out, err := w.DescribeInstances(ctx, &sdk.DescribeInstancesInput{Filters: []types.Filter{{Name: str("tag-key"), Values: []string{key}}}})
		must.Do(t, err)
		n := 0
		for _, r := range out.Reservations {
			n += len(r.Instances)
		}
		return n
	}
	_, err = w.DeleteTags(ctx, &sdk.DeleteTagsInput{Resources: ids[:1], Tags: []types.Tag{{Key: str("c")}, {Key: str("a"), Value: str("other")}}})
	must.Do(t, err)
	if a, c := tagged("a"), tagged("c"); a != 2 || c != 1 {
		t.Errorf("%d have the tag a, %d the tag c; expected 2 and 1", a, c)
	}
	must.Get(w.RebootInstances(ctx, &sdk.RebootInstancesInput{InstanceIds: ids}))(t)
	halted := must.Get(w.StopInstances(ctx, &sdk.StopInstancesInput{InstanceIds: ids[:1]}))(t)
	if len(halted.StoppingInstances) != 1 || *halted.StoppingInstances[0].CurrentState.Code != 64 {
		t.Errorf("stopped %+v", halted.StoppingInstances)
	}
	w.skip(10 * time.Minute)
	begun := must.Get(w.StartInstances(ctx, &sdk.StartInstancesInput{InstanceIds: ids[:1]}))(t)
	if len(begun.StartingInstances) != 1 || begun.StartingInstances[0].PreviousState.Name != types.InstanceStateNameStopped {
		t.Errorf("started %+v", begun.StartingInstances)
	}
	ended := must.Get(w.TerminateInstances(ctx, &sdk.TerminateInstancesInput{InstanceIds: ids}))(t)
	if len(ended.TerminatingInstances) != 2 || ended.TerminatingInstances[0].CurrentState.Name != types.InstanceStateNameShuttingDown {
		t.Errorf("terminated %+v", ended.TerminatingInstances)
	}
	w.skip(10 * time.Minute)
	over, err := w.DescribeInstances(ctx, &sdk.DescribeInstancesInput{Filters: []types.Filter{{Name: str("instance-state-name"), Values: []string{"terminated"}}}})
	must.Do(t, err)
	if len(over.Reservations) != 1 || len(over.Reservations[0].Instances) != 2 {
		t.Errorf("terminated ones: %+v", over.Reservations)
	}
	_, err = w.TerminateInstances(ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{ids[0], "i-00000000000000000"}})
	w.refused("terminating one that is none", err, "InvalidInstanceID.NotFound", 400)
}

// TestNetworks: VPCs and security groups, by identifier, filter and page.
func TestNetworks(t *testing.T) {
	w := newWorld(t, func(c *ec2.Config) {
		c.VPCs = []ec2.VPC{{ID: "vpc-1"}, {ID: "vpc-2", CIDRs: []netip.Prefix{cidr("10.0.0.0/16"), cidr("10.1.0.0/16")}, Tags: []ec2.Tag{{Key: "a", Value: "b"}}}}
		c.SecurityGroups = append(c.SecurityGroups, ec2.SecurityGroup{ID: "sg-3", Name: "third", Description: "the third", VPC: "vpc-2"})
	})
	filter := func(name, value string) []types.Filter {
		return []types.Filter{{Name: str(name), Values: []string{value}}}
	}
	vpcs := []struct {
		in   sdk.DescribeVpcsInput
		want []string
		code string
	}{
		{sdk.DescribeVpcsInput{}, []string{"vpc-1", "vpc-2"}, ""},
		{sdk.DescribeVpcsInput{VpcIds: []string{"vpc-2", "vpc-1"}}, []string{"vpc-2", "vpc-1"}, ""},
		{sdk.DescribeVpcsInput{VpcIds: []string{"vpc-1"}, Filters: filter("tag:a", "b")}, nil, ""},
		{sdk.DescribeVpcsInput{Filters: filter("tag:a", "b")}, []string{"vpc-2"}, ""},
		{sdk.DescribeVpcsInput{Filters: filter("cidr-block-association.cidr-block", "10.1.*")}, []string{"vpc-2"}, ""},
		{sdk.DescribeVpcsInput{VpcIds: []string{"vpc-3"}}, nil, "InvalidVpcID.NotFound"},
		{sdk.DescribeVpcsInput{VpcIds: []string{"vpc-1"}, MaxResults: num(5)}, nil, "InvalidParameterCombination"},
	}
	for _, r := range vpcs {
		out, err := w.DescribeVpcs(w.ctx(), &r.in)
		if got, _ := code(err); got != r.code {
			t.Errorf("%+v: %v, expected %q", r.in, err, r.code)
			continue
		}
		var found []string
		for i := 0; err == nil && i < len(out.Vpcs); i++ {
			found = append(found, *out.Vpcs[i].VpcId)
		}
		same(t, r.in, found, r.want)
	}
	groups := []struct {
		in   sdk.DescribeSecurityGroupsInput
		want []string
		code string
	}{
		{sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-3"}}, []string{"sg-3"}, ""},
		{sdk.DescribeSecurityGroupsInput{Filters: filter("vpc-id", "vpc-1")}, []string{"sg-1", "sg-2"}, ""},
		{sdk.DescribeSecurityGroupsInput{Filters: filter("group-name", "thi?d")}, []string{"sg-3"}, ""},
		{sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-0"}}, nil, "InvalidGroup.NotFound"},
	}
	for _, r := range groups {
		out, err := w.DescribeSecurityGroups(w.ctx(), &r.in)
		if got, _ := code(err); got != r.code {
			t.Errorf("%+v: %v, expected %q", r.in, err, r.code)
			continue
		}
		var found []string
		for i := 0; err == nil && i < len(out.SecurityGroups); i++ {
			found = append(found, *out.SecurityGroups[i].GroupId)
		}
		same(t, r.in, found, r.want)
	}
}

// TestModifyChangesEachAttribute: each attribute changes, and an empty description is one.
func TestModifyChangesEachAttribute(t *testing.T) {
	w := newWorld(t)
	id := w.create(plenty, 0)
	change := func(in sdk.ModifyNetworkInterfaceAttributeInput) {
		t.Helper()
		in.NetworkInterfaceId = &id
		if _, err := w.ModifyNetworkInterfaceAttribute(w.ctx(), &in); err != nil {
			t.Error(err)
		}
	}
	if e := w.one(id); !*e.SourceDestCheck {
		t.Error("a new interface does not check")
	}
	change(sdk.ModifyNetworkInterfaceAttributeInput{SourceDestCheck: &types.AttributeBooleanValue{Value: no}})
	change(sdk.ModifyNetworkInterfaceAttributeInput{Description: &types.AttributeValue{Value: str("d")}})
	change(sdk.ModifyNetworkInterfaceAttributeInput{Groups: []string{"sg-2"}})
	if e := w.one(id); *e.SourceDestCheck || *e.Description != "d" || len(e.Groups) != 1 || *e.Groups[0].GroupId != "sg-2" {
		t.Errorf("found %v, %q, %v", *e.SourceDestCheck, *e.Description, e.Groups)
	}
	change(sdk.ModifyNetworkInterfaceAttributeInput{Description: &types.AttributeValue{Value: str("")}})
	if e := w.one(id); aws.ToString(e.Description) != "" {
		t.Errorf("the description is still %q", *e.Description)
	}
}

// same compares lists of identifiers; nil and empty are the same.
func same(t *testing.T, asked any, found, want []string) {
	t.Helper()
	if !slices.Equal(found, want) {
		t.Errorf("%+v: found %v, expected %v", asked, found, want)
	}
}

// TestFilterLeavesTheListUnchanged: a filter leaves the list alone, which may be the model's own.
func TestFilterLeavesTheListUnchanged(t *testing.T) {
	list := []ec2.VPC{{ID: "vpc-1"}, {ID: "vpc-2"}}
	out := keep(list, []filter{{"vpc-id", []string{"vpc-2"}}}, (&call{}).vpcValues)
	if len(out) != 1 || out[0].ID != "vpc-2" || list[0].ID != "vpc-1" {
		t.Errorf("found %v, and the list is now %v", out, list)
	}
}
