package imds

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// tree is what lies below a version: the categories of "Instance metadata categories" and "Dynamic data categories" that an instance of
// the model can have, each with the build that it came with, in the order of the alphabet. hibernation and profile are in no document.
var tree = node{children: []node{
	{name: "dynamic", since: "2009-04-04", bare: true, children: []node{
		{name: "fws", children: []node{is("instance-monitoring", "", "disabled")}},
		{name: "instance-identity", children: []node{
			of("document", "", func(p *place) string { return p.document() }),
			signature("pkcs7", PKCS7), signature("rsa2048", RSA2048), signature("signature", Plain),
		}},
	}},
	{name: "meta-data", bare: true, children: []node{
		of("ami-id", "", func(p *place) string { return p.image() }),
		is("ami-launch-index", "", "0"),
		is("ami-manifest-path", "", "(unknown)"),
		{name: "autoscaling", children: []node{some("target-lifecycle-state", "2021-07-15", func(p *place) string { return p.Lifecycle })}},
		{name: "block-device-mapping", since: "2007-12-15", children: []node{is("ami", "", "xvda"), is("root", "", "/dev/xvda")}},
		{name: "events", children: []node{
			{name: "maintenance", since: "2018-08-17", children: []node{
				of("history", "", func(p *place) string { return eventList(p.Past) }),
				of("scheduled", "", func(p *place) string { return eventList(p.Scheduled) }),
			}},
			{name: "recommendations", children: []node{some("rebalance", "2020-10-27", (*place).rebalance)}},
		}},
		{name: "hibernation", since: "2018-09-24", children: []node{is("configured", "", "false")}},
		of("hostname", "", func(p *place) string { return p.hostname(p.Instance.PrimaryAddress) }),
		{name: "iam", since: "2012-01-12", children: []node{
			some("info", "", (*place).profile),
			{name: "security-credentials", many: (*place).roles, enter: (*place).isRole, each: &node{value: text((*place).credentials)}},
		}},
		{name: "identity-credentials", since: "2018-05-23", children: []node{{name: "ec2", children: []node{
			of("info", "", (*place).identityInfo),
			{name: "security-credentials", children: []node{of("ec2-instance", "", (*place).identityCredentials)}},
		}}}},
		is("instance-action", "2008-09-01", "none"),
		of("instance-id", "", func(p *place) string { return string(p.Instance.ID) }),
		of("instance-life-cycle", "2019-10-01", (*place).lifeCycle),
		of("instance-type", "2007-08-29", func(p *place) string { return p.Instance.Type }),
		some("ipv6", "2021-01-03", (*place).ipv6),
		of("local-hostname", "2007-01-19", func(p *place) string { return p.hostname(p.Instance.PrimaryAddress) }),
		of("local-ipv4", "", func(p *place) string { return p.Instance.PrimaryAddress.String() }),
		of("mac", "2011-01-01", func(p *place) string { return p.Instance.PrimaryMAC }),
		{name: "network", since: "2011-01-01", children: []node{{name: "interfaces", children: []node{
			{name: "macs", many: (*place).macs, enter: (*place).enterMAC, each: &node{children: leaves}},
		}}}},
		{name: "placement", since: "2008-02-01", children: []node{
			of("availability-zone", "", func(p *place) string { return p.Instance.Zone }),
			some("availability-zone-id", "2019-10-01", func(p *place) string { return ec2.ZoneID(p.Region, p.Instance.Zone) }),
			of("region", "2020-08-24", func(p *place) string { return p.Region }),
		}},
		is("profile", "2008-02-01", "default-hvm"),
		{name: "public-keys", many: (*place).keys, enter: (*place).isKey,
			each: &node{bare: true, children: []node{of("openssh-key", "", func(p *place) string { return p.Key })}}},
		of("reservation-id", "", func(p *place) string { return p.reservation() }),
		some("security-groups", "", (*place).primaryGroups),
		{name: "services", children: []node{
			of("domain", "2014-02-25", func(p *place) string { return domainOf(p.Region) }),
			of("partition", "2015-10-20", func(p *place) string { return partitionOf(p.Region) }),
		}},
		{name: "spot", children: []node{
			some("instance-action", "2016-11-15", (*place).interruption),
			some("termination-time", "2014-11-05", (*place).termination),
		}},
		of("system", "2022-09-24", func(p *place) string { return system(p.Instance.Type) }),
		{name: "tags", since: "2021-03-23", children: []node{
			{name: "instance", many: (*place).tagKeys, enter: (*place).enterTag, each: &node{value: (*place).tag}},
		}},
	}},
	{name: "user-data", binary: true, value: func(p *place) (string, bool) { return p.UserData, p.UserData != "" }},
}}

