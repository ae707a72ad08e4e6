package cri

import "slices"

// Met is a fault at work. Faults without a number are not told of.
type Met struct {
	Fault int    // as Number was told
	What  string // what it did, for people: "a plugin before ours fails the DEL of web-0"
}

// Number is what the faults that are asked for from now on are called by Met; 0: Met does not tell of them.
func (n *Node) Number(fault int) { n.number = int32(fault) }

// Met tells what numbered faults have met since it was asked last, in order.
func (n *Node) Met() []Met {
	if len(n.met) == 0 {
		return nil
	}
	out := slices.Clone(n.met)
	n.met = n.met[:0]
	return out
}

func (n *Node) meets(fault int32, what string) {
	if fault != 0 {
		n.met = append(n.met, Met{int(fault), what})
	}
}
