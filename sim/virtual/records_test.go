package virtual

import (
	"net/netip"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
)

// A store has one row a key. A file that is lost is none for the next daemon, unless the one that lives writes all of it again.
func TestDisks(t *testing.T) {
	a := ipam.Row{Address: netip.MustParseAddr("10.0.0.1"), State: ipam.Assigned}
	b := ipam.Row{Address: netip.MustParseAddr("10.0.0.2"), State: ipam.Assigned}
	var d disks
	d.commit(&ipam.Save{Put: []ipam.Row{a, b, a}}, 2)
	fork := d.clone()
	lost, twice := d.lose(ipam.RunStore), d.lose(ipam.RunStore)
	d.commit(&ipam.Save{Drop: []ipam.Key{b.Key()}}, 2)
	if got, err := d.read(ipam.RunStore, 2, true); err != nil || !lost || twice || len(got) != 1 || got[0].Address != a.Address {
		t.Errorf("%+v, %v; lost %v, and again %v; expected a", got, err, lost, twice)
	}
	if _, err := d.read(ipam.RunStore, 1, true); err == nil {
		t.Error("a picky daemon has read another version's records")
	}
	d.lose(ipam.RunStore)
	got, _ := d.read(ipam.RunStore, 2, false)
	if had, _ := fork.read(ipam.RunStore, 2, false); len(got) != 0 || len(had) != 2 {
		t.Errorf("%d rows are left of a lost file, and a fork has %d, expected 2", len(got), len(had))
	}
}
