package ipam

import "strings"

// tooManyRequests is HTTP's status for a caller that has to slow down.
const tooManyRequests = 429

// ClassOf sorts EC2's error codes (EC2 API reference, "Error codes"). The HTTP status decides where the code does not. Every shell and every
// world asks it: a code means the same to the core wherever it comes from.
func ClassOf(code, message string, status int) Class {
	switch code {
	case "RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException", "RequestThrottled", "RequestThrottledException",
		"EC2ThrottledException", "TooManyRequestsException", "SlowDown", "BandwidthLimitExceeded":
		return Throttled
	case "InsufficientFreeAddressesInSubnet", "InsufficientCidrBlocks":
		return SubnetFull
	case "AttachmentLimitExceeded", "InvalidInterface.IpAddressLimitExceeded", "PrivateIpAddressLimitExceeded", "NetworkInterfaceLimitExceeded":
		return Limit
	case "InvalidNetworkInterface.InUse":
		return InUse
	case "UnauthorizedOperation", "AuthFailure", "RequestExpired", "AccessDenied", "AccessDeniedException", "Blocked", "ExpiredToken",
		"ExpiredTokenException", "IncompleteSignature", "InvalidClientTokenId", "MissingAuthenticationToken", "OptInRequired",
		"PendingVerification", "SignatureDoesNotMatch", "UnrecognizedClientException":
		return Denied
	}
	switch {
	// prefixes of a subnet that is too full (cilium#31016)
	case code == "InvalidParameterValue" && strings.Contains(message, "sufficient free Ipv4"):
		return SubnetFull
	case strings.HasSuffix(code, ".NotFound"):
		return NotFound
	case code == "InvalidParameterValue" && strings.Contains(message, "in use"): // DeleteNetworkInterface; an address or a device index
		return InUse
	case status == tooManyRequests:
		return Throttled
	case status >= 500:
		return Unavailable
	}
	return Invalid
}

// Refusal reads the code of an answer of that class. What is denied is about what the role may do, which passes when somebody changes the role. What
// else is Denied is refused because of who asks, and when: a wrong clock, or credentials that are renewed, pass by themselves.
func (c Class) Refusal(code string) (denied, refused bool) {
	if c != Denied {
		return false, false
	}
	switch code {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "OptInRequired":
		return true, false
	}
	return false, true
}
