package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go/middleware"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// TestInterfaceLifeBySDK is the story of an interface, as aws-sdk-go-v2 tells it, from creation to deletion.
func TestInterfaceLifeBySDK(t *testing.T) {
	w := newWorld(t)
	ctx := w.ctx()
	created := must.Get(w.CreateNetworkInterface(ctx, &sdk.CreateNetworkInterfaceInput{
		SubnetId: aws.String(string(plenty)), Description: aws.String("aws-K8S-<i> & \"co\""), ClientToken: aws.String("token-1"),
		Groups: []string{"sg-2", "sg-1"}, SecondaryPrivateIpAddressCount: aws.Int32(3),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: []types.Tag{
			{Key: aws.String("cluster.k8s.amazonaws.com/name"), Value: aws.String("demo")}, {Key: aws.String("empty"), Value: aws.String("")},
		}}},
	}))(t)
	e := created.NetworkInterface
	id := *e.NetworkInterfaceId
	if got := aws.ToString(e.Description); got != "aws-K8S-<i> & \"co\"" {
		t.Errorf("description: found %q", got)
	}
	if e.Status != types.NetworkInterfaceStatusAvailable || e.Attachment != nil || *e.OwnerId != ec2.Account ||
		*e.AvailabilityZone != "us-west-2a" || *e.SubnetId != string(plenty) || e.InterfaceType != types.NetworkInterfaceTypeInterface {
		t.Errorf("created: found %+v", e)
	}
	if len(e.Groups) != 2 || *e.Groups[0].GroupId != "sg-2" || len(e.TagSet) != 2 || *e.TagSet[0].Value != "demo" || *e.TagSet[1].Value != "" {
		t.Errorf("created: groups %v, tags %v", e.Groups, e.TagSet)
	}
	if n := len(e.PrivateIpAddresses); n != 4 || !*e.PrivateIpAddresses[0].Primary || *e.PrivateIpAddresses[1].Primary ||
		*e.PrivateIpAddresses[0].PrivateIpAddress != *e.PrivateIpAddress {
		t.Errorf("created: addresses %v", e.PrivateIpAddresses)
	}
	if aws.ToString(created.ClientToken) != "token-1" || requestID(created.ResultMetadata) == "" {
		t.Errorf("created: client token %v, request ID %q", created.ClientToken, requestID(created.ResultMetadata))
	}
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		if mac := c.MAC(ec2.ENIID(id)); mac != *e.MacAddress || c.VPCID() != *e.VpcId {
			t.Errorf("MAC %s, VPC %s: found %s, %s", mac, c.VPCID(), *e.MacAddress, *e.VpcId)
		}
	})

	must.Get(w.CreateTags(ctx, &sdk.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String("more"), Value: aws.String("ü")}}}))(t)
	attached := must.Get(w.AttachNetworkInterface(ctx, &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: w.instance(),
		DeviceIndex: aws.Int32(1)}))(t)
	if now := w.one(id); now.Status != types.NetworkInterfaceStatusInUse || now.Attachment.Status != types.AttachmentStatusAttaching || *now.TagSet[2].Value != "ü" {
		t.Errorf("while it attaches: found %v, %v, %v", now.Status, now.Attachment.Status, now.TagSet)
	}
	w.skip(2 * time.Minute)
	must.Get(w.ModifyNetworkInterfaceAttribute(ctx, &sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &id,
		Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: attached.AttachmentId, DeleteOnTermination: aws.Bool(true)}}))(t)
	now := w.one(id)
	a := now.Attachment
	if a == nil || *a.AttachmentId != *attached.AttachmentId || *a.InstanceId != string(w.inst) || *a.DeviceIndex != 1 || *a.NetworkCardIndex != 0 ||
		a.Status != types.AttachmentStatusAttached || !*a.DeleteOnTermination || *a.InstanceOwnerId != ec2.Account {
		t.Fatalf("attached: found %+v", a)
	}

	assigned, err := w.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, SecondaryPrivateIpAddressCount: aws.Int32(2)})
	if err != nil || len(assigned.AssignedPrivateIpAddresses) != 2 || *assigned.NetworkInterfaceId != id {
		t.Fatalf("assign: %v, %+v", err, assigned)
	}
	exact := []string{"10.0.3.200"}
	assigned, err = w.AssignPrivateIpAddresses(ctx, &sdk.AssignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: exact})
	if err != nil || *assigned.AssignedPrivateIpAddresses[0].PrivateIpAddress != exact[0] {
		t.Fatalf("assign %v: %v, %+v", exact, err, assigned)
	}
	if n := len(w.one(id).PrivateIpAddresses); n != 7 {
		t.Errorf("addresses after assigning: found %d, expected 7", n)
	}
	if _, err = w.UnassignPrivateIpAddresses(ctx, &sdk.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &id, PrivateIpAddresses: exact}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.one(id).PrivateIpAddresses); n != 6 {
		t.Errorf("addresses after unassigning: found %d, expected 6", n)
	}

	must.Get(w.DetachNetworkInterface(ctx, &sdk.DetachNetworkInterfaceInput{AttachmentId: attached.AttachmentId}))(t)
	if now := w.one(id); now.Attachment.Status != types.AttachmentStatusDetaching {
		t.Errorf("while it detaches: found %v", now.Attachment.Status)
	}
	_, err = w.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id})
	w.refused("delete while it detaches", err, "InvalidParameterValue", 400)
	w.skip(2 * time.Minute)
	if _, err := w.DeleteNetworkInterface(ctx, &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: &id}); err != nil {
		t.Error(err)
	}
	_, err = w.DescribeNetworkInterfaces(ctx, &sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
	w.refused("describe what is gone", err, "InvalidNetworkInterfaceID.NotFound", 400)
}

