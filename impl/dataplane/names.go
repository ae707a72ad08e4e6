package dataplane

import (
	"crypto/sha1"
	"encoding/hex"
	"net/netip"
	"strings"
)

// Names, numbers and tables of the datapath: amazon-vpc-cni-k8s pkg/networkutils/network.go 1.23.1.
const (
	// MainTable is the kernel's main routing table, which is the primary ENI's.
	MainTable = 254

	// UnknownTable is that of an address whose ENI nobody has listed yet.
	UnknownTable = 0

	// PriorityToPod is the rule "to ADDRESS lookup main".
	PriorityToPod = 512
	// PriorityMark is the rule "fwmark 0x80/0x80 lookup main": flows that came in by the primary ENI.
	PriorityMark = 1024
	// PriorityFromPod is the rule "from ADDRESS lookup TABLE" of a pod on a secondary ENI.
	PriorityFromPod = 1536
	// PriorityFromENI is the rule "from PRIMARY lookup TABLE" of a secondary ENI.
	PriorityFromENI = 32765

	// Mark is the only bit of a packet's or flow's mark that is ever written.
	Mark = 0x80

	// DefaultMTU is what the VPC carries, in bytes.
	DefaultMTU = 9001

	// PodInterface is the pod's end of a veth pair unless the attachment says otherwise.
	PodInterface = "eth0"

	// MaxAlias is how long an alias may be, in bytes (IFALIASZ is 256 with its NUL). Code that accepts an
	// attachment refuses one whose key would not fit.
	MaxAlias = 255

	// AdoptedGroup is the link group of a host veth that another CNI made: its MAC is what the pod's
	// permanent neighbour entry names, and no function of the alias. That is in the kernel too, so that
	// it outlives the records. Any number but 0 would do; this one is "eni" on a telephone's keys.
	AdoptedGroup = 364

	aliasVersion = "enilab/1"
)

// Gateway is what every pod sends to. It exists nowhere; the host veth answers for it.
func Gateway() netip.Addr { return netip.AddrFrom4([4]byte{169, 254, 1, 1}) }

// SubnetGateway is the VPC router's address in a subnet: its first, by AWS's documentation ("Subnet
// CIDR blocks": the second address of the block is reserved for the VPC router).
func SubnetGateway(subnet netip.Prefix) netip.Addr { return subnet.Masked().Addr().Next() }

// TableOf is the routing table of the ENI at that device number of network card 0: main for the
// primary (0), number + 1 for the others.
func TableOf(device int) int {
	if device == 0 {
		return MainTable
	}
	return device + 1
}

// HostVethName is amazon-vpc-cni-k8s's name of a pod's host veth: at most 4 characters of prefix, then 11 of
// the hex SHA-1 of "namespace.pod". It is a name for people, never a key: two incarnations share it.
func HostVethName(prefix, namespace, pod string) string {
	return hashedName(prefix, namespace+"."+pod)
}

// DisplacedVethName is what an older incarnation's host veth is called after it gave up the canonical
// name: the same shape, hashed from its alias, so it is unique and the veth prefix still matches.
func DisplacedVethName(prefix, alias string) string { return hashedName(prefix, alias) }

func hashedName(prefix, text string) string {
	sum := sha1.Sum([]byte(text))
	var digits [12]byte
	hex.Encode(digits[:], sum[:6])
	return prefix + string(digits[:11])
}

// VethMAC is the host veth's MAC: locally administered, a function of the alias. That makes it known
// without entering the pod, and a MAC that was given is not "random" to udev, which then leaves it alone.
func VethMAC(alias string) string {
	text := vethMAC(alias)
	return string(text[:])
}

func vethMAC(alias string) (text [17]byte) {
	h := uint64(14695981039346656037) // FNV-1a
	for i := 0; i < len(alias); i++ {
		h = (h ^ uint64(alias[i])) * 1099511628211
	}
	const digits = "0123456789abcdef"
	for i := range 6 {
		octet := byte(h >> (8 * i))
		if i == 0 {
			octet = octet&^0x01 | 0x02 // unicast, locally administered
		} else {
			text[3*i-1] = ':'
		}
		text[3*i], text[3*i+1] = digits[octet>>4], digits[octet&15]
	}
	return text
}

// Alias is the exact key of an attachment as the kernel keeps it on the host veth (see MaxAlias):
// "enilab/1 <network> <containerID> <ifname> <address>". The CNI specification allows no spaces in any of
// them.
func Alias(network, containerID, ifName string, a netip.Addr) string {
	return aliasVersion + " " + network + " " + containerID + " " + ifName + " " + a.String()
}

// ParseAlias takes an alias apart. Any text that Alias would not have written gives ok == false.
func ParseAlias(s string) (network, containerID, ifName string, a netip.Addr, ok bool) {
	rest, found := strings.CutPrefix(s, aliasVersion+" ")
	if !found {
		return "", "", "", netip.Addr{}, false
	}
	network, rest, _ = strings.Cut(rest, " ")
	containerID, rest, _ = strings.Cut(rest, " ")
	ifName, rest, _ = strings.Cut(rest, " ")
	a, err := netip.ParseAddr(rest)
	var canonical [64]byte
	if err != nil || a.Zone() != "" || network == "" || containerID == "" || ifName == "" || string(a.AppendTo(canonical[:0])) != rest {
		return "", "", "", netip.Addr{}, false
	}
	return network, containerID, ifName, a, true
}
