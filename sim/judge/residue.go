package judge

import (
	"net/netip"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// Residue is what a node's kernel shows.
type Residue struct {
	// Left names what is left of an address that nothing uses.
	Left func(netip.Addr) (what string, left bool)
	// Used says whether anything uses an address.
	Used func(netip.Addr) bool
	// Stray are the addresses in living namespaces that no sandbox has.
	Stray []netip.Addr
}

// ResidueOf is what an observation of a node's kernel shows; stray are the addresses in namespaces that no sandbox has.
func ResidueOf(stray []netip.Addr, o *dataplane.Observation) *Residue {
	ix := o.Index()
	return &Residue{Left: ix.Residue, Stray: stray, Used: func(a netip.Addr) bool { _, used := ix.Uses(a); return used }}
}

// Leaks names what belongs to nobody on a node (I5), of the addresses that its daemon's books have. Where no daemon runs, one that starts may
// still clean up.
func (r *Residue) Leaks(books *ipam.Node) (out []string) {
	if books == nil {
		return nil
	}
	for _, a := range r.Stray {
		out = append(out, "address "+a.String()+" is configured in a namespace that no sandbox has")
	}
	books.Rows(func(row ipam.Row) {
		switch row.State {
		case ipam.Free:
			if what, left := r.Left(row.Address); left {
				out = append(out, what+" for "+row.Address.String())
			}
		case ipam.Quarantined:
			if !r.Used(row.Address) {
				out = append(out, "address "+row.Address.String()+" is quarantined, and nothing uses it")
			}
		}
	})
	return out
}