func requestID(m middleware.Metadata) string {
	id, _ := awsmiddleware.GetRequestIDMetadata(m)
	return id
}

// one describes one interface.
func (w *world) one(id string) types.NetworkInterface {
	w.t.Helper()
	out, err := w.DescribeNetworkInterfaces(w.ctx(), &sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{id}})
	if err != nil || len(out.NetworkInterfaces) != 1 {
		w.t.Fatalf("describe %s: %v, %d found", id, err, len(out.NetworkInterfaces))
	}
	return out.NetworkInterfaces[0]
}

// TestInterfaceReachesTheSDKWhole: what the model says of an interface arrives, whatever happened to it.
func TestInterfaceReachesTheSDKWhole(t *testing.T) {
	w := newWorld(t)
	w.attach(w.create(plenty, 4), 2)
	w.create(tiny, 0)
	out := must.Get(w.DescribeNetworkInterfaces(w.ctx(), &sdk.DescribeNetworkInterfacesInput{}))(t)
	var found []ec2.ENI
	for _, e := range out.NetworkInterfaces {
		v := ec2.ENI{ID: ec2.ENIID(*e.NetworkInterfaceId), MAC: *e.MacAddress, Subnet: ec2.SubnetID(*e.SubnetId), Zone: *e.AvailabilityZone, VPC: *e.VpcId, Owner: *e.OwnerId, Description: *e.Description, SourceDestCheck: *e.SourceDestCheck}
		for i, a := range e.PrivateIpAddresses {
			if v.Primary = netip.MustParseAddr(*e.PrivateIpAddress); i > 0 {
				v.Secondaries = append(v.Secondaries, netip.MustParseAddr(*a.PrivateIpAddress))
			}
		}
		for _, g := range e.Groups {
			v.SecurityGroups = append(v.SecurityGroups, *g.GroupId)
		}
		if a := e.Attachment; a != nil {
			v.Status, v.Attachment, v.Instance, v.DeviceIndex, v.DeleteOnTermination = ec2.InUse, *a.AttachmentId, ec2.InstanceID(*a.InstanceId), int(*a.DeviceIndex), *a.DeleteOnTermination
		}
		found = append(found, v)
	}
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		want := c.AllENIs()
		for i := range want {
			want[i].Created, want[i].AttachedAt = 0, 0
		}
		if f, w := fmt.Sprintf("%+v", found), fmt.Sprintf("%+v", want); f != w {
			t.Errorf("found    %s\nexpected %s", f, w)
		}
	})
}

