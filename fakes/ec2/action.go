package ec2

import (
	"fmt"
	"strings"
)

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
	// What follows no fault of a seed is drawn from (DrawFault), so that a seed goes on meaning what it meant.
	DescribeTags
	DescribeAvailabilityZones
	DescribeRegions
	DescribeInstanceStatus
	GetSubnetCidrReservations
	DescribeNetworkInterfaceAttribute
	DescribeVpcAttribute
	DescribeAccountAttributes
	DescribeAddresses
	DescribeRouteTables
	DeleteSubnet
	StopInstances
	StartInstances
	ActionCount // one more than the last Action: the length of tables indexed by Action
)

var actionNames = [ActionCount]string{"AnyAction", "CreateNetworkInterface", "AttachNetworkInterface", "ModifyNetworkInterfaceAttribute",
	"DetachNetworkInterface", "DeleteNetworkInterface", "AssignPrivateIpAddresses", "UnassignPrivateIpAddresses",
	"DescribeNetworkInterfaces", "DescribeSubnets", "CreateTags", "DescribeInstances", "DescribeInstanceTypes", "DeleteTags",
	"AssignIpv6Addresses", "UnassignIpv6Addresses", "DescribeVpcs", "DescribeSecurityGroups", "RunInstances", "TerminateInstances",
	"RebootInstances", "DescribeTags", "DescribeAvailabilityZones", "DescribeRegions", "DescribeInstanceStatus",
	"GetSubnetCidrReservations", "DescribeNetworkInterfaceAttribute", "DescribeVpcAttribute",
	"DescribeAccountAttributes", "DescribeAddresses", "DescribeRouteTables", "DeleteSubnet", "StopInstances", "StartInstances"}

// String is the API's name of the action.
func (a Action) String() string {
	if a < ActionCount {
		return actionNames[a]
	}
	return "UnknownAction"
}

// Mutates says whether the action changes something. Its name tells, as in the EC2 API guide's "Request throttling".
func (a Action) Mutates() bool {
	return a.known() && !strings.HasPrefix(a.String(), "Describe") && !strings.HasPrefix(a.String(), "Get")
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

// ActionSet is a set of Actions.
type ActionSet uint64

// Has says whether the set has an action.
func (s ActionSet) Has(a Action) bool { return s&(1<<a) != 0 }

// String is the names, in the order of the constants, separated by commas: what ParseActions reads.
func (s ActionSet) String() string {
	var names []string
	for a := CreateNetworkInterface; a < ActionCount; a++ {
		if s.Has(a) {
			names = append(names, a.String())
		}
	}
	return strings.Join(names, ",")
}

// ParseActions is the set of the actions that a text names, separated by commas.
func ParseActions(text string) (ActionSet, error) {
	var s ActionSet
	for name := range strings.SplitSeq(text, ",") {
		a, ok := ParseAction(name)
		if !ok {
			return 0, fmt.Errorf("there is no action %.60q: name those of the API, separated by commas", name)
		}
		s |= 1 << a
	}
	return s, nil
}

// describes says whether a only reads.
func (a Action) describes() bool {
	switch a {
	case DescribeNetworkInterfaces, DescribeSubnets, DescribeInstances, DescribeInstanceTypes, DescribeVpcs, DescribeSecurityGroups,
		DescribeTags, DescribeAvailabilityZones, DescribeRegions, DescribeInstanceStatus, GetSubnetCidrReservations,
		DescribeNetworkInterfaceAttribute, DescribeVpcAttribute, DescribeAccountAttributes, DescribeAddresses,
		DescribeRouteTables:
		return true
	}
	return false
}
