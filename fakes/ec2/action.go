package ec2

// Action is an EC2 API action. The zero Action is none; in a Fault it means any.
type Action uint8

const (
	AnyAction Action = iota
	CreateNetworkInterface
	AttachNetworkInterface
	ModifyNetworkInterfaceAttribute
	DetachNetworkInterface
	DeleteNetworkInterface
	AssignPrivateIpAddresses
	UnassignPrivateIpAddresses
	DescribeNetworkInterfaces
	DescribeSubnets
	CreateTags
	DescribeInstances
	DescribeInstanceTypes
	DeleteTags
	AssignIpv6Addresses
	UnassignIpv6Addresses
	DescribeVpcs
	DescribeSecurityGroups
	RunInstances
	TerminateInstances
	RebootInstances
	ActionCount // one more than the last Action: the length of tables indexed by Action
)

var actionNames = [ActionCount]string{"AnyAction", "CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute",
	"DetachNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses",
	"DescribeNetworkInterfaces", "DescribeSubnets", "CreateTags", "DescribeInstances", "DescribeInstanceTypes", "DeleteTags",
	"AssignIpv6Addresses", "UnassignIpv6Addresses", "DescribeVpcs", "DescribeSecurityGroups", "RunInstances", "TerminateInstances",
	"RebootInstances"}

// String is the API's name of the action.
func (a Action) String() string {
	if a < ActionCount {
		return actionNames[a]
	}
	return "UnknownAction"
}

// ParseAction is the Action with the API name given, exact in case.
func ParseAction(name string) (Action, bool) {
	for a := CreateNetworkInterface; a < ActionCount; a++ {
		if a.String() == name {
			return a, true
		}
	}
	return 0, false
}

// known says whether a names an action of the API.
func (a Action) known() bool { return a > AnyAction && a < ActionCount }

// describes says whether a only reads.
func (a Action) describes() bool {
	switch a {
	case DescribeNetworkInterfaces, DescribeSubnets, DescribeInstances, DescribeInstanceTypes, DescribeVpcs, DescribeSecurityGroups:
		return true
	}
	return false
}
