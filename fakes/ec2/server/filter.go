package server

import (
	"net/netip"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// Bounds of "List and filter using the CLI and API".
const (
	maxFilters      = 50
	maxFilterValues = 200
)

// filter lets through what has one of the values; all filters must.
type filter struct {
	name   string
	values []string // with wildcards * and ?
}

// filters reads Filter.N.Name and Filter.N.Value.M.
func (q *form) filters(a ec2.Action) []filter {
	var out []filter
	for _, member := range q.members("Filter") {
		f := filter{name: q.required(member + ".Name")}
		for _, v := range q.members(member + ".Value") {
			f.values = append(f.values, q.text(v))
		}
		switch {
		case len(out) == maxFilters || len(f.values) > maxFilterValues:
			q.fail(bad("FilterLimitExceeded", "The request uses too many filters or too many filter values."))
		case f.name != "" && !filterable(a, f.name):
			q.fail(bad("InvalidParameterValue", "The filter '"+excerpt(f.name)+"' is invalid"))
		case len(f.values) == 0:
			q.fail(bad("InvalidParameterValue", "The filter '"+excerpt(f.name)+"' has no value"))
		}
		out = append(out, f)
	}
	return out
}

// filterable says whether there is such a filter. What the API has and the model has nothing for is none: a filter that
// matches everything would be kinder than EC2.
func filterable(a ec2.Action, name string) (ok bool) {
	switch a {
	case ec2.DescribeNetworkInterfaces:
		_, ok = eniValues(&ec2.ENI{}, name)
	case ec2.DescribeSubnets:
		_, ok = subnetValues(&ec2.Subnet{}, name)
	case ec2.DescribeInstances:
		_, ok = instanceValues(&ec2.Instance{}, name)
	case ec2.DescribeInstanceTypes:
		_, ok = typeValues(&ec2.Type{}, name)
	}
	return ok
}

// eniValues are what a filter of DescribeNetworkInterfaces compares.
func eniValues(e *ec2.ENI, name string) ([]string, bool) {
	switch name {
	case "network-interface-id":
		return one(string(e.ID)), true
	case "status":
		return one(statusOf(e)), true
	case "subnet-id":
		return one(string(e.Subnet)), true
	case "vpc-id":
		return one(e.VPC), true
	case "availability-zone":
		return one(e.Zone), true
	case "mac-address":
		return one(e.MAC), true
	case "owner-id":
		return one(ec2.Account), true
	case "description":
		return one(e.Description), true
	case "interface-type":
		return one("interface"), true
	case "group-id":
		return e.SecurityGroups, true
	case "private-ip-address":
		return one(text(e.Primary)), true
	case "addresses.private-ip-address":
		list := one(text(e.Primary))
		for _, a := range e.Secondaries {
			list = append(list, text(a))
		}
		return list, true
	}
	if strings.HasPrefix(name, "attachment.") {
		return attachmentValues(e, name)
	}
	return tagValues(e.Tags, name)
}

func attachmentValues(e *ec2.ENI, name string) ([]string, bool) {
	v := ""
	switch name {
	case "attachment.attachment-id":
		v = e.Attachment
	case "attachment.instance-id":
		v = string(e.Instance)
	case "attachment.status":
		v = attachmentStatus(e.Status)
	case "attachment.device-index":
		v = strconv.Itoa(e.DeviceIndex)
	case "attachment.delete-on-termination":
		v = strconv.FormatBool(e.DeleteOnTermination)
	default:
		return nil, false
	}
	if e.Attachment == "" {
		return nil, true
	}
	return one(v), true
}

func subnetValues(s *ec2.Subnet, name string) ([]string, bool) {
	switch name {
	case "subnet-id":
		return one(string(s.ID)), true
	case "vpc-id":
		return one(s.VPC), true
	case "availability-zone", "availabilityZone":
		return one(s.Zone), true
	case "cidr-block", "cidr", "cidrBlock":
		return one(s.CIDR.String()), true
	case "available-ip-address-count":
		return one(strconv.Itoa(s.Available)), true
	case "owner-id":
		return one(ec2.Account), true
	case "state":
		return one("available"), true
	}
	return tagValues(nil, name) // the model's subnets have no tags
}

func instanceValues(i *ec2.Instance, name string) ([]string, bool) {
	switch name {
	case "instance-id":
		return one(string(i.ID)), true
	case "instance-state-name":
		return one(i.State), true
	case "instance-type":
		return one(i.Type), true
	case "availability-zone":
		return one(i.Zone), true
	case "subnet-id":
		return one(string(i.Subnet)), true
	case "vpc-id":
		return one(i.VPC), true
	case "private-ip-address":
		return one(text(i.PrimaryAddress)), true
	case "owner-id":
		return one(ec2.Account), true
	}
	return tagValues(i.Tags, name)
}

func typeValues(t *ec2.Type, name string) ([]string, bool) {
	switch name {
	case "instance-type":
		return one(t.Name), true
	case "network-info.maximum-network-interfaces":
		return one(strconv.Itoa(t.ENIs)), true
	case "network-info.ipv4-addresses-per-interface":
		return one(strconv.Itoa(t.IPv4PerENI)), true
	}
	return nil, false
}

// tagValues are the filters tag:KEY and tag-key.
func tagValues(tags []ec2.Tag, name string) ([]string, bool) {
	key, ok := strings.CutPrefix(name, "tag:")
	if (!ok || key == "") && name != "tag-key" {
		return nil, false
	}
	var out []string
	for _, t := range tags {
		switch {
		case name == "tag-key":
			out = append(out, t.Key)
		case t.Key == key:
			out = append(out, t.Value)
		}
	}
	return out, true
}

func one(s string) []string { return []string{s} }

// text is an address, "" for none.
func text(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// keep filters a list in place.
func keep[T any](list []T, filters []filter, values func(*T, string) ([]string, bool)) []T {
	if len(filters) == 0 {
		return list
	}
	out := list[:0]
next:
	for i := range list {
		for _, f := range filters {
			have, _ := values(&list[i], f.name)
			if !f.match(have) {
				continue next
			}
		}
		out = append(out, list[i])
	}
	return out
}

func (f *filter) match(have []string) bool {
	for _, v := range have {
		for _, pattern := range f.values {
			if glob(pattern, v) {
				return true
			}
		}
	}
	return false
}

// glob compares with a pattern of the API: * is any text, ? any character, a backslash takes their meaning away. It goes back
// to the last * only, so that no pattern takes longer than its length times the text's.
func glob(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		if p < len(pattern) {
			switch c := pattern[p]; {
			case c == '*':
				star, mark = p, i
				p++
				continue
			case c == '\\' && p+1 < len(pattern) && pattern[p+1] == s[i]:
				p, i = p+2, i+1
				continue
			case c == '?' || c != '\\' && c == s[i] || c == '\\' && p+1 == len(pattern) && s[i] == '\\':
				p, i = p+1, i+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p, i = star+1, mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// hint tells the model of filters that it knows itself, so that it copies less, and in any case that there are filters: it
// throttles by that. They are applied again afterwards.
func (c *call) hint() {
	r := &c.req
	for _, f := range c.filters {
		r.FilterDescription = "*"
		if len(f.values) != 1 || f.values[0] == "" || strings.ContainsAny(f.values[0], `*?\`) {
			continue
		}
		switch v := f.values[0]; {
		case f.name == "attachment.instance-id":
			r.FilterInstance = v
		case f.name == "status" && v == ec2.Available.String():
			r.FilterStatus = v
		case strings.HasPrefix(f.name, "tag:"):
			r.FilterTagKey, r.FilterTagValue = f.name[len("tag:"):], v
		}
	}
}