// leaves are what an interface has. Those that every interface has are listed also before they can be read.
var leaves = []node{
	every("device-number", "", func(_ *place, e *ec2.IMDSENI) string { return strconv.Itoa(e.Device) }),
	every("interface-id", "", func(_ *place, e *ec2.IMDSENI) string { return string(e.ENI) }),
	some("ipv4-prefix", "2021-07-15", func(p *place) string { return lines(p.eni.Prefixes) }),
	some("ipv6-prefix", "2021-07-15", func(p *place) string { return lines(p.eni.IPv6Prefixes) }),
	some("ipv6s", "2016-06-30", func(p *place) string { return lines(p.eni.IPv6) }),
	every("local-hostname", "", func(p *place, e *ec2.IMDSENI) string { return p.hostname(first(e.Addresses)) }),
	every("local-ipv4s", "", func(_ *place, e *ec2.IMDSENI) string { return lines(e.Addresses) }),
	every("mac", "", func(_ *place, e *ec2.IMDSENI) string { return e.MAC }),
	some("network-card", "2020-11-01", (*place).card),
	every("owner-id", "", func(p *place, _ *ec2.IMDSENI) string { return p.owner() }),
	every("security-group-ids", "", func(_ *place, e *ec2.IMDSENI) string { return lines(e.Groups) }),
	every("security-groups", "", func(p *place, e *ec2.IMDSENI) string { return p.groupNames(e.Groups) }),
	every("subnet-id", "", func(_ *place, e *ec2.IMDSENI) string { return string(e.Subnet) }),
	every("subnet-ipv4-cidr-block", "", func(_ *place, e *ec2.IMDSENI) string { return e.SubnetCIDR.String() }),
	some("subnet-ipv6-cidr-blocks", "2016-06-30", func(p *place) string { return lines(valid(p.eni.SubnetIPv6)) }),
	every("vpc-id", "", func(p *place, _ *ec2.IMDSENI) string { return p.Instance.VPC }),
	every("vpc-ipv4-cidr-block", "", func(p *place, _ *ec2.IMDSENI) string {
		return lines(p.Instance.VPCCIDRs[:min(1, len(p.Instance.VPCCIDRs))])
	}),
	every("vpc-ipv4-cidr-blocks", "2016-06-30", func(p *place, _ *ec2.IMDSENI) string { return lines(p.Instance.VPCCIDRs) }),
	some("vpc-ipv6-cidr-blocks", "2016-06-30", (*place).vpcIPv6),
}

// text is a value that is always there.
func text(f func(*place) string) func(*place) (string, bool) {
	return func(p *place) (string, bool) { return f(p), true }
}

// of is a leaf that every instance has.
func of(name, since string, f func(*place) string) node {
	return node{name: name, since: since, value: text(f)}
}

// is is a leaf that says the same on every instance.
func is(name, since, value string) node { return of(name, since, func(*place) string { return value }) }

// some is a leaf that is not there when it would be empty.
func some(name, since string, f func(*place) string) node {
	return node{name: name, since: since, value: func(p *place) (string, bool) { s := f(p); return s, s != "" }}
}

// every is a leaf that every interface has, when its leaves are there.
func every(name, since string, f func(*place, *ec2.IMDSENI) string) node {
	return node{name: name, since: since, always: true, value: func(p *place) (string, bool) {
		if p.eni.Partial {
			return "", false
		}
		return f(p, p.eni), true
	}}
}

// signature is a leaf beside the identity document. A listing does not sign.
func signature(name string, kind Signature) node {
	return node{name: name, value: func(p *place) (string, bool) {
		if p.Sign == nil {
			return "", false
		}
		return p.Sign(kind, p.document()), true
	}}
}

