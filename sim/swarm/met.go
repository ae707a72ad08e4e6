package swarm

import (
	"cmp"
	"slices"

	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/virtual"
)

// Met is a verb that struck, by its key, while a daemon that it concerns was in some condition.
type Met struct {
	Verb   string            `json:"verb"`
	Daemon virtual.Condition `json:"daemon"`
}

func compareMet(a, b Met) int {
	return cmp.Or(slices.Index(virtual.Conditions(), a.Daemon)-slices.Index(virtual.Conditions(), b.Daemon), cmp.Compare(a.Verb, b.Verb))
}

// watched is a world that notes in which condition the daemons were when an action struck, or was armed. What is not done to a node concerns all.
type watched struct {
	*virtual.World
	nodes int
	met   map[Met]bool
}

func (w watched) Do(a *verb.Act) int {
	first, last := 1, w.nodes
	if a.Subject.Kind == scn.Node {
		first, last = a.Subject.Node, a.Subject.Node
	}
	var daemons []virtual.Condition
	for n := first; n <= last; n++ {
		daemons = append(daemons, w.Condition(n))
	}
	id := w.World.Do(a)
	if w.Strike(id).Fate != verb.Missed {
		key := a.Of.Key()
		for _, d := range daemons {
			w.met[Met{key, d}] = true
		}
	}
	return id
}

// Unmet are the verbs that the swarm draws and the conditions in which no seed of the batch met a daemon with them.
func (t *Tally) Unmet() (out []Met) {
	for _, key := range t.drawn {
		for _, c := range virtual.Conditions() {
			if m := (Met{key, c}); t.Met[m] == 0 {
				out = append(out, m)
			}
		}
	}
	slices.SortFunc(out, compareMet)
	return out
}
