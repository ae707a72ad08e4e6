package imds

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// TestModel follows an interface through the metadata of the model, from its attachment on a second network card to its end: it is not
// listed, listed without leaves, there with its primary address alone, whole, and listed still after it was detached.
func TestModel(t *testing.T) {
	const s = time.Second
	call := ec2.Always(0)
	cfg := ec2.Config{
		VPCs: []ec2.VPC{{CIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, IPv6: []netip.Prefix{netip.MustParsePrefix("2001:db8::/56")}}},
		Subnets: []ec2.SubnetConfig{{ID: "subnet-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), IPv6: netip.MustParsePrefix("2001:db8:0:1::/64"),
			Reservations: []netip.Prefix{netip.MustParsePrefix("10.0.0.128/25")}}},
		SecurityGroups: []ec2.SecurityGroup{{ID: "sg-1", Name: "nodes"}},
		Latency:        ec2.Latency{Attach: ec2.Always(2 * s), Link: call, Detach: ec2.Always(5 * s), Launch: call},
		Lag: ec2.Lag{IMDSAttach: ec2.Always(3 * s), IMDSPartial: ec2.Always(1 * s), IMDSAddress: ec2.Always(4 * s), IMDSDetach: ec2.Always(6 * s),
			Describe: call, Mutation: call},
	}
	c := ec2.New(cfg, 7)
	now := time.Duration(0)
	do := func(r ec2.Request) ec2.Response {
		t.Helper()
		p := c.Serve(now, &r)
		if p.Code != "" {
			t.Fatalf("%v: %s: %s", r.Action, p.Code, p.Message)
		}
		return p
	}
	run := do(ec2.Request{Action: ec2.RunInstances, Subnet: "subnet-1", Type: "p4d.24xlarge", Image: "ami-0123456789abcdef0", MinCount: 1, MaxCount: 1})
	inst := run.Instances[0]
	e := do(ec2.Request{Action: ec2.CreateNetworkInterface, Subnet: inst.Subnet, IPv6Count: 1, PrefixCount: 2,
		Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.200")}}).ENI
	e.IPv6Prefixes = do(ec2.Request{Action: ec2.AssignIpv6Addresses, ENI: e.ID, IPv6PrefixCount: 1}).Prefixes
	now = s
	a := do(ec2.Request{Action: ec2.AttachNetworkInterface, ENI: e.ID, Instance: inst.ID, DeviceIndex: 1, NetworkCard: 2})
	get := func(path string) string {
		v, ok := c.IMDS(now, inst.ID)
		if !ok {
			t.Fatalf("at %v metadata is silent", now)
		}
		return Get(&View{IMDS: v}, "/latest/meta-data/"+path).Text
	}
	folder := "network/interfaces/macs/" + e.MAC + "/"
	leaves := func(paths ...string) string {
		for i := range paths {
			paths[i] = get(folder + paths[i])
		}
		return strings.Join(paths, " ")
	}
	six := e.IPv6[0].String() + " " + e.IPv6Prefixes[0].String()
	listed := "network-card" // that, and not only what every interface has
	for _, r := range []struct {
		at                                 time.Duration
		listed                             bool
		all                                bool
		place, address, prefixes, address6 string
	}{
		{s, false, false, " ", "", "", " "},
		{5 * s, false, false, " ", "", "", " "},                // attached
		{6 * s, true, false, " ", "", "", " "},                 // listed
		{7 * s, true, true, "1 2", "10.0.0.200", "", " "},      // its leaves
		{11 * s, true, true, "1 2", "10.0.0.200", "both", six}, // its other addresses
		{20 * s, true, true, "1 2", "10.0.0.200", "both", six}, // detached below
		{25 * s, true, true, "1 2", "10.0.0.200", "both", six}, // available
		{26*s + s/2, false, false, " ", "", "", " "},           // gone
	} {
		now = r.at
		c.Advance(now)
		if r.at == 20*s {
			do(ec2.Request{Action: ec2.DetachNetworkInterface, Attachment: a.Attachment})
		}
		if got := strings.Contains(get("network/interfaces/macs/"), e.MAC); got != r.listed {
			t.Errorf("at %v: listed: %v, expected %v", r.at, got, r.listed)
		}
		if got := strings.Contains(get(folder), listed); got != r.all {
			t.Errorf("at %v: %q", r.at, get(folder))
		}
		prefixes := leaves("ipv4-prefix")
		if r.prefixes != "" {
			r.prefixes = e.Prefixes[0].String() + "\n" + e.Prefixes[1].String()
		}
		if place, address, address6 := leaves("device-number", "network-card"), leaves("local-ipv4s"), leaves("ipv6s", "ipv6-prefix"); place != r.place || address != r.address || prefixes != r.prefixes || address6 != r.address6 {
			t.Errorf("at %v: found %q, %q, %q, %q; expected %+v", r.at, place, address, prefixes, address6, r)
		}
	}
	primary := "network/interfaces/macs/" + get("mac") + "/"
	for path, want := range map[string]string{
		"ami-id": "ami-0123456789abcdef0", "reservation-id": inst.Reservation, "security-groups": "nodes", primary + "network-card": "0",
		primary + "subnet-ipv6-cidr-blocks": "2001:db8:0:1::/64", primary + "vpc-ipv6-cidr-blocks": "2001:db8::/56", primary + "security-groups": "nodes",
	} {
		if got := get(path); got != want || want == "" {
			t.Errorf("%s: %q, expected %q", path, got, want)
		}
	}
}