func (p *place) macs() []string {
	list := make([]string, len(p.ENIs))
	for i := range p.ENIs {
		list[i] = p.ENIs[i].MAC
	}
	slices.Sort(list)
	return list
}

func (p *place) enterMAC(name string) bool {
	for i := range p.ENIs {
		if p.ENIs[i].MAC == name {
			p.eni = &p.ENIs[i]
			return true
		}
	}
	return false
}

func (p *place) roles() []string {
	if p.Role == "" {
		return nil
	}
	return []string{p.Role}
}

func (p *place) isRole(name string) bool { return name != "" && name == p.Role }

// keys is the list of public keys, which names a folder as "0=name".
func (p *place) keys() []string {
	if p.KeyName == "" {
		return nil
	}
	return []string{"0=" + p.KeyName}
}

func (p *place) isKey(name string) bool { return name == "0" && p.KeyName != "" }

func (p *place) tagKeys() (list []string) {
	for i := range p.Instance.Tags {
		if k := p.Instance.Tags[i].Key; p.Tags && readableKey(k) {
			list = append(list, k)
		}
	}
	slices.Sort(list)
	return list
}

func (p *place) enterTag(name string) bool { p.key = name; return p.Tags && readableKey(name) }

func (p *place) tag() (string, bool) {
	for i := range p.Instance.Tags {
		if t := &p.Instance.Tags[i]; t.Key == p.key {
			return t.Value, true
		}
	}
	return "", false
}

// readableKey says whether a tag can be in metadata: "can only include letters, numbers, and + - = . , _ : @", and is none of ".", ".."
// and "_index" ("View tags for your EC2 instances using instance metadata").
func readableKey(key string) bool {
	for _, c := range []byte(key) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && strings.IndexByte("+-=.,_:@", c) < 0 {
			return false
		}
	}
	return key != "" && key != "." && key != ".." && key != "_index"
}

// primary is the interface with device index 0, nil until its leaves are there.
func (p *place) primary() *ec2.IMDSENI {
	for i := range p.ENIs {
		if e := &p.ENIs[i]; e.MAC == p.Instance.PrimaryMAC && !e.Partial {
			return e
		}
	}
	return nil
}

func (p *place) primaryGroups() string {
	if e := p.primary(); e != nil {
		return p.groupNames(e.Groups)
	}
	return ""
}

func (p *place) ipv6() string {
	if e := p.primary(); e != nil && len(e.IPv6) > 0 {
		return e.IPv6[0].String()
	}
	return ""
}

// card is the index of the network card, which only types with several cards show (amazon-ec2-net-utils#104).
func (p *place) card() string {
	if p.eni.Partial || !p.severalCards() {
		return ""
	}
	return strconv.Itoa(p.eni.Card)
}

func (p *place) severalCards() bool {
	l, _ := ec2.LimitsOf(p.Instance.Type)
	return l.Cards > 1 || slices.ContainsFunc(p.ENIs, func(e ec2.IMDSENI) bool { return e.Card > 0 })
}

// vpcIPv6 is shown by interfaces of subnets that have IPv6 themselves.
func (p *place) vpcIPv6() string {
	if p.eni.Partial || !p.eni.SubnetIPv6.IsValid() {
		return ""
	}
	return lines(p.VPCIPv6)
}

func (v *View) owner() string {
	if v.Instance.Owner != "" {
		return v.Instance.Owner
	}
	return ec2.Account
}

// groupNames are the names of groups; one that is unknown is named as it is identified.
func (p *place) groupNames(ids []string) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = id
		for k := range p.Groups {
			if p.Groups[k].ID == id && p.Groups[k].Name != "" {
				names[i] = p.Groups[k].Name
			}
		}
	}
	return lines(names)
}

func first(list []netip.Addr) (a netip.Addr) {
	if len(list) > 0 {
		a = list[0]
	}
	return a
}

func valid(p netip.Prefix) []netip.Prefix {
	if !p.IsValid() {
		return nil
	}
	return []netip.Prefix{p}
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
