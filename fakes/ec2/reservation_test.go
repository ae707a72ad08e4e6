package ec2

import (
	"net/netip"
	"testing"
	"time"
)

// A machine that exists already keeps its address and MAC; nobody else is given an address of a reservation, not even when it is all
// that is left, and one that is given back goes to the reservation again.
func TestReservation(t *testing.T) {
	reserved := netip.MustParsePrefix("10.0.0.8/29")
	c := New(Config{Subnets: []SubnetConfig{{CIDR: netip.MustParsePrefix("10.0.0.0/28"), Reservations: []netip.Prefix{reserved}}}}, 1)
	spec := LaunchSpec{Type: "m5.large", Address: netip.MustParseAddr("10.0.0.9"), MAC: "02:42:0a:00:00:09"}
	id, err := c.Launch(0, spec)
	if err != nil {
		t.Fatal(err)
	}
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
	other, err := c.Launch(0, LaunchSpec{Type: "m5.large", SecondaryAddresses: 3})
	if err != nil {
		t.Fatal(err)
	}
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
