package ec2

import "testing"

// The whole catalogue: no type twice, none without limits, sixty at least.
func TestCatalogue(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Types() {
		if seen[k.Name] {
			t.Errorf("%s: listed twice", k.Name)
		}
		seen[k.Name] = true
		if k.ENIs < 2 || k.IPv4PerENI < 2 || k.IPv4PerENI > mostAddresses || k.IPv6PerENI < 1 || k.Cards < 1 || k.VCPUs < 1 || k.MemoryMiB < 512 {
			t.Errorf("%s: %+v", k.Name, k)
		}
		if k.Trunk && k.Hypervisor == "xen" {
			t.Errorf("%s: trunk interfaces need Nitro", k.Name)
		}
	}
	if len(seen) < 60 {
		t.Errorf("%d types, want at least 60", len(seen))
	}
}

// What a type with several cards allows on one of them and on all: "15 per network card (15, 30, 45, or 60)".
func TestLimitsOfTypesWithSeveralCards(t *testing.T) {
	for name, want := range map[string][3]int{
		"m5.large": {1, 3, 3}, "p4d.24xlarge": {4, 15, 60}, "trn1.32xlarge": {8, 5, 40}, "p5.48xlarge": {32, 2, 64},
	} {
		l, _ := LimitsOf(name)
		if got := [3]int{l.Cards, l.ENIs, l.MaximumENIs()}; got != want {
			t.Errorf("%s: cards, interfaces on the first and on all are %v, want %v", name, got, want)
		}
	}
	if n := (Limits{ENIs: 3}).MaximumENIs(); n != 3 {
		t.Errorf("limits that name no cards allow %d interfaces, want 3", n)
	}
}
