package judge

import (
	"net/netip"
	"slices"

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
	// Named are the addresses that a rule, a host route or a namespace behind a veth is about, each once.
	Named []netip.Addr
}

// ResidueOf is what an observation of a node's kernel shows; stray are the addresses in namespaces that no sandbox has.
func ResidueOf(stray []netip.Addr, o *dataplane.Observation) *Residue {
	ix := o.Index()
	return &Residue{Left: ix.Residue, Stray: stray, Named: named(o), Used: func(a netip.Addr) bool { _, used := ix.Uses(a); return used }}
}

func named(o *dataplane.Observation) (out []netip.Addr) {
	for _, r := range o.Rules {
		if a, ok := r.Addr(); ok {
			out = append(out, a)
		}
	}
	for _, r := range o.Routes {
		if r.Dst.IsSingleIP() && !r.Via.IsValid() {
			out = append(out, r.Dst.Addr())
		}
	}
	for _, l := range o.Links {
		out = append(out, l.PeerAddresses...)
	}
	slices.SortFunc(out, netip.Addr.Compare)
	return slices.Compact(out)
}

// Leaks names what has no owner on a node (I5), of the addresses that its daemon's books have. Where no daemon runs,
// one that starts may still clean up.
func (r *Residue) Leaks(books *ipam.Node) (out []string) {
	if books == nil {
		return nil
	}
	out = r.strays()
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

// Unclaimed names what has no owner on a node (I5) without books: what the kernel has for an address that no pod can
// have. holds says of an address that a living sandbox has it, or the machine itself: an ENI's own, or a router's.
func (r *Residue) Unclaimed(holds func(netip.Addr) bool) []string {
	out := r.strays()
	for _, a := range r.Named {
		if holds(a) || slices.Contains(r.Stray, a) {
			continue
		}
		if what, left := r.Left(a); left {
			out = append(out, what+" for "+a.String())
		} else if r.Used(a) {
			out = append(out, "a veth for "+a.String()+", which no living sandbox has")
		}
	}
	return out
}

func (r *Residue) strays() (out []string) {
	for _, a := range r.Stray {
		out = append(out, "address "+a.String()+" is configured in a namespace that no sandbox has")
	}
	return out
}
