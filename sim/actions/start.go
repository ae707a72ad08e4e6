package actions

import (
	"fmt"
	"slices"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/verb"
)

// Starters are the actions on a node that strike when its next daemon starts.
type Starters struct{ all, bare []int }

// Any adds one that every start ends.
func (s *Starters) Any(id int) verb.Strike {
	s.all = append(s.all, id)
	return verb.Wait("no daemon has started since")
}

// Pending says whether an action waits for the next start.
func (s *Starters) Pending() bool { return len(s.all) > 0 }

// Bare adds one that took the records away. A daemon that lived on and wrote them again has undone it.
func (s *Starters) Bare(id int) verb.Strike {
	s.bare = append(s.bare, id)
	return verb.Wait("no daemon has started without records since")
}

// Met are the actions that a start ends, and what it tells of them. None is left.
func (s *Starters) Met(in *ipam.Start) (ids []int, text string) {
	ids = s.all
	if !slices.ContainsFunc(in.Rows, func(r ipam.Row) bool { return r.Intent == nil }) {
		ids = append(ids, s.bare...)
	}
	slices.Sort(ids) // as they happened
	*s = Starters{}
	rows := verb.Number(len(in.Rows), "row")
	return ids, fmt.Sprintf("a daemon of version %d starts with %s on record", in.Version, rows)
}

// Ran is Met of a daemon of whose start nothing is known but that it was: what its records hold, nobody can see.
func (s *Starters) Ran() (ids []int, text string) {
	ids = append(s.all, s.bare...)
	slices.Sort(ids) // as they happened
	*s = Starters{}
	return ids, "a daemon starts"
}

// Clone of it.
func (s *Starters) Clone() Starters { return Starters{slices.Clone(s.all), slices.Clone(s.bare)} }
