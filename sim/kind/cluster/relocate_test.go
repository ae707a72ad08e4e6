package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
)

// TestRelocate: a subnet that is taken keeps its size.
func TestRelocate(t *testing.T) {
	p := netip.MustParsePrefix
	for _, c := range []struct {
		subnet string
		used   []netip.Prefix
		want   string
	}{
		{"10.0.10.0/24", nil, "10.0.10.0/24"},
		{"10.0.10.0/24", []netip.Prefix{p("172.17.0.0/16")}, "10.0.10.0/24"},
		{"10.0.10.0/24", []netip.Prefix{p("10.0.0.0/20")}, "10.96.10.0/24"},
		{"10.0.0.0/16", nil, "10.0.0.0/17"},
		{"10.0.0.0/16", []netip.Prefix{p("10.0.0.0/20"), p("10.96.0.0/20")}, "10.160.0.0/17"},
		{"192.168.176.0/26", []netip.Prefix{p("192.168.0.0/16")}, "10.0.176.0/26"},
	} {
		in := netip.PrefixFrom(p(c.subnet).Addr(), 16).Masked()
		vpc, subnets, err := Relocate([]netip.Prefix{in}, []sim.Subnet{{CIDR: p(c.subnet)}}, c.used)
		if err != nil || subnets[0].CIDR.String() != c.want || !vpc[0].Contains(subnets[0].CIDR.Addr()) {
			t.Errorf("%s beside %v: %v in %v, %v; want %s", c.subnet, c.used, subnets, vpc, err, c.want)
		}
	}
	// Of several subnets, those in the block that moves move, and what is reserved in them.
	blocks, subnets := []netip.Prefix{p("10.1.0.0/16"), p("10.96.0.0/16")}, []sim.Subnet{
		{CIDR: p("10.1.0.0/27")}, {CIDR: p("10.96.1.0/24")}, {CIDR: p("10.1.2.0/24"), Nodes: true, Prefixes: []netip.Prefix{p("10.1.2.128/25")}}}
	vpc, got, err := Relocate(blocks, subnets, []netip.Prefix{p("10.0.0.0/15")})
	if err != nil || vpc[0] != p("10.160.0.0/16") || got[0].CIDR != p("10.160.0.0/27") || got[1].CIDR != p("10.96.1.0/24") ||
		got[2].CIDR != p("10.160.2.0/24") || got[2].Prefixes[0] != p("10.160.2.128/25") || subnets[2].Prefixes[0] != p("10.1.2.128/25") {
		t.Errorf("moved to %v, %v, %v; the scenario has %v", vpc, got, err, subnets)
	}
	// A VPC that is smaller than a /16 goes where its subnet goes.
	vpc, got, err = Relocate([]netip.Prefix{p("10.1.7.0/24")}, []sim.Subnet{{CIDR: p("10.1.7.64/26")}}, []netip.Prefix{p("10.0.0.0/15")})
	if err != nil || vpc[0] != p("10.96.7.0/24") || got[0].CIDR != p("10.96.7.64/26") {
		t.Errorf("moved to %v, %v, %v", vpc, got, err)
	}
	// One that is larger would have its subnets fall together.
	large := []sim.Subnet{{CIDR: p("10.1.0.0/24")}, {CIDR: p("10.2.0.0/24"), Nodes: true}}
	_, got, err = Relocate([]netip.Prefix{p("10.0.0.0/8")}, large, []netip.Prefix{p("10.0.0.0/15")})
	if err == nil || !strings.Contains(err.Error(), "/16 or smaller") {
		t.Errorf("moved to %v, %v", got, err)
	}
	small := []sim.Subnet{{CIDR: p("10.1.0.0/28")}}
	if _, _, err := Relocate(blocks, small, nil); err == nil || !strings.Contains(err.Error(), "/27 or larger") {
		t.Errorf("nodes in %v: %v", small, err)
	}
	// The machines' block may be reserved for nothing else, nor may what a halved subnet has lost.
	for _, reserved := range []string{"10.1.0.0/25", "10.1.128.0/17"} {
		full := []sim.Subnet{{CIDR: p("10.1.0.0/16"), Prefixes: []netip.Prefix{p(reserved)}}}
		if _, _, err := Relocate(blocks, full, nil); err == nil || !strings.Contains(err.Error(), "reserves") {
			t.Errorf("prefixes of %s: %v", reserved, err)
		}
	}
	subnets[1].Nodes = true
	if _, _, err := Relocate(blocks, subnets, nil); err == nil || !strings.Contains(err.Error(), "first CIDR block") {
		t.Errorf("nodes in both blocks: %v", err)
	}
	var all []netip.Prefix
	for _, s := range candidates {
		all = append(all, p(s))
	}
	if _, _, err := Relocate([]netip.Prefix{p("10.0.0.0/16")}, []sim.Subnet{{CIDR: p("10.0.0.0/24")}}, all); err == nil || !strings.Contains(err.Error(), "remove a Docker network") {
		t.Errorf("nothing is free: %v", err)
	}
}
