package ec2

// Limits are what an instance type allows.
type Limits struct {
	ENIs       int // network interfaces, the primary included
	IPv4PerENI int // private IPv4 addresses per interface, its primary address included
}

// LimitsOf looks an instance type up in a table of our own, taken from "Elastic network interfaces:
// maximum IP addresses per network interface" of the EC2 user guide. Only the first network card counts.
func LimitsOf(instanceType string) (Limits, bool) {
	switch instanceType {
	case "t3.nano", "t3.micro":
		return Limits{2, 2}, true
	case "t3.small":
		return Limits{3, 4}, true
	case "t3.medium":
		return Limits{3, 6}, true
	case "t3.large":
		return Limits{3, 12}, true
	case "m5.large", "c5.large", "r5.large", "m6i.large", "c6i.large", "r6i.large":
		return Limits{3, 10}, true
	case "t3.xlarge", "t3.2xlarge",
		"m5.xlarge", "c5.xlarge", "r5.xlarge", "m6i.xlarge", "c6i.xlarge", "r6i.xlarge",
		"m5.2xlarge", "c5.2xlarge", "r5.2xlarge", "m6i.2xlarge", "c6i.2xlarge", "r6i.2xlarge":
		return Limits{4, 15}, true
	case "m5.4xlarge", "c5.4xlarge", "r5.4xlarge", "m6i.4xlarge", "c6i.4xlarge", "r6i.4xlarge",
		"m5.8xlarge", "c5.9xlarge", "m5.12xlarge", "c5.12xlarge":
		return Limits{8, 30}, true
	case "m5.16xlarge", "c5.18xlarge", "m5.24xlarge", "c5.24xlarge", "r5.24xlarge", "p4d.24xlarge":
		return Limits{15, 50}, true
	}
	return Limits{}, false
}
