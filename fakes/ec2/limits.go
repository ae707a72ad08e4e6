package ec2

import "slices"

// Limits are what an instance type allows.
type Limits struct {
	ENIs       int // network interfaces on all cards, the primary included
	IPv4PerENI int // private IPv4 addresses per interface, its primary address included
	IPv6PerENI int
}

// Type is an instance type as DescribeInstanceTypes shows it.
type Type struct {
	Name string
	Limits
}

// LimitsOf looks an instance type up in a table of our own, taken from "Elastic network interfaces:
// maximum IP addresses per network interface" of the EC2 user guide. Only the first network card counts.
func LimitsOf(instanceType string) (Limits, bool) {
	for i := range limits {
		if slices.Contains(limits[i].types, instanceType) {
			return limits[i].Limits, true
		}
	}
	return Limits{}, false
}

var limits = [...]struct {
	Limits
	types []string
}{
	{Limits{ENIs: 2, IPv4PerENI: 2}, []string{"t3.nano", "t3.micro"}},
	{Limits{ENIs: 3, IPv4PerENI: 4}, []string{"t3.small"}},
	{Limits{ENIs: 3, IPv4PerENI: 6}, []string{"t3.medium"}},
	{Limits{ENIs: 3, IPv4PerENI: 12}, []string{"t3.large"}},
	{Limits{ENIs: 3, IPv4PerENI: 10}, []string{"m5.large", "c5.large", "r5.large", "m6i.large", "c6i.large", "r6i.large"}},
	{Limits{ENIs: 4, IPv4PerENI: 15}, []string{"t3.xlarge", "t3.2xlarge",
		"m5.xlarge", "c5.xlarge", "r5.xlarge", "m6i.xlarge", "c6i.xlarge", "r6i.xlarge",
		"m5.2xlarge", "c5.2xlarge", "r5.2xlarge", "m6i.2xlarge", "c6i.2xlarge", "r6i.2xlarge"}},
	{Limits{ENIs: 8, IPv4PerENI: 30}, []string{"m5.4xlarge", "c5.4xlarge", "r5.4xlarge", "m6i.4xlarge", "c6i.4xlarge", "r6i.4xlarge",
		"m5.8xlarge", "c5.9xlarge", "m5.12xlarge", "c5.12xlarge"}},
	{Limits{ENIs: 15, IPv4PerENI: 50}, []string{"m5.16xlarge", "c5.18xlarge", "m5.24xlarge", "c5.24xlarge", "r5.24xlarge", "p4d.24xlarge"}},
}

// describeTypes answers for the types that the table has.
func describeTypes(r *Request) Response {
	p := success()
	if len(r.Types) == 0 {
		for i := range limits {
			for _, name := range limits[i].types {
				p.Types = append(p.Types, Type{name, limits[i].Limits})
			}
		}
		return p
	}
	for _, name := range r.Types {
		l, ok := LimitsOf(name)
		if !ok {
			return failure(codeType, "The following supplied instance types do not exist: ["+name+"]")
		}
		p.Types = append(p.Types, Type{name, l})
	}
	return p
}
