package cloud

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/impl/ipam"
)

// row is an instance type in the table.
type row struct {
	name      string
	enis      uint8 // on the first network card
	addresses uint8 // IPv4 per interface, the primary included
}

// limitsOf is what an instance type allows: by the table, else by EC2, and nothing where EC2 is not called.
func (c *Cloud) limitsOf(ctx context.Context, name string) (ipam.Limits, error) {
	i, found := slices.BinarySearchFunc(table[:], name, func(r row, name string) int { return compare(r.name, name) })
	if found {
		return ipam.Limits{ENIs: int(table[i].enis), Addresses: int(table[i].addresses), Prefixes: nitro(name)}, nil
	}
	if c.cfg.NoEC2 {
		return ipam.Limits{}, nil
	}
	l, err := c.describeType(ctx, name)
	if err != nil {
		return l, fmt.Errorf("limits of instance type %s: %w", name, err)
	}
	return l, nil
}

func (c *Cloud) describeType(ctx context.Context, name string) (ipam.Limits, error) {
	api, err := c.api(ctx)
	if err != nil {
		return ipam.Limits{}, err
	}
	const action = "DescribeInstanceTypes"
	ctx, x := withExchange(ctx, action)
	began := time.Now()
	r, err := api.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(name)}})
	class, code := classify(err, x)
	c.log(action, name, time.Since(began), class, err)
	if err != nil {
		return ipam.Limits{}, &failure{action, code, class, err}
	}
	for i := range r.InstanceTypes {
		if n := r.InstanceTypes[i].NetworkInfo; string(r.InstanceTypes[i].InstanceType) == name && n != nil {
			l, err := firstCard(n)
			l.Prefixes = r.InstanceTypes[i].Hypervisor == types.InstanceTypeHypervisorNitro || aws.ToBool(r.InstanceTypes[i].BareMetal)
			return l, err
		}
	}
	return ipam.Limits{}, fmt.Errorf("ec2 %s: the answer does not speak of it", action)
}

// firstCard are the limits of the card that the primary interface is on.
func firstCard(n *types.NetworkInfo) (ipam.Limits, error) {
	l := ipam.Limits{ENIs: int(aws.ToInt32(n.MaximumNetworkInterfaces)), Addresses: int(aws.ToInt32(n.Ipv4AddressesPerInterface))}
	for i := range n.NetworkCards {
		if k := &n.NetworkCards[i]; aws.ToInt32(k.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) {
			l.ENIs = int(aws.ToInt32(k.MaximumNetworkInterfaces))
		}
	}
	if l.ENIs < 1 || l.Addresses < 1 {
		return ipam.Limits{}, fmt.Errorf("expected at least one interface with one address, EC2 says %d with %d", l.ENIs, l.Addresses)
	}
	return l, nil
}

// xen are the families of instance types that are not built on the Nitro system, as far as they are in the table ("Instances built on the
// Nitro System" of the EC2 user guide); DescribeInstanceTypes says of any other.
var xen = []string{"c1", "c3", "c4", "d2", "f1", "g2", "g3", "g3s", "h1", "i2", "i3", "m1", "m2", "m3", "m4", "p2", "p3", "r3", "r4", "t1", "t2",
	"x1", "x1e"}

// nitro says whether a type of the table is of the Nitro system or bare metal, and its interfaces can have prefixes.
func nitro(name string) bool {
	family, size, _ := strings.Cut(name, ".")
	return strings.HasPrefix(size, "metal") || !slices.Contains(xen, family)
}
