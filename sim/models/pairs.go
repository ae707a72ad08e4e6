package models

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/enilab/enilab/fakes/cri"
)

// Place is where a pod is, as far as packets to another pod may take another way because of it.
type Place struct {
	Node    int32
	ENI     string // "" is none: an address that EC2 has not assigned
	Address netip.Addr
	Pod     cri.Truth // zero where others than the models know of pods
}

// Pair is one pod that asks another.
type Pair struct{ From, To Place }

// mostMeshed bounds the nodes of which each asks every other one: beyond, their ring has to do.
const mostMeshed = 64

// Pairs chooses who asks whom, so that every pod asks once and is asked once, every ENI of a node asks every other of it, and every node every
// other node: n pods make some n pairs and not n².
func Pairs(of []Place) []Pair {
	places := slices.Clone(of)
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.ENI, b.ENI), a.Address.Compare(b.Address))
	})
	if len(places) < 2 {
		return nil
	}
	var out []Pair
	for i, p := range places {
		out = append(out, Pair{p, places[(i+1)%len(places)]})
	}
	enis := firsts(places, func(a, b Place) bool { return a.Node == b.Node && a.ENI == b.ENI })
	nodes := firsts(places, func(a, b Place) bool { return a.Node == b.Node })
	out = meshed(out, enis, func(a, b Place) bool { return a.Node == b.Node })
	if len(nodes) <= mostMeshed {
		out = meshed(out, nodes, func(a, b Place) bool { return true })
	}
	return out
}

// firsts are the first ones of each group of neighbours.
func firsts(places []Place, same func(a, b Place) bool) []Place {
	return slices.CompactFunc(slices.Clone(places), same)
}

// meshed adds every ordered pair of those that may be one, and that is none yet.
func meshed(out []Pair, of []Place, may func(a, b Place) bool) []Pair {
	if len(of) < 2 {
		return out
	}
	known := map[[2]netip.Addr]bool{}
	for _, p := range out {
		known[[2]netip.Addr{p.From.Address, p.To.Address}] = true
	}
	for _, a := range of {
		for _, b := range of {
			if a.Address != b.Address && may(a, b) && !known[[2]netip.Addr{a.Address, b.Address}] {
				out = append(out, Pair{a, b})
			}
		}
	}
	return out
}

// Unanswered is what is wrong with a pod of which another gets no answer.
func Unanswered(by *cri.Truth, why string) string {
	return "pod " + by.Name + " (" + by.Address.String() + ") of the same node gets no answer of it: " + why
}

// Places are those of a node's pods that run and have an address. A pod that has given itself addresses is left out: they may be other pods', which
// it then neither asks nor answers, and no CNI can mend that.
func (h *Host) Places(n *Node) (out []Place) {
	for _, t := range n.running() {
		if slices.Contains(n.claimed, t.Netns) {
			continue
		}
		eni, _ := h.EC2.HasAddress(n.Instance, t.Address)
		out = append(out, Place{n.No, string(eni), t.Address, t})
	}
	return out
}

// measurePairs counts the pairs of pods that are tried, or those of them that do not reach each other.
func (h *Host) measurePairs(metric string) (int64, bool) {
	var places []Place
	for _, n := range h.Nodes[1:] {
		if !n.Gone {
			places = append(places, h.Places(n)...)
		}
	}
	pairs := Pairs(places)
	if metric == "pairs.tried" {
		return int64(len(pairs)), true
	}
	var apart int64
	for _, n := range h.Nodes[1:] {
		mine := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return p.From.Node != n.No })
		if len(mine) == 0 {
			continue
		}
		for _, fault := range n.Machine.Connect(mine) {
			if fault != "" {
				apart++
			}
		}
	}
	return apart, true
}
