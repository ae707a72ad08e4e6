package imds

import (
	"cmp"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

const notFound = 404

// root is what every path of Get begins with.
const root = "/latest"

// Get answers a read of a path, as "/latest/meta-data/mac".
func Get(v *View, path string) Reply {
	if path == "/" || path == "" {
		return text("latest")
	}
	rest, ok := strings.CutPrefix(path, root)
	if !ok || rest != "" && rest[0] != '/' {
		return Reply{Status: notFound}
	}
	elements, slash := split(rest)
	for _, e := range elements {
		if e == "" || e == "." || e == ".." {
			return Reply{Status: notFound}
		}
	}
	n := node{dir: top(v)}
	for _, e := range elements {
		n, ok = n.child(e)
		if !ok {
			return Reply{Status: notFound}
		}
	}
	switch {
	case n.dir != nil:
		return text(n.listing())
	case slash || n.leaf == nil:
		return Reply{Status: notFound}
	}
	r := text(n.leaf())
	r.JSON = n.json
	return r
}

// split takes "/a/b/" apart into a and b, and says whether a slash ends it.
func split(rest string) (elements []string, slash bool) {
	if rest == "" || rest == "/" {
		return nil, true
	}
	rest = rest[1:]
	trimmed := strings.TrimSuffix(rest, "/")
	return strings.Split(trimmed, "/"), trimmed != rest
}

func text(s string) Reply { return Reply{Status: 200, Text: s} }

// node is one name of the tree: a folder, a leaf, or (neither) a leaf that is listed and cannot be read yet.
type node struct {
	name string
	dir  func() []node
	leaf func() string
	json bool
}

func (n *node) child(name string) (node, bool) {
	if n.dir == nil {
		return node{}, false
	}
	for _, c := range n.dir() {
		if c.name == name {
			return c, true
		}
	}
	return node{}, false
}

// listing names a folder's children in the order of the alphabet.
func (n *node) listing() string {
	children := n.dir()
	slices.SortFunc(children, func(a, b node) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	for i, c := range children {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(c.name)
		if c.dir != nil {
			b.WriteByte('/')
		}
	}
	return b.String()
}

func folder(name string, children ...node) node {
	return node{name: name, dir: func() []node { return slices.Clone(children) }}
}

func leaf(name, value string) node { return node{name: name, leaf: func() string { return value }} }

// top is what lies below /latest.
func top(v *View) func() []node {
	return func() []node {
		return []node{
			{name: "meta-data", dir: func() []node { return v.metaData() }},
			folder("dynamic", folder("instance-identity", node{name: "document", leaf: v.document, json: true})),
		}
	}
}

func (v *View) metaData() []node {
	i := &v.Instance
	list := []node{
		leaf("hostname", v.hostname(i.PrimaryAddress)),
		leaf("instance-id", string(i.ID)),
		leaf("instance-life-cycle", "on-demand"),
		leaf("instance-type", i.Type),
		leaf("local-hostname", v.hostname(i.PrimaryAddress)),
		leaf("local-ipv4", i.PrimaryAddress.String()),
		leaf("mac", i.PrimaryMAC),
		folder("network", folder("interfaces", node{name: "macs", dir: v.macs})),
		folder("placement", leaf("availability-zone", i.Zone), leaf("region", v.Region)),
		folder("services", leaf("domain", "amazonaws.com"), leaf("partition", "aws")),
	}
	for k := range v.ENIs {
		if e := &v.ENIs[k]; e.MAC == i.PrimaryMAC && !e.Partial {
			list = append(list, leaf("security-groups", lines(e.Groups)))
		}
	}
	if v.Role != "" {
		list = append(list, folder("iam", folder("security-credentials", node{name: v.Role, leaf: v.credentials, json: true})))
	}
	return list
}

func (v *View) macs() []node {
	list := make([]node, 0, len(v.ENIs))
	for k := range v.ENIs {
		e := &v.ENIs[k]
		list = append(list, node{name: e.MAC, dir: func() []node { return v.interfaceLeaves(e) }})
	}
	return list
}

// leaves are what an interface has, also one that cannot be read yet.
var leaves = [...]string{"device-number", "interface-id", "local-hostname", "local-ipv4s", "mac", "owner-id", "security-group-ids",
	"security-groups", "subnet-id", "subnet-ipv4-cidr-block", "vpc-id", "vpc-ipv4-cidr-block", "vpc-ipv4-cidr-blocks"}

func (v *View) interfaceLeaves(e *ec2.IMDSENI) []node {
	list := make([]node, 0, len(leaves))
	for _, name := range leaves {
		n := node{name: name}
		if !e.Partial {
			n.leaf = func() string { return v.interfaceLeaf(e, name) }
		}
		list = append(list, n)
	}
	return list
}

func (v *View) interfaceLeaf(e *ec2.IMDSENI, name string) string {
	switch name {
	case "device-number":
		return strconv.Itoa(e.Device)
	case "interface-id":
		return string(e.ENI)
	case "local-hostname":
		return v.hostname(first(e.Addresses))
	case "local-ipv4s":
		return lines(e.Addresses)
	case "mac":
		return e.MAC
	case "owner-id":
		return ec2.Account
	case "security-group-ids", "security-groups":
		return lines(e.Groups)
	case "subnet-id":
		return string(e.Subnet)
	case "subnet-ipv4-cidr-block":
		return e.SubnetCIDR.String()
	case "vpc-id":
		return v.Instance.VPC
	case "vpc-ipv4-cidr-block":
		return lines(v.Instance.VPCCIDRs[:min(1, len(v.Instance.VPCCIDRs))])
	}
	return lines(v.Instance.VPCCIDRs) // vpc-ipv4-cidr-blocks
}

func first(list []netip.Addr) (a netip.Addr) {
	if len(list) > 0 {
		a = list[0]
	}
	return a
}

// lines is a list, one per line.
func lines[T any](list []T) string {
	var b strings.Builder
	for i, v := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		switch v := any(v).(type) {
		case string:
			b.WriteString(v)
		case netip.Addr:
			b.WriteString(v.String())
		case netip.Prefix:
			b.WriteString(v.String())
		}
	}
	return b.String()
}

// hostname is the private DNS name of an address ("Amazon EC2 instance hostname types").
func (v *View) hostname(a netip.Addr) string {
	domain := v.Region + ".compute.internal"
	if v.Region == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(a.String(), ".", "-") + "." + domain
}

// document is the instance identity document.
func (v *View) document() string {
	i := &v.Instance
	return marshal(struct {
		AccountID    string  `json:"accountId"`
		Architecture string  `json:"architecture"`
		Zone         string  `json:"availabilityZone"`
		Billing      *string `json:"billingProducts"`
		DevPay       *string `json:"devpayProductCodes"`
		Marketplace  *string `json:"marketplaceProductCodes"`
		InstanceID   string  `json:"instanceId"`
		InstanceType string  `json:"instanceType"`
		Kernel       *string `json:"kernelId"`
		PrivateIP    string  `json:"privateIp"`
		RAMDisk      *string `json:"ramdiskId"`
		Region       string  `json:"region"`
		Version      string  `json:"version"`
	}{AccountID: ec2.Account, Architecture: "x86_64", Zone: i.Zone, InstanceID: string(i.ID), InstanceType: i.Type,
		PrivateIP: i.PrimaryAddress.String(), Region: v.Region, Version: "2017-09-30"})
}

// credentials are the role's.
func (v *View) credentials() string {
	key := AccessKey(v.Instance.ID)
	return marshal(struct {
		Code, LastUpdated, Type            string
		AccessKeyID                        string `json:"AccessKeyId"`
		SecretAccessKey, Token, Expiration string
	}{"Success", stamp(v.Updated), "AWS-HMAC", key, "secret-of-" + key, "session-of-" + string(v.Instance.ID), stamp(v.Expires)})
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }

func marshal(v any) string {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return "" // texts only: it cannot fail
	}
	return string(b)
}

// keyPrefix begins the access keys of temporary credentials ("IAM identifiers").
const keyPrefix = "ASIA"

// AccessKey is the access key of an instance's role. It is the instance's identifier in another spelling, so that a
// fake EC2 can tell from a signed request who calls: see InstanceOf.
func AccessKey(id ec2.InstanceID) string {
	return keyPrefix + strings.ToUpper(strings.TrimPrefix(string(id), "i-0"))
}

// InstanceOf is the instance whose role an access key is, if it is one of AccessKey's.
func InstanceOf(key string) (ec2.InstanceID, bool) {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) != 16 || strings.Trim(digits, "0123456789ABCDEF") != "" {
		return "", false
	}
	return ec2.InstanceID("i-0" + strings.ToLower(digits)), true
}
