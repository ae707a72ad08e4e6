package ec2

import (
	"slices"
	"strconv"
)

// AccountAttribute is a default or a quota of the account, as an answer shows it.
type AccountAttribute struct{ Name, Value string }

// accountAttributes are those that DescribeAccountAttributes documents, with the default quotas. There is no default
// VPC.
func accountAttributes() []AccountAttribute {
	return []AccountAttribute{
		{"supported-platforms", "VPC"}, {"default-vpc", "none"}, {"max-instances", "20"},
		{"vpc-max-security-groups-per-interface", strconv.Itoa(mostGroups)}, {"max-elastic-ips",
			"5"}, {"vpc-max-elastic-ips", "5"},
	}
}

// describeAccount answers with all attributes, or with those asked for in that order.
func describeAccount(r *Request) Response {
	p, all := success(), accountAttributes()
	if len(r.Attributes) == 0 {
		p.Account = all
		return p
	}
	for _, name := range r.Attributes {
		n := slices.IndexFunc(all, func(a AccountAttribute) bool { return a.Name == name })
		if n < 0 {
			return failure(codeValue, "Value ("+name+") for parameter attributeName is invalid. Unknown account attribute.")
		}
		p.Account = append(p.Account, all[n])
	}
	return p
}

// describeAddresses answers that there are no Elastic IP addresses.
func describeAddresses(r *Request) Response {
	switch {
	case len(r.PublicIPs) > 0:
		return failure(codeAddressNotFound, "Address '"+r.PublicIPs[0].String()+"' not found.")
	case len(r.Allocations) > 0:
		return failure(codeAllocationMissing, "The allocation ID '"+r.Allocations[0]+"' does not exist")
	}
	return success()
}
