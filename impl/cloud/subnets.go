package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/impl/ipam"
)

const describeSubnets = "DescribeSubnets"

// Subnets are those of this instance's VPC and zone, in EC2's order (LookSubnets). The list is whole, or there is an error.
func (c *Cloud) Subnets(ctx context.Context) ([]ipam.Subnet, error) {
	self, err := c.identity(ctx)
	if err != nil {
		return nil, err
	}
	vpc := ""
	if err := c.must(ctx, macs+self.PrimaryMAC+"/vpc-id", &vpc); err != nil {
		return nil, err
	}
	in := &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", vpc), filter("availability-zone", self.Zone)}}
	var out []ipam.Subnet
	for range mostPages {
		r, err := c.describeSubnets(ctx, in, vpc+" "+self.Zone)
		if err != nil {
			return nil, err
		}
		for i := range r.Subnets {
			out = append(out, c.subnet(&r.Subnets[i]))
		}
		next := aws.ToString(r.NextToken)
		if next == "" {
			return out, nil
		}
		if next == aws.ToString(in.NextToken) {
			return nil, fmt.Errorf("ec2 %s: the page after %d subnets names itself as the next one", describeSubnets, len(out))
		}
		in.NextToken = &next
	}
	return nil, fmt.Errorf("ec2 %s: more than %d pages", describeSubnets, mostPages)
}

// subnet translates EC2's word on a subnet.
func (c *Cloud) subnet(s *types.Subnet) ipam.Subnet {
	out := ipam.Subnet{ID: aws.ToString(s.SubnetId), Free: int(aws.ToInt32(s.AvailableIpAddressCount)), CIDR: c.cidrOf(aws.ToString(s.SubnetId))}
	out.Tagged(c.cfg.Cluster, func(yield func(key, value string) bool) {
		for i := range s.Tags {
			if !yield(aws.ToString(s.Tags[i].Key), aws.ToString(s.Tags[i].Value)) {
				return
			}
		}
	})
	return out
}

// describeSubnets asks EC2, and remembers the CIDRs that it says.
func (c *Cloud) describeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, subject string) (*ec2.DescribeSubnetsOutput, error) {
	api, err := c.api(ctx)
	if err != nil {
		return nil, err
	}
	ctx, x := withExchange(ctx, describeSubnets)
	began := time.Now()
	r, err := api.DescribeSubnets(ctx, in)
	class, code := classify(err, x)
	c.log(describeSubnets, subject, time.Since(began), class, err)
	if err != nil {
		return nil, &failure{describeSubnets, code, class, err}
	}
	for i := range r.Subnets {
		if p, err := netip.ParsePrefix(aws.ToString(r.Subnets[i].CidrBlock)); err == nil {
			c.keepCIDR(aws.ToString(r.Subnets[i].SubnetId), p)
		}
	}
	return r, nil
}

// Denied says whether EC2 has refused to answer for want of a permission, or else (refused) because of who asks.
func Denied(err error) (denied, refused bool) {
	var f *failure
	if !errors.As(err, &f) {
		return false, false
	}
	return f.class.Refusal(f.code)
}
