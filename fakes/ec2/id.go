package ec2

import "github.com/enilab/enilab/internal/splitmix"

// InstanceID names an instance: "i-" and 17 hexadecimal digits.
type InstanceID string

// ENIID names an elastic network interface: "eni-" and 17 hexadecimal digits.
type ENIID string

// SubnetID names a subnet: "subnet-" and 17 hexadecimal digits, or whatever the Config says.
type SubnetID string

// Prefixes of the identifiers; each kind of thing counts for itself.
const (
	instancePrefix   = "i-"
	eniPrefix        = "eni-"
	subnetPrefix     = "subnet-"
	attachmentPrefix = "eni-attach-"
	groupPrefix      = "sg-"
	vpcPrefix        = "vpc-"
	imagePrefix      = "ami-"

	reservationPrefix = "r-"
	routeTablePrefix  = "rtb-"
	associationPrefix = "rtbassoc-"
	cidrPrefix        = "scr-" // of a CIDR reservation
)

// An identifier's digits are a reversible scrambling of a running number, so they look like EC2's, cannot
// collide, and can be turned back into the number: looking something up needs no map, which makes
// Clone a handful of memory copies.
type namer struct{ salt uint64 }

const digits = "0123456789abcdef"

// name is the identifier of number n.
func (k namer) name(prefix string, n int) string {
	var buf [28]byte
	b := append(buf[:0], prefix...)
	b = append(b, '0')
	v := splitmix.Mix(uint64(n) + k.salt)
	for shift := 60; shift >= 0; shift -= 4 {
		b = append(b, digits[v>>shift&15])
	}
	return string(b)
}

// number turns an identifier back, and says whether it is one of the first `limit` of its kind.
func (k namer) number(prefix, id string, limit int) (int, bool) {
	if len(id) != len(prefix)+17 || id[:len(prefix)] != prefix || id[len(prefix)] != '0' {
		return 0, false
	}
	var v uint64
	var wrong byte // without branches: whether a digit is a letter is a coin that no processor guesses, and each call looks up two names
	for _, ch := range []byte(id[len(prefix)+1:]) {
		digit := ch&15 + ch>>6*9 // a letter has bit 6 set
		v = v<<4 | uint64(digit&15)
		wrong |= digits[digit&15] ^ ch
	}
	n := splitmix.Unmix(v) - k.salt
	if wrong != 0 || n >= uint64(limit) {
		return 0, false
	}
	return int(n), true
}

// macOf is the hardware address of ENI number n: locally administered like EC2's, unique because the
// last four bytes are a reversible scrambling of n.
func macOf(salt uint64, n int) string {
	v := uint64(mix32(uint32(n)+uint32(salt))) | uint64(byte(salt>>32))<<32 | 2<<40
	var b [17]byte
	for i := range 6 {
		octet := byte(v >> (40 - 8*i))
		b[3*i], b[3*i+1] = digits[octet>>4], digits[octet&15]
		if i < 5 {
			b[3*i+2] = ':'
		}
	}
	return string(b[:])
}
