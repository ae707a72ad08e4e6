package server

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// pageLimit is how much one answer lists at most, also when no pages were asked for.
const pageLimit = 1000

// narrow leaves in the response what was asked for: filters, a page. Identifiers are the model's.
func (c *call) narrow(p *ec2.Response) (f *fault) {
	switch c.req.Action {
	case ec2.DescribeNetworkInterfaces:
		p.ENIs, f = page(c, keep(p.ENIs, c.filters, c.eniValues))
	case ec2.DescribeSubnets:
		p.Subnets, f = page(c, keep(p.Subnets, c.filters, c.subnetValues))
	case ec2.DescribeInstances:
		p.Instances, f = page(c, keep(p.Instances, c.filters, c.instanceValues))
	case ec2.DescribeInstanceTypes:
		p.Types, f = page(c, keep(p.Types, c.filters, c.typeValues))
	case ec2.DescribeVpcs:
		p.VPCs, f = page(c, keep(p.VPCs, c.filters, c.vpcValues))
	case ec2.DescribeTags:
		p.Tags, f = page(c, keep(p.Tags, c.filters, c.tagOfValues))
	case ec2.DescribeAvailabilityZones:
		p.Zones = keep(p.Zones, c.filters, c.zoneValues)
	case ec2.DescribeRegions:
		p.Regions = keep(p.Regions, c.filters, c.regionValues)
	case ec2.DescribeInstanceStatus:
		p.Statuses, f = page(c, keep(p.Statuses, c.filters, c.statusValues))
	case ec2.GetSubnetCidrReservations:
		p.Reservations, f = page(c, keep(p.Reservations, c.filters, c.reservationValues))
	case ec2.DescribeRouteTables:
		p.RouteTables, f = page(c, keep(p.RouteTables, c.filters, c.routeTableValues))
	case ec2.DescribeSecurityGroups:
		p.Groups, f = page(c, keep(p.Groups, c.filters, c.groupValues))
	}
	return f
}

// page cuts a list, and sets the token of the rest.
func page[T any](c *call, list []T) ([]T, *fault) {
	from, ok := c.offset()
	if !ok {
		return nil, bad("InvalidPaginationToken", "The specified pagination token is not valid or is expired.")
	}
	list = list[min(from, len(list)):]
	size := cmp.Or(c.max, pageLimit)
	if len(list) > size {
		list = list[:size]
		c.next = base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(from+size) + "/" + c.question()))
	}
	return list, nil
}

// offset is where the page of NextToken begins.
func (c *call) offset() (int, bool) {
	if c.token == "" {
		return 0, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(c.token)
	at, question, _ := strings.Cut(string(raw), "/")
	n, bad := strconv.Atoi(at)
	return n, err == nil && bad == nil && n > 0 && question == c.question()
}

// question is a digest of what a token must not be used for anything else than.
func (c *call) question() string {
	parts := []string{c.action, string(c.req.Subnet)}
	for _, f := range c.filters {
		parts = append(append(append(parts, f.name), f.values...), "")
	}
	return digest(parts...)
}

// digest is 17 hexadecimal digits, as identifiers have, that stand for some texts.
func digest(parts ...string) string {
	h := fnv.New64a()
	for _, s := range parts {
		_, _ = h.Write(append([]byte(s), 0))
	}
	return fmt.Sprintf("0%016x", h.Sum64())
}
