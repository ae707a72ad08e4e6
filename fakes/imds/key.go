package imds

import (
	"strings"

	"github.com/enilab/enilab/fakes/ec2"
)

// keyPrefix begins the access keys of temporary credentials ("IAM identifiers").
const keyPrefix = "ASIA"

// AccessKey is the access key of an instance's role. It is the instance's identifier in another spelling, so that a
// fake EC2 can tell from a signed request who calls: see InstanceOf.
func AccessKey(id ec2.InstanceID) string {
	return keyPrefix + strings.ToUpper(strings.TrimPrefix(string(id), "i-0"))
}

// SecretKey is the secret of an access key that metadata gives: what a fake EC2 checks signatures with.
func SecretKey(accessKey string) string { return "secret-of-" + accessKey }

// SessionToken is the session token of an instance's credentials.
func SessionToken(id ec2.InstanceID) string { return "session-of-" + string(id) }

// InstanceOf is the instance whose role an access key is, if it is one of AccessKey's.
func InstanceOf(key string) (ec2.InstanceID, bool) {
	digits, ok := strings.CutPrefix(key, keyPrefix)
	if !ok || len(digits) != 16 || strings.Trim(digits, "0123456789ABCDEF") != "" {
		return "", false
	}
	return ec2.InstanceID("i-0" + strings.ToLower(digits)), true
}
