package fabric

import (
	"net/netip"
	"testing"
)

const (
	macA = "02:00:00:00:00:0a"
	macB = "02:00:00:00:00:0b"
	macC = "02:00:00:00:00:0c"
	sn1  = "10.0.1.0/24"
	sn2  = "10.0.2.0/24"
)

// two are two instances; the first has a second ENI in the other subnet.
func two(t testing.TB) (f *Fabric, a, b *instance) {
	f = newFabric(t)
	a, b = newInstance(t, f), newInstance(t, f)
	a.eth(0, macA, sn1, "10.0.1.10", "10.0.1.11")
	a.eth(1, macC, sn2, "10.0.2.10", "10.0.2.11")
	b.eth(0, macB, sn1, "10.0.1.20", "10.0.1.21")
	return f, a, b
}

func TestReach(t *testing.T) {
	f, a, b := two(t)
	for _, c := range []struct {
		name     string
		from     *instance
		src, dst string
		want     bool
	}{
		{"same subnet", a, "10.0.1.10", "10.0.1.20", true},
		{"secondary to secondary", a, "10.0.1.11", "10.0.1.21", true},
		{"from the second ENI", a, "10.0.2.10", "10.0.1.20", true},
		{"secondary of the second ENI", a, "10.0.2.11", "10.0.1.21", true},
		{"to the second ENI", b, "10.0.1.20", "10.0.2.11", true},
		{"the internet", b, "10.0.1.21", "198.51.100.1", true},
		{"unassigned", b, "10.0.1.20", "10.0.1.99", false},
		{"the gateway does not answer pings", b, "10.0.1.20", "10.0.1.1", false},
		{"the VPC where there is nothing", b, "10.0.1.20", "10.0.77.1", false},
	} {
		wait := patience
		if !c.want {
			wait = calm
		}
		if got := c.from.ping(c.src, c.dst, wait); got != c.want {
			t.Errorf("%s: %s pings %s: answered=%v, expected %v", c.name, c.src, c.dst, got, c.want)
		}
	}
	addrs := []netip.Addr{ip("10.0.1.10"), ip("10.0.1.99"), ip("10.0.2.11"), ip("10.0.1.1"), ip("10.0.1.21"), ip("10.0.1.10"), f.Witness(), {}}
	want := []bool{true, false, true, false, true, true, true, false}
	for i, got := range f.Ping(addrs, calm) {
		if got != want[i] {
			t.Errorf("Ping: %v answered=%v, expected %v", addrs[i], got, want[i])
		}
	}
}
