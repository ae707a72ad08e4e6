package cloud

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/impl/ipam"
)

// Tags and description of amazon-vpc-cni-k8s 1.23.1 (pkg/awsutils/awsutils.go).
const (
	tagOwner    = "node.k8s.amazonaws.com/instance_id"
	tagCreated  = "node.k8s.amazonaws.com/createdAt"
	tagCluster  = "cluster.k8s.amazonaws.com/name"
	tagNoManage = "node.k8s.amazonaws.com/no_manage"
	tagBy       = "eks:eni:owner"
	byVPCCNI    = "amazon-vpc-cni"
	description = "aws-K8S-"
)

// ENI status as EC2 splits it: an interface that is on its way is in-use with an attachment that says so.
func statusOf(e *types.NetworkInterface) string {
	if a := e.Attachment; a != nil && (a.Status == types.AttachmentStatusAttaching || a.Status == types.AttachmentStatusDetaching) {
		return string(a.Status)
	}
	return string(e.Status)
}

// eni translates EC2's word on an interface. An interface that lacks what every interface has is an error: no list is better than one
// that is wrong.
func (c *Cloud) eni(e *types.NetworkInterface) (ipam.ENI, error) {
	o := ipam.ENI{ID: aws.ToString(e.NetworkInterfaceId), MAC: aws.ToString(e.MacAddress), Subnet: aws.ToString(e.SubnetId), Status: statusOf(e),
		Kind: string(e.InterfaceType)}
	if o.ID == "" || o.Status == "" {
		return ipam.ENI{}, fmt.Errorf("an interface without an ID or a status (ID %q, status %q)", o.ID, o.Status)
	}
	o.CIDR = c.cidrOf(o.Subnet)
	if a := e.Attachment; a != nil {
		o.Device, o.Attachment = int(aws.ToInt32(a.DeviceIndex)), aws.ToString(a.AttachmentId)
		o.Instance, o.DOT = aws.ToString(a.InstanceId), aws.ToBool(a.DeleteOnTermination)
	}
	if err := putAddresses(&o, e); err != nil {
		return ipam.ENI{}, fmt.Errorf("interface %s: %w", o.ID, err)
	}
	for i := range e.Groups {
		o.Groups = append(o.Groups, aws.ToString(e.Groups[i].GroupId))
	}
	for i := range e.TagSet {
		switch value := aws.ToString(e.TagSet[i].Value); aws.ToString(e.TagSet[i].Key) {
		case tagOwner:
			o.Owner = value
		case tagCreated:
			o.Created = parseCreated(value)
		case tagNoManage:
			o.NoManage = value
		}
	}
	return o, nil
}

// prefixBits is the length of EC2's IPv4 prefixes ("Assign prefixes to network interfaces").
const prefixBits = 28

// parsePrefix reads an IPv4 prefix of an interface. One of another length is none that this daemon can count.
func parsePrefix(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err == nil && (!p.Addr().Is4() || p.Bits() != prefixBits || p != p.Masked()) {
		err = fmt.Errorf("expected an IPv4 /%d, found %s", prefixBits, text)
	}
	return p, err
}

func prefixesOf(list []types.Ipv4PrefixSpecification) (out []netip.Prefix, err error) {
	for i := range list {
		p, err := parsePrefix(aws.ToString(list[i].Ipv4Prefix))
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func putAddresses(o *ipam.ENI, e *types.NetworkInterface) (err error) {
	if o.Prefixes, err = prefixesOf(e.Ipv4Prefixes); err != nil {
		return err
	}
	for i := range e.PrivateIpAddresses {
		p := &e.PrivateIpAddresses[i]
		a, err := netip.ParseAddr(aws.ToString(p.PrivateIpAddress))
		if err != nil {
			return err
		}
		if aws.ToBool(p.Primary) {
			o.Primary = a
		} else {
			o.Addresses = append(o.Addresses, a)
		}
	}
	if text := aws.ToString(e.PrivateIpAddress); !o.Primary.IsValid() && text != "" {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return err
		}
		o.Primary = a
		o.Addresses = slices.DeleteFunc(o.Addresses, func(b netip.Addr) bool { return a == b })
	}
	return nil
}

// parseCreated reads the tag as amazon-vpc-cni-k8s writes it, RFC 3339, or as plain seconds since 1970. What is neither is as good as
// no tag: the interface's age is unknown.
func parseCreated(value string) int64 {
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return t.Unix()
	}
	s, err := strconv.ParseInt(value, 10, 64)
	if err != nil || s < 0 {
		return 0
	}
	return s
}

func formatCreated(seconds int64) string { return time.Unix(seconds, 0).UTC().Format(time.RFC3339) }

// tags are what a new interface gets, in an order that repeats: a client token is good for the very same request only.
func (c *Cloud) tags(q *ipam.Call) []types.Tag {
	set := map[string]string{}
	maps.Copy(set, c.cfg.Tags)
	set[tagOwner], set[tagCreated] = q.Owner, formatCreated(q.Created)
	if q.Cluster != "" {
		set[tagCluster], set[tagBy] = q.Cluster, byVPCCNI
	}
	out := make([]types.Tag, 0, len(set))
	for k, v := range set {
		out = append(out, types.Tag{Key: &k, Value: &v})
	}
	slices.SortFunc(out, func(a, b types.Tag) int { return compare(*a.Key, *b.Key) })
	return out
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	if a > b {
		return 1
	}
	return 0
}
