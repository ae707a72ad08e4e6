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

// actions are EC2's names for what ipam does.
var actions = map[ipam.Action]string{
	ipam.CreateENI: "CreateNetworkInterface", ipam.AttachENI: "AttachNetworkInterface", ipam.ModifyENI: "ModifyNetworkInterfaceAttribute",
	ipam.DetachENI: "DetachNetworkInterface", ipam.DeleteENI: "DeleteNetworkInterface",
	ipam.AssignIPs: "AssignPrivateIpAddresses", ipam.UnassignIPs: "UnassignPrivateIpAddresses", ipam.GroupENI: "ModifyNetworkInterfaceAttribute",
}

// Call carries out one EC2 mutation: one HTTP request, if it comes to that. It ends within the time-out of one request, and before that
// one more for each of region, instance and credentials that had not been asked for yet. Result.Code is EC2's code or
// says in words what happened instead; nothing is an error of Go's.
func (c *Cloud) Call(ctx context.Context, q *ipam.Call) ipam.Result {
	action := actions[q.Action]
	if action == "" {
		return ipam.Result{Class: ipam.Invalid, Code: fmt.Sprintf("unknown action %d", q.Action)}
	}
	ctx, x := withExchange(ctx, action)
	began := time.Now()
	out, err := c.carryOut(ctx, q)
	if err != nil {
		out = ipam.Result{}
	}
	out.Class, out.Code = classify(err, x)
	c.log(action, q.ENI, time.Since(began), out.Class, err)
	return out
}

func (c *Cloud) carryOut(ctx context.Context, q *ipam.Call) (ipam.Result, error) {
	api, err := c.api(ctx)
	if err != nil {
		return ipam.Result{}, err
	}
	switch q.Action {
	case ipam.CreateENI:
		return c.create(ctx, api, q)
	case ipam.AttachENI:
		return c.attach(ctx, api, q)
	case ipam.ModifyENI:
		_, err = api.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &q.ENI,
			Attachment: &types.NetworkInterfaceAttachmentChanges{AttachmentId: &q.Attachment, DeleteOnTermination: aws.Bool(true)}})
	case ipam.GroupENI:
		_, err = api.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: &q.ENI, Groups: q.Groups})
	case ipam.DetachENI:
		_, err = api.DetachNetworkInterface(ctx, &ec2.DetachNetworkInterfaceInput{AttachmentId: &q.Attachment})
	case ipam.DeleteENI:
		_, err = api.DeleteNetworkInterface(ctx, &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: &q.ENI})
	case ipam.AssignIPs:
		return assign(ctx, api, q)
	case ipam.UnassignIPs:
		in := &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: &q.ENI, PrivateIpAddresses: texts(q.Addresses)}
		if len(q.Prefixes) > 0 { // EC2 takes one or the other
			in.PrivateIpAddresses, in.Ipv4Prefixes = nil, texts(q.Prefixes)
		}
		_, err = api.UnassignPrivateIpAddresses(ctx, in)
	}
	return ipam.Result{}, err
}

func (c *Cloud) create(ctx context.Context, api *ec2.Client, q *ipam.Call) (ipam.Result, error) {
	if q.Token == "" {
		return ipam.Result{}, errors.New("CreateNetworkInterface without a client token: a lost reply could not be resolved")
	}
	if len(q.Groups) == 0 {
		return ipam.Result{}, errors.New("CreateNetworkInterface without security groups: the interface would have the VPC's default one")
	}
	in := &ec2.CreateNetworkInterfaceInput{
		SubnetId: &q.Subnet, ClientToken: &q.Token, Description: aws.String(description + q.Owner), Groups: q.Groups,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeNetworkInterface, Tags: c.tags(q)}},
	}
	if q.Count > 0 {
		in.SecondaryPrivateIpAddressCount = aws.Int32(int32(q.Count))
	}
	if q.PrefixCount > 0 {
		in.Ipv4PrefixCount = aws.Int32(int32(q.PrefixCount))
	}
	r, err := api.CreateNetworkInterface(ctx, in)
	if err != nil {
		return ipam.Result{}, err
	}
	if r.NetworkInterface == nil {
		return ipam.Result{}, errors.New("the answer has no networkInterface")
	}
	e, err := c.eni(r.NetworkInterface)
	if err == nil && !e.Primary.IsValid() {
		err = fmt.Errorf("interface %s without a primary address", e.ID)
	}
	return ipam.Result{ENI: e}, err
}

func (c *Cloud) attach(ctx context.Context, api *ec2.Client, q *ipam.Call) (ipam.Result, error) {
	self, err := c.identity(ctx)
	if err != nil {
		return ipam.Result{}, err
	}
	r, err := api.AttachNetworkInterface(ctx, &ec2.AttachNetworkInterfaceInput{NetworkInterfaceId: &q.ENI, InstanceId: &self.ID, DeviceIndex: aws.Int32(int32(q.Device))})
	if err != nil {
		return ipam.Result{}, err
	}
	if aws.ToString(r.AttachmentId) == "" {
		return ipam.Result{}, errors.New("the answer has no attachmentId")
	}
	return ipam.Result{Attachment: *r.AttachmentId}, nil
}

func assign(ctx context.Context, api *ec2.Client, q *ipam.Call) (ipam.Result, error) {
	in := &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: &q.ENI}
	if q.PrefixCount > 0 {
		in.Ipv4PrefixCount = aws.Int32(int32(q.PrefixCount))
	} else {
		in.SecondaryPrivateIpAddressCount = aws.Int32(int32(q.Count))
	}
	r, err := api.AssignPrivateIpAddresses(ctx, in)
	if err != nil {
		return ipam.Result{}, err
	}
	var out ipam.Result
	for i := range r.AssignedPrivateIpAddresses {
		a, err := netip.ParseAddr(aws.ToString(r.AssignedPrivateIpAddresses[i].PrivateIpAddress))
		if err != nil {
			return ipam.Result{}, fmt.Errorf("an assigned address: %w", err)
		}
		out.Addresses = append(out.Addresses, a)
	}
	if out.Prefixes, err = prefixesOf(r.AssignedIpv4Prefixes); err != nil {
		return ipam.Result{}, fmt.Errorf("an assigned prefix: %w", err)
	}
	if len(out.Addresses)+len(out.Prefixes) == 0 {
		return ipam.Result{}, errors.New("the answer has neither assigned addresses nor prefixes")
	}
	return out, nil
}

func texts[T fmt.Stringer](list []T) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.String()
	}
	return out
}

// log writes what became of a request. The error has EC2's message and request ID, which its support asks for.
func (c *Cloud) log(action, subject string, took time.Duration, class ipam.Class, err error) {
	if c.cfg.Log == nil {
		return
	}
	if err != nil {
		c.cfg.Log.Debug("ec2", "action", action, "subject", subject, "took", took, "class", class.String(), "error", err.Error())
		return
	}
	c.cfg.Log.Debug("ec2", "action", action, "subject", subject, "took", took, "class", class.String())
}
