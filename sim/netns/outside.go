package netns

import (
	"errors"
	"net/netip"
	"slices"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Parts.WithoutBooks: a daemon of which only the outside is known.

// without are the sources that the laboratory lacks.
func (p *Parts) without() judge.Source {
	if p.WithoutBooks {
		return judge.Books
	}
	return 0
}

// holds says of an address of the kernel that it is in use: a living sandbox, or the machine itself.
func (n *instance) holds() func(netip.Addr) bool {
	w := n.w
	var own []netip.Addr
	for _, p := range w.Cluster.Prefixes() {
		own = append(own, p.Masked().Addr().Next()) // the router
	}
	for t := range n.CRI.Sandboxes() {
		own = append(own, t.Address)
	}
	for _, id := range w.EC2.AttachedENIs(n.Instance) {
		e, _ := w.EC2.ENI(id)
		own = append(own, e.Primary)
	}
	return func(a netip.Addr) bool { return slices.Contains(own, a) }
}

// Excuse: which rare branches a daemon took, only its recording tells.
func (w *World) Excuse(mark string, _ []*scn.Action) error {
	if w.parts.WithoutBooks {
		return errors.New("only books tell " + mark + ", and there are none")
	}
	return nil
}