func TestFilters(t *testing.T) {
	w := newWorld(t)
	loose, tagged, used := w.create(plenty, 0), w.create(plenty, 0), w.create(plenty, 0)
	attachment := w.attach(used, 1)
	_, err := w.CreateTags(w.ctx(), &sdk.CreateTagsInput{Resources: []string{tagged, used}, Tags: []types.Tag{{Key: aws.String("owner"), Value: aws.String("i-1*")}}})
	must.Do(t, err)
	primary := ""
	w.model(func(c *ec2.Cloud, _ time.Duration) { primary = string(c.AttachedENIs(w.inst)[0]) })
	type f = map[string][]string
	rows := []struct {
		filters f
		want    []string
		code    string
	}{
		{f{"attachment.instance-id": {string(w.inst)}}, []string{primary, used}, ""},
		{f{"attachment.instance-id": {"i-0123456789abcdef0"}}, nil, ""},
		{f{"attachment.instance-id": {"i-*"}}, []string{primary, used}, ""},
		{f{"attachment.attachment-id": {attachment}}, []string{used}, ""},
		{f{"attachment.status": {"attached"}}, []string{primary, used}, ""},
		{f{"attachment.device-index": {"0"}}, []string{primary}, ""},
		{f{"status": {"available"}}, []string{loose, tagged}, ""},
		{f{"status": {"in-use"}}, []string{primary, used}, ""},
		{f{"status": {"in-use", "available"}}, []string{primary, loose, tagged, used}, ""},
		{f{"status": {"attaching"}}, nil, ""},
		{f{"tag-key": {"owner"}}, []string{tagged, used}, ""},
		{f{"tag-key": {"own??"}}, []string{tagged, used}, ""},
		{f{"tag-key": {"Owner"}}, nil, ""},
		{f{"tag:owner": {"i-1*"}}, []string{tagged, used}, ""},
		{f{"tag:owner": {`i-1\*`}}, []string{tagged, used}, ""},
		{f{"tag:owner": {`i-1\?`}}, nil, ""},
		{f{"tag:owner": {"i-2", "i-1*"}, "status": {"available"}}, []string{tagged}, ""},
		{f{"tag:other": {"*"}}, nil, ""},
		{f{"network-interface-id": {loose, used}}, []string{loose, used}, ""},
		{f{"subnet-id": {string(tiny)}}, nil, ""},
		{f{"vpc-id": {"vpc-*"}, "availability-zone": {"us-west-2a"}, "group-id": {"sg-1"}, "owner-id": {ec2.Account}}, []string{primary, loose, tagged, used}, ""},
		{f{"colour": {"red"}}, nil, "InvalidParameterValue"},
		{f{"tag:": {"red"}}, nil, "InvalidParameterValue"},
		{f{"status": {}}, nil, "InvalidParameterValue"},
		{f{"status": make([]string, 201)}, nil, "FilterLimitExceeded"},
	}
	for _, r := range rows {
		in := &sdk.DescribeNetworkInterfacesInput{}
		for name, values := range r.filters {
			in.Filters = append(in.Filters, types.Filter{Name: aws.String(name), Values: values})
		}
		out, err := w.DescribeNetworkInterfaces(w.ctx(), in)
		if got, _ := code(err); got != r.code || err != nil && r.code == "" {
			t.Errorf("%v: %v, expected code %q", r.filters, err, r.code)
			continue
		}
		if err == nil && !slices.Equal(names(out.NetworkInterfaces), r.want) {
			t.Errorf("%v: found %v, expected %v", r.filters, names(out.NetworkInterfaces), r.want)
		}
	}
}

