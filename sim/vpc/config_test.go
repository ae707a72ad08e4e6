package vpc

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

func prefixes(s ...string) (out []netip.Prefix) {
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		name, wrong   string
		vpc, subnets  []netip.Prefix
		internet      netip.Addr
		wantedWitness string
	}{
		{name: "room at the end", vpc: prefixes("10.0.0.0/16"), subnets: prefixes("10.0.10.0/24"), wantedWitness: "10.0.255.254"},
		{name: "no room at the end", vpc: prefixes("10.0.0.0/16"), subnets: prefixes("10.0.255.0/24", "10.0.254.0/24"), wantedWitness: "10.0.253.255"},
		{name: "two blocks, the last is full", vpc: prefixes("10.0.0.0/24", "10.1.0.0/24"), subnets: prefixes("10.1.0.0/24"), wantedWitness: "10.0.0.254"},
		{name: "full", vpc: prefixes("10.0.0.0/24"), subnets: prefixes("10.0.0.0/25", "10.0.0.128/25"), wantedWitness: "10.0.0.131"},
		{name: "full from the first", vpc: prefixes("10.0.0.0/24"), subnets: prefixes("10.0.0.0/24"), wantedWitness: "10.0.0.3"},
		{name: "no subnets", vpc: prefixes("10.0.0.0/24"), wantedWitness: "10.0.0.254"},
		{name: "host bits", vpc: prefixes("10.0.7.9/16"), subnets: prefixes("10.0.10.3/24"), wantedWitness: "10.0.255.254"},
		{name: "empty", wrong: "VPC is empty"},
		{name: "zero prefix", vpc: []netip.Prefix{{}}, wrong: "not an IPv4 prefix"},
		{name: "IPv6", vpc: prefixes("fd00::/16"), wrong: "not an IPv4 prefix"},
		{name: "outside", vpc: prefixes("10.0.0.0/24"), subnets: prefixes("10.1.0.0/24"), wrong: "outside the VPC"},
		{name: "larger", vpc: prefixes("10.0.0.0/24"), subnets: prefixes("10.0.0.0/16"), wrong: "outside the VPC"},
		{name: "overlap", vpc: prefixes("10.0.0.0/16"), subnets: prefixes("10.0.0.0/23", "10.0.1.0/24"), wrong: "overlap"},
		{name: "internet inside", vpc: prefixes("10.0.0.0/16"), internet: netip.MustParseAddr("10.0.3.4"), wrong: "outside the VPC"},
		{name: "internet by IPv6", vpc: prefixes("10.0.0.0/16"), internet: netip.MustParseAddr("2001:db8::1"), wrong: "not IPv4"},
	} {
		got, err := Config{VPC: c.vpc, Subnets: c.subnets, Internet: c.internet}.checked()
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: error %v, expected %q", c.name, err, c.wrong)
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wrong == "" && got.witness().String() != c.wantedWitness:
			t.Errorf("%s: witness %v, expected %s", c.name, got.witness(), c.wantedWitness)
		}
	}
}

func TestSegmentConfig(t *testing.T) {
	ns := must.Get(os.Open(os.DevNull))(t)
	defer func() { _ = ns.Close() }()
	for _, c := range []struct {
		name, wrong string
		vpc         string
		ns          *os.File
		segment     string
		strangers   []string
	}{
		{name: "all", ns: ns, segment: "eth0", strangers: []string{"10.0.0.62", "10.0.0.61"}},
		{name: "no strangers", ns: ns, segment: "eth0"},
		{name: "no segment", ns: ns},
		{name: "no namespace", segment: "eth0", wrong: "segment eth0: Namespace is nil"},
		{name: "strangers nowhere", ns: ns, strangers: []string{"10.0.0.62"}, wrong: "Segment is empty"},
		{name: "a stranger outside", ns: ns, segment: "eth0", strangers: []string{"10.0.99.1"}, wrong: "stranger 10.0.99.1 is in none of the subnets"},
		{name: "the gateway is no stranger", ns: ns, segment: "eth0", strangers: []string{"10.0.0.1"}, wrong: "is the gateway of 10.0.0.0/20"},
		{name: "the witness is no stranger", ns: ns, segment: "eth0", vpc: "10.0.0.0/20", strangers: []string{"10.0.0.3"}, wrong: "the VPC's own (Witness)"},
		{name: "twice", ns: ns, segment: "eth0", strangers: []string{"10.0.0.62", "10.0.0.62"}, wrong: "is there twice"},
		{name: "IPv6", ns: ns, segment: "eth0", strangers: []string{"fd00::1"}, wrong: "none of the subnets"},
	} {
		vpc := "10.0.0.0/16"
		if c.vpc != "" {
			vpc = c.vpc
		}
		config := Config{VPC: prefixes(vpc), Subnets: prefixes("10.0.0.0/20"), Namespace: c.ns, Segment: c.segment}
		for _, s := range c.strangers {
			config.Strangers = append(config.Strangers, netip.MustParseAddr(s))
		}
		_, err := config.checked()
		if (c.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: error %v, expected %q", c.name, err, c.wrong)
		}
	}
}

func FuzzQuery(f *testing.F) {
	f.Add(request("10.0.1.10", "10.0.1.1"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		q, ok := parseQuery(b)
		if !ok {
			return
		}
		a := q.answer(make([]byte, 6))
		if back, isQuery := parseQuery(a); len(a) != arpSize || isQuery {
			t.Errorf("the answer to %v is a request: %v", q, back)
		}
	})
}

// request is an ARP request.
func request(sender, target string) []byte {
	q := query{mac: [6]byte{2, 0, 0, 0, 0, 10}, sender: netip.MustParseAddr(sender), target: netip.MustParseAddr(target)}
	b := append([]byte("\x00\x01\x08\x00\x06\x04\x00\x01"), q.mac[:]...)
	b = append(append(b, q.sender.AsSlice()...), 0, 0, 0, 0, 0, 0)
	return append(b, q.target.AsSlice()...)
}
