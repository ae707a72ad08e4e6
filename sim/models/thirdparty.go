package models

import (
	"maps"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
)

// addThirdParty remembers what it has put on a node as it is then: from now on it has to stay (I18).
func (h *Host) addThirdParty(n *Node, _ *sim.Act, _ int) sim.Strike {
	if n.foreign != nil {
		return sim.Miss("third parties have put all of it there already")
	}
	lacks := n.Machine.AddThirdParty()
	is, ok := n.Machine.ThirdParty()
	if !ok || len(is) == 0 {
		return sim.Miss("the kernel takes none of it: %s", strings.Join(lacks, "; "))
	}
	n.foreign = is
	text := actions.Some(len(is), "thing", "is", "are") + " there: " + strings.Join(slices.Sorted(maps.Keys(is)), ", ")
	if len(lacks) > 0 {
		text += "; not there: " + strings.Join(lacks, "; ")
	}
	return sim.Hit("%s", text)
}

// spoils are the verbs by which a third party takes away what another one has put on a node. A reboot takes all of it.
var spoils = []string{"flush-rules", "flush-routes", "flush-nat"}

// spoiled forgets what the scenario itself takes away.
func (n *Node) spoiled(verb string) {
	switch {
	case n.foreign == nil:
	case verb == "reboot":
		n.foreign = nil
	case slices.Contains(spoils, verb):
		if is, ok := n.Machine.ThirdParty(); ok {
			maps.DeleteFunc(n.foreign, func(name, was string) bool { return is[name] != was })
		} else {
			n.foreign = nil // nobody knows which
		}
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