func names(list []types.NetworkInterface) (out []string) {
	for _, e := range list {
		out = append(out, *e.NetworkInterfaceId)
	}
	return out
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	var want []string
	for range 13 {
		want = append(want, w.create(plenty, 0))
	}
	in := &sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5), Filters: []types.Filter{{Name: aws.String("status"), Values: []string{"available"}}}}
	var found []string
	token := ""
	pages := sdk.NewDescribeNetworkInterfacesPaginator(w, in)
	for n := 0; pages.HasMorePages(); n++ {
		out := must.Get(pages.NextPage(w.ctx()))(t)
		if size := len(out.NetworkInterfaces); size != 5 && n < 2 || size != 3 && n == 2 || n > 2 {
			t.Errorf("page %d has %d", n, size)
		}
		found = append(found, names(out.NetworkInterfaces)...)
		if out.NextToken != nil {
			token = *out.NextToken
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		if n := c.CallsBy(w.inst, ec2.DescribeNetworkInterfaces).OK; n != 3 {
			t.Errorf("%d calls counted for the instance, expected one per page, 3", n)
		}
	})
	bad := []struct {
		in   sdk.DescribeNetworkInterfacesInput
		code string
	}{
		{sdk.DescribeNetworkInterfacesInput{NextToken: &token}, "InvalidPaginationToken"}, // of another question
		{sdk.DescribeNetworkInterfacesInput{NextToken: aws.String("x")}, "InvalidPaginationToken"},
		{sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(4)}, "InvalidParameterValue"},
		{sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(1001)}, "InvalidParameterValue"},
		{sdk.DescribeNetworkInterfacesInput{MaxResults: aws.Int32(5), NetworkInterfaceIds: want[:1]}, "InvalidParameterCombination"},
	}
	for _, r := range bad {
		_, err := w.DescribeNetworkInterfaces(w.ctx(), &r.in)
		if got, _ := code(err); got != r.code {
			t.Errorf("%+v: %v, expected %s", r.in, err, r.code)
		}
	}
}

// TestSubnetsInstancesAndTypesBySDK: subnets, instances and their types.
func TestSubnetsInstancesAndTypesBySDK(t *testing.T) {
	w := newWorld(t)
	id := w.create(plenty, 0)
	attachment := w.attach(id, 1)
	subnets, err := w.DescribeSubnets(w.ctx(), &sdk.DescribeSubnetsInput{})
	if err != nil || len(subnets.Subnets) != 2 {
		t.Fatalf("%v, %+v", err, subnets)
	}
	if s := subnets.Subnets[1]; *s.SubnetId != string(tiny) || *s.CidrBlock != "10.0.4.0/28" || *s.AvailableIpAddressCount != 11 || *s.AvailabilityZone != "us-west-2a" || s.State != types.SubnetStateAvailable {
		t.Errorf("found %+v", s)
	}
	both, err := w.DescribeSubnets(w.ctx(), &sdk.DescribeSubnetsInput{SubnetIds: []string{string(tiny), string(plenty)}, Filters: []types.Filter{{Name: aws.String("cidr-block"), Values: []string{"10.0.0.0/22"}}}})
	if err != nil || len(both.Subnets) != 1 || *both.Subnets[0].SubnetId != string(plenty) {
		t.Errorf("%v, %+v", err, both)
	}
	_, err = w.DescribeSubnets(w.ctx(), &sdk.DescribeSubnetsInput{SubnetIds: []string{string(tiny), "subnet-none"}})
	if got, _ := code(err); got != "InvalidSubnetID.NotFound" {
		t.Errorf("an unknown subnet among others: %v", err)
	}

	instances, err := w.DescribeInstances(w.ctx(), &sdk.DescribeInstancesInput{InstanceIds: []string{string(w.inst)}})
	must.Do(t, err)
	i := instances.Reservations[0].Instances[0]
	if *i.InstanceId != string(w.inst) || i.InstanceType != "m5.large" || i.State.Name != types.InstanceStateNameRunning || *i.Placement.AvailabilityZone != "us-west-2a" ||
		len(i.NetworkInterfaces) != 2 || *i.NetworkInterfaces[1].Attachment.AttachmentId != attachment || *i.NetworkInterfaces[1].Attachment.DeviceIndex != 1 || *i.Tags[0].Value != "node-1" {
		t.Errorf("found %+v", i)
	}
	some, err := w.DescribeInstances(w.ctx(), &sdk.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-state-name"), Values: []string{"terminated"}}}})
	if err != nil || len(some.Reservations) != 0 {
		t.Errorf("%v, %+v", err, some)
	}

	kinds, err := w.DescribeInstanceTypes(w.ctx(), &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"c5.4xlarge", "t3.small"}})
	must.Do(t, err)
	n := kinds.InstanceTypes[0].NetworkInfo
	if *n.MaximumNetworkInterfaces != 8 || *n.Ipv4AddressesPerInterface != 30 || *n.NetworkCards[0].MaximumNetworkInterfaces != 8 || *n.DefaultNetworkCardIndex != 0 {
		t.Errorf("found %+v", n)
	}
	_, err = w.DescribeInstanceTypes(w.ctx(), &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"t3.small", "z9.huge"}})
	if got, _ := code(err); got != "InvalidInstanceType" {
		t.Errorf("an unknown type: %v", err)
	}
	count := 0
	for pages := sdk.NewDescribeInstanceTypesPaginator(w, &sdk.DescribeInstanceTypesInput{MaxResults: aws.Int32(7)}); pages.HasMorePages(); {
		out := must.Get(pages.NextPage(w.ctx()))(t)
		for _, k := range out.InstanceTypes {
			count++
			if l, ok := ec2.LimitsOf(string(k.InstanceType)); !ok || l.MaximumENIs() != int(*k.NetworkInfo.MaximumNetworkInterfaces) {
				t.Errorf("%s: found %d interfaces", k.InstanceType, *k.NetworkInfo.MaximumNetworkInterfaces)
			}
		}
	}
	if count < 40 {
		t.Errorf("only %d types", count)
	}
}

