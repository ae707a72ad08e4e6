package vpc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
)

// Config is what a VPC is.
type Config struct {
	VPC      []netip.Prefix // the VPC's CIDR blocks, IPv4; at least one
	Subnets  []netip.Prefix // each inside one of VPC; only their addresses can be assigned
	Internet netip.Addr     // the address outside the VPC; zero: 198.51.100.1 (RFC 5737, TEST-NET-2)

	// Namespace is where the router shall be; nil: a new namespace, of the Network's own. It is borrowed: it must be open until Close, which
	// leaves it open and as it was found.
	Namespace *os.File
	// Segment is the name of a link of Namespace that is one shared Ethernet for the first ENIs of several instances (Join). The link is up and
	// has the address of the gateway of each subnet that such ENIs are in. Empty: there is none.
	Segment string
	// Strangers are addresses on the segment, in a subnet of its, that answer for themselves and that EC2's model never assigns: a machine that is
	// no instance.
	Strangers []netip.Addr
}

// internetPort is where the service of InternetAddr listens.
const internetPort = 80

func defaultInternet() netip.Addr { return netip.AddrFrom4([4]byte{198, 51, 100, 1}) }

// checked is c with defaults and masked prefixes, or all that is wrong with it.
func (c Config) checked() (Config, error) {
	var wrong []error
	if len(c.VPC) == 0 {
		wrong = append(wrong, errors.New("VPC is empty: at least one CIDR block is needed"))
	}
	if !c.Internet.IsValid() {
		c.Internet = defaultInternet()
	}
	c.VPC, c.Subnets, c.Strangers = masked(c.VPC), masked(c.Subnets), slices.Clone(c.Strangers)
	for _, p := range slices.Concat(c.VPC, c.Subnets) {
		if !p.IsValid() || !p.Addr().Is4() || p.Bits() > 28 {
			wrong = append(wrong, fmt.Errorf("%v is not an IPv4 prefix of /28 or larger", p)) // Amazon VPC User Guide, "Subnet sizing": /16 to /28
		}
	}
	if len(wrong) == 0 {
		wrong = append(c.contradictions(), c.segmentContradictions()...)
	}
	if err := errors.Join(wrong...); err != nil {
		return c, fmt.Errorf("vpc: configuration: %w", err)
	}
	return c, nil
}

func (c Config) contradictions() []error {
	var wrong []error
	for i, s := range c.Subnets {
		if !slices.ContainsFunc(c.VPC, func(v netip.Prefix) bool { return v.Bits() <= s.Bits() && v.Contains(s.Addr()) }) {
			wrong = append(wrong, fmt.Errorf("subnet %v is outside the VPC %v", s, c.VPC))
		}
		for _, o := range c.Subnets[:i] {
			if o.Overlaps(s) {
				wrong = append(wrong, fmt.Errorf("subnets %v and %v overlap", o, s))
			}
		}
	}
	if c.Internet.Is4() && (holder(c.VPC, c.Internet).IsValid() || c.Internet.IsLoopback() || c.Internet.IsMulticast() || c.Internet.IsUnspecified()) {
		wrong = append(wrong, fmt.Errorf("internet address %v: expected an address outside the VPC %v that can be routed", c.Internet, c.VPC))
	}
	if !c.Internet.Is4() {
		wrong = append(wrong, fmt.Errorf("internet address %v is not IPv4", c.Internet))
	}
	return wrong
}

func (c Config) segmentContradictions() []error {
	var wrong []error
	if c.Segment != "" && c.Namespace == nil {
		wrong = append(wrong, fmt.Errorf("segment %s: Namespace is nil; expected the network namespace that has this link", c.Segment))
	}
	if c.Segment == "" && len(c.Strangers) > 0 {
		wrong = append(wrong, fmt.Errorf("strangers %v: Segment is empty; expected the link that they are on", c.Strangers))
	}
	for i, a := range c.Strangers {
		switch subnet := holder(c.Subnets, a); {
		case !subnet.IsValid():
			wrong = append(wrong, fmt.Errorf("stranger %v is in none of the subnets %v", a, c.Subnets))
		case a == gateway(subnet):
			wrong = append(wrong, fmt.Errorf("stranger %v is the gateway of %v", a, subnet))
		case a == c.witness():
			wrong = append(wrong, fmt.Errorf("stranger %v is the VPC's own (Witness): expected room in the VPC %v outside the subnets", a, c.VPC))
		case slices.Contains(c.Strangers[:i], a):
			wrong = append(wrong, fmt.Errorf("stranger %v is there twice", a))
		}
	}
	return wrong
}

// holder is the prefix that holds a, or zero.
func holder(prefixes []netip.Prefix, a netip.Addr) netip.Prefix {
	for _, p := range prefixes {
		if p.Contains(a) {
			return p
		}
	}
	return netip.Prefix{}
}

// witness is the last address of the VPC that is in no subnet (nor a block's network or broadcast address). Where subnets fill the VPC it
// is the fourth of the last subnet, which AWS reserves for future use (Amazon VPC User Guide, "Subnet sizing").
func (c Config) witness() netip.Addr {
	for _, v := range slices.Backward(c.VPC) {
		for a := last(v).Prev(); a.Compare(v.Addr()) > 0; {
			s := holder(c.Subnets, a)
			if !s.IsValid() {
				return a
			}
			a = s.Addr().Prev()
		}
	}
	return c.Subnets[len(c.Subnets)-1].Addr().Next().Next().Next()
}

// gateway is the subnet's router, its second address (Amazon VPC User Guide, "Subnet sizing").
func gateway(subnet netip.Prefix) netip.Addr { return subnet.Addr().Next() }

// last is p's last address; p is IPv4.
func last(p netip.Prefix) netip.Addr {
	b := p.Addr().As4()
	for i := p.Bits(); i < 32; i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	return netip.AddrFrom4(b)
}

func masked(prefixes []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		out[i] = p.Masked()
	}
	return out
}
