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
	ActionCount // one more than the last Action: the length of tables indexed by Action
)

// String is the API's name of the action.
func (a Action) String() string {
	switch a {
	case CreateNetworkInterface:
		return "CreateNetworkInterface"
	case AttachNetworkInterface:
		return "AttachNetworkInterface"
	case ModifyNetworkInterfaceAttribute:
		return "ModifyNetworkInterfaceAttribute"
	case DetachNetworkInterface:
		return "DetachNetworkInterface"
	case DeleteNetworkInterface:
		return "DeleteNetworkInterface"
	case AssignPrivateIpAddresses:
		return "AssignPrivateIpAddresses"
	case UnassignPrivateIpAddresses:
		return "UnassignPrivateIpAddresses"
	case DescribeNetworkInterfaces:
		return "DescribeNetworkInterfaces"
	case DescribeSubnets:
		return "DescribeSubnets"
	case CreateTags:
		return "CreateTags"
	case DescribeInstances:
		return "DescribeInstances"
	case DescribeInstanceTypes:
		return "DescribeInstanceTypes"
	case AnyAction:
		return "AnyAction"
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
	return a == DescribeNetworkInterfaces || a == DescribeSubnets || a == DescribeInstances || a == DescribeInstanceTypes
}
