package ec2

// Error codes as the "Error codes for the Amazon EC2 API" document spells them.
const (
	codeThrottled         = "RequestLimitExceeded"
	codeUnavailable       = "Unavailable"
	codeInternal          = "InternalError"
	codeUnauthorized      = "UnauthorizedOperation"
	codeAuthFailure       = "AuthFailure"
	codeExpired           = "RequestExpired"
	codeInvalidAction     = "InvalidAction"
	codeMissing           = "MissingParameter"
	codeValue             = "InvalidParameterValue"
	codeCombination       = "InvalidParameterCombination"
	codeENINotFound       = "InvalidNetworkInterfaceID.NotFound"
	codeENIInUse          = "InvalidNetworkInterface.InUse"
	codeSubnetNotFound    = "InvalidSubnetID.NotFound"
	codeSubnetFull        = "InsufficientFreeAddressesInSubnet"
	codeENIQuota          = "NetworkInterfaceLimitExceeded"
	codeGroupNotFound     = "InvalidGroup.NotFound"
	codeGroupMalformed    = "InvalidGroupId.Malformed"
	codeGroupLimit        = "SecurityGroupsPerInterfaceLimitExceeded"
	codePrimaryInUse      = "InvalidIPAddress.InUse"
	codeAddressLimit      = "PrivateIpAddressLimitExceeded"
	codeIdempotent        = "IdempotentParameterMismatch"
	codeAttachmentLimit   = "AttachmentLimitExceeded"
	codeAttachAddresses   = "InvalidInterface.IpAddressLimitExceeded"
	codeInstanceNotFound  = "InvalidInstanceID.NotFound"
	codeInstanceState     = "IncorrectInstanceState"
	codeState             = "IncorrectState"
	codeAttachmentMissing = "InvalidAttachmentID.NotFound"
	codeNotPermitted      = "OperationNotPermitted"
	codeTagLimit          = "TagLimitExceeded"
	codeDryRun            = "DryRunOperation"
	codeType              = "InvalidInstanceType"
	codeNoBlocks          = "InsufficientCidrBlocks"
	codeENIMalformed      = "InvalidNetworkInterfaceId.Malformed"
	codeInstanceMalformed = "InvalidInstanceID.Malformed"
	codeImageMalformed    = "InvalidAMIID.Malformed"
	codeDependency        = "DependencyViolation"
	codeAddressNotFound   = "InvalidAddress.NotFound"
	codeAllocationMissing = "InvalidAllocationID.NotFound"
	codeTableNotFound     = "InvalidRouteTableID.NotFound"
	codeTableMalformed    = "InvalidRouteTableId.Malformed"
	codeVPCNotFound       = "InvalidVpcID.NotFound"
	codeVPCMalformed      = "InvalidVpcId.Malformed"
	codeID                = "InvalidID" // of a resource to be tagged
	codeNoDefaultVPC      = "VPCIdNotSpecified"
	codeParameter         = "InvalidParameter"
	codeUnsupported       = "Unsupported"
	codeNotModelled       = "UnsupportedOperation"
	codeNoCapacity        = "InsufficientInstanceCapacity"
	codeInstanceLimit     = "InstanceLimitExceeded"
	codeVCPULimit         = "VcpuLimitExceeded"
)

const (
	messageENIQuota = "The maximum number of network interfaces has been reached."
	messageLimit    = "Number of private addresses will exceed limit."
	messageLimit6   = "Number of IPv6 addresses will exceed limit."
	messageNoBlocks = "The specified subnet does not have enough free cidr blocks to satisfy the request."
	messageOneOf4   = "Only one of secondaryPrivateIpAddressCount, privateIpAddresses, ipv4PrefixCount and ipv4Prefixes can be specified"
	messageOneOf6   = "You can and can only specify one of ipv6-addresses or ipv6-addresses-count ipv6-prefix and ipv6-prefix-count."
)

// statusOf is the HTTP status that goes with a code.
func statusOf(code string) int {
	switch code {
	case codeThrottled, codeUnavailable:
		return 503
	case codeInternal, codeNoCapacity:
		return 500
	case codeUnauthorized:
		return 403
	case codeAuthFailure:
		return 401
	case codeDryRun:
		return 412
	}
	return 400
}

// failure is a Response that says no.
func failure(code, message string) Response {
	return Response{Code: code, Message: message, HTTP: statusOf(code)}
}

// success is a Response that says yes; the caller adds what the action returns.
func success() Response { return Response{HTTP: 200} }

func missing(parameter string) Response {
	return failure(codeMissing, "The request must contain the parameter "+parameter)
}

func noSuchENI(id ENIID) Response {
	if id == "" {
		return missing("networkInterfaceId")
	}
	if !wellFormed(eniPrefix, string(id)) {
		return failure(codeENIMalformed, "Invalid id: \""+string(id)+"\" (expecting \"eni-...\")")
	}
	return failure(codeENINotFound, "The networkInterface ID '"+string(id)+"' does not exist")
}

func noSuchInstance(id InstanceID) Response {
	if !wellFormed(instancePrefix, string(id)) {
		return failure(codeInstanceMalformed, "Invalid id: \""+string(id)+"\"")
	}
	return failure(codeInstanceNotFound, "The instance ID '"+string(id)+"' does not exist")
}

func noSuchSubnet(id SubnetID) Response {
	return failure(codeSubnetNotFound, "The subnet ID '"+string(id)+"' does not exist")
}

func noSuchAttachment(id string) Response {
	return failure(codeAttachmentMissing, "The interface attachment '"+id+"' does not exist")
}

// notAllowed is the message of UnauthorizedOperation for what no policy of a role allows.
func notAllowed(account string, caller InstanceID, a Action) Response {
	return failure(codeUnauthorized, "You are not authorized to perform this operation. User: arn:aws:sts::"+account+":assumed-role/node/"+string(caller)+
		" is not authorized to perform: ec2:"+a.String()+" because no identity-based policy allows the ec2:"+a.String()+" action.")
}

// subnetFull is the message of InsufficientFreeAddressesInSubnet.
func (c *Cloud) subnetFull(sub int32) string {
	return "The specified subnet '" + string(c.subnets[sub].id) + "' does not have enough free addresses to satisfy the request."
}
