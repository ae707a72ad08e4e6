package dataplane

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Kind is what an operation does. Each is idempotent except CreateVeth, which is exclusive.
type Kind uint8

// The kinds, with the fields of Op they read. A device is named by Alias (a pod's host veth), by MAC
// (an ENI) or, where both are empty, by Link (its name).
const (
	// None does nothing; a plan never holds it.
	None Kind = iota

	// CreateVeth{Link, Alias, MAC, Netns, Name, MTU} makes a veth pair: the host's end Link with the
	// alias and the MAC, the pod's end Name in Netns, both up. Exclusive (NLM_F_EXCL): Exists when a
	// link of that name or that alias lives, or the namespace already has a Name.
	CreateVeth
	// RenameLink{Alias, Link, Name}: the link with that alias, or the veth called Link where none has
	// it (a third party cleared the alias, or no record knows it), gives up its name for Name and keeps its
	// traffic. A link that is gone has nothing to give up: no error. Exists when another link is
	// called Name. Before Linux 6.2 the link has to go down for it, which loses its routes and proxy
	// entries: then they are put back as part of this operation.
	RenameLink
	// AdoptLink{Link, Alias, MAC, Addr}: the veth Link has no alias and now gets ours. With a MAC it
	// was made by another CNI, and gets AdoptedGroup too. Exists when it carries another alias; NoLink
	// when there is no such veth, or Addr is routed to another link, or to none and is not configured
	// in the namespace behind it.
	AdoptLink
	// LinkUp{Alias, MTU}: the host veth is up and has that MTU.
	LinkUp
	// SetMAC{Alias, MAC}: the host veth has that MAC, which the pod's permanent neighbour entry names.
	SetMAC
	// DeleteVeth{Alias} destroys both ends, also when the namespace is held by a process. Absent is fine.
	DeleteVeth

	// PodRoute{Alias, Netns, Dst, Via} is a route in the pod; Via invalid means scope link.
	PodRoute
	// PodAddress{Alias, Netns, Addr} is the address/32 on the pod's end.
	PodAddress
	// PodNeighbour{Alias, Netns, Addr, MAC} is a permanent neighbour entry in the pod.
	PodNeighbour
	// ProxyNeighbour{Alias, Addr}: the host veth answers ARP for Addr.
	ProxyNeighbour

	// EnsureRoute{device, Table, Dst, Via} adds or replaces (NLM_F_REPLACE). Unreachable when no route
	// of the device covers Via.
	EnsureRoute
	// RemoveRoute{device, Table, Dst} removes the route only if it points to that device, or to no
	// device that lives. A route whose link carries a foreign alias stays. Absent is fine.
	RemoveRoute
	// EnsureRule{Priority, Addr or Mark, Table}: see Rule for which side of a packet Addr is.
	EnsureRule
	// RemoveRule{Priority, Addr or Mark, Table}; Table 0 means every table. Absent is fine.
	RemoveRule
	// RemoveStaleRules{Priority, Addr, Table} removes the rules of that priority and address that
	// point to any table but Table. amazon-vpc-cni-k8s ignores "exists" there, and the old rule wins.
	RemoveStaleRules
	// FlushConntrack{Addr} forgets the flows of an address, so that its next owner does not get them. A plan of nothing
	// else does it for all of its addresses at once: that is one walk of the table.
	FlushConntrack

	// ENIUp{MAC, MTU}: the link with that MAC is up and has that MTU.
	ENIUp
	// ENIAddress{MAC, Addr, Dst}: Addr with the mask of Dst is the link's only address.
	ENIAddress
	// HostNAT{MAC, Addr, Name, Value} is the whole nftables table of our own, written in one
	// transaction: primary link, node address, VPC CIDRs joined by spaces, and the flags "snat" and
	// "nodeport" joined by a space.
	HostNAT
	// Sysctl{MAC, Name, Value} sets net.ipv4.conf.<link>.Name.
	Sysctl
	// AcceptForward{Name}: where the policy of the chain FORWARD of iptables' table filter is DROP, rules at its end
	// accept what comes in by a link whose name begins with Name, or leaves by one.
	AcceptForward

	kinds // how many
)

var kindNames = [kinds]string{
	None: "none", CreateVeth: "create-veth", RenameLink: "rename-link", AdoptLink: "adopt-link", LinkUp: "link-up",
	SetMAC: "set-mac", DeleteVeth: "delete-veth", PodRoute: "pod-route", PodAddress: "pod-address",
	PodNeighbour: "pod-neighbour", ProxyNeighbour: "proxy-neighbour", EnsureRoute: "ensure-route",
	RemoveRoute: "remove-route", EnsureRule: "ensure-rule", RemoveRule: "remove-rule",
	RemoveStaleRules: "remove-stale-rules", FlushConntrack: "flush-conntrack", ENIUp: "eni-up",
	ENIAddress: "eni-address", HostNAT: "host-nat", Sysctl: "sysctl", AcceptForward: "accept-forward",
}

// String is the kind's name as a plan prints it.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return "kind-" + strconv.Itoa(int(k))
}

// MarshalText is the kind's name, so that a record of today is read by tomorrow's numbering.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind's name.
func (k *Kind) UnmarshalText(text []byte) error {
	for i := range kinds {
		if kindNames[i] == string(text) {
			*k = i
			return nil
		}
	}
	return fmt.Errorf("dataplane: read a plan: kind %q is unknown to this version", text)
}

// Op is one operation, flat and comparable with ==. Which fields a kind reads is said at the kind;
// the others are zero.
type Op struct {
	Kind     Kind
	Mark     uint32       // rule: fwmark and its mask
	Link     string       // a link's name on the host
	Alias    string       // the attachment key of a host veth, see Alias
	MAC      string       // an ENI's, or the host veth's
	Netns    uint64       // inode of the pod's namespace; 0 is the host's
	Addr     netip.Addr   // the address the operation is about
	Dst      netip.Prefix // route: destination; ENIAddress: the subnet
	Via      netip.Addr   // route: gateway
	Table    int          // route or rule
	Priority int          // rule
	MTU      int          // bytes; 0 leaves it alone
	Name     string       // new link name, pod interface, sysctl key, joined CIDRs, begin of links' names
	Value    string       // sysctl value, NAT flags
}

// String is one readable line: the kind, then the fields that are set, as key=value in fixed order.
func (o *Op) String() string {
	var b strings.Builder
	b.WriteString(o.Kind.String())
	text := func(key, value string) {
		if value == "" {
			return
		}
		if strings.ContainsAny(value, " \"=") {
			value = strconv.Quote(value)
		}
		b.WriteString(" " + key + "=" + value)
	}
	number := func(key string, n int) {
		if n != 0 {
			text(key, strconv.Itoa(n))
		}
	}
	text("link", o.Link)
	text("name", o.Name)
	text("value", o.Value)
	if o.Addr.IsValid() {
		text("addr", o.Addr.String())
	}
	if o.Dst.IsValid() {
		text("dst", o.Dst.String())
	}
	if o.Via.IsValid() {
		text("via", o.Via.String())
	}
	number("priority", o.Priority)
	if o.Mark != 0 {
		text("mark", "0x"+strconv.FormatUint(uint64(o.Mark), 16))
	}
	number("table", o.Table)
	number("mtu", o.MTU)
	text("mac", o.MAC)
	if o.Netns != 0 {
		text("netns", strconv.FormatUint(o.Netns, 10))
	}
	text("alias", o.Alias)
	return b.String()
}
