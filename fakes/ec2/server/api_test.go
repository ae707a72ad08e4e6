package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// canned answers every request with one Response, and keeps the request.
type canned struct {
	answer ec2.Response
	got    ec2.Request
	signer Signer
}

func (c *canned) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	c.got = *r
	c.signer, _ = SignerOf(ctx)
	c.answer.HTTP = 200
	return c.answer, nil
}

// over gives the SDK's client of a server, without retries, whose key is "AKID" and secret "secret".
func over(t testing.TB, h http.Handler) *sdk.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return client(srv.URL, "AKID", "", srv.Client())
}

var (
	str   = aws.String
	num   = aws.Int32
	yes   = aws.Bool(true)
	no    = aws.Bool(false)
	addr  = netip.MustParseAddr
	cidr  = netip.MustParsePrefix
	eni1  = "eni-0123456789abcdef0"
	inst1 = "i-0123456789abcdef0"
	tagA  = []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
)

// TestRequests: each field of each call, as the SDK sends it, is the model's.
func TestRequests(t *testing.T) {
	b := &canned{}
	c := over(t, Handler(b))
	ctx := t.Context()
	rows := []struct {
		name string
		ask  func() error
		want ec2.Request
	}{
		{"create", func() error {
			_, err := c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: str("subnet-1"), Description: str("d"), ClientToken: str("t"), DryRun: yes,
				Groups: []string{"sg-1"}, SecondaryPrivateIpAddressCount: num(2), PrivateIpAddress: str("10.0.0.9"), Ipv4PrefixCount: num(3), Ipv6AddressCount: num(4), Ipv6PrefixCount: num(5),
				InterfaceType: "interface", EnablePrimaryIpv6: no,
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: tagA}}})
			return err
		}, ec2.Request{Action: ec2.CreateNetworkInterface, Subnet: "subnet-1", Description: "d", ClientToken: "t", DryRun: true, SecurityGroups: []string{"sg-1"}, SecondaryCount: 2,
			Addresses: []netip.Addr{addr("10.0.0.9")}, PrefixCount: 3, IPv6Count: 4, IPv6PrefixCount: 5, Tags: []ec2.Tag{{Key: "a", Value: "b"}}}},
		{"create with exact ones", func() error {
			_, err := c.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{SubnetId: str("subnet-1"), ClientToken: str("t"),
				Ipv4Prefixes:  []types.Ipv4PrefixSpecificationRequest{{Ipv4Prefix: str("10.0.0.16/28")}, {Ipv4Prefix: str("10.0.0.32/28")}},
				Ipv6Addresses: []types.InstanceIpv6Address{{Ipv6Address: str("fd00::1")}, {Ipv6Address: str("fd00::2"), IsPrimaryIpv6: no}},
				Ipv6Prefixes:  []types.Ipv6PrefixSpecificationRequest{{Ipv6Prefix: str("2001:db8:1:2:3::/80")}}})
			return err
		}, ec2.Request{Action: ec2.CreateNetworkInterface, Subnet: "subnet-1", ClientToken: "t", Prefixes: []netip.Prefix{cidr("10.0.0.16/28"), cidr("10.0.0.32/28")},
			IPv6: []netip.Addr{addr("fd00::1"), addr("fd00::2")}, IPv6Prefixes: []netip.Prefix{cidr("2001:db8:1:2:3::/80")}}},
		{"attach", func() error {
			_, err := c.AttachNetworkInterface(ctx, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni1, InstanceId: &inst1, DeviceIndex: num(2), NetworkCardIndex: num(1), DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.AttachNetworkInterface, ENI: ec2.ENIID(eni1), Instance: ec2.InstanceID(inst1), DeviceIndex: 2, NetworkCard: 1, DryRun: true}},
		{"modify the description", func() error {
			_, err := c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1, Description: &types.AttributeValue{Value: str("")}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: ec2.ENIID(eni1), Attribute: ec2.AttributeDescription, DryRun: true}},
		{"modify the groups", func() error {
			_, err := c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1, Groups: []string{"sg-1", "sg-2"}})
			return err
		}, ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: ec2.ENIID(eni1), Attribute: ec2.AttributeGroups, SecurityGroups: []string{"sg-1", "sg-2"}}},
		{"modify the attachment", func() error {
			_, err := c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1,
				Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: str("eni-attach-1"), DeleteOnTermination: yes}})
			return err
		}, ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: ec2.ENIID(eni1), Attribute: ec2.AttributeAttachment, Attachment: "eni-attach-1", DeleteOnTermination: true}},
		{"modify the check", func() error {
			_, err := c.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1, SourceDestCheck: &types.AttributeBooleanValue{Value: yes}})
			return err
		}, ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: ec2.ENIID(eni1), Attribute: ec2.AttributeSourceDestCheck, SourceDestCheck: true}},
		{"detach", func() error {
			_, err := c.DetachNetworkInterface(ctx, &sdk.DetachNetworkInterfaceInput{AttachmentId: str("eni-attach-1"), Force: yes, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DetachNetworkInterface, Attachment: "eni-attach-1", Force: true, DryRun: true}},
		{"delete", func() error {
			_, err := c.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &eni1, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DeleteNetworkInterface, ENI: ec2.ENIID(eni1), DryRun: true}},
		{"assign", func() error {
			_, err := c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &eni1, SecondaryPrivateIpAddressCount: num(2), Ipv4PrefixCount: num(3)})
			return err
		}, ec2.Request{Action: ec2.AssignPrivateIpAddresses, ENI: ec2.ENIID(eni1), SecondaryCount: 2, PrefixCount: 3}},
		{"assign exact ones", func() error {
			_, err := c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &eni1, PrivateIpAddresses: []string{"10.0.0.7", "10.0.0.8"}, Ipv4Prefixes: []string{"10.0.0.16/28"}, AllowReassignment: yes})
			return err
		}, ec2.Request{Action: ec2.AssignPrivateIpAddresses, ENI: ec2.ENIID(eni1), Addresses: []netip.Addr{addr("10.0.0.7"), addr("10.0.0.8")}, Prefixes: []netip.Prefix{cidr("10.0.0.16/28")}, AllowReassignment: true}},
		{"unassign", func() error {
			_, err := c.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &eni1, PrivateIpAddresses: []string{"10.0.0.7"}, Ipv4Prefixes: []string{"10.0.0.16/28"}})
			return err
		}, ec2.Request{Action: ec2.UnassignPrivateIpAddresses, ENI: ec2.ENIID(eni1), Addresses: []netip.Addr{addr("10.0.0.7")}, Prefixes: []netip.Prefix{cidr("10.0.0.16/28")}}},
		{"assign IPv6", func() error {
			_, err := c.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &eni1, Ipv6AddressCount: num(1), Ipv6PrefixCount: num(2), Ipv6Addresses: []string{"fd00::1"}, Ipv6Prefixes: []string{"2001:db8:1:2:3::/80"}})
			return err
		}, ec2.Request{Action: ec2.AssignIpv6Addresses, ENI: ec2.ENIID(eni1), IPv6Count: 1, IPv6PrefixCount: 2, IPv6: []netip.Addr{addr("fd00::1")}, IPv6Prefixes: []netip.Prefix{cidr("2001:db8:1:2:3::/80")}}},
		{"unassign IPv6", func() error {
			_, err := c.UnassignIpv6Addresses(ctx, &sdk.UnassignIpv6AddressesInput{NetworkInterfaceId: &eni1, Ipv6Addresses: []string{"fd00::1"}, Ipv6Prefixes: []string{"2001:db8:1:2:3::/80"}})
			return err
		}, ec2.Request{Action: ec2.UnassignIpv6Addresses, ENI: ec2.ENIID(eni1), IPv6: []netip.Addr{addr("fd00::1")}, IPv6Prefixes: []netip.Prefix{cidr("2001:db8:1:2:3::/80")}}},
		{"tag", func() error {
			_, err := c.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{eni1, inst1, "subnet-1", "vpc-1", "sg-1"}, Tags: tagA, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.CreateTags, ENIs: []ec2.ENIID{ec2.ENIID(eni1)}, Resources: []string{inst1, "subnet-1", "vpc-1", "sg-1"}, Tags: []ec2.Tag{{Key: "a", Value: "b"}}, DryRun: true}},
		{"untag", func() error {
			_, err := c.DeleteTags(ctx, &sdk.DeleteTagsInput{Resources: []string{inst1}, Tags: []types.Tag{{Key: str("a"), Value: str("")}, {Key: str("b")}}})
			return err
		}, ec2.Request{Action: ec2.DeleteTags, Resources: []string{inst1}, Tags: []ec2.Tag{{Key: "a"}}, TagKeys: []string{"b"}}},
		{"run", func() error {
			_, err := c.RunInstances(ctx, &sdk.RunInstancesInput{ImageId: str("ami-0123456789abcdef0"), InstanceType: types.InstanceTypeM5Large, MinCount: num(2), MaxCount: num(3), ClientToken: str("t"), DryRun: yes,
				SubnetId: str("subnet-1"), SecurityGroupIds: []string{"sg-1"}, EbsOptimized: no, Monitoring: &types.RunInstancesMonitoringEnabled{Enabled: no},
				TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: tagA}, {ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{{Key: str("c"), Value: str("")}}}}})
			return err
		}, ec2.Request{Action: ec2.RunInstances, Type: "m5.large", Image: "ami-0123456789abcdef0", MinCount: 2, MaxCount: 3, ClientToken: "t", DryRun: true, Subnet: "subnet-1", SecurityGroups: []string{"sg-1"},
			Tags: []ec2.Tag{{Key: "a", Value: "b"}}, ENITags: []ec2.Tag{{Key: "c"}}}},
		{"run with an interface", func() error {
			_, err := c.RunInstances(ctx, &sdk.RunInstancesInput{ImageId: str("ami-01234567"), InstanceType: types.InstanceTypeM5Large, MinCount: num(1), MaxCount: num(1), ClientToken: str("t"),
				NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: num(0), SubnetId: str("subnet-1"), Groups: []string{"sg-1"}, SecondaryPrivateIpAddressCount: num(4), PrivateIpAddress: str("10.0.0.9"), DeleteOnTermination: yes, AssociatePublicIpAddress: no}}})
			return err
		}, ec2.Request{Action: ec2.RunInstances, Type: "m5.large", Image: "ami-01234567", MinCount: 1, MaxCount: 1, ClientToken: "t", Subnet: "subnet-1", SecurityGroups: []string{"sg-1"}, SecondaryCount: 4, Addresses: []netip.Addr{addr("10.0.0.9")}}},
		{"terminate", func() error {
			_, err := c.TerminateInstances(ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{inst1}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.TerminateInstances, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}, DryRun: true}},
		{"reboot", func() error {
			_, err := c.RebootInstances(ctx, &sdk.RebootInstancesInput{InstanceIds: []string{inst1}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.RebootInstances, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}, DryRun: true}},
		{"stop", func() error {
			_, err := c.StopInstances(ctx, &sdk.StopInstancesInput{InstanceIds: []string{inst1}, DryRun: yes, Force: yes, Hibernate: no})
			return err
		}, ec2.Request{Action: ec2.StopInstances, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}, DryRun: true}},
		{"start", func() error {
			_, err := c.StartInstances(ctx, &sdk.StartInstancesInput{InstanceIds: []string{inst1}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.StartInstances, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}, DryRun: true}},
		{"interfaces", func() error {
			_, err := c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{eni1}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeNetworkInterfaces, ENIs: []ec2.ENIID{ec2.ENIID(eni1)}, DryRun: true}},
		{"subnets", func() error {
			_, err := c.DescribeSubnets(ctx, &sdk.DescribeSubnetsInput{DryRun: yes, SubnetIds: []string{"subnet-1", "subnet-2"}})
			return err
		}, ec2.Request{Action: ec2.DescribeSubnets, DryRun: true, Subnets: []ec2.SubnetID{"subnet-1", "subnet-2"}}},
		{"filtered pages of subnets", func() error {
			_, err := c.DescribeSubnets(ctx, &sdk.DescribeSubnetsInput{MaxResults: num(5), Filters: []types.Filter{{Name: str("vpc-id"), Values: []string{"vpc-1"}}}})
			return err
		}, ec2.Request{Action: ec2.DescribeSubnets, Paged: true, FilterDescription: "*"}},
		{"instances", func() error {
			_, err := c.DescribeInstances(ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{inst1}})
			return err
		}, ec2.Request{Action: ec2.DescribeInstances, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}}},
		{"VPCs", func() error {
			_, err := c.DescribeVpcs(ctx, &sdk.DescribeVpcsInput{VpcIds: []string{"vpc-1"}})
			return err
		}, ec2.Request{Action: ec2.DescribeVpcs, VPCs: []string{"vpc-1"}}},
		{"groups", func() error {
			_, err := c.DescribeSecurityGroups(ctx, &sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-1"}})
			return err
		}, ec2.Request{Action: ec2.DescribeSecurityGroups, SecurityGroups: []string{"sg-1"}}},
		{"tags", func() error {
			_, err := c.DescribeTags(ctx, &sdk.DescribeTagsInput{DryRun: yes, MaxResults: num(5), Filters: []types.Filter{{Name: str("key"), Values: []string{"a"}}}})
			return err
		}, ec2.Request{Action: ec2.DescribeTags, DryRun: true, Paged: true, FilterDescription: "*"}},
		{"zones", func() error {
			_, err := c.DescribeAvailabilityZones(ctx, &sdk.DescribeAvailabilityZonesInput{AllAvailabilityZones: yes, ZoneNames: []string{"us-west-2a"}, ZoneIds: []string{"usw2-az1"}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeAvailabilityZones, Zones: []string{"us-west-2a"}, ZoneIDs: []string{"usw2-az1"}, DryRun: true}},
		{"regions", func() error {
			_, err := c.DescribeRegions(ctx, &sdk.DescribeRegionsInput{AllRegions: yes, RegionNames: []string{"us-west-2"}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeRegions, Regions: []string{"us-west-2"}, DryRun: true}},
		{"status", func() error {
			_, err := c.DescribeInstanceStatus(ctx, &sdk.DescribeInstanceStatusInput{InstanceIds: []string{inst1}, IncludeAllInstances: yes, IncludeManagedResources: yes, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeInstanceStatus, Instances: []ec2.InstanceID{ec2.InstanceID(inst1)}, AllStates: true, DryRun: true}},
		{"reservations", func() error {
			_, err := c.GetSubnetCidrReservations(ctx, &sdk.GetSubnetCidrReservationsInput{SubnetId: str("subnet-1"), MaxResults: num(5), DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.GetSubnetCidrReservations, Subnet: "subnet-1", Paged: true, DryRun: true}},
		{"an interface's attribute", func() error {
			_, err := c.DescribeNetworkInterfaceAttribute(ctx, &sdk.DescribeNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1, Attribute: types.NetworkInterfaceAttributeGroupSet, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeNetworkInterfaceAttribute, ENI: ec2.ENIID(eni1), DryRun: true}},
		{"a VPC's attribute", func() error {
			_, err := c.DescribeVpcAttribute(ctx, &sdk.DescribeVpcAttributeInput{VpcId: str("vpc-1"), Attribute: types.VpcAttributeNameEnableDnsSupport, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeVpcAttribute, VPCs: []string{"vpc-1"}, DryRun: true}},
		{"the account's attributes", func() error {
			_, err := c.DescribeAccountAttributes(ctx, &sdk.DescribeAccountAttributesInput{AttributeNames: []types.AccountAttributeName{types.AccountAttributeNameDefaultVpc}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeAccountAttributes, Attributes: []string{"default-vpc"}, DryRun: true}},
		{"Elastic IP addresses", func() error {
			_, err := c.DescribeAddresses(ctx, &sdk.DescribeAddressesInput{PublicIps: []string{"192.0.2.1"}, AllocationIds: []string{"eipalloc-1"}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeAddresses, PublicIPs: []netip.Addr{addr("192.0.2.1")}, Allocations: []string{"eipalloc-1"}, DryRun: true}},
		{"route tables", func() error {
			_, err := c.DescribeRouteTables(ctx, &sdk.DescribeRouteTablesInput{RouteTableIds: []string{"rtb-1"}, DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DescribeRouteTables, RouteTables: []string{"rtb-1"}, DryRun: true}},
		{"delete a subnet", func() error {
			_, err := c.DeleteSubnet(ctx, &sdk.DeleteSubnetInput{SubnetId: str("subnet-1"), DryRun: yes})
			return err
		}, ec2.Request{Action: ec2.DeleteSubnet, Subnet: "subnet-1", DryRun: true}},
		{"types", func() error {
			_, err := c.DescribeInstanceTypes(ctx, &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceTypeM5Large}})
			return err
		}, ec2.Request{Action: ec2.DescribeInstanceTypes, Types: []string{"m5.large"}}},
	}
	seen := map[ec2.Action]bool{}
	for _, r := range rows {
		b.got = ec2.Request{}
		if err := r.ask(); err != nil {
			t.Errorf("%s: %v", r.name, err)
			continue
		}
		if !reflect.DeepEqual(b.got, r.want) {
			t.Errorf("%s: found\n%+v\nexpected\n%+v", r.name, b.got, r.want)
		}
		seen[r.want.Action] = true
	}
	for a := ec2.AnyAction + 1; a < ec2.ActionCount; a++ {
		if !seen[a] {
			t.Errorf("%v has no row", a)
		}
	}
}

// TestEveryAnswerFieldReachesTheSDK: each field of the model's answers arrives in the SDK.
func TestEveryAnswerFieldReachesTheSDK(t *testing.T) {
	epoch := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	b := &canned{}
	c := over(t, New(Options{Epoch: epoch, Account: func(s Signer) string { return "42-" + s.Region }}, b))
	ctx := t.Context()
	check := func(what string, found, want any) {
		t.Helper()
		if !reflect.DeepEqual(found, want) {
			t.Errorf("%s: found %v, expected %v", what, found, want)
		}
	}
	tags := []ec2.Tag{{Key: "a", Value: "b"}}

	b.answer = ec2.Response{ENIs: []ec2.ENI{{ID: "eni-1", Status: ec2.Attaching, Zone: "us-west-2b", Primary: addr("10.0.0.7"), Prefixes: []netip.Prefix{cidr("10.0.0.16/28")}, IPv6: []netip.Addr{addr("fd00::1")},
		IPv6Prefixes: []netip.Prefix{cidr("2001:db8:1:2:3::/80")}, Attachment: "eni-attach-1", NetworkCard: 3, AttachedAt: 90 * time.Second, SourceDestCheck: true, Owner: "o", SecurityGroups: []string{"sg-1"}, Tags: tags}}}
	enis := must.Get(c.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{}))(t)
	e := enis.NetworkInterfaces[0]
	check("prefixes", *e.Ipv4Prefixes[0].Ipv4Prefix+" "+*e.Ipv6Addresses[0].Ipv6Address+" "+*e.Ipv6Prefixes[0].Ipv6Prefix, "10.0.0.16/28 fd00::1 2001:db8:1:2:3::/80")
	check("attachment", *e.Attachment.AttachTime, epoch.Add(90*time.Second))
	check("card", *e.Attachment.NetworkCardIndex, int32(3))
	check("name", *e.PrivateDnsName+" "+*e.PrivateIpAddresses[0].PrivateDnsName, "ip-10-0-0-7.us-west-2.compute.internal ip-10-0-0-7.us-west-2.compute.internal")
	check("owner and check", *e.OwnerId+" "+*e.Attachment.InstanceOwnerId, "o o")
	check("check", *e.SourceDestCheck, true)
	check("tags", e.TagSet, tagA)

	b.answer = ec2.Response{Assigned: []netip.Addr{addr("10.0.0.7")}, Prefixes: []netip.Prefix{cidr("10.0.0.16/28")}}
	assigned, err := c.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &eni1})
	must.Do(t, err)
	check("assigned", *assigned.NetworkInterfaceId+" "+*assigned.AssignedPrivateIpAddresses[0].PrivateIpAddress+" "+*assigned.AssignedIpv4Prefixes[0].Ipv4Prefix, eni1+" 10.0.0.7 10.0.0.16/28")

	b.answer = ec2.Response{Assigned: []netip.Addr{addr("fd00::1")}, Prefixes: []netip.Prefix{cidr("2001:db8:1:2:3::/80")}}
	six := must.Get(c.AssignIpv6Addresses(ctx, &sdk.AssignIpv6AddressesInput{NetworkInterfaceId: &eni1}))(t)
	check("assigned IPv6", append(six.AssignedIpv6Addresses, six.AssignedIpv6Prefixes...), []string{"fd00::1", "2001:db8:1:2:3::/80"})
	gone, err := c.UnassignIpv6Addresses(ctx, &sdk.UnassignIpv6AddressesInput{NetworkInterfaceId: &eni1, Ipv6Addresses: []string{"fd00::1"}, Ipv6Prefixes: []string{"2001:db8:1:2:3::/80"}})
	must.Do(t, err)
	check("unassigned IPv6", append(gone.UnassignedIpv6Addresses, gone.UnassignedIpv6Prefixes...), []string{"fd00::1", "2001:db8:1:2:3::/80"})

	b.answer = ec2.Response{Attachment: "eni-attach-1"}
	attached, err := c.AttachNetworkInterface(ctx, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &eni1, InstanceId: &inst1, DeviceIndex: num(1), NetworkCardIndex: num(1)})
	must.Do(t, err)
	check("attached", *attached.NetworkCardIndex, int32(1))

	b.answer = ec2.Response{Subnets: []ec2.Subnet{{ID: "subnet-1", Zone: "us-west-2b", CIDR: cidr("10.0.0.0/24"), IPv6: cidr("fd00::/64"), Tags: tags}}}
	subnets := must.Get(c.DescribeSubnets(ctx, &sdk.DescribeSubnetsInput{}))(t)
	s := subnets.Subnets[0]
	check("subnet", *s.SubnetArn+" "+*s.OwnerId+" "+*s.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock, "arn:aws:ec2:us-west-2:42-us-west-2:subnet/subnet-1 42-us-west-2 fd00::/64")
	check("subnet's state", s.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlockState.State, types.SubnetCidrBlockStateCodeAssociated)
	check("subnet's tags", s.Tags, tagA)

	b.answer = ec2.Response{VPCs: []ec2.VPC{{ID: "vpc-1", CIDRs: []netip.Prefix{cidr("10.0.0.0/16"), cidr("10.1.0.0/16")}, IPv6: []netip.Prefix{cidr("fd00::/56")}, Tags: tags}}}
	vpcs := must.Get(c.DescribeVpcs(ctx, &sdk.DescribeVpcsInput{}))(t)
	v := vpcs.Vpcs[0]
	check("VPC", *v.VpcId+" "+*v.CidrBlock+" "+*v.CidrBlockAssociationSet[1].CidrBlock+" "+*v.Ipv6CidrBlockAssociationSet[0].Ipv6CidrBlock+" "+*v.OwnerId, "vpc-1 10.0.0.0/16 10.1.0.0/16 fd00::/56 42-us-west-2")
	check("VPC's state", v.CidrBlockAssociationSet[1].CidrBlockState.State, types.VpcCidrBlockStateCodeAssociated)
	check("VPC's tags", v.Tags, tagA)

	b.answer = ec2.Response{Groups: []ec2.SecurityGroup{{ID: "sg-1", Name: "n", Description: "d", VPC: "vpc-1", Tags: tags}}}
	groups := must.Get(c.DescribeSecurityGroups(ctx, &sdk.DescribeSecurityGroupsInput{}))(t)
	g := groups.SecurityGroups[0]
	check("group", *g.GroupId+" "+*g.GroupName+" "+*g.Description+" "+*g.VpcId+" "+*g.OwnerId, "sg-1 n d vpc-1 42-us-west-2")
	check("group's tags", g.Tags, tagA)

	b.answer = ec2.Response{Instances: []ec2.Instance{
		{ID: "i-1", Reservation: "r-1", Type: "m5.large", State: "pending", Zone: "us-east-1a", PrimaryAddress: addr("10.0.0.7"), Launched: time.Hour, Owner: "o", SecurityGroups: []string{"sg-1"}, Tags: tags,
			Interfaces: []ec2.Interface{{ENI: "eni-1", Attachment: "eni-attach-1", Device: 1, Card: 2, Status: ec2.InUse}}},
		{ID: "i-2", State: "shutting-down", Zone: "us-east-1a"},
	}}
	run, err := c.RunInstances(ctx, &sdk.RunInstancesInput{ImageId: str("ami-01234567"), InstanceType: types.InstanceTypeM5Large, MinCount: num(1), MaxCount: num(2)})
	must.Do(t, err)
	i := run.Instances[0]
	check("run", *run.OwnerId+" "+*run.ReservationId+" "+*i.PrivateDnsName+" "+*i.SecurityGroups[0].GroupId, "o r-1 ip-10-0-0-7.ec2.internal sg-1")
	check("launched", *i.LaunchTime, epoch.Add(time.Hour))
	check("state", i.State, &types.InstanceState{Code: num(0), Name: types.InstanceStateNamePending})
	check("card", *i.NetworkInterfaces[0].Attachment.NetworkCardIndex, int32(2))
	check("attached at", *i.NetworkInterfaces[0].Attachment.AttachTime, epoch)
	check("goes with it", *i.NetworkInterfaces[0].Attachment.DeleteOnTermination, false)
	check("second", run.Instances[1].State, &types.InstanceState{Code: num(32), Name: types.InstanceStateNameShuttingDown})
	described, err := c.DescribeInstances(ctx, &sdk.DescribeInstancesInput{Filters: []types.Filter{{Name: str("launch-time"), Values: []string{"2026-01-02T04:*"}}, {Name: str("network-interface.attachment.device-index"), Values: []string{"1"}}}})
	must.Do(t, err)
	check("by launch time", len(described.Reservations), 1)
	check("reservation", described.Reservations[0].Instances[0], i)

	b.answer = ec2.Response{Changes: []ec2.StateChange{{Instance: "i-1", Previous: "running", Current: "shutting-down"}}}
	changes := must.Get(c.TerminateInstances(ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{inst1}}))(t)
	check("terminated", changes.TerminatingInstances[0], types.InstanceStateChange{InstanceId: str("i-1"),
		PreviousState: &types.InstanceState{Code: num(16), Name: types.InstanceStateNameRunning}, CurrentState: &types.InstanceState{Code: num(32), Name: types.InstanceStateNameShuttingDown}})

	b.answer = ec2.Response{Types: []ec2.Type{{Name: "p4d.24xlarge", VCPUs: 96, MemoryMiB: 1024, Arch: "x86_64", Hypervisor: "nitro", Limits: ec2.Limits{ENIs: 15, IPv4PerENI: 50, IPv6PerENI: 50, Cards: 2}}}}
	kinds, err := c.DescribeInstanceTypes(ctx, &sdk.DescribeInstanceTypesInput{Filters: []types.Filter{{Name: str("network-info.maximum-network-cards"), Values: []string{"2"}}}})
	must.Do(t, err)
	k := kinds.InstanceTypes[0]
	check("type", []int32{*k.VCpuInfo.DefaultVCpus, *k.NetworkInfo.MaximumNetworkInterfaces, *k.NetworkInfo.MaximumNetworkCards, *k.NetworkInfo.NetworkCards[1].NetworkCardIndex,
		*k.NetworkInfo.NetworkCards[1].MaximumNetworkInterfaces, *k.NetworkInfo.Ipv6AddressesPerInterface}, []int32{96, 30, 2, 1, 15, 50})
	check("machine", *k.MemoryInfo.SizeInMiB, int64(1024))
	check("processor", k.ProcessorInfo.SupportedArchitectures, []types.ArchitectureType{"x86_64"})
	check("bare metal", *k.BareMetal, false)
}

// TestLookupsReachTheSDKFiltered: what tells of the account and its surroundings arrives in the SDK, filtered.
func TestLookupsReachTheSDKFiltered(t *testing.T) {
	b := &canned{}
	c := over(t, Handler(b))
	ctx := t.Context()
	check := func(what string, err error, found, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(found, want) {
			t.Errorf("%s: %v, found %+v, expected %+v", what, err, found, want)
		}
	}
	where := func(pairs ...string) (out []types.Filter) {
		for k := 0; k < len(pairs); k += 2 {
			out = append(out, types.Filter{Name: &pairs[k], Values: []string{pairs[k+1]}})
		}
		return out
	}

	kv := ec2.Tag{Key: "k", Value: "v"}
	b.answer = ec2.Response{Tags: []ec2.TagOf{{Tag: kv, Resource: "eni-1", Kind: "network-interface"}, {Tag: kv, Resource: "i-1", Kind: "instance"}, {Tag: ec2.Tag{Key: "k", Value: "w"}, Resource: "i-1", Kind: "instance"}}}
	tags, err := c.DescribeTags(ctx, &sdk.DescribeTagsInput{Filters: where("key", "k", "value", "v", "resource-id", "i-1", "resource-type", "instance", "tag:k", "?")})
	check("tags", err, tags.Tags, []types.TagDescription{{Key: str("k"), Value: str("v"), ResourceId: str("i-1"), ResourceType: types.ResourceTypeInstance}})

	b.answer = ec2.Response{Zones: []ec2.Zone{{Name: "us-west-2a", ID: "usw2-az1", Region: "us-west-2"}, {Name: "us-west-2b", ID: "usw2-az2", Region: "us-west-2"}}}
	zones, err := c.DescribeAvailabilityZones(ctx, &sdk.DescribeAvailabilityZonesInput{Filters: where("zone-name", "*b", "zone-id", "usw2-az2", "state", "available", "region-name", "us-west-2",
		"zone-type", "availability-zone", "opt-in-status", "opt-in-not-required", "group-name", "us-west-2-zg-1")})
	check("zones", err, zones.AvailabilityZones, []types.AvailabilityZone{{ZoneName: str("us-west-2b"), ZoneId: str("usw2-az2"), State: types.AvailabilityZoneStateAvailable, ZoneType: str("availability-zone"),
		RegionName: str("us-west-2"), GroupName: str("us-west-2-zg-1"), NetworkBorderGroup: str("us-west-2"), OptInStatus: types.AvailabilityZoneOptInStatusOptInNotRequired, Messages: []types.AvailabilityZoneMessage{}}})
	local, err := c.DescribeAvailabilityZones(ctx, &sdk.DescribeAvailabilityZonesInput{Filters: where("parent-zone-id", "*")})
	check("local zones", err, len(local.AvailabilityZones), 0)

	b.answer = ec2.Response{Regions: []string{"us-west-2", "cn-north-1"}}
	regions, err := c.DescribeRegions(ctx, &sdk.DescribeRegionsInput{Filters: where("endpoint", "ec2.us-west-2.amazonaws.com", "region-name", "us-*", "opt-in-status", "opt-in-not-required")})
	check("regions", err, regions.Regions, []types.Region{{RegionName: str("us-west-2"), Endpoint: str("ec2.us-west-2.amazonaws.com"), OptInStatus: str("opt-in-not-required")}})

	zone := ec2.Zone{Name: "us-west-2a", ID: "usw2-az1"}
	b.answer = ec2.Response{Statuses: []ec2.InstanceStatus{{Instance: "i-1", Zone: zone, State: "running", Status: "ok"}, {Instance: "i-2", Zone: zone, State: "running", Status: "initializing"},
		{Instance: "i-3", Zone: zone, State: "terminated", Status: "not-applicable"}}}
	status, err := c.DescribeInstanceStatus(ctx, &sdk.DescribeInstanceStatusInput{IncludeAllInstances: yes})
	var found []string
	for _, s := range status.InstanceStatuses {
		text := *s.InstanceId + " " + *s.AvailabilityZone + " " + *s.AvailabilityZoneId + " " + string(s.InstanceState.Name)
		for _, of := range []*types.InstanceStatusSummary{s.SystemStatus, s.InstanceStatus} {
			text += " " + string(of.Status)
			for _, d := range of.Details {
				text += " " + string(d.Name) + " " + string(d.Status)
			}
		}
		found = append(found, text)
	}
	check("status", err, found, []string{"i-1 us-west-2a usw2-az1 running ok reachability passed ok reachability passed",
		"i-2 us-west-2a usw2-az1 running initializing reachability initializing initializing reachability initializing", "i-3 us-west-2a usw2-az1 terminated not-applicable not-applicable"})
	for name, values := range map[string][3]string{ // of the first, the second, and the third instance
		"availability-zone": {"us-west-2a", "us-west-2a", "us-west-2a"}, "availability-zone-id": {"usw2-az1", "usw2-az1", "usw2-az1"},
		"instance-state-name": {"running", "running", "terminated"}, "instance-state-code": {"16", "16", "48"},
		"instance-status.status": {"ok", "initializing", "not-applicable"}, "system-status.status": {"ok", "initializing", "not-applicable"},
		"instance-status.reachability": {"passed", "initializing", ""}, "system-status.reachability": {"passed", "initializing", ""},
	} {
		for _, v := range values {
			want := 0
			for _, has := range values {
				if has == v {
					want++
				}
			}
			out, err := c.DescribeInstanceStatus(ctx, &sdk.DescribeInstanceStatusInput{Filters: where(name, v)})
			check("status by "+name+" "+v, err, len(out.InstanceStatuses), want)
		}
	}
}

// TestAttributes: attributes, reservations, addresses and routes arrive in the SDK, filtered.
func TestAttributes(t *testing.T) {
	b := &canned{}
	c := over(t, New(Options{Account: func(Signer) string { return "42" }}, b))
	ctx := t.Context()
	check := func(what string, err error, found, want any) {
		t.Helper()
		if err != nil || !reflect.DeepEqual(found, want) {
			t.Errorf("%s: %v, found %+v, expected %+v", what, err, found, want)
		}
	}
	filter := func(name, value string) []types.Filter {
		return []types.Filter{{Name: &name, Values: []string{value}}}
	}

	b.answer = ec2.Response{Reservations: []ec2.Reservation{{ID: "scr-1", Subnet: "subnet-1", CIDR: cidr("10.0.0.32/28"), Type: "explicit"}, {ID: "scr-2", Subnet: "subnet-1", CIDR: cidr("10.0.0.64/27"), Type: "prefix"}}}
	reserved, err := c.GetSubnetCidrReservations(ctx, &sdk.GetSubnetCidrReservationsInput{SubnetId: str("subnet-1"), Filters: filter("reservationType", "prefix")})
	check("reservations", err, reserved.SubnetIpv4CidrReservations, []types.SubnetCidrReservation{{SubnetCidrReservationId: str("scr-2"), SubnetId: str("subnet-1"), Cidr: str("10.0.0.64/27"),
		ReservationType: types.SubnetCidrReservationTypePrefix, OwnerId: str("42"), Tags: []types.Tag{}}})
	check("reservations of IPv6", err, len(reserved.SubnetIpv6CidrReservations), 0)
	for name, n := range map[string]int{"subnet-id": 2, "tag-key": 0, "tag:k": 0} {
		out, err := c.GetSubnetCidrReservations(ctx, &sdk.GetSubnetCidrReservationsInput{SubnetId: str("subnet-1"), Filters: filter(name, "*")})
		check("reservations by "+name, err, len(out.SubnetIpv4CidrReservations), n)
	}

	b.answer = ec2.Response{ENI: ec2.ENI{ID: "eni-1", Description: "d", SourceDestCheck: true, SecurityGroups: []string{"sg-1"}, Attachment: "eni-attach-1", Status: ec2.InUse, Instance: "i-1"}}
	for name, want := range map[types.NetworkInterfaceAttribute]string{"description": "d", "groupSet": "sg-1", "sourceDestCheck": "true", "attachment": "eni-attach-1", "associatePublicIpAddress": "false"} {
		a, err := c.DescribeNetworkInterfaceAttribute(ctx, &sdk.DescribeNetworkInterfaceAttributeInput{NetworkInterfaceId: &eni1, Attribute: name})
		must.Do(t, err)
		var found []string // a single one: the others are absent
		if a.Description != nil {
			found = append(found, *a.Description.Value)
		}
		for _, g := range a.Groups {
			found = append(found, *g.GroupId)
		}
		if a.SourceDestCheck != nil {
			found = append(found, strconv.FormatBool(*a.SourceDestCheck.Value))
		}
		if a.Attachment != nil {
			found = append(found, *a.Attachment.AttachmentId)
		}
		if a.AssociatePublicIpAddress != nil {
			found = append(found, strconv.FormatBool(*a.AssociatePublicIpAddress))
		}
		check("attribute "+string(name), nil, append(found, *a.NetworkInterfaceId), []string{want, "eni-1"})
	}

	b.answer = ec2.Response{}
	for name, want := range map[types.VpcAttributeName]bool{"enableDnsSupport": true, "enableDnsHostnames": false, "enableNetworkAddressUsageMetrics": false} {
		a, err := c.DescribeVpcAttribute(ctx, &sdk.DescribeVpcAttributeInput{VpcId: str("vpc-1"), Attribute: name})
		must.Do(t, err)
		var found []bool
		for _, v := range []*types.AttributeBooleanValue{a.EnableDnsSupport, a.EnableDnsHostnames, a.EnableNetworkAddressUsageMetrics} {
			if v != nil {
				found = append(found, *v.Value)
			}
		}
		check("VPC's attribute "+string(name)+" of "+*a.VpcId, nil, found, []bool{want})
	}

	b.answer = ec2.Response{Account: []ec2.AccountAttribute{{Name: "default-vpc", Value: "none"}}}
	account, err := c.DescribeAccountAttributes(ctx, &sdk.DescribeAccountAttributesInput{})
	check("account", err, account.AccountAttributes, []types.AccountAttribute{{AttributeName: str("default-vpc"), AttributeValues: []types.AccountAttributeValue{{AttributeValue: str("none")}}}})

	for _, name := range []string{"allocation-id", "association-id", "instance-id", "network-border-group", "network-interface-id", "network-interface-owner-id", "private-ip-address", "public-ip", "tag:k", "tag-key"} {
		out, err := c.DescribeAddresses(ctx, &sdk.DescribeAddressesInput{Filters: filter(name, "*")})
		check("addresses by "+name, err, len(out.Addresses), 0)
	}

	b.answer = ec2.Response{RouteTables: []ec2.RouteTable{{ID: "rtb-1", VPC: "vpc-1", Association: "rtbassoc-1", Local: []netip.Prefix{cidr("10.0.0.0/16"), cidr("fd00::/56")}}, {ID: "rtb-2", VPC: "vpc-2"}}}
	for name, value := range map[string]string{"route-table-id": "rtb-1", "association.route-table-id": "rtb-1", "vpc-id": "vpc-1", "association.route-table-association-id": "rtbassoc-1",
		"route.destination-cidr-block": "10.0.0.0/16", "route.destination-ipv6-cidr-block": "fd00::/56"} {
		tables, err := c.DescribeRouteTables(ctx, &sdk.DescribeRouteTablesInput{Filters: filter(name, value)})
		if err != nil || len(tables.RouteTables) != 1 {
			t.Errorf("route tables by %s: %v, found %+v", name, err, tables)
			continue
		}
		r := tables.RouteTables[0]
		check("routes", nil, r.Routes, []types.Route{{DestinationCidrBlock: str("10.0.0.0/16"), GatewayId: str("local"), State: types.RouteStateActive, Origin: types.RouteOriginCreateRouteTable},
			{DestinationIpv6CidrBlock: str("fd00::/56"), GatewayId: str("local"), State: types.RouteStateActive, Origin: types.RouteOriginCreateRouteTable}})
		check("associations", nil, r.Associations, []types.RouteTableAssociation{{Main: yes, RouteTableAssociationId: str("rtbassoc-1"), RouteTableId: str("rtb-1"),
			AssociationState: &types.RouteTableAssociationState{State: types.RouteTableAssociationStateCodeAssociated}}})
		check("owner", nil, *r.OwnerId+" "+*r.VpcId, "42 vpc-1")
	}
	for name, n := range map[string]int{"owner-id": 2, "association.main": 2, "route.gateway-id": 2, "route.origin": 2, "route.state": 2, "association.subnet-id": 0, "tag:k": 0} {
		tables, err := c.DescribeRouteTables(ctx, &sdk.DescribeRouteTablesInput{Filters: filter(name, "*")})
		check("route tables by "+name, err, len(tables.RouteTables), n)
	}
}
