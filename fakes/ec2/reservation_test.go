package ec2

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// A machine that exists already keeps its address and MAC; nobody else is given an address of a reservation, not even when it is all
// that is left, and one that is given back goes to the reservation again.
func TestReservation(t *testing.T) {
	reserved := netip.MustParsePrefix("10.0.0.8/29")
	c := New(Config{Subnets: []SubnetConfig{{CIDR: netip.MustParsePrefix("10.0.0.0/28"), Reservations: []netip.Prefix{reserved}}}}, 1)
	spec := LaunchSpec{Type: "m5.large", Address: netip.MustParseAddr("10.0.0.9"), MAC: "02:42:0a:00:00:09"}
	id := must.Get(c.Launch(0, spec))(t)
	in, _ := c.InstanceOf(id)
	if in.PrimaryAddress != spec.Address || in.PrimaryMAC != spec.MAC {
		t.Fatalf("launched with %v %s, got %v %s", spec.Address, spec.MAC, in.PrimaryAddress, in.PrimaryMAC)
	}
	if view, ok := c.IMDS(0, id); !ok || view.ENIs[0].MAC != spec.MAC || view.ENIs[0].Addresses[0] != spec.Address {
		t.Fatalf("its metadata says %+v", view)
	}
	if _, err := c.Launch(0, spec); err == nil {
		t.Fatal("two machines were launched with one address")
	}
	if free := c.FreeAddresses(c.Subnets()[0].ID); free != 4 { // .4 to .7; .0 to .3 and .15 are EC2's own
		t.Fatalf("%d addresses are free, want 4", free)
	}
	other := must.Get(c.Launch(0, LaunchSpec{Type: "m5.large", SecondaryAddresses: 3}))(t)
	for _, e := range c.AllENIs() {
		for _, a := range append(e.Secondaries, e.Primary) {
			if e.Instance == other && reserved.Contains(a) {
				t.Errorf("%v was given to one who did not ask for it", a)
			}
		}
	}
	c.Terminate(0, id)
	c.Advance(time.Hour)
	if _, err := c.Launch(time.Hour, LaunchSpec{Type: "m5.large"}); err == nil {
		t.Error("the address of a machine that is gone left its reservation")
	}
	if _, err := c.Launch(time.Hour, spec); err != nil {
		t.Errorf("the address of a machine that is gone cannot be asked for again: %v", err)
	}
}

// Of a reservation for prefixes nobody is given a single address, not even who asks for exactly one; prefixes come from it first, and
// from elsewhere when it is used up; what is given back goes to it again.
func TestPrefixReservation(t *testing.T) {
	forPrefixes, explicit := cidr("10.0.0.64/27"), cidr("10.0.0.32/28")
	c := New(exact(Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/25"),
		Reservations: []netip.Prefix{explicit}, PrefixReservations: []netip.Prefix{forPrefixes}}}}), 1)
	w := &world{Cloud: c, t: t}
	sub := c.Subnets()[0].ID
	free := 128 - 5 - 32 - 16
	if got := c.FreeAddresses(sub); got != free {
		t.Fatalf("%d free, want %d", got, free)
	}
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: sub, SecondaryCount: 10}).ENI
	w.refused(Request{Action: CreateNetworkInterface, Subnet: sub, Addresses: []netip.Addr{ip("10.0.0.70")}}, codeValue)
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, Addresses: []netip.Addr{ip("10.0.0.70")}}, codeValue)
	p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, PrefixCount: 3})
	for k, q := range p.Prefixes {
		if forPrefixes.Overlaps(q) != (k < 2) || explicit.Overlaps(q) {
			t.Errorf("prefix %d is %v", k, q)
		}
	}
	if got := c.FreeAddresses(sub); got != free-11-16 {
		t.Errorf("%d free, want %d", got, free-11-16)
	}
	balance(t, c)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e.ID, Prefixes: p.Prefixes[:2]})
	w.wait(time.Minute)
	if got := c.FreeAddresses(sub); got != free-11-16 {
		t.Errorf("what was given back left its reservation: %d free", got)
	}
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, Prefixes: []netip.Prefix{cidr("10.0.0.80/28"), explicit}})
	if got := c.FreeAddresses(sub); got != free-11-16 {
		t.Errorf("a prefix of a reservation took %d of what is free", free-11-16-got)
	}
	balance(t, c)
	w.do(Request{Action: CreateNetworkInterface, Subnet: sub, PrefixCount: 2}) // one of the reservation's, and the last one
	w.refused(Request{Action: CreateNetworkInterface, Subnet: sub, PrefixCount: 1}, codeNoBlocks)
	w.FragmentSubnet(w.now, sub, 0)
	w.DrainSubnet(w.now, sub, 0)
	for _, q := range c.strangersOf(sub) {
		if forPrefixes.Contains(q) || explicit.Contains(q) {
			t.Errorf("a stranger took %v of a reservation", q)
		}
	}
	balance(t, c)
}

