package server

import (
	"encoding/base64"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// pageLimit is how much one answer lists at most, also when nobody asked for pages.
const pageLimit = 1000

// narrow leaves in the response what was asked for: identifiers, filters, a page.
func (c *call) narrow(p *ec2.Response) (f *fault) {
	switch c.req.Action {
	case ec2.DescribeNetworkInterfaces:
		p.ENIs = keep(p.ENIs, c.filters, eniValues)
		p.ENIs, f = page(c, p.ENIs)
	case ec2.DescribeSubnets:
		p.Subnets, f = pick(p.Subnets, c.ids, func(s *ec2.Subnet) string { return string(s.ID) }, "InvalidSubnetID.NotFound", "subnet")
		if f == nil {
			p.Subnets, f = page(c, keep(p.Subnets, c.filters, subnetValues))
		}
	case ec2.DescribeInstances:
		p.Instances, f = pick(p.Instances, c.ids, func(i *ec2.Instance) string { return string(i.ID) }, "InvalidInstanceID.NotFound", "instance")
		if f == nil {
			p.Instances, f = page(c, keep(p.Instances, c.filters, instanceValues))
		}
	case ec2.DescribeInstanceTypes:
		p.Types, f = page(c, keep(p.Types, c.filters, typeValues))
	}
	return f
}

// pick takes the identifiers that were asked for; one that is not there fails the whole request.
func pick[T any](list []T, ids []string, id func(*T) string, code, noun string) ([]T, *fault) {
	if len(ids) == 0 {
		return list, nil
	}
	var out []T
	for _, want := range ids {
		at := slices.IndexFunc(list, func(t T) bool { return id(&t) == want })
		if at < 0 {
			return nil, bad(code, "The "+noun+" ID '"+excerpt(want)+"' does not exist")
		}
		out = append(out, list[at])
	}
	return out, nil
}

// page cuts a list, and sets the token of the rest.
func page[T any](c *call, list []T) ([]T, *fault) {
	from, ok := c.offset()
	if !ok {
		return nil, bad("InvalidPaginationToken", "The specified pagination token is not valid or is expired.")
	}
	list = list[min(from, len(list)):]
	size := c.max
	if size == 0 {
		size = pageLimit
	}
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
	h := fnv.New64a()
	write := func(s string) { _, _ = h.Write(append([]byte(s), 0)) }
	write(c.action)
	for _, f := range c.filters {
		write(f.name)
		for _, v := range f.values {
			write(v)
		}
		write("")
	}
	return strconv.FormatUint(h.Sum64(), 36)
}
