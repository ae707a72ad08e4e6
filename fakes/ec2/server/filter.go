package server

import (
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
func (q *form) filters(c *call) []filter {
	var out []filter
	for _, member := range q.members("Filter") {
		f := filter{name: q.required(member + ".Name")}
		for _, v := range q.members(member + ".Value") {
			f.values = append(f.values, q.text(v))
		}
		switch {
		case len(out) == maxFilters || len(f.values) > maxFilterValues:
			q.fail(bad("FilterLimitExceeded", "The request uses too many filters or too many filter values."))
		case f.name != "" && !c.filterable(f.name):
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
func (c *call) filterable(name string) (ok bool) {
	switch c.req.Action {
	case ec2.DescribeNetworkInterfaces:
		_, ok = c.eniValues(&ec2.ENI{}, name)
	case ec2.DescribeSubnets:
		_, ok = c.subnetValues(&ec2.Subnet{}, name)
	case ec2.DescribeInstances:
		_, ok = c.instanceValues(&ec2.Instance{}, name)
	case ec2.DescribeInstanceTypes:
		_, ok = c.typeValues(&ec2.Type{}, name)
	case ec2.DescribeVpcs:
		_, ok = c.vpcValues(&ec2.VPC{}, name)
	case ec2.DescribeTags:
		_, ok = c.tagOfValues(&ec2.TagOf{}, name)
	case ec2.DescribeAvailabilityZones:
		_, ok = c.zoneValues(&ec2.Zone{}, name)
	case ec2.DescribeRegions:
		_, ok = c.regionValues(new(string), name)
	case ec2.DescribeInstanceStatus:
		_, ok = c.statusValues(&ec2.InstanceStatus{}, name)
	case ec2.GetSubnetCidrReservations:
		_, ok = c.reservationValues(&ec2.Reservation{}, name)
	case ec2.DescribeAddresses:
		ok = elasticFilter(name)
	case ec2.DescribeRouteTables:
		_, ok = c.routeTableValues(&ec2.RouteTable{}, name)
	case ec2.DescribeSecurityGroups:
		_, ok = c.groupValues(&ec2.SecurityGroup{}, name)
	}
	return ok
}

// keep filters a list, which stays as it is: it may be the model's.
func keep[T any](list []T, filters []filter, values func(*T, string) ([]string, bool)) []T {
	if len(filters) == 0 {
		return list
	}
	var out []T
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
	if len(c.filters) > 0 {
		r.FilterDescription = "*"
	}
	if r.Action != ec2.DescribeNetworkInterfaces {
		return
	}
	for _, f := range c.filters {
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
