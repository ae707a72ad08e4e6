package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/enilab/enilab/impl/ipam"
)

// Bounds on lists. EC2 takes 5 to 1000 as a page's size; a page in memory is worth 15 KB per ENI.
const (
	pageSize  = 100
	mostPages = 100
)

const describeENIs = "DescribeNetworkInterfaces"

// ENIs are EC2's words on interfaces, asked by ID (LookENI). One that EC2 does not know is left out: that is its word on it. The list
// is whole, or there is an error.
func (c *Cloud) ENIs(ctx context.Context, ids []string) ([]ipam.ENI, error) {
	var out []ipam.ENI
	for chunk := range slices.Chunk(ids, pageSize) {
		list, err := c.known(ctx, chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

// known asks again without the ID that EC2 does not know, for an unknown one spoils the answer for the others (amazon-vpc-cni-k8s does
// the same). Every round drops at least one.
func (c *Cloud) known(ctx context.Context, ids []string) ([]ipam.ENI, error) {
	ids = slices.Clone(ids)
	for len(ids) > 0 {
		r, err := c.describe(ctx, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: ids})
		if err == nil {
			return c.translate(r.NetworkInterfaces)
		}
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != "InvalidNetworkInterfaceID.NotFound" {
			return nil, err
		}
		rest := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return mentions(api.ErrorMessage(), id) })
		if len(rest) == len(ids) {
			return nil, err
		}
		ids = rest
	}
	return nil, nil
}

// mentions says whether a text has that very ID, not just a longer one that begins with it.
func mentions(text, id string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	}), id)
}

// Attached are the interfaces attached to this instance by EC2's word (LookAttached), but for those on further network cards, whose
// device indexes begin anew.
func (c *Cloud) Attached(ctx context.Context) ([]ipam.ENI, error) {
	self, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	found, err := c.pages(ctx, filter("attachment.instance-id", self.ID))
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(e types.NetworkInterface) bool {
		return e.Attachment != nil && aws.ToInt32(e.Attachment.NetworkCardIndex) > 0
	})
	for i := range found {
		c.learnCIDR(ctx, aws.ToString(found[i].SubnetId))
	}
	return c.translate(found)
}

// Leaked are the available interfaces that a VPC CNI made (LookLeaked): those tagged with this cluster or, where it has no name, with any or none.
func (c *Cloud) Leaked(ctx context.Context) ([]ipam.ENI, error) {
	self, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	whose := filter("tag:"+tagCluster, c.cfg.Cluster)
	if c.cfg.Cluster == "" {
		whose = filter("tag-key", tagOwner)
	}
	found, err := c.pages(ctx, filter("status", string(types.NetworkInterfaceStatusAvailable)), whose)
	if err != nil {
		return nil, err
	}
	list, err := c.translate(found) // all of it: half a list is an error
	if err != nil {
		return nil, err
	}
	var owners []string
	for i := range list {
		if o := list[i].Owner; o != "" && o != self.ID && !slices.Contains(owners, o) {
			owners = append(owners, o)
		}
	}
	lives := c.instances(ctx, self.ID, owners)
	var out []ipam.ENI
	for i, e := range list {
		if e.Owner != "" {
			e.OwnerGone = lives.gone[e.Owner]
			e.Near = lives.vpc != "" && lives.vpc == aws.ToString(found[i].VpcId) && tagged(&found[i], tagCluster) == c.cfg.Cluster
			out = append(out, e)
		}
	}
	return out, nil
}

// living is which of some instances EC2 says to be gone, and which VPC this one is in; of what EC2 does not say, none.
type living struct {
	vpc  string
	gone map[string]bool
}

// instances asks about other instances and about this one: an answer that lacks the one that asks is not believed. The permission may be
// missing; then none of them is taken for gone.
func (c *Cloud) instances(ctx context.Context, self string, owners []string) living {
	if len(owners) == 0 {
		return living{}
	}
	out := living{gone: map[string]bool{}}
	for chunk := range slices.Chunk(owners, pageSize) {
		r, err := c.describeInstances(ctx, append([]string{self}, chunk...))
		if err != nil || aws.ToString(r.NextToken) != "" {
			return living{}
		}
		known := map[string]bool{}
		for i := range r.Reservations {
			for _, v := range r.Reservations[i].Instances {
				id := aws.ToString(v.InstanceId)
				known[id] = v.State == nil || v.State.Name != types.InstanceStateNameTerminated
				if id == self {
					out.vpc = aws.ToString(v.VpcId)
				}
			}
		}
		if !known[self] || out.vpc == "" {
			return living{}
		}
		for _, id := range chunk {
			out.gone[id] = !known[id]
		}
	}
	return out
}