// TestClientTokenIsIdempotent: a repetition with the same token is the same interface; with other parameters it is
// refused.
func TestClientTokenIsIdempotent(t *testing.T) {
	w := newWorld(t)
	in := &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), ClientToken: aws.String("a-token")}
	first := must.Get(w.CreateNetworkInterface(w.ctx(), in))(t)
	again, err := w.CreateNetworkInterface(w.ctx(), in)
	if err != nil || *again.NetworkInterface.NetworkInterfaceId != *first.NetworkInterface.NetworkInterfaceId {
		t.Errorf("%v: %v, expected the first one", err, again)
	}
	in.Description = aws.String("another")
	_, err = w.CreateNetworkInterface(w.ctx(), in)
	if got, _ := code(err); got != "IdempotentParameterMismatch" {
		t.Errorf("another request with the token: %v", err)
	}
}

// TestAddresses: those that a creation asks for by value arrive in order, primary first.
func TestAddresses(t *testing.T) {
	w := newWorld(t)
	address := func(a string, primary bool) types.PrivateIpAddressSpecification {
		return types.PrivateIpAddressSpecification{PrivateIpAddress: aws.String(a), Primary: aws.Bool(primary)}
	}
	out := must.Get(w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)),
		PrivateIpAddresses: []types.PrivateIpAddressSpecification{address("10.0.1.9", false), address("10.0.1.7", true), address("10.0.1.8", false)}}))(t)
	var found []string
	for _, a := range out.NetworkInterface.PrivateIpAddresses {
		found = append(found, *a.PrivateIpAddress)
	}
	if want := []string{"10.0.1.7", "10.0.1.9", "10.0.1.8"}; !slices.Equal(found, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
	for _, bad := range [][]types.PrivateIpAddressSpecification{{address("10.0.2.7", true), address("10.0.2.8", true)}, {address("10.0.2.7", false)}} {
		_, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), PrivateIpAddresses: bad})
		if got, _ := code(err); got != "InvalidParameterCombination" {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestLostAnswersEndTheConnection: an answer that is lost, a request that is lost, and a Backend that gives up are
// connections that end without a word.
func TestLostAnswersEndTheConnection(t *testing.T) {
	w := newWorld(t)
	in := &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), ClientToken: aws.String("lost")}
	w.fault(ec2.Fault{Kind: ec2.Lose, Action: ec2.CreateNetworkInterface, Times: 1})
	silent := func(what string, err error) {
		t.Helper()
		if got, _ := code(err); err == nil || got != "" {
			t.Errorf("%s: %v, expected the connection to end", what, err)
		}
	}
	_, err := w.CreateNetworkInterface(w.ctx(), in)
	silent("lost answer", err)
	made := 0
	w.model(func(c *ec2.Cloud, _ time.Duration) { made = c.CountENIs(ec2.Available) })
	if made != 1 {
		t.Errorf("%d interfaces made, expected that the lost answer's is there, once: nobody sends a request again", made)
	}
	again, err := w.CreateNetworkInterface(w.ctx(), in)
	if err != nil {
		t.Fatalf("the same request again: %v", err)
	}
	w.one(*again.NetworkInterface.NetworkInterfaceId)

	w.fault(ec2.Fault{Kind: ec2.LoseRequest, Times: 1})
	_, err = w.DeleteNetworkInterface(w.ctx(), &sdk.DeleteNetworkInterfaceInput{NetworkInterfaceId: again.NetworkInterface.NetworkInterfaceId})
	silent("lost request", err)
	w.one(*again.NetworkInterface.NetworkInterfaceId)

	w.b.mu.Lock()
	w.b.err = errors.New("the cable is out")
	w.b.mu.Unlock()
	_, err = w.DescribeSubnets(w.ctx(), &sdk.DescribeSubnetsInput{})
	silent("a Backend's error", err)
}