// strangersOf are the addresses that third parties hold.
func (c *Cloud) strangersOf(id SubnetID) (out []netip.Addr) {
	s := &c.subnets[c.subnetIndex(id)]
	for _, o := range s.drained {
		out = append(out, s.addr(o))
	}
	return out
}

// What Validate says of reservations and IPv6 CIDRs; whatever it says, New makes a cloud that does not panic and that balances.
func TestAddressConfig(t *testing.T) {
	type list = []netip.Prefix
	six := []VPC{{IPv6: list{cidr("2001:db8:0:100::/56")}}}
	rows := []struct {
		cfg  Config
		want string
	}{
		{Config{VPCs: six, Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), IPv6: cidr("2001:db8:0:101::/64"),
			Reservations: list{cidr("10.0.0.0/28")}, PrefixReservations: list{cidr("10.0.0.240/28")}}}}, ""},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), PrefixReservations: list{cidr("10.0.1.0/28")}}}}, "does not lie in"},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), PrefixReservations: list{cidr("10.0.0.0/16")}}}}, "does not lie in"},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), PrefixReservations: list{{}}}}}, "does not lie in"},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), PrefixReservations: list{cidr("10.0.0.64/29")}}}}, "holds no /28"},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), Reservations: list{cidr("10.0.0.64/26")}, PrefixReservations: list{cidr("10.0.0.64/28")}}}}, "overlaps"},
		{Config{VPCs: six, Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), IPv6: cidr("2001:db8:0:100::/56")}}}, "/64"},
		{Config{VPCs: six, Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), IPv6: cidr("10.0.0.0/24")}}}, "/64"},
		{Config{Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), IPv6: cidr("2001:db8:0:101::/64")}}}, "lies in none"},
		{Config{VPCs: six, Subnets: []SubnetConfig{{CIDR: cidr("10.0.0.0/24"), IPv6: cidr("2001:db8:0:101::/64")},
			{CIDR: cidr("10.0.1.0/24"), IPv6: cidr("2001:db8:0:101::/64")}}}, "overlaps"},
	}
	for _, row := range rows {
		err := row.cfg.Validate()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.cfg.Subnets, err, row.want)
		}
		c := New(row.cfg, 1)
		balance(t, c)
		sub := c.Subnets()[0].ID
		c.Serve(0, &Request{Action: CreateNetworkInterface, Subnet: sub, PrefixCount: 14, IPv6Count: 3})
		c.Serve(0, &Request{Action: CreateNetworkInterface, Subnet: sub, PrefixCount: 1, IPv6PrefixCount: 3})
		c.DrainSubnet(0, sub, 0)
		balance(t, c)
	}
}

// A subnet's reservations are listed with identifiers that are theirs alone; those of another subnet are not.
func TestReservationsAreListed(t *testing.T) {
	w := &world{Cloud: New(exact(Config{Subnets: []SubnetConfig{
		{ID: "subnet-a", CIDR: cidr("10.0.0.0/25"), Reservations: []netip.Prefix{cidr("10.0.0.32/28")}, PrefixReservations: []netip.Prefix{cidr("10.0.0.64/27")}},
		{ID: "subnet-b", CIDR: cidr("10.0.1.0/25"), Reservations: []netip.Prefix{cidr("10.0.1.32/28")}},
	}}), 1), t: t}
	ask := func(s SubnetID) []Reservation {
		return w.do(Request{Action: GetSubnetCidrReservations, Subnet: s}).Reservations
	}
	a, b := ask("subnet-a"), ask("subnet-b")
	if len(a) != 2 || len(b) != 1 {
		t.Fatalf("found %+v and %+v", a, b)
	}
	if a[0] != (Reservation{a[0].ID, "subnet-a", cidr("10.0.0.32/28"), "explicit"}) || a[1] != (Reservation{a[1].ID, "subnet-a", cidr("10.0.0.64/27"), "prefix"}) || b[0].CIDR != cidr("10.0.1.32/28") {
		t.Errorf("found %+v and %+v", a, b)
	}
	if !strings.HasPrefix(a[0].ID, "scr-") || a[0].ID == a[1].ID || a[0].ID == b[0].ID || a[0].ID != ask("subnet-a")[0].ID {
		t.Errorf("identifiers: found %s, %s and %s", a[0].ID, a[1].ID, b[0].ID)
	}
	w.refused(Request{Action: GetSubnetCidrReservations}, "MissingParameter")
	w.refused(Request{Action: GetSubnetCidrReservations, Subnet: "subnet-c"}, "InvalidSubnetID.NotFound")
}
