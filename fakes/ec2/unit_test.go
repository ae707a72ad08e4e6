package ec2

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestNamesAreReversible(t *testing.T) {
	k := namer{0xfeedface}
	seen := map[string]bool{}
	for n := range 10000 {
		id := k.name(eniPrefix, n)
		if len(id) != len("eni-0123456789abcdef0") || seen[id] {
			t.Fatalf("%d: %q", n, id)
		}
		seen[id] = true
		if got, ok := k.number(eniPrefix, id, 10000); !ok || got != n {
			t.Fatalf("%q: %d, %v, want %d", id, got, ok, n)
		}
		mac := macOf(k.salt, n)
		if len(mac) != 17 || !strings.HasPrefix(mac, "02:") || seen[mac] {
			t.Fatalf("%d: %q", n, mac)
		}
		seen[mac] = true
	}
	for _, id := range []string{"", "eni-", k.name(eniPrefix, 10000), k.name(subnetPrefix, 1), "eni-1" + k.name(eniPrefix, 1)[5:],
		"eni-0000000000000000G", "ENI-0000000000000000"} {
		if n, ok := k.number(eniPrefix, id, 10000); ok {
			t.Errorf("%q: %d", id, n)
		}
	}
}

func TestDrawStaysInSpan(t *testing.T) {
	var s stream
	for _, p := range []Span{{0, 1, 2}, {time.Second, time.Second, time.Second}, {0, time.Hour, 1 << 62}, {5, 5, 1e9}, {0, 0, 7}} {
		below := 0
		for range 2000 {
			d := s.draw(p)
			if d < p.Min || d > p.Max {
				t.Fatalf("%v outside %v", d, p)
			}
			if d <= p.Median {
				below++
			}
		}
		if p.Max > time.Second && p.Min < p.Median && (below < 900 || below > 1100) {
			t.Errorf("%v: %d of 2000 below the median", p, below)
		}
	}
}

func TestActionsAndKindsParse(t *testing.T) {
	for a := CreateNetworkInterface; a < ActionCount; a++ {
		if got, ok := ParseAction(a.String()); !ok || got != a {
			t.Errorf("%v: %v, %v", a, got, ok)
		}
	}
	for _, name := range []string{"", "AnyAction", "UnknownAction", "createtags"} {
		if a, ok := ParseAction(name); ok {
			t.Errorf("%q: %v", name, a)
		}
	}
	for k := Lose; k < endOfKinds; k++ {
		if got, ok := parseFaultKind(k.String()); !ok || got != k || k.String() == "unknown" {
			t.Errorf("%v: %v, %v", k, got, ok)
		}
	}
	if _, ok := parseFaultKind("unknown"); ok {
		t.Error("unknown parses")
	}
	for k := LinkPlugged; k <= InstanceTerminated; k++ {
		if k.String() == "unknown" {
			t.Errorf("event kind %d has no name", k)
		}
	}
}

// "Maximum IP addresses per network interface" of the EC2 user guide.
func TestLimitsAreTheUserGuides(t *testing.T) {
	for kind, want := range map[string][2]int{
		"t3.small": {3, 4}, "t3.medium": {3, 6}, "t3.large": {3, 12}, "m5.large": {3, 10}, "m5.xlarge": {4, 15},
		"m5.2xlarge": {4, 15}, "m5.4xlarge": {8, 30}, "m5.24xlarge": {15, 50}, "c5.large": {3, 10}, "c5.xlarge": {4, 15},
		"c5.2xlarge": {4, 15}, "c5.4xlarge": {8, 30}, "r5.large": {3, 10}, "r5.xlarge": {4, 15}, "r5.2xlarge": {4, 15},
		"p4d.24xlarge": {15, 50},
	} {
		if l, ok := LimitsOf(kind); !ok || l.ENIs != want[0] || l.IPv4PerENI != want[1] {
			t.Errorf("%s: %v, %v, want %v", kind, l, ok, want)
		}
	}
	if _, ok := LimitsOf("m5"); ok {
		t.Error("m5 is no type")
	}
}

func TestConfig(t *testing.T) {
	p := netip.MustParsePrefix
	rows := []struct {
		cfg  Config
		want string // part of the error
	}{
		{Config{}, ""},
		{testConfig(), ""},
		{Config{Subnets: []SubnetConfig{{}}}, "subnet 0"},
		{Config{Subnets: []SubnetConfig{{CIDR: p("10.0.0.0/29")}}}, "between /16 and /28"},
		{Config{Subnets: []SubnetConfig{{CIDR: p("10.0.0.0/15")}}}, "between /16 and /28"},
		{Config{Subnets: []SubnetConfig{{CIDR: p("fd00::/64")}}}, "IPv4"},
		{Config{Subnets: []SubnetConfig{{CIDR: p("10.0.0.0/24")}, {CIDR: p("10.0.0.128/25")}}}, "overlaps"},
		{Config{Subnets: []SubnetConfig{{ID: "a", CIDR: p("10.0.0.0/24")}, {ID: "a", CIDR: p("10.0.1.0/24")}}}, "rename"},
		{Config{Subnets: []SubnetConfig{{CIDR: p("10.1.0.0/24")}}}, "VPC"},
	}
	for _, row := range rows {
		err := row.cfg.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.cfg.Subnets, err, row.want)
		}
		c := New(row.cfg, 1) // must not panic, and nor must its use
		_, launched := c.Launch(0, LaunchSpec{Type: "m5.large"})
		if row.want == "" && launched != nil {
			t.Errorf("%+v: %v", row.cfg.Subnets, launched)
		}
		c.OwnerOf(ip("10.0.0.4"))
		c.Serve(0, &Request{Action: CreateNetworkInterface, Subnet: c.Subnets()[0].ID})
		c.IMDS(0, "")
	}
	if s := New(Config{}, 1).Subnets(); len(s) != 1 || s[0].Available != 65531 || s[0].CIDR != p("10.0.0.0/16") {
		t.Errorf("the default subnet: %+v", s)
	}
	if a, b := New(Config{}, 1), New(Config{}, 2); a.VPCID() == b.VPCID() || a.Subnets()[0].ID == b.Subnets()[0].ID {
		t.Error("two seeds share their names")
	}
}

func TestDescribeTypes(t *testing.T) {
	w := newWorld(t)
	p := w.do(Request{Action: DescribeInstanceTypes})
	seen := map[string]bool{}
	for _, k := range p.Types {
		if l, ok := LimitsOf(k.Name); !ok || l != k.Limits || seen[k.Name] {
			t.Errorf("%+v: the table has %+v, %v; listed before: %v", k, l, ok, seen[k.Name])
		}
		seen[k.Name] = true
	}
	if len(p.Types) == 0 {
		t.Error("no types")
	}
	p = w.do(Request{Action: DescribeInstanceTypes, Types: []string{"m5.large"}})
	if len(p.Types) != 1 || p.Types[0] != (Type{"m5.large", Limits{3, 10, 10, 1, true}, 2, 8192, "x86_64", "nitro"}) {
		t.Errorf("found %+v", p.Types)
	}
}

// No other byte passes for a digit, wherever it is.
func TestNamesHaveLowerCaseDigits(t *testing.T) {
	k := namer{42}
	for n := range 50 {
		name := k.name(eniPrefix, n)
		for at := len(eniPrefix); at < len(name); at++ {
			for ch := range 256 {
				b := []byte(name)
				b[at] = byte(ch)
				if got, ok := k.number(eniPrefix, string(b), 50); ok && got == n && byte(ch) != name[at] {
					t.Errorf("%q is taken for %q", b, name)
				}
			}
		}
	}
}