// describeInstances filters by ID and does not name IDs: one that EC2 does not know is left out of the answer, and is no error.
func (c *Cloud) describeInstances(ctx context.Context, ids []string) (*ec2.DescribeInstancesOutput, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	const action = "DescribeInstances"
	ctx, x := withExchange(ctx, action)
	began := time.Now()
	r, err := api.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{{Name: aws.String("instance-id"), Values: ids}}})
	class, _ := classify(err, x)
	c.log(action, strings.Join(ids, " "), time.Since(began), class, err)
	return r, err
}

// tagged is the value of an interface's tag, "" if it has none.
func tagged(e *types.NetworkInterface, key string) string {
	for i := range e.TagSet {
		if aws.ToString(e.TagSet[i].Key) == key {
			return aws.ToString(e.TagSet[i].Value)
		}
	}
	return ""
}

func filter(name, value string) types.Filter {
	return types.Filter{Name: &name, Values: []string{value}}
}

// pages is a whole list, page by page.
func (c *Cloud) pages(ctx context.Context, filters ...types.Filter) ([]types.NetworkInterface, error) {
	in := &ec2.DescribeNetworkInterfacesInput{Filters: filters, MaxResults: aws.Int32(pageSize)}
	var out []types.NetworkInterface
	for range mostPages {
		r, err := c.describe(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(out, r.NetworkInterfaces...)
		next := aws.ToString(r.NextToken)
		if next == "" {
			return out, nil
		}
		if next == aws.ToString(in.NextToken) {
			return nil, fmt.Errorf("ec2 %s: the page after %d interfaces names itself as the next one", describeENIs, len(out))
		}
		in.NextToken = &next
	}
	return nil, fmt.Errorf("ec2 %s: more than %d pages of %d interfaces", describeENIs, mostPages, pageSize)
}

func (c *Cloud) describe(ctx context.Context, in *ec2.DescribeNetworkInterfacesInput) (*ec2.DescribeNetworkInterfacesOutput, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	ctx, x := withExchange(ctx, describeENIs)
	began := time.Now()
	r, err := api.DescribeNetworkInterfaces(ctx, in)
	class, code := classify(err, x)
	c.log(describeENIs, strings.Join(in.NetworkInterfaceIds, " "), time.Since(began), class, err)
	if err != nil {
		return nil, &failure{describeENIs, code, class, err}
	}
	return r, nil
}

// translate is all of a list, or an error.
func (c *Cloud) translate(list []types.NetworkInterface) ([]ipam.ENI, error) {
	out := make([]ipam.ENI, 0, len(list))
	for i := range list {
		e, err := c.eni(&list[i])
		if err != nil {
			return nil, fmt.Errorf("ec2 %s: %w", describeENIs, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// failure is what a look at EC2 failed with; its text says what EC2 said.
type failure struct {
	action, code string
	class        ipam.Class
	err          error
}

func (f *failure) Error() string {
	var api smithy.APIError
	if errors.As(f.err, &api) && named(api.ErrorCode()) {
		return fmt.Sprintf("ec2 %s: %s: %s", f.action, f.code, api.ErrorMessage())
	}
	return fmt.Sprintf("ec2 %s: %s", f.action, f.code)
}

func (f *failure) Unwrap() error { return f.err }

func (c *Cloud) cidrOf(subnet string) netip.Prefix {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cidrs[subnet]
}

func (c *Cloud) keepCIDR(subnet string, p netip.Prefix) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cidrs[subnet] = p
}

// learnCIDR asks EC2 for a subnet that metadata has not shown yet: DescribeNetworkInterfaces does not say its CIDR. It is a help, not a
// condition: the permission may be missing, and metadata will show it.
func (c *Cloud) learnCIDR(ctx context.Context, subnet string) {
	if subnet == "" || c.cidrOf(subnet).IsValid() {
		return
	}
	_, _ = c.describeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{subnet}}, subnet)
}