// TestParallel: many callers at once, with requests that take their time, and one model.
func TestParallel(t *testing.T) {
	w := newWorld(t, func(c *ec2.Config) {
		for a := range c.Latency.Call {
			c.Latency.Call[a] = ec2.Span{Min: time.Millisecond, Median: 2 * time.Millisecond, Max: 5 * time.Millisecond}
		}
	})
	const callers, each = 8, 10
	var group sync.WaitGroup
	made := make(chan string, callers*each)
	for range callers {
		group.Go(func() {
			for range each {
				out, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(plenty)), SecondaryPrivateIpAddressCount: aws.Int32(3)})
				if err != nil {
					t.Error(err)
					return
				}
				made <- *out.NetworkInterface.NetworkInterfaceId
			}
		})
	}
	group.Wait()
	close(made)
	different := map[string]bool{}
	for id := range made {
		different[id] = true
	}
	w.model(func(c *ec2.Cloud, _ time.Duration) {
		if n := c.CountENIs(ec2.Available); n != callers*each || len(different) != n {
			t.Errorf("%d interfaces, %d different identifiers, expected %d", n, len(different), callers*each)
		}
	})
}

// TestStatusWaiter: the SDK's waiter for an instance that has passed its checks ends when it has.
func TestStatusWaiter(t *testing.T) {
	w := newWorld(t, func(c *ec2.Config) { c.Latency.Launch = ec2.Always(0) })
	run, err := w.RunInstances(w.ctx(), &sdk.RunInstancesInput{ImageId: aws.String("ami-00000000"), InstanceType: types.InstanceTypeM5Large, MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(string(plenty))})
	must.Do(t, err)
	asked := 0
	waiter := sdk.NewInstanceStatusOkWaiter(w, func(o *sdk.InstanceStatusOkWaiterOptions) {
		o.MinDelay, o.MaxDelay = time.Millisecond, time.Millisecond
		retry := o.Retryable
		o.Retryable = func(ctx context.Context, in *sdk.DescribeInstanceStatusInput, out *sdk.DescribeInstanceStatusOutput, err error) (bool, error) {
			asked++
			w.skip(20 * time.Second)
			return retry(ctx, in, out, err)
		}
	})
	in := &sdk.DescribeInstanceStatusInput{InstanceIds: []string{*run.Instances[0].InstanceId}}
	if err := waiter.Wait(w.ctx(), in, time.Minute); err != nil || asked < 4 {
		t.Errorf("%v after %d questions, expected success after a minute", err, asked)
	}
}
