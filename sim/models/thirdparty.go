package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// AddThirdParty remembers what it has put on a node as it is then: from now on it has to stay (I18).
func (k kernelOf) AddThirdParty() verb.Strike {
	n := k.n
	if n.foreign != nil {
		return verb.Miss("third parties have put all of it there already")
	}
	lacks := n.Machine.AddThirdParty()
	is, ok := n.Machine.ThirdParty()
	if !ok || len(is) == 0 {
		return verb.Miss("the kernel takes none of it: %s", strings.Join(lacks, "; "))
	}
	n.foreign = is
	text := verb.Some(len(is), "thing", "is", "are") + " there: " + strings.Join(slices.Sorted(maps.Keys(is)), ", ")
	if len(lacks) > 0 {
		text += "; not there: " + strings.Join(lacks, "; ")
	}
	return verb.Hit("%s", text)
}

// spoiled forgets what the scenario itself takes away of what third parties have put on a node.
func (n *Node) spoiled() {
	if n.foreign == nil {
		return
	}
	if is, ok := n.Machine.ThirdParty(); ok {
		maps.DeleteFunc(n.foreign, func(name, was string) bool { return is[name] != was })
	} else {
		n.foreign = nil // it is unknown which
	}
}

// ThirdParty is what third parties have put on a node, for a snapshot. Nil: nothing, or it could not be looked at.
func (n *Node) ThirdParty() (out []judge.Foreign) {
	if len(n.foreign) == 0 {
		return nil
	}
	is, ok := n.Machine.ThirdParty()
	if !ok {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(n.foreign)) {
		out = append(out, judge.Foreign{Name: name, Was: n.foreign[name], Is: is[name]})
	}
	return out
}
