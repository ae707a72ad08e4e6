package dataplane

import (
	"net/netip"
	"testing"
)

func TestTableOf(t *testing.T) {
	for device, want := range map[int]int{0: MainTable, 1: 2, 3: 4} {
		if got := TableOf(device); got != want {
			t.Errorf("TableOf(%d) = %d, want %d", device, got, want)
		}
	}
}

func FuzzParseAlias(f *testing.F) {
	f.Add("enilab/1 aws-cni 0123 eth0 10.0.0.1")
	f.Add("enilab/1    10.0.0.1")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		network, id, ifName, a, ok := ParseAlias(s)
		if !ok {
			if network != "" || id != "" || ifName != "" || a != (netip.Addr{}) {
				t.Fatalf("ParseAlias(%q) refused and still said %q %q %q %v", s, network, id, ifName, a)
			}
			return
		}
		if got := Alias(network, id, ifName, a); got != s {
			t.Fatalf("Alias(ParseAlias(%q)) = %q", s, got)
		}
	})
}
